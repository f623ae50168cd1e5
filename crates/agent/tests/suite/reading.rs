//! What messages and requests say, in lines that can be compared.

use hardpan_prompt::{AgentMessage, Body, Image, Part};
use serde_json::{Value, json};

fn text_of(parts: &[Part]) -> String {
    let word = |part: &Part| match part {
        Part::Text { text } => text.to_string(),
        Part::ToolCall(call) => format!("[{}]", call.name),
        Part::Image(_) => "[image]".into(),
        Part::Reasoning { .. } => "[reasoning]".into(),
    };
    parts.iter().map(word).collect::<Vec<_>>().join(" ")
}

pub fn line(message: &AgentMessage) -> String {
    match &*message.body {
        Body::User { content } => format!("user: {}", text_of(content)),
        Body::Custom { content, .. } => format!("custom: {}", text_of(content)),
        Body::Assistant { content, stop_reason, .. } => {
            let stop = stop_reason.as_deref().filter(|stop| !matches!(*stop, "end" | "tool_use"));
            format!(
                "assistant: {}{}",
                text_of(content),
                stop.map_or_else(String::new, |stop| format!(" ({stop})"))
            )
        }
        Body::ToolResult { content, is_error: true, .. } => format!("failed: {}", text_of(content)),
        Body::ToolResult { content, .. } => format!("result: {}", text_of(content)),
        other => format!("{other:?}"),
    }
}

/// What the messages of an Anthropic request say, one line per block: `user: text`, `assistant: text`, `call: name`,
/// `result: text`, `failed: text`.
pub fn heard(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).expect("JSON");
    let messages = body["messages"].as_array().expect("messages");
    let blocks = messages.iter().flat_map(|message| {
        let role = message["role"].as_str().expect("a role");
        message["content"].as_array().expect("a list").iter().map(move |block| (role, block))
    });
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    };
    let line = |(role, block): (&str, &Value)| match block["type"].as_str().expect("a type") {
        "text" => format!("{role}: {}", text(&block["text"])),
        "tool_use" => format!("call: {}", text(&block["name"])),
        "tool_result" if block["is_error"] == true => format!("failed: {}", text(&block["content"])),
        "tool_result" => format!("result: {}", text(&block["content"])),
        other => format!("{role}: [{other}]"),
    };
    blocks.map(line).collect()
}

/// The system prompt of an Anthropic request.
pub fn system(body: &str) -> String {
    let body: Value = serde_json::from_str(body).expect("JSON");
    body["system"].as_array().expect("a list").iter().filter_map(|block| block["text"].as_str()).collect()
}

/// An image of one pixel.
pub fn pixel() -> Image {
    let data =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    serde_json::from_value(json!({"media_type": "image/png", "data": data, "width": 1, "height": 1}))
        .expect("an image")
}

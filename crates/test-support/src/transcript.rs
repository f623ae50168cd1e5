//! Messages and requests as lines of text that tests can compare.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use serde_json::Value;

fn text_of(parts: &[MessagePart]) -> String {
    let word = |part: &MessagePart| match part {
        MessagePart::Text { text } => text.to_string(),
        MessagePart::ToolCall(call) => format!("[{}]", call.name),
        MessagePart::Image(_) => "[image]".into(),
        MessagePart::Reasoning { .. } => "[reasoning]".into(),
        MessagePart::ProviderBlock(_) => "[search]".into(),
        MessagePart::Sources { sources } => format!("[{} sources]", sources.len()),
    };
    parts.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A message in one line: `user: text`, `assistant: text [call] (length)`, `result: text`, `failed:
/// text`, `ran command: output`, `summary: text`, `branch: text`, `custom: text`.
pub fn line(message: &AgentMessage) -> String {
    match &*message.body {
        MessageBody::User { content } => format!("user: {}", text_of(content)),
        MessageBody::Custom { content, .. } => format!("custom: {}", text_of(content)),
        MessageBody::Assistant { content, stop_reason, .. } => {
            let stop = stop_reason.as_deref().filter(|stop| !matches!(*stop, "end" | "tool_use"));
            let stop = stop.map_or_else(String::new, |stop| format!(" ({stop})"));
            format!("assistant: {}{stop}", text_of(content))
        }
        MessageBody::ToolResult { content, is_error: true, .. } => format!("failed: {}", text_of(content)),
        MessageBody::ToolResult { content, .. } => format!("result: {}", text_of(content)),
        MessageBody::BashExecution { command, output, .. } => format!("ran {command}: {output}"),
        MessageBody::CompactionSummary { summary } => format!("summary: {summary}"),
        MessageBody::BranchSummary { summary } => format!("branch: {summary}"),
    }
}

/// What the messages of an Anthropic request say, one line per block: `user: text`, `assistant:
/// text`, `call: name`, `result: text`, `failed: text`. The block that tells the time is left out.
pub fn request_lines(body: &str) -> Vec<String> {
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
    blocks.map(line).filter(|line| !line.starts_with("user: Current date and time: ")).collect()
}

/// The system prompt of an Anthropic request.
pub fn system_prompt(body: &str) -> String {
    let body: Value = serde_json::from_str(body).expect("JSON");
    body["system"].as_array().expect("a list").iter().filter_map(|block| block["text"].as_str()).collect()
}

/// Asserts that every call has exactly one result, right after its answer.
pub fn assert_calls_paired(messages: &[AgentMessage]) {
    let mut open: Vec<Arc<str>> = Vec::new();
    for message in messages {
        match &*message.body {
            MessageBody::ToolResult { call_id, .. } => {
                let at = open.iter().position(|id| id == call_id);
                open.remove(at.unwrap_or_else(|| panic!("a result without its call: {message:?}")));
            }
            _ => assert!(open.is_empty(), "{message:?} comes between a call and its result"),
        }
        if let MessageBody::Assistant { content, .. } = &*message.body {
            open.extend(content.iter().filter_map(|part| {
                if let MessagePart::ToolCall(call) = part { Some(call.id.clone()) } else { None }
            }));
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

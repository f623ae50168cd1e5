//! A body of Gemini's protocol in the words of the others, for the outline.

use serde_json::{Map, Value, json};

/// Renames messages, parts, the system prompt and tools. What has no other name stays.
pub fn translate(body: &mut Map<String, Value>) {
    let Some(Value::Array(contents)) = body.remove("contents") else { return };
    if let Some(system) = body.remove("systemInstruction") {
        body.insert("system".to_owned(), parts(&system["parts"]));
    }
    if let Some(Value::Array(tools)) = body.remove("tools") {
        let functions = tools.iter().filter_map(|tool| tool["functionDeclarations"].as_array()).flatten();
        let tool = |function: &Value| {
            let mut tool = function.clone();
            let fields = tool.as_object_mut().expect("a function is an object");
            let schema = fields.remove("parametersJsonSchema").unwrap_or_default();
            fields.insert("input_schema".to_owned(), schema);
            tool
        };
        body.insert("tools".to_owned(), functions.map(tool).collect());
    }
    let message = |content: Value| {
        let role = if content["role"] == "model" { "assistant" } else { "user" };
        json!({"role": role, "content": parts(&content["parts"])})
    };
    body.insert("messages".to_owned(), contents.into_iter().map(message).collect());
}

fn parts(parts: &Value) -> Value {
    parts.as_array().into_iter().flatten().map(block).collect()
}

fn block(part: &Value) -> Value {
    let mut rest = part.as_object().expect("a part is an object").clone();
    let mut take = |key: &str| rest.remove(key);
    let mut block = if let Some(call) = take("functionCall") {
        json!({"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]})
    } else if let Some(response) = take("functionResponse") {
        let (output, error) = (&response["response"]["output"], &response["response"]["error"]);
        let mut content = vec![json!({"type": "text", "text": if error.is_null() { output } else { error }})];
        content.extend(response["parts"].as_array().into_iter().flatten().map(block));
        let mut result = json!({"type": "tool_result", "tool_use_id": response["id"], "content": content});
        if !error.is_null() {
            result["is_error"] = json!(true);
        }
        result
    } else if let Some(image) = take("inlineData") {
        json!({"type": "image", "source": {"media_type": image["mimeType"], "data": image["data"]}})
    } else {
        json!({"type": "text", "text": take("text").unwrap_or_default()})
    };
    block.as_object_mut().expect("a block is an object").extend(rest);
    block
}

//! A request body as one line per block: who speaks, what kind of block, how long, which hash, which
//! marker, how it begins. All protocols are written with the same words, so that the outline of one
//! codec can be shown as what differs from another's.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use similar::{ChangeTag, TextDiff};

use super::{digest, gemini};

/// How much of a text is shown: enough to recognise a block by.
const SHOWN_CHARS: usize = 56;

/// A body in outline. What it does not know is printed as JSON: nothing is passed over.
pub struct Outline {
    /// The fields of the body beside its blocks, and how many contents are strings rather than lists.
    pub fields: String,
    /// A line for each tool and each block.
    pub blocks: String,
}

impl Outline {
    pub fn of(body: &Value) -> Self {
        let mut body = body.as_object().expect("a body is an object").clone();
        gemini::translate(&mut body);
        if let Some(items) = body.remove("input") {
            let tools = array(body.remove("tools")).into_iter();
            body.insert("tools".into(), tools.map(|tool| json!({"function": tool})).collect());
            body.insert("messages".into(), array(Some(items)).iter().map(chat_message).collect());
        }
        let [tools, system, messages] = ["tools", "system", "messages"].map(|key| array(body.remove(key)));
        let mut writer = BlockWriter { lines: String::new(), role: String::new(), string_contents: 0 };
        tools.into_iter().for_each(|tool| writer.tool(tool));
        writer.role = "system".to_owned();
        system.into_iter().for_each(|block| writer.block(block));
        messages.into_iter().for_each(|message| writer.message(message));
        let fields = format!("{} with {} string contents", Value::Object(body), writer.string_contents);
        Outline { fields, blocks: writer.lines }
    }

    /// The blocks that are not in `base` (`+`), and those of `base` that are not here (`-`).
    pub fn blocks_against(&self, base: &Outline) -> String {
        let diff = TextDiff::from_lines(&base.blocks, &self.blocks);
        let changes = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
        changes.map(|change| format!("{}{}", change.tag(), change.value())).collect()
    }
}

/// An item of the Responses API as the message of Chat Completions that says the same.
fn chat_message(item: &Value) -> Value {
    let parts = |parts: &Value| -> Value {
        let Value::Array(parts) = parts else { return parts.clone() };
        let part = |part: &Value| {
            let mut part = part.clone();
            match part["type"].as_str() {
                Some("input_image") => {
                    part["image_url"] = json!({"url": part["image_url"]});
                    part["type"] = json!("image_url");
                }
                _ => part["type"] = json!("text"),
            }
            part
        };
        parts.iter().map(part).collect()
    };
    match item["type"].as_str() {
        Some("function_call") => {
            let function = json!({"name": item["name"], "arguments": item["arguments"]});
            let call = json!({"id": item["call_id"], "type": "function", "function": function});
            json!({"role": "assistant", "content": null, "tool_calls": [call]})
        }
        Some("function_call_output") => {
            json!({"role": "tool", "tool_call_id": item["call_id"], "content": parts(&item["output"])})
        }
        Some("reasoning") => {
            json!({"role": "assistant", "content": null, "reasoning": item["summary"][0]["text"].as_str().unwrap_or_default()})
        }
        _ => {
            let role = if item["role"] == "developer" { json!("system") } else { item["role"].clone() };
            json!({"role": role, "content": parts(&item["content"])})
        }
    }
}

struct BlockWriter {
    lines: String,
    /// Who speaks; empty after the first block of a message.
    role: String,
    string_contents: usize,
}

impl BlockWriter {
    fn message(&mut self, message: Value) {
        let Value::Object(mut message) = message else { panic!("a message is an object: {message}") };
        let role = message.remove("role").unwrap_or_default();
        let call_id = message.remove("tool_call_id");
        let (content, calls) = (message.remove("content"), message.remove("tool_calls"));
        // A result is a message of its own in one protocol and a block of the user's in the other.
        self.role = if call_id.is_some() { "user".to_owned() } else { as_text(&role) };
        for key in ["reasoning", "reasoning_content"] {
            if let Some(reasoning) = message.remove(key) {
                self.line(key, &as_text(&reasoning), &Map::new());
            }
        }
        match (call_id, content.unwrap_or_default()) {
            (Some(id), content) => self.result(&as_text(&id), content, message),
            (None, Value::Null) => self.rest(message),
            (None, Value::String(text)) => {
                self.string_contents += 1;
                self.line("text", &text, &message);
            }
            (None, Value::Array(blocks)) => {
                blocks.into_iter().for_each(|block| self.block(block));
                self.rest(message);
            }
            (None, other) => panic!("content is text or a list: {other}"),
        }
        array(calls).into_iter().for_each(|call| self.block(call));
    }

    fn block(&mut self, block: Value) {
        let Value::Object(mut block) = block else { panic!("a block is an object: {block}") };
        let kind = as_text(&block.remove("type").unwrap_or_default());
        let mut take = |key: &str| block.remove(key).unwrap_or_default();
        match kind.as_str() {
            "text" => {
                let text = as_text(&take("text"));
                self.line("text", &text, &block);
            }
            "tool_use" => {
                let call = format!("{} {} {}", as_text(&take("name")), as_text(&take("id")), take("input"));
                self.line("call", &call, &block);
            }
            "function" => {
                let (id, function) = (as_text(&take("id")), take("function"));
                let [name, arguments] = ["name", "arguments"].map(|key| as_text(&function[key]));
                self.line("call", &format!("{name} {id} {arguments}"), &block);
            }
            "tool_result" => {
                let (id, content) = (as_text(&take("tool_use_id")), take("content"));
                self.result(&id, content, block);
            }
            "image" => {
                let source = take("source");
                let [media_type, data] = ["media_type", "data"].map(|key| as_text(&source[key]));
                self.line("image", &format!("data:{media_type};base64,{data}"), &block);
            }
            "image_url" => {
                let image = take("image_url");
                self.line("image", &as_text(&image["url"]), &block);
            }
            "thinking" => {
                let (text, signature) = (as_text(&take("thinking")), as_text(&take("signature")));
                self.line("thinking", &format!("{text} [{signature}]"), &block);
            }
            other => self.line(other, &Value::Object(block).to_string(), &Map::new()),
        }
    }

    fn result(&mut self, id: &str, content: Value, rest: Map<String, Value>) {
        match content {
            Value::String(text) => {
                self.string_contents += 1;
                self.line("result", &format!("{id} {text}"), &rest);
            }
            Value::Array(mut blocks) if blocks.len() == 1 && blocks[0]["type"] == "text" => {
                let Some(Value::Object(mut block)) = blocks.pop() else { panic!("{blocks:?}") };
                let text = as_text(&block.remove("text").unwrap_or_default());
                block.remove("type");
                block.extend(rest);
                self.line("result", &format!("{id} {text}"), &block);
            }
            content => {
                self.line("result", id, &rest);
                array(Some(content)).into_iter().for_each(|block| self.block(block));
            }
        }
    }

    /// What a message says besides its content.
    fn rest(&mut self, rest: Map<String, Value>) {
        if !rest.is_empty() {
            self.line("rest", &Value::Object(rest).to_string(), &Map::new());
        }
    }

    fn tool(&mut self, tool: Value) {
        let Value::Object(mut tool) = tool else { panic!("a tool is an object: {tool}") };
        // One protocol wraps the tool and has another name for its schema.
        tool.remove("type");
        if let Some(Value::Object(function)) = tool.remove("function") {
            tool.extend(function);
        }
        let schema = tool.remove("input_schema").or_else(|| tool.remove("parameters")).unwrap_or_default();
        let [name, description] =
            ["name", "description"].map(|key| as_text(&tool.remove(key).unwrap_or_default()));
        self.line("tool", &format!("{name} {description} {schema}"), &tool);
    }

    fn line(&mut self, kind: &str, text: &str, rest: &Map<String, Value>) {
        let role = std::mem::take(&mut self.role);
        let shown: String = text.chars().take(SHOWN_CHARS).collect();
        let (marker, hash, length) = (marker(rest), &digest(text.as_bytes())[..8], text.len());
        writeln!(self.lines, "{role:<9} {kind:<8} {length:>5} {hash} {marker:<1} {shown:?}")
            .expect("a string takes everything");
    }
}

/// `◆` for a breakpoint with its lifetime, and whatever else a block carries.
fn marker(rest: &Map<String, Value>) -> String {
    let mut rest = rest.clone();
    let mut words = Vec::new();
    for key in ["cache_control", "prompt_cache_breakpoint"] {
        if let Some(marker) = rest.remove(key) {
            words.push(format!("◆{}", as_text(&marker["ttl"])));
        }
    }
    if !rest.is_empty() {
        words.push(Value::Object(rest).to_string());
    }
    words.join(" ")
}

fn array(value: Option<Value>) -> Vec<Value> {
    match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values,
        Some(other) => panic!("a list is expected: {other}"),
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

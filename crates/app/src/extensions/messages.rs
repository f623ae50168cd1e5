//! Messages as extensions know them, and back: other names for roles, parts and fields.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_agent::CustomMessage;
use hardpan_prompt::{
    AgentMessage, Image, Json, MessageBody, MessageFacts, MessagePart, TokenUsage, ToolCall,
};
use serde_json::{Map, Value, json};

/// Arguments of tools that have another name there, and ours.
const ARGUMENT_NAMES: [(&str, &str); 3] =
    [("oldText", "old_text"), ("newText", "new_text"), ("ignoreCase", "ignore_case")];

/// Arguments of a call under the names that extensions read.
pub fn arguments_to_script(arguments: &Value) -> Value {
    rename(arguments, |name| ARGUMENT_NAMES.iter().find(|(_, ours)| *ours == name).map(|(theirs, _)| *theirs))
}

/// Arguments of a call under our own names.
fn arguments_from_script(arguments: &Value) -> Value {
    rename(arguments, |name| ARGUMENT_NAMES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours))
}

/// Renames the keys of an object, and of the objects in its lists.
fn rename<'a>(value: &Value, name: impl Fn(&str) -> Option<&'a str> + Copy) -> Value {
    match value {
        Value::Object(fields) => {
            let renamed = fields.iter().map(|(key, value)| {
                let value = if value.is_array() { rename(value, name) } else { value.clone() };
                (name(key).unwrap_or(key).to_owned(), value)
            });
            Value::Object(renamed.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| rename(item, name)).collect()),
        other => other.clone(),
    }
}

pub fn image_to_script(image: &Image) -> Value {
    json!({ "type": "image", "data": image.data, "mimeType": image.media_type })
}

/// An image that an extension made; its size is not known.
pub fn image_from_script(value: &Value) -> Option<Image> {
    serde_json::from_value(json!({ "media_type": value["mimeType"], "data": value["data"] })).ok()
}

pub fn parts_to_script(parts: &[MessagePart]) -> Value {
    parts.iter().filter_map(part_to_script).collect()
}

/// Extensions know no blocks of a provider's own search.
fn part_to_script(part: &MessagePart) -> Option<Value> {
    Some(match part {
        MessagePart::ProviderBlock(_) | MessagePart::Sources { .. } => return None,
        MessagePart::Text { text } => json!({ "type": "text", "text": &**text }),
        MessagePart::Image(image) => image_to_script(image),
        MessagePart::Reasoning { text, signature, .. } => {
            json!({ "type": "thinking", "thinking": &**text, "thinkingSignature": signature })
        }
        MessagePart::ToolCall(call) => json!({
            "type": "toolCall",
            "id": call.id,
            "name": call.name,
            "arguments": arguments_to_script(&call.arguments.value()),
        }),
    })
}

/// Content that an extension gave: a string, or a list of parts. Parts of unknown form are left out.
pub fn parts_from_script(content: &Value) -> Vec<MessagePart> {
    match content {
        Value::String(text) => vec![MessagePart::text(text.as_str())],
        Value::Array(parts) => parts.iter().filter_map(part_from_script).collect(),
        _ => Vec::new(),
    }
}

fn part_from_script(part: &Value) -> Option<MessagePart> {
    match part["type"].as_str()? {
        "text" => Some(MessagePart::text(part["text"].as_str()?)),
        "image" => image_from_script(part).map(MessagePart::Image),
        "thinking" => Some(MessagePart::Reasoning {
            text: part["thinking"].as_str()?.into(),
            signature: part["thinkingSignature"].as_str().map(Arc::from),
            redacted: None,
        }),
        "toolCall" => Some(MessagePart::ToolCall(ToolCall {
            id: part["id"].as_str()?.into(),
            name: part["name"].as_str()?.into(),
            arguments: Json::new(&arguments_from_script(&part["arguments"])),
            result: None,
        })),
        _ => None,
    }
}

/// A message that an extension wants to add.
pub fn custom_message(message: &Value) -> CustomMessage {
    CustomMessage {
        custom_type: message["customType"].as_str().unwrap_or("extension").into(),
        content: parts_from_script(&message["content"]),
        display: message["display"].as_bool().unwrap_or(true),
        details: given(&message["details"]),
    }
}

/// A value that is there.
pub fn given(value: &Value) -> Option<Value> {
    Some(value).filter(|value| !value.is_null()).cloned()
}

/// A message as extensions know it. `id` is ours: it tells which message came back.
pub fn message_to_script(message: &AgentMessage) -> Value {
    let mut fields = match body_to_script(&message.body) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("id".into(), json!(message.id));
    if let Some(facts) = &message.facts {
        facts_to_script(facts, &mut fields);
    }
    if let Some(time) = message.time {
        fields.insert("timestamp".into(), json!(time.as_millisecond()));
    }
    Value::Object(fields)
}

fn facts_to_script(facts: &MessageFacts, fields: &mut Map<String, Value>) {
    let MessageFacts { details, usage, error } = facts;
    fields.extend(details.clone().map(|details| ("details".to_owned(), details)));
    fields.extend(usage.map(|(tokens, dollars)| ("usage".to_owned(), usage_to_script(&tokens, dollars))));
    fields.extend(error.as_deref().map(|error| ("errorMessage".to_owned(), error.into())));
}

/// What an answer used, as extensions read it.
pub fn usage_to_script(tokens: &TokenUsage, dollars: f64) -> Value {
    json!({
        "input": tokens.input,
        "output": tokens.output,
        "cacheRead": tokens.cache_read,
        "cacheWrite": tokens.cache_written(),
        "totalTokens": tokens.total(),
        "cost": { "total": number(dollars) },
    })
}

/// A number as JavaScript writes it: without a fraction if it has none.
pub fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { json!(whole) } else { json!(value) }
}

fn body_to_script(body: &MessageBody) -> Value {
    match body {
        MessageBody::User { content } => json!({ "role": "user", "content": parts_to_script(content) }),
        MessageBody::Assistant { content, provider, model, stop_reason } => json!({
            "role": "assistant",
            "content": parts_to_script(content),
            "provider": provider,
            "model": model,
            "stopReason": stop_reason.as_deref().map(stop_reason_to_script),
        }),
        MessageBody::ToolResult { call_id, tool_name, content, is_error, not_run: _ } => json!({
            "role": "toolResult",
            "toolCallId": call_id,
            "toolName": tool_name,
            "content": parts_to_script(content),
            "isError": is_error,
        }),
        MessageBody::Custom { custom_type, content, display } => json!({
            "role": "custom",
            "customType": custom_type,
            "content": parts_to_script(content),
            "display": display,
        }),
        MessageBody::BashExecution { command, output, exit_code, exclude_from_context } => json!({
            "role": "bashExecution",
            "command": command,
            "output": &**output,
            "exitCode": exit_code,
            "excludeFromContext": exclude_from_context,
        }),
        MessageBody::CompactionSummary { summary } => {
            json!({ "role": "compactionSummary", "summary": &**summary })
        }
        MessageBody::BranchSummary { summary } => json!({ "role": "branchSummary", "summary": &**summary }),
    }
}

/// A provider's word for the end of an answer, as extensions compare it.
fn stop_reason_to_script(reason: &str) -> &str {
    match reason {
        "end_turn" | "stop" | "stop_sequence" | "completed" | "STOP" => "stop",
        "tool_use" | "tool_calls" => "toolUse",
        "max_tokens" | "length" | "MAX_TOKENS" => "length",
        other => other,
    }
}

/// Messages for a handler that may look at few of them: each as the text of its JSON.
pub fn lazy_messages(messages: &[AgentMessage]) -> Value {
    messages.iter().map(|message| message_to_script(message).to_string()).collect()
}

/// The messages that a handler returned. One that is as it was handed out is the original, with
/// everything that extensions do not see; its number may stand for it.
/// `owner` is the extension: what it adds has ids of its own.
pub fn messages_from_script(
    returned: &[Value],
    originals: &[AgentMessage],
    owner: &str,
) -> Vec<AgentMessage> {
    let by_id: BTreeMap<&str, &AgentMessage> =
        originals.iter().map(|message| (&*message.id.0, message)).collect();
    let mut added = 0;
    returned
        .iter()
        .filter_map(|value| {
            if let Some(number) = value.as_u64() {
                return originals.get(usize::try_from(number).ok()?).cloned();
            }
            let original = value["id"].as_str().and_then(|id| by_id.get(id)).copied();
            if let Some(original) = original.filter(|original| says_the_same(original, value)) {
                return Some(original.clone());
            }
            let body = body_from_script(value)?;
            if let Some(original) = original {
                let mut changed = original.clone();
                changed.body = Arc::new(body);
                return Some(changed);
            }
            added += 1;
            let mut message = AgentMessage::new(&*format!("extension-{owner}-{added}"), body);
            message.note(|facts| facts.details = given(&value["details"]));
            Some(message)
        })
        .collect()
}

/// Whether a handler gave a message back as it got it. What is never sent does not count.
fn says_the_same(original: &AgentMessage, returned: &Value) -> bool {
    let Value::Object(sent) = body_to_script(&original.body) else { return false };
    sent.iter().all(|(name, value)| returned.get(name).unwrap_or(&Value::Null) == value)
}

fn body_from_script(value: &Value) -> Option<MessageBody> {
    let content = parts_from_script(&value["content"]);
    let text = |name: &str| value[name].as_str().map(Arc::<str>::from);
    Some(match value["role"].as_str()? {
        "user" => MessageBody::User { content },
        "assistant" => MessageBody::Assistant {
            content,
            provider: text("provider"),
            model: text("model"),
            stop_reason: text("stopReason"),
        },
        "toolResult" => MessageBody::ToolResult {
            call_id: text("toolCallId")?,
            tool_name: text("toolName"),
            content,
            is_error: value["isError"].as_bool().unwrap_or(false),
            not_run: None,
        },
        "custom" => {
            let CustomMessage { custom_type, content, display, details: _ } = custom_message(value);
            MessageBody::Custom { custom_type, content, display }
        }
        "bashExecution" => MessageBody::BashExecution {
            command: text("command")?,
            output: value["output"].as_str().unwrap_or_default().into(),
            exit_code: value["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()),
            exclude_from_context: value["excludeFromContext"].as_bool().unwrap_or(false),
        },
        "compactionSummary" => MessageBody::CompactionSummary { summary: value["summary"].as_str()?.into() },
        "branchSummary" => MessageBody::BranchSummary { summary: value["summary"].as_str()?.into() },
        _ => return None,
    })
}

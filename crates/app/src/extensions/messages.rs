//! Messages as extensions know them, and back: other names for roles, parts and fields.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_agent::CustomMessage;
use hardpan_prompt::{
    AgentMessage, Image, Json, MessageBody, MessageFacts, MessagePart, TokenUsage, ToolCall,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{self, Content, ContentPart, ImagePart, Message, NewMessage, Usage, UsageCost};
use super::event_order::ToolEventOrder;

/// Arguments of tools that have another name there, and ours.
const ARGUMENT_NAMES: [(&str, &str); 3] =
    [("oldText", "old_text"), ("newText", "new_text"), ("ignoreCase", "ignore_case")];

/// Arguments of a call under the names that extensions read.
pub fn arguments_to_script(arguments: &Value) -> Value {
    rename(arguments, |name| ARGUMENT_NAMES.iter().find(|(_, ours)| *ours == name).map(|(theirs, _)| *theirs))
}

/// Arguments of a call of a tool as the questions about it have them. The releases with the newer order have the edits
/// of `edit` as a list; those before them had one edit, without a list.
pub fn input_to_script(tool: &str, arguments: &Value, order: ToolEventOrder) -> Value {
    let mut script = arguments_to_script(arguments);
    let Some(fields) = script.as_object_mut().filter(|_| tool == "edit") else { return script };
    let mut edits = fields.get("edits").and_then(Value::as_array).cloned().unwrap_or_default();
    if let (Some(old), Some(new)) = (fields.get("oldText"), fields.get("newText")) {
        edits.insert(0, json!({ "oldText": old, "newText": new }));
    }
    match (order, &edits[..]) {
        (_, []) => return script,
        (ToolEventOrder::AroundQuestions, _) => {
            fields.remove("oldText");
            fields.remove("newText");
        }
        (_, [only]) => {
            for name in ["oldText", "newText"] {
                fields.insert(name.to_owned(), only[name].clone());
            }
        }
        _ => {}
    }
    fields.insert("edits".to_owned(), edits.into());
    script
}

/// Data of a result of a built-in tool, also under the names that extensions read.
pub fn details_to_script(details: &Value) -> Value {
    let mut script = details.clone();
    let Some(fields) = script.as_object_mut() else { return script };
    let copies = [("full_output", "fullOutputPath"), ("first_changed_line", "firstChangedLine")];
    for (ours, theirs) in copies {
        if let Some(value) = details.get(ours).filter(|value| !value.is_null()) {
            fields.entry(theirs).or_insert_with(|| value.clone());
        }
    }
    if details["full_output"].is_string() {
        let truncation =
            json!({ "truncated": true, "totalLines": details["lines"], "totalBytes": details["bytes"] });
        fields.entry("truncation").or_insert(truncation);
    }
    if details["first_changed_line"].is_number() {
        fields.entry("patch").or_insert_with(|| details["diff"].clone());
    }
    script
}

/// Arguments of a call under our own names.
pub fn arguments_from_script(arguments: &Value) -> Value {
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

pub fn images_to_script(images: &[Image]) -> Vec<ImagePart> {
    images.iter().map(image_to_script).collect()
}

fn image_to_script(image: &Image) -> ImagePart {
    let kind = api::ImageType::default();
    ImagePart { kind, data: image.data.clone(), mime_type: image.media_type }
}

/// An image that an extension made; its size is not known.
pub fn image_from_script(image: ImagePart) -> Image {
    Image { media_type: image.mime_type, data: image.data, width: None, height: None }
}

pub fn parts_to_script(parts: &[MessagePart]) -> Vec<ContentPart> {
    parts.iter().filter_map(part_to_script).collect()
}

pub fn text_part(text: &str) -> ContentPart {
    ContentPart::Text(api::TextPart { text: text.to_owned(), ..api::TextPart::default() })
}

/// Extensions know no blocks of a provider's own search.
pub fn part_to_script(part: &MessagePart) -> Option<ContentPart> {
    Some(match part {
        MessagePart::ProviderBlock(_) | MessagePart::Sources { .. } => return None,
        MessagePart::Text { text } => text_part(text),
        MessagePart::Image(image) => ContentPart::Image(image_to_script(image)),
        MessagePart::Reasoning { text, signature, .. } => ContentPart::Thinking(api::ThinkingPart {
            thinking: text.to_string(),
            thinking_signature: signature.clone(),
            ..api::ThinkingPart::default()
        }),
        MessagePart::ToolCall(call) => ContentPart::ToolCall(api::ToolCallPart {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: arguments_to_script(&call.arguments.value()),
            ..api::ToolCallPart::default()
        }),
    })
}

/// Content that an extension gave: a string, or a list of parts. Parts of unknown form are left out.
pub fn parts_from_script(content: &Value) -> Vec<MessagePart> {
    content_from_script(Content::deserialize(content).unwrap_or_default())
}

/// Content that an extension gave.
pub fn content_from_script(content: Content) -> Vec<MessagePart> {
    match content {
        Content::Text(text) => vec![MessagePart::text(text)],
        Content::Parts(parts) => parts.into_iter().map(part_from_script).collect(),
    }
}

fn part_from_script(part: ContentPart) -> MessagePart {
    match part {
        ContentPart::Text(part) => MessagePart::text(part.text),
        ContentPart::Image(image) => MessagePart::Image(image_from_script(image)),
        ContentPart::Thinking(part) => MessagePart::Reasoning {
            text: part.thinking.into(),
            signature: part.thinking_signature,
            redacted: None,
        },
        ContentPart::ToolCall(call) => MessagePart::ToolCall(ToolCall {
            id: call.id,
            name: call.name,
            arguments: Json::new(&arguments_from_script(&call.arguments)),
            result: None,
        }),
    }
}

/// A message that an extension wants to add.
pub fn custom_message(message: NewMessage) -> CustomMessage {
    CustomMessage {
        custom_type: message.custom_type,
        content: content_from_script(message.content),
        display: message.display,
        details: message.details,
    }
}

/// A message as extensions know it. `id` is ours: it tells which message came back.
pub fn message_to_script(message: &AgentMessage) -> Message {
    let mut script = body_to_script(&message.body);
    if let Message::Assistant(answer) = &mut script {
        // An answer of which the provider said nothing: extensions add up what they find.
        answer.usage = Some(usage_to_script(&TokenUsage::default(), 0.0));
    }
    *script.mark() = api::MessageMark {
        id: Some(message.id.0.clone()),
        timestamp: message.time.map(jiff::Timestamp::as_millisecond),
    };
    if let Some(MessageFacts { details, usage, error }) = message.facts.as_deref() {
        match &mut script {
            Message::Assistant(answer) => {
                answer.usage =
                    usage.map(|(tokens, dollars)| usage_to_script(&tokens, dollars)).or(answer.usage);
                answer.error_message = error.as_deref().map(str::to_owned);
            }
            Message::ToolResult(result) => result.details = details.as_ref().map(details_to_script),
            Message::Custom(custom) => custom.message.details.clone_from(details),
            _ => {}
        }
    }
    script
}

pub fn messages_to_script(messages: &[AgentMessage]) -> Vec<Message> {
    messages.iter().map(message_to_script).collect()
}

/// What an answer used, as extensions read it.
pub fn usage_to_script(tokens: &TokenUsage, dollars: f64) -> Usage {
    Usage {
        input: tokens.input,
        output: tokens.output,
        cache_read: tokens.cache_read,
        cache_write: tokens.cache_written(),
        total_tokens: tokens.total(),
        cost: UsageCost { total: dollars },
    }
}

fn body_to_script(body: &MessageBody) -> Message {
    match body {
        MessageBody::User { content } => Message::User(api::UserMessage {
            content: Content::Parts(parts_to_script(content)),
            ..api::UserMessage::default()
        }),
        MessageBody::Assistant { content, provider, model, stop_reason } => {
            Message::Assistant(api::AssistantMessage {
                content: parts_to_script(content),
                provider: provider.clone(),
                model: model.clone(),
                stop_reason: stop_reason.as_deref().map(|reason| stop_reason_to_script(reason).into()),
                ..api::AssistantMessage::default()
            })
        }
        MessageBody::ToolResult { call_id, tool_name, content, is_error, not_run: _ } => {
            Message::ToolResult(api::ToolResultMessage {
                tool_call_id: call_id.clone(),
                tool_name: tool_name.clone().unwrap_or_default(),
                content: parts_to_script(content),
                is_error: *is_error,
                ..api::ToolResultMessage::default()
            })
        }
        MessageBody::Custom { custom_type, content, display } => Message::Custom(api::CustomMessage {
            message: NewMessage {
                custom_type: custom_type.clone(),
                // Nearly all extensions give a text, and look for it as one.
                content: match &content[..] {
                    [MessagePart::Text { text }] => Content::Text(text.to_string()),
                    parts => Content::Parts(parts_to_script(parts)),
                },
                display: *display,
                details: None,
            },
            ..api::CustomMessage::default()
        }),
        MessageBody::BashExecution { command, output, exit_code, exclude_from_context } => {
            Message::BashExecution(api::BashExecutionMessage {
                command: command.clone(),
                output: output.to_string(),
                exit_code: *exit_code,
                exclude_from_context: *exclude_from_context,
                ..api::BashExecutionMessage::default()
            })
        }
        MessageBody::CompactionSummary { summary } => {
            Message::CompactionSummary(api::CompactionSummaryMessage {
                summary: summary.to_string(),
                ..api::CompactionSummaryMessage::default()
            })
        }
        MessageBody::BranchSummary { summary } => Message::BranchSummary(api::BranchSummaryMessage {
            summary: summary.to_string(),
            ..api::BranchSummaryMessage::default()
        }),
    }
}

/// A provider's word for the end of an answer, as extensions compare it.
fn stop_reason_to_script(reason: &str) -> &str {
    match reason {
        "end" | "end_turn" | "stop" | "stop_sequence" | "completed" | "STOP" => "stop",
        "tool_use" | "tool_calls" => "toolUse",
        "max_tokens" | "length" | "MAX_TOKENS" => "length",
        other => other,
    }
}

/// Messages for a handler that may look at few of them: each as the text of its JSON.
pub fn lazy_messages(messages: &[AgentMessage]) -> Vec<String> {
    let texts = messages.iter().map(|message| serde_json::to_string(&message_to_script(message)));
    // Messages hold nothing that has no JSON.
    texts.map(Result::unwrap_or_default).collect()
}

/// The messages that a handler returned. One that is as it was handed out is the original, with
/// everything that extensions do not see; its number may stand for it.
/// `owner` is the extension: what it adds has ids of its own. An error names the first that is no message.
pub fn messages_from_script(
    returned: &[Value],
    originals: &[AgentMessage],
    owner: &str,
) -> Result<Vec<AgentMessage>, UnreadableMessage> {
    let by_id: BTreeMap<&str, &AgentMessage> =
        originals.iter().map(|message| (&*message.id.0, message)).collect();
    let mut added = 0;
    returned
        .iter()
        .enumerate()
        .map(|(position, value)| {
            if let Some(number) = value.as_u64() {
                let original = usize::try_from(number).ok().and_then(|number| originals.get(number)).cloned();
                return original.ok_or_else(|| UnreadableMessage { position, role: number.to_string() });
            }
            let role = value["role"].as_str().unwrap_or("no role");
            // What other programs say with these is for the model alone, as all messages of extensions are.
            let as_user = || json!({ "role": "user", "content": value["content"] });
            let read = match role {
                "system" | "developer" => Message::deserialize(as_user()),
                _ => Message::deserialize(value),
            };
            let given =
                read.map_err(|_| UnreadableMessage { position, role: role.to_owned() })?.without_facts();
            let original = value["id"].as_str().and_then(|id| by_id.get(id)).copied();
            if let Some(original) = original.filter(|original| body_to_script(&original.body) == given) {
                return Ok(original.clone());
            }
            let body = body_from_script(given);
            if let Some(original) = original {
                let mut changed = original.clone();
                changed.body = Arc::new(body);
                return Ok(changed);
            }
            added += 1;
            let mut message = AgentMessage::new(&*format!("extension-{owner}-{added}"), body);
            let details = value.get("details").filter(|details| !details.is_null());
            message.note(|facts| facts.details = details.cloned());
            Ok(message)
        })
        .collect()
}

/// Something among the messages that a handler returned is no message.
#[derive(Debug, thiserror::Error)]
#[error("number {position} of the messages that it returned ({role}) is none, so all stay as they were")]
pub struct UnreadableMessage {
    position: usize,
    /// Its role, or the number of a message that is not there.
    role: String,
}

fn body_from_script(message: Message) -> MessageBody {
    match message {
        Message::User(message) => MessageBody::User { content: content_from_script(message.content) },
        Message::Assistant(message) => MessageBody::Assistant {
            content: content_from_script(Content::Parts(message.content)),
            provider: message.provider,
            model: message.model,
            stop_reason: message.stop_reason,
        },
        Message::ToolResult(message) => MessageBody::ToolResult {
            call_id: message.tool_call_id,
            tool_name: Some(message.tool_name).filter(|name| !name.is_empty()),
            content: content_from_script(Content::Parts(message.content)),
            is_error: message.is_error,
            not_run: None,
        },
        Message::Custom(message) => {
            let CustomMessage { custom_type, content, display, details: _ } = custom_message(message.message);
            MessageBody::Custom { custom_type, content, display }
        }
        Message::BashExecution(message) => MessageBody::BashExecution {
            command: message.command,
            output: message.output.into(),
            exit_code: message.exit_code,
            exclude_from_context: message.exclude_from_context,
        },
        Message::CompactionSummary(message) => {
            MessageBody::CompactionSummary { summary: message.summary.into() }
        }
        Message::BranchSummary(message) => MessageBody::BranchSummary { summary: message.summary.into() },
    }
}

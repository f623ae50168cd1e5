//! A request as the `streamSimple` of an extension reads it: a context of messages and tools.

use hardpan_prompt::{Block, Content, Hash, Prompt, PromptMessage, ResultPart, Role, Segment, ToolOutcome};
use serde_json::{Value, json};

/// What marks the id of a call that stands for one of another form.
const CODED_ID: &str = "hp-";

/// The longest id of a call that requests carry, in bytes.
const MAX_ID: usize = 40;

/// The id under which a script's call is kept. Providers take letters, digits, `_` and `-`, and a script may
/// use more: a hash stands for such an id, and for a long one.
pub fn id_from_script(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.len() <= MAX_ID && id.chars().all(is_plain) && !id.starts_with(CODED_ID) {
        return id.to_owned();
    }
    let hash = Hash::of(id.as_bytes()).to_string();
    let hash: String = hash.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
    format!("{CODED_ID}{hash}")
}

/// What a context says besides the prompt.
pub struct ContextFacts<'a> {
    pub provider: &'a str,
    pub api: &'a str,
    /// When the request is made, in milliseconds: it does not say when its messages were written.
    pub now: i64,
    /// The id that the script gave to a call.
    pub call_id: &'a dyn Fn(&str) -> String,
}

/// The context of a request: system prompt, messages, tools.
pub fn context_of(prompt: &Prompt, facts: &ContextFacts<'_>) -> Value {
    let mut messages = Vec::new();
    for message in &prompt.messages {
        match message.role {
            Role::Assistant => messages.push(answer(message, &prompt.model, facts)),
            Role::User | Role::System => push_user(&mut messages, message, prompt, facts),
        }
    }
    let system: Vec<String> = prompt.system.iter().filter_map(text_of).collect();
    let tools = prompt.tools.iter().map(|block| {
        json!({
            "name": block.tool.name,
            "description": block.tool.description,
            "parameters": block.tool.parameters.value(),
        })
    });
    let mut context = json!({ "messages": messages, "tools": tools.collect::<Vec<_>>() });
    if !system.is_empty() {
        context["systemPrompt"] = json!(system.join("\n\n"));
    }
    context
}

fn joined(segments: &[Segment]) -> String {
    segments.iter().map(|segment| &*segment.text).collect()
}

fn text_of(block: &Block) -> Option<String> {
    match &*block.content {
        Content::Text(segments) => Some(joined(segments)),
        _ => None,
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image_part(image: &hardpan_prompt::Image) -> Value {
    json!({ "type": "image", "data": image.data, "mimeType": image.media_type.name() })
}

/// A message of the user: each result of a tool is a message of its own there.
fn push_user(messages: &mut Vec<Value>, message: &PromptMessage, prompt: &Prompt, facts: &ContextFacts<'_>) {
    let mut content = Vec::new();
    for block in &message.blocks {
        match &*block.content {
            Content::Text(segments) => content.push(text_part(&joined(segments))),
            Content::Image(image, _) => content.push(image_part(image)),
            Content::Result(result) => {
                let parts = result.parts.iter().map(|part| match part {
                    ResultPart::Text(segments) => text_part(&joined(segments)),
                    ResultPart::Image(image) => image_part(image),
                });
                messages.push(json!({
                    "role": "toolResult",
                    "toolCallId": (facts.call_id)(&result.call_id),
                    "toolName": tool_of(prompt, &result.call_id),
                    "content": parts.collect::<Vec<_>>(),
                    "isError": result.outcome == ToolOutcome::Failed,
                    "timestamp": facts.now,
                }));
            }
            // Only the model's own messages have these.
            Content::Reasoning(_) | Content::Call(_) | Content::ToolChange(_) | Content::Provider(_) => {}
        }
    }
    if !content.is_empty() {
        messages.push(json!({ "role": "user", "content": content, "timestamp": facts.now }));
    }
}

/// The name of the tool that a call was for.
fn tool_of(prompt: &Prompt, id: &str) -> String {
    let calls = prompt.blocks().filter_map(|block| match &*block.content {
        Content::Call(call) if &*call.id == id => Some(call.name.to_string()),
        _ => None,
    });
    calls.last().unwrap_or_default()
}

fn answer(message: &PromptMessage, model: &str, facts: &ContextFacts<'_>) -> Value {
    let parts = message.blocks.iter().filter_map(|block| {
        Some(match &*block.content {
            Content::Text(segments) => text_part(&joined(segments)),
            Content::Reasoning(reasoning) => {
                let signature = reasoning.redacted.as_ref().or(reasoning.signature.as_ref());
                json!({
                    "type": "thinking",
                    "thinking": &*reasoning.text,
                    "thinkingSignature": signature.filter(|signature| !signature.is_empty()),
                    "redacted": reasoning.redacted.as_ref().map(|_| true),
                })
            }
            Content::Call(call) => json!({
                "type": "toolCall",
                "id": (facts.call_id)(&call.id),
                "name": call.name,
                "arguments": call.arguments.value(),
            }),
            Content::Image(..) | Content::Result(_) | Content::ToolChange(_) | Content::Provider(_) => {
                return None;
            }
        })
    });
    let parts: Vec<Value> = parts.map(without_nulls).collect();
    let has_calls = parts.iter().any(|part| part["type"] == "toolCall");
    let nothing = json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 });
    json!({
        "role": "assistant",
        "content": parts,
        "api": facts.api,
        "provider": facts.provider,
        "model": model,
        "usage": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": nothing },
        "stopReason": if has_calls { "toolUse" } else { "stop" },
        "timestamp": facts.now,
    })
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    value
}

#[cfg(test)]
mod tests {
    use hardpan_models::Protocol;
    use hardpan_providers::decode::decode_request;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_id_is_kept_in_a_form_that_providers_take(id in ".{0,80}", other in ".{0,80}") {
            let kept = id_from_script(&id);
            prop_assert!(!kept.is_empty() && kept.len() <= MAX_ID);
            let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            prop_assert!(kept.chars().all(is_valid));
            prop_assert_eq!(id == other, kept == id_from_script(&other));
            prop_assert_eq!(id_from_script(&kept) == kept, kept == id);
        }
    }

    #[test]
    fn a_request_becomes_a_context() {
        let id = id_from_script("call_1|fc_1");
        let body = json!({
            "model": "large", "max_tokens": 100,
            "system": [{ "type": "text", "text": "Be brief." }, { "type": "text", "text": "A map." }],
            "tools": [{ "name": "read", "description": "Reads.", "input_schema": { "type": "object", "properties": {} } }],
            "messages": [
                { "role": "user", "content": "Read it." },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "Hm.", "signature": "s1" },
                    { "type": "redacted_thinking", "data": "secret" },
                    { "type": "text", "text": "I read." },
                    { "type": "tool_use", "id": id, "name": "read", "input": { "path": "a" } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": id, "is_error": true, "content": "no such file" },
                    { "type": "text", "text": "And now?" },
                ] },
            ],
        });
        let decoded = decode_request(Protocol::Anthropic, body.to_string().as_bytes()).unwrap();
        let call_id = |kept: &str| if kept == id { "call_1|fc_1".to_owned() } else { kept.to_owned() };
        let facts = ContextFacts { provider: "birds", api: "pigeon", now: 7, call_id: &call_id };
        let context = context_of(&decoded.prompt, &facts);
        assert_eq!(context["systemPrompt"], "Be brief.\n\nA map.");
        assert_eq!(context["tools"][0]["name"], "read");
        let messages = context["messages"].as_array().unwrap();
        assert_eq!(
            messages[0],
            json!({ "role": "user", "content": [{ "type": "text", "text": "Read it." }], "timestamp": 7 })
        );
        assert_eq!(
            messages[1]["content"],
            json!([
                { "type": "thinking", "thinking": "Hm.", "thinkingSignature": "s1" },
                { "type": "thinking", "thinking": "", "thinkingSignature": "secret", "redacted": true },
                { "type": "text", "text": "I read." },
                { "type": "toolCall", "id": "call_1|fc_1", "name": "read", "arguments": { "path": "a" } },
            ])
        );
        assert_eq!((&messages[1]["api"], &messages[1]["stopReason"]), (&json!("pigeon"), &json!("toolUse")));
        assert_eq!(
            messages[2],
            json!({
                "role": "toolResult", "toolCallId": "call_1|fc_1", "toolName": "read", "isError": true,
                "content": [{ "type": "text", "text": "no such file" }], "timestamp": 7,
            })
        );
        assert_eq!(messages[3]["content"][0]["text"], "And now?");
    }
}

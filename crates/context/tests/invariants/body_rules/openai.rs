//! The rules of OpenAI's Chat Completions API, and of providers that speak it.

use std::collections::BTreeSet;

use hardpan_context::Target;
use hardpan_models::MarkerFormat;
use serde_json::{Value, json};

use super::{list, object, require_plain, require_tools, text};
use crate::violation::{CheckResult, require};

/// From error reports: longer ids are refused by some.
const LONGEST_ID: usize = 40;

pub fn check(body: &Value, target: &Target) -> CheckResult {
    let wire = &target.profile;
    let max = wire.max_tokens_field.name();
    object(
        body,
        &[
            "model",
            "messages",
            "tools",
            max,
            "stream",
            "stream_options",
            "include_reasoning",
            "reasoning_effort",
            "plugins",
        ],
    )?;
    require(body["model"] == target.model.id.as_str(), "the model is named", || body["model"].to_string())?;
    require(body[max].as_u64() > Some(0) && body["stream"] == true, "there is room for an answer", || {
        body[max].to_string()
    })?;
    require(
        body.get("plugins").is_none() || wire.web_search_plugin.is_some(),
        "plugins where known",
        String::new,
    )?;
    let tools = list(&body["tools"]);
    require(tools.is_empty() || target.model.tools, "no tools for a model without", || {
        tools.len().to_string()
    })?;
    for tool in tools {
        object(tool, &["type", "function"])?;
        object(&tool["function"], &["name", "description", "parameters"])?;
        require(tool["function"]["parameters"]["type"] == "object", "a tool takes an object", || {
            tool.to_string()
        })?;
    }
    require_tools(tools.iter().map(|tool| &tool["function"]["name"]))?;
    let messages = list(&body["messages"]);
    for (index, message) in messages.iter().enumerate() {
        let is_system = message["role"] == "system";
        require(!is_system || index == 0, "the system prompt comes first", || index.to_string())?;
        check_message(message, target)?;
    }
    let spoken = &messages[usize::from(messages.first().is_some_and(|first| first["role"] == "system"))..];
    require(!spoken.is_empty(), "there is a message", || "none".into())?;
    require(spoken[0]["role"] == "user", "the user speaks first", || spoken[0].to_string())?;
    require(spoken[spoken.len() - 1]["role"] != "assistant", "the user speaks last", String::new)?;
    let used = spoken.iter().any(|message| message["role"] == "tool" || message.get("tool_calls").is_some());
    require(!used || !tools.is_empty(), "tools that are used are declared", || "none is".into())?;
    check_rounds(spoken)
}

fn check_message(message: &Value, target: &Target) -> CheckResult {
    let wire = &target.profile;
    let role = text(&message["role"]);
    let mut fields = vec!["role", "content"];
    fields.extend(wire.message_ids.then_some("message_id"));
    match role {
        "system" => {}
        "user" => fields.extend(wire.document_context.then_some("documentContext")),
        "assistant" => {
            fields.push("tool_calls");
            fields.extend(wire.reasoning_field.name());
        }
        "tool" => fields.push("tool_call_id"),
        other => return require(false, "a role is known", || other.to_owned()),
    }
    object(message, &fields)?;
    let calls = list(&message["tool_calls"]);
    require(message.get("tool_calls").is_none() || !calls.is_empty(), "calls are some", || {
        message.to_string()
    })?;
    calls.iter().try_for_each(check_call)?;
    check_content(message, role, !calls.is_empty(), target)
}

/// A list where markers are understood or an image is in it, a string everywhere else.
fn check_content(message: &Value, role: &str, has_calls: bool, target: &Target) -> CheckResult {
    let has_markers = target.profile.markers != MarkerFormat::None;
    match &message["content"] {
        Value::Null => {
            require(role == "assistant" && has_calls, "a message says something", || message.to_string())
        }
        // The pictures that a tool answered with follow in a message of the user's.
        Value::String(text) if text.is_empty() => {
            require(role == "tool", "no text is empty", || message.to_string())
        }
        Value::String(_) => require(!has_markers, "one form of content", || message.to_string()),
        Value::Array(parts) => {
            let is_image = |part: &Value| part["type"] == "image_url";
            require(!parts.is_empty(), "a message says something", || message.to_string())?;
            require(has_markers || parts.iter().any(is_image), "one form of content", || {
                message.to_string()
            })?;
            let image = parts.iter().any(is_image);
            require(!image || target.model.vision, "no image for a model that sees none", || {
                message.to_string()
            })?;
            let home = role == "user" || (role == "tool" && target.profile.tool_result_images);
            require(!image || home, "an image is the user's", || message.to_string())?;
            parts.iter().try_for_each(|part| check_part(part, target.profile.markers))
        }
        other => require(false, "a message says something", || other.to_string()),
    }
}

fn check_part(part: &Value, markers: MarkerFormat) -> CheckResult {
    let (field, form) = match markers {
        MarkerFormat::None => ("no marker", Value::Null),
        MarkerFormat::CacheControl => ("cache_control", json!({"type": "ephemeral"})),
        MarkerFormat::PromptCacheBreakpoint => ("prompt_cache_breakpoint", json!({"mode": "explicit"})),
    };
    if let Some(marker) = part.get(field) {
        let is_long =
            markers == MarkerFormat::CacheControl && *marker == json!({"type": "ephemeral", "ttl": "1h"});
        require(*marker == form || is_long, "a marker has its form", || part.to_string())?;
    }
    match text(&part["type"]) {
        "text" => {
            object(part, &["type", "text", field])?;
            require(!text(&part["text"]).is_empty(), "no text is empty", || part.to_string())
        }
        "image_url" => {
            object(part, &["type", "image_url", field])?;
            let url = text(&part["image_url"]["url"]);
            let whole = url.starts_with("data:image/") && url.contains(";base64,");
            require(whole, "an image is whole", || part.to_string())
        }
        other => require(false, "a part's type is known", || other.to_owned()),
    }
}

fn check_call(call: &Value) -> CheckResult {
    object(call, &["id", "type", "function"])?;
    let function = object(&call["function"], &["name", "arguments"])?;
    let arguments: Option<Value> = serde_json::from_str(text(&function["arguments"])).ok();
    require(call["type"] == "function", "a call is a function's", || call.to_string())?;
    require(arguments.is_some_and(|value| value.is_object()), "arguments are an object", || {
        call.to_string()
    })?;
    require_plain(&call["id"], LONGEST_ID, "a call's id is plain")?;
    require_plain(&function["name"], 64, "a tool's name is plain")
}

/// A message of calls is followed by one answer to each of them, before anything else is said.
fn check_rounds(messages: &[Value]) -> CheckResult {
    let mut used = BTreeSet::new();
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = text(&message["tool_call_id"]);
            require(waiting.remove(id), "a result answers a call of the message before", || id.to_owned())?;
            continue;
        }
        require(waiting.is_empty(), "every call is answered", || format!("{waiting:?}"))?;
        for call in list(&message["tool_calls"]) {
            let id = text(&call["id"]);
            require(used.insert(id), "a call's id is used once", || id.to_owned())?;
            waiting.insert(id);
        }
    }
    require(waiting.is_empty(), "every call is answered", || format!("{waiting:?}"))
}

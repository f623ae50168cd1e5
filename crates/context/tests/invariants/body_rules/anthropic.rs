//! The rules of Anthropic's Messages API.

use std::collections::BTreeSet;

use hardpan_context::Target;
use serde_json::{Value, json};

use super::{list, object, require_plain, require_tools, text};
use crate::violation::{CheckResult, require};

/// A message after the server has merged neighbours of one role.
struct MergedMessage<'a> {
    role: &'a str,
    blocks: Vec<&'a Value>,
}

pub fn check(body: &Value, target: &Target) -> CheckResult {
    let fields =
        ["model", "max_tokens", "stream", "thinking", "output_config", "system", "messages", "tools"];
    object(body, &fields)?;
    if let Some(config) = body.get("output_config") {
        let effort = text(&object(config, &["effort"])?["effort"]);
        let offered = target.model.thinking.efforts.iter().any(|known| known.as_str() == effort);
        require(offered, "an effort is one that the model has", || config.to_string())?;
    }
    require(body["model"] == target.model.id.as_str(), "the model is named", || body["model"].to_string())?;
    let max = body["max_tokens"].as_u64().unwrap_or(0);
    require(max > 0 && body["stream"] == true, "there is room for an answer", || max.to_string())?;
    let budget = thinking(body, max)?;
    for block in list(&body["system"]) {
        require(block["type"] == "text", "the system prompt is text", || block.to_string())?;
        check_block(block, target)?;
    }
    let system_or_none = body.get("system").is_none_or(|system| !list(system).is_empty());
    require(system_or_none, "a system prompt says something", || body["system"].to_string())?;
    check_tools(body, target)?;
    let merged = merge(body, target)?;
    let [first, .., last] = &merged[..] else {
        return require(merged.len() == 1 && merged[0].role == "user", "there is a message", || {
            "none".into()
        });
    };
    require(first.role == "user", "the user speaks first", || first.role.to_owned())?;
    require(last.role == "user", "the user speaks last", || last.role.to_owned())?;
    check_rounds(&merged)?;
    check_reasoning(&merged, budget)
}

fn thinking(body: &Value, max: u64) -> Result<Option<u64>, crate::violation::Violation> {
    let Some(thinking) = body.get("thinking") else { return Ok(None) };
    let given = object(thinking, &["type", "budget_tokens", "display"])?;
    if thinking["type"] != "enabled" {
        let forms = [
            json!({"type": "disabled"}),
            json!({"type": "between_tools"}),
            json!({"type": "adaptive", "display": "summarized"}),
        ];
        require(forms.contains(thinking), "thinking has its form", || thinking.to_string())?;
        return Ok(None);
    }
    let budget = given["budget_tokens"].as_u64().unwrap_or(0);
    require((1024..max).contains(&budget), "the thinking budget fits", || thinking.to_string())?;
    Ok(Some(budget))
}

fn check_tools(body: &Value, target: &Target) -> CheckResult {
    let tools = list(&body["tools"]);
    require(tools.is_empty() || target.model.tools, "no tools for a model without", || {
        tools.len().to_string()
    })?;
    require(body.get("tools").is_none() || !tools.is_empty(), "declared tools are some", || "none".into())?;
    for tool in tools {
        object(tool, &["name", "description", "input_schema", "cache_control"])?;
        require(tool["input_schema"]["type"] == "object", "a tool takes an object", || tool.to_string())?;
    }
    require_tools(tools.iter().map(|tool| &tool["name"]))?;
    let is_of_a_tool = |block: &Value| ["tool_use", "tool_result"].contains(&text(&block["type"]));
    let mut blocks = list(&body["messages"]).iter().flat_map(|message| list(&message["content"]));
    let used = blocks.any(is_of_a_tool);
    require(!used || !tools.is_empty(), "tools that are used are declared", || "none is".into())
}

fn merge<'a>(
    body: &'a Value,
    target: &Target,
) -> Result<Vec<MergedMessage<'a>>, crate::violation::Violation> {
    let mut merged: Vec<MergedMessage<'a>> = Vec::new();
    for message in list(&body["messages"]) {
        object(message, &["role", "content"])?;
        let (role, blocks) = (text(&message["role"]), list(&message["content"]));
        require(["user", "assistant"].contains(&role), "a role is known", || role.to_owned())?;
        require(!blocks.is_empty(), "a message says something, as a list", || message.to_string())?;
        for block in blocks {
            check_block(block, target)?;
            let home = match text(&block["type"]) {
                "image" | "tool_result" => "user",
                "tool_use" | "thinking" | "redacted_thinking" => "assistant",
                _ => role,
            };
            require(home == role, "a block stands in a message of its role", || format!("{role}: {block}"))?;
        }
        match merged.last_mut().filter(|last| last.role == role) {
            Some(last) => last.blocks.extend(blocks),
            None => merged.push(MergedMessage { role, blocks: blocks.iter().collect() }),
        }
    }
    Ok(merged)
}

fn check_block(block: &Value, target: &Target) -> CheckResult {
    if let Some(marker) = block.get("cache_control") {
        let known =
            *marker == json!({"type": "ephemeral"}) || *marker == json!({"type": "ephemeral", "ttl": "1h"});
        require(known, "a marker has its form", || marker.to_string())?;
    }
    match text(&block["type"]) {
        "text" => {
            object(block, &["type", "text", "cache_control"])?;
            require(!text(&block["text"]).trim().is_empty(), "no text is blank", || block.to_string())
        }
        "image" => {
            object(block, &["type", "source", "cache_control"])?;
            let source = object(&block["source"], &["type", "media_type", "data"])?;
            let whole = source["type"] == "base64" && !text(&source["data"]).is_empty();
            require(whole && text(&source["media_type"]).starts_with("image/"), "an image is whole", || {
                block.to_string()
            })?;
            require(target.model.vision, "no image for a model that sees none", || block.to_string())
        }
        "thinking" => {
            object(block, &["type", "thinking", "signature"])?; // and no marker
            require(block["thinking"].is_string(), "reasoning is text", || block.to_string())?;
            require(!text(&block["signature"]).is_empty(), "reasoning is signed", || block.to_string())
        }
        "redacted_thinking" => {
            object(block, &["type", "data"])?;
            require(!text(&block["data"]).is_empty(), "reasoning is signed", || block.to_string())
        }
        "tool_use" => {
            object(block, &["type", "id", "name", "input", "cache_control"])?;
            require(block["input"].is_object(), "arguments are an object", || block.to_string())?;
            require_plain(&block["id"], usize::MAX, "a call's id is plain")?;
            require_plain(&block["name"], 64, "a tool's name is plain")
        }
        "tool_result" => check_result(block, target),
        other => require(false, "a block's type is known", || other.to_owned()),
    }
}

fn check_result(block: &Value, target: &Target) -> CheckResult {
    object(block, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    match &block["content"] {
        Value::String(text) => require(!text.trim().is_empty(), "no result is blank", || block.to_string()),
        Value::Array(parts) => {
            require(!parts.is_empty(), "no result is blank", || block.to_string())?;
            parts.iter().try_for_each(|part| {
                let fits = ["text", "image"].contains(&text(&part["type"]));
                require(fits, "a result holds text and images", || part.to_string())?;
                check_block(part, target)
            })
        }
        other => require(false, "no result is blank", || other.to_string()),
    }
}

/// Every call is answered at the very beginning of the next message, and nothing else is answered.
fn check_rounds(merged: &[MergedMessage<'_>]) -> CheckResult {
    let mut used = BTreeSet::new();
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for message in merged {
        let mut only_results = true;
        for block in &message.blocks {
            match text(&block["type"]) {
                "tool_use" => {
                    let id = text(&block["id"]);
                    require(used.insert(id), "a call's id is used once", || id.to_owned())?;
                    waiting.insert(id);
                }
                "tool_result" => {
                    let id = text(&block["tool_use_id"]);
                    require(only_results, "results come first", || id.to_owned())?;
                    require(waiting.remove(id), "a result answers a call of the message before", || {
                        id.to_owned()
                    })?;
                }
                _ => only_results = false,
            }
        }
        let done = message.role == "assistant" || waiting.is_empty();
        require(done, "every call is answered", || format!("{waiting:?}"))?;
    }
    require(waiting.is_empty(), "every call is answered", || format!("{waiting:?}"))
}

fn check_reasoning(merged: &[MergedMessage<'_>], budget: Option<u64>) -> CheckResult {
    let is_reasoning = |block: &&Value| ["thinking", "redacted_thinking"].contains(&text(&block["type"]));
    for message in merged {
        let ends = message.blocks.last().is_some_and(is_reasoning);
        require(!ends, "no message ends with reasoning", || message.blocks.len().to_string())?;
    }
    let [.., made, last] = merged else { return Ok(()) };
    let in_a_round = last.blocks.iter().any(|block| block["type"] == "tool_result");
    let begins = made.blocks.first().is_some_and(is_reasoning);
    require(
        budget.is_none() || !in_a_round || begins,
        "a round in progress begins with its reasoning",
        || made.blocks[0].to_string(),
    )
}

//! The rules of Anthropic's Messages API.

use std::collections::BTreeSet;

use hardpan_context::Target;
use hardpan_models::ThinkingOff;
use serde_json::{Value, json};

use super::{list, object, require_plain, require_tools, text};
use crate::violation::{CheckResult, require};

/// A message after the server has merged neighbours of one role.
struct MergedMessage<'a> {
    role: &'a str,
    blocks: Vec<&'a Value>,
}

pub fn check(body: &Value, target: &Target) -> CheckResult {
    let known = ["model", "max_tokens", "stream", "thinking", "output_config", "system", "messages", "tools"];
    object(body, &known)?;
    require(body["model"] == target.model.id.as_str(), "the model is named", || body["model"].to_string())?;
    let max = body["max_tokens"].as_u64().unwrap_or(0);
    require(max > 0 && body["stream"] == true, "there is room for an answer", || max.to_string())?;
    let budget = thinking(body, max, target)?;
    check_effort(body, target)?;
    check_system_messages(body, target)?;
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

/// The form of thinking is one that the model takes. Returns the budget, if there is one.
fn thinking(body: &Value, max: u64, target: &Target) -> Result<Option<u64>, crate::violation::Violation> {
    let Some(thinking) = body.get("thinking") else { return Ok(None) };
    let offered = &target.model.thinking;
    let is_taken = match text(&thinking["type"]) {
        "enabled" => offered.budget,
        "adaptive" => offered.adaptive,
        "disabled" => offered.off == ThinkingOff::Disabled,
        "between_tools" => offered.off == ThinkingOff::BetweenTools,
        _ => false,
    };
    require(is_taken, "the form of thinking is one that the model takes", || thinking.to_string())?;
    let is_off = ["disabled", "between_tools"].contains(&text(&thinking["type"]));
    let fields: &[&str] =
        if is_off { &["type"] } else { &["type", "budget_tokens", "display", "block_binding"] };
    object(thinking, fields)?;
    require(
        thinking.get("block_binding").is_none() || target.model.binding.is_bound(),
        "only bound reasoning is controlled",
        || thinking.to_string(),
    )?;
    if thinking["type"] != "enabled" {
        return Ok(None);
    }
    let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
    require((1024..max).contains(&budget), "the thinking budget fits", || thinking.to_string())?;
    Ok(Some(budget))
}

/// The effort is one that the model takes, with the form of thinking that is sent.
fn check_effort(body: &Value, target: &Target) -> CheckResult {
    let Some(config) = body.get("output_config") else { return Ok(()) };
    let effort = text(&object(config, &["effort"])?["effort"]);
    let offered = &target.model.thinking;
    let is_off = ["disabled", "between_tools"].contains(&text(&body["thinking"]["type"]));
    let most = offered.max_effort_when_off.filter(|_| is_off);
    let taken = offered.efforts.iter().find(|level| level.as_str() == effort);
    let fits = taken.is_some_and(|level| most.is_none_or(|most| *level <= most));
    require(fits, "the effort is one that the model takes", || body["output_config"].to_string())
}

/// A system message follows the user and precedes the model, on models that take one.
fn check_system_messages(body: &Value, target: &Target) -> CheckResult {
    let messages = list(&body["messages"]);
    let role = |at: usize| messages.get(at).map_or("", |message| text(&message["role"]));
    for (at, message) in messages.iter().enumerate().filter(|(at, _)| role(*at) == "system") {
        let sets_effort = list(&message["content"]).is_empty() && message.get("output_config").is_some();
        let placed = at > 0
            && ["user", "system"].contains(&role(at - 1))
            && ["assistant", "system", ""].contains(&role(at + 1));
        require(
            (placed && target.model.system_messages) || (sets_effort && target.model.message_effort),
            "a system message has its place",
            || message.to_string(),
        )?;
        object(message, &["role", "content", "clear_at", "output_config"])?;
        let is_unmarked = list(&message["content"]).iter().all(|block| block.get("cache_control").is_none());
        let is_text = list(&message["content"]).iter().all(|block| block["type"] == "text");
        require(message.get("clear_at").is_none() || is_text, "what lasts one turn is text", || {
            message.to_string()
        })?;
        require(
            message.get("clear_at").is_none() || is_unmarked,
            "what lasts one turn is not cached",
            || message.to_string(),
        )?;
    }
    Ok(())
}

fn check_tools(body: &Value, target: &Target) -> CheckResult {
    let tools = list(&body["tools"]);
    require(tools.is_empty() || target.model.tools, "no tools for a model without", || {
        tools.len().to_string()
    })?;
    require(body.get("tools").is_none() || !tools.is_empty(), "declared tools are some", || "none".into())?;
    let is_search = |tool: &&Value| tool["type"] == "web_search_20250305";
    for search in tools.iter().filter(is_search) {
        object(search, &["type", "name", "max_uses"])?;
        let is_whole = search["name"] == "web_search" && search["max_uses"].as_u64() > Some(0);
        require(is_whole, "a search has a name and a limit", || search.to_string())?;
    }
    for tool in tools.iter().filter(|tool| !is_search(tool)) {
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
        if message["role"] == "system" {
            list(&message["content"]).iter().try_for_each(|block| check_block(block, target))?;
            continue;
        }
        object(message, &["role", "content"])?;
        let (role, blocks) = (text(&message["role"]), list(&message["content"]));
        require(["user", "assistant"].contains(&role), "a role is known", || role.to_owned())?;
        require(!blocks.is_empty(), "a message says something, as a list", || message.to_string())?;
        for block in blocks {
            check_block(block, target)?;
            let home = match text(&block["type"]) {
                "image" | "tool_result" => "user",
                "tool_use" | "thinking" | "redacted_thinking" => "assistant",
                "tool_addition" | "tool_removal" => "system",
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
        "tool_addition" | "tool_removal" => check_tool_change(block),
        other => require(false, "a block's type is known", || other.to_owned()),
    }
}

fn check_tool_change(block: &Value) -> CheckResult {
    let tool = &object(block, &["type", "tool"])?["tool"];
    match text(&tool["type"]) {
        "tool_reference" => {
            object(tool, &["type", "name"])?;
            require_plain(&tool["name"], 64, "a tool's name is plain")
        }
        "tool_definition" => {
            require(block["type"] == "tool_addition", "only a new tool is defined", || block.to_string())?;
            let definition = &object(tool, &["type", "definition"])?["definition"];
            object(definition, &["name", "description", "input_schema"])?;
            require_plain(&definition["name"], 64, "a tool's name is plain")?;
            require(definition["input_schema"]["type"] == "object", "a tool takes an object", || {
                definition.to_string()
            })
        }
        other => require(false, "a change of a tool names it", || other.to_owned()),
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

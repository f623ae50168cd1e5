//! The rules of OpenAI's Responses API.

use std::collections::BTreeSet;

use hardpan_context::Target;
use hardpan_models::MarkerFormat;
use serde_json::{Value, json};

use super::{list, object, require_plain, require_tools, text};
use crate::violation::{CheckResult, require};

const LONGEST_ID: usize = 64;

pub fn check(body: &Value, target: &Target) -> CheckResult {
    let fields = [
        "model",
        "stream",
        "store",
        "include",
        "max_output_tokens",
        "reasoning",
        "prompt_cache_options",
        "tools",
        "parallel_tool_calls",
        "input",
    ];
    object(body, &fields)?;
    require(body["model"] == target.model.id.as_str(), "the model is named", || body["model"].to_string())?;
    let has_room = body["max_output_tokens"].as_u64() >= Some(16) && body["stream"] == true;
    require(has_room, "there is room for an answer", || body["max_output_tokens"].to_string())?;
    let is_private = body["store"] == false && body["include"] == json!(["reasoning.encrypted_content"]);
    require(is_private, "nothing is stored, and reasoning comes back", || body["store"].to_string())?;
    let has_markers = target.profile.markers == MarkerFormat::PromptCacheBreakpoint;
    require(body.get("prompt_cache_options").is_none() || has_markers, "options where known", String::new)?;
    let tools = list(&body["tools"]);
    require(tools.is_empty() || target.model.tools, "no tools for a model without", || {
        tools.len().to_string()
    })?;
    let (searches, tools): (Vec<&Value>, Vec<&Value>) =
        tools.iter().partition(|tool| tool["type"] == "web_search");
    require(searches.len() <= 1, "a search is declared once", || searches.len().to_string())?;
    for search in searches {
        object(search, &["type"])?;
    }
    for tool in &tools {
        object(tool, &["type", "name", "description", "parameters", "strict"])?;
        let is_function = tool["type"] == "function" && tool["parameters"]["type"] == "object";
        require(is_function && tool["strict"] == false, "a tool takes an object", || tool.to_string())?;
    }
    require_tools(tools.iter().map(|tool| &tool["name"]))?;
    let items = list(&body["input"]);
    for (index, item) in items.iter().enumerate() {
        let is_system = item["role"] == "developer";
        require(!is_system || index == 0, "the system prompt comes first", || index.to_string())?;
        check_item(item, target)?;
        let follows = items
            .get(index + 1)
            .is_some_and(|next| next["role"] == "assistant" || is_call(next) || next["type"] == "reasoning");
        let leads = item["type"] != "reasoning" || follows;
        require(leads, "reasoning leads to something", || item.to_string())?;
    }
    let spoken = &items[usize::from(items.first().is_some_and(|first| first["role"] == "developer"))..];
    require(spoken.first().is_some_and(|first| first["role"] == "user"), "the user speaks first", || {
        "nobody".into()
    })?;
    require(spoken[spoken.len() - 1]["role"] != "assistant", "the user speaks last", String::new)?;
    let used = spoken.iter().any(is_call);
    require(!used || !tools.is_empty(), "tools that are used are declared", || "none is".into())?;
    check_rounds(spoken)
}

fn is_call(item: &Value) -> bool {
    item["type"] == "function_call"
}

fn check_item(item: &Value, target: &Target) -> CheckResult {
    match text(&item["type"]) {
        "message" => {
            let role = text(&item["role"]);
            require(["developer", "user", "assistant"].contains(&role), "a role is known", || {
                role.to_owned()
            })?;
            object(
                item,
                if role == "assistant" {
                    &["type", "role", "phase", "content"]
                } else {
                    &["type", "role", "content"]
                },
            )?;
            let has_phase = role == "assistant" && target.profile.message_phase;
            let phase = ["commentary", "final_answer"].contains(&text(&item["phase"]));
            require(has_phase == phase, "a phase where it is known", || item.to_string())?;
            require(!list(&item["content"]).is_empty(), "a message says something", || item.to_string())?;
            list(&item["content"]).iter().try_for_each(|part| check_part(part, role, target))
        }
        "reasoning" => {
            object(item, &["type", "summary", "encrypted_content"])?;
            require(!text(&item["encrypted_content"]).is_empty(), "reasoning is encrypted", || {
                item.to_string()
            })?;
            require(item["summary"].is_array(), "reasoning has its summary", || item.to_string())
        }
        "function_call" => {
            object(item, &["type", "call_id", "name", "arguments"])?;
            let arguments: Option<Value> = serde_json::from_str(text(&item["arguments"])).ok();
            require(arguments.is_some_and(|value| value.is_object()), "arguments are an object", || {
                item.to_string()
            })?;
            require_plain(&item["call_id"], LONGEST_ID, "a call's id is plain")?;
            require_plain(&item["name"], 64, "a tool's name is plain")
        }
        "function_call_output" => {
            object(item, &["type", "call_id", "output"])?;
            let parts = list(&item["output"]);
            require(!parts.is_empty(), "no result is blank", || item.to_string())?;
            parts.iter().try_for_each(|part| check_part(part, "user", target))
        }
        other => require(false, "an item's type is known", || other.to_owned()),
    }
}

fn check_part(part: &Value, role: &str, target: &Target) -> CheckResult {
    let marker = part.get("prompt_cache_breakpoint");
    let form = marker.is_none_or(|marker| *marker == json!({"mode": "explicit"}) && role != "assistant");
    require(form, "a marker has its form", || part.to_string())?;
    let own = if role == "assistant" { "output_text" } else { "input_text" };
    match text(&part["type"]) {
        kind if kind == own => {
            object(part, &["type", "text", "prompt_cache_breakpoint"])?;
            require(!text(&part["text"]).is_empty(), "no text is empty", || part.to_string())
        }
        "input_image" => {
            object(part, &["type", "image_url", "prompt_cache_breakpoint"])?;
            let url = text(&part["image_url"]);
            let whole = url.starts_with("data:image/") && url.contains(";base64,");
            require(whole && role == "user" && target.model.vision, "an image is whole", || part.to_string())
        }
        other => require(false, "a part's type is known", || other.to_owned()),
    }
}

/// Every output has its call before it, every call its output after it.
fn check_rounds(items: &[Value]) -> CheckResult {
    let (mut used, mut waiting) = (BTreeSet::new(), BTreeSet::new());
    for item in items {
        let id = text(&item["call_id"]);
        if is_call(item) {
            require(used.insert(id), "a call's id is used once", || id.to_owned())?;
            waiting.insert(id);
        } else if item["type"] == "function_call_output" {
            require(waiting.remove(id), "a result answers a call", || id.to_owned())?;
        }
    }
    require(waiting.is_empty(), "every call is answered", || format!("{waiting:?}"))
}

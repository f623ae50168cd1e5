//! The response object: an answer, with the effective values of its request.

use hardpan_models::MarkerFormat;
use hardpan_prompt::Json;
use hardpan_providers::decode::DecodedRequest;
use serde_json::{Value, json};

use super::checks::is_stored;
use crate::answer::{FinishReason, SimulatedAnswer};
use crate::engine::AcceptedRequest;
use crate::wire::{AnswerHead, make_id};

/// The object at the beginning of a stream: nothing has been generated yet.
pub fn in_progress(request: &AcceptedRequest, head: &AnswerHead) -> Value {
    let decoded = &request.decoded;
    let given = |name: &str| decoded.other.get(name).map(Json::value).filter(|it| !it.is_null());
    let or_null = |name: &str| given(name).unwrap_or(Value::Null);
    let or = |name: &str, default: Value| given(name).unwrap_or(default);
    let mut response = json!({
        "id": make_id("resp_", head.number, 0),
        "object": "response",
        "created_at": head.created,
        "status": "in_progress",
        "background": or("background", json!(false)),
        "error": null,
        "incomplete_details": null,
        "instructions": or_null("instructions"),
        "max_output_tokens": or_null("max_output_tokens"),
        "max_tool_calls": or_null("max_tool_calls"),
        "model": head.model,
        "output": [],
        "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
        "previous_response_id": or_null("previous_response_id"),
        "prompt_cache_key": or_null("prompt_cache_key"),
        "reasoning": reasoning(request),
        "safety_identifier": or_null("safety_identifier"),
        "service_tier": or("service_tier", json!("auto")),
        "store": is_stored(decoded),
        "temperature": or("temperature", json!(1.0)),
        "text": text(decoded),
        "tool_choice": or("tool_choice", json!("auto")),
        "tools": tools(decoded),
        "top_logprobs": or("top_logprobs", json!(0)),
        "top_p": or("top_p", json!(1.0)),
        "truncation": or("truncation", json!("disabled")),
        "usage": null,
        "user": or_null("user"),
        "metadata": or("metadata", json!({})),
    });
    if request.profile.markers == MarkerFormat::PromptCacheBreakpoint {
        let options = or("prompt_cache_options", json!({}));
        let word = |name: &str, default: &str| options[name].as_str().unwrap_or(default).to_owned();
        response["prompt_cache_options"] =
            json!({"mode": word("mode", "implicit"), "ttl": word("ttl", "30m")});
    }
    response
}

/// The object at the end, with these items.
pub fn finished(
    request: &AcceptedRequest,
    answer: &SimulatedAnswer,
    head: &AnswerHead,
    output: Vec<Value>,
) -> Value {
    let mut response = in_progress(request, head);
    let incomplete = match answer.stop {
        FinishReason::Length | FinishReason::Window => Some("max_output_tokens"),
        FinishReason::Refusal if output.is_empty() => Some("content_filter"),
        _ => None,
    };
    match incomplete {
        Some(reason) => {
            response["status"] = json!("incomplete");
            response["incomplete_details"] = json!({"reason": reason});
        }
        None => {
            response["status"] = json!("completed");
            response["completed_at"] = json!(head.created);
        }
    }
    // The answer names the tier that was used.
    let tier = match response["service_tier"].as_str() {
        Some("fast" | "priority") => "priority",
        Some("auto") | None => "default",
        Some(other) => other,
    };
    response["service_tier"] = json!(tier);
    response["output"] = Value::Array(output);
    response["usage"] = usage(head);
    if !head.diagnostics.is_null() {
        response["prompt_cache_diagnostics"] = head.diagnostics.clone();
    }
    response
}

pub fn usage(head: &AnswerHead) -> Value {
    let tokens = head.tokens;
    json!({
        "input_tokens": tokens.prompt(),
        "input_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_written(),
        },
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning.unwrap_or_default()},
        "total_tokens": tokens.total(),
    })
}

fn reasoning(request: &AcceptedRequest) -> Value {
    let given = request.decoded.other.get("reasoning").map(Json::value).unwrap_or_default();
    let effort = request.decoded.prompt.effort.or(request.model.thinking.default_effort);
    if !request.model.reasoning {
        return json!({"effort": null, "summary": null});
    }
    // From the models with breakpoints on, reasoning of earlier turns stays in the context.
    let is_new = request.profile.markers == MarkerFormat::PromptCacheBreakpoint;
    let context = given["context"].as_str().filter(|word| *word != "auto");
    json!({
        "effort": effort,
        "summary": given["summary"],
        "context": context.unwrap_or(if is_new { "all_turns" } else { "current_turn" }),
        "mode": given["mode"].as_str().unwrap_or("standard"),
    })
}

fn text(decoded: &DecodedRequest) -> Value {
    let mut text = json!({"format": {"type": "text"}, "verbosity": "medium"});
    let given = decoded.other.get("text").map(Json::value).unwrap_or_default();
    for name in ["format", "verbosity"] {
        if !given[name].is_null() {
            text[name] = given[name].clone();
        }
    }
    text
}

/// The tools of the request, each with the fields that every answer has.
fn tools(decoded: &DecodedRequest) -> Value {
    let mut tools = decoded.other.get("tools").map_or(json!([]), Json::value);
    if tools.is_null() {
        tools = json!([]);
    }
    for tool in tools.as_array_mut().into_iter().flatten() {
        if let Some(fields) =
            tool.as_object_mut().filter(|tool| tool.get("type").is_some_and(|it| it == "function"))
        {
            fields.entry("strict").or_insert(json!(false));
            fields.entry("parameters").or_insert(Value::Null);
        }
    }
    tools
}

//! `prompt_cache_diagnostics`: why a request did not find the cache of an earlier one.

use hardpan_prompt::{Hash, Json};
use serde_json::{Value, json};

use super::response;
use crate::engine::AcceptedRequest;
use crate::stored::{ResponseStore, StoredResponse};
use crate::wire::AnswerHead;

/// Compares a request with the stored answer that it names. `None`: it names none.
pub fn compare(
    request: &AcceptedRequest,
    head: &AnswerHead,
    store: &ResponseStore,
    owner: Hash,
) -> Option<Value> {
    let options = request.decoded.other.get("prompt_cache_options")?.value();
    let id = options["comparison_response_id"].as_str()?;
    let Some(stored) = store.get(owner, id) else {
        return Some(json!({"type": "comparison_response_not_found"}));
    };
    if head.tokens.cache_read > 0 {
        return Some(json!({"type": "cache_hit"}));
    }
    Some(match miss_reason(request, head, stored) {
        Some(reason) => {
            json!({"type": "cache_miss", "reason": reason, "cache_missed_tokens": head.tokens.prompt()})
        }
        None => json!({"type": "unavailable"}), // expired, or too short
    })
}

/// The first difference that breaks the prefix, in the order in which the server looks.
fn miss_reason(
    request: &AcceptedRequest,
    head: &AnswerHead,
    stored: &StoredResponse,
) -> Option<&'static str> {
    let (before, now) = (&stored.response, response::in_progress(request, head));
    let differs = |path: &str| before.pointer(path) != now.pointer(path);
    let fields = [
        ("/model", "model_changed"),
        ("/prompt_cache_key", "prompt_cache_key_changed"),
        ("/tools", "tools_changed"),
        ("/text/format", "text_format_changed"),
        ("/reasoning/effort", "reasoning_effort_changed"),
        ("/text/verbosity", "verbosity_changed"),
    ];
    if let Some((_, reason)) = fields.into_iter().find(|(path, _)| differs(path)) {
        return Some(reason);
    }
    let is_compacted = |item: &Value| item["type"] == "compaction";
    let items = || request.decoded.items.iter().map(Json::value);
    if items().any(|item| is_compacted(&item)) && !stored.input.iter().any(is_compacted) {
        return Some("context_compacted");
    }
    let content = |item: &Value| {
        let mut item = item.clone();
        item.as_object_mut().map(|fields| fields.shift_remove("id"));
        item
    };
    let is_prefix = stored.input.len() <= items().count()
        && stored
            .input
            .iter()
            .zip(items())
            .all(|(before, now)| content(before)["content"] == content(&now)["content"]);
    if !is_prefix {
        return Some("input_changed");
    }
    let tier =
        |value: &Value| value.as_str().map(|tier| if tier == "auto" { "default" } else { tier }.to_owned());
    (tier(&before["service_tier"]) != tier(&now["service_tier"])).then_some("service_tier_changed")
}

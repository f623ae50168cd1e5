//! Checks that depend on the model, and on what the server sent before.

use hardpan_models::{MarkerFormat, Model, ProviderProfile};
use hardpan_prompt::{Effort, Json};
use hardpan_providers::decode::DecodedRequest;
use serde_json::Value;

use super::seal::is_sealed;
use crate::error_reply::ErrorReply;
use crate::openai_tools::check_tools;
use crate::stored::ResponseStore;

/// Checks fields whose rules depend on the model.
pub fn check_fields(
    decoded: &DecodedRequest,
    model: &Model,
    profile: &ProviderProfile,
) -> Result<(), ErrorReply> {
    check_effort(decoded.prompt.effort, model)?;
    check_tools(&decoded.prompt.tools, "parameters")?;
    check_sampling(decoded, model)?;
    let field = |name: &str| decoded.other.get(name).map(Json::value);
    let wants_encrypted = field("include").is_some_and(|include| {
        include.as_array().is_some_and(|list| list.iter().any(|it| it == "reasoning.encrypted_content"))
    });
    if wants_encrypted && !model.reasoning {
        return Err(
            ErrorReply::invalid("Encrypted content is not supported with this model.").with_param("include")
        );
    }
    if profile.markers != MarkerFormat::PromptCacheBreakpoint {
        let has_options = field("prompt_cache_options").is_some_and(|options| !options.is_null());
        let has_markers = !decoded.prompt.breakpoints().is_empty();
        let refused = [("prompt_cache_options", has_options), ("prompt_cache_breakpoint", has_markers)];
        if let Some((name, _)) = refused.into_iter().find(|(_, given)| *given) {
            let message = format!("{name} is not supported on this model");
            return Err(ErrorReply::invalid(message).with_code("invalid_parameter"));
        }
    }
    let updates = decoded.prompt.messages.iter().filter_map(|message| message.effort);
    for effort in updates {
        if !profile.configuration_updates {
            let message = "The 'configuration_update' item type is not supported with this model";
            return Err(ErrorReply::invalid(message).with_param("input"));
        }
        check_effort(Some(effort), model)?;
    }
    if decoded.items.iter().any(|item| item.value()["type"] == "configuration_update")
        && field("truncation").is_some_and(|word| word == "auto")
    {
        let message = "The 'configuration_update' item type is not supported with truncation 'auto'";
        return Err(ErrorReply::invalid(message).with_param("input"));
    }
    let tools = field("tools").unwrap_or_default();
    let is_async = |tool: &Value| tool["async"] == true;
    if let Some(index) = tools.as_array().and_then(|tools| tools.iter().position(is_async))
        && !profile.configuration_updates
    // both came with GPT-6
    {
        let param = format!("tools[{index}].async");
        let message = format!("Unsupported parameter: '{param}' is not supported with this model.");
        return Err(ErrorReply::invalid(message).with_param(param).with_code("unsupported_parameter"));
    }
    check_unencrypted(decoded)
}

fn check_effort(effort: Option<Effort>, model: &Model) -> Result<(), ErrorReply> {
    let Some(effort) = effort else { return Ok(()) };
    let known = &model.thinking.efforts;
    if known.contains(&effort) || (known.is_empty() && model.reasoning) {
        return Ok(());
    }
    if known.is_empty() {
        let message = "Unsupported parameter: 'reasoning.effort' is not supported with this model.";
        return Err(ErrorReply::invalid(message)
            .with_param("reasoning.effort")
            .with_code("unsupported_parameter"));
    }
    let words: Vec<String> = known.iter().map(|word| format!("'{word}'")).collect();
    let words = match &words[..] {
        [most @ .., last] if most.len() > 1 => format!("{}, and {last}", most.join(", ")),
        words => words.join(" and "),
    };
    let message = format!(
        "Unsupported value: '{effort}' is not supported with the '{}' model. Supported values are: {words}.",
        model.id
    );
    Err(ErrorReply::invalid(message).with_param("reasoning.effort").with_code("unsupported_value"))
}

/// Whether the effort in force is `none`, given or by default.
pub fn is_without_reasoning(decoded: &DecodedRequest, model: &Model) -> bool {
    let updates = decoded.prompt.messages.iter().rev().find_map(|message| message.effort);
    updates.or(decoded.prompt.effort).or(model.thinking.default_effort) == Some(Effort::None)
}

/// While a model reasons, it takes no sampling parameters.
fn check_sampling(decoded: &DecodedRequest, model: &Model) -> Result<(), ErrorReply> {
    if !model.reasoning || is_without_reasoning(decoded, model) {
        return Ok(());
    }
    let is_default = |name: &str, value: &Value| {
        value.is_null()
            || (name == "temperature" && value.as_f64() == Some(1.0))
            || value.as_f64() == Some(0.0) && name == "top_logprobs"
    };
    for name in ["temperature", "top_p", "top_logprobs"] {
        let given = decoded.other.get(name).map(Json::value);
        if given.is_some_and(|value| !is_default(name, &value)) {
            let message = format!("Unsupported parameter: '{name}' is not supported with this model.");
            return Err(ErrorReply::invalid(message).with_param(name));
        }
    }
    Ok(())
}

/// Reasoning must come back encrypted, unless it was stored: then it has been put in place already.
fn check_unencrypted(decoded: &DecodedRequest) -> Result<(), ErrorReply> {
    let has_none = |item: &Value| item["type"] == "reasoning" && !item["encrypted_content"].is_string();
    let Some(item) = decoded.items.iter().map(Json::value).find(has_none) else {
        return Ok(());
    };
    let id = item["id"].as_str().unwrap_or_default();
    Err(not_found(id, is_stored(decoded)))
}

/// The error for an item that is not stored.
pub fn not_found(id: &str, store: bool) -> ErrorReply {
    let hint = if store {
        ""
    } else {
        " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
    };
    ErrorReply::new(404, format!("Item with id '{id}' not found.{hint}")).with_param("input")
}

/// Whether the request asks to store its answer, as it does by default.
pub fn is_stored(decoded: &DecodedRequest) -> bool {
    decoded.other.get("store").is_none_or(|store| store.as_str() != "false")
}

/// Checks that encrypted content is the simulator's own.
pub fn check_seals(decoded: &DecodedRequest) -> Result<(), ErrorReply> {
    for item in &decoded.items {
        let item = item.value();
        let Some(content) = item["encrypted_content"].as_str() else { continue };
        if !is_sealed(content) {
            let id = item["id"].as_str().unwrap_or_default();
            let message = format!(
                "The encrypted content for item {id} could not be verified. Reason: Encrypted content could not be decrypted or parsed."
            );
            return Err(ErrorReply::invalid(message).with_code("invalid_encrypted_content"));
        }
    }
    Ok(())
}

/// Checks that items with ids come together with the reasoning that they were generated after.
pub fn check_references(decoded: &DecodedRequest, store: &ResponseStore) -> Result<(), ErrorReply> {
    let items: Vec<Value> = decoded.items.iter().map(Json::value).collect();
    for (index, item) in items.iter().enumerate() {
        let (Some(id), Some(kind)) = (item["id"].as_str(), item["type"].as_str()) else { continue };
        let next = items.get(index + 1);
        if kind == "reasoning" && next.is_none_or(|next| !is_output(next)) {
            let message =
                format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
            return Err(ErrorReply::invalid(message).with_param("input"));
        }
        let before = index.checked_sub(1).and_then(|before| items[before]["id"].as_str());
        if let Some(reasoning) = store.reasoning_before(id).filter(|needed| before != Some(needed)) {
            let message = format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{reasoning}'."
            );
            return Err(ErrorReply::invalid(message).with_param("input"));
        }
    }
    Ok(())
}

/// Whether an item is one that a model generates.
fn is_output(item: &Value) -> bool {
    match item["type"].as_str() {
        Some("message") | None => item["role"] == "assistant",
        Some(kind) => kind == "reasoning" || kind.ends_with("_call") || kind == "program",
    }
}

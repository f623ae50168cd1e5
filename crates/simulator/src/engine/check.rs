//! Checks that servers make beyond the rules for messages: abilities of the model, signatures,
//! limits.

use hardpan_models::{MaxTokensField, Model, Protocol, ProviderProfile};
use hardpan_prompt::validate::{Acceptance, MAX_BREAKPOINTS, Violation, find_violations};
use hardpan_prompt::{Block, Content, Prompt, Reasoning};
use hardpan_providers::decode::DecodedRequest;
use serde_json::Value;

use super::accepted::has_thinking;
use super::{EngineSettings, SignatureCheck};
use crate::error_reply::ErrorReply;
use crate::tool_choice::ToolChoice;
use crate::wire::sign_reasoning;

/// Checks fields of the body that a decoded request does not have.
pub fn check_fields(
    protocol: Protocol,
    body: &[u8],
    decoded: &DecodedRequest,
    settings: &EngineSettings,
) -> Result<(), ErrorReply> {
    let Some((model, profile)) = settings.model(protocol, &decoded.prompt.model) else { return Ok(()) };
    if protocol == Protocol::Openai
        && model.reasoning
        && profile.max_tokens_field == MaxTokensField::MaxCompletionTokens
    {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        if body.get("max_tokens").is_some_and(|value| !value.is_null()) {
            return Err(ErrorReply::invalid("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
                .with_code("unsupported_parameter")
                .with_param("max_tokens"));
        }
    }
    let many = decoded.other.get("n").is_some_and(|n| n.as_str() != "1" && n.as_str() != "null");
    if many {
        return Err(ErrorReply::invalid("the simulator gives one answer: n must be 1").with_param("n"));
    }
    Ok(())
}

/// Checks everything else: first the rules of the protocol, then those of the model.
pub fn check_request(
    protocol: Protocol,
    decoded: &DecodedRequest,
    model: &Model,
    profile: &ProviderProfile,
    choice: &ToolChoice,
    settings: &EngineSettings,
) -> Result<(), ErrorReply> {
    let prompt = &decoded.prompt;
    let mut rules = hardpan_providers::validation_rules(profile, model.prefill);
    if protocol == Protocol::Anthropic && !decoded.stream && !has_thinking(decoded) && !choice.is_forced() {
        rules.warming = Acceptance::Accepted;
    }
    if let Some(violation) = find_violations(prompt, &rules).first() {
        return Err(ErrorReply::from_violation(protocol, violation));
    }
    let markers = prompt.breakpoints().len() + usize::from(decoded.automatic_cache.is_some());
    if markers > MAX_BREAKPOINTS && protocol == Protocol::Anthropic {
        let at = hardpan_prompt::validate::Location::Message(0);
        return Err(ErrorReply::from_violation(
            protocol,
            &Violation::TooManyBreakpoints { at, found: markers },
        ));
    }
    check_tools(protocol, decoded, model, choice)?;
    check_capabilities(protocol, decoded, model)?;
    check_output_limit(protocol, prompt, model, settings)?;
    match settings.signatures {
        SignatureCheck::Checked if protocol == Protocol::Anthropic => check_signatures(prompt),
        _ => Ok(()),
    }
}

fn check_tools(
    protocol: Protocol,
    decoded: &DecodedRequest,
    model: &Model,
    choice: &ToolChoice,
) -> Result<(), ErrorReply> {
    let declared = &decoded.prompt.tools;
    if !declared.is_empty() && !model.tools {
        return Err(ErrorReply::invalid(format!("{} does not support tools", model.id)).with_param("tools"));
    }
    if choice.is_forced() && declared.is_empty() {
        return Err(ErrorReply::invalid("tool_choice: it may only be given together with tools")
            .with_param("tool_choice"));
    }
    if let ToolChoice::Tool(name) = choice
        && !declared.iter().any(|block| *block.tool.name == **name)
    {
        return Err(
            ErrorReply::invalid(format!("tool_choice: no tool is called '{name}'")).with_param("tool_choice")
        );
    }
    if choice.is_forced() && protocol == Protocol::Anthropic && has_thinking(decoded) {
        return Err(ErrorReply::invalid("thinking may not be on when tool_choice forces the use of a tool"));
    }
    Ok(())
}

/// Checks that the model supports images and thinking if the request uses them.
fn check_capabilities(protocol: Protocol, decoded: &DecodedRequest, model: &Model) -> Result<(), ErrorReply> {
    if !model.vision && has_images(&decoded.prompt) {
        return Err(
            ErrorReply::invalid(format!("{} does not support images", model.id)).with_param("messages")
        );
    }
    if protocol == Protocol::Anthropic && has_thinking(decoded) && !model.reasoning {
        return Err(ErrorReply::invalid(format!("thinking: {} cannot think", model.id)));
    }
    Ok(())
}

fn has_images(prompt: &Prompt) -> bool {
    prompt.blocks().any(Block::has_image)
}

/// Checks that `max_tokens` does not exceed the model's limit. Not for providers that offer any
/// model: their limits are not known.
fn check_output_limit(
    protocol: Protocol,
    prompt: &Prompt,
    model: &Model,
    settings: &EngineSettings,
) -> Result<(), ErrorReply> {
    let (asked, most) = (prompt.max_tokens, model.max_output);
    let open = settings.catalogue.provider(&model.provider).is_ok_and(|provider| provider.open_models);
    if asked == u32::MAX || asked <= most || open {
        return Ok(());
    }
    Err(match protocol {
        Protocol::Anthropic => ErrorReply::invalid(format!(
            "max_tokens: {asked} > {most}, which is the maximum allowed number of output tokens for {}",
            model.id
        )),
        Protocol::Openai => ErrorReply::invalid(format!(
            "max_tokens is too large: {asked}. This model gives at most {most} tokens."
        ))
        .with_code("invalid_value")
        .with_param("max_tokens"),
    })
}

/// Checks that reasoning is unchanged, byte for byte, since the simulator signed it.
fn check_signatures(prompt: &Prompt) -> Result<(), ErrorReply> {
    for (message, turn) in prompt.messages.iter().enumerate() {
        for (index, block) in turn.blocks.iter().enumerate() {
            let Content::Reasoning(Reasoning { text, signature: Some(given), redacted: None, .. }) =
                &*block.content
            else {
                continue;
            };
            if **given != *sign_reasoning(text) {
                return Err(ErrorReply::invalid(format!(
                    "messages.{message}.content.{index}: Invalid `signature` in `thinking` block"
                )));
            }
        }
    }
    Ok(())
}

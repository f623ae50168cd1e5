//! What a server refuses beyond the rules for messages: by model, by signature, by its own arithmetic.

use hardpan_models::{MaxTokensField, Model, Protocol, Wire};
use hardpan_prompt::validate::{MAX_BREAKPOINTS, Stance, Violation, violations};
use hardpan_prompt::{Block, Content, Prompt, Reasoning};
use hardpan_providers::decode::Decoded;
use serde_json::Value;

use super::asked::thinks;
use super::{Settings, Signatures};
use crate::choice::Choice;
use crate::refusal::Refusal;
use crate::wire::signature;

/// Fields that only the body has.
pub fn fields(
    protocol: Protocol,
    body: &[u8],
    decoded: &Decoded,
    settings: &Settings,
) -> Result<(), Refusal> {
    let Some((model, wire)) = settings.model(protocol, &decoded.prompt.model) else { return Ok(()) };
    if protocol == Protocol::Openai
        && model.reasoning
        && wire.max_tokens_field == MaxTokensField::MaxCompletionTokens
    {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        if body.get("max_tokens").is_some_and(|value| !value.is_null()) {
            return Err(Refusal::invalid("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
                .with_code("unsupported_parameter")
                .with_param("max_tokens"));
        }
    }
    let many = decoded.other.get("n").is_some_and(|n| n.as_str() != "1" && n.as_str() != "null");
    if many {
        return Err(Refusal::invalid("the simulator gives one answer: n must be 1").with_param("n"));
    }
    Ok(())
}

/// Everything else: first the rules of the protocol, then those of the model.
pub fn request(
    protocol: Protocol,
    decoded: &Decoded,
    model: &Model,
    wire: &Wire,
    choice: &Choice,
    settings: &Settings,
) -> Result<(), Refusal> {
    let prompt = &decoded.prompt;
    let mut rules = hardpan_providers::rules(wire, model.prefill);
    if protocol == Protocol::Anthropic && !decoded.stream && !thinks(decoded) && !choice.is_forced() {
        rules.warming = Stance::Accepts;
    }
    if let Some(violation) = violations(prompt, &rules).first() {
        return Err(Refusal::of_violation(protocol, violation));
    }
    let markers = prompt.breakpoints().len() + usize::from(decoded.automatic_cache.is_some());
    if markers > MAX_BREAKPOINTS && protocol == Protocol::Anthropic {
        let at = hardpan_prompt::validate::At::Message(0);
        return Err(Refusal::of_violation(protocol, &Violation::TooManyBreakpoints { at, found: markers }));
    }
    tools(protocol, decoded, model, choice)?;
    abilities(protocol, decoded, model)?;
    room(protocol, prompt, model, settings)?;
    match settings.signatures {
        Signatures::Checked if protocol == Protocol::Anthropic => signatures(prompt),
        _ => Ok(()),
    }
}

fn tools(protocol: Protocol, decoded: &Decoded, model: &Model, choice: &Choice) -> Result<(), Refusal> {
    let declared = &decoded.prompt.tools;
    if !declared.is_empty() && !model.tools {
        return Err(Refusal::invalid(format!("{} does not support tools", model.id)).with_param("tools"));
    }
    if choice.is_forced() && declared.is_empty() {
        return Err(Refusal::invalid("tool_choice: it may only be given together with tools")
            .with_param("tool_choice"));
    }
    if let Choice::Tool(name) = choice
        && !declared.iter().any(|block| *block.tool.name == **name)
    {
        return Err(
            Refusal::invalid(format!("tool_choice: no tool is called '{name}'")).with_param("tool_choice")
        );
    }
    if choice.is_forced() && protocol == Protocol::Anthropic && thinks(decoded) {
        return Err(Refusal::invalid("thinking may not be on when tool_choice forces the use of a tool"));
    }
    Ok(())
}

/// What the model cannot do.
fn abilities(protocol: Protocol, decoded: &Decoded, model: &Model) -> Result<(), Refusal> {
    if !model.vision && has_images(&decoded.prompt) {
        return Err(Refusal::invalid(format!("{} does not support images", model.id)).with_param("messages"));
    }
    if protocol == Protocol::Anthropic && thinks(decoded) && !model.reasoning {
        return Err(Refusal::invalid(format!("thinking: {} cannot think", model.id)));
    }
    Ok(())
}

fn has_images(prompt: &Prompt) -> bool {
    prompt.blocks().any(Block::has_image)
}

/// An answer longer than the model can give. A server that takes any model does not know what it can give.
fn room(protocol: Protocol, prompt: &Prompt, model: &Model, settings: &Settings) -> Result<(), Refusal> {
    let (asked, most) = (prompt.max_tokens, model.max_output);
    let open = settings.catalogue.provider(&model.provider).is_ok_and(|provider| provider.open_models);
    if asked == u32::MAX || asked <= most || open {
        return Ok(());
    }
    Err(match protocol {
        Protocol::Anthropic => Refusal::invalid(format!(
            "max_tokens: {asked} > {most}, which is the maximum allowed number of output tokens for {}",
            model.id
        )),
        Protocol::Openai => Refusal::invalid(format!(
            "max_tokens is too large: {asked}. This model gives at most {most} tokens."
        ))
        .with_code("invalid_value")
        .with_param("max_tokens"),
    })
}

/// Reasoning comes back as it was given, to the byte, or not at all.
fn signatures(prompt: &Prompt) -> Result<(), Refusal> {
    for (message, turn) in prompt.turns.iter().enumerate() {
        for (index, block) in turn.blocks.iter().enumerate() {
            let Content::Reasoning(Reasoning { text, signature: Some(given), redacted: None, .. }) =
                &*block.content
            else {
                continue;
            };
            if **given != *signature(text) {
                return Err(Refusal::invalid(format!(
                    "messages.{message}.content.{index}: Invalid `signature` in `thinking` block"
                )));
            }
        }
    }
    Ok(())
}

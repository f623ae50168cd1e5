//! Checks that all servers make: the rules for messages, abilities of the model, limits.

use hardpan_models::{Model, ProviderProfile};
use hardpan_prompt::validate::find_violations;
use hardpan_providers::decode::DecodedRequest;

use super::EngineSettings;
use crate::error_reply::ErrorReply;
use crate::server_codec::ServerCodec;
use crate::tool_choice::ToolChoice;

/// Checks a request: first the rules of the protocol, then those of the model.
pub fn check_request(
    server: &dyn ServerCodec,
    decoded: &DecodedRequest,
    model: &Model,
    profile: &ProviderProfile,
    choice: &ToolChoice,
    settings: &EngineSettings,
) -> Result<(), ErrorReply> {
    server.check_fields(decoded, model, profile)?;
    let mut rules = hardpan_providers::validation_rules(profile, model);
    server.adjust_rules(&mut rules, decoded, choice);
    let violations = find_violations(&decoded.prompt, &rules);
    if let Some(violation) = violations.iter().find(|violation| !server.permits(violation, decoded)) {
        return Err(server.refuse_violation(violation));
    }
    check_tools(decoded, model, choice)?;
    if !model.vision && decoded.prompt.has_images() {
        let message = format!("{} does not support images", model.id);
        return Err(ErrorReply::invalid(message).with_param("messages"));
    }
    server.check_own_rules(decoded, model, choice, settings)?;
    check_output_limit(server, decoded.prompt.max_tokens, model, settings)
}

fn check_tools(decoded: &DecodedRequest, model: &Model, choice: &ToolChoice) -> Result<(), ErrorReply> {
    let declared = &decoded.prompt.tools;
    if !declared.is_empty() && !model.tools {
        return Err(ErrorReply::invalid(format!("{} does not support tools", model.id)).with_param("tools"));
    }
    if choice.is_forced() && declared.is_empty() {
        return Err(ErrorReply::invalid("tool_choice: it may only be given together with tools")
            .with_param("tool_choice"));
    }
    if let ToolChoice::Tool(name) = choice
        && !decoded.has_tool(name)
    {
        return Err(
            ErrorReply::invalid(format!("tool_choice: no tool is called '{name}'")).with_param("tool_choice")
        );
    }
    Ok(())
}

/// Checks that the request's token limit does not exceed the model's. Not for providers that offer
/// any model: their limits are not known.
fn check_output_limit(
    server: &dyn ServerCodec,
    asked: u32,
    model: &Model,
    settings: &EngineSettings,
) -> Result<(), ErrorReply> {
    let most = model.max_output;
    let is_open = settings.catalogue.provider(&model.provider).is_ok_and(|provider| provider.open_models);
    if asked == u32::MAX || asked <= most || is_open {
        return Ok(());
    }
    Err(server.refuse_output_limit(asked, most, model))
}

//! Requests of extensions to a model. Hardpan makes them: the person or a rule decides about each, the
//! conversation pays, and no key reaches a script.

use std::sync::Arc;

use hardpan_agent::approval::EXTENSION_MODELS;
use hardpan_agent::{ApprovalRequest, AsideRequest};
use hardpan_context::Target;
use hardpan_economy::format::format_dollars;
use hardpan_extensions::HostError;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{MessagePart, Role};
use hardpan_tools::CallSubject;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::api::{ContentPart, Message};
use super::host::ExtensionHost;
use super::messages::{content_from_script, usage_to_script};
use crate::approval::GrantTime;
use crate::conversation_app::ConversationApp;
use crate::foreign_requests::{MAX_ANSWER_TOKENS, MAX_PER_MINUTE, SHOWN_BYTES};

/// A text with more bytes for each token is refused without counting its tokens.
const MAX_BYTES_OF_TOKEN: usize = 16;

/// What an extension wants to know of a model.
struct ModelRequest {
    target: Target,
    system: Option<String>,
    messages: Vec<(Role, Vec<MessagePart>)>,
    thinking: Option<ThinkingSetting>,
}

/// Whether requests to a model would be answered by its provider, or by the simulator as those of the
/// conversation are.
pub fn has_access(app: &ConversationApp, arguments: &Value) -> bool {
    find_target(app, arguments).is_some_and(|target| is_reachable(app, &target))
}

fn is_reachable(app: &ConversationApp, target: &Target) -> bool {
    !app.is_offline(target) || app.is_offline(&app.agent.target())
}

/// The model that an extension names, if the catalogue or an extension's provider has it.
pub fn find_target(app: &ConversationApp, arguments: &Value) -> Option<Target> {
    let (provider, id) = (arguments["provider"].as_str()?, arguments["id"].as_str()?);
    let find = |provider: &str| app.find_model(Some(provider.to_owned()), id.to_owned()).ok();
    let found = find(provider).or_else(|| {
        // Names of providers that differ there.
        let other = [("google", "gemini"), ("moonshotai", "moonshot")];
        other.iter().find(|(theirs, _)| *theirs == provider).and_then(|(_, ours)| find(ours))
    });
    found.filter(|target| target.model.listed)
}

/// Asks a model what an extension wants to know, if that is allowed. If the extension no longer waits,
/// the request ends, and what it used by then is billed.
pub async fn complete(host: &Arc<ExtensionHost>, arguments: &Value) -> Result<Value, HostError> {
    // Neither a person's time nor the model's is the handler's.
    let _pauses = host.pause_clocks();
    let (app, agent) = (host.app()?, host.agent()?);
    let ModelRequest { target, system, messages, thinking } = read_request(&app, arguments)?;
    if !host.count_model_request(agent.now()) {
        return Err(HostError(format!("it asked models more than {MAX_PER_MINUTE} times in a minute")));
    }
    let stop = CancellationToken::new();
    let owner = format!("extension:{}", host.name());
    approve(
        host,
        &AsideRequest {
            owner: &owner,
            target: target.clone(),
            system: system.as_deref(),
            messages: &messages,
            thinking,
            stop: stop.clone(),
        },
    )
    .await?;
    let _stops = stop.clone().drop_guard();
    let asking = tokio::spawn(async move {
        let (system, messages) = (system.as_deref(), &*messages);
        agent.ask_aside(&AsideRequest { owner: &owner, target, system, messages, thinking, stop }).await
    });
    let answer = asking.await.map_err(failed)?.map_err(failed)?;
    let usage = usage_to_script(&answer.usage, answer.dollars);
    Ok(json!({ "text": answer.text, "isCut": answer.is_cut, "usage": usage }))
}

fn failed(error: impl std::fmt::Display) -> HostError {
    HostError(error.to_string())
}

fn read_request(app: &ConversationApp, arguments: &Value) -> Result<ModelRequest, HostError> {
    let name = || {
        let text = |field: &str| arguments[field].as_str().unwrap_or("?").to_owned();
        format!("{}/{}", text("provider"), text("id"))
    };
    let mut target = find_target(app, arguments)
        .ok_or_else(|| HostError(format!("there is no model {}; `hardpan models` lists them", name())))?;
    if !is_reachable(app, &target) {
        return Err(HostError(format!(
            "there is no key for {0}; `hardpan key {0}` stores one",
            target.provider
        )));
    }
    let asked = arguments["maxTokens"].as_f64().map_or(MAX_ANSWER_TOKENS, |tokens| tokens as u32);
    target.max_tokens = target.max_tokens.min(asked.clamp(1, MAX_ANSWER_TOKENS));
    let thinking = arguments["thinking"].as_str().map(str::parse).transpose().map_err(failed)?;
    // One that leaves no room for the answer is not asked for.
    let thinking = thinking.filter(|setting| target.check_thinking(*setting).is_ok());
    let messages = messages_from_context(&arguments["messages"], target.model.vision);
    if messages.is_empty() {
        return Err(HostError("the context has no message with a text".into()));
    }
    let system = arguments["system"].as_str().map(str::to_owned);
    let text_bytes = |part: &MessagePart| match part {
        MessagePart::Text { text } => text.len(),
        _ => 0,
    };
    let said = messages.iter().flat_map(|(_, parts)| parts).map(text_bytes).sum::<usize>();
    let bytes = said + system.as_ref().map_or(0, String::len);
    let most = target.max_input_tokens() as usize;
    if bytes / MAX_BYTES_OF_TOKEN > most {
        return Err(HostError(format!("the context has {bytes} bytes; the model reads {most} tokens")));
    }
    Ok(ModelRequest { target, system, messages, thinking })
}

/// The messages of a context: text and images alone. A call and its result are told in words, because
/// the request declares no tools.
fn messages_from_context(given: &Value, takes_images: bool) -> Vec<(Role, Vec<MessagePart>)> {
    let mut messages: Vec<(Role, Vec<MessagePart>)> = Vec::new();
    let known = given.as_array().into_iter().flatten().filter_map(|it| Message::deserialize(it).ok());
    for message in known {
        let (role, parts) = match message {
            Message::User(message) => (Role::User, content_from_script(message.content)),
            Message::Assistant(message) => (Role::Assistant, answer_parts(message.content)),
            Message::ToolResult(message) => {
                let mut parts = vec![MessagePart::text(format!("[Result of {}]", message.tool_name))];
                parts.extend(content_from_script(super::api::Content::Parts(message.content)));
                (Role::User, parts)
            }
            Message::Custom(message) => (Role::User, content_from_script(message.message.content)),
            Message::BashExecution(_) | Message::CompactionSummary(_) | Message::BranchSummary(_) => continue,
        };
        let parts = parts.into_iter().filter(|part| match part {
            MessagePart::Text { text } => !text.trim().is_empty(),
            MessagePart::Image(_) => takes_images,
            _ => false,
        });
        let parts: Vec<MessagePart> = parts.collect();
        match messages.last_mut() {
            _ if parts.is_empty() => {}
            Some((last, before)) if *last == role => before.extend(parts),
            _ => messages.push((role, parts)),
        }
    }
    messages
}

fn answer_parts(content: Vec<ContentPart>) -> Vec<MessagePart> {
    let parts = content.into_iter().filter_map(|part| match part {
        ContentPart::Text(part) => Some(MessagePart::text(part.text)),
        ContentPart::ToolCall(call) => {
            Some(MessagePart::text(format!("[Call of {}: {}]", call.name, call.arguments)))
        }
        ContentPart::Image(_) | ContentPart::Thinking(_) => None,
    });
    parts.collect()
}

/// Asks whether the extension may ask a model, unless that was answered.
async fn approve(host: &Arc<ExtensionHost>, request: &AsideRequest<'_>) -> Result<(), HostError> {
    let (permissions, setting) = (&host.permissions, &host.setting);
    if !permissions.may_ask_for_models() {
        return Err(HostError("the extension's package.json does not declare \"models\"".into()));
    }
    let (tokens, price) = (request.tokens(), request.target.model.price);
    let dollars = (tokens as f64 * price.input + f64::from(request.target.max_tokens) * price.output) / 1e6;
    let question = ApprovalRequest {
        call_id: format!("{EXTENSION_MODELS}:{}", host.name()).into(),
        tool_name: EXTENSION_MODELS.into(),
        args: json!({
            "extension": host.name(),
            "model": request.target.model.name(),
            "tokens": tokens,
            "max_tokens": request.target.max_tokens,
            "costs_at_most": format_dollars(dollars),
            "prompt": beginning(request),
        }),
        subject: CallSubject::ServerTool(host.name().to_owned()),
        claim: None,
        agent: Some(format!("extension {}", host.name()).into()),
        handler_reason: None,
    };
    let _alone = setting.dialog.lock().await;
    let is_granted = permissions.has_models();
    match setting.approver.approve_for_extension(&question, is_granted).await {
        Ok(GrantTime::Once) => Ok(()),
        Ok(GrantTime::Conversation) => {
            permissions.allow_models_for_now();
            Ok(())
        }
        Ok(GrantTime::Always) => permissions.allow_models().map_err(failed),
        Err(reason) => Err(HostError(format!("the extension may not ask a model: {reason}"))),
    }
}

/// The beginning of what is asked, for a person.
fn beginning(request: &AsideRequest<'_>) -> String {
    let system = request.system.map(|system| format!("(system) {system}"));
    let said = request.messages.iter().flat_map(|(_, parts)| parts).map(|part| match part {
        MessagePart::Text { text } => text.to_string(),
        _ => "(an image)".to_owned(),
    });
    let mut text = String::new();
    for part in system.into_iter().chain(said) {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&part);
        if text.len() > SHOWN_BYTES {
            text.truncate(text.floor_char_boundary(SHOWN_BYTES));
            text.push('…');
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_results_are_told_in_words_and_neighbours_of_a_role_become_one_message() {
        let given = json!([
            { "role": "user", "content": "One" },
            { "role": "user", "content": [{ "type": "text", "text": "two" }] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "Hm" },
                { "type": "text", "text": "I look." },
                { "type": "toolCall", "id": "c1", "name": "ls", "arguments": { "path": "a" } },
            ] },
            { "role": "toolResult", "toolCallId": "c1", "toolName": "ls", "content": [{ "type": "text", "text": "b" }] },
            { "role": "assistant", "content": [] },
            { "role": "nobody", "content": "x" },
            7,
        ]);
        let texts = |parts: &[MessagePart]| -> Vec<String> {
            let texts = parts.iter().filter_map(|part| match part {
                MessagePart::Text { text } => Some(text.to_string()),
                _ => None,
            });
            texts.collect()
        };
        let messages = messages_from_context(&given, false);
        let told: Vec<(Role, Vec<String>)> =
            messages.iter().map(|(role, parts)| (*role, texts(parts))).collect();
        let strings = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
        assert_eq!(
            told,
            [
                (Role::User, strings(&["One", "two"])),
                (Role::Assistant, strings(&["I look.", "[Call of ls: {\"path\":\"a\"}]"])),
                (Role::User, strings(&["[Result of ls]", "b"])),
            ]
        );
    }
}

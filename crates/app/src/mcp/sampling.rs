//! Requests of servers to a model: the person or a rule decides about each, and the conversation pays.

use hardpan_agent::approval::SERVER_SAMPLING;
use hardpan_agent::{Agent, ApprovalDecision, ApprovalHandler, ApprovalRequest, AsideRequest};
use hardpan_context::Target;
use hardpan_mcp::{SamplingAnswer, SamplingRefusal, SamplingRequest};
use hardpan_prompt::{MessagePart, Role};
use hardpan_tools::CallSubject;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::McpServer;
use crate::foreign_requests::{MAX_ANSWER_TOKENS, MAX_PER_MINUTE, SHOWN_BYTES};
use crate::options::TargetOptions;
use crate::target::resolve_target;

/// Asks a model what a server wants to know, if that is allowed.
pub(super) async fn sample(
    server: &McpServer,
    request: &SamplingRequest,
) -> Result<SamplingAnswer, SamplingRefusal> {
    let rejected = |reason: &str| SamplingRefusal::Rejected(reason.to_owned());
    let agent = server.link.agent().ok_or_else(|| rejected("the conversation has ended"))?;
    let approver = server.link.approver().ok_or_else(|| rejected("the conversation has not begun"))?;
    if !server.parts.sampling_times().count(agent.now()) {
        return Err(SamplingRefusal::TooMany(MAX_PER_MINUTE));
    }
    let messages: Vec<(Role, Vec<MessagePart>)> = request
        .messages
        .iter()
        .map(|(is_models, parts)| (if *is_models { Role::Assistant } else { Role::User }, parts.clone()))
        .collect();
    let mut target = choose_target(server, request, &agent);
    target.max_tokens = target.max_tokens.min(request.max_tokens.clamp(1, MAX_ANSWER_TOKENS));
    let owner = format!("mcp:{}", server.name);
    let (system, stop) = (request.system.as_deref(), CancellationToken::new());
    let aside = AsideRequest { owner: &owner, target, system, messages: &messages, thinking: None, stop };
    let question = ApprovalRequest {
        call_id: format!("{SERVER_SAMPLING}:{}", server.name).into(),
        tool_name: SERVER_SAMPLING.into(),
        args: json!({
            "server": server.name.as_str(),
            "model": aside.target.model.name(),
            "tokens": aside.tokens(),
            "max_tokens": aside.target.max_tokens,
            "prompt": request.beginning(SHOWN_BYTES),
        }),
        subject: CallSubject::ServerTool(server.name.to_string()),
        claim: None,
        agent: None,
        handler_reason: None,
    };
    match approver.approve(&question).await {
        ApprovalDecision::Allow => {}
        ApprovalDecision::AllowChanged { .. } => return Err(rejected("it cannot be changed")),
        ApprovalDecision::Deny { reason, .. } => return Err(SamplingRefusal::Rejected(reason)),
    }
    let answer = agent.ask_aside(&aside).await;
    let answer = answer.map_err(|error| SamplingRefusal::Failed(error.to_string()))?;
    Ok(SamplingAnswer { text: answer.text, model: aside.target.model.id.clone(), is_cut: answer.is_cut })
}

/// The settings' model for small work if the server would rather have one, else the conversation's.
fn choose_target(server: &McpServer, request: &SamplingRequest, agent: &Agent) -> Target {
    let settings = &server.link.settings;
    let small = settings.config.small_model.clone().filter(|_| request.prefers_small);
    let small = small.and_then(|model| {
        let options = TargetOptions { model: Some(model), ..TargetOptions::default() };
        resolve_target(&options, settings, None).ok()
    });
    small.unwrap_or_else(|| agent.target())
}

//! What the modes mean for the agent: how they are stored with the session, what plan mode blocks, and
//! what becomes of a plan.

use std::sync::{Arc, Mutex, PoisonError};

use hardpan_agent::approval::ApprovalRule;
use hardpan_agent::events::{ToolCallEvent, ToolCallReply};
use hardpan_agent::{Agent, ApprovalRequest, CustomMessage};
use hardpan_app::ConversationApp;
use hardpan_app::approval::ApprovalVerdict;
use hardpan_app::settings::SandboxMode;
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_sandbox::{SandboxSupport, sandbox_support};
use hardpan_terminal::model::Mode;
use hardpan_tools::{CallSubject, Effect};
use serde_json::json;

/// The mode that a face is in.
pub type SharedMode = Arc<Mutex<Mode>>;

/// What the model reads about a call that plan mode does not let run.
pub const PLAN_REFUSAL: &str = "only reading is allowed now: the person asked for a plan, so answer with one";

/// Under this name the session stores the mode.
const MODE_STATE: &str = "mode";

/// What the model reads when plan mode begins, below the prompt.
const PLAN_BEGINS: &str = "Answer with a plan: what you would change, where, and how to check it. Use only \
                           tools that read; whatever changes something is refused until the plan is accepted.";
/// What the model reads when it ends.
const PLAN_ENDS: &str = "Plan mode is over: tools that change something can be used again.";

/// What the person is asked about a plan, and what accepts it.
pub const PLAN_QUESTION: &str = "Carry out this plan?";
/// The answers, in the order of the question.
pub const PLAN_ANSWERS: [&str; 2] = ["yes, in mode edits", "change it in the editor"];
/// The prompt that begins the work.
pub const CARRY_OUT: &str = "Carry out the plan.";

/// The mode that a conversation was left in; `all` never comes back.
pub fn stored_mode(agent: &Agent) -> Mode {
    let stored = agent.extension_state(MODE_STATE);
    let name = stored.as_ref().and_then(|state| state.as_str());
    name.and_then(Mode::by_name).filter(|mode| *mode != Mode::All).unwrap_or_default()
}

/// Stores the mode with a conversation that has begun.
pub async fn store_mode(agent: &Agent, mode: Mode) {
    if agent.messages().is_empty() || stored_mode(agent) == mode || mode == Mode::All {
        return;
    }
    // What cannot be stored now is said where messages are stored.
    let _ = agent.store_extension_state(MODE_STATE, json!(mode.name())).await;
}

/// What the mode says about a call; none if the person decides.
pub fn verdict_of_mode(
    mode: &SharedMode,
    request: &ApprovalRequest,
    rule: Option<&ApprovalRule>,
) -> Option<ApprovalVerdict> {
    // A rule exists for files of the workspace alone.
    let is_workspace_edit = matches!(request.subject, CallSubject::File(_)) && rule.is_some();
    match *mode.lock().unwrap_or_else(PoisonError::into_inner) {
        _ if request.handler_reason.is_some() => None,
        Mode::Plan => Some(ApprovalVerdict::No(PLAN_REFUSAL.into())),
        Mode::Edits if is_workspace_edit => Some(ApprovalVerdict::Once),
        Mode::All => Some(ApprovalVerdict::Once),
        Mode::Ask | Mode::Edits => None,
    }
}

/// Whether commands run in a sandbox, so that `all` can be chosen.
pub fn has_sandbox(app: &ConversationApp) -> bool {
    app.settings.config.sandbox.unwrap_or_default() != SandboxMode::Off
        && matches!(sandbox_support(), SandboxSupport::Full)
}

/// Blocks every call that may change something while the mode is plan, also those that rules allow.
pub fn block_changes_in_plan(app: &ConversationApp, mode: &SharedMode) {
    let (mode, tools) = (mode.clone(), app.agent.tools().clone());
    app.agent.events().subscribe::<ToolCallEvent, _>("plan mode", move |call, _| {
        let is_plan = *mode.lock().unwrap_or_else(PoisonError::into_inner) == Mode::Plan;
        let tool = tools.describe(&call.tool_name);
        let reads = tool.is_none_or(|tool| tool.effect(&call.input) == Effect::Reads);
        let reply = match is_plan && !reads {
            true => ToolCallReply::Block { reason: PLAN_REFUSAL.to_owned() },
            false => ToolCallReply::Allow,
        };
        std::future::ready(Ok(reply))
    });
}

/// Tells the model, with the next prompt, that plan mode has begun or ended.
pub fn tell_of_plan(agent: &Agent, begins: bool) {
    let text = if begins { PLAN_BEGINS } else { PLAN_ENDS };
    agent.attach_to_next_prompt(CustomMessage {
        custom_type: Arc::from(MODE_STATE),
        content: vec![MessagePart::text(text)],
        display: false,
        details: None,
    });
}

/// The text of the last answer; none if it has none.
pub fn last_answer(agent: &Agent) -> Option<String> {
    let messages = agent.messages();
    let MessageBody::Assistant { content, .. } = &*messages.last()?.body else { return None };
    let text = |part: &MessagePart| match part {
        MessagePart::Text { text } => Some(text.to_string()),
        _ => None,
    };
    Some(content.iter().filter_map(text).collect::<String>()).filter(|text| !text.trim().is_empty())
}

//! Collects the data of responses: the agent's state, its session, its context and its commands.

use hardpan_agent::expand::ExpansionKind;
use hardpan_agent::{Agent, CompactionResult};
use hardpan_app::ConversationApp;
use hardpan_prompt::{MessageBody, MessagePart};

use super::request::PanelVisibility;
use super::response::{
    AgentState, CommandInfo, CommandSource, CompletionInfo, ModelInfo, PanelInfo, QueuedInputs, ResponseData,
    SessionInfo, SessionStats, TokenAmounts, ToolInfo, UsageSummary,
};
use crate::chat::commands;
use crate::chat::commands::arguments::{choice, complete};

/// `get_state`.
pub fn state(app: &ConversationApp) -> ResponseData {
    let agent = &app.agent;
    let waiting = agent.queued_inputs();
    let typed =
        |queue: Vec<hardpan_agent::PreparedInput>| queue.into_iter().map(|accepted| accepted.typed).collect();
    ResponseData::AgentState(Box::new(AgentState {
        model: ModelInfo::from(&agent.target()),
        thinking: agent.thinking().into(),
        layout: agent.layout(),
        keep: agent.keep(),
        busy: agent.status().is_working(),
        activity: agent.status().activity,
        session: session(app),
        queued: QueuedInputs { steering: typed(waiting.steering), follow_up: typed(waiting.follow_up) },
        usage: usage(agent),
    }))
}

/// The current conversation, for `get_state`, `new_session` and others.
pub fn session(app: &ConversationApp) -> SessionInfo {
    let (id, file) = app.agent.session();
    // The first entry creates the file; until then the session has no name.
    let found = file.is_file().then(|| app.store.find(None, &file.display().to_string()).ok());
    let name = found.flatten().and_then(|summary| summary.name);
    SessionInfo { id, file, name, message_count: app.agent.messages().len() }
}

fn usage(agent: &Agent) -> UsageSummary {
    let usage = agent.token_usage();
    UsageSummary {
        last_request: usage.last_request.map(TokenAmounts::from),
        session: usage.session.into(),
        requests: usage.requests,
    }
}

/// `get_context`: the breakdown of the last request, null before the first.
pub fn context(agent: &Agent) -> ResponseData {
    ResponseData::Context { breakdown: agent.breakdown().map(Box::new) }
}

/// `get_session_stats`.
pub fn stats(app: &ConversationApp) -> ResponseData {
    let agent = &app.agent;
    let mut stats = SessionStats {
        session: session(app),
        user_messages: 0,
        assistant_messages: 0,
        tool_calls: 0,
        tool_results: 0,
        failed_results: 0,
        usage: usage(agent),
        context_tokens: agent.breakdown().map(|breakdown| breakdown.total_tokens),
        max_input_tokens: agent.target().max_input_tokens(),
    };
    for message in agent.messages() {
        match &*message.body {
            MessageBody::User { .. } => stats.user_messages += 1,
            MessageBody::Assistant { content, .. } => {
                stats.assistant_messages += 1;
                stats.tool_calls +=
                    content.iter().filter(|part| matches!(part, MessagePart::ToolCall(_))).count();
            }
            MessageBody::ToolResult { is_error, .. } => {
                stats.tool_results += 1;
                stats.failed_results += usize::from(*is_error);
            }
            _ => {}
        }
    }
    ResponseData::SessionStats(stats)
}

/// `get_commands`.
pub fn commands(agent: &Agent) -> ResponseData {
    ResponseData::Commands { commands: command_list(agent) }
}

/// Slash commands, skills and prompt templates.
pub fn command_list(agent: &Agent) -> Vec<CommandInfo> {
    let commands = agent.commands().into_iter().map(|(name, command)| CommandInfo {
        argument_hint: commands::all()
            .find(|known| known.name == name && !known.arguments.is_empty())
            .map(|known| known.arguments.to_owned()),
        name,
        description: command.description,
        source: CommandSource::Command,
    });
    let expansions = agent.expansions().names().into_iter().map(|known| CommandInfo {
        source: match known.kind {
            ExpansionKind::Skill => CommandSource::Skill,
            ExpansionKind::Template => CommandSource::Template,
        },
        name: known.name,
        description: known.description,
        argument_hint: known.argument_hint,
    });
    commands.chain(expansions).collect()
}

/// The most completions of a word.
const MAX_COMPLETIONS: usize = 50;

/// `complete`: the names of commands, or what can follow one.
pub fn completions(app: &ConversationApp, text: &str) -> ResponseData {
    let choices = match text.strip_prefix('/') {
        Some(name) if !name.contains(' ') => {
            let named =
                commands::descriptions(&app.agent).into_iter().filter(|(known, _)| known.starts_with(name));
            named.map(|(known, help)| choice(format!("/{known}"), help)).collect()
        }
        _ => complete(app, text, MAX_COMPLETIONS),
    };
    let completions =
        choices.into_iter().map(|choice| CompletionInfo { text: choice.text, detail: choice.detail });
    ResponseData::Completions { completions: completions.collect() }
}

/// `get_panels`, and what changes panels.
pub fn panels(app: &ConversationApp) -> ResponseData {
    let listed = app.panels.registry.list(app.agent.now()).into_iter().map(|panel| PanelInfo {
        id: panel.id,
        title: panel.title,
        state: if panel.hidden { PanelVisibility::Hidden } else { PanelVisibility::Shown },
        page: panel.page,
        pages: panel.pages,
    });
    let histories = app.agent.histories().into_iter().map(|(id, title)| PanelInfo {
        id,
        title: title.to_string(),
        state: PanelVisibility::Shown,
        page: 1,
        pages: 1,
    });
    ResponseData::Panels { panels: listed.chain(histories).collect(), open: app.open_items() }
}

/// `get_tools` and `switch_tool`.
pub fn tools(agent: &Agent) -> ResponseData {
    let tools = agent.tools().list().into_iter().map(|tool| ToolInfo {
        name: tool.name,
        source: tool.source.to_string(),
        state: tool.state.into(),
        declared: tool.is_declared,
        on_demand: tool.is_on_demand,
        summary: tool.summary,
    });
    ResponseData::Tools { tools: tools.collect() }
}

/// `compact`.
pub fn compacted(compacted: CompactionResult) -> ResponseData {
    let CompactionResult { summary, messages, first_kept, tokens_before, .. } = compacted;
    ResponseData::Compacted { summary, messages, first_kept, tokens_before }
}

//! What a response tells.

use hardpan_agent::{Agent, Compacted};
use hardpan_prompt::{Body, Part};

use super::response::{Amounts, CommandInfo, Data, Model, Queued, Session, Source, State, Stats, Usage};
use crate::chat::open::Opened;

/// How things are.
pub fn state(opened: &Opened, busy: bool) -> Data {
    let agent = &opened.agent;
    let waiting = agent.waiting();
    let typed =
        |queue: Vec<hardpan_agent::Accepted>| queue.into_iter().map(|accepted| accepted.typed).collect();
    Data::State(Box::new(State {
        model: Model::from(&agent.target()),
        thinking: agent.thinking().into(),
        layout: agent.layout(),
        busy,
        session: session(opened),
        queued: Queued { steering: typed(waiting.steering), follow_up: typed(waiting.follow_up) },
        usage: usage(agent),
    }))
}

/// The conversation.
pub fn session(opened: &Opened) -> Session {
    let (id, file) = opened.agent.session();
    // The file is made with the first entry; until then it has no name.
    let found = file.is_file().then(|| opened.store.find(None, &file.display().to_string()).ok());
    let name = found.flatten().and_then(|summary| summary.name);
    Session { id, file, name, message_count: opened.agent.messages().len() }
}

fn usage(agent: &Agent) -> Usage {
    let usage = agent.token_usage();
    Usage {
        last_request: usage.last_request.map(Amounts::from),
        session: usage.session.into(),
        requests: usage.requests,
    }
}

/// What the last request held.
pub fn context(agent: &Agent) -> Data {
    let breakdown = agent.breakdown().and_then(|breakdown| serde_json::to_value(breakdown).ok());
    Data::Context { breakdown: breakdown.unwrap_or_default() }
}

/// What was said, used and paid.
pub fn stats(opened: &Opened) -> Data {
    let agent = &opened.agent;
    let mut stats = Stats {
        session: session(opened),
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
            Body::User { .. } => stats.user_messages += 1,
            Body::Assistant { content, .. } => {
                stats.assistant_messages += 1;
                stats.tool_calls += content.iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
            }
            Body::ToolResult { is_error, .. } => {
                stats.tool_results += 1;
                stats.failed_results += usize::from(*is_error);
            }
            _ => {}
        }
    }
    Data::Stats(stats)
}

/// What can be called.
pub fn commands(agent: &Agent) -> Data {
    let commands = agent.commands().into_iter().map(|(name, command)| CommandInfo {
        name,
        description: command.description,
        argument_hint: None,
        source: Source::Command,
    });
    let expansions = agent.expansions().names().into_iter().map(|known| CommandInfo {
        source: if known.name.starts_with("skill:") { Source::Skill } else { Source::Template },
        name: known.name,
        description: known.description,
        argument_hint: known.argument_hint,
    });
    Data::Commands { commands: commands.chain(expansions).collect() }
}

/// What a compaction did.
pub fn compacted(compacted: Compacted) -> Data {
    let Compacted { summary, messages, first_kept, tokens_before, .. } = compacted;
    Data::Compacted { summary, messages, first_kept, tokens_before }
}

//! Which agent a conversation has: the one that was asked for, the conversation's, that of the settings, or
//! the default one.

use hardpan_agent::Conversation;
use hardpan_agent::expand::{AgentDefinition, DEFAULT_AGENT, Expansions};
use hardpan_tools::{ToolRegistry, ToolState};

use crate::notice::{Notice, NoticeSink};
use crate::options::TargetOptions;
use crate::settings::Settings;
use crate::workspace_context::PinnedContext;

/// There is no agent of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no agent {name:?}: there are {}", known.join(", "))]
pub struct UnknownAgent {
    /// The name that was asked for.
    pub name: String,
    /// Those that there are.
    pub known: Vec<String>,
}

/// The agent of this name; none for the default one.
pub fn find_agent<'a>(
    expansions: &'a Expansions,
    name: &str,
) -> Result<Option<&'a AgentDefinition>, UnknownAgent> {
    if name == DEFAULT_AGENT {
        return Ok(None);
    }
    let found = expansions.agents.iter().find(|agent| agent.name == name);
    found.map(Some).ok_or_else(|| {
        let names = expansions.agents.iter().map(|agent| agent.name.clone());
        UnknownAgent {
            name: name.to_owned(),
            known: [DEFAULT_AGENT.to_owned()].into_iter().chain(names).collect(),
        }
    })
}

/// The agent that a conversation begins or goes on with; none for the default one. An agent that the
/// conversation had and that is gone is told, and the default one goes on.
pub(crate) fn choose_agent(
    expansions: &Expansions,
    options: &TargetOptions,
    settings: &Settings,
    pinned: &PinnedContext,
    conversation: &Conversation,
    notices: &dyn NoticeSink,
) -> Result<Option<AgentDefinition>, UnknownAgent> {
    if let Some(asked) = &options.agent {
        return Ok(find_agent(expansions, asked)?.cloned());
    }
    let has_begun = !conversation.messages.is_empty();
    let Some(name) = pinned.agent.as_ref().or(settings.config.agent.as_ref().filter(|_| !has_begun)) else {
        return Ok(None);
    };
    match find_agent(expansions, name) {
        Ok(found) => Ok(found.cloned()),
        Err(unknown) if has_begun => {
            notices.notice(Notice::AgentGone(unknown));
            Ok(None)
        }
        Err(unknown) => Err(unknown),
    }
}

/// The options with the agent's own model, where nobody asked for another one and the conversation has none.
pub(crate) fn with_model_of(
    options: &TargetOptions,
    agent: Option<&AgentDefinition>,
    conversation: &Conversation,
) -> TargetOptions {
    let own = agent.and_then(|agent| agent.model.clone());
    let own = own.filter(|_| options.model.is_none() && conversation.messages.is_empty());
    TargetOptions { model: own.or_else(|| options.model.clone()), ..options.clone() }
}

/// Switches the tools off that an agent may not use, and those on that the agent before it could not use.
pub(crate) fn switch_tools(
    tools: &ToolRegistry,
    before: Option<&AgentDefinition>,
    now: Option<&AgentDefinition>,
) {
    let allows = |agent: Option<&AgentDefinition>, tool: &str| agent.is_none_or(|agent| agent.allows(tool));
    for tool in tools.list().into_iter().map(|listed| listed.name) {
        let state = match (allows(before, &tool), allows(now, &tool)) {
            (true, false) => ToolState::Off,
            (false, true) => ToolState::On,
            _ => continue,
        };
        // Every name is that of a tool that is there.
        let _ = tools.switch(&tool, state);
    }
}

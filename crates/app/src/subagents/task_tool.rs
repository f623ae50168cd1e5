//! [`TaskTool`]: the tool `task`, with which the model gives a task to a sub-agent.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use hardpan_agent::expand::{AgentDefinition, DEFAULT_AGENT};
use hardpan_agent::{Agent, WeakAgent};
use hardpan_context::{TaskPhrases, fill_template};
use hardpan_prompt::{Json, Tool as Declaration};
use hardpan_tools::{Effect, Tool, ToolInvocation, ToolOutcome, parse_arguments};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{Subagents, TaskOrder};
use crate::error_text::error_text;

/// Name of the tool.
pub(super) const TASK_TOOL: &str = "task";

/// The most agents that the declaration names, and the most characters about each.
const MAX_AGENTS: usize = 40;
const MAX_DESCRIPTION: usize = 160;

/// Starts sub-agents for the agent that owns it.
pub(crate) struct TaskTool {
    declaration: Declaration,
    subagents: Option<Arc<Subagents>>,
    owner: OnceLock<WeakAgent>,
    /// How deep the owner is: 0 for the agent of a conversation.
    depth: u32,
    slots: Semaphore,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    agent: Option<String>,
    task: String,
    #[serde(default)]
    context: TaskContext,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TaskContext {
    #[default]
    New,
    Fork,
}

impl TaskTool {
    /// The tool of an agent that is this deep.
    pub fn new(subagents: Arc<Subagents>, depth: u32) -> Self {
        let declaration = declaration(&subagents.settings.texts.phrases.task, &subagents.agents);
        let slots = Semaphore::new(subagents.limits.parallel.max(1) as usize);
        TaskTool { declaration, subagents: Some(subagents), owner: OnceLock::new(), depth, slots }
    }

    /// The tool for requests that are only shown.
    pub fn declared_only(phrases: &TaskPhrases, agents: &[AgentDefinition]) -> Self {
        let (declaration, owner) = (declaration(phrases, agents), OnceLock::new());
        TaskTool { declaration, subagents: None, owner, depth: 0, slots: Semaphore::new(1) }
    }

    /// Names the agent that the tool works for.
    pub fn serve(&self, agent: &Agent) {
        let _ = self.owner.set(agent.downgrade());
    }
}

fn declaration(phrases: &TaskPhrases, agents: &[AgentDefinition]) -> Declaration {
    let name = |agent: &AgentDefinition| {
        let description: String = agent.description.chars().take(MAX_DESCRIPTION).collect();
        match description.is_empty() {
            true => agent.name.clone(),
            false => fill_template(&phrases.agent, &[("name", &agent.name), ("description", &description)]),
        }
    };
    let values = [("name", DEFAULT_AGENT), ("description", &*phrases.default_agent)];
    let default = fill_template(&phrases.agent, &values);
    let listed: Vec<String> = [default]
        .into_iter()
        .chain(agents.iter().filter(|agent| agent.listed).take(MAX_AGENTS).map(name))
        .collect();
    let agents = fill_template(&phrases.agents, &[("agents", &listed.join(", "))]);
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut context = text(&phrases.context_argument);
    context["enum"] = json!(["new", "fork"]);
    Declaration {
        name: TASK_TOOL.into(),
        description: format!("{} {agents}", phrases.tool).into(),
        parameters: Json::new(&json!({
            "type": "object",
            "properties": {
                "agent": {"type": "string"},
                "task": text(&phrases.task_argument),
                "context": context,
            },
            "required": ["task"],
        })),
        snippet: None,
        guidelines: Vec::new(),
    }
}

impl Tool for TaskTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    // What the sub-agent changes, it asks about itself.
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn runs_in_parallel(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let arguments: Arguments = match parse_arguments(&call) {
                Ok(arguments) => arguments,
                Err(outcome) => return outcome,
            };
            let owner = self.owner.get().and_then(WeakAgent::upgrade);
            let Some((subagents, owner)) = self.subagents.as_ref().zip(owner) else {
                return ToolOutcome::failed("The conversation is closed.");
            };
            // Never closed: an error is none.
            let _slot = self.slots.acquire().await;
            let order = TaskOrder {
                call_id: call.id,
                agent: arguments.agent.as_deref().unwrap_or(DEFAULT_AGENT),
                task: &arguments.task,
                is_fork: arguments.context == TaskContext::Fork,
                depth: self.depth,
            };
            match subagents.start(&owner, order).await {
                Ok(child) => child.run(subagents, call.progress).await,
                Err(error) => {
                    ToolOutcome::failed(format!("The sub-agent cannot begin: {}.", error_text(&error)))
                }
            }
        })
    }
}

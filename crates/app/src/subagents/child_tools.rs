//! The tools of a sub-agent: those of its definition. Where its requests begin like those of the agent
//! that started it, the others are declared, too, and refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::future::BoxFuture;
use hardpan_agent::Agent;
use hardpan_agent::expand::AgentDefinition;
use hardpan_context::fill_template;
use hardpan_prompt::Tool as Declaration;
use hardpan_tools::{
    CallSubject, Effect, ResultDisplay, SubjectKind, Tool, ToolInvocation, ToolListing, ToolOutcome,
    ToolRegistry, ToolSource, ToolState,
};
use serde_json::Value;

use super::Subagents;
use super::task_tool::{TASK_TOOL, TaskTool};
use crate::mcp::finder_source;

impl Subagents {
    /// Only the tools that the agent may use.
    pub(super) fn own_tools(
        &self,
        parent: &Agent,
        definition: Option<&AgentDefinition>,
        nested: Option<&Arc<TaskTool>>,
    ) -> ToolRegistry {
        let tools = ToolRegistry::default();
        for listed in parent.tools().list() {
            let is_built_in = listed.source == ToolSource::built_in();
            let is_free = !is_built_in || self.free_tools.contains(&listed.name);
            let is_allowed = definition.is_none_or(|agent| agent.allows(&listed.name));
            let tool: Arc<dyn Tool> = match parent.tools().describe(&listed.name) {
                Some(_) if &*listed.name == TASK_TOOL => match nested.filter(|_| is_allowed) {
                    Some(nested) => nested.clone(),
                    None => continue,
                },
                Some(tool) if is_free && is_allowed && listed.state == ToolState::On => self.locked(tool),
                _ => continue,
            };
            // Every name is that of one tool.
            let _ = tools.register(&listed.source, tool);
        }
        tools.set_on_demand(parent.tools().on_demand());
        tools
    }

    /// All tools of the agent that starts it, declared alike. Those that the sub-agent may not use are
    /// refused.
    pub(super) fn shared_tools(
        &self,
        parent: &Agent,
        definition: Option<&AgentDefinition>,
        nested: Option<&Arc<TaskTool>>,
    ) -> ToolRegistry {
        let phrases = &self.settings.texts.phrases.task;
        let usable = self.own_tools(parent, definition, nested).list();
        let names: Vec<&str> = usable.iter().map(|tool| &*tool.name).collect();
        let agent = definition.map_or(hardpan_agent::expand::DEFAULT_AGENT, |agent| &agent.name);
        // Whoever may use a tool that is called through another one may use that, too.
        let listed = parent.tools().list();
        let reaches = |tool: &ToolListing| definition.is_none_or(|agent| agent.allows(&tool.name));
        let calls_servers = listed.iter().any(|tool| tool.is_on_demand && reaches(tool));
        parent.tools().copy_with(|source, tool| {
            let name = &*tool.declaration().name;
            let is_finder = *source == finder_source() && calls_servers;
            let is_allowed = is_finder || definition.is_none_or(|agent| agent.allows(name));
            let is_bound = *source == ToolSource::built_in() && !self.free_tools.contains(name);
            let values = [("agent", agent), ("name", name), ("tools", &*names.join(", "))];
            let reason = match nested {
                Some(nested) if name == TASK_TOOL && is_allowed => return nested.clone(),
                None if name == TASK_TOOL => &phrases.refused_task,
                _ if !is_allowed => &phrases.refused,
                _ if is_bound => &phrases.refused_panel,
                _ => return self.locked(tool.clone()),
            };
            Arc::new(RefusedTool { tool: tool.clone(), reason: fill_template(reason, &values) })
        })
    }

    fn locked(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        match tool.subject_kind() {
            SubjectKind::File => Arc::new(LockedTool { tool, locks: self.file_locks.clone() }),
            SubjectKind::Command | SubjectKind::Url | SubjectKind::Other => tool,
        }
    }
}

/// A tool that is declared and may not be used.
struct RefusedTool {
    tool: Arc<dyn Tool>,
    reason: String,
}

impl Tool for RefusedTool {
    fn declaration(&self) -> &Declaration {
        self.tool.declaration()
    }

    // Nobody is asked about a call that does nothing.
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, _call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::failed(self.reason.as_str())))
    }
}

/// A tool that changes one file at a time, whichever sub-agent calls it.
struct LockedTool {
    tool: Arc<dyn Tool>,
    locks: Arc<FileLocks>,
}

impl Tool for LockedTool {
    fn declaration(&self) -> &Declaration {
        self.tool.declaration()
    }

    fn effect(&self, arguments: &Value) -> Effect {
        self.tool.effect(arguments)
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        self.tool.subject(arguments)
    }

    fn subject_kind(&self) -> SubjectKind {
        self.tool.subject_kind()
    }

    fn result_display(&self) -> ResultDisplay {
        self.tool.result_display()
    }

    fn runs_in_parallel(&self) -> bool {
        self.tool.runs_in_parallel()
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let arguments = call.arguments.value();
            let place = match self.tool.subject(&arguments) {
                CallSubject::File(path) if self.tool.effect(&arguments) == Effect::Changes => {
                    call.scope.resolve_for_write(&path).ok()
                }
                _ => None,
            };
            let lock = place.map(|place| self.locks.of(place));
            let _held = match &lock {
                Some(lock) => Some(lock.lock().await),
                None => None,
            };
            self.tool.run(call).await
        })
    }
}

/// A lock for each file that sub-agents change.
#[derive(Default)]
pub(crate) struct FileLocks(Mutex<BTreeMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>);

impl FileLocks {
    fn of(&self, place: PathBuf) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        if let Some(lock) = locks.get(&place).and_then(Weak::upgrade) {
            return lock;
        }
        let lock = Arc::default();
        locks.insert(place, Arc::downgrade(&lock));
        lock
    }
}

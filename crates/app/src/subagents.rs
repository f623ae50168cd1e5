//! `Subagents`: agents that work on a task beside the conversation that gives it to them, through the
//! tool `task`.
//!
//! A sub-agent is an [`Agent`] with a conversation of its own. It has the tools, the model and the budget
//! of its definition, and the approvals, the sandbox, the journal and the scope of the agent that started
//! it. It runs inside the call of the tool: whatever ends the call ends the sub-agent.

mod approvals; // ChildApprovals: one question at a time, with the name of the sub-agent
mod budget; // TaskLimits, BudgetGuard: how much a sub-agent may use
mod child; // Child: one sub-agent at work
mod child_context; // what a sub-agent sees of the folder
mod child_tools; // the tools of a sub-agent
mod task_tool; // TaskTool: the tool `task`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hardpan_agent::events::TaskPrefix;
use hardpan_agent::expand::{AgentDefinition, DEFAULT_AGENT};
use hardpan_agent::{
    Agent, AgentSettings, ApprovalHandler, ChildStart, ClientFactory, ContextSource, ConversationError,
    PreviewError, RequestPreview, SecretSettings, Setup,
};
use hardpan_context::{KeepLevel, Target, fill_template};
use hardpan_economy::Rates;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::TokenUsage;
use hardpan_session::{Header, TASKS_EXTENSION};
use hardpan_tools::{Journal, Scope, ToolRegistry, ToolSource};

use crate::agents::UnknownAgent;
use crate::audit_log::AuditLog;
use crate::clock::now;
use crate::learned_state::LearnedState;
use crate::options::TargetOptions;
use crate::provider_connection::{ProviderConnection, RoutedConnection};
use crate::session_folder::new_id;
use crate::settings::{PrefixSetting, Settings, SubagentMode};
use crate::target::{TargetError, apply_learned_factor, resolve_target};
use crate::telemetry::ConversationTelemetry;
use crate::workspace_context::WorkspaceContext;
use approvals::ChildApprovals;
pub(crate) use approvals::Questions;
use child::{Child, task_input};
use child_context::{OwnPrefixContext, SharedPrefixContext};
pub(crate) use child_tools::FileLocks;
use task_tool::TaskTool;

pub use budget::TaskLimits;

/// How many requests a sub-agent is expected to send after its first one: what each of them reads again
/// decides which beginning is cheaper.
const FURTHER_REQUESTS: f64 = 4.0;

/// What the sub-agents of a conversation are made from.
pub(crate) struct Subagents {
    pub settings: Arc<Settings>,
    /// Those that there are besides the default one.
    pub agents: Vec<AgentDefinition>,
    pub context: Arc<WorkspaceContext>,
    pub connection: Arc<ProviderConnection>,
    pub approvals: Arc<dyn ApprovalHandler>,
    pub scope: Scope,
    pub secrets: SecretSettings,
    pub agent_settings: AgentSettings,
    pub journal: Option<Arc<Journal>>,
    pub log: Arc<AuditLog>,
    pub telemetry: ConversationTelemetry,
    pub limits: TaskLimits,
    /// The tools that belong to no conversation.
    pub free_tools: BTreeSet<Arc<str>>,
    /// Whose turn it is to ask a person.
    pub questions: Arc<Questions>,
    pub file_locks: Arc<FileLocks>,
}

/// Why a sub-agent cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    #[error(transparent)]
    Preview(#[from] PreviewError),
}

/// A task, as the model gives it.
#[derive(Clone, Copy)]
pub(crate) struct TaskOrder<'a> {
    /// The id of the call.
    pub call_id: &'a str,
    /// Name of the agent.
    pub agent: &'a str,
    /// What is to be done.
    pub task: &'a str,
    /// Whether the sub-agent sees the conversation.
    pub is_fork: bool,
    /// How deep the agent is that gives the task; 0 for that of the conversation.
    pub depth: u32,
}

/// Whether conversations offer the tool `task`.
pub(crate) fn offers_tasks(settings: &Settings, agents: &[AgentDefinition]) -> bool {
    match settings.config.subagents.unwrap_or_default() {
        SubagentMode::On => true,
        SubagentMode::Off => false,
        SubagentMode::Auto => agents.iter().any(|agent| agent.path.is_some() && agent.listed),
    }
}

/// Declares the tool `task` for requests that are only shown.
pub(crate) fn register_shown_tool(settings: &Settings, agents: &[AgentDefinition], tools: &ToolRegistry) {
    if offers_tasks(settings, agents) {
        register(tools, Arc::new(TaskTool::declared_only(&settings.texts.phrases.task, agents)));
    }
}

fn register(tools: &ToolRegistry, tool: Arc<TaskTool>) {
    // Tests check that no other tool has its name.
    let _ = tools.register(&ToolSource::built_in(), tool);
}

/// The folder of the sub-agents' sessions, beside the session that started them.
fn task_folder(session: &Path) -> PathBuf {
    session.with_extension(TASKS_EXTENSION)
}

impl Subagents {
    /// Registers the tool `task`. It works once [`TaskTool::serve`] has named the agent.
    pub fn register_tool(self: &Arc<Self>, tools: &ToolRegistry) -> Arc<TaskTool> {
        let tool = Arc::new(TaskTool::new(self.clone(), 0));
        register(tools, tool.clone());
        tool
    }

    /// The definition of an agent; none for the default one.
    fn find_agent(&self, name: &str) -> Result<Option<&AgentDefinition>, UnknownAgent> {
        let found = self.agents.iter().find(|agent| agent.name == name);
        if found.is_some() || name == DEFAULT_AGENT {
            return Ok(found);
        }
        let names = self.agents.iter().map(|agent| agent.name.clone());
        let known = [DEFAULT_AGENT.to_owned()].into_iter().chain(names).collect();
        Err(UnknownAgent { name: name.to_owned(), known })
    }

    /// Prepares a sub-agent for a task. Nothing has been sent yet.
    async fn start(self: &Arc<Self>, parent: &Agent, order: TaskOrder<'_>) -> Result<Child, StartError> {
        let definition = self.find_agent(order.agent)?;
        let target = self.choose_target(parent, definition)?;
        let parent_target = parent.target();
        let is_same_model =
            target.provider == parent_target.provider && target.model.id == parent_target.model.id;
        let prefix = match self.settings.config.task.prefix.unwrap_or_default() {
            _ if order.is_fork => TaskPrefix::Fork,
            _ if !is_same_model => TaskPrefix::Own,
            PrefixSetting::Own => TaskPrefix::Own,
            PrefixSetting::Shared => TaskPrefix::Shared,
            PrefixSetting::Auto => self.cheaper_prefix(parent, definition, &target, order).await?,
        };
        let (agent, tool, path) = self.make_agent(parent, definition, target, prefix, order).await?;
        if let Some(tool) = tool {
            tool.serve(&agent);
        }
        self.log.follow_subagent(&agent, order.agent);
        self.telemetry.follow_subagent(&agent, parent, order.agent, order.call_id);
        parent.guard_calls_of(&agent);
        let input = task_input(&self.settings.texts.phrases.task, definition, prefix, order);
        let limits = self.limits.narrowed(definition.map(|agent| agent.budget).unwrap_or_default());
        Ok(Child::new(agent, parent, order, prefix, input, limits, path))
    }

    fn choose_target(
        &self,
        parent: &Agent,
        definition: Option<&AgentDefinition>,
    ) -> Result<Target, TargetError> {
        let Some(model) = definition.and_then(|agent| agent.model.clone()) else {
            return Ok(parent.target());
        };
        let options = TargetOptions { model: Some(model), ..TargetOptions::default() };
        let mut target = resolve_target(&options, &self.settings, None)?;
        apply_learned_factor(&mut target, &LearnedState::load(&self.settings.user_folders));
        Ok(target)
    }

    /// Which beginning is cheaper: one that the agent's own requests have put into the cache, or a short
    /// one of its own.
    async fn cheaper_prefix(
        self: &Arc<Self>,
        parent: &Agent,
        definition: Option<&AgentDefinition>,
        target: &Target,
        order: TaskOrder<'_>,
    ) -> Result<TaskPrefix, StartError> {
        let mut prices = Vec::new();
        for prefix in [TaskPrefix::Own, TaskPrefix::Shared] {
            let (agent, ..) = self.make_agent(parent, definition, target.clone(), prefix, order).await?;
            let input = task_input(&self.settings.texts.phrases.task, definition, prefix, order);
            let preview = agent.preview_request(Some(input), None).await?;
            let price = expected_price(&preview, &parent.predict_bill(&preview));
            tracing::debug!(?prefix, price, "price of a sub-agent's requests");
            prices.push(price);
        }
        Ok(if prices[1] < prices[0] { TaskPrefix::Shared } else { TaskPrefix::Own })
    }

    /// Makes the agent, its own tool `task` if it has one, and the path of its session.
    async fn make_agent(
        self: &Arc<Self>,
        parent: &Agent,
        definition: Option<&AgentDefinition>,
        target: Target,
        prefix: TaskPrefix,
        order: TaskOrder<'_>,
    ) -> Result<(Agent, Option<Arc<TaskTool>>, PathBuf), StartError> {
        let (parent_session, parent_path) = parent.session();
        let header = self.header(&parent_session, order);
        let time = header.time.unwrap_or_default().strftime("%Y%m%dT%H%M%SZ");
        let path = task_folder(&parent_path).join(format!("{time}-{}.jsonl", header.id));
        let start = match prefix {
            TaskPrefix::Own => ChildStart::Alone,
            TaskPrefix::Shared => ChildStart::SharedPrefix,
            TaskPrefix::Fork => ChildStart::Fork,
        };
        let conversation = parent.begin_child(start, &path, header).await?;
        let depth = order.depth + 1;
        let nested = (depth < self.limits.depth).then(|| Arc::new(TaskTool::new(self.clone(), depth)));
        let text = definition.map(|agent| agent.text.as_str());
        let is_own = prefix == TaskPrefix::Own;
        let (tools, context_source): (_, Arc<dyn ContextSource>) = if is_own {
            let context = OwnPrefixContext::new(self.context.clone(), text);
            (self.own_tools(parent, definition, nested.as_ref()), Arc::new(context))
        } else {
            let files = if prefix == TaskPrefix::Shared { parent.prefix_files() } else { Vec::new() };
            let context = SharedPrefixContext::new(self.context.clone(), files);
            (self.shared_tools(parent, definition, nested.as_ref()), Arc::new(context))
        };
        let client_factory: Arc<dyn ClientFactory> = if is_own {
            self.connection.clone()
        } else {
            // Providers that route by the session find the cache only there.
            Arc::new(RoutedConnection::new(self.connection.clone(), parent_session))
        };
        let is_parents = |of: &Target| of.provider == target.provider && of.model.id == target.model.id;
        let thinking = match is_parents(&parent.target()) {
            true => parent.thinking(),
            false => ThinkingSetting::Default,
        };
        let approvals = ChildApprovals::new(self.approvals.clone(), order.agent, self.questions.clone());
        let limits = self.limits.narrowed(definition.map(|agent| agent.budget).unwrap_or_default());
        let setup = Setup {
            texts: Arc::new(self.settings.texts.clone()),
            context_source,
            client_factory,
            approval_handler: Arc::new(approvals),
            clock: Arc::new(now),
            tools,
            edit_block_tool: Some(hardpan_tools::edit_block_tool(self.journal.clone())),
            pages: None,
            shell: None,
            scope: self.scope.clone(),
            expansions: Default::default(),
            target,
            layout: parent.layout(),
            keep: if is_own { KeepLevel::All } else { parent.keep() },
            cache_lifetime: parent.cache_lifetime(),
            thinking,
            secrets: self.secrets.clone(),
            settings: AgentSettings {
                max_turns: limits.requests,
                message_tool: self.agent_settings.message_tool && !is_own,
                ..self.agent_settings
            },
        };
        Ok((Agent::new(setup, conversation), nested, path))
    }

    fn header(&self, parent_session: &str, order: TaskOrder<'_>) -> Header {
        static COUNT: OnceLock<std::sync::atomic::AtomicU64> = OnceLock::new();
        let count = COUNT.get_or_init(Default::default).fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = &self.scope.folder;
        // Several sub-agents may begin in the same moment.
        let id = new_id(&folder.join(count.to_string()));
        let mut extra = serde_json::Map::new();
        let origin =
            serde_json::json!({"session": parent_session, "call": order.call_id, "agent": order.agent});
        extra.insert("task_of".to_owned(), origin);
        Header { id: id.into(), time: Some(now()), cwd: folder.to_string_lossy().into(), extra }
    }
}

/// What a sub-agent's requests are expected to cost, in tokens of plain input: the first one as predicted,
/// those after it by what they read again.
fn expected_price(preview: &RequestPreview, first: &TokenUsage) -> f64 {
    let total = first.prompt();
    let rates = Rates::for_model(&preview.target.model, &preview.target.profile, total);
    let (read, write) = rates.ratios();
    let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, .. } = *first;
    input as f64
        + cache_read as f64 * read
        + cache_write_5m as f64 * write
        + cache_write_1h as f64 * rates.long_write_ratio()
        + FURTHER_REQUESTS * total as f64 * read
}

/// The instructions of an agent, for a prompt that cannot hold them in its system prompt.
fn instructions(phrases: &hardpan_context::TaskPhrases, definition: Option<&AgentDefinition>) -> String {
    let filled = |agent: &AgentDefinition| fill_template(&phrases.own_instructions, &[("text", &agent.text)]);
    definition.map(filled).unwrap_or_default()
}

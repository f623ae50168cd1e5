//! [`Setup`]: everything an agent is given to work with.
//!
//! The agent reads no file and no clock and opens no connection by itself. It asks a
//! [`ContextSource`] for the workspace, a [`ClientFactory`] for a model, and an [`ApprovalHandler`]
//! for permission; tests pass fakes for each.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_context::{
    AssembledPrompt, Coupling, KeepLevel, LayoutName, LifetimeSetting, PromptTexts, RenderCache,
    RepositoryView, Snapshot, SnapshotError, Target,
};
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{DeniedBy, TokenUsage};
use hardpan_providers::Client;
use hardpan_tools::{CallSubject, PageReader, Scope, Tool, ToolClaim, ToolRegistry};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

use crate::expand::Expansions;
use crate::queue::QueueMode;
use crate::secret_guard::SecretSettings;

/// The dependencies and initial choices of an agent.
pub struct Setup {
    /// Prompt texts and phrases that the model reads.
    pub texts: Arc<PromptTexts>,
    /// Observes the workspace at the start of a run and after changes.
    pub context_source: Arc<dyn ContextSource>,
    /// Builds the client for a model.
    pub client_factory: Arc<dyn ClientFactory>,
    /// Decides whether a tool call that changes something may run.
    pub approval_handler: Arc<dyn ApprovalHandler>,
    /// The current time; the agent reads no other clock.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The tools. They may change while the agent runs, with effect from the next request on.
    pub tools: ToolRegistry,
    /// Carries out the edit blocks of models without tools; `None` where nothing may be changed.
    pub edit_block_tool: Option<Arc<dyn Tool>>,
    /// Fetches the pages that prompts name; `None` leaves them alone.
    pub pages: Option<Arc<PageReader>>,
    /// Runs the commands that the user types after `!`; `None` disables them.
    pub shell: Option<Arc<dyn Tool>>,
    /// The folders that tools may read and write.
    pub scope: Scope,
    /// The skills and templates that inputs can call.
    pub expansions: Expansions,
    /// The provider and model of the first request.
    pub target: Target,
    /// The layout that orders the prompt.
    pub layout: LayoutName,
    /// How much of the conversation a fold may take out of requests.
    pub keep: KeepLevel,
    /// For how long the provider is asked to keep what requests cache.
    pub cache_lifetime: LifetimeSetting,
    /// How much the model thinks.
    pub thinking: ThinkingSetting,
    /// What to do about secrets in requests.
    pub secrets: SecretSettings,
    /// Queueing, parallelism and limits.
    pub settings: AgentSettings,
}

/// How an agent queues, parallelises and limits its work.
#[derive(Clone, Copy, Debug)]
pub struct AgentSettings {
    /// How many queued steering inputs are delivered at once.
    pub steering: QueueMode,
    /// How many queued follow-ups are delivered at once.
    pub follow_up: QueueMode,
    /// Whether the read-only tool calls of one answer run in parallel.
    pub read_calls: ReadCallMode,
    /// How long an event handler may take before it is abandoned and reported.
    pub handler_timeout: Duration,
    /// Whether the model may summarise and delete messages of the conversation.
    pub message_tool: bool,
    /// The run ends with an error after this many turns.
    pub max_turns: u32,
    /// Share of the context window (0 to 1) above which the conversation is compacted before the
    /// next request; 0 disables that.
    pub compact_at: f64,
}

impl Default for AgentSettings {
    fn default() -> Self {
        AgentSettings {
            steering: QueueMode::OneAtATime,
            follow_up: QueueMode::OneAtATime,
            read_calls: ReadCallMode::Sequential,
            handler_timeout: Duration::from_secs(30),
            message_tool: false,
            max_turns: 1000,
            compact_at: 0.8,
        }
    }
}

/// How the read-only tool calls of one answer are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadCallMode {
    /// One after the other, like all other calls.
    #[default]
    Sequential,
    /// At the same time. Events, approvals and results stay in the order of the calls.
    Parallel,
}

/// Observes what the agent works in: open files, the tree, git, symbols, project instructions.
pub trait ContextSource: Send + Sync {
    /// Returns everything a request needs except the conversation, the tools and the layout's
    /// state. It may read files and take its time: it is called on a blocking thread, before
    /// each request of a run.
    fn observe(&self, request: &ObserveRequest) -> Result<Snapshot, ObserveError>;

    /// Adds the panels, as they are now, to what was observed. Called for every request, so it must be
    /// quick: it reads neither files nor clocks.
    fn add_panels(&self, _snapshot: &mut Snapshot) {}

    /// Which files refer to each other. Called once, on a blocking thread, before the first request
    /// of the `tiers` layout.
    fn coupling(&self) -> Coupling {
        Coupling::default()
    }

    /// Shows a file from the next request on, because the model wants to edit it without having seen
    /// it. The path is as the model wrote it. Returns whether the file will be shown.
    fn open_file(&self, _path: &str) -> bool {
        false
    }

    /// The user's local date at a moment, such as `2026-08-14`. Costs are summed by it.
    fn day(&self, now: Timestamp) -> String {
        crate::session_ledger::day_of(now, &TimeZone::UTC)
    }
}

/// Why the agent does not know what it works in. A request is never sent without that: the run ends
/// with this error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// What was found contradicts itself.
    #[error("cannot show the workspace to the model: {0}")]
    Invalid(#[from] SnapshotError),
    /// The [`ContextSource`] panicked.
    #[error("observing the workspace failed; this is a bug in hardpan: please report it")]
    Panicked,
    /// Nobody has looked yet.
    #[error("nobody has observed the workspace yet; this is a bug in hardpan: please report it")]
    NotObserved,
}

/// Why the agent observes the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObserveReason {
    /// A run starts: observe everything.
    RunStarted,
    /// A run goes on with another request: observe what may have changed since the last one. What
    /// takes long can wait for the next run.
    NextRequest,
    /// A request is only shown: observe everything, as for a run, and remember nothing of it.
    Preview,
}

/// What the agent wants to know about the workspace, and what for.
#[derive(Clone, Debug)]
pub struct ObserveRequest {
    /// The agent's current time.
    pub now: Timestamp,
    /// Why the agent observes the workspace now.
    pub reason: ObserveReason,
    /// The user's prompt, so that the observation can be chosen to fit it.
    pub prompt: String,
    /// The model's context window, in tokens.
    pub window: usize,
    /// Model tokens per counted token, from the catalogue. The learned factor is not used here: it
    /// would change from session to session, and the chosen context with it.
    pub token_factor: f64,
    /// What the layout shows of the repository before anyone asks.
    pub repository_view: RepositoryView,
    /// How often the layout has laid the beginning of its prompts anew; none if it never keeps
    /// former items there.
    pub bases: Option<u32>,
    /// What reading a token from the provider's cache costs, as a share of plain input.
    pub cache_read_share: f64,
    /// Files that the model has seen whole and whose current content must be included: the path,
    /// and whether the file has changed since the model first saw it.
    pub known_files: Vec<(String, bool)>,
}

/// Why there is no client for a model. Its message is shown to the user.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ClientFactoryError(#[from] Box<dyn Error + Send + Sync>);

impl ClientFactoryError {
    /// Wraps the error of a [`ClientFactory`].
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        ClientFactoryError(Box::new(error))
    }
}

/// Builds clients for models.
pub trait ClientFactory: Send + Sync {
    /// Builds a client for a model. `session` identifies the conversation to providers that route
    /// by it.
    fn client(&self, target: &Target, session: &str) -> Result<Client, ClientFactoryError>;

    /// Whether a simulator answers, so that nothing is paid.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Called with the usage of each answered request, to improve token estimates, for example.
    fn record_usage(
        &self,
        _target: &Target,
        _assembled: &AssembledPrompt,
        _memo: &RenderCache,
        _usage: &TokenUsage,
    ) {
    }
}

/// Decides whether tool calls may run, and asks the user for text.
pub trait ApprovalHandler: Send + Sync {
    /// Decides about one tool call. There is no time limit: a person may be asked.
    fn approve<'a>(&'a self, question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision>;

    /// Decides whether a page that the user's prompt names may be fetched. The question is that of a
    /// call of `fetch`.
    fn approve_page<'a>(&'a self, question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.approve(question)
    }

    /// Decides whether a page that was fetched becomes a part of the requests, now that its size is
    /// known.
    fn accept_page<'a>(&'a self, _page: &'a FetchedPage) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(std::future::ready(ApprovalDecision::Allow))
    }

    /// Asks the user for a line of text; `None` if nobody is there to answer.
    fn ask_user<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// A page that was fetched and not sent yet.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchedPage {
    /// Its address, as the prompt names it.
    pub url: String,
    /// Tokens of its text.
    pub tokens: usize,
    /// What sending it for the first time costs; none if nothing is paid, or the price is not known.
    pub dollars: Option<f64>,
}

/// A tool call that needs permission because it changes something.
#[derive(Clone, Debug, Serialize)]
pub struct ApprovalRequest {
    /// The id that the model gave the call.
    pub call_id: Arc<str>,
    /// Name of the tool, as declared to the model.
    pub tool_name: Arc<str>,
    /// The call's arguments, parsed.
    pub args: Value,
    /// What the call acts on: what rules match.
    pub subject: CallSubject,
    /// What the tool's server says about it, which nobody has checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ToolClaim>,
    /// Name of the sub-agent that makes the call; none for the agent of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
    /// Why a handler wants a person to decide, whatever rules say; none if rules may decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handler_reason: Option<Arc<str>>,
}

/// Whether a tool call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// The call runs.
    Allow,
    /// The call runs with other arguments: the person changed them.
    AllowChanged {
        /// The arguments that it runs with.
        args: Value,
        /// What was changed; the model reads it below the result.
        note: String,
    },
    /// The call does not run.
    Deny {
        /// Who or what decided.
        by: DeniedBy,
        /// Why; the model reads it.
        reason: String,
    },
}

/// Denies every call that needs permission: for runs without a user to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl ApprovalHandler for DenyAll {
    fn approve<'a>(&'a self, _question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        let reason = "nobody is there to ask whether it may; only tools that read can be used";
        Box::pin(std::future::ready(ApprovalDecision::Deny { by: DeniedBy::Default, reason: reason.into() }))
    }
}

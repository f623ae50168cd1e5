//! The agent loop: it turns what the user types into requests, tool calls and a stored
//! conversation.
//!
//! The principal type is [`Agent`]: one conversation and everything that happens in it.
//!
//! - [`Agent::prompt`] handles an input to its end, [`Agent::queue`] handles it while a run is in
//!   progress, [`Agent::abort`] stops the run. Whatever happens, the conversation stays valid, and
//!   every acknowledged message is stored.
//! - [`Events`] delivers everything that happens as an [`AgentEvent`] to faces, and asks handlers,
//!   in order.
//! - [`Setup`] holds the agent's dependencies, all passed in: the workspace, the models, the
//!   approvals, the clock, the tools.
//! - [`Conversation`] is the branch of a session that the agent continues.
//!
//! ```no_run
//! # use hardpan_agent::{Agent, Conversation, Input, InputOutcome, InputSource, Setup};
//! # async fn example(setup: Setup, conversation: Conversation) -> Result<(), hardpan_agent::AgentError> {
//! let agent = Agent::new(setup, conversation);
//! let mut events = agent.events().stream();
//! tokio::spawn(async move {
//!     while let Some(event) = events.recv().await {
//!         println!("{}", event.name());
//!     }
//! });
//! agent.start().await;
//! let input = Input {
//!     text: "What does this crate do?".into(),
//!     below: None,
//!     images: Vec::new(),
//!     source: InputSource::Interactive,
//!     id: None,
//! };
//! if let InputOutcome::Ran(end) = agent.prompt(input).await? {
//!     println!("the run ended: {end:?}");
//! }
//! agent.shutdown().await
//! # }
//! ```
//!
//! An input passes these stages: slash command, `input` event, skill or template,
//! `before_agent_start` event, turns, follow-ups, `agent_end` event. `docs/agent.md` describes the
//! order of everything within them.

mod agent; // Agent: one conversation, as a handle that clones share
mod answer_stream; // receiving an answer, piece by piece
pub mod approval; // ApprovalRule: which tool calls may run without asking
mod aside; // requests on behalf of somebody else, such as a server
mod billing; // recording what each request cost, and why cached tokens were paid for again
mod cache_warmth; // CacheWarmth: when the provider's cache expires, and pinging it
mod child_conversation; // the conversations of sub-agents
mod command; // Command: what the user types as /name arguments
mod compact; // compaction: a summary in place of old messages
mod conversation; // Conversation: the messages in memory, and the session file
mod edit_blocks; // the edit blocks of an answer: found, carried out, told
mod error; // AgentError: why the agent did not do what it was asked to do
pub mod events; // Events: every event type, streams for faces, handlers
pub mod expand; // skills and templates: /skill:name args, /name args
mod extension_changes; // what extensions change in requests, and whom a loss is due to
mod extension_runs; // ExtensionRuns: what extensions begin by themselves, and how often
mod failure_guard; // FailureGuard: stops a call that fails again and again
mod input; // an input's way to the model: input event, expansion
mod last_request; // LastRequest: the last request as it was sent
mod layout_state; // the layout's state between requests
mod message_states; // summarising and deleting messages
mod message_tool; // the tool with which the model does that
mod model_selection; // ModelSelection: model, layout and thinking of the next request
mod navigate; // continuing from an earlier entry of the session
mod pages; // the pages that prompts name, as items
mod payload; // the body of a request, and what handlers put in its place
mod preview; // RequestPreview: the next request as it would be sent
mod queue; // the queues: inputs typed while a run is in progress
mod recall; // stored messages, for faces and for the tool recall
mod request; // building a request: snapshot, assembly, validation
mod resources; // skills and templates that handlers name
mod run; // one run: from a prompt until nothing more happens by itself
mod run_status; // RunStatus: what the agent is doing; one thing at a time
mod secret_guard; // SecretGuard: secrets in requests, found and decided about
mod sent_request; // SentRequest: one of the last two requests, to the byte
mod session_control; // switching sessions, names, labels, the state of extensions
pub mod session_ledger; // SessionLedger: what every request was charged for
mod setup; // Setup: the agent's dependencies
mod shell; // shell commands that the user runs with ! and !!
mod spending; // Spending: tokens and dollars
mod stored_knowledge; // what tool results tell about files, as session entries store it
mod tool_calls; // running the tool calls of an answer
mod tool_switches; // which tools are switched off, stored in the session
mod turn; // one turn: a request, its answer, what comes next

pub use agent::{Agent, InputOutcome, WeakAgent};
pub use aside::{AsideAnswer, AsideRequest};
pub use cache_warmth::CacheWarmth;
pub use child_conversation::ChildStart;
pub use command::{ArgumentChoice, Command, CommandPrompt};
pub use compact::{CompactReason, CompactionForecast, CompactionPrice, CompactionResult};
pub use conversation::{Conversation, ConversationError};
pub use edit_blocks::EditBlockResult;
pub use error::{
    AgentError, BuildError, CommandError, CompactError, EntryError, PingError, PlanError, PreviewError,
    SideRequestError, SummaryError,
};
pub use events::{
    AgentEvent, CustomMessage, Event, EventStream, Events, HandlerError, HandlerFault, Input, InputSource,
    RunEnd,
};
pub use extension_runs::MAX_EXTENSION_RUNS;
pub use hardpan_context::Coupling;
pub use message_states::MessageRange;
pub use navigate::BranchExit;
pub use pages::PageAddition;
pub use preview::RequestPreview;
pub use queue::{Delivery, InputId, PreparedInput, QueueMode, QueuedInputs};
pub use run_status::{Activity, RunPause, RunStatus, WorkClaim};
pub use secret_guard::{SecretMode, SecretSettings};
pub use sent_request::SentRequest;
pub use session_control::SessionSwitchKind;
pub use setup::{
    AgentSettings, ApprovalDecision, ApprovalHandler, ApprovalRequest, ClientFactory, ClientFactoryError,
    ContextSource, DenyAll, FetchedPage, ObserveError, ObserveReason, ObserveRequest, ReadCallMode, Setup,
};
pub use shell::ShellVisibility;
pub use spending::{Spending, UsageReport, usage_dollars};
pub use stored_knowledge::ResultData;
pub use tool_switches::switched_off_tools;

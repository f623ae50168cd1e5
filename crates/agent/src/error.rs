//! [`AgentError`]: why the agent did not do what it was asked to do. Every message is shown to the
//! user, and says what to do where there is something to do.

use std::error::Error;

use hardpan_context::{AssembleError, LayoutName};
use hardpan_prompt::validate::Violation;
use hardpan_providers::{FailureKind, ProviderError, StopReason, StreamError};
use hardpan_session::{LogError, RecallError, SessionError};
use hardpan_tools::UnknownTool;
use thiserror::Error;

use crate::conversation::ConversationError;
use crate::events::RunEnd;
use crate::setup::{ClientFactoryError, ObserveError};

/// Why the agent did not do what it was asked to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AgentError {
    /// A run is in progress. Queue the input with [`Agent::queue`](crate::Agent::queue), or call
    /// [`Agent::abort`](crate::Agent::abort) first.
    #[error("the agent is busy: steer it, queue a follow-up, or stop it first")]
    Busy,
    /// The input had neither text nor images after expansion.
    #[error("there is nothing to send: type a prompt")]
    Empty,
    /// A command that makes a prompt made none.
    #[error("/{name}: {problem}")]
    CommandPrompt {
        /// The command, without the slash.
        name: String,
        /// What went wrong.
        problem: String,
    },
    /// An extension has begun too many runs by itself.
    #[error(
        "extensions have made the model work {} times in a row; its messages are dropped until you type something",
        crate::MAX_EXTENSION_RUNS
    )]
    ExtensionRuns,
    /// Compaction failed or was cancelled; the conversation is unchanged.
    #[error("not compacted: {0}")]
    Compact(#[from] CompactError),
    /// A handler was asked, and was against it.
    #[error("not done: {reason}")]
    Cancelled {
        /// The handler's reason.
        reason: String,
    },
    /// The user typed a shell command, and the agent was given no shell.
    #[error("shell commands are not available here")]
    NoShell,
    /// The ping that keeps the provider's cache warm was not sent, or it failed.
    #[error("the cache was not pinged: {0}")]
    Ping(#[from] PingError),
    /// The session has no such entry, or the conversation cannot continue from it.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// There is no such message to recall.
    #[error(transparent)]
    Recall(#[from] RecallError),
    /// There is no such tool to switch.
    #[error(transparent)]
    Tool(#[from] UnknownTool),
    /// The session file cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Why a conversation was not compacted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CompactError {
    /// All messages are among those that a compaction keeps.
    #[error("there is too little to summarise yet: continue the conversation first")]
    TooShort,
    /// A handler of `session_before_compact` cancelled it.
    #[error("{reason}")]
    Cancelled {
        /// The handler's reason.
        reason: String,
    },
    /// A handler of `session_before_compact` answered with an empty summary.
    #[error("the summary was empty; nothing has changed")]
    EmptySummary,
    /// The user stopped it.
    #[error("it was aborted; nothing has changed")]
    Aborted,
    /// The model wrote no usable summary.
    #[error(transparent)]
    Summary(#[from] SummaryError),
}

/// Why the conversation cannot continue from an entry.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EntryError {
    /// No branch of the session has it.
    #[error("there is no entry {entry} in this session")]
    Unknown {
        /// The id that was asked for.
        entry: String,
    },
    /// The range ends before it begins.
    #[error("{last} comes before {first} in the conversation")]
    Backwards {
        /// The id that was given as the first.
        first: String,
        /// The id that was given as the last.
        last: String,
    },
    /// The summary is empty.
    #[error("a summary needs words")]
    NoSummary,
    /// The layout has no history panels.
    #[error("the layout {layout} freezes no messages: summarise them instead, or compact the conversation")]
    NotFrozen {
        /// Its name.
        layout: LayoutName,
    },
    /// No whole turn is there to be frozen.
    #[error("there is no whole turn that could be frozen")]
    NothingToFreeze,
    /// The session file cannot be written or read.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// The session file has no such entry.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The user stopped the summary of the branch to be left.
    #[error("it was aborted; nothing has changed")]
    Aborted,
    /// The model wrote no usable summary of the branch to be left.
    #[error(transparent)]
    Summary(#[from] SummaryError),
}

/// Why the provider's cache was not pinged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PingError {
    /// There is no request to repeat.
    #[error("nothing has been sent yet: send a prompt first")]
    NothingSent,
    /// There is no client for the model.
    #[error(transparent)]
    Client(#[from] ClientFactoryError),
    /// The provider refused.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// Why the model wrote no summary.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// There is no client for the model.
    #[error(transparent)]
    Client(#[from] ClientFactoryError),
    /// The workspace, which the request shows, is not known.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The last form in which the conversation was sent failed like this.
    #[error("the summary failed ({0}); nothing has changed")]
    Failed(#[from] SideRequestError),
}

/// Why a request outside of the conversation gave no usable answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SideRequestError {
    /// There is no client for the model.
    #[error(transparent)]
    Client(#[from] ClientFactoryError),
    /// The request could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Some messages had to be left out: the model would invent a summary of them.
    #[error("the conversation does not fit the window")]
    DoesNotFit,
    /// The provider refused, or the connection broke.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The provider reported an error within its answer.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The answer was a tool call.
    #[error("the model called a tool instead")]
    CalledTool,
    /// The answer had no text.
    #[error("it was empty")]
    Empty,
    /// The answer ended for another reason than being complete.
    #[error("it ended with {}", .0.as_ref().map_or("nothing", StopReason::as_str))]
    Incomplete(Option<StopReason>),
}

impl SideRequestError {
    /// Whether a shorter request may succeed.
    pub(crate) fn is_too_long(&self) -> bool {
        match self {
            SideRequestError::Build(_) | SideRequestError::DoesNotFit => true,
            SideRequestError::Provider(error) => {
                matches!(error.failure, FailureKind::ContextTooLong | FailureKind::TooLarge)
            }
            SideRequestError::Client(_)
            | SideRequestError::Stream(_)
            | SideRequestError::CalledTool
            | SideRequestError::Empty
            | SideRequestError::Incomplete(_) => false,
        }
    }
}

/// Why no request can be built from the conversation.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// It does not fit the model.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// It breaks a rule of the provider's.
    #[error(
        "the provider would refuse the request ({0}); this is a bug in hardpan: please report it with the session file"
    )]
    Invalid(#[from] Violation),
}

/// Why the next request of the conversation cannot be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The workspace, which the request shows, is not known.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// What is known does not make a valid request.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl From<PlanError> for RunEnd {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Observe(error) => error.into(),
            PlanError::Build(error) => error.into(),
        }
    }
}

/// Why a request cannot be shown before it is sent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PreviewError {
    /// The agent does not take the input now.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A handler of the `input` event dealt with the input, so that no request follows.
    #[error("nothing would be sent: a handler answers this input itself")]
    Handled,
    /// There is no client for the model.
    #[error(transparent)]
    Client(#[from] ClientFactoryError),
    /// The request cannot be built.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The request cannot be encoded.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl From<BuildError> for RunEnd {
    fn from(error: BuildError) -> Self {
        let message = error.to_string();
        match error {
            BuildError::Assemble(AssembleError::TooLong { .. }) => RunEnd::TooLong { message },
            BuildError::Assemble(AssembleError::Thinking { .. }) | BuildError::Invalid(_) => {
                RunEnd::Error { message }
            }
        }
    }
}

/// Why a slash command failed. The message is shown to the user after the command's name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CommandError {
    /// It was called in another way than it understands.
    #[error("expected {0}")]
    Usage(&'static str),
    /// The agent refused what the command asked of it.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// It panicked.
    #[error("the command crashed; nothing else was affected")]
    Crashed,
    /// The person stopped the agent before an extension's command had ended.
    #[error("stopped; the extension {0} had not finished it")]
    Stopped(std::sync::Arc<str>),
    /// A failure of the command's own, whose message tells all of it.
    #[error(transparent)]
    Failed(Box<dyn Error + Send + Sync>),
}

impl CommandError {
    /// Wraps an error of the command's own.
    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        CommandError::Failed(error.into())
    }
}

//! Every event: when it is raised, what it carries, what may be answered.

use std::sync::Arc;

use hardpan_economy::Verdict;
use hardpan_prompt::{AgentMessage, Image, MessageId, Part, Prompt};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, Fault};
use crate::compact::{Compacted, WhyCompact};
use crate::queue::Waiting;
use crate::spending::TokenUsage;

/// Declares an event's name and reply.
macro_rules! event {
    ($type:ty, $name:literal) => {
        event!($type, $name, ());
    };
    ($type:ty, $name:literal, $reply:ty) => {
        impl Event for $type {
            const NAME: &'static str = $name;
            type Reply = $reply;
        }
    };
}

/// Which way something came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputSource {
    /// A person typed it.
    Interactive,
    /// A program sent it.
    Rpc,
    /// An extension said it.
    Extension,
}

/// Something was typed: before skills and templates are expanded, also for what is queued.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// The text as typed.
    pub text: String,
    /// Data that goes below it, such as what was piped in: nothing in it is expanded, and it is sent byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// Images that go with it.
    pub images: Vec<Image>,
    /// Which way it came in.
    pub source: InputSource,
}

/// What becomes of an input.
#[derive(Clone, Debug, Default)]
pub enum InputReply {
    /// It goes on as it is.
    #[default]
    Continue,
    /// It goes on with another text, and other images where some are given.
    Transform {
        /// The new text.
        text: String,
        /// The new images.
        images: Option<Vec<Image>>,
    },
    /// It is dealt with; nothing goes to the model.
    Handled,
}
event!(Input, "input", InputReply);

/// A run is about to begin: once per prompt, after expansion.
#[derive(Clone, Debug, Serialize)]
pub struct BeforeAgentStart {
    /// The expanded prompt.
    pub prompt: String,
    /// Its images.
    pub images: Vec<Image>,
    /// The system prompt as it stands: earlier handlers may have changed it.
    pub system_prompt: String,
}

/// What is added before a run.
#[derive(Clone, Debug, Default)]
pub struct BeforeAgentStartReply {
    /// A message that follows the prompt.
    pub message: Option<CustomMessage>,
    /// Another system prompt, for this run only.
    pub system_prompt: Option<String>,
}
event!(BeforeAgentStart, "before_agent_start", BeforeAgentStartReply);

/// A message of an extension. The model always sees it; `display` is for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomMessage {
    /// The extension's name for it.
    pub custom_type: Arc<str>,
    /// What it says.
    pub content: Vec<Part>,
    /// Whether people see it.
    #[serde(default = "shown")]
    pub display: bool,
}

fn shown() -> bool {
    true
}

/// The conversation, before each request: a copy that a handler may change as it likes. It is not stored.
#[derive(Clone, Debug, Serialize)]
pub struct Context {
    /// All messages, custom ones and summaries included.
    pub messages: Vec<AgentMessage>,
}
event!(Context, "context", Option<Vec<AgentMessage>>);

/// A request is about to be sent.
#[derive(Clone, Debug, Serialize)]
pub struct BeforeProviderRequest {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The layout.
    pub layout: &'static str,
    /// Its tokens, as counted here.
    pub tokens: usize,
    /// The request itself: to look at. What is shown is what is sent.
    #[serde(skip)]
    pub prompt: Arc<Prompt>,
}
event!(BeforeProviderRequest, "before_provider_request");

/// A tool is about to be called. A handler that fails blocks the call.
#[derive(Clone, Debug, Serialize)]
pub struct ToolCall {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments.
    pub input: Value,
}

/// Whether a call may go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolCallReply {
    /// As far as this handler cares.
    #[default]
    Allow,
    /// No; the reason is told to the model.
    Block {
        /// Why.
        reason: String,
    },
}
event!(ToolCall, "tool_call", ToolCallReply);

/// A call was answered, well or not: before the answer is stored.
#[derive(Clone, Debug, Serialize)]
pub struct ToolResult {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments.
    pub input: Value,
    /// What the model will see.
    pub content: Vec<Part>,
    /// What people and programs will see beside it.
    pub details: Option<Value>,
    /// Whether it failed.
    pub is_error: bool,
}

/// What is changed of an answer; none leaves it.
#[derive(Clone, Debug, Default)]
pub struct ToolResultReply {
    /// Other content.
    pub content: Option<Vec<Part>>,
    /// Other details.
    pub details: Option<Value>,
    /// Another verdict.
    pub is_error: Option<bool>,
}
event!(ToolResult, "tool_result", ToolResultReply);

/// A session was begun or opened.
#[derive(Clone, Debug, Serialize)]
pub struct SessionStart {
    /// Its id.
    pub session: Arc<str>,
    /// Whether it goes on with an earlier conversation.
    pub resumed: bool,
}
event!(SessionStart, "session_start");

/// The agent turned to another session.
#[derive(Clone, Debug, Serialize)]
pub struct SessionSwitch {
    /// The one before.
    pub from: Arc<str>,
    /// The one now.
    pub to: Arc<str>,
}
event!(SessionSwitch, "session_switch");

/// The conversation was forked into a session of its own.
#[derive(Clone, Debug, Serialize)]
pub struct SessionFork {
    /// The session it came from.
    pub from: Arc<str>,
    /// The entry it goes on from; none for the start.
    pub entry: Option<Arc<str>>,
    /// The new session.
    pub to: Arc<str>,
}
event!(SessionFork, "session_fork");

/// The conversation goes on from another entry of the same session.
#[derive(Clone, Debug, Serialize)]
pub struct SessionTree {
    /// The entry that was left.
    pub from: Option<Arc<str>>,
    /// The entry it goes on from.
    pub to: Arc<str>,
}
event!(SessionTree, "session_tree");

/// The agent ends.
#[derive(Clone, Debug, Serialize)]
pub struct SessionShutdown {
    /// The session.
    pub session: Arc<str>,
}
event!(SessionShutdown, "session_shutdown");

/// A conversation is about to be compacted.
#[derive(Clone, Debug, Serialize)]
pub struct SessionBeforeCompact {
    /// Why.
    pub why: WhyCompact,
    /// What the person wants kept in mind.
    pub instructions: Option<String>,
    /// How many messages a summary will stand for.
    pub messages: usize,
    /// The first message that stays.
    pub first_kept: MessageId,
    /// Tokens of the conversation now.
    pub tokens_before: u64,
}

/// What becomes of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BeforeCompactReply {
    /// It goes on.
    #[default]
    Continue,
    /// It does not happen.
    Cancel {
        /// Why.
        reason: String,
    },
    /// This is the summary; the model is not asked.
    Summary {
        /// Its text.
        text: String,
    },
}
event!(SessionBeforeCompact, "session_before_compact", BeforeCompactReply);

/// A conversation was compacted.
#[derive(Clone, Debug, Serialize)]
pub struct SessionCompact(
    /// What was done.
    pub Compacted,
);
event!(SessionCompact, "session_compact");

/// The person is about to run a command with `!` or `!!`.
#[derive(Clone, Debug, Serialize)]
pub struct UserBash {
    /// The command line.
    pub command: String,
    /// `!!`: the model is not told.
    pub exclude_from_context: bool,
}

/// What a handler did in place of running the command; none lets it run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserBashReply {
    /// What it printed.
    pub output: String,
    /// Its exit code.
    pub exit_code: Option<i32>,
}
event!(UserBash, "user_bash", Option<UserBashReply>);

/// A run begins.
#[derive(Clone, Debug, Serialize)]
pub struct AgentStart {}
event!(AgentStart, "agent_start");

/// A run is over: nothing more will happen by itself.
#[derive(Clone, Debug, Serialize)]
pub struct AgentEnd {
    /// The messages of this run.
    pub messages: Vec<AgentMessage>,
    /// Why it ended.
    pub stop: Stop,
    /// What the last request and the whole session used.
    pub token_usage: TokenUsage,
    /// What is still queued: after an abort, nothing of it is lost.
    pub queued: Waiting,
}
event!(AgentEnd, "agent_end");

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Stop {
    /// The model had said what it had to say.
    Done,
    /// The person stopped it.
    Aborted,
    /// The answer reached the limit of tokens.
    Length,
    /// The model or a filter refused.
    Refused,
    /// The same call failed again and again.
    Looping {
        /// The tool.
        tool: Arc<str>,
    },
    /// The request does not fit the model's window.
    TooLong {
        /// What the provider said, or what would be too long for it.
        message: String,
    },
    /// Something failed.
    Error {
        /// What, and what to do about it.
        message: String,
    },
}

/// A turn begins: one request, its answer and the tools it calls.
#[derive(Clone, Debug, Serialize)]
pub struct TurnStart {
    /// Which turn of the run, from 1.
    pub turn: u32,
}
event!(TurnStart, "turn_start");

/// A turn is over.
#[derive(Clone, Debug, Serialize)]
pub struct TurnEnd {
    /// Which turn of the run, from 1.
    pub turn: u32,
    /// What the model said.
    pub message: AgentMessage,
    /// What its calls were answered with.
    pub tool_results: Vec<AgentMessage>,
}
event!(TurnEnd, "turn_end");

/// A message begins.
#[derive(Clone, Debug, Serialize)]
pub struct MessageStart {
    /// The message; an answer is still empty.
    pub message: AgentMessage,
}
event!(MessageStart, "message_start");

/// More of an answer came.
#[derive(Clone, Debug, Serialize)]
pub struct MessageUpdate {
    /// The message.
    pub id: MessageId,
    /// What came.
    pub delta: Delta,
}
event!(MessageUpdate, "message_update");

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Delta {
    /// More text.
    Text {
        /// The text.
        text: String,
    },
    /// More reasoning.
    Reasoning {
        /// The text.
        text: String,
    },
    /// A call begins.
    Call {
        /// Which call of the answer, from 0.
        index: usize,
        /// Its id.
        call_id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments.
    Arguments {
        /// Which call of the answer, from 0.
        index: usize,
        /// A fragment of JSON.
        json: String,
    },
}

/// A message is complete, and stored: it survives whatever happens now.
#[derive(Clone, Debug, Serialize)]
pub struct MessageEnd {
    /// The message.
    pub message: AgentMessage,
}
event!(MessageEnd, "message_end");

/// A request paid again for what had been cached.
#[derive(Clone, Debug, Serialize)]
pub struct CacheVerdict {
    /// The answer that it brought; none for a helper's request.
    pub message: Option<MessageId>,
    /// How much was lost, why, and whose doing that was.
    pub verdict: Verdict,
    /// The same in words.
    pub sentence: String,
}
event!(CacheVerdict, "cache_verdict");

/// A tool begins to work.
#[derive(Clone, Debug, Serialize)]
pub struct ToolExecutionStart {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments.
    pub args: Value,
}
event!(ToolExecutionStart, "tool_execution_start");

/// A tool has something to show while it works.
#[derive(Clone, Debug, Serialize)]
pub struct ToolExecutionUpdate {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The whole text so far.
    pub partial: String,
}
event!(ToolExecutionUpdate, "tool_execution_update");

/// A tool has ended.
#[derive(Clone, Debug, Serialize)]
pub struct ToolExecutionEnd {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// What it answered.
    pub content: Vec<Part>,
    /// What it tells people and programs beside that.
    pub details: Option<Value>,
    /// Whether it failed.
    pub is_error: bool,
}
event!(ToolExecutionEnd, "tool_execution_end");

/// Another model answers from now on.
#[derive(Clone, Debug, Serialize)]
pub struct ModelSelect {
    /// The model before: `provider/model`.
    pub previous: String,
    /// The model now.
    pub model: String,
}
event!(ModelSelect, "model_select");

/// What is queued has changed.
#[derive(Clone, Debug, Serialize)]
pub struct QueueUpdate(
    /// What waits.
    pub Waiting,
);
event!(QueueUpdate, "queue_update");

/// Something a person should know.
#[derive(Clone, Debug, Serialize)]
pub struct Note {
    /// In words.
    pub text: String,
}
event!(Note, "note");

/// A handler did not do its part.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerFailed(
    /// Whose, and what went wrong.
    pub Fault,
);
event!(HandlerFailed, "handler_failed");

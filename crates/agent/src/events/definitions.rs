//! Every event type: when it is emitted, what it carries, and what a handler may reply.

use std::sync::Arc;

use hardpan_economy::Verdict;
use hardpan_prompt::{AgentMessage, Image, MessageId, MessagePart, Prompt};
use hardpan_tools::ResultDisplay;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Event, HandlerFault};
use crate::compact::{CompactReason, CompactionResult};
use crate::queue::QueuedInputs;
use crate::spending::TokenUsage;

/// Declares an event's `type` and its reply.
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

/// Where an input came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputSource {
    /// The user typed it in the terminal.
    Interactive,
    /// A program sent it over RPC.
    Rpc,
    /// An extension sent it.
    Extension,
}

/// An input arrived. Emitted before skills and templates are expanded, also for queued inputs; not
/// for slash commands.
#[derive(Clone, Debug, Serialize)]
pub struct Input {
    /// The text as typed.
    pub text: String,
    /// Data that is appended below the text, such as standard input. It is never expanded, and it
    /// is sent byte for byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<String>,
    /// Images that are sent after the text.
    pub images: Vec<Image>,
    /// Where the input came from.
    pub source: InputSource,
}

/// What a handler does with an input.
#[derive(Clone, Debug, Default)]
pub enum InputReply {
    /// The input continues unchanged.
    #[default]
    Continue,
    /// The input continues with another text.
    Transform {
        /// The text that replaces the typed one.
        text: String,
        /// Replaces the images; `None` keeps them.
        images: Option<Vec<Image>>,
    },
    /// The handler dealt with the input: nothing goes to the model, and later handlers are not
    /// asked.
    Handled,
}
event!(Input, "input", InputReply);

/// A run is about to begin. Emitted once per prompt, after expansion.
#[derive(Clone, Debug, Serialize)]
pub struct BeforeAgentStart {
    /// The prompt after expansion.
    pub prompt: String,
    /// The images that are sent with it.
    pub images: Vec<Image>,
    /// The system prompt, as earlier handlers left it.
    pub system_prompt: String,
}

/// What a handler adds to a run.
#[derive(Clone, Debug, Default)]
pub struct BeforeAgentStartReply {
    /// A message to store after the prompt.
    pub message: Option<CustomMessage>,
    /// Replaces the system prompt, for this run only.
    pub system_prompt: Option<String>,
}
event!(BeforeAgentStart, "before_agent_start", BeforeAgentStartReply);

/// A message of an extension. The model always sees it; `display` decides about people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CustomMessage {
    /// The extension's own name for this kind of message.
    pub custom_type: Arc<str>,
    /// The message's content.
    pub content: Vec<MessagePart>,
    /// Whether the message is shown to people; true by default.
    #[serde(default = "default_display")]
    pub display: bool,
}

fn default_display() -> bool {
    true
}

/// The conversation, before each request. A handler may return other messages to send; they are not
/// stored.
#[derive(Clone, Debug, Serialize)]
pub struct ContextEvent {
    /// All messages, including extension messages and summaries.
    pub messages: Vec<AgentMessage>,
}
event!(ContextEvent, "context", Option<Vec<AgentMessage>>);

/// A request is about to be sent to the provider.
#[derive(Clone, Debug, Serialize)]
pub struct BeforeProviderRequest {
    /// Id of the provider.
    pub provider: String,
    /// Id of the model.
    pub model: String,
    /// Name of the layout that ordered the prompt.
    pub layout: &'static str,
    /// Tokens of the prompt by our own count.
    pub tokens: usize,
    /// The prompt itself, read-only. It is exactly what is sent.
    #[serde(skip)]
    pub prompt: Arc<Prompt>,
}
event!(BeforeProviderRequest, "before_provider_request");

/// A tool is about to be called. A handler that fails blocks the call.
#[derive(Clone, Debug, Serialize)]
pub struct ToolCallEvent {
    /// The id that the model gave the call.
    pub call_id: Arc<str>,
    /// Name of the tool, as declared to the model.
    pub tool_name: Arc<str>,
    /// The call's arguments, parsed.
    pub input: Value,
}

/// Whether a tool call may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolCallReply {
    /// This handler does not object.
    #[default]
    Allow,
    /// The call does not run.
    Block {
        /// Shown to the model, or to the user if a compaction is cancelled.
        reason: String,
    },
}
event!(ToolCallEvent, "tool_call", ToolCallReply);

/// A tool call has a result, successful or not. Emitted before the result is stored.
#[derive(Clone, Debug, Serialize)]
pub struct ToolResultEvent {
    /// The id that the model gave the call.
    pub call_id: Arc<str>,
    /// Name of the tool, as declared to the model.
    pub tool_name: Arc<str>,
    /// The call's arguments, parsed.
    pub input: Value,
    /// The content that the model will see.
    pub content: Vec<MessagePart>,
    /// Data for people and programs; never sent to the model.
    pub details: Option<Value>,
    /// Whether the result is an error.
    pub is_error: bool,
}

/// Changes to a tool result; `None` keeps a part as it is.
#[derive(Clone, Debug, Default)]
pub struct ToolResultReply {
    /// Replaces the content that the model sees.
    pub content: Option<Vec<MessagePart>>,
    /// Replaces the data for people and programs.
    pub details: Option<Value>,
    /// Changes whether the result is an error.
    pub is_error: Option<bool>,
}
event!(ToolResultEvent, "tool_result", ToolResultReply);

/// A session was created or resumed.
#[derive(Clone, Debug, Serialize)]
pub struct SessionStart {
    /// Id of the session.
    pub session: Arc<str>,
    /// Whether the session already has messages.
    pub resumed: bool,
}
event!(SessionStart, "session_start");

/// The agent switched to another session.
#[derive(Clone, Debug, Serialize)]
pub struct SessionSwitch {
    /// Id of the previous session.
    pub from: Arc<str>,
    /// Id of the current session.
    pub to: Arc<str>,
}
event!(SessionSwitch, "session_switch");

/// The conversation was forked into a session of its own, which is now current.
#[derive(Clone, Debug, Serialize)]
pub struct SessionFork {
    /// Id of the session it was forked from.
    pub from: Arc<str>,
    /// The entry that the fork continues from; `None` for the end of the branch.
    pub entry: Option<Arc<str>>,
    /// Id of the new session.
    pub to: Arc<str>,
}
event!(SessionFork, "session_fork");

/// The conversation continues from another entry of the same session.
#[derive(Clone, Debug, Serialize)]
pub struct SessionTree {
    /// The last entry of the branch that was left; `None` if it was empty.
    pub from: Option<Arc<str>>,
    /// The entry that the conversation continues from.
    pub to: Arc<str>,
}
event!(SessionTree, "session_tree");

/// The agent shuts down.
#[derive(Clone, Debug, Serialize)]
pub struct SessionShutdown {
    /// Id of the session.
    pub session: Arc<str>,
}
event!(SessionShutdown, "session_shutdown");

/// A conversation is about to be compacted.
#[derive(Clone, Debug, Serialize)]
pub struct SessionBeforeCompact {
    /// Why it is compacted.
    pub why: CompactReason,
    /// What the user wants the summary to focus on.
    pub instructions: Option<String>,
    /// Number of messages that the summary will replace.
    pub messages: usize,
    /// Id of the first message that is kept.
    pub first_kept: MessageId,
    /// Estimated tokens of the conversation now.
    pub tokens_before: u64,
}

/// What a handler does with a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BeforeCompactReply {
    /// The compaction continues.
    #[default]
    Continue,
    /// The compaction is cancelled.
    Cancel {
        /// Shown to the model, or to the user if a compaction is cancelled.
        reason: String,
    },
    /// The handler supplies the summary; the model is not asked.
    Summary {
        /// The text of the summary.
        text: String,
    },
}
event!(SessionBeforeCompact, "session_before_compact", BeforeCompactReply);

/// A conversation was compacted.
#[derive(Clone, Debug, Serialize)]
pub struct SessionCompact(
    /// The summary, and what it replaced.
    pub CompactionResult,
);
event!(SessionCompact, "session_compact");

/// The user is about to run a shell command with `!` or `!!`.
#[derive(Clone, Debug, Serialize)]
pub struct UserBash {
    /// The command line, without the `!`.
    pub command: String,
    /// True for `!!`: the model never sees the output.
    pub exclude_from_context: bool,
}

/// The result of a handler that ran the command itself; a reply of `None` lets the agent run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserBashReply {
    /// What the command printed, both streams together.
    pub output: String,
    /// The command's exit code; `None` if it was stopped.
    pub exit_code: Option<i32>,
}
event!(UserBash, "user_bash", Option<UserBashReply>);

/// A run begins: the prompt is stored and handlers have added to it.
#[derive(Clone, Debug, Serialize)]
pub struct AgentStart {}
event!(AgentStart, "agent_start");

/// A run is over: nothing more happens by itself.
#[derive(Clone, Debug, Serialize)]
pub struct AgentEnd {
    /// The messages that this run added.
    pub messages: Vec<AgentMessage>,
    /// Why the run ended.
    pub stop: RunEnd,
    /// Usage of the last request and of the whole session.
    pub token_usage: TokenUsage,
    /// Inputs that are still queued; an abort keeps them.
    pub queued: QueuedInputs,
}
event!(AgentEnd, "agent_end");

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum RunEnd {
    /// The model finished, and no queued input was left.
    Done,
    /// The user aborted the run.
    Aborted,
    /// The answer reached its token limit.
    Length,
    /// The model, or the provider's filter, refused to answer.
    Refused,
    /// The model kept repeating a failing tool call.
    Looping {
        /// Name of the tool, as declared to the model.
        tool: Arc<str>,
    },
    /// The request does not fit the model's context window, even after compaction.
    TooLong {
        /// The provider's error, or what would not fit; shown to the user.
        message: String,
    },
    /// The request failed, the answer broke off, or nothing could be stored.
    Error {
        /// What failed and what to do about it; shown to the user.
        message: String,
    },
}

/// A turn begins: one request, its answer, and the results of its tool calls.
#[derive(Clone, Debug, Serialize)]
pub struct TurnStart {
    /// Number of the turn within the run, from 1.
    pub turn: u32,
}
event!(TurnStart, "turn_start");

/// A turn is over.
#[derive(Clone, Debug, Serialize)]
pub struct TurnEnd {
    /// Number of the turn within the run, from 1.
    pub turn: u32,
    /// The model's answer, as stored.
    pub message: AgentMessage,
    /// The results of the answer's tool calls, in order.
    pub tool_results: Vec<AgentMessage>,
}
event!(TurnEnd, "turn_end");

/// A message begins; `message_end` follows once it is stored.
#[derive(Clone, Debug, Serialize)]
pub struct MessageStart {
    /// The message; an answer is still empty.
    pub message: AgentMessage,
}
event!(MessageStart, "message_start");

/// More of a streaming answer arrived.
#[derive(Clone, Debug, Serialize)]
pub struct MessageUpdate {
    /// Id of the message that grows.
    pub id: MessageId,
    /// The new piece; pieces are to be appended in order.
    pub delta: MessageDelta,
}
event!(MessageUpdate, "message_update");

/// A piece of a streaming answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MessageDelta {
    /// More text of the answer.
    Text {
        /// The text to append.
        text: String,
    },
    /// More of the model's reasoning.
    Reasoning {
        /// The text to append.
        text: String,
    },
    /// A tool call begins.
    Call {
        /// Number of the call within the answer, from 0.
        index: usize,
        /// Id of the session.
        call_id: String,
        /// Name of the tool, as declared to the model.
        name: String,
    },
    /// More of a tool call's arguments.
    Arguments {
        /// Number of the call within the answer, from 0.
        index: usize,
        /// A fragment of the arguments' JSON text.
        json: String,
    },
}

/// A message is complete and stored: it survives whatever happens now.
#[derive(Clone, Debug, Serialize)]
pub struct MessageEnd {
    /// The message as it is stored.
    pub message: AgentMessage,
}
event!(MessageEnd, "message_end");

/// A request paid again for tokens that had been cached.
#[derive(Clone, Debug, Serialize)]
pub struct CacheVerdict {
    /// Id of the message that stores its answer; `None` for a helper request.
    pub message: Option<MessageId>,
    /// How much was lost, why, and who caused it.
    pub verdict: Verdict,
    /// The verdict as a sentence for people.
    pub sentence: String,
}
event!(CacheVerdict, "cache_verdict");

/// A tool starts to run.
#[derive(Clone, Debug, Serialize)]
pub struct ToolExecutionStart {
    /// The id that the model gave the call.
    pub call_id: Arc<str>,
    /// Name of the tool, as declared to the model.
    pub tool_name: Arc<str>,
    /// The call's arguments, parsed.
    pub args: Value,
}
event!(ToolExecutionStart, "tool_execution_start");

/// A running tool has output to show.
#[derive(Clone, Debug, Serialize)]
pub struct ToolExecutionUpdate {
    /// The id that the model gave the call.
    pub call_id: Arc<str>,
    /// Name of the tool, as declared to the model.
    pub tool_name: Arc<str>,
    /// The whole output so far, not just the new part.
    pub partial: String,
}
event!(ToolExecutionUpdate, "tool_execution_update");

/// A tool has ended.
#[derive(Clone, Debug, Serialize)]
pub struct ToolExecutionEnd {
    /// The id that the model gave the call.
    pub call_id: Arc<str>,
    /// Name of the tool, as declared to the model.
    pub tool_name: Arc<str>,
    /// The content of its result.
    pub content: Vec<MessagePart>,
    /// Data for people and programs; never sent to the model.
    pub details: Option<Value>,
    /// Whether the result is an error.
    pub is_error: bool,
    /// How a face shows the result.
    pub display: ResultDisplay,
}
event!(ToolExecutionEnd, "tool_execution_end");

/// Another model was selected for the next requests.
#[derive(Clone, Debug, Serialize)]
pub struct ModelSelect {
    /// The previous model, as `provider/model`.
    pub previous: String,
    /// The selected model, as `provider/model`.
    pub model: String,
}
event!(ModelSelect, "model_select");

/// The queues have changed.
#[derive(Clone, Debug, Serialize)]
pub struct QueueUpdate(
    /// What is queued now.
    pub QueuedInputs,
);
event!(QueueUpdate, "queue_update");

/// Something the user should know.
#[derive(Clone, Debug, Serialize)]
pub struct Note {
    /// The note, as a sentence or two.
    pub text: String,
}
event!(Note, "note");

/// An event handler failed, panicked or took too long.
#[derive(Clone, Debug, Serialize)]
pub struct HandlerFailed(
    /// Which handler, and what went wrong.
    pub HandlerFault,
);
event!(HandlerFailed, "handler_failed");

//! The notifications: when each is emitted, and what it carries. They go to faces and to handlers.
//!
//! A new one is an entry here and the place that emits it.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use hardpan_context::LayoutName;
use hardpan_economy::Verdict;
use hardpan_prompt::{AgentMessage, MessageId, MessagePart, MessageState, Prompt};
use hardpan_tools::ResultDisplay;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::catalogue::EventInfo;
use super::declare::{declare_notifications, payload};
use super::face_request::{Dialog, FaceChange};
use super::payloads::{
    MessageDelta, NoteKind, ResponseIdentity, RunEnd, SwitchReason, TaskPrefix, TaskStop, TaskUsage,
};
use super::{Event, HandlerFault};
use crate::compact::CompactionResult;
use crate::edit_blocks::EditBlockResult;
use crate::queue::{InputId, QueuedInputs};
use crate::spending::UsageReport;

declare_notifications! {
    /// A session was created or resumed.
    "session_start" => SessionStart {
        /// Id of the session.
        pub session: Arc<str>,
        /// Whether the session already has messages.
        pub resumed: bool,
    }

    /// The agent switched to another session.
    "session_switch" => SessionSwitch {
        /// Id of the previous session.
        pub from: Arc<str>,
        /// Id of the current session.
        pub to: Arc<str>,
        /// Whether it is new or was resumed.
        pub reason: SwitchReason,
        /// File of the previous session.
        pub from_file: PathBuf,
    }

    /// The conversation was forked into a session of its own, which is now current.
    "session_fork" => SessionFork {
        /// Id of the session it was forked from.
        pub from: Arc<str>,
        /// The entry that the fork continues from; null for the end of the branch.
        pub entry: Option<Arc<str>>,
        /// Id of the new session.
        pub to: Arc<str>,
        /// File of the session it was forked from.
        pub from_file: PathBuf,
    }

    /// The conversation continues from another entry of the same session.
    "session_tree" => SessionTree {
        /// The last entry of the branch that was left; null if it was empty.
        pub from: Option<Arc<str>>,
        /// The entry that the conversation continues from.
        pub to: Arc<str>,
        /// The entry of the summary that the new branch begins with, if there is one.
        #[serde(skip)]
        pub summary: Option<MessageId>,
        /// Whether a handler wrote that summary.
        #[serde(skip)]
        pub from_handler: bool,
    }

    /// A conversation was compacted.
    "session_compact" => SessionCompact(
        /// The summary, and what it replaced.
        pub CompactionResult,
    )

    /// The agent shuts down. This is the last event.
    "session_shutdown" => SessionShutdown {
        /// Id of the session.
        pub session: Arc<str>,
    }

    /// A run begins: the prompt is stored and handlers have added to it.
    "agent_start" => AgentStart {}

    /// A run is over: nothing more happens by itself.
    "agent_end" => AgentEnd {
        /// The messages that this run added.
        pub messages: Vec<AgentMessage>,
        /// Why the run ended.
        pub stop: RunEnd,
        /// Usage of the last request and of the whole session.
        pub token_usage: UsageReport,
        /// Inputs that are still queued; an abort keeps them.
        pub queued: QueuedInputs,
    }

    /// A turn begins: one request, its answer, and the results of its tool calls.
    "turn_start" => TurnStart {
        /// Number of the turn within the run, from 1.
        pub turn: u32,
    }

    /// A turn is over.
    "turn_end" => TurnEnd {
        /// Number of the turn within the run, from 1.
        pub turn: u32,
        /// The model's answer, as stored.
        pub message: AgentMessage,
        /// The results of the answer's tool calls, in order.
        pub tool_results: Vec<AgentMessage>,
    }

    /// A request is about to be sent to the provider.
    "before_provider_request" => BeforeProviderRequest {
        /// Id of the provider.
        pub provider: String,
        /// Id of the model.
        pub model: String,
        /// Name of the layout that ordered the prompt.
        pub layout: LayoutName,
        /// Tokens of the prompt by our own count.
        pub tokens: usize,
        /// The prompt itself, read-only. It is exactly what is sent.
        #[serde(skip)]
        pub prompt: Arc<Prompt>,
    }

    /// A message begins; `message_end` follows once it is stored.
    "message_start" => MessageStart {
        /// The message; an answer is still empty.
        pub message: AgentMessage,
        /// The input that the message was, if its face gave it an id.
        #[serde(skip)]
        pub input: Option<InputId>,
    }

    /// More of a streaming answer arrived.
    "message_update" => MessageUpdate {
        /// Id of the message that grows.
        pub id: MessageId,
        /// The new piece; pieces are to be appended in order.
        pub delta: MessageDelta,
    }

    /// A message is complete and stored: it survives whatever happens now.
    "message_end" => MessageEnd {
        /// The message as it is stored.
        pub message: AgentMessage,
        /// The input that the message was, if its face gave it an id.
        #[serde(skip)]
        pub input: Option<InputId>,
        /// Of an answer: what the provider calls it.
        #[serde(skip)]
        pub response: Option<ResponseIdentity>,
    }

    /// Messages are sent in another form from the next request on, or no longer.
    "message_state" => MessageStateChanged {
        /// Ids of the messages, in order.
        pub messages: Vec<MessageId>,
        /// Their new state.
        pub state: MessageState,
    }

    /// A streaming answer has completed an edit block. It is carried out when the answer has ended.
    "edit_block_found" => EditBlockFound {
        /// Id of the answer.
        pub message: MessageId,
        /// Number of the block within the answer, from 1.
        pub index: usize,
        /// The file, as the model named it.
        pub path: String,
    }

    /// The edit blocks of an answer were carried out, as far as they could be. Each one that ran
    /// also has `tool_execution_start` and `tool_execution_end`, as a call of `edit`.
    "edit_block_results" => EditBlockResults {
        /// Id of the answer.
        pub message: MessageId,
        /// How each block ended, in order.
        pub results: Vec<EditBlockResult>,
    }

    /// A request paid again for tokens that had been cached.
    "cache_verdict" => CacheVerdict {
        /// Id of the message that stores its answer; null for a helper request.
        pub message: Option<MessageId>,
        /// How much was lost, why, and who caused it.
        pub verdict: Verdict,
        /// The verdict as a sentence for people.
        pub sentence: String,
    }

    /// A tool starts to run.
    "tool_execution_start" => ToolExecutionStart {
        /// The id that the model gave the call.
        pub call_id: Arc<str>,
        /// Name of the tool, as declared to the model.
        pub tool_name: Arc<str>,
        /// The call's arguments, parsed.
        pub args: Value,
    }

    /// A running tool has output to show.
    "tool_execution_update" => ToolExecutionUpdate {
        /// The id that the model gave the call.
        pub call_id: Arc<str>,
        /// Name of the tool, as declared to the model.
        pub tool_name: Arc<str>,
        /// The whole output so far, not just the new part.
        pub partial: String,
        /// The call's arguments.
        #[serde(skip)]
        pub args: Arc<Value>,
    }

    /// A tool has ended.
    "tool_execution_end" => ToolExecutionEnd {
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

    /// A sub-agent begins to work, in a conversation of its own.
    "task_start" => TaskStart {
        /// The id of the call that started it.
        pub call_id: Arc<str>,
        /// Name of the agent.
        pub agent: Arc<str>,
        /// Id of the session of its conversation.
        pub session: Arc<str>,
        /// Its model, as `provider/model`.
        pub model: String,
        /// What its requests begin with.
        pub prefix: TaskPrefix,
        /// What it was asked to do.
        pub task: String,
    }

    /// A sub-agent has done something. What it has spent is part of the session's usage.
    "task_update" => TaskUpdate {
        /// The id of the call that started it.
        pub call_id: Arc<str>,
        /// Name of the agent.
        pub agent: Arc<str>,
        /// What it does now: `read src/main.rs`.
        pub activity: String,
        /// What it has used so far.
        pub used: TaskUsage,
    }

    /// A sub-agent has ended. Its answer is the result of the call.
    "task_end" => TaskEnd {
        /// The id of the call that started it.
        pub call_id: Arc<str>,
        /// Name of the agent.
        pub agent: Arc<str>,
        /// Id of the session of its conversation.
        pub session: Arc<str>,
        /// Why it ended.
        pub stop: TaskStop,
        /// What it has used.
        pub used: TaskUsage,
    }

    /// Another model was selected for the next requests.
    "model_select" => ModelSelect {
        /// The previous model, as `provider/model`.
        pub previous: String,
        /// The selected model, as `provider/model`.
        pub model: String,
    }

    /// How much the model thinks was changed for the next requests.
    "thinking_select" => ThinkingSelect {
        /// The previous setting: a level, a number of tokens, or `default`.
        pub previous: String,
        /// The selected setting.
        pub thinking: String,
    }

    /// The queues have changed.
    "queue_update" => QueueUpdate(
        /// What is queued now.
        pub QueuedInputs,
    )

    /// Something the user should know.
    "note" => Note {
        /// The note, as a sentence or two.
        pub text: String,
        /// What the note is about.
        #[serde(flatten)]
        pub kind: NoteKind,
    }

    /// An extension asks the user something; the face answers.
    "ui_prompt_start" => DialogStart {
        /// Name of the extension.
        pub owner: Arc<str>,
        /// What is asked.
        #[serde(flatten)]
        pub dialog: Dialog,
    }

    /// A question of an extension was answered, or is no longer asked.
    "ui_prompt_end" => DialogEnd {
        /// Name of the extension.
        pub owner: Arc<str>,
        /// Whether the user gave an answer.
        pub answered: bool,
    }

    /// An extension shows something beside the conversation.
    "face_change" => FaceChanged {
        /// Name of the extension.
        pub owner: Arc<str>,
        /// What is shown, and where.
        #[serde(flatten)]
        pub change: FaceChange,
    }

    /// An event handler failed, panicked or took too long.
    "handler_failed" => HandlerFailed(
        /// Which handler, and what went wrong.
        pub HandlerFault,
    )
}

impl Note {
    /// The note with the name of the extension that it is from.
    pub fn attributed_text(&self) -> String {
        match &self.kind {
            NoteKind::Extension { extension, .. } => format!("{extension}: {}", self.text),
            _ => self.text.clone(),
        }
    }
}

//! The questions: when each is asked, what it carries, and what a handler may reply. They go to handlers
//! alone, and what these reply is used.
//!
//! A new one is an entry here and the place that asks it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Image, MessageId, MessagePart};
use hardpan_session::Entry;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Event;
use super::catalogue::EventInfo;
use super::declare::{declare_questions, payload};
use super::payloads::{
    AnswerPartChange, AnswerPartKind, DiscoveryReason, InputSource, LeaveReason, SwitchReason,
};
use super::replies::{
    BeforeAgentStartReply, BeforeCompactReply, BeforeSwitchReply, BeforeTreeReply, InputReply,
    ResourcesReply, ToolCallReply, ToolResultReply, UserBashReply,
};
use crate::compact::CompactReason;
use crate::queue::InputId;

declare_questions! {
    /// An input arrived. Emitted before skills and templates are expanded, also for queued
    /// inputs; not for slash commands.
    "input" => Input {
        /// The text as typed.
        pub text: String,
        /// Data that is appended below the text, such as standard input. It is never expanded,
        /// and it is sent byte for byte.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub below: Option<String>,
        /// Images that are sent after the text.
        pub images: Vec<Image>,
        /// Where the input came from.
        pub source: InputSource,
        /// The face's own number for this input, to recognise its message by.
        #[serde(skip)]
        pub id: Option<InputId>,
    } -> InputReply = "continue, another text and images, or handled";

    /// A run is about to begin. Emitted once per prompt, after expansion.
    "before_agent_start" => BeforeAgentStart {
        /// The prompt after expansion.
        pub prompt: String,
        /// The images that are sent with it.
        pub images: Vec<Image>,
        /// The system prompt, as earlier handlers left it.
        pub system_prompt: String,
    } -> BeforeAgentStartReply = "a message, another system prompt";

    /// The conversation, before each request. Other messages are sent instead, but not stored.
    "context" => ContextEvent {
        /// All messages, including extension messages and summaries.
        pub messages: Vec<AgentMessage>,
    } -> Option<Vec<AgentMessage>> = "other messages, for this request";

    /// A tool is about to be called. A handler that fails blocks the call.
    "tool_call" => ToolCallEvent {
        /// The id that the model gave the call.
        pub call_id: Arc<str>,
        /// Name of the tool, as declared to the model.
        pub tool_name: Arc<str>,
        /// The call's arguments, parsed.
        pub input: Value,
    } -> ToolCallReply = "allow, block with a reason, change the input, or have a person asked";

    /// A tool call has a result, successful or not. Emitted before the result is stored.
    "tool_result" => ToolResultEvent {
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
    } -> ToolResultReply = "other content, details, `is_error`";

    /// A conversation is about to be compacted.
    "session_before_compact" => SessionBeforeCompact {
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
        /// The messages that the summary will replace.
        #[serde(skip)]
        pub summarized: Vec<AgentMessage>,
        /// The entries of the branch, as stored.
        #[serde(skip)]
        pub entries: Arc<Vec<Entry>>,
    } -> BeforeCompactReply = "continue, cancel, or the summary";

    /// The agent is about to leave the session for another one, or for a new one.
    "session_before_switch" => SessionBeforeSwitch {
        /// Whether a new session begins or an earlier one is resumed.
        pub reason: SwitchReason,
        /// File of the session that is resumed.
        pub target_file: Option<PathBuf>,
    } -> BeforeSwitchReply = "continue or cancel";

    /// The conversation is about to be forked into a session of its own.
    "session_before_fork" => SessionBeforeFork {
        /// The entry that the fork continues from; null for the end of the branch.
        pub entry: Option<Arc<str>>,
    } -> BeforeSwitchReply = "continue or cancel";

    /// The conversation is about to continue from another entry of the same session.
    "session_before_tree" => SessionBeforeTree {
        /// The entry that it continues from.
        pub target: Arc<str>,
        /// The last entry of the branch that is left; null if it is empty.
        pub old_leaf: Option<Arc<str>>,
        /// The last entry that both branches have; null if they share none.
        pub common_ancestor: Option<Arc<str>>,
        /// Whether the branch that is left is summarised.
        pub wants_summary: bool,
        /// What the user wants the summary to focus on.
        pub instructions: Option<String>,
        /// The entries that only the branch that is left has, oldest first.
        #[serde(skip)]
        pub entries: Arc<Vec<Entry>>,
    } -> BeforeTreeReply = "cancel, a summary, instructions for one, a label";

    /// A session begins, or extensions were loaded anew: where are more skills and templates? Emitted after
    /// `session_start`.
    "resources_discover" => ResourcesDiscover {
        /// The folder that the agent works in.
        pub cwd: PathBuf,
        /// Why handlers are asked.
        pub reason: DiscoveryReason,
    } -> ResourcesReply = "folders and files of skills and of templates";

    /// The agent leaves a session for another one. Emitted before it does, when nobody cancelled it.
    "session_leave" => SessionLeave {
        /// Why it leaves.
        pub reason: LeaveReason,
        /// File of the session that it goes to.
        pub target_file: PathBuf,
    } -> () = "nothing";

    /// The session has another name.
    "session_renamed" => SessionRenamed {
        /// The name.
        pub name: String,
    } -> () = "nothing";

    /// A conversation was not compacted: a handler or the user was against it, there was nothing to
    /// compact, or there was no summary.
    "session_compact_failed" => SessionCompactFailed {
        /// Why it was to be compacted.
        pub why: CompactReason,
        /// What went wrong; none if it was cancelled or aborted.
        pub error: Option<String>,
        /// Whether it was cancelled or aborted.
        pub is_aborted: bool,
        /// Whether a handler wrote the summary.
        pub from_handler: bool,
    } -> () = "nothing";

    /// Nothing more happens by itself, and the agent is idle: a run has ended, and so has everything
    /// that its `agent_end` led to.
    "agent_settled" => AgentSettled {} -> () = "nothing";

    /// The body of a request, before it is sent. Another one is checked first: what the provider would
    /// refuse is not sent.
    "provider_payload" => ProviderPayload {
        /// Id of the provider.
        pub provider: String,
        /// Id of the model.
        pub model: String,
        /// Tokens of the prompt by our own count.
        pub tokens: usize,
        /// The body, in the form of the provider's protocol.
        pub payload: Arc<Value>,
    } -> Option<Value> = "another body";

    /// The provider accepted a request, and its answer begins.
    "provider_response" => ProviderResponse {
        /// The HTTP status code.
        pub status: u16,
        /// The response's headers, by their names in lower case; without cookies.
        pub headers: BTreeMap<String, String>,
    } -> () = "nothing";

    /// A part of a streaming answer begins, grows or ends. Faces have `message_update`.
    "answer_part" => AnswerPart {
        /// The answer so far.
        pub message: AgentMessage,
        /// Position of the part in the answer's content, from 0.
        pub part: usize,
        /// Which kind of part it is.
        pub kind: AnswerPartKind,
        /// What happened to it.
        pub change: AnswerPartChange,
    } -> () = "nothing";

    /// The model made a call, before `tool_call` asks about it. With `tool_settled`, for handlers
    /// that expect a call's beginning and end around the questions about it.
    "tool_announced" => ToolAnnounced {
        /// The id that the model gave the call.
        pub call_id: Arc<str>,
        /// Name of the tool, as declared to the model.
        pub tool_name: Arc<str>,
        /// The call's arguments, as the model wrote them.
        pub args: Value,
    } -> () = "nothing";

    /// A call has its final result, after `tool_result`.
    "tool_settled" => ToolSettled {
        /// The id that the model gave the call.
        pub call_id: Arc<str>,
        /// Name of the tool, as declared to the model.
        pub tool_name: Arc<str>,
        /// The content that the model will see.
        pub content: Vec<MessagePart>,
        /// Data for people and programs; never sent to the model.
        pub details: Option<Value>,
        /// Whether the result is an error.
        pub is_error: bool,
    } -> () = "nothing";

    /// The user is about to run a shell command with `!` or `!!`.
    "user_bash" => UserBash {
        /// The command line, without the `!`.
        pub command: String,
        /// True for `!!`: the model never sees the output.
        pub exclude_from_context: bool,
    } -> Option<UserBashReply> = "its output, instead of running it";
}

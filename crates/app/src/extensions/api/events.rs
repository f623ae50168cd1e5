//! The payloads of events: what handlers get.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ContentPart, ImagePart, Message, Model, SessionEntry, ToolCallPart, ToolResultMessage};

/// `AbortSignal` of the platform. The engine puts the call's own one into the payload.
pub struct AbortSignal;

impl JsonSchema for AbortSignal {
    fn schema_name() -> Cow<'static, str> {
        "AbortSignal".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-typescript": "AbortSignal" })
    }
}

/// An input arrived, before skills and templates are expanded.
#[derive(Serialize, JsonSchema)]
pub struct InputEvent {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<ImagePart>>,
    pub source: InputOrigin,
}

/// Where an input came from.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum InputOrigin {
    Interactive,
    Rpc,
    Extension,
}

/// A run is about to begin.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BeforeAgentStartEvent {
    pub prompt: String,
    pub images: Vec<ImagePart>,
    /// As earlier handlers left it.
    pub system_prompt: String,
    pub system_prompt_options: SystemPromptOptions,
}

/// What the system prompt is made of. To change it, return `systemPrompt`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemPromptOptions {
    pub cwd: String,
    pub selected_tools: Vec<String>,
    pub tool_snippets: BTreeMap<String, String>,
    pub prompt_guidelines: Vec<String>,
    pub skills: Vec<SkillInfo>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub struct SkillInfo {
    pub name: String,
    pub description: String,
}

/// The conversation, before each request. What is returned is sent, and not stored.
#[derive(Serialize, JsonSchema)]
pub struct ContextEvent {
    // Each as the text of its JSON: the engine reads those that a handler looks at.
    #[serde(rename = "lazyMessages")]
    #[schemars(rename = "messages", with = "Vec<Message>")]
    pub messages: Vec<String>,
}

/// A tool is about to be called. A handler that fails blocks the call.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallEvent {
    pub tool_name: Arc<str>,
    pub tool_call_id: Arc<str>,
    #[schemars(with = "Map<String, Value>")]
    pub input: Value,
    // Read by the engine: whether changing the input in place counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(skip)]
    pub input_counts: bool,
}

/// A call has a result, before it is stored.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultEvent {
    pub tool_name: Arc<str>,
    pub tool_call_id: Arc<str>,
    #[schemars(with = "Map<String, Value>")]
    pub input: Value,
    pub content: Vec<ContentPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    pub is_error: bool,
}

/// The body of a request, before it is sent.
#[derive(Serialize, JsonSchema)]
pub struct BeforeProviderRequestEvent {
    /// In the form of the provider's protocol.
    pub payload: Arc<Value>,
    pub provider: String,
    pub model: String,
    /// Of the prompt, by Hardpan's own count.
    pub tokens: usize,
}

/// The session is about to be left for another one.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBeforeSwitchEvent {
    pub reason: SwitchKind,
    /// The session that is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_session_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SwitchKind {
    New,
    Resume,
}

/// The conversation is about to be forked.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBeforeForkEvent {
    /// The entry that the fork continues from; null if there is none yet.
    pub entry_id: Option<Arc<str>>,
    pub position: ForkPosition,
}

literals! {
    ForkPosition = "at",
    CompactionType = "compaction",
    BranchSummaryType = "branch_summary",
    SetSource = "set",
}

/// The conversation is about to continue from another entry.
#[derive(Serialize, JsonSchema)]
pub struct SessionBeforeTreeEvent {
    pub preparation: TreePreparation,
    #[serde(rename = "hasSignal")]
    #[schemars(rename = "signal", with = "AbortSignal")]
    pub has_signal: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreePreparation {
    pub target_id: Arc<str>,
    pub old_leaf_id: Option<Arc<str>>,
    pub common_ancestor_id: Option<Arc<str>>,
    pub entries_to_summarize: Vec<SessionEntry>,
    pub user_wants_summary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
}

/// A conversation is about to be compacted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBeforeCompactEvent {
    pub preparation: CompactionPreparation,
    pub branch_entries: Vec<SessionEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    pub reason: CompactionReason,
    pub will_retry: bool,
    #[serde(rename = "hasSignal")]
    #[schemars(rename = "signal", with = "AbortSignal")]
    pub has_signal: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionPreparation {
    pub first_kept_entry_id: Arc<str>,
    pub messages_to_summarize: Vec<Message>,
    /// Always empty: no turn is split here.
    pub turn_prefix_messages: Vec<Message>,
    pub is_split_turn: bool,
    pub tokens_before: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_summary: Option<String>,
    pub file_ops: FileOperations,
    pub settings: CompactionSettings,
}

/// Files that the messages are about.
#[derive(Serialize, JsonSchema)]
pub struct FileOperations {
    pub read: BTreeSet<String>,
    /// Always empty: written files are among those that were edited.
    pub written: Vec<String>,
    pub edited: BTreeSet<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub struct CompactionSettings {
    pub enabled: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CompactionReason {
    Manual,
    Threshold,
    Overflow,
}

/// A session begins: where are more skills and templates?
#[derive(Serialize, JsonSchema)]
pub struct ResourcesDiscoverEvent {
    pub cwd: PathBuf,
    pub reason: DiscoverReason,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum DiscoverReason {
    Startup,
    Reload,
}

/// The person is about to run a command with `!` or `!!`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserBashEvent {
    pub command: String,
    /// True for `!!`: the model never sees the output.
    pub exclude_from_context: bool,
    pub cwd: String,
}

/// A session begins.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStartEvent {
    pub reason: StartReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_session_file: Option<PathBuf>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum StartReason {
    Startup,
    Reload,
    New,
    Resume,
    Fork,
}

/// A session ends, or the extension does.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionShutdownEvent {
    pub reason: ShutdownReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_session_file: Option<PathBuf>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ShutdownReason {
    Quit,
    Reload,
    New,
    Resume,
    Fork,
}

/// Where sessions are kept is the person's choice: nothing is asked.
#[derive(Serialize, JsonSchema)]
pub struct SessionDirectoryEvent {
    pub cwd: String,
}

/// The agent is in another session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSwitchEvent {
    pub reason: SwitchKind,
    pub previous_session_file: PathBuf,
}

/// The conversation was forked.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionForkEvent {
    pub previous_session_file: PathBuf,
}

/// The conversation continues from another entry.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionTreeEvent {
    pub new_leaf_id: Arc<str>,
    pub old_leaf_id: Option<Arc<str>>,
    /// The summary of the branch that was left.
    pub summary_entry: Option<BranchSummary>,
    /// Whether an extension wrote it.
    pub from_extension: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct BranchSummary {
    #[serde(rename = "type")]
    pub kind: BranchSummaryType,
    pub id: Arc<str>,
    pub summary: String,
}

/// A conversation was compacted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCompactEvent {
    pub compaction_entry: Compaction,
    /// Whether an extension wrote the summary.
    pub from_extension: bool,
    pub reason: CompactionReason,
    /// Whether the request that was too long is made again.
    pub will_retry: bool,
}

/// A conversation was not compacted.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCompactFailedEvent {
    pub reason: CompactionReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether an extension cancelled it, or the person aborted it.
    pub aborted: bool,
    /// Always false: the run goes on with what fits.
    pub will_retry: bool,
    /// Whether an extension wrote the summary.
    pub from_extension: bool,
}

/// The session has another name.
#[derive(Serialize, JsonSchema)]
pub struct SessionInfoChangedEvent {
    pub name: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    #[serde(rename = "type")]
    pub kind: CompactionType,
    pub id: Option<Arc<str>>,
    pub summary: String,
    pub first_kept_entry_id: Arc<str>,
    pub tokens_before: u64,
}

/// A run begins.
#[derive(Serialize, JsonSchema)]
pub struct AgentStartEvent {}

/// A run is over.
#[derive(Serialize, JsonSchema)]
pub struct AgentEndEvent {
    /// Those that it added.
    pub messages: Vec<Message>,
}

/// Nothing more happens by itself.
#[derive(Serialize, JsonSchema)]
pub struct AgentSettledEvent {}

/// A turn begins: a request, its answer, and the results of its calls.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStartEvent {
    /// Within the run, from 0.
    pub turn_index: u32,
    /// Milliseconds since 1970.
    pub timestamp: i64,
}

/// A turn is over.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEndEvent {
    pub turn_index: u32,
    pub message: Message,
    pub tool_results: Vec<ToolResultMessage>,
    /// The entries of the session that hold them.
    pub message_entry_id: Arc<str>,
    pub tool_result_entry_ids: Vec<Arc<str>>,
}

/// A message begins; an answer is still empty.
#[derive(Serialize, JsonSchema)]
pub struct MessageStartEvent {
    pub message: Message,
}

/// A part of an answer begins, grows or ends.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageUpdateEvent {
    /// The answer so far.
    pub message: Message,
    pub assistant_message_event: AssistantMessageEvent,
}

/// What happened to a part of an answer.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AssistantMessageEvent {
    TextStart { content_index: usize },
    TextDelta { content_index: usize, delta: String },
    TextEnd { content_index: usize, content: String },
    ThinkingStart { content_index: usize },
    ThinkingDelta { content_index: usize, delta: String },
    ThinkingEnd { content_index: usize, content: String },
    ToolcallStart { content_index: usize },
    ToolcallDelta { content_index: usize, delta: String },
    ToolcallEnd { content_index: usize, tool_call: ToolCallPart },
}

/// A message is complete and stored.
#[derive(Serialize, JsonSchema)]
pub struct MessageEndEvent {
    pub message: Message,
}

/// A tool starts to run.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionStartEvent {
    pub tool_call_id: Arc<str>,
    pub tool_name: Arc<str>,
    #[schemars(with = "Map<String, Value>")]
    pub args: Value,
}

/// A running tool has output to show.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionUpdateEvent {
    pub tool_call_id: Arc<str>,
    pub tool_name: Arc<str>,
    #[schemars(with = "Map<String, Value>")]
    pub args: Value,
    /// The whole output so far.
    pub partial_result: ToolResult,
}

/// A tool has ended.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecutionEndEvent {
    pub tool_call_id: Arc<str>,
    pub tool_name: Arc<str>,
    pub result: ToolResult,
    pub is_error: bool,
}

/// What a tool gives.
#[derive(Serialize, JsonSchema)]
pub struct ToolResult {
    pub content: Vec<ContentPart>,
    /// For people and programs; never sent to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// Another model answers from now on.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelSelectEvent {
    pub model: Model,
    pub previous_model: Model,
    pub source: SetSource,
}

/// The model thinks more, or less, from now on.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingLevelSelectEvent {
    pub level: String,
    pub previous_level: String,
}

/// The provider accepted a request, and its answer begins.
#[derive(Serialize, JsonSchema)]
pub struct AfterProviderResponseEvent {
    pub status: u16,
    /// By their names in lower case; without cookies.
    pub headers: BTreeMap<String, String>,
}

/// An extension asks the person something.
#[derive(Serialize, JsonSchema)]
pub struct UiPromptStartEvent {
    pub kind: PromptKind,
    pub title: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PromptKind {
    Confirm,
    Select,
    Input,
    Editor,
}

/// A question of an extension is no longer asked.
#[derive(Serialize, JsonSchema)]
pub struct UiPromptEndEvent {
    pub answered: bool,
}

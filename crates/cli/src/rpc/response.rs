//! [`OutputMessage`]: the responses and questions that the server sends. Events come from the
//! agent.

use std::path::PathBuf;
use std::sync::Arc;

use hardpan_agent::events::Dialog;
use hardpan_agent::{Activity, Spending};
use hardpan_context::{Breakdown, KeepLevel, LayoutName, Target};
use hardpan_prompt::{AgentMessage, Image};
use hardpan_session::{StoredArgument, StoredContent};
use hardpan_tools::ToolClaim;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::request::{DeliveryMode, PanelVisibility, ThinkingLevel, ToolSwitch};

/// A line on standard output that is not an event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputMessage {
    /// The response to a request: exactly one for each.
    Response(Box<Response>),
    /// Asks whether a tool call may run. Waits for an `approval_response` with this id.
    ApprovalRequest {
        /// The id of the question, to repeat in the answer.
        id: String,
        /// The id of the tool call.
        call_id: Arc<str>,
        /// The name of the tool.
        tool_name: Arc<str>,
        /// The arguments of the tool call.
        args: Value,
        /// The name of the sub-agent that makes the call, if one does.
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<Arc<str>>,
        /// What the tool's server says about it, which nobody has checked.
        #[serde(skip_serializing_if = "Option::is_none")]
        claim: Option<ToolClaim>,
        /// Why a handler, such as a hook, wants a person to decide, whatever rules say.
        #[serde(skip_serializing_if = "Option::is_none")]
        handler_reason: Option<Arc<str>>,
        /// The rule that `remember` would add, in the form of the settings; null if a yes can apply
        /// to this call only.
        rule: Option<String>,
    },
    /// Asks for a line of text. Waits for an `input_response` with this id.
    InputRequest {
        /// The id of the question, to repeat in the answer.
        id: String,
        /// The question for the user.
        prompt: String,
        /// Set if the question is whether a prompt is to be sent whose attachments cost this much;
        /// `yes` sends it.
        #[serde(skip_serializing_if = "Option::is_none")]
        price: Option<PriceQuestion>,
    },
    /// Asks what an extension wants to know. Waits for a `dialog_response` with this id, or until the
    /// event `ui_prompt_end` says that nobody waits any more.
    DialogRequest {
        /// The id of the question, to repeat in the answer.
        id: String,
        /// Name of the extension.
        owner: String,
        /// What is asked.
        #[serde(flatten)]
        dialog: Dialog,
    },
}

/// What the attachments of a prompt cost.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct PriceQuestion {
    /// Tokens, about.
    pub tokens: usize,
    /// US dollars, about.
    pub dollars: f64,
    /// What may be sent without a question, in US dollars: `ask_above` of the settings.
    pub limit: f64,
}

/// The response to a request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Response {
    /// The id of the request; null if the line was not understood.
    pub id: Value,
    /// The type of the request; null if the line was not understood.
    pub command: Option<String>,
    /// Whether the command succeeded.
    pub success: bool,
    /// The result, for commands that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<ResponseData>,
    /// Why the command failed, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The result of a command.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ResponseData {
    /// Of `prompt`, `steer` and `follow_up`.
    PromptOutcome(PromptOutcome),
    /// Of `get_state`.
    AgentState(Box<AgentState>),
    /// Of `get_messages`.
    Messages {
        /// The messages, oldest first.
        messages: Vec<AgentMessage>,
    },
    /// Of `recall`.
    RecalledMessage(RecalledMessage),
    /// Of `set_model`.
    ModelInfo(ModelInfo),
    /// Of `set_thinking_level`.
    Thinking {
        /// How much the model thinks from now on.
        thinking: ThinkingLevel,
    },
    /// Of `compact`.
    Compacted {
        /// The summary that replaces the older messages.
        summary: String,
        /// How many messages the summary replaces.
        messages: usize,
        /// The id of the first message that was kept.
        first_kept: Arc<str>,
        /// The tokens of the conversation before compaction.
        tokens_before: u64,
    },
    /// Of `bash`.
    Bash {
        /// The command, its output and its exit code.
        message: Box<AgentMessage>,
    },
    /// Of `get_session_stats`.
    SessionStats(SessionStats),
    /// Of `new_session`, `switch_session` and `fork`.
    SessionInfo(SessionInfo),
    /// Of `get_context`.
    Context {
        /// The breakdown of the last request, as `hardpan context --json` prints it; null before
        /// the first request.
        breakdown: Option<Box<Breakdown>>,
    },
    /// Of `get_panels` and what changes panels.
    Panels {
        /// The panels, by their ids, then the frozen histories.
        panels: Vec<PanelInfo>,
        /// What is open by name: files and images, documents, pages.
        open: Vec<String>,
    },
    /// Of `get_tools` and `switch_tool`.
    Tools {
        /// All tools, in the order in which the model sees them.
        tools: Vec<ToolInfo>,
    },
    /// Of `get_commands`.
    Commands {
        /// Commands, skills and templates.
        commands: Vec<CommandInfo>,
    },
    /// Of `complete`.
    Completions {
        /// What the last word could be, the best first.
        completions: Vec<CompletionInfo>,
    },
}

/// A panel.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PanelInfo {
    /// Its id: `P1`, or `H1` for a frozen history.
    pub id: Arc<str>,
    /// Its title.
    pub title: String,
    /// Whether requests show it.
    pub state: PanelVisibility,
    /// The page that is shown, from 1.
    pub page: usize,
    /// How many pages there are; 0 for a panel without content.
    pub pages: usize,
}

/// The whole content of a message.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecalledMessage {
    /// The message's id.
    pub id: Arc<str>,
    /// The message's role, as the session file spells it.
    pub role: &'static str,
    /// For a tool result: the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// The text, byte for byte.
    pub text: String,
    /// For a tool result: the long arguments of its call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<RecalledArgument>,
    /// The images, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// An argument of a tool call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RecalledArgument {
    /// The argument's name.
    pub name: String,
    /// A string as it is; any other value as JSON.
    pub text: String,
}

impl From<StoredContent> for ResponseData {
    fn from(stored: StoredContent) -> Self {
        let StoredContent { id, role, tool, text, arguments, images } = stored;
        let argument = |StoredArgument { name, text }| RecalledArgument { name, text };
        let arguments = arguments.into_iter().map(argument).collect();
        ResponseData::RecalledMessage(RecalledMessage { id, role, tool, text, arguments, images })
    }
}

/// What became of a prompt.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "taken", rename_all = "snake_case")]
pub enum PromptOutcome {
    /// The message is stored, and the agent works on it.
    Started {
        /// The id of the stored message.
        message_id: String,
    },
    /// The message waits in a queue.
    Queued {
        /// When it will be delivered.
        delivery: DeliveryMode,
    },
    /// The prompt was a command, which has run.
    Command {
        /// The command's output, if any.
        said: Option<String>,
    },
    /// An extension handled the prompt.
    Handled {},
}

/// The model in use.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelInfo {
    /// The id of the provider.
    pub provider: String,
    /// The model's id at the provider.
    pub model: String,
    /// The size of the context window, in tokens.
    pub context_window: u32,
    /// The token limit of an answer.
    pub max_tokens: u32,
}

impl From<&Target> for ModelInfo {
    fn from(target: &Target) -> Self {
        ModelInfo {
            provider: target.provider.clone(),
            model: target.model.id.clone(),
            context_window: target.model.context,
            max_tokens: target.max_tokens,
        }
    }
}

/// A stored conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionInfo {
    /// The id of the session.
    pub id: Arc<str>,
    /// The session file; the first stored entry creates it.
    pub file: PathBuf,
    /// The name that the user gave it, if any.
    pub name: Option<Arc<str>>,
    /// The number of messages.
    pub message_count: usize,
}

/// The state of the agent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "AgentState")]
pub struct AgentState {
    /// The model that answers.
    pub model: ModelInfo,
    /// How much the model thinks.
    pub thinking: ThinkingLevel,
    /// The layout that orders the prompt.
    #[schemars(with = "String")]
    pub layout: LayoutName,
    /// How much of the conversation a fold may take out of requests.
    pub keep: KeepLevel,
    /// Whether a prompt would have to wait: a run is under way, or something else was accepted.
    pub busy: bool,
    /// What the agent is doing.
    pub activity: Activity,
    /// The current conversation.
    pub session: SessionInfo,
    /// The messages that wait to be delivered.
    pub queued: QueuedInputs,
    /// Tokens and dollars used so far.
    pub usage: UsageSummary,
}

/// Messages that wait to be delivered, as they were typed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueuedInputs {
    /// Delivered after the current tool call.
    pub steering: Vec<String>,
    /// Delivered when the model has finished.
    pub follow_up: Vec<String>,
}

/// Tokens and dollars used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageSummary {
    /// By the last request; null if the provider reported none.
    pub last_request: Option<TokenAmounts>,
    /// By the whole session, helper requests included.
    pub session: TokenAmounts,
    /// The number of requests of the session.
    pub requests: u64,
}

/// Tokens by how they were billed, and their cost.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TokenAmounts {
    /// Input tokens neither read from the cache nor written to it.
    pub input: u64,
    /// Input tokens read from the cache.
    pub read: u64,
    /// Input tokens written to the cache.
    pub written: u64,
    /// Tokens that the model wrote.
    pub output: u64,
    /// What was paid for all of them, in US dollars.
    pub dollars: f64,
    /// What the answers of a simulator would have cost, in US dollars; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub would_cost: Option<f64>,
}

impl From<Spending> for TokenAmounts {
    fn from(Spending { tokens, dollars, would_cost }: Spending) -> Self {
        TokenAmounts {
            input: tokens.input,
            read: tokens.cache_read,
            written: tokens.cache_written(),
            output: tokens.output,
            dollars,
            would_cost: Some(would_cost).filter(|would_cost| *would_cost > 0.0),
        }
    }
}

/// Counts over the current conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionStats {
    /// The current conversation.
    pub session: SessionInfo,
    /// Messages from the user.
    pub user_messages: usize,
    /// Messages from the model.
    pub assistant_messages: usize,
    /// Tool calls that the model made.
    pub tool_calls: usize,
    /// Results of tool calls.
    pub tool_results: usize,
    /// Results that report a failure.
    pub failed_results: usize,
    /// Tokens and dollars used so far.
    pub usage: UsageSummary,
    /// Tokens of the last request by our own count; null before the first.
    pub context_tokens: Option<usize>,
    /// The token limit of a request.
    pub max_input_tokens: u32,
}

/// A tool, switched on or off.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolInfo {
    /// The name that the model calls it by.
    pub name: Arc<str>,
    /// Who brought it: `built-in`, or the name of a server or an extension.
    pub source: String,
    /// Whether the model may call it.
    pub state: ToolSwitch,
    /// Whether requests declare it: the list of tools stays what it is while it is cached.
    pub declared: bool,
    /// Whether the model finds it with `tool_search` and calls it with `mcp_call`, so that no request
    /// declares it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// What it does, in one line.
    pub summary: Arc<str>,
}

/// A command, skill or template that a prompt can call with `/name`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommandInfo {
    /// The name, without the slash.
    pub name: String,
    /// What it does, in one line.
    pub description: String,
    /// The arguments that it takes, if it declares them.
    pub argument_hint: Option<String>,
    /// Whether it is a command, a skill or a template.
    pub source: CommandSource,
}

/// What a word of a slash command could be.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CompletionInfo {
    /// The whole word.
    pub text: String,
    /// What it is; may be empty.
    pub detail: String,
}

/// The kind of a `/name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandSource {
    /// Runs at once.
    Command,
    /// A skill, which expands to a prompt.
    Skill,
    /// A template, which expands to a prompt.
    Template,
}

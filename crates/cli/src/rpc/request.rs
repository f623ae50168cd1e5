//! [`Request`]: what a client sends. `docs/rpc.schema.json` is generated from these types and from
//! those of the responses.

use hardpan_agent::Delivery;
use hardpan_models::{ThinkingSetting, did_you_mean};
use hardpan_prompt::{Effort, Image};
use hardpan_tools::ToolState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::InvalidRequestError;

/// A request: one line on standard input.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("unevaluatedProperties" = false))]
pub struct Request {
    /// Any JSON value; the response repeats it. In an answer to a question: the question's id.
    #[serde(default)]
    pub id: Value,
    /// The command and its arguments.
    #[serde(flatten)]
    pub command: RpcCommand,
}

/// A command, by its `type`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum RpcCommand {
    /// Sends a prompt. The response comes when its message is stored, or when a command is done;
    /// the run ends with the event `agent_end`.
    Prompt {
        /// The prompt. `/name` calls a command, a skill or a template; `@path` adds a file.
        #[serde(default)]
        message: String,
        /// Images to send along.
        #[serde(default)]
        images: Vec<Image>,
        /// When to deliver the prompt if the agent is busy. Without it, a busy agent rejects the
        /// prompt.
        when_busy: Option<DeliveryMode>,
    },
    /// Sends a message that is delivered after the current tool call. Starts a run if the agent is
    /// idle.
    Steer {
        /// The message.
        #[serde(default)]
        message: String,
        /// Images to send along.
        #[serde(default)]
        images: Vec<Image>,
    },
    /// Sends a message that is delivered when the model has finished. Starts a run if the agent is
    /// idle.
    FollowUp {
        /// The message.
        #[serde(default)]
        message: String,
        /// Images to send along.
        #[serde(default)]
        images: Vec<Image>,
    },
    /// Stops the run. The session keeps what arrived.
    Abort {},
    /// Returns the model, the session, the queued messages and the usage.
    GetState {},
    /// Returns the messages of the conversation.
    GetMessages {},
    /// Returns the whole content of a message, also if requests show only a line of it.
    Recall {
        /// The message's id.
        entry: String,
    },
    /// Sends messages in another form from the next request on, or no longer. The session keeps them.
    SetMessageState {
        /// The first message's id.
        entry: String,
        /// The last message's id; the first one's if left out.
        last: Option<String>,
        /// The new state.
        state: MessageForm,
        /// The summary that is sent in place of all of them, in the state `tl_dr`.
        summary: Option<String>,
    },
    /// Lists the panels of the conversation.
    GetPanels {},
    /// Puts a file or an image into the context, or a document of the server (`doc:ID`).
    OpenPanel {
        /// A path, or `doc:` and an id.
        target: String,
    },
    /// Takes a file, a document, a page, a panel or a frozen history out of the context.
    ClosePanel {
        /// A path, `doc:ID`, an address, or the id of a panel or history.
        target: String,
    },
    /// Turns a long panel to another page.
    TurnPanel {
        /// The panel's id, key or title.
        panel: String,
        /// The page, from 1.
        page: usize,
    },
    /// Keeps a panel out of requests, or shows it again.
    SwitchPanel {
        /// The panel's id, key or title.
        panel: String,
        /// Whether requests show it.
        state: PanelVisibility,
    },
    /// Switches the model, from the next request on.
    SetModel {
        /// The model, as `hardpan models` lists it.
        model: String,
        /// The provider, if several offer the model.
        provider: Option<String>,
    },
    /// Sets how much the model thinks, from the next request on.
    SetThinkingLevel {
        /// A level by name, or the token limit for thinking. A note says what the model is told if it
        /// does not offer that.
        level: ThinkingLevel,
    },
    /// Replaces older messages with a summary. The response comes when the summary is stored.
    Compact {
        /// What the summary should focus on.
        instructions: Option<String>,
    },
    /// Runs a shell command for the user, without approval. The response comes when it has exited.
    Bash {
        /// The command line for the shell.
        command: String,
        /// Keep the command and its output from the model.
        #[serde(default)]
        exclude_from_context: bool,
    },
    /// Stops the shell command that a `bash` request started.
    AbortBash {},
    /// Starts a new conversation. The agent must be idle.
    NewSession {},
    /// Switches to another conversation. The agent must be idle.
    SwitchSession {
        /// The session's id, name or file.
        session: String,
    },
    /// Copies the conversation into a new one and continues there. The agent must be idle.
    Fork {
        /// The last entry to copy; by default, the newest.
        entry: Option<String>,
    },
    /// Returns what filled the context window in the last request.
    GetContext {},
    /// Counts the messages, tokens and dollars of the session.
    GetSessionStats {},
    /// Lists the commands, skills and templates that a prompt can call with `/name`.
    GetCommands {},
    /// Completes the last word of a slash command that is being typed, such as `/price mo`.
    Complete {
        /// The text up to the cursor.
        text: String,
    },
    /// Lists the tools, with their source and whether they are on.
    GetTools {},
    /// Switches a tool on or off. Calls of a tool that is off are refused at once; requests declare the
    /// tools as they are from the next fold on, because a changed list finds nothing in the cache.
    SwitchTool {
        /// The tool, as `get_tools` lists it.
        name: String,
        /// Whether the model may call it.
        state: ToolSwitch,
        /// Whether the next request sends the changed list, at the price of the cache.
        #[serde(default)]
        now: bool,
    },
    /// Answers an `approval_request`; `id` is the id of the question.
    ApprovalResponse {
        /// Whether the tool call may run.
        verdict: ApprovalAnswer,
        /// With `no`: the reason, which the model reads.
        reason: Option<String>,
        /// With `yes`: how long it applies. By default, to this call only.
        remember: Option<ApprovalScope>,
    },
    /// Answers an `input_request`; `id` is the id of the question.
    InputResponse {
        /// The text; null if the user gave none.
        value: Option<String>,
    },
    /// Answers a `dialog_request`; `id` is the id of the question. Without `value` and `confirmed`, the
    /// user gave no answer.
    DialogResponse {
        /// The choice or the text.
        value: Option<String>,
        /// The answer to a question of the kind `confirm`.
        confirmed: Option<bool>,
    },
}

/// The names of the commands, in the order of [`RpcCommand`].
pub const COMMAND_NAMES: [&str; 30] = [
    "prompt",
    "steer",
    "follow_up",
    "abort",
    "get_state",
    "get_messages",
    "recall",
    "set_message_state",
    "get_panels",
    "open_panel",
    "close_panel",
    "turn_panel",
    "switch_panel",
    "set_model",
    "set_thinking_level",
    "compact",
    "bash",
    "abort_bash",
    "new_session",
    "switch_session",
    "fork",
    "get_context",
    "get_session_stats",
    "get_commands",
    "complete",
    "get_tools",
    "switch_tool",
    "approval_response",
    "input_response",
    "dialog_response",
];

/// Whether requests show a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PanelVisibility {
    /// They do.
    Shown,
    /// They do not.
    Hidden,
}

/// Whether the model may call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolSwitch {
    /// It is offered with every request.
    On,
    /// It is left out of requests, and calls are not run.
    Off,
}

impl From<ToolSwitch> for ToolState {
    fn from(switch: ToolSwitch) -> Self {
        match switch {
            ToolSwitch::On => ToolState::On,
            ToolSwitch::Off => ToolState::Off,
        }
    }
}

impl From<ToolState> for ToolSwitch {
    fn from(state: ToolState) -> Self {
        match state {
            ToolState::On => ToolSwitch::On,
            ToolState::Off => ToolSwitch::Off,
        }
    }
}

/// When a message that arrives while the agent is busy is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// After the current tool call.
    Steer,
    /// When the model has finished.
    FollowUp,
}

impl From<DeliveryMode> for Delivery {
    fn from(when: DeliveryMode) -> Self {
        match when {
            DeliveryMode::Steer => Delivery::Steer,
            DeliveryMode::FollowUp => Delivery::FollowUp,
        }
    }
}

impl From<Delivery> for DeliveryMode {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Steer => DeliveryMode::Steer,
            Delivery::FollowUp => DeliveryMode::FollowUp,
        }
    }
}

/// How much the model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected default, off, minimal, low, medium, high, xhigh, max or a number of tokens"
)]
pub enum ThinkingLevel {
    /// A level by name.
    Word(ThinkingWord),
    /// At most this many tokens.
    Tokens(u32),
}

/// A thinking level by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingWord {
    /// What the model does by itself.
    Default,
    /// No thinking, as far as the model allows.
    Off,
    /// As little thinking as possible.
    Minimal,
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
    /// More than high effort.
    XHigh,
    /// Everything the model can do.
    Max,
}

impl From<ThinkingLevel> for ThinkingSetting {
    fn from(level: ThinkingLevel) -> Self {
        match level {
            ThinkingLevel::Tokens(0) | ThinkingLevel::Word(ThinkingWord::Off) => ThinkingSetting::Off,
            ThinkingLevel::Tokens(tokens) => ThinkingSetting::Budget(tokens),
            ThinkingLevel::Word(ThinkingWord::Default) => ThinkingSetting::Default,
            ThinkingLevel::Word(ThinkingWord::Minimal) => ThinkingSetting::Level(Effort::Minimal),
            ThinkingLevel::Word(ThinkingWord::Low) => ThinkingSetting::Level(Effort::Low),
            ThinkingLevel::Word(ThinkingWord::Medium) => ThinkingSetting::Level(Effort::Medium),
            ThinkingLevel::Word(ThinkingWord::High) => ThinkingSetting::Level(Effort::High),
            ThinkingLevel::Word(ThinkingWord::XHigh) => ThinkingSetting::Level(Effort::XHigh),
            ThinkingLevel::Word(ThinkingWord::Max) => ThinkingSetting::Level(Effort::Max),
        }
    }
}

impl From<ThinkingSetting> for ThinkingLevel {
    fn from(setting: ThinkingSetting) -> Self {
        ThinkingLevel::Word(match setting {
            ThinkingSetting::Budget(tokens) => return ThinkingLevel::Tokens(tokens),
            ThinkingSetting::Default => ThinkingWord::Default,
            ThinkingSetting::Off | ThinkingSetting::Level(Effort::None) => ThinkingWord::Off,
            ThinkingSetting::Level(Effort::Minimal) => ThinkingWord::Minimal,
            ThinkingSetting::Level(Effort::Low) => ThinkingWord::Low,
            ThinkingSetting::Level(Effort::Medium) => ThinkingWord::Medium,
            ThinkingSetting::Level(Effort::High) => ThinkingWord::High,
            ThinkingSetting::Level(Effort::XHigh) => ThinkingWord::XHigh,
            ThinkingSetting::Level(Effort::Max) => ThinkingWord::Max,
        })
    }
}

/// The answer to an approval question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalAnswer {
    /// Run the call.
    Yes,
    /// Do not run it.
    No,
}

/// How long a yes applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// Until this process ends.
    Session,
    /// For good: the rule is stored.
    Always,
}

/// Why a line is not a request, with its id and command if those could be read.
#[derive(Debug)]
pub struct InvalidRequest {
    pub id: Value,
    pub command: Option<String>,
    pub error: InvalidRequestError,
}

impl Request {
    /// Parses a line into the command's name and the request.
    pub fn parse(line: &str) -> Result<(String, Self), InvalidRequest> {
        let invalid = |error| InvalidRequest { id: Value::Null, command: None, error };
        let value: Value =
            serde_json::from_str(line).map_err(|error| invalid(InvalidRequestError::NotJson(error)))?;
        let Value::Object(mut fields) = value else {
            return Err(invalid(InvalidRequestError::NotAnObject));
        };
        let id = fields.shift_remove("id").unwrap_or_default();
        let name = fields.get("type").and_then(Value::as_str).map(str::to_owned);
        let invalid = |error| {
            let command = name.as_ref().map(|name| name.chars().take(MAX_ECHOED_NAME).collect());
            InvalidRequest { id: id.clone(), command, error }
        };
        let Some(name) = &name else {
            return Err(invalid(InvalidRequestError::NoType));
        };
        if !COMMAND_NAMES.contains(&name.as_str()) {
            let name: String = name.chars().take(MAX_ECHOED_NAME).collect();
            let meant = did_you_mean(&hardpan_models::nearest(&name, COMMAND_NAMES.into_iter()));
            return Err(invalid(InvalidRequestError::UnknownCommand { name, meant }));
        }
        let fields = Value::Object(fields);
        if contains_nul(&fields) {
            return Err(invalid(InvalidRequestError::ContainsNul));
        }
        match serde_json::from_value(fields) {
            Ok(command) => Ok((name.clone(), Request { id, command })),
            Err(error) => Err(invalid(InvalidRequestError::Fields(error))),
        }
    }
}

/// How many characters of an unknown command name an error repeats.
const MAX_ECHOED_NAME: usize = 60;

fn contains_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(contains_nul),
        Value::Object(fields) => fields.values().any(contains_nul),
        _ => false,
    }
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageForm {
    /// As it is.
    Whole,
    /// As a summary.
    TlDr,
    /// Not at all.
    Deleted,
    /// In a frozen history panel, with everything before them. Only in the layout `panels`.
    Detached,
}

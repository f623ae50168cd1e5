//! What handlers reply to the events that ask them something.

use std::path::PathBuf;

use hardpan_prompt::{Image, MessageId, MessagePart};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::payloads::CustomMessage;

/// What a handler does with an input.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum InputReply {
    /// The input continues unchanged.
    #[default]
    Continue,
    /// The input continues with another text.
    Transform {
        /// The text that replaces the typed one.
        text: String,
        /// Replaces the images; null keeps them.
        images: Option<Vec<Image>>,
    },
    /// The handler dealt with the input: nothing goes to the model, and later handlers are not
    /// asked.
    Handled,
}

/// What a handler adds to a run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct BeforeAgentStartReply {
    /// A message to store after the prompt.
    pub message: Option<CustomMessage>,
    /// Replaces the system prompt, for this run only.
    pub system_prompt: Option<String>,
}

/// Whether a tool call may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum ToolCallReply {
    /// This handler does not object.
    #[default]
    Allow,
    /// The call does not run.
    Block {
        /// The model reads it, and the user sees it.
        reason: String,
    },
    /// The call does not run, and the run ends if every call of the answer ended this way, or by a result that says so.
    BlockAndEnd {
        /// The model reads it with the next prompt, and the user sees it.
        reason: String,
    },
    /// The call runs with other arguments. Handlers after this one and the person are asked about those;
    /// the transcript keeps what the model wrote.
    Change {
        /// All arguments, as the tool takes them.
        input: Value,
    },
    /// A person is asked about the call, whatever rules say. If nobody is there, it does not run.
    Ask {
        /// Why; the person reads it.
        reason: String,
        /// All arguments, if the call is to run with others.
        #[serde(default)]
        input: Option<Value>,
    },
}

/// Changes to a tool result; null keeps a part as it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct ToolResultReply {
    /// Replaces the content that the model sees.
    pub content: Option<Vec<MessagePart>>,
    /// Replaces the data for people and programs.
    pub details: Option<Value>,
    /// Changes whether the result is an error.
    pub is_error: Option<bool>,
}

/// What a handler does with a compaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum BeforeCompactReply {
    /// The compaction continues.
    #[default]
    Continue,
    /// The compaction is cancelled.
    Cancel {
        /// Shown to the user.
        reason: String,
    },
    /// The handler supplies the summary; the model is not asked.
    Summary {
        /// The text of the summary.
        text: String,
        /// The first message that is kept; null for the one that the event names.
        #[serde(default)]
        first_kept: Option<MessageId>,
        /// The handler's own data; stored with the summary, and never sent.
        #[serde(default)]
        details: Option<Value>,
    },
}

impl BeforeCompactReply {
    /// A summary of the messages that the event names.
    pub fn summary(text: impl Into<String>) -> Self {
        BeforeCompactReply::Summary { text: text.into(), first_kept: None, details: None }
    }
}

/// Whether the agent may leave a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum BeforeSwitchReply {
    /// It may.
    #[default]
    Continue,
    /// It stays where it is.
    Cancel {
        /// Shown to the user.
        reason: String,
    },
}

/// What a handler does with a change of branches; null leaves a thing as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BeforeTreeReply {
    /// The conversation stays where it is, for this reason; shown to the user.
    pub cancel: Option<String>,
    /// The summary of the branch that is left, if one was wanted; the model is not asked.
    pub summary: Option<String>,
    /// What the summary that the model writes should focus on.
    pub instructions: Option<String>,
    /// A label for the entry that the conversation continues from.
    pub label: Option<String>,
}

/// Where more skills and templates are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResourcesReply {
    /// Folders of skills.
    pub skill_paths: Vec<PathBuf>,
    /// Folders and files of templates.
    pub prompt_paths: Vec<PathBuf>,
}

/// The result of a handler that ran the user's command itself; without one the agent runs it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct UserBashReply {
    /// What the command printed, both streams together.
    pub output: String,
    /// The command's exit code; null if it was stopped.
    pub exit_code: Option<i32>,
}

//! What handlers reply to the events that ask them something.

use hardpan_prompt::{Image, MessagePart};
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
    },
}

/// The result of a handler that ran the user's command itself; without one the agent runs it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct UserBashReply {
    /// What the command printed, both streams together.
    pub output: String,
    /// The command's exit code; null if it was stopped.
    pub exit_code: Option<i32>,
}

//! Types of the events' fields.

use std::sync::Arc;

use hardpan_economy::ledger::Totals;
use hardpan_prompt::{DroppedReasoning, MessageBody, MessagePart, WebSource};
use hardpan_providers::{ClientNotice, UnsupportedFeature};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Note;

/// Where an input came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputSource {
    /// The user typed it in the terminal.
    Interactive,
    /// A program sent it over RPC.
    Rpc,
    /// An extension sent it. It is taken as it is: no slash command runs, nothing is expanded.
    Extension,
    /// Hardpan itself: the task of a sub-agent, or what lets the agent go on by itself. Taken as it
    /// is, too: a model wrote it, or nobody.
    Agent,
}

impl InputSource {
    /// Whether a slash command in the input runs, and skills and templates are expanded.
    pub(crate) fn is_typed(self) -> bool {
        match self {
            InputSource::Interactive | InputSource::Rpc => true,
            InputSource::Extension | InputSource::Agent => false,
        }
    }
}

/// Why the agent leaves a session for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchReason {
    /// A new session begins.
    New,
    /// An earlier session is resumed.
    Resume,
}

/// Why the agent leaves a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaveReason {
    /// For a new session.
    New,
    /// For an earlier session.
    Resume,
    /// For a copy of it.
    Fork,
}

/// What a provider calls an answer. Both are empty if it gave none.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
pub struct ResponseIdentity {
    /// The provider's id of the response.
    pub id: Arc<str>,
    /// The model that answered, as the provider calls it.
    pub model: Arc<str>,
}

/// Why handlers are asked for skills and templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiscoveryReason {
    /// The session begins.
    Startup,
    /// Extensions were loaded anew.
    Reload,
}

/// A part of a streaming answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPartKind {
    /// Text of the answer.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// A tool call.
    Call,
}

/// What happened to a part of a streaming answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPartChange {
    /// It began.
    Start,
    /// It grew by this text: of a call, by a piece of its arguments' JSON.
    Delta(String),
    /// It is complete.
    End,
}

/// A message of an extension. The model always sees it; `display` decides about people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomMessage {
    /// The extension's own name for this kind of message.
    pub custom_type: Arc<str>,
    /// The message's content.
    pub content: Vec<MessagePart>,
    /// Whether the message is shown to people; true by default.
    #[serde(default = "default_display")]
    pub display: bool,
    /// The extension's own data; stored with the message, and never sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl CustomMessage {
    /// Its texts, for handlers that ask what a run is about.
    pub(crate) fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            MessagePart::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// What the message says, and what is only stored with it.
    pub(crate) fn into_parts(self) -> (MessageBody, Option<Value>) {
        let CustomMessage { custom_type, content, display, details } = self;
        (MessageBody::Custom { custom_type, content, display }, details)
    }
}

fn default_display() -> bool {
    true
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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

/// What the requests of a sub-agent begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskPrefix {
    /// A prompt of its own: its instructions, its tools.
    Own,
    /// Tools, system prompt and context of the agent that started it, which are cached.
    Shared,
    /// The whole conversation of the agent that started it.
    Fork,
}

/// A limit of a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskLimit {
    /// Requests to the model.
    Requests,
    /// Tokens that the model writes.
    OutputTokens,
    /// Dollars.
    Dollars,
    /// Minutes, without the time that a person takes to answer questions.
    Minutes,
}

/// Why a sub-agent ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum TaskStop {
    /// It has answered.
    Done,
    /// The run that started it was aborted.
    Aborted,
    /// It reached a limit.
    Budget {
        /// Which one.
        limit: TaskLimit,
    },
    /// It failed.
    Failed {
        /// Why, for people.
        message: String,
    },
}

/// What a sub-agent has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TaskUsage {
    /// Requests to the model.
    pub requests: u64,
    /// Tokens of these requests, however they were billed.
    pub prompt_tokens: u64,
    /// How many of them were read from the cache.
    pub cached_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Dollars.
    pub dollars: f64,
}

impl From<&Totals> for TaskUsage {
    fn from(totals: &Totals) -> Self {
        TaskUsage {
            requests: totals.requests,
            prompt_tokens: totals.tokens.prompt(),
            cached_tokens: totals.tokens.cache_read,
            output_tokens: totals.tokens.output,
            dollars: totals.dollars,
        }
    }
}

/// A piece of a streaming answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
        /// The id that the model gave the call.
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

/// How important a note of an extension is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteLevel {
    /// Good to know.
    #[default]
    Info,
    /// Something may be wrong.
    Warning,
    /// Something failed.
    Error,
}

/// What a note is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoteKind {
    /// The request failed and is sent again.
    Retry {
        /// The number of the attempt that follows; the first is 1.
        attempt: u32,
        /// The maximum number of attempts.
        tries: u32,
        /// How long the agent waits before it, in milliseconds.
        wait_ms: u64,
    },
    /// The model refused a feature, and the request is sent again without it.
    Downgrade {
        /// What the model refused.
        feature: UnsupportedFeature,
    },
    /// The connection broke in the middle of the answer; what came is kept.
    BrokenOff,
    /// The provider took earlier reasoning out of the request.
    DroppedReasoning {
        /// What was taken out, and why.
        dropped: Vec<DroppedReasoning>,
    },
    /// The provider's own tool searches the web.
    WebSearch {
        /// What it searches for; empty if the provider does not say.
        query: String,
    },
    /// The answer cites these pages.
    Sources {
        /// In the order in which they are first cited.
        sources: Vec<WebSource>,
    },
    /// A part of the answer is of a type that Hardpan does not know, and is missing from it.
    SkippedPart {
        /// The provider's name of the type.
        part_type: String,
    },
    /// The conversation was compacted to make room.
    Compacted {
        /// Number of messages that the summary replaces.
        messages: usize,
    },
    /// The conversation could not be compacted; the run continues.
    CompactionFailed,
    /// A skill or template of the input was not expanded as typed.
    Expansion,
    /// A secret was replaced in the request.
    Redacted,
    /// A page that the input names joins the context.
    PageFetched {
        /// The address as the input has it.
        url: String,
        /// Length of its text.
        bytes: usize,
    },
    /// A page that the input names was not fetched.
    PageNotFetched {
        /// The address as the input has it.
        url: String,
    },
    /// A file that the input mentions with `@` is not attached in full.
    Mention,
    /// An extension tells something.
    Extension {
        /// Name of the extension.
        extension: Arc<str>,
        /// How important it is.
        level: NoteLevel,
    },
    /// Settings, the session, the tools or the route to the provider are not what one might expect.
    Setup,
}

impl From<&ClientNotice> for Note {
    fn from(notice: &ClientNotice) -> Self {
        let kind = match notice {
            ClientNotice::Retry { error: _, wait, attempt, tries } => NoteKind::Retry {
                attempt: *attempt,
                tries: *tries,
                wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            },
            ClientNotice::Downgrade { model: _, feature } => NoteKind::Downgrade { feature: *feature },
            ClientNotice::BrokenOff { error: _ } => NoteKind::BrokenOff,
            ClientNotice::DroppedReasoning { dropped } => {
                NoteKind::DroppedReasoning { dropped: dropped.clone() }
            }
            ClientNotice::WebSearch { query } => NoteKind::WebSearch { query: query.clone() },
            ClientNotice::SkippedPart { part_type } => NoteKind::SkippedPart { part_type: part_type.clone() },
        };
        Note { text: notice.to_string(), kind }
    }
}

//! The conversation as the agent stores it.
//!
//! The principal type is [`AgentMessage`]: an id, a few marks that tell how the message is sent,
//! and a [`MessageBody`] that depends on who wrote it. Sessions and snapshots contain these
//! messages as JSON; a layout converts them into [`PromptMessage`](crate::PromptMessage)s.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Image, Json, NotRunReason, ProviderBlock, Text, Tier, TokenUsage, WebSource};

/// A message's id, unique within its session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MessageId(pub Arc<str>);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for MessageId {
    fn from(id: &str) -> Self {
        MessageId(id.into())
    }
}

/// Whether a message is sent, and in which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Sent as it is.
    #[default]
    Whole,
    /// Its summary (`tl_dr`) is sent instead of its text.
    #[serde(alias = "summarised")]
    TlDr,
    /// Sent as a part of a frozen history panel, not as a message.
    Detached,
    /// Kept in the session, but never sent.
    Deleted,
}

/// One message of the conversation. Messages are equal if they say the same and are sent in the same form;
/// what else is known about them does not count.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentMessage {
    /// Unique within the session; items and panels refer to messages by it.
    pub id: MessageId,
    /// When the message was written, where that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub time: Option<Timestamp>,
    /// Whether the message is sent, and in which form.
    #[serde(default, skip_serializing_if = "is_whole")]
    pub state: MessageState,
    /// The summary that is sent instead of its text in the state `tl_dr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tl_dr: Option<Text>,
    /// Its tier in the `tiers` layout. `None`: the tracker has not assigned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// For how many responses the tracker has counted it as unchanged. `None`: not tracked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "n")]
    pub unchanged_responses: Option<u32>,
    /// What is known about it besides; a session stores it beside the message.
    #[serde(skip)]
    pub facts: Option<Arc<MessageFacts>>,
    /// The content, by author.
    #[serde(flatten)]
    #[schemars(with = "MessageBody")]
    pub body: Arc<MessageBody>,
}

/// What is known about a message and never sent: data for people, programs and extensions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageFacts {
    /// Data of the tool or the extension that made it.
    pub details: Option<serde_json::Value>,
    /// Of an answer: what it used, and its price in dollars.
    pub usage: Option<(TokenUsage, f64)>,
    /// Of an answer that broke off: why, for people.
    pub error: Option<Arc<str>>,
}

fn is_whole(state: &MessageState) -> bool {
    *state == MessageState::Whole
}

/// The content of a message, by author.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum MessageBody {
    /// Written by the person.
    User {
        /// A string, or a list of parts: text and images.
        #[serde(deserialize_with = "parts")]
        #[schemars(with = "Content")]
        content: Vec<MessagePart>,
    },
    /// Answered by the model.
    Assistant {
        /// A string, or a list of parts in the order they were streamed: text, reasoning, tool
        /// calls.
        #[serde(deserialize_with = "parts")]
        #[schemars(with = "Content")]
        content: Vec<MessagePart>,
        /// The provider that answered, where known: reasoning is sent back only to the model that
        /// produced it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<Arc<str>>,
        /// The id of the model that answered, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
        /// Why the answer ended, in the provider's own word; Hardpan adds `aborted` and `error`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<Arc<str>>,
    },
    /// The result of a tool call, matched to the call by its id.
    #[serde(alias = "tool")]
    ToolResult {
        /// Id of the call that this result answers.
        call_id: Arc<str>,
        /// Name of the tool, where it was recorded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<Arc<str>>,
        /// A string, or a list of parts: text and images.
        #[serde(deserialize_with = "parts")]
        #[schemars(with = "Content")]
        content: Vec<MessagePart>,
        /// Whether the tool failed; the content then explains why.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        /// Why the tool did not run, or not to its end. `None`: it ran, or an older version stored
        /// the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_run: Option<NotRunReason>,
    },
    /// Text that an extension added; the model reads it as if the person had written it.
    Custom {
        /// The extension's own name for this sort of message.
        custom_type: Arc<str>,
        /// A string, or a list of parts: text and images.
        #[serde(deserialize_with = "parts")]
        #[schemars(with = "Content")]
        content: Vec<MessagePart>,
        /// Whether the person sees it; the model always does.
        #[serde(default = "yes")]
        display: bool,
    },
    /// A command that the person ran with `!` or `!!`.
    BashExecution {
        /// The command line that ran.
        command: Arc<str>,
        /// Standard output and standard error, as far as they were kept.
        output: Text,
        /// The exit code. `None`: the command was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// `!!`: the command ran without the model being told.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exclude_from_context: bool,
    },
    /// The summary that replaced older messages when the conversation was compacted.
    CompactionSummary {
        /// The summary's text, which the model reads in place of those messages.
        summary: Text,
    },
    /// A summary of a branch of the conversation that was left.
    BranchSummary {
        /// The summary's text, which the model reads on the branch that is continued.
        summary: Text,
    },
}

fn yes() -> bool {
    true
}

/// One part of a message's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum MessagePart {
    /// Plain text.
    Text {
        /// The text as it was written, Markdown included.
        text: Text,
    },
    /// An image that the person attached or a tool returned.
    Image(Image),
    /// The model's reasoning before or between its answers.
    Reasoning {
        /// The reasoning, as far as the provider shows it.
        #[serde(default)]
        text: Text,
        /// The provider's signature, sent back byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Arc<str>>,
        /// Encrypted reasoning, sent back byte for byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<Arc<str>>,
    },
    /// A tool call that the model made.
    ToolCall(ToolCall),
    /// A block of the provider's own web search.
    ProviderBlock(ProviderBlock),
    /// The pages that the answer cites.
    Sources {
        /// In the order in which they are first cited.
        sources: Vec<WebSource>,
    },
}

impl MessagePart {
    /// Makes a text part.
    pub fn text(text: impl Into<Text>) -> Self {
        MessagePart::Text { text: text.into() }
    }
}

/// A tool call that the model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The provider's id for the call; results refer to it.
    pub id: Arc<str>,
    /// Name of the called tool.
    pub name: Arc<str>,
    /// The arguments as the model wrote them, byte for byte.
    #[serde(default)]
    pub arguments: Json,
    /// The call's result, where the session stores it together with the call. Elsewhere a
    /// `tool_result` message holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
}

impl ToolCall {
    /// In bytes: longer than most paths, shorter than any content worth leaving out of requests.
    pub const LONG_ARGUMENT: usize = 200;

    /// The arguments that are long enough to be left out of requests once they are superseded: those
    /// that hold contents, and not what the call was about.
    pub fn long_arguments(&self) -> Vec<(String, serde_json::Value)> {
        if self.arguments.as_str().len() <= Self::LONG_ARGUMENT {
            return Vec::new();
        }
        match self.arguments.value() {
            serde_json::Value::Object(fields) => fields
                .into_iter()
                .filter(|(_, field)| field.to_string().len() > Self::LONG_ARGUMENT)
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// The result of a tool call that is stored together with the call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallResult {
    /// A string, or a list of parts: text and images.
    #[serde(deserialize_with = "parts")]
    #[schemars(with = "Content")]
    pub content: Vec<MessagePart>,
    /// Whether the tool failed; the content then explains why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// The two forms that JSON content may have: a string stands for a single text part.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema's view of `parts`")]
enum Content {
    /// A single text part.
    Text(String),
    /// Parts, in the order the model reads them.
    Parts(Vec<MessagePart>),
}

fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MessagePart>, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Vec<MessagePart>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list of parts")
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<MessagePart>, E> {
            Ok(if text.is_empty() { Vec::new() } else { vec![MessagePart::text(text)] })
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<MessagePart>, A::Error> {
            let mut parts = Vec::new();
            while let Some(part) = seq.next_element()? {
                parts.push(part);
            }
            Ok(parts)
        }
        fn visit_unit<E>(self) -> Result<Vec<MessagePart>, E> {
            Ok(Vec::new())
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// The fields that a message of any role may have.
const COMMON_FIELDS: [&str; 7] = ["id", "role", "time", "state", "tl_dr", "tier", "n"];

impl PartialEq for AgentMessage {
    fn eq(&self, other: &Self) -> bool {
        let AgentMessage { id, time, state, tl_dr, tier, unchanged_responses, facts: _, body } = self;
        (id, time, state, tl_dr, tier, unchanged_responses)
            == (&other.id, &other.time, &other.state, &other.tl_dr, &other.tier, &other.unchanged_responses)
            && (Arc::ptr_eq(body, &other.body) || *body == other.body)
    }
}

impl AgentMessage {
    /// Whether a message of this role may have a field of this name. Deserializing ignores unknown
    /// fields, so that sessions of later versions can be read; callers that must reject them ask
    /// here.
    pub fn has_field(role: &str, field: &str) -> bool {
        let own: &[&str] = match role {
            "user" => &["content"],
            "assistant" => &["content", "provider", "model", "stop_reason"],
            "tool_result" | "tool" => &["call_id", "tool_name", "content", "is_error", "not_run"],
            "custom" => &["custom_type", "content", "display"],
            "bash_execution" => &["command", "output", "exit_code", "exclude_from_context"],
            "compaction_summary" | "branch_summary" => &["summary"],
            _ => &[],
        };
        COMMON_FIELDS.contains(&field) || own.contains(&field)
    }

    /// Makes a message with only an id and a body.
    pub fn new(id: impl Into<MessageId>, body: MessageBody) -> Self {
        AgentMessage {
            id: id.into(),
            time: None,
            state: MessageState::Whole,
            tl_dr: None,
            tier: None,
            unchanged_responses: None,
            facts: None,
            body: Arc::new(body),
        }
    }

    /// Notes something about the message that is never sent.
    pub fn note(&mut self, note: impl FnOnce(&mut MessageFacts)) {
        let mut facts = self.facts.as_deref().cloned().unwrap_or_default();
        note(&mut facts);
        self.facts = Some(facts).filter(|facts| *facts != MessageFacts::default()).map(Arc::new);
    }

    /// Data of the tool or the extension that made the message.
    pub fn details(&self) -> Option<&serde_json::Value> {
        self.facts.as_ref()?.details.as_ref()
    }

    /// Whether the message begins a new exchange: everything but the model's answers and tool
    /// results.
    pub fn is_user(&self) -> bool {
        !matches!(*self.body, MessageBody::Assistant { .. } | MessageBody::ToolResult { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_written_form() {
        let written = r#"{"id":"m1","state":"tl_dr","tl_dr":"short","tier":"L0","role":"assistant","content":[{"type":"reasoning","text":"hm","signature":"s"},{"type":"tool_call","id":"t1","name":"read","arguments":{"path":"a"}}],"model":"x"}"#;
        let message: AgentMessage = serde_json::from_str(written).unwrap();
        assert_eq!(message.state, MessageState::TlDr);
        assert_eq!(serde_json::to_string(&message).unwrap(), written);
    }

    #[test]
    fn every_field_in_the_schema_is_known_by_name() {
        let schema = schemars::schema_for!(AgentMessage).to_value();
        let properties = |schema: &serde_json::Value| -> Vec<String> {
            schema["properties"]
                .as_object()
                .map(|fields| fields.keys().cloned().collect())
                .unwrap_or_default()
        };
        let roles = schema["oneOf"].as_array().unwrap();
        assert_eq!(roles.len(), 7);
        for variant in roles {
            let role = variant["properties"]["role"]["const"].as_str().unwrap();
            for field in properties(variant).iter().chain(&properties(&schema)) {
                assert!(AgentMessage::has_field(role, field), "{role}.{field}");
            }
            assert!(!AgentMessage::has_field(role, "contents"));
        }
    }

    #[test]
    fn a_string_is_one_part_of_text() {
        let message: AgentMessage =
            serde_json::from_str(r#"{"id":"m","role":"user","content":"hi"}"#).unwrap();
        assert_eq!(*message.body, MessageBody::User { content: vec![MessagePart::text("hi")] });
    }
}

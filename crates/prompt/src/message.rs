//! The conversation as the agent keeps it.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Image, Json, Text, Tier};

/// A message's name, unique within its session.
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

/// Whether and how a message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it is.
    #[default]
    Whole,
    /// Its summary (`tl_dr`) stands for its text.
    #[serde(alias = "summarised")]
    TlDr,
    /// Moved into a frozen history panel.
    Detached,
    /// Not sent.
    Deleted,
}

/// One entry of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentMessage {
    /// Its name.
    pub id: MessageId,
    /// When it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub time: Option<Timestamp>,
    /// Whether and how it is sent.
    #[serde(default, skip_serializing_if = "is_whole")]
    pub state: State,
    /// The summary that stands for its text in the state `tl_dr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tl_dr: Option<Text>,
    /// Its tier in `tiers`, where the tracker has assigned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// For how many responses it has been tracked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// What it says.
    #[serde(flatten)]
    #[schemars(with = "Body")]
    pub body: Arc<Body>,
}

fn is_whole(state: &State) -> bool {
    *state == State::Whole
}

/// What a message says, by who says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Body {
    /// The person.
    User {
        /// A string, or parts: text and images.
        #[serde(deserialize_with = "parts")]
        #[schemars(with = "Content")]
        content: Vec<Part>,
    },
    /// The model.
    Assistant {
        /// A string, or parts in the order they came: text, reasoning, tool calls.
        #[serde(deserialize_with = "parts")]
        #[schemars(with = "Content")]
        content: Vec<Part>,
        /// The provider that made it, where known: reasoning goes back only to its maker.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<Arc<str>>,
        /// The model that made it, where known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Arc<str>>,
        /// Why it ended, in the provider's word; `aborted` and `error` are ours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<Arc<str>>,
    },
    /// A tool's answer, joined to its call by id.
    #[serde(alias = "tool")]
    ToolResult {
        /// The call it answers.
        call_id: Arc<str>,
        /// The tool's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<Arc<str>>,
        /// A string, or parts: text and images.
        #[serde(deserialize_with = "parts")]
        #[schemars(with = "Content")]
        content: Vec<Part>,
        /// Whether the tool failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// Text that an extension put in; sent as the user's.
    Custom {
        /// The extension's name for it.
        custom_type: Arc<str>,
        /// A string, or parts.
        #[serde(deserialize_with = "parts")]
        #[schemars(with = "Content")]
        content: Vec<Part>,
        /// Whether a person sees it; the model always does.
        #[serde(default = "yes")]
        display: bool,
    },
    /// A command that the person ran with `!` or `!!`.
    BashExecution {
        /// The command line.
        command: Arc<str>,
        /// What it printed.
        output: Text,
        /// Its exit code; none if it was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// `!!`: run without telling the model.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exclude_from_context: bool,
    },
    /// What a compaction kept of the messages before it.
    CompactionSummary {
        /// The summary.
        summary: Text,
    },
    /// What was learned on a branch that was left.
    BranchSummary {
        /// The summary.
        summary: Text,
    },
}

fn yes() -> bool {
    true
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: Text,
    },
    /// An image.
    Image(Image),
    /// The model's reasoning.
    Reasoning {
        /// What it thought, as far as the provider shows it.
        #[serde(default)]
        text: Text,
        /// The provider's signature: sent back to the byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Arc<str>>,
        /// Encrypted reasoning: sent back to the byte.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        redacted: Option<Arc<str>>,
    },
    /// A tool call.
    ToolCall(ToolCall),
}

impl Part {
    /// A part of text.
    pub fn text(text: impl Into<Text>) -> Self {
        Part::Text { text: text.into() }
    }
}

/// A tool call that the model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The provider's id for it.
    pub id: Arc<str>,
    /// The tool.
    pub name: Arc<str>,
    /// The arguments.
    #[serde(default)]
    pub arguments: Json,
    /// Its result, where it is stored with the call (seed e's way). A tool_result message is the other way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
}

/// A tool's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallResult {
    /// A string, or parts: text and images.
    #[serde(deserialize_with = "parts")]
    #[schemars(with = "Content")]
    pub content: Vec<Part>,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A string stands for one part of text.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema's view of `parts`")]
enum Content {
    /// One part of text.
    Text(String),
    /// Parts, in order.
    Parts(Vec<Part>),
}

fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Vec<Part>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list of parts")
        }
        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<Part>, E> {
            Ok(if text.is_empty() { Vec::new() } else { vec![Part::text(text)] })
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Part>, A::Error> {
            let mut parts = Vec::new();
            while let Some(part) = seq.next_element()? {
                parts.push(part);
            }
            Ok(parts)
        }
        fn visit_unit<E>(self) -> Result<Vec<Part>, E> {
            Ok(Vec::new())
        }
    }
    deserializer.deserialize_any(Visitor)
}

/// The fields that every message may have.
const COMMON_FIELDS: [&str; 7] = ["id", "role", "time", "state", "tl_dr", "tier", "n"];

impl AgentMessage {
    /// Whether a message of this role has a field of this name. Where unknown fields must be noticed, this is asked; reading
    /// a message by itself passes over them, so that sessions of later versions can be read.
    pub fn has_field(role: &str, field: &str) -> bool {
        let own: &[&str] = match role {
            "user" => &["content"],
            "assistant" => &["content", "provider", "model", "stop_reason"],
            "tool_result" | "tool" => &["call_id", "tool_name", "content", "is_error"],
            "custom" => &["custom_type", "content", "display"],
            "bash_execution" => &["command", "output", "exit_code", "exclude_from_context"],
            "compaction_summary" | "branch_summary" => &["summary"],
            _ => &[],
        };
        COMMON_FIELDS.contains(&field) || own.contains(&field)
    }

    /// A message with nothing but an id and a body.
    pub fn new(id: impl Into<MessageId>, body: Body) -> Self {
        AgentMessage {
            id: id.into(),
            time: None,
            state: State::Whole,
            tl_dr: None,
            tier: None,
            n: None,
            body: Arc::new(body),
        }
    }

    /// Whether a person or a program speaks to the model here: what begins an exchange.
    pub fn is_user(&self) -> bool {
        !matches!(*self.body, Body::Assistant { .. } | Body::ToolResult { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_its_written_form() {
        let written = r#"{"id":"m1","state":"tl_dr","tl_dr":"short","tier":"L0","role":"assistant","content":[{"type":"reasoning","text":"hm","signature":"s"},{"type":"tool_call","id":"t1","name":"read","arguments":{"path":"a"}}],"model":"x"}"#;
        let message: AgentMessage = serde_json::from_str(written).unwrap();
        assert_eq!(message.state, State::TlDr);
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
        assert_eq!(*message.body, Body::User { content: vec![Part::text("hi")] });
    }
}

//! What an entry records.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Body, Part, State, Text, Tier};
use jiff::Timestamp;
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::fields::Fields;
use crate::request::RequestRecord;

/// What an entry records.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Something was said. The message's id is the entry's.
    Message(Box<AgentMessage>),
    /// A piece of an answer that is still coming. It is never a leaf, and nothing follows it.
    Partial(Partial),
    /// From here on, another model answers.
    ModelChange {
        /// The provider's name.
        provider: Arc<str>,
        /// The model's id.
        model: Arc<str>,
    },
    /// From here on, the model thinks more or less.
    ThinkingChange {
        /// The level, in the agent's word for it.
        level: Arc<str>,
    },
    /// An entry was given a label, or lost it.
    Label {
        /// The labelled entry.
        target: Arc<str>,
        /// The label; none takes it away.
        label: Option<Arc<str>>,
    },
    /// The session was given a name.
    Name {
        /// The name.
        name: Arc<str>,
    },
    /// What was said before some entry was replaced by a summary.
    Compaction {
        /// What stands for it.
        summary: Text,
        /// The first entry that stays as it is; none where nothing does.
        first_kept: Option<Arc<str>>,
        /// Tokens of the conversation before.
        tokens_before: Option<u64>,
        /// What the summary was made with, such as the files read and changed.
        details: Option<Value>,
    },
    /// What a layout remembered; opaque here.
    Memory {
        /// The memory.
        memory: Value,
    },
    /// A request was made to a provider.
    Request(Arc<RequestRecord>),
    /// An extension's own state; never sent.
    Custom {
        /// The extension's name for it.
        custom_type: Arc<str>,
        /// The state.
        data: Value,
    },
    /// A type that this version does not know, or a record that it cannot read.
    Other {
        /// The line as it was, without its end.
        line: Arc<str>,
    },
}

/// What has come of an answer since the last piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Partial {
    /// The message that the pieces will be once the answer has ended.
    pub of: Arc<str>,
    /// What has come.
    pub parts: Vec<Part>,
    /// The provider that answers; the first piece tells.
    pub provider: Option<Arc<str>>,
    /// The model that answers; the first piece tells.
    pub model: Option<Arc<str>>,
}

impl Record {
    /// The name of its type in the file.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Record::Message(_) => "message",
            Record::Partial(_) => "partial",
            Record::ModelChange { .. } => "model_change",
            Record::ThinkingChange { .. } => "thinking_change",
            Record::Label { .. } => "label",
            Record::Name { .. } => "name",
            Record::Compaction { .. } => "compaction",
            Record::Memory { .. } => "memory",
            Record::Request(_) => "request",
            Record::Custom { .. } => "custom",
            Record::Other { .. } => "other", // never written: its line is
        }
    }

    /// Writes its fields, after those that every entry has.
    pub(crate) fn write<M: SerializeMap>(
        &self,
        time: Option<Timestamp>,
        map: &mut M,
    ) -> Result<(), M::Error> {
        match self {
            Record::Message(message) => map.serialize_entry("message", &Said::of(message, time)),
            Record::Partial(Partial { of, parts, provider, model }) => {
                map.serialize_entry("of", of)?;
                map.serialize_entry("parts", parts)?;
                provider.iter().try_for_each(|provider| map.serialize_entry("provider", provider))?;
                model.iter().try_for_each(|model| map.serialize_entry("model", model))
            }
            Record::ModelChange { provider, model } => {
                map.serialize_entry("provider", provider)?;
                map.serialize_entry("model", model)
            }
            Record::ThinkingChange { level } => map.serialize_entry("level", level),
            Record::Label { target, label } => {
                map.serialize_entry("target", target)?;
                map.serialize_entry("label", label)
            }
            Record::Name { name } => map.serialize_entry("name", name),
            Record::Compaction { summary, first_kept, tokens_before, details } => {
                map.serialize_entry("summary", summary)?;
                map.serialize_entry("first_kept", first_kept)?;
                tokens_before.iter().try_for_each(|tokens| map.serialize_entry("tokens_before", tokens))?;
                details.iter().try_for_each(|details| map.serialize_entry("details", details))
            }
            Record::Memory { memory } => map.serialize_entry("memory", memory),
            Record::Request(request) => map.serialize_entry("request", request),
            Record::Custom { custom_type, data } => {
                map.serialize_entry("custom_type", custom_type)?;
                map.serialize_entry("data", data)
            }
            Record::Other { .. } => Ok(()), // never written: its line is
        }
    }

    /// Takes the fields it knows; none for a type that it does not.
    pub(crate) fn read(
        kind: &str,
        id: &Arc<str>,
        time: Option<Timestamp>,
        fields: &mut Fields<'_>,
    ) -> Result<Option<Self>, String> {
        Ok(Some(match kind {
            "message" => Record::Message(Box::new(fields.take_message(id, time)?)),
            "partial" => Record::Partial(Partial {
                of: fields.take_text("of")?,
                parts: fields.take_typed("parts")?,
                provider: fields.take_if_readable("provider"),
                model: fields.take_if_readable("model"),
            }),
            "model_change" => Record::ModelChange {
                provider: fields.take_text("provider")?,
                model: fields.take_text("model")?,
            },
            "thinking_change" => Record::ThinkingChange { level: fields.take_text("level")? },
            "label" => Record::Label {
                target: fields.take_text("target")?,
                label: fields.take_text_or_null("label")?,
            },
            "name" => Record::Name { name: fields.take_text("name")? },
            "compaction" => Record::Compaction {
                summary: Text::new(&*fields.take_text("summary")?),
                first_kept: fields.take_text_or_null("first_kept")?,
                tokens_before: fields.take_if_readable("tokens_before"),
                details: fields.take_if_readable("details"),
            },
            "memory" => Record::Memory { memory: fields.take_typed("memory")? },
            "request" => Record::Request(Arc::new(fields.take_typed("request")?)),
            "custom" => Record::Custom {
                custom_type: fields.take_text("custom_type")?,
                data: fields.take_typed("data")?,
            },
            _ => return Ok(None),
        }))
    }
}

/// A message without what its entry says already.
#[derive(Serialize)]
struct Said<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Timestamp>,
    #[serde(skip_serializing_if = "is_whole")]
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    tl_dr: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<Tier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(flatten)]
    body: &'a Body,
    /// What the model said, where it did more than say something: for whoever wants no more. It is never read.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl<'a> Said<'a> {
    fn of(message: &'a AgentMessage, entry_time: Option<Timestamp>) -> Self {
        // Every field is named, so that a new one forces a decision here.
        let AgentMessage { id: _, time, state, tl_dr, tier, n, body } = message;
        let time = time.filter(|_| *time != entry_time);
        Said { time, state: *state, tl_dr: tl_dr.as_ref(), tier: *tier, n: *n, body, text: plain(body) }
    }
}

/// The plain text of an answer of several parts, if there is any.
fn plain(body: &Body) -> Option<String> {
    let Body::Assistant { content, .. } = body else { return None };
    let texts = content.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| content.len() > 1 && !text.is_empty())
}

fn is_whole(state: &State) -> bool {
    *state == State::Whole
}

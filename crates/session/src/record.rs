//! [`Record`]: the content of an entry, and how each kind is written and read.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, MessageState, Text, Tier};
use jiff::Timestamp;
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::problem::LineError;
use crate::raw_fields::RawFields;
use crate::request::RequestRecord;

/// The content of an entry. The variants are named like the `type` of the line.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A message of the conversation. Its id is the entry's.
    Message(Box<AgentMessage>),
    /// A piece of an answer that is still streaming. It is never a leaf, and nothing follows it.
    Partial(PartialRecord),
    /// The user chose another model for the following turns.
    ModelChange {
        /// Name of the provider, as in the catalogue.
        provider: Arc<str>,
        /// Id of the model at that provider.
        model: Arc<str>,
    },
    /// The user chose another reasoning effort for the following turns.
    ThinkingChange {
        /// The level as the agent spells it: `off`, `low`, a token count, …
        level: Arc<str>,
    },
    /// A label was put on an entry, or removed from it.
    Label {
        /// Id of the labelled entry.
        target: Arc<str>,
        /// The new label; `None` removes the old one.
        label: Option<Arc<str>>,
    },
    /// A message is sent in another form from here on, or no longer.
    MessageState {
        /// Id of the message.
        target: Arc<str>,
        /// Its new state.
        state: MessageState,
        /// The summary that is sent in the state `tl_dr`.
        tl_dr: Option<Text>,
    },
    /// The user named the session. The last name counts.
    Name {
        /// The name, free text.
        name: Arc<str>,
    },
    /// A summary replaced the older part of the conversation.
    Compaction {
        /// The summary that the model sees instead.
        summary: Text,
        /// Id of the first entry that is kept as it is; `None` if all are replaced.
        first_kept: Option<Arc<str>>,
        /// Tokens of the conversation before the compaction.
        tokens_before: Option<u64>,
        /// What else is known about it, such as the files read and changed.
        details: Option<Value>,
    },
    /// A change of the layout's memory. This crate does not interpret it.
    Memory {
        /// JSON that only the layout understands.
        memory: Value,
    },
    /// A request to a provider, with its usage and cost.
    Request(Arc<RequestRecord>),
    /// State that an extension stores in the session; it is never sent to a model.
    Custom {
        /// The extension's name for this kind of state.
        custom_type: Arc<str>,
        /// JSON that only the extension understands.
        data: Value,
    },
    /// A line of a type this version does not know, or of a known type with fields it cannot read.
    Other {
        /// The line as read, without its newline; it is written back unchanged.
        line: Arc<str>,
    },
}

/// What arrived of a streaming answer since the previous piece. If the program is killed before the
/// answer ends, the pieces are put together when the session is opened.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialRecord {
    /// Id that the complete message will have.
    pub message_id: Arc<str>,
    /// The content that arrived, in order.
    pub parts: Vec<MessagePart>,
    /// The provider that answers; only the first piece needs it.
    pub provider: Option<Arc<str>>,
    /// The model that answers; only the first piece needs it.
    pub model: Option<Arc<str>>,
}

impl Record {
    /// The `type` of the line in the file.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Record::Message(_) => "message",
            Record::Partial(_) => "partial",
            Record::ModelChange { .. } => "model_change",
            Record::ThinkingChange { .. } => "thinking_change",
            Record::Label { .. } => "label",
            Record::MessageState { .. } => "message_state",
            Record::Name { .. } => "name",
            Record::Compaction { .. } => "compaction",
            Record::Memory { .. } => "memory",
            Record::Request(_) => "request",
            Record::Custom { .. } => "custom",
            Record::Other { .. } => "other", // never written: its line is
        }
    }

    /// Writes the fields of this record, after those that every entry has.
    pub(crate) fn serialize_into<M: SerializeMap>(
        &self,
        time: Option<Timestamp>,
        map: &mut M,
    ) -> Result<(), M::Error> {
        match self {
            Record::Message(message) => map.serialize_entry("message", &StoredMessage::new(message, time)),
            Record::Partial(PartialRecord { message_id, parts, provider, model }) => {
                map.serialize_entry("of", message_id)?;
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
            Record::MessageState { target, state, tl_dr } => {
                map.serialize_entry("target", target)?;
                map.serialize_entry("state", state)?;
                tl_dr.iter().try_for_each(|tl_dr| map.serialize_entry("tl_dr", tl_dr))
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

    /// Takes the fields of a record of this type. `None` for an unknown type.
    pub(crate) fn parse(
        kind: &str,
        id: &Arc<str>,
        time: Option<Timestamp>,
        fields: &mut RawFields<'_>,
    ) -> Result<Option<Self>, LineError> {
        Ok(Some(match kind {
            "message" => Record::Message(Box::new(fields.take_message(id, time)?)),
            "partial" => Record::Partial(PartialRecord {
                message_id: fields.take_text("of")?,
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
            "message_state" => Record::MessageState {
                target: fields.take_text("target")?,
                state: fields.take_typed("state")?,
                tl_dr: fields.take_if_readable("tl_dr"),
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

/// A message as stored: without the id, and without the time where it equals the entry's.
#[derive(Serialize)]
struct StoredMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<Timestamp>,
    #[serde(skip_serializing_if = "is_whole")]
    state: MessageState,
    #[serde(skip_serializing_if = "Option::is_none")]
    tl_dr: Option<&'a Text>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<Tier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(flatten)]
    body: &'a MessageBody,
    /// The text alone, for people and scripts that read the file. It is never read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl<'a> StoredMessage<'a> {
    fn new(message: &'a AgentMessage, entry_time: Option<Timestamp>) -> Self {
        // Every field is named, so that a new one forces a decision here.
        // Facts are stored with the entry.
        let AgentMessage { id: _, time, state, tl_dr, tier, unchanged_responses: n, facts: _, body } =
            message;
        let time = time.filter(|_| *time != entry_time);
        StoredMessage {
            time,
            state: *state,
            tl_dr: tl_dr.as_ref(),
            tier: *tier,
            n: *n,
            body,
            text: plain_text(body),
        }
    }
}

/// The plain text of an answer that has several parts.
fn plain_text(body: &MessageBody) -> Option<String> {
    let MessageBody::Assistant { content, .. } = body else { return None };
    let texts = content.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect::<Vec<_>>().join("\n")).filter(|text| content.len() > 1 && !text.is_empty())
}

fn is_whole(state: &MessageState) -> bool {
    *state == MessageState::Whole
}

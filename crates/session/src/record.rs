//! What an entry records.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Part, Text};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

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

    pub(crate) fn write(&self, time: Option<Timestamp>, fields: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Value| _ = fields.insert(key.into(), value);
        match self {
            Record::Message(message) => {
                let mut value = value_of(message);
                if let Some(message_fields) = value.as_object_mut() {
                    message_fields.shift_remove("id");
                    if message.time == time {
                        message_fields.shift_remove("time");
                    }
                }
                put("message", value);
            }
            Record::Partial(Partial { of, parts, provider, model }) => {
                put("of", value_of(of));
                put("parts", value_of(parts));
                provider.iter().for_each(|provider| put("provider", value_of(provider)));
                model.iter().for_each(|model| put("model", value_of(model)));
            }
            Record::ModelChange { provider, model } => {
                put("provider", value_of(provider));
                put("model", value_of(model));
            }
            Record::ThinkingChange { level } => put("level", value_of(level)),
            Record::Label { target, label } => {
                put("target", value_of(target));
                put("label", value_of(label));
            }
            Record::Name { name } => put("name", value_of(name)),
            Record::Compaction { summary, first_kept, tokens_before, details } => {
                put("summary", value_of(summary));
                put("first_kept", value_of(first_kept));
                tokens_before.iter().for_each(|tokens| put("tokens_before", (*tokens).into()));
                details.iter().for_each(|details| put("details", details.clone()));
            }
            Record::Memory { memory } => put("memory", memory.clone()),
            Record::Request(request) => put("request", value_of(request)),
            Record::Custom { custom_type, data } => {
                put("custom_type", value_of(custom_type));
                put("data", data.clone());
            }
            Record::Other { .. } => {}
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

/// Everything that is written here serialises: there are no maps with other keys than strings.
pub(crate) fn value_of(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

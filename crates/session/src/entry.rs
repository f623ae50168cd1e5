//! One line of a session.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Text};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u64 = 1;

/// The first line: which session this is.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Its name, unique among sessions.
    pub id: Arc<str>,
    /// When it began.
    pub time: Option<Timestamp>,
    /// The folder it began in.
    pub cwd: Arc<str>,
    /// Fields that this version does not know.
    pub extra: Map<String, Value>,
}

/// A line after the first: something that happened, and after what.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name, unique within the session.
    pub id: Arc<str>,
    /// The entry it follows; none for a root.
    pub parent: Option<Arc<str>>,
    /// When it happened.
    pub time: Option<Timestamp>,
    /// What happened.
    pub record: Record,
    /// Fields that this version does not know.
    pub extra: Map<String, Value>,
}

/// What an entry records.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Something was said. The message's id is the entry's.
    Message(Box<AgentMessage>),
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
    },
    /// A type that this version does not know, or a record that it cannot read.
    Other {
        /// The line as it was, without its end.
        line: Arc<str>,
    },
}

impl Header {
    /// The line, with its end.
    pub fn to_line(&self) -> String {
        let Header { id, time, cwd, extra } = self;
        let mut fields = Map::new();
        fields.insert("type".into(), "session".into());
        fields.insert("version".into(), VERSION.into());
        fields.insert("id".into(), text(id));
        fields.extend(time.map(|time| ("time".into(), time.to_string().into())));
        fields.insert("cwd".into(), text(cwd));
        fields.extend(extra.clone());
        line(fields)
    }

    /// The header, if these fields, without `type` and `version`, are one.
    pub(crate) fn read(mut fields: Map<String, Value>) -> Option<Self> {
        let id = take_text(&mut fields, "id").ok()?;
        let time = take_time(&mut fields);
        let cwd = take_text(&mut fields, "cwd").unwrap_or_default();
        Some(Header { id, time, cwd, extra: fields })
    }
}

impl Entry {
    /// An entry for a message: its id and time are the message's.
    pub fn message(parent: Option<&str>, message: AgentMessage) -> Self {
        let (id, time) = (message.id.0.clone(), message.time);
        Entry::new(id, parent, time, Record::Message(Box::new(message)))
    }

    /// An entry for anything else.
    pub fn new(
        id: impl Into<Arc<str>>,
        parent: Option<&str>,
        time: Option<Timestamp>,
        record: Record,
    ) -> Self {
        Entry { id: id.into(), parent: parent.map(Into::into), time, record, extra: Map::new() }
    }

    /// The line, with its end: what is appended to the file.
    pub fn to_line(&self) -> String {
        let Entry { id, parent, time, record, extra } = self;
        if let Record::Other { line } = record {
            return format!("{line}\n");
        }
        let mut fields = Map::new();
        fields.insert("type".into(), record.name().into());
        fields.insert("id".into(), text(id));
        fields.insert("parent".into(), parent.as_deref().into());
        fields.extend(time.map(|time| ("time".into(), time.to_string().into())));
        record.write(*time, &mut fields);
        fields.extend(extra.clone());
        line(fields)
    }

    /// Reads a line, and says what of it could not be understood. An error means that it has no place in the tree.
    pub(crate) fn read(line: &str) -> Result<(Self, Option<String>), String> {
        let mut fields: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| format!("it is not a JSON object ({error})"))?;
        let kind = take_text(&mut fields, "type")?;
        let id = take_text(&mut fields, "id")?;
        let parent = match fields.shift_remove("parent") {
            Some(Value::Null) => None,
            Some(Value::String(parent)) => Some(parent.into()),
            _ => return Err("it has no `parent` (null for the first entry)".into()),
        };
        let time = take_time(&mut fields);
        let (record, problem) = match Record::read(&kind, &id, time, &mut fields) {
            Ok(record) => (record, None),
            Err(problem) => (None, Some(problem)),
        };
        let Some(record) = record else {
            let record = Record::Other { line: line.into() };
            return Ok((Entry { id, parent, time, record, extra: Map::new() }, problem));
        };
        Ok((Entry { id, parent, time, record, extra: fields }, None))
    }
}

impl Record {
    /// The name of its type in the file.
    fn name(&self) -> &'static str {
        match self {
            Record::Message(_) => "message",
            Record::ModelChange { .. } => "model_change",
            Record::ThinkingChange { .. } => "thinking_change",
            Record::Label { .. } => "label",
            Record::Name { .. } => "name",
            Record::Compaction { .. } => "compaction",
            Record::Other { .. } => "other", // never written: its line is
        }
    }

    fn write(&self, time: Option<Timestamp>, fields: &mut Map<String, Value>) {
        let mut put = |key: &str, value: Value| fields.insert(key.into(), value);
        match self {
            Record::Message(message) => {
                // A message always serialises.
                let mut value = serde_json::to_value(message).unwrap_or_default();
                if let Some(message_fields) = value.as_object_mut() {
                    message_fields.shift_remove("id");
                    if message.time == time {
                        message_fields.shift_remove("time");
                    }
                }
                put("message", value);
            }
            Record::ModelChange { provider, model } => {
                put("provider", text(provider));
                put("model", text(model));
            }
            Record::ThinkingChange { level } => _ = put("level", text(level)),
            Record::Label { target, label } => {
                put("target", text(target));
                put("label", label.as_deref().into());
            }
            Record::Name { name } => _ = put("name", text(name)),
            Record::Compaction { summary, first_kept } => {
                put("summary", text(summary));
                put("first_kept", first_kept.as_deref().into());
            }
            Record::Other { .. } => {}
        }
    }

    /// Takes the fields it knows; none for a type that it does not.
    fn read(
        kind: &str,
        id: &Arc<str>,
        time: Option<Timestamp>,
        fields: &mut Map<String, Value>,
    ) -> Result<Option<Self>, String> {
        Ok(Some(match kind {
            "message" => Record::Message(Box::new(take_message(fields, id, time)?)),
            "model_change" => Record::ModelChange {
                provider: take_text(fields, "provider")?,
                model: take_text(fields, "model")?,
            },
            "thinking_change" => Record::ThinkingChange { level: take_text(fields, "level")? },
            "label" => Record::Label {
                target: take_text(fields, "target")?,
                label: take_text_or_null(fields, "label")?,
            },
            "name" => Record::Name { name: take_text(fields, "name")? },
            "compaction" => Record::Compaction {
                summary: Text::new(&*take_text(fields, "summary")?),
                first_kept: take_text_or_null(fields, "first_kept")?,
            },
            _ => return Ok(None),
        }))
    }
}

fn take_message(
    fields: &mut Map<String, Value>,
    id: &Arc<str>,
    time: Option<Timestamp>,
) -> Result<AgentMessage, String> {
    let Some(Value::Object(mut message)) = fields.shift_remove("message") else {
        return Err("its `message` is missing or no object".into());
    };
    message.insert("id".into(), text(id));
    let mut message: AgentMessage = serde_json::from_value(message.into())
        .map_err(|error| format!("its message cannot be read: {error}"))?;
    message.time = message.time.or(time);
    Ok(message)
}

fn take_text(fields: &mut Map<String, Value>, key: &str) -> Result<Arc<str>, String> {
    match fields.shift_remove(key) {
        Some(Value::String(text)) => Ok(text.into()),
        _ => Err(format!("its `{key}` is missing or no string")),
    }
}

fn take_text_or_null(fields: &mut Map<String, Value>, key: &str) -> Result<Option<Arc<str>>, String> {
    match fields.get(key) {
        Some(Value::Null) => {
            fields.shift_remove(key);
            Ok(None)
        }
        _ => take_text(fields, key).map(Some),
    }
}

/// A time that cannot be read stays among the fields: it is no reason to lose what was said.
fn take_time(fields: &mut Map<String, Value>) -> Option<Timestamp> {
    let time = fields.get("time")?.as_str()?.parse().ok()?;
    fields.shift_remove("time");
    Some(time)
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn line(fields: Map<String, Value>) -> String {
    Value::Object(fields).to_string() + "\n"
}

#[cfg(test)]
mod tests;

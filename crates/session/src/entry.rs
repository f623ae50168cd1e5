//! One line of a session.

use std::sync::Arc;

use hardpan_prompt::AgentMessage;
use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::record::Record;

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

impl Header {
    /// The line, with its end.
    pub fn to_line(&self) -> String {
        line(self)
    }

    /// The header, if these fields, without `type` and `version`, are one.
    pub(crate) fn read(mut fields: Fields<'_>) -> Option<Self> {
        let id = fields.take_text("id").ok()?;
        let time = fields.take_time();
        let cwd = fields.take_text("cwd").unwrap_or_default();
        Some(Header { id, time, cwd, extra: fields.rest().ok()? })
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
        match &self.record {
            Record::Other { line } => format!("{line}\n"),
            _ => line(self),
        }
    }

    /// Reads a line, and says what of it could not be understood. An error means that it has no place in the tree.
    pub(crate) fn read(line: &str) -> Result<(Self, Option<String>), String> {
        let mut fields = Fields::of(line).map_err(|error| format!("it is not a JSON object ({error})"))?;
        let kind = fields.take_text("type")?;
        let id = fields.take_text("id")?;
        let parent = fields
            .take_text_or_null("parent")
            .map_err(|_| "it has no `parent` (null for the first entry)")?;
        let time = fields.take_time();
        let read = Record::read(&kind, &id, time, &mut fields)
            .and_then(|record| record.map(|record| Ok((record, fields.rest()?))).transpose());
        let (read, problem) = match read {
            Ok(read) => (read, None),
            Err(problem) => (None, Some(problem)),
        };
        let (record, extra) = read.unwrap_or_else(|| (Record::Other { line: line.into() }, Map::new()));
        Ok((Entry { id, parent, time, record, extra }, problem))
    }
}

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Header { id, time, cwd, extra } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "session")?;
        map.serialize_entry("version", &VERSION)?;
        map.serialize_entry("id", id)?;
        time.iter().try_for_each(|time| map.serialize_entry("time", time))?;
        map.serialize_entry("cwd", cwd)?;
        extra.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Entry { id, parent, time, record, extra } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", record.kind())?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("parent", parent)?;
        time.iter().try_for_each(|time| map.serialize_entry("time", time))?;
        record.write(*time, &mut map)?;
        extra.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

/// Serialising to memory cannot fail: every key is a string, and every value is known.
fn line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests;

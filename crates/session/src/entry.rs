//! [`Entry`] and [`Header`]: the lines of a session file, and how they are written and parsed.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, MessageFacts};
use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::problem::LineError;
use crate::raw_fields::RawFields;
use crate::record::Record;

/// Version of the file format: what is written, and the newest that can be read.
pub const VERSION: u64 = 1;

/// Field of a message's entry: data of the tool or the extension that made it.
pub const DETAILS_FIELD: &str = "details";
/// Field of a message's entry: why the answer broke off.
const ERROR_FIELD: &str = "error";

/// The first line of a session file; it identifies the session.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Id of the session, unique in the data folder.
    pub id: Arc<str>,
    /// When the session was started.
    pub time: Option<Timestamp>,
    /// Working directory in which the session was started.
    pub cwd: Arc<str>,
    /// Fields this version does not know; they are written back unchanged.
    pub extra: Map<String, Value>,
}

/// A line after the header: one [`Record`] and its place in the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Id of the entry, unique within the session.
    pub id: Arc<str>,
    /// Id of the entry it follows; `None` for a root.
    pub parent: Option<Arc<str>>,
    /// When it was recorded.
    pub time: Option<Timestamp>,
    /// The content: a message, a request, a model change, …
    pub record: Record,
    /// Fields this version does not know; they are written back unchanged.
    pub extra: Map<String, Value>,
}

/// The field of a header that names the branch of git on which the session was started.
const GIT_BRANCH: &str = "git_branch";

impl Header {
    /// The same with the branch of git that is checked out.
    pub fn with_git_branch(mut self, branch: Option<String>) -> Self {
        self.extra.extend(branch.map(|branch| (GIT_BRANCH.to_owned(), branch.into())));
        self
    }

    /// The branch of git on which the session was started.
    pub fn git_branch(&self) -> Option<&str> {
        self.extra.get(GIT_BRANCH)?.as_str()
    }

    /// The line as written to the file, newline included.
    pub fn to_line(&self) -> String {
        to_json_line(self)
    }

    /// Parses the header from the fields that remain after `type` and `version`.
    pub(crate) fn parse(mut fields: RawFields<'_>) -> Option<Self> {
        let id = fields.take_text("id").ok()?;
        let time = fields.take_time();
        let cwd = fields.take_text("cwd").unwrap_or_default();
        Some(Header { id, time, cwd, extra: fields.into_remaining().ok()? })
    }
}

impl Entry {
    /// An entry for a message; it takes the message's id and time.
    pub fn message(parent: Option<&str>, message: AgentMessage) -> Self {
        let (id, time) = (message.id.0.clone(), message.time);
        let facts = message.facts.clone();
        let mut entry = Entry::new(id, parent, time, Record::Message(Box::new(message)));
        facts.iter().for_each(|facts| entry.store_facts(facts));
        entry
    }

    /// The message of an entry, with the facts that are stored beside it.
    pub fn with_facts(&self, message: &AgentMessage) -> AgentMessage {
        let mut message = message.clone();
        if let Some(details) = self.extra.get(DETAILS_FIELD) {
            message.note(|facts| facts.details = Some(details.clone()));
        }
        if let Some(error) = self.extra.get(ERROR_FIELD).and_then(Value::as_str) {
            message.note(|facts| facts.error = Some(error.into()));
        }
        message
    }

    /// Stores the facts about a message that nothing else in the session tells.
    fn store_facts(&mut self, facts: &MessageFacts) {
        let MessageFacts { details, usage: _, error } = facts; // a request's record has the usage
        self.extra.extend(details.clone().map(|details| (DETAILS_FIELD.to_owned(), details)));
        self.extra.extend(error.as_deref().map(|error| (ERROR_FIELD.to_owned(), error.into())));
    }

    /// An entry for any other record.
    pub fn new(
        id: impl Into<Arc<str>>,
        parent: Option<&str>,
        time: Option<Timestamp>,
        record: Record,
    ) -> Self {
        Entry { id: id.into(), parent: parent.map(Into::into), time, record, extra: Map::new() }
    }

    /// The line as appended to the file, newline included.
    pub fn to_line(&self) -> String {
        match &self.record {
            Record::Other { line } => format!("{line}\n"),
            _ => to_json_line(self),
        }
    }

    /// Parses a line, and also returns what of it could not be understood. An error means that the
    /// line has no place in the tree.
    pub(crate) fn parse(line: &str) -> Result<(Self, Option<LineError>), LineError> {
        let mut fields = RawFields::parse(line).map_err(|error| LineError::NotAnObject(error.into()))?;
        let kind = fields.take_text("type")?;
        let id = fields.take_text("id")?;
        let parent = fields.take_text_or_null("parent").map_err(|_| LineError::NoParent)?;
        let time = fields.take_time();
        let read = Record::parse(&kind, &id, time, &mut fields)
            .and_then(|record| record.map(|record| Ok((record, fields.into_remaining()?))).transpose());
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
        map.serialize_entry("type", record.type_name())?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("parent", parent)?;
        time.iter().try_for_each(|time| map.serialize_entry("time", time))?;
        record.serialize_into(*time, &mut map)?;
        extra.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
        map.end()
    }
}

/// Serializing to memory cannot fail: every key is a string, and every value is of a known type.
fn to_json_line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests;

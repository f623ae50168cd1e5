//! [`SessionProblem`]: what is wrong with one line of a session file, and what was done about it.

use std::path::PathBuf;
use std::str::Utf8Error;
use std::sync::Arc;

use hardpan_files::LineExcess;
use thiserror::Error;

/// A line that is damaged or unexpected. The rest of the session is read anyway.
#[derive(Clone, Debug)]
pub struct SessionProblem {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it. Its text is a sentence for the user.
    pub kind: SessionProblemKind,
}

/// What was done about a line, and why.
#[derive(Clone, Debug, Error)]
pub enum SessionProblemKind {
    /// The last line has no end: the program was killed while it wrote.
    #[error("skipped: it was cut off while being written")]
    CutOff {
        /// The text of the line; invalid UTF-8 is replaced.
        raw: String,
    },
    /// The unfinished last line was taken out of the file, so that it can be continued.
    #[error("removed: it was cut off while being written; its {bytes} bytes are kept in {}", kept_in.display())]
    TailRemoved {
        /// Length of the line.
        bytes: usize,
        /// The file that the line was moved to.
        kept_in: PathBuf,
    },
    /// The line stays in the file, but it is not among the entries.
    #[error("kept but not part of the tree: {error}")]
    NotAnEntry {
        /// Why it has no place in the tree.
        #[source]
        error: LineError,
        /// The text of the line; invalid UTF-8 is replaced.
        raw: String,
    },
    /// The line stays in the file, but it would take too much memory.
    #[error("kept but not read: its {bytes} bytes have {excess}, which no line of a conversation has")]
    Unread {
        /// Length of the line.
        bytes: u64,
        /// What it has too much of.
        excess: LineExcess,
    },
    /// The entry has its place in the tree, but its content cannot be read.
    #[error("kept but not understood: {error}")]
    NotUnderstood {
        /// What cannot be read.
        #[source]
        error: LineError,
    },
    /// The entry is not used, because its id is taken.
    #[error("skipped: an earlier entry has the same id `{id}`")]
    DuplicateId {
        /// The id that both have.
        id: Arc<str>,
    },
    /// A compaction that would keep an entry which is not above it.
    #[error("compaction not applied: `{first_kept}`, the first entry to keep, does not precede it")]
    CompactionNotApplied {
        /// Id of the entry that it names.
        first_kept: Arc<str>,
    },
    /// The entry's parent is on no earlier line.
    #[error("{}: its parent `{parent}` is not on an earlier line", replacement_parent(attached_to.as_deref()))]
    MissingParent {
        /// Id of the parent that it names.
        parent: Arc<str>,
        /// The entry that it follows instead; `None` if it starts a conversation.
        attached_to: Option<Arc<str>>,
    },
    /// An answer was put together from the pieces that were saved while it streamed.
    #[error("recovered: the answer `{message_id}` was cut off; it was put together from the saved pieces")]
    Recovered {
        /// Id of the answer.
        message_id: Arc<str>,
    },
}

fn replacement_parent(attached_to: Option<&str>) -> String {
    match attached_to {
        Some(id) => format!("attached to `{id}`"),
        None => "treated as the start of a conversation".into(),
    }
}

/// Why a line, or a part of it, cannot be read.
#[derive(Clone, Debug, Error)]
pub enum LineError {
    /// It contains bytes that are no text.
    #[error("it is not UTF-8 ({0})")]
    NotUtf8(#[source] Utf8Error),
    /// It is no JSON, or JSON that is not an object.
    #[error("it is not a JSON object ({0})")]
    NotAnObject(#[source] Arc<serde_json::Error>),
    /// A field that must be a string is missing, or is something else.
    #[error("its `{key}` is missing or not a string")]
    NotText {
        /// Name of the field.
        key: &'static str,
    },
    /// The line does not say which entry it follows.
    #[error("it has no `parent` (null for the first entry)")]
    NoParent,
    /// A required field is missing.
    #[error("its `{key}` is missing")]
    Missing {
        /// Name of the field.
        key: &'static str,
    },
    /// The message is missing, or is not an object.
    #[error("its `message` is missing or not an object")]
    NoMessage,
    /// A field is not of the form that its type asks for.
    #[error("its {key} cannot be read: {error}")]
    Field {
        /// Name of the field.
        key: String,
        /// What is wrong with its JSON.
        #[source]
        error: Arc<serde_json::Error>,
    },
}

impl LineError {
    pub(crate) fn field(key: &str, error: serde_json::Error) -> Self {
        LineError::Field { key: key.into(), error: Arc::new(error) }
    }
}

impl SessionProblem {
    /// The text of the line if it is not among the entries; invalid UTF-8 is replaced.
    pub fn raw(&self) -> Option<&str> {
        match &self.kind {
            SessionProblemKind::CutOff { raw } | SessionProblemKind::NotAnEntry { raw, .. } => Some(raw),
            _ => None,
        }
    }
}

//! [`Session`]: a session file read into memory, with everything that was wrong with it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use hardpan_files::{FileLines, RegularFile, UnreadLine, read_lines};
use serde_json::Value;
use thiserror::Error;

use crate::entry::{Entry, Header, VERSION};
use crate::problem::{LineError, SessionProblem, SessionProblemKind};
use crate::raw_fields::RawFields;
use crate::record::Record;
use crate::recovery::PendingAnswer;

/// Why a session cannot be read, or a branch of it not be found.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The operating system refuses, or the path is not a regular file.
    #[error("cannot read {name}: {error}")]
    Io {
        /// Path of the session file.
        name: String,
        /// The underlying I/O error.
        #[source]
        error: io::Error,
    },
    /// The first line is not a session header.
    #[error("{name} is not a session file, or its beginning was cut off: choose another file")]
    NoHeader {
        /// Path of the session file.
        name: String,
    },
    /// A newer Hardpan wrote the file.
    #[error(
        "{name} has session format version {version}, but this Hardpan reads version {VERSION}: update Hardpan"
    )]
    Version {
        /// Path of the session file.
        name: String,
        /// The version in its header.
        version: Value,
    },
    /// No entry has the requested id.
    #[error("{name} has no entry `{id}`: give the id of one of its entries, or none for the last")]
    NoSuchEntry {
        /// Path of the session file.
        name: String,
        /// The requested id.
        id: String,
    },
}

/// A session: its header, its entries in file order, and the problems found.
#[derive(Clone, Debug)]
pub struct Session {
    /// The header, from the first line.
    pub header: Header,
    /// Every line that has a place in the tree, and the answers recovered from their pieces.
    pub entries: Vec<Entry>,
    /// What could not be understood, in file order.
    pub problems: Vec<SessionProblem>,
    /// Answers that a crash cut off, put together from their pieces. They are among the entries,
    /// too.
    pub recovered: Vec<Entry>,
    /// Name of the file in error messages.
    pub(crate) file_name: String,
    /// Index of the first entry with each id.
    pub(crate) by_id: BTreeMap<Arc<str>, usize>,
    /// Parent of each entry, always an earlier one: no walk upwards can loop.
    pub(crate) parents: Vec<Option<usize>>,
    /// The last entry that another may follow: no partial record, and no entry that reuses an id.
    pub(crate) leaf: Option<usize>,
    /// A recovered answer that is not yet in the file; opening the log appends it.
    pub(crate) unwritten_recovery: Option<usize>,
    /// The entry before the last unreadable line: entries whose parent was lost are attached to it.
    entry_before_gap: Option<usize>,
    /// Answers of which only pieces were read so far, in the order of their first pieces.
    pending_answers: Vec<PendingAnswer>,
}

impl Session {
    /// Reads and parses a session file.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let name = path.display().to_string();
        let read = RegularFile::open(path).and_then(|mut file| read_lines(&mut file));
        match read {
            Ok(lines) => Session::parse_lines(&name, &lines),
            Err(reason) => Err(SessionError::Io { name, error: reason.into() }),
        }
    }

    /// Parses the bytes of a session file; `name` stands for the file in errors.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, SessionError> {
        Session::parse_with(name, bytes, &[])
    }

    /// Parses a session file that was read with limits on its lines. A line beyond them is a
    /// problem, and stays in the file.
    pub fn parse_lines(name: &str, lines: &FileLines) -> Result<Self, SessionError> {
        Session::parse_with(name, &lines.bytes, &lines.left_out)
    }

    fn parse_with(name: &str, bytes: &[u8], left_out: &[UnreadLine]) -> Result<Self, SessionError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let mut lines = crate::lines(bytes);
        let mut session = Session {
            header: parse_header(name, lines.next().unwrap_or_default())?,
            entries: Vec::new(),
            problems: Vec::new(),
            recovered: Vec::new(),
            file_name: name.into(),
            by_id: BTreeMap::new(),
            parents: Vec::new(),
            leaf: None,
            unwritten_recovery: None,
            entry_before_gap: None,
            pending_answers: Vec::new(),
        };
        let mut left_out = left_out.iter().peekable();
        for (number, line) in (2..).zip(lines) {
            while let Some(skipped) = left_out.next_if(|skipped| skipped.number <= number) {
                session.report_unread(skipped);
            }
            session.read_line(number, line);
        }
        left_out.for_each(|skipped| session.report_unread(skipped));
        session.recover_pending_answers();
        Ok(session)
    }

    fn report_unread(&mut self, line: &UnreadLine) {
        let kind = SessionProblemKind::Unread { bytes: line.bytes, excess: line.excess };
        self.report(line.number, kind);
        self.entry_before_gap = self.leaf;
    }

    fn read_line(&mut self, number: usize, line: &[u8]) {
        let finished = line.ends_with(b"\n") || is_complete_line(line);
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let read = std::str::from_utf8(line).map_err(LineError::NotUtf8).and_then(Entry::parse);
        match read {
            Ok((entry, problem)) => {
                if let Some(error) = problem {
                    self.report(number, SessionProblemKind::NotUnderstood { error });
                }
                self.add_entry(number, entry);
            }
            Err(error) => {
                let raw = String::from_utf8_lossy(line).into_owned();
                let kind = if finished {
                    SessionProblemKind::NotAnEntry { error, raw }
                } else {
                    SessionProblemKind::CutOff { raw }
                };
                self.report(number, kind);
                self.entry_before_gap = self.leaf;
            }
        }
    }

    fn add_entry(&mut self, number: usize, entry: Entry) {
        let parent = self.find_parent(number, &entry);
        let at = self.entries.len(); // after `find_parent`, which may add a recovered answer
        let is_partial = self.track_partial(number, parent, &entry);
        self.parents.push(parent);
        if self.by_id.contains_key(&entry.id) {
            self.report(number, SessionProblemKind::DuplicateId { id: entry.id.clone() });
        } else {
            self.by_id.insert(entry.id.clone(), at);
            self.leaf = if is_partial { self.leaf } else { Some(at) };
        }
        if let Record::Compaction { first_kept: Some(kept), .. } = &entry.record {
            let above = parent.map_or_else(Vec::new, |parent| self.path_indices(parent));
            if !self.by_id.get(kept).is_some_and(|kept| above.contains(kept)) {
                let first_kept = kept.clone();
                self.report(number, SessionProblemKind::CompactionNotApplied { first_kept });
            }
        }
        self.entries.push(entry);
    }

    /// Index of the entry that this one follows. If that line could not be read, the entry before
    /// it takes its place: sessions mostly grow in a line, and an old conversation should not be
    /// lost with one line.
    fn find_parent(&mut self, number: usize, entry: &Entry) -> Option<usize> {
        let parent = entry.parent.as_deref()?;
        if let Some(&found) = self.by_id.get(parent) {
            // Nothing follows a partial record; an entry that claims to gets its parent.
            return if self.entries[found].as_partial().is_some() {
                self.parents[found]
            } else {
                Some(found)
            };
        }
        if let Some(at) = self.pending_answers.iter().position(|answer| *answer.message_id == *parent) {
            let answer = self.pending_answers.remove(at);
            let before = answer.parent;
            return Some(self.recover_answer(answer, before));
        }
        let attached_to = self.entry_before_gap.map(|before| self.entries[before].id.clone());
        self.report(number, SessionProblemKind::MissingParent { parent: parent.into(), attached_to });
        self.entry_before_gap
    }

    /// Tracks a piece of an answer, or that the complete answer arrived. Returns whether the entry
    /// was a piece.
    fn track_partial(&mut self, number: usize, parent: Option<usize>, entry: &Entry) -> bool {
        let Some(partial) = entry.as_partial() else {
            self.pending_answers.retain(|answer| answer.message_id != entry.id);
            return false;
        };
        // A piece after its message adds nothing.
        if !self.by_id.contains_key(&partial.message_id) {
            let known =
                self.pending_answers.iter().position(|answer| answer.message_id == partial.message_id);
            let at = known.unwrap_or_else(|| {
                self.pending_answers.push(PendingAnswer::new(partial.message_id.clone()));
                self.pending_answers.len() - 1
            });
            self.pending_answers[at].add_partial(number, parent, entry.time, partial);
        }
        true
    }

    /// At the end of the file, recovers the answers that never arrived completely. If no message
    /// came after the pieces, the answer continues from the leaf; otherwise the conversation went
    /// on without it, and it becomes a branch of its own.
    fn recover_pending_answers(&mut self) {
        for answer in std::mem::take(&mut self.pending_answers) {
            if answer.is_empty() {
                continue;
            }
            let (leaf, before) = (self.leaf, answer.parent);
            if leaf.is_none_or(|leaf| self.has_no_message_since(leaf, before)) {
                self.unwritten_recovery = Some(self.recover_answer(answer, leaf));
            } else {
                self.recover_answer(answer, before);
                self.leaf = leaf;
            }
        }
    }

    /// Whether `leaf` is `above`, or follows it with no message or compaction in between.
    fn has_no_message_since(&self, leaf: usize, above: Option<usize>) -> bool {
        let says =
            |at: usize| matches!(self.entries[at].record, Record::Message(_) | Record::Compaction { .. });
        let mut below = std::iter::successors(Some(leaf), |&at| self.parents[at]);
        let stop = below.find(|&at| Some(at) == above || says(at));
        stop == above
    }

    /// Adds the recovered answer after the entry `parent`, and returns its index.
    fn recover_answer(&mut self, answer: PendingAnswer, parent: Option<usize>) -> usize {
        let (line, message_id) = (answer.line, answer.message_id.clone());
        let entry = answer.into_entry(parent.map(|parent| &*self.entries[parent].id));
        self.report(line, SessionProblemKind::Recovered { message_id: message_id.clone() });
        let at = self.entries.len();
        self.recovered.push(entry.clone());
        self.entries.push(entry);
        self.parents.push(parent);
        self.by_id.insert(message_id, at);
        self.leaf = Some(at);
        at
    }

    fn report(&mut self, line: usize, kind: SessionProblemKind) {
        self.problems.push(SessionProblem { line, kind });
    }

    /// Indices of the entries from the root down to `leaf`.
    pub(crate) fn path_indices(&self, leaf: usize) -> Vec<usize> {
        let mut path: Vec<usize> = std::iter::successors(Some(leaf), |&at| self.parents[at]).collect();
        path.reverse();
        path
    }
}

/// Whether the line lacks nothing but its newline: the beginning of a JSON object never parses as
/// an object.
pub(crate) fn is_complete_line(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || std::str::from_utf8(line).is_ok_and(|line| RawFields::parse(line).is_ok())
}

pub(crate) fn parse_header(name: &str, line: &[u8]) -> Result<Header, SessionError> {
    let no_header = || SessionError::NoHeader { name: name.into() };
    let line = std::str::from_utf8(line).map_err(|_| no_header())?;
    let mut fields = RawFields::parse(line).map_err(|_| no_header())?;
    if fields.take_text("type").map_or(true, |kind| &*kind != "session") {
        return Err(no_header());
    }
    let version: Value = fields.take_typed("version").map_err(|_| no_header())?;
    if version != VERSION {
        return Err(SessionError::Version { name: name.into(), version });
    }
    Header::parse(fields).ok_or_else(no_header)
}

#[cfg(test)]
mod tests;

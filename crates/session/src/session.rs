//! A session file as read.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::entry::{Entry, Header, VERSION};
use crate::fields::Fields;
use crate::partial::Pieces;
use crate::record::Record;

/// Why a session cannot be read.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The system refuses, or it is no file.
    #[error("cannot read {name}: {error}")]
    Io {
        /// The file.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// The first line is not that of a session.
    #[error(
        "{name} does not begin with the line of a session: it is none, or was cut off at its start; name another file"
    )]
    NoHeader {
        /// The file.
        name: String,
    },
    /// A newer Hardpan wrote it.
    #[error(
        "{name} is a session of version {version}, and this Hardpan reads version {VERSION}: update Hardpan"
    )]
    Version {
        /// The file.
        name: String,
        /// What the file says.
        version: Value,
    },
    /// A leaf was asked for that is not there.
    #[error("{name} has no entry `{id}`: name one of its entries, or none for the last")]
    NoSuchEntry {
        /// The file.
        name: String,
        /// What was asked for.
        id: String,
    },
}

/// Something in a session that is not as it should be. The rest of it is read nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what follows from it, in words for a person.
    pub what: String,
    /// The line's text where it is not among the entries; bytes that are not UTF-8 are replaced.
    pub raw: Option<String>,
}

/// A session: its header, its entries in the order of the file, and what was wrong with it.
#[derive(Clone, Debug)]
pub struct Session {
    /// The first line.
    pub header: Header,
    /// Every line that has a place in the tree, and the answers that were put together from their pieces.
    pub entries: Vec<Entry>,
    /// What could not be understood, in the order of the file.
    pub problems: Vec<Problem>,
    /// The answers that a crash cut off, put together from their pieces. They are among the entries, too.
    pub recovered: Vec<Entry>,
    /// What errors call the file.
    pub(crate) file: String,
    /// The entry of each id.
    pub(crate) index: BTreeMap<Arc<str>, usize>,
    /// Each entry's parent, always an earlier one: no walk upwards can go in circles.
    pub(crate) parents: Vec<Option<usize>>,
    /// The last entry that another may follow: no piece of an answer, and no second one of an id.
    pub(crate) leaf: Option<usize>,
    /// The recovered answer that the file lacks to be whole.
    pub(crate) missing: Option<usize>,
    /// The entry before the last line that was lost.
    before_lost: Option<usize>,
    /// Pieces of answers whose message has not come yet, in the order of their first pieces.
    pending: Vec<Pieces>,
}

impl Session {
    /// Reads a session file.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let name = path.display().to_string();
        let read = || {
            // Reading a pipe or a device would wait for ever.
            if !std::fs::metadata(path)?.is_file() {
                return Err(io::Error::other("it is not a regular file"));
            }
            std::fs::read(path)
        };
        match read() {
            Ok(bytes) => Session::parse(&name, &bytes),
            Err(error) => Err(SessionError::Io { name, error }),
        }
    }

    /// Reads the bytes of a session file; `name` is what errors call it.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Self, SessionError> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let mut lines = bytes.split_inclusive(|&byte| byte == b'\n');
        let mut session = Session {
            header: header(name, lines.next().unwrap_or_default())?,
            entries: Vec::new(),
            problems: Vec::new(),
            recovered: Vec::new(),
            file: name.into(),
            index: BTreeMap::new(),
            parents: Vec::new(),
            leaf: None,
            missing: None,
            before_lost: None,
            pending: Vec::new(),
        };
        for (number, line) in (2..).zip(lines) {
            session.read_line(number, line);
        }
        session.recover_pending();
        Ok(session)
    }

    fn read_line(&mut self, number: usize, line: &[u8]) {
        let finished = line.ends_with(b"\n") || is_finished(line);
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        let read = std::str::from_utf8(line)
            .map_err(|error| format!("it is not UTF-8 ({error})"))
            .and_then(Entry::read);
        match read {
            Ok((entry, problem)) => {
                if let Some(problem) = problem {
                    self.report(number, format!("kept but not understood: {problem}"));
                }
                self.add(number, entry);
            }
            Err(why) => {
                let what = if finished {
                    format!("kept but not part of the tree: {why}")
                } else {
                    "left out: its writing was interrupted".into()
                };
                let raw = Some(String::from_utf8_lossy(line).into_owned());
                self.problems.push(Problem { line: number, what, raw });
                self.before_lost = self.leaf;
            }
        }
    }

    fn add(&mut self, number: usize, entry: Entry) {
        let parent = self.find_parent(number, &entry);
        let at = self.entries.len(); // after `find_parent`, which may add a recovered answer
        let is_piece = self.take_piece(number, parent, &entry);
        self.parents.push(parent);
        if self.index.contains_key(&entry.id) {
            self.report(number, format!("left out: an earlier entry is called `{}`, too", entry.id));
        } else {
            self.index.insert(entry.id.clone(), at);
            self.leaf = if is_piece { self.leaf } else { Some(at) };
        }
        if let Record::Compaction { first_kept: Some(kept), .. } = &entry.record {
            let above = parent.map_or_else(Vec::new, |parent| self.path(parent));
            if !self.index.get(kept).is_some_and(|kept| above.contains(kept)) {
                self.report(
                    number,
                    format!("not applied: `{kept}`, the first entry to keep, is not above it"),
                );
            }
        }
        self.entries.push(entry);
    }

    /// The entry that this one follows. Where that is gone because its line could not be read, the entry before that
    /// line takes its place: sessions mostly grow in a line, and an old conversation should not be lost with one line.
    fn find_parent(&mut self, number: usize, entry: &Entry) -> Option<usize> {
        let parent = entry.parent.as_deref()?;
        if let Some(&found) = self.index.get(parent) {
            // Nothing follows a piece; what claims to, follows what the piece does.
            return if self.entries[found].as_partial().is_some() {
                self.parents[found]
            } else {
                Some(found)
            };
        }
        if let Some(at) = self.pending.iter().position(|pieces| *pieces.of == *parent) {
            let pieces = self.pending.remove(at);
            let before = pieces.parent;
            return Some(self.recover(pieces, before));
        }
        let instead = match self.before_lost {
            Some(before) => format!("taken to follow `{}`", self.entries[before].id),
            None => "taken as the start of a conversation".into(),
        };
        self.report(number, format!("{instead}: `{parent}`, its parent, is on no earlier line"));
        self.before_lost
    }

    /// Notes a piece of an answer, or that the whole of one has come; tells whether it was a piece.
    fn take_piece(&mut self, number: usize, parent: Option<usize>, entry: &Entry) -> bool {
        let Some(piece) = entry.as_partial() else {
            self.pending.retain(|pieces| pieces.of != entry.id);
            return false;
        };
        // One that comes after its message says nothing new.
        if !self.index.contains_key(&piece.of) {
            let known = self.pending.iter().position(|pieces| pieces.of == piece.of);
            let at = known.unwrap_or_else(|| {
                self.pending.push(Pieces::new(piece.of.clone()));
                self.pending.len() - 1
            });
            self.pending[at].add(number, parent, entry.time, piece);
        }
        true
    }

    /// At the end of the file: the answers that never came whole. Where nothing was said after the pieces, the answer
    /// goes on from the leaf; otherwise the conversation went on without it, and it is a branch of its own.
    fn recover_pending(&mut self) {
        for pieces in std::mem::take(&mut self.pending) {
            if pieces.is_empty() {
                continue;
            }
            let (leaf, before) = (self.leaf, pieces.parent);
            if leaf.is_none_or(|leaf| self.is_silent(leaf, before)) {
                self.missing = Some(self.recover(pieces, leaf));
            } else {
                self.recover(pieces, before);
                self.leaf = leaf;
            }
        }
    }

    /// Whether the entry is `above`, or follows it with nothing said in between.
    fn is_silent(&self, leaf: usize, above: Option<usize>) -> bool {
        let says =
            |at: usize| matches!(self.entries[at].record, Record::Message(_) | Record::Compaction { .. });
        let mut below = std::iter::successors(Some(leaf), |&at| self.parents[at]);
        let stop = below.find(|&at| Some(at) == above || says(at));
        stop == above
    }

    /// Adds the answer that the pieces are, after the entry `parent`.
    fn recover(&mut self, pieces: Pieces, parent: Option<usize>) -> usize {
        let (line, of) = (pieces.line, pieces.of.clone());
        let entry = pieces.into_entry(parent.map(|parent| &*self.entries[parent].id));
        self.report(
            line,
            format!("recovered: the answer `{of}` did not come whole; its saved pieces stand for it"),
        );
        let at = self.entries.len();
        self.recovered.push(entry.clone());
        self.entries.push(entry);
        self.parents.push(parent);
        self.index.insert(of, at);
        self.leaf = Some(at);
        at
    }

    pub(crate) fn report(&mut self, line: usize, what: String) {
        self.problems.push(Problem { line, what, raw: None });
    }

    /// The entries from the root down to this one.
    pub(crate) fn path(&self, leaf: usize) -> Vec<usize> {
        let mut path: Vec<usize> = std::iter::successors(Some(leaf), |&at| self.parents[at]).collect();
        path.reverse();
        path
    }
}

/// Whether the line lacks nothing but its end: a start of an object is never an object.
pub(crate) fn is_finished(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || std::str::from_utf8(line).is_ok_and(|line| Fields::of(line).is_ok())
}

pub(crate) fn header(name: &str, line: &[u8]) -> Result<Header, SessionError> {
    let no_header = || SessionError::NoHeader { name: name.into() };
    let line = std::str::from_utf8(line).map_err(|_| no_header())?;
    let mut fields = Fields::of(line).map_err(|_| no_header())?;
    if fields.take_text("type").map_or(true, |kind| &*kind != "session") {
        return Err(no_header());
    }
    let version: Value = fields.take_typed("version").map_err(|_| no_header())?;
    if version != VERSION {
        return Err(SessionError::Version { name: name.into(), version });
    }
    Header::read(fields).ok_or_else(no_header)
}

#[cfg(test)]
mod tests;

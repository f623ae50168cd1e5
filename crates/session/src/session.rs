//! A session file as read.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::entry::{Entry, Header, Record, VERSION};

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
    /// Every line that has a place in the tree.
    pub entries: Vec<Entry>,
    /// What could not be understood, in the order of the file.
    pub problems: Vec<Problem>,
    pub(crate) name: String,
    /// The entry of each id.
    pub(crate) index: BTreeMap<Arc<str>, usize>,
    /// Each entry's parent, always an earlier one: no walk upwards can go in circles.
    pub(crate) parents: Vec<Option<usize>>,
    /// The entry before the last line that was lost.
    before_lost: Option<usize>,
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
            name: name.into(),
            index: BTreeMap::new(),
            parents: Vec::new(),
            before_lost: None,
        };
        for (number, line) in (2..).zip(lines) {
            session.read_line(number, line);
        }
        Ok(session)
    }

    fn read_line(&mut self, number: usize, line: &[u8]) {
        let whole = line.ends_with(b"\n");
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
                let what = if whole {
                    format!("kept but not part of the tree: {why}")
                } else {
                    "left out: its writing was interrupted".into()
                };
                let raw = Some(String::from_utf8_lossy(line).into_owned());
                self.problems.push(Problem { line: number, what, raw });
                self.before_lost = self.entries.len().checked_sub(1);
            }
        }
    }

    fn add(&mut self, number: usize, entry: Entry) {
        let at = self.entries.len();
        let parent = self.find_parent(number, &entry);
        self.parents.push(parent);
        if self.index.contains_key(&entry.id) {
            self.report(number, format!("left out: an earlier entry is called `{}`, too", entry.id));
        } else {
            self.index.insert(entry.id.clone(), at);
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
            return Some(found);
        }
        let instead = match self.before_lost {
            Some(before) => format!("taken to follow `{}`", self.entries[before].id),
            None => "taken as the start of a conversation".into(),
        };
        self.report(number, format!("{instead}: `{parent}`, its parent, is on no earlier line"));
        self.before_lost
    }

    fn report(&mut self, line: usize, what: String) {
        self.problems.push(Problem { line, what, raw: None });
    }

    /// The entries from the root down to this one.
    pub(crate) fn path(&self, leaf: usize) -> Vec<usize> {
        let mut path: Vec<usize> = std::iter::successors(Some(leaf), |&at| self.parents[at]).collect();
        path.reverse();
        path
    }
}

fn header(name: &str, line: &[u8]) -> Result<Header, SessionError> {
    let no_header = || SessionError::NoHeader { name: name.into() };
    let mut fields: Map<String, Value> = serde_json::from_slice(line).map_err(|_| no_header())?;
    if fields.shift_remove("type").is_none_or(|kind| kind != "session") {
        return Err(no_header());
    }
    let version = fields.shift_remove("version").ok_or_else(no_header)?;
    if version != VERSION {
        return Err(SessionError::Version { name: name.into(), version });
    }
    Header::read(fields).ok_or_else(no_header)
}

#[cfg(test)]
mod tests;

//! [`ChangeLog`]: what changed, by the number of the change, for several readers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Above this many changed files the log says that everything changed.
const MAX_FILES: usize = 20_000;

/// Up to where a reader knows the changes of a [`WorkspaceWatch`](crate::WorkspaceWatch). A new one
/// knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchPosition(u64);

/// What changed between two questions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Anything may have changed: the other fields are not complete.
    pub everything: bool,
    /// The list of files is another one.
    pub list: bool,
    /// The branch, the index or the settings of the repository changed.
    pub repository: bool,
    /// A file of the list was written to.
    pub listed_files: bool,
    /// The files that were written to, appeared or disappeared, also with their folder, and ignored ones
    /// in watched folders. Relative to the root, with forward slashes.
    pub files: BTreeSet<String>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }

    /// Whether `git status` may say something else.
    pub fn affect_status(&self) -> bool {
        self.everything || self.list || self.repository || self.listed_files
    }
}

#[derive(Debug)]
pub(super) struct ChangeLog {
    /// The number of the last change; 0 is before the first question.
    last: u64,
    everything: u64,
    list: u64,
    repository: u64,
    listed_files: u64,
    files: BTreeMap<Arc<str>, u64>,
    /// The same by the number of the change.
    by_number: BTreeMap<u64, Arc<str>>,
}

impl Default for ChangeLog {
    /// Whoever has never asked knows nothing.
    fn default() -> Self {
        let (files, by_number) = Default::default();
        ChangeLog { last: 1, everything: 1, list: 0, repository: 0, listed_files: 0, files, by_number }
    }
}

impl ChangeLog {
    pub fn record_everything(&mut self) {
        self.everything = self.next();
        self.files.clear();
        self.by_number.clear();
    }

    pub fn record_list(&mut self) {
        self.list = self.next();
    }

    pub fn record_repository(&mut self) {
        self.repository = self.next();
    }

    pub fn record_file(&mut self, path: &str, is_listed: bool) {
        if self.files.len() >= MAX_FILES {
            self.record_everything();
        }
        let number = self.next();
        let path: Arc<str> = path.into();
        self.by_number.insert(number, path.clone());
        if let Some(former) = self.files.insert(path, number) {
            self.by_number.remove(&former);
        }
        if is_listed {
            self.listed_files = number;
        }
    }

    pub fn since(&self, position: &mut WatchPosition) -> Changes {
        let seen = std::mem::replace(&mut position.0, self.last);
        if seen == self.last {
            return Changes::default();
        }
        let files = self.by_number.range(seen + 1..).map(|(_, path)| path.to_string());
        Changes {
            everything: self.everything > seen,
            list: self.list > seen,
            repository: self.repository > seen,
            listed_files: self.listed_files > seen,
            files: files.collect(),
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

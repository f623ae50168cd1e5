//! [`StatusUpdate`]: the status of a repository after some files changed, from the one before.
//!
//! git looks at every file to tell what changed. Where a watch knows that already, git is asked about
//! those files alone, and its answer replaces what the former status said of them. Whatever cannot be
//! told apart that way (renames, untracked folders that come and go, names in quotes) is left to a
//! whole status.

use std::collections::{BTreeMap, BTreeSet};

/// For more paths than this a whole status is not slower.
const MAX_PATHS: usize = 64;

/// Names of files that say what git ignores and how it compares.
const RULE_FILES: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".ignore"];

/// Which files changed in the work tree since a status was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusChanges {
    /// Relative to the root, with forward slashes.
    files: BTreeSet<String>,
    /// Whether some of them may have appeared or disappeared.
    list: bool,
    is_anything: bool,
}

impl StatusChanges {
    /// Adds files that were written to; with `list`, some appeared or disappeared.
    pub fn add<'a>(&mut self, files: impl IntoIterator<Item = &'a String>, list: bool) {
        self.list |= list;
        for file in files {
            if self.files.len() >= MAX_PATHS {
                self.is_anything = true;
                return;
            }
            self.files.insert(file.clone());
        }
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == StatusChanges::default()
    }
}

/// A former status, and what must be asked to bring it up to date.
pub(super) struct StatusUpdate<'a> {
    branch: &'a str,
    /// By path: the whole line.
    tracked: BTreeMap<&'a str, &'a str>,
    untracked: BTreeMap<&'a str, &'a str>,
    /// Files, and folders with what is in them.
    paths: BTreeSet<&'a str>,
}

impl<'a> StatusUpdate<'a> {
    /// `None` if a whole status is needed.
    pub fn new(before: &'a str, changes: &'a StatusChanges) -> Option<Self> {
        if changes.is_anything {
            return None;
        }
        let (branch, lines) = parse(before)?;
        let mut update = StatusUpdate {
            branch,
            tracked: BTreeMap::new(),
            untracked: BTreeMap::new(),
            paths: BTreeSet::new(),
        };
        lines.into_iter().for_each(|(path, line)| update.insert(path, line));
        for file in &changes.files {
            let name = file.rsplit('/').next().unwrap_or(file);
            if RULE_FILES.contains(&name) || !is_plain(file) {
                return None;
            }
            let folder = file.rsplit_once('/').map(|(folder, _)| folder);
            // In an untracked folder only the folder is listed, as long as something is in it.
            match (update.is_in_untracked_folder(file), folder) {
                (true, _) if changes.list => return None,
                (true, _) => {}
                // Whether it is listed or its folder is depends on what else is there.
                (false, Some(folder)) if changes.list => drop(update.paths.insert(folder)),
                (false, _) => drop(update.paths.insert(file)),
            }
        }
        Some(update)
    }

    /// What git is asked about; nothing if the former status still holds.
    pub fn paths(&self) -> impl Iterator<Item = &'a str> {
        self.paths.iter().copied()
    }

    /// The status with what git says about the paths. `None` if a whole one is needed.
    pub fn merge(mut self, part: &'a str) -> Option<String> {
        let (branch, lines) = parse(part)?;
        self.branch = branch;
        let paths = std::mem::take(&mut self.paths);
        let is_asked = |path: &str| ancestors(path).any(|above| paths.contains(above));
        self.tracked.retain(|path, _| !is_asked(path));
        self.untracked.retain(|path, _| !is_asked(path.trim_end_matches('/')));
        for (path, line) in lines {
            let folder = path.strip_suffix('/');
            // An untracked folder that was asked for may be a part of a larger one.
            if folder.is_some_and(|folder| paths.contains(folder)) || !is_asked(folder.unwrap_or(path)) {
                return None;
            }
            self.insert(path, line);
        }
        let lines = self.tracked.into_values().chain(self.untracked.into_values());
        let lines = std::iter::once(self.branch).chain(lines);
        Some(lines.flat_map(|line| [line, "\n"]).collect())
    }

    fn insert(&mut self, path: &'a str, line: &'a str) {
        let list = if line.starts_with("??") { &mut self.untracked } else { &mut self.tracked };
        list.insert(path, line);
    }

    fn is_in_untracked_folder(&self, file: &str) -> bool {
        let folders = file.match_indices('/').map(|(at, _)| &file[..=at]);
        folders.into_iter().any(|folder| self.untracked.contains_key(folder))
    }
}

/// A path and the folders above it, without the slashes at their ends.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(folder, _)| folder))
}

/// The line of the branch, and the others by their paths. `None` if one is not of the plain form.
fn parse(status: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let mut lines = status.lines();
    let branch = lines.next().filter(|line| line.starts_with("## "))?;
    let entries: Option<Vec<(&str, &str)>> = lines.map(|line| Some((entry_path(line)?, line))).collect();
    Some((branch, entries?))
}

/// The path of a line, if it is plain and the file was not renamed.
fn entry_path(line: &str) -> Option<&str> {
    let (state, path) = (line.get(..2)?, line.get(3..)?);
    let is_rename = state.contains(['R', 'C']);
    (!is_rename && is_plain(path)).then_some(path)
}

/// Whether git prints a path as it is. Others are in quotes, and a note of ours has spaces.
fn is_plain(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(|char: char| char.is_whitespace() || char.is_control() || "\"\\".contains(char))
}

//! [`Overview`]: what a repository consists of, in about a thousand tokens: its folders, where it
//! begins, and the files that others use most, with their main definitions.
//!
//! ```text
//! src/ +50
//!  main.rs: main
//!  net/client.rs: Client, connect
//! src/parser/ +20
//!  lexer.rs: Token, Lexer
//! ```
//!
//! `+20` are at least 20 more files.

mod choice;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::index::{File, SymbolIndex};
use crate::map::{TokenBudget, is_in_scope, round_down};
use crate::rank::Focus;
use crate::resolve::split_path;

/// What an overview should cover.
#[derive(Clone, Copy)]
pub struct OverviewRequest<'a> {
    /// The folder to describe; empty for the whole repository.
    pub folder: &'a str,
    /// What the conversation is about; it biases the choice of files.
    pub focus: Option<&'a Focus>,
    /// How long the overview may be.
    pub budget: TokenBudget<'a>,
    /// An earlier overview whose choice this one keeps.
    pub kept: Option<KeptOverview<'a>>,
}

/// The choice of an earlier overview.
#[derive(Clone, Copy)]
pub struct KeptOverview<'a> {
    /// What was chosen.
    pub memory: &'a OverviewMemory,
    /// The files that existed then. Later ones are added if they are worth a line.
    pub known_files: &'a BTreeSet<String>,
}

/// The folders and files of a repository that are worth knowing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Complete lines; empty if there are no files.
    pub text: String,
    /// Pass it in with the next request to keep the choice.
    pub memory: OverviewMemory,
    /// How many files of the folder have no line.
    pub unnamed_files: usize,
}

/// Which folders and files an overview names.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct OverviewMemory {
    /// Folders with a line of their own, with a slash at the end; the root is empty.
    pub folders: BTreeSet<String>,
    /// Paths of the files, each with the names of its main definitions.
    pub files: BTreeMap<String, Vec<String>>,
}

/// A kept overview may grow to this multiple of its budget before files that are new are no longer
/// told.
const GROWTH: usize = 2;

impl SymbolIndex {
    /// Describes the repository, or one folder of it.
    ///
    /// ```
    /// use hardpan_symbols::{OverviewRequest, SymbolIndex, TokenBudget};
    ///
    /// let mut index = SymbolIndex::default();
    /// index.update("src/clock.py", b"def now(): ...");
    /// index.update("src/main.py", b"from clock import now\ndef main(): now()\n");
    /// let budget = TokenBudget { tokens: 100, count_tokens: &|text| text.len() / 3 };
    /// let overview = index.overview(&OverviewRequest { folder: "", focus: None, budget, kept: None });
    /// assert_eq!(overview.text, "src/\n clock.py: now\n main.py: main\n");
    /// ```
    pub fn overview(&self, request: &OverviewRequest<'_>) -> Overview {
        let scope = [request.folder.to_owned()];
        let paths: Vec<&str> = self.paths().filter(|path| is_in_scope(&scope, path)).collect();
        let memory = match request.kept {
            None => choice::choose(self, &paths, request),
            Some(kept) => self.keep_choice(kept, &paths, request),
        };
        let text = render(&memory, &paths);
        let unnamed_files = paths.iter().filter(|path| !memory.files.contains_key(**path)).count();
        Overview { text, memory, unnamed_files }
    }

    /// An earlier choice without what is gone, and with the new files that a new choice would name.
    fn keep_choice(
        &self,
        kept: KeptOverview<'_>,
        paths: &[&str],
        request: &OverviewRequest<'_>,
    ) -> OverviewMemory {
        let mut memory = kept.memory.clone();
        let still_defined =
            |file: &File, name: &String| file.outline.definitions.iter().any(|d| *d.name == **name);
        memory.files.retain(|path, names| {
            let file = self.get(path);
            names.retain(|name| file.is_some_and(|file| still_defined(file, name)));
            file.is_some()
        });
        let folders = count_files(paths);
        memory.folders.retain(|folder| folders.contains_key(folder.as_str()));
        if paths.iter().all(|path| kept.known_files.contains(*path)) {
            return memory;
        }
        let anew = choice::choose(self, paths, request);
        let limit = request.budget.tokens * GROWTH;
        for (path, names) in anew.files {
            if !kept.known_files.contains(&path) && !memory.files.contains_key(&path) {
                let before = memory.clone();
                memory.files.insert(path, names);
                if (request.budget.count_tokens)(&render(&memory, paths)) > limit {
                    return before;
                }
            }
        }
        memory
    }
}

/// How many files each folder has, its subfolders included; folders end with a slash.
fn count_files<'a>(paths: &[&'a str]) -> BTreeMap<&'a str, usize> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        *counts.entry("").or_default() += 1;
        for (end, _) in path.match_indices('/') {
            *counts.entry(&path[..=end]).or_default() += 1;
        }
    }
    counts
}

/// The folder of these that holds a path most closely; the root if there is none.
fn nearest_folder<'a>(folders: &BTreeSet<String>, path: &'a str) -> &'a str {
    let above = path.rmatch_indices('/').map(|(end, _)| &path[..=end]);
    above.into_iter().find(|folder| folders.contains(*folder)).unwrap_or_default()
}

/// One line for each folder, and below it one for each of its files. A folder says how many more
/// files it has, rounded down, without those of folders that have a line of their own.
fn render(memory: &OverviewMemory, paths: &[&str]) -> String {
    let mut lines: BTreeMap<&str, (usize, Vec<String>)> =
        memory.folders.iter().map(|folder| (folder.as_str(), (0, Vec::new()))).collect();
    for path in paths {
        let folder = nearest_folder(&memory.folders, path);
        let (unnamed, named) = lines.entry(folder).or_default();
        match memory.files.get(*path) {
            None => *unnamed += 1,
            Some(names) => named.push(file_line(&path[folder.len()..], names)),
        }
    }
    let mut text = String::new();
    for (folder, (unnamed, named)) in lines {
        if unnamed + named.len() > 0 {
            text.push_str(&folder_line(folder, unnamed));
            named.iter().for_each(|line| text.push_str(line));
        }
    }
    text
}

/// The line of a folder that has so many files without a line. Small differences do not change it.
fn folder_line(folder: &str, unnamed: usize) -> String {
    let folder = if folder.is_empty() { "./" } else { folder };
    match unnamed {
        0 => format!("{folder}\n"),
        1..5 => format!("{folder} +1\n"),
        _ => format!("{folder} +{}\n", round_down(u32::try_from(unnamed).unwrap_or(u32::MAX))),
    }
}

fn file_line(path: &str, names: &[String]) -> String {
    match names {
        [] => format!(" {path}\n"),
        names => format!(" {path}: {}\n", names.join(", ")),
    }
}

/// The folder of a path, with a slash at the end.
fn folder_of(path: &str) -> &str {
    let (folder, _) = split_path(path);
    if folder.is_empty() { "" } else { &path[..=folder.len()] }
}

#[cfg(test)]
mod tests;

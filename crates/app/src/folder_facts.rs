//! [`FolderFacts`]: what a person may want to know about a folder before the first prompt.

use std::time::Duration;

use hardpan_symbols::{Focus, SymbolIndex, SymbolKind};
use hardpan_workspace::IndexWait;

use crate::workspace_context::WorkspaceContext;

/// How many of the files that others refer to most are searched for names.
const RANKED_FILES: usize = 12;
/// How many names are looked up.
const LOOKED_UP: usize = 60;

/// What there is to say about a folder. Each fact is missing where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderFacts {
    /// The branch that is checked out.
    pub branch: Option<String>,
    /// How many files git says have changed.
    pub changed_files: Option<usize>,
    /// How many files are indexed; none if the index is not ready.
    pub files: Option<usize>,
    /// The instruction files that requests begin with, as they are shown.
    pub instruction_files: Vec<String>,
    /// How many skills the model is told of.
    pub skills: usize,
    /// Names that much of the code uses, the most used first.
    pub notable_names: Vec<NotableName>,
}

/// A definition that is worth a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotableName {
    /// The name as it stands in the code.
    pub name: String,
    /// Path of the file that defines it.
    pub path: String,
    /// How many files use it.
    pub users: usize,
}

impl WorkspaceContext {
    /// Looks at the folder. Runs git, reads instruction files, and waits for the symbol index at most
    /// for `wait`: nothing to do before the first frame.
    pub fn folder_facts(&self, wait: Duration) -> FolderFacts {
        let status = self.reader().git_status();
        let (branch, changed_files) = status.as_deref().map(read_status).unwrap_or_default();
        let (instruction_files, skills) = self.reader().instructions();
        let from_index = |index: &SymbolIndex| (index.paths().len(), notable_names(index));
        let indexed = match self.shows_repository() {
            true => self.reader().with_ready_index(IndexWait::at_most(wait), from_index),
            false => None,
        };
        let (files, notable_names) = indexed.map(|(files, names)| (Some(files), names)).unwrap_or_default();
        FolderFacts { branch, changed_files, files, instruction_files, skills, notable_names }
    }
}

/// The branch and the number of changed files in `git status --porcelain --branch`.
fn read_status(status: &str) -> (Option<String>, Option<usize>) {
    let head = status.lines().find_map(|line| line.strip_prefix("## "));
    let branch = head.map(|head| {
        let head = head.strip_prefix("No commits yet on ").unwrap_or(head);
        head.split("...").next().unwrap_or(head).split(" (").next().unwrap_or(head).trim().to_owned()
    });
    let is_change = |line: &&str| !line.starts_with("## ") && !line.starts_with('(') && !line.is_empty();
    let changed = head.map(|_| status.lines().filter(is_change).count());
    (branch, changed)
}

/// The types and functions that most files use, each from another file.
fn notable_names(index: &SymbolIndex) -> Vec<NotableName> {
    let ranks = index.ranks(&Focus::default());
    let mut ranked: Vec<(&str, _)> = index.paths().zip(ranks).collect();
    ranked.sort_by(|a, b| b.1.partial_cmp(&a.1).unwrap_or(std::cmp::Ordering::Equal).then(a.0.cmp(b.0)));
    let is_test = |path: &str| path.split('/').any(|part| part.starts_with("test") || part == "spec");
    let best: Vec<&str> =
        ranked.into_iter().map(|(path, _)| path).filter(|path| !is_test(path)).take(RANKED_FILES).collect();
    let report = index.report(|path| best.contains(&path));
    let symbols = report.files.iter().flat_map(|file| &file.symbols).filter(|symbol| is_notable(symbol));
    let mut names: Vec<NotableName> = Vec::new();
    for symbol in symbols.take(LOOKED_UP) {
        // A name that several places define would be a question about something else.
        if let [definition] = &index.find_definitions(&symbol.name)[..] {
            let (name, path) = (symbol.name.clone(), definition.path.clone());
            names.push(NotableName { name, path, users: definition.used_by.len() });
        }
    }
    names.retain(|name| name.users > 0);
    names.sort_by(|a, b| b.users.cmp(&a.users).then(a.name.cmp(&b.name)));
    let mut seen = Vec::new();
    names.retain(|name| {
        let is_new = !seen.contains(&name.path);
        seen.push(name.path.clone());
        is_new
    });
    names
}

fn is_notable(symbol: &hardpan_symbols::SymbolReport) -> bool {
    let is_kind = matches!(
        symbol.kind,
        SymbolKind::Class
            | SymbolKind::Struct
            | SymbolKind::Trait
            | SymbolKind::Interface
            | SymbolKind::Enum
            | SymbolKind::Function
    );
    // A short or common word would find too much.
    let is_telling = symbol.name.len() >= 5 && symbol.name.len() <= 30 && symbol.name != "Error";
    is_kind && symbol.parent.is_none() && is_telling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_the_branch_and_the_number_of_changes() {
        let told = |status: &str| {
            let (branch, changed) = read_status(status);
            (branch.unwrap_or_default(), changed.unwrap_or_default())
        };
        assert_eq!(told("## main...origin/main [ahead 1]\n M a.rs\n?? b.rs\n"), ("main".into(), 2));
        assert_eq!(told("## No commits yet on trunk\n?? a\n"), ("trunk".into(), 1));
        assert_eq!(told("## HEAD (no branch)\n"), ("HEAD".into(), 0));
        assert_eq!(told("(git status was stopped after 5 seconds)\n"), (String::new(), 0));
    }

    #[test]
    fn notable_names_are_those_that_files_use() {
        let mut index = SymbolIndex::default();
        index.update("retry.py", b"class RetryPolicy: ...\nclass Unused: ...\n");
        index.update("a.py", b"from retry import RetryPolicy\nRetryPolicy()\n");
        index.update("b.py", b"from retry import RetryPolicy\nclass Budget: ...\nRetryPolicy()\n");
        index.update("c.py", b"from b import Budget\nBudget()\n");
        let names = notable_names(&index);
        let names: Vec<(&str, usize)> = names.iter().map(|name| (name.name.as_str(), name.users)).collect();
        assert_eq!(names, [("RetryPolicy", 2), ("Budget", 1)]);
    }
}

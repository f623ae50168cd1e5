//! The tree by git's ignore rules.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

use crate::path::{display_path, slashed};
use crate::regular::special;
use crate::root_of;

/// How many files are listed where nobody says otherwise: some 3 MB of names, which no window holds.
pub const TREE_LIMIT: usize = 100_000;

/// The files of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Paths relative to the root, with forward slashes, sorted by their bytes.
    pub files: Vec<String>,
    /// What could not be listed, sorted likewise.
    pub skipped: Vec<Skipped>,
    /// Whether the limit ended the listing.
    pub truncated: bool,
}

impl Tree {
    /// The files as lines of at most `bytes` in all: where there are too many, the deepest folders are shown as one line
    /// each, `src/parser/ (12 files)`, then those above them. Also how many files are behind such lines.
    pub fn outline(&self, bytes: usize) -> (Vec<String>, usize) {
        let depth_of = |path: &str| path.matches('/').count();
        let mut depth = self.files.iter().map(|path| depth_of(path)).max().unwrap_or(0);
        let mut lines = self.files.clone();
        let mut hidden = 0;
        while lines.iter().map(|line| line.len() + 1).sum::<usize>() > bytes && depth > 0 {
            depth -= 1;
            let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
            lines = Vec::new();
            for path in &self.files {
                match path.match_indices('/').nth(depth) {
                    Some((end, _)) => *folders.entry(&path[..=end]).or_default() += 1,
                    None => lines.push(path.clone()),
                }
            }
            hidden = folders.values().sum();
            let word = |count: usize| if count == 1 { "file" } else { "files" };
            lines
                .extend(folders.iter().map(|(folder, count)| format!("{folder} ({count} {})", word(*count))));
            lines.sort_unstable();
        }
        (lines, hidden)
    }
}

/// Something that could not be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    /// Its path, made fit to be shown: it may not open the file.
    pub path: String,
    /// Why, in words for a person.
    pub reason: String,
}

/// Lists the files under `root` that git would not ignore, hidden ones included, `.git` excluded. Links are listed,
/// not followed; `.ignore` files add to what git ignores. A `.gitignore` counts even outside a repository.
///
/// At most `limit` entries are listed, those that come first when each folder is read by name: the same ones every
/// time.
pub fn files(root: &Path, limit: usize) -> Tree {
    let mut tree = Tree::default();
    for entry in walk(root) {
        let listed = match entry {
            Ok(entry) => list(root, &entry, &mut tree.skipped),
            Err(error) => Listed::Skipped(Skipped::from_error(root, &error)),
        };
        if matches!(listed, Listed::Folder) {
            continue;
        }
        if tree.files.len() + tree.skipped.len() >= limit {
            tree.truncated = true;
            break;
        }
        match listed {
            Listed::File(path) => tree.files.push(path),
            Listed::Skipped(skipped) => tree.skipped.push(skipped),
            Listed::Folder => {}
        }
    }
    tree.files.sort_unstable();
    tree.skipped.sort_unstable();
    tree
}

/// Walks what [`files`] lists, folders too, each folder's entries by name, `root` first.
pub fn walk(root: &Path) -> ignore::Walk {
    // Rules above the root count only in a repository: a stray .gitignore in the home folder is no rule for us.
    let in_repository = root_of(root).join(".git").exists();
    WalkBuilder::new(root)
        .hidden(false)
        .parents(in_repository)
        .require_git(in_repository)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != OsStr::new(".git"))
        .sort_by_file_name(Ord::cmp)
        .build()
}

enum Listed {
    File(String),
    Folder,
    Skipped(Skipped),
}

fn list(root: &Path, entry: &DirEntry, problems: &mut Vec<Skipped>) -> Listed {
    if let Some(error) = entry.error() {
        problems.push(Skipped::from_error(root, error)); // a rule that cannot be read
    }
    let kind = entry.file_type();
    if kind.is_some_and(|kind| kind.is_dir()) {
        return Listed::Folder;
    }
    let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
    let shown = shown(&slashed(relative));
    let skipped = |path, reason: &str| Listed::Skipped(Skipped { path, reason: reason.into() });
    match (kind, relative.to_str()) {
        _ if entry.depth() == 0 => skipped(".".into(), "not a directory"),
        (Some(kind), _) if !kind.is_file() && !kind.is_symlink() => skipped(shown, special(kind)),
        (_, None) => skipped(shown, "its name is not Unicode"),
        (_, Some(name)) if name.chars().any(unfit) => skipped(shown, "its name has control characters"),
        _ => Listed::File(shown),
    }
}

impl Skipped {
    fn from_error(root: &Path, error: &ignore::Error) -> Self {
        match error {
            ignore::Error::WithPath { path, err } => {
                Skipped { path: shown(&display_path(root, path)), reason: words(err) }
            }
            ignore::Error::WithDepth { err, .. } => Skipped::from_error(root, err),
            ignore::Error::Partial(errors) if errors.len() == 1 => Skipped::from_error(root, &errors[0]),
            other => Skipped { path: ".".into(), reason: words(other) },
        }
    }
}

/// The error without the path that the entry already names.
fn words(error: &ignore::Error) -> String {
    match error.io_error() {
        Some(io) => io.to_string(),
        None => error.to_string(),
    }
}

/// A character that would break a list of one name per line, or a terminal.
fn unfit(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}

fn shown(path: &str) -> String {
    if !path.chars().any(unfit) {
        return path.to_owned();
    }
    path.chars().map(|c| if unfit(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

#[cfg(test)]
mod tests;

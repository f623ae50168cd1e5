//! [`FileTree`]: the files of a folder by git's ignore rules.

mod bounded_lines; // lines_within: a list of files as lines of bounded length

use std::path::Path;
use std::time::Instant;

use hardpan_files::FileGuard;

use crate::list_bounds::ListBounds;
use crate::path::{display_path, with_forward_slashes};
use crate::walk::{EntryKind, FolderVisitor, Walk, walk_whole};

/// Default limit for listing files: some 3 MB of names, which no context window holds.
pub const TREE_LIMIT: usize = 100_000;

/// The files of a folder and its subfolders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileTree {
    /// Paths relative to the root, with forward slashes, sorted by their bytes.
    pub files: Vec<String>,
    /// What could not be listed, sorted by path.
    pub skipped: Vec<SkippedPath>,
    /// Whether the listing stopped at the limit.
    pub truncated: bool,
}

impl FileTree {
    /// Whether a file is in the list.
    pub fn has_file(&self, path: &str) -> bool {
        self.files.binary_search_by(|file| file.as_str().cmp(path)).is_ok()
    }

    /// Adds what a walk of the root or of a folder below it finds, unsorted.
    #[allow(clippy::disallowed_methods, reason = "a listing of what is no project ends after a while")]
    pub(crate) fn add_walk(&mut self, root: &Path, walk: Walk<'_>, bounds: &ListBounds) {
        let begun = Instant::now();
        for (visited, entry) in walk.enumerate() {
            if bounds.are_reached(visited, begun) {
                self.truncated = true;
                break;
            }
            let listed = match entry {
                Ok(mut entry) => {
                    // Rules that cannot be used.
                    self.skipped.extend(entry.rule_problems.drain(..).map(|problem| problem.below(root)));
                    list_entry(root, &entry.path, entry.kind)
                }
                Err(skipped) => ListedEntry::Skipped(skipped.below(root)),
            };
            if matches!(listed, ListedEntry::Folder) {
                continue;
            }
            if self.files.len() + self.skipped.len() >= bounds.files {
                self.truncated = true;
                break;
            }
            match listed {
                ListedEntry::File(path) => self.files.push(path),
                ListedEntry::Skipped(skipped) => self.skipped.push(skipped),
                ListedEntry::Folder => {}
            }
        }
    }

    pub(crate) fn sort(&mut self) {
        self.files.sort_unstable();
        self.skipped.sort_unstable();
    }
}

/// A path that could not be listed, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkippedPath {
    /// Path for display; in a tree, relative to its root, and special characters are escaped.
    pub path: String,
    /// The reason as a phrase for the user.
    pub reason: String,
}

/// Lists the files under `root` that git would not ignore, hidden ones included, `.git` excluded.
/// Links are listed, not followed; `.ignore` files add to what git ignores. A `.gitignore` counts
/// even outside a repository.
///
/// At most `limit` entries are listed, fewer of a folder that is no project. They are always the same
/// ones: folders are read in the order of names.
pub fn list_files(guard: &FileGuard, root: &Path, limit: usize) -> FileTree {
    list_visiting(guard, root, limit, None)
}

/// The same, and calls `visitor` with every folder before its names are read.
pub(crate) fn list_visiting(
    guard: &FileGuard,
    root: &Path,
    limit: usize,
    visitor: Option<FolderVisitor<'_>>,
) -> FileTree {
    let mut tree = FileTree::default();
    tree.add_walk(root, walk_whole(guard, root, visitor), &ListBounds::new(root, limit));
    tree.sort();
    tree
}

pub(crate) enum ListedEntry {
    File(String),
    Folder,
    Skipped(SkippedPath),
}

/// How a path below the root is listed.
pub(crate) fn list_entry(root: &Path, path: &Path, kind: EntryKind) -> ListedEntry {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let shown = escape_path(&with_forward_slashes(relative));
    let skipped = |path, reason: &str| ListedEntry::Skipped(SkippedPath { path, reason: reason.into() });
    match (kind, relative.to_str()) {
        (EntryKind::Folder, _) => ListedEntry::Folder,
        (_, Some("")) => skipped(".".into(), "not a directory"),
        (EntryKind::Special(kind), _) => skipped(shown, kind),
        (_, None) => skipped(shown, "its name is not Unicode"),
        (_, Some(name)) if name.chars().any(is_unprintable) => {
            skipped(shown, "its name has control characters")
        }
        _ => ListedEntry::File(shown),
    }
}

impl SkippedPath {
    pub(crate) fn new(path: &Path, reason: String) -> Self {
        SkippedPath { path: path.to_string_lossy().into_owned(), reason }
    }

    /// The same with its path as a tree shows it.
    fn below(self, root: &Path) -> Self {
        SkippedPath { path: escape_path(&display_path(root, Path::new(&self.path))), ..self }
    }
}

/// Whether a character would break a list of one name per line, or a terminal.
fn is_unprintable(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}

pub(crate) fn escape_path(path: &str) -> String {
    if !path.chars().any(is_unprintable) {
        return path.to_owned();
    }
    path.chars()
        .map(|c| if is_unprintable(c) { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}

#[cfg(test)]
mod tests;

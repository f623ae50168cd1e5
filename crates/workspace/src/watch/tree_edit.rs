//! [`TreeEdit`]: a list of files with some of them added and removed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use hardpan_files::UnreadableReason;

use crate::file_tree::{FileTree, SkippedPath, TREE_LIMIT, escape_path};
use crate::list_bounds::ListBounds;
use crate::walk::Walk;

/// Up to this many names are put in and taken out one by one; above that, the list is merged.
const MAX_SINGLE: usize = 16;

/// A list that is being changed.
pub(super) struct TreeEdit {
    tree: FileTree,
    skipped_before: Vec<SkippedPath>,
    /// The files that were looked at, and whether they were listed before.
    touched: BTreeMap<String, bool>,
    /// Those of them that are listed now.
    listed: BTreeSet<String>,
}

/// What an edit has changed.
pub(super) struct EditOutcome {
    /// The files that were looked at, and whether they were listed before.
    pub touched: BTreeMap<String, bool>,
    /// Whether the list is another one.
    pub is_other_list: bool,
}

impl TreeEdit {
    pub fn new(tree: FileTree) -> Self {
        let skipped_before = tree.skipped.clone();
        TreeEdit { tree, skipped_before, touched: BTreeMap::new(), listed: BTreeSet::new() }
    }

    /// Removes a folder with everything in it.
    pub fn remove_folder(&mut self, folder: &str) {
        let shown = escape_path(folder);
        let (first, end) = (format!("{shown}/"), format!("{shown}0")); // 0 comes right after /
        let files = &mut self.tree.files;
        let start = files.partition_point(|file| *file < first);
        let end_at = files.partition_point(|file| *file < end);
        for file in files.drain(start..end_at) {
            self.touched.entry(file).or_insert(true);
        }
        self.tree.skipped.retain(|skipped| skipped.path != shown && !skipped.path.starts_with(&first));
    }

    /// Removes a file, if it is listed.
    pub fn remove(&mut self, path: &str) {
        let was_listed = self.tree.has_file(path);
        self.touched.entry(path.to_owned()).or_insert(was_listed);
        self.listed.remove(path);
        if !self.tree.skipped.is_empty() {
            let shown = escape_path(path);
            self.tree.skipped.retain(|skipped| skipped.path != shown);
        }
    }

    pub fn add(&mut self, path: String) {
        if !self.touched.contains_key(&path) {
            let was_listed = self.tree.has_file(&path);
            self.touched.insert(path.clone(), was_listed);
        }
        self.listed.insert(path);
    }

    pub fn skip(&mut self, skipped: SkippedPath) {
        self.tree.skipped.push(skipped);
    }

    pub fn skip_folder(&mut self, folder: &str, reason: UnreadableReason) {
        let reason = io::Error::from(reason).to_string();
        self.skip(SkippedPath { path: escape_path(folder), reason });
    }

    /// Adds what a walk of a new folder finds.
    pub fn add_walk(&mut self, root: &Path, walk: Walk<'_>) {
        let mut found = FileTree::default();
        found.add_walk(root, walk, &ListBounds::new(root, TREE_LIMIT));
        self.tree.truncated |= found.truncated;
        self.tree.skipped.extend(found.skipped);
        found.files.into_iter().for_each(|file| self.add(file));
    }

    pub fn finish(self) -> (FileTree, EditOutcome) {
        let TreeEdit { mut tree, skipped_before, touched, listed } = self;
        let is_other_list = touched.iter().any(|(path, was_listed)| *was_listed != listed.contains(path));
        if is_other_list || touched.values().any(|was_listed| *was_listed) {
            apply(&mut tree.files, &touched, listed);
        }
        tree.skipped.sort_unstable();
        let is_other_list = is_other_list || tree.skipped != skipped_before;
        (tree, EditOutcome { touched, is_other_list })
    }
}

/// Takes the touched files out of a sorted list, and puts in those that are listed.
fn apply(files: &mut Vec<String>, touched: &BTreeMap<String, bool>, listed: BTreeSet<String>) {
    if touched.len() > MAX_SINGLE {
        let kept = std::mem::take(files).into_iter().filter(|file| !touched.contains_key(file));
        let mut listed = listed.into_iter().peekable();
        for file in kept {
            while let Some(next) = listed.next_if(|next| *next < file) {
                files.push(next);
            }
            files.push(file);
        }
        return files.extend(listed);
    }
    for path in touched.keys() {
        let place = files.binary_search(path);
        match (place, listed.contains(path)) {
            (Ok(at), false) => drop(files.remove(at)),
            (Err(at), true) => files.insert(at, path.clone()),
            _ => {}
        }
    }
}

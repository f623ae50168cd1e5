//! [`WorkTree`]: what the small files of the workspace held before a command, so that `/undo` also takes
//! back what commands did.
//!
//! The contents are kept in memory by the signatures of their files: taking it again reads what has
//! changed, and nothing if nothing has.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_prompt::Hash;
use hardpan_workspace::{EntryKind, walk};

use crate::Scope;

/// How many files are looked at. In larger trees the rest is not covered.
const MAX_FILES: usize = 20_000;

/// The largest file that is kept.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// How many bytes are kept in all.
const MAX_KEPT_BYTES: u64 = 32 * 1024 * 1024;

/// The files of a workspace that git would not ignore, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkTree {
    files: BTreeMap<PathBuf, TreeFile>,
}

#[derive(Clone, Debug)]
struct TreeFile {
    signature: FileSignature,
    mode: u32,
    /// `None` if the file is too large, or cannot be read.
    content: Option<Arc<[u8]>>,
}

/// Values of which at least one changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileSignature {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What a command did to a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TreeChange {
    pub path: PathBuf,
    pub before: FormerFile,
    /// The hash of what it holds now; `None` if it is gone.
    pub after: Option<Hash>,
}

/// What a file was before a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FormerFile {
    /// There was none.
    Missing,
    /// Its content and permission bits.
    Kept(Arc<[u8]>, u32),
    /// It was not kept.
    NotKept,
}

impl WorkTree {
    /// The tree as it is now. Files with the signature that they have in `self` are not read again.
    pub fn take(&self, scope: &Scope) -> WorkTree {
        let guard = scope.guard();
        let mut files = BTreeMap::new();
        let mut kept = 0;
        let entries = walk(&guard, &scope.root).filter_map(Result::ok);
        for entry in entries.filter(|entry| entry.kind == EntryKind::File).take(MAX_FILES) {
            let Ok(metadata) = entry.path.symlink_metadata() else { continue };
            let signature = FileSignature {
                inode: metadata.ino(),
                size: metadata.size(),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
            };
            let known = self.files.get(&entry.path).filter(|known| known.signature == signature);
            let fits = metadata.size() <= MAX_FILE_BYTES && kept + metadata.size() <= MAX_KEPT_BYTES;
            let content = match known {
                _ if !fits => None,
                Some(TreeFile { content: Some(content), .. }) => Some(content.clone()),
                _ => guard
                    .open(&entry.path)
                    .and_then(|file| file.read_all(MAX_FILE_BYTES))
                    .ok()
                    .map(Into::into),
            };
            kept += content.as_ref().map_or(0, |content| content.len() as u64);
            files.insert(entry.path, TreeFile { signature, mode: metadata.mode() & 0o7777, content });
        }
        WorkTree { files }
    }

    /// What is different in a later tree, by path.
    pub fn changes_until(&self, later: &WorkTree) -> Vec<TreeChange> {
        let paths: std::collections::BTreeSet<&PathBuf> =
            self.files.keys().chain(later.files.keys()).collect();
        paths.into_iter().filter_map(|path| self.change_of(path, later)).collect()
    }

    fn change_of(&self, path: &Path, later: &WorkTree) -> Option<TreeChange> {
        let (before, after) = (self.files.get(path), later.files.get(path));
        if let (Some(before), Some(after)) = (before, after)
            && (before.signature == after.signature
                || before.content.is_some() && before.content == after.content)
        {
            return None;
        }
        let is_known = after.is_none_or(|after| after.content.is_some());
        let former = match before {
            _ if !is_known => FormerFile::NotKept,
            None => FormerFile::Missing,
            Some(TreeFile { content: Some(content), mode, .. }) => FormerFile::Kept(content.clone(), *mode),
            Some(_) => FormerFile::NotKept,
        };
        let after = after.and_then(|after| after.content.as_ref()).map(|content| Hash::of(content));
        Some(TreeChange { path: path.to_owned(), before: former, after })
    }
}

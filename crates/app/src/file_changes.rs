//! [`FileChanges`]: which of the open files changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_prompt::Hash;
use hardpan_tools::Scope;
use hardpan_workspace::WatchPosition;

use crate::gather::FolderWatch;

/// The most bytes of a file that are compared: what requests show of one.
const MAX_BYTES: u64 = 4 << 20;

/// Compares open files with what they held when they were last looked at. A watch tells which may
/// differ; without one, all are read.
pub(crate) struct FileChanges {
    scope: Scope,
    watch: Arc<FolderWatch>,
    known: Mutex<KnownFiles>,
}

#[derive(Default)]
struct KnownFiles {
    position: WatchPosition,
    /// By path; none for a file that cannot be read.
    hashes: BTreeMap<Arc<str>, Option<Hash>>,
}

impl FileChanges {
    pub fn new(scope: Scope, watch: Arc<FolderWatch>) -> Self {
        FileChanges { scope, watch, known: Mutex::default() }
    }

    /// The files among `open` that hold something else than when they were last looked at. Relative to
    /// the root.
    pub fn look(&self, open: &[Arc<str>]) -> Vec<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.hashes.retain(|path, _| open.contains(path));
        if open.is_empty() {
            return Vec::new();
        }
        let watch = self.watch.running();
        let changes = watch.map(|watch| watch.changes_since(&mut known.position));
        let mut changed = Vec::new();
        for path in open {
            let place = self.scope.root.join(&**path);
            let may_differ = changes
                .as_ref()
                .is_none_or(|changes| changes.everything || changes.list || changes.files.contains(&**path))
                || watch.is_none_or(|watch| !watch.covers(&place));
            let before = known.hashes.get(path).copied();
            if !may_differ && before.is_some() {
                continue;
            }
            let opened = self.scope.guard().open(&place);
            let hash = opened.and_then(|file| file.read_all(MAX_BYTES)).ok().map(|bytes| Hash::of(&bytes));
            if before.is_some_and(|before| before != hash) {
                changed.push(path.to_string());
            }
            known.hashes.insert(path.clone(), hash);
        }
        changed
    }
}

//! [`FileChanges`]: which of the open files changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_prompt::{Hash, Text};
use hardpan_tools::Scope;
use hardpan_workspace::{WatchPosition, read_open_text};

use crate::gather::{ContentTimes, FolderWatch, PANEL_FILE_LIMIT};

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
    /// What an earlier run of the conversation has shown of files that were not looked at yet.
    shown: BTreeMap<String, String>,
}

impl FileChanges {
    pub fn new(scope: Scope, watch: Arc<FolderWatch>) -> Self {
        FileChanges { scope, watch, known: Mutex::default() }
    }

    /// Goes on with a conversation that has shown these files: what changed since then is a change.
    pub fn resume(&self, times: &ContentTimes) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.hashes.clear();
        known.shown = times.shown_files().map(|(path, hash)| (path.to_owned(), hash.to_owned())).collect();
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
            let open = || self.scope.guard().open(&place);
            let hash = open().and_then(|file| file.read_all(MAX_BYTES)).ok().map(|bytes| Hash::of(&bytes));
            let has_changed = match (before, known.shown.remove(&**path)) {
                (Some(before), _) => before != hash,
                (None, Some(shown)) => {
                    let text = open().and_then(|file| read_open_text(&file, PANEL_FILE_LIMIT)).ok();
                    let whole = text.filter(|text| text.truncation.is_none());
                    whole.is_some_and(|text| Text::new(text.text).hash().to_string() != shown)
                }
                (None, None) => false,
            };
            if has_changed {
                changed.push(path.to_string());
            }
            known.hashes.insert(path.clone(), hash);
        }
        changed
    }
}

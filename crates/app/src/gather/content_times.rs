//! [`ContentTimes`]: when the content of an item last changed.

use std::collections::BTreeMap;

use hardpan_context::{SnapshotFile, TreeEntry};
use hardpan_prompt::{Hash, Text};
use serde::{Deserialize, Serialize};

/// When the contents of the tree, of git's status and of files last changed. The time of a file is
/// no measure of that: writing the same bytes again, or `touch`, moves it. Stored in the session, so
/// that a resumed conversation sends the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentTimes(BTreeMap<String, ContentTime>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ContentTime {
    hash: String,
    changed_at_ms: i64,
}

impl ContentTimes {
    /// Sets the times of a snapshot. Content that is seen for the first time changed when its file
    /// did, or its newest folder, which `list_changed_ms` tells; other content changed now. `list_hash` is
    /// that of the list of files.
    pub fn apply(
        &mut self,
        file: &mut SnapshotFile,
        list_hash: Option<Hash>,
        list_changed_ms: impl FnOnce(&TreeEntry) -> i64,
    ) {
        let now = file.now.as_millisecond();
        let before = std::mem::take(self);
        let mut next = BTreeMap::new();
        let mut time_of = |key: String, hash: Hash, first_ms: &mut dyn FnMut() -> i64| {
            let hash = hash.to_string();
            let changed_at_ms = match before.0.get(&key) {
                Some(known) if known.hash == hash => known.changed_at_ms,
                // A clock that was set back does not make what is new old.
                Some(known) => known.changed_at_ms.max(now),
                None => first_ms().clamp(0, now.max(0)),
            };
            next.insert(key, ContentTime { hash, changed_at_ms });
            changed_at_ms
        };
        if let (Some(tree), Some(hash)) = (&mut file.tree, list_hash) {
            let mut first = Some(list_changed_ms);
            tree.last_refresh_ms = time_of("tree".into(), hash, &mut || {
                first.take().map_or(now, |list_changed_ms| list_changed_ms(tree))
            });
        }
        for item in file.items.iter_mut().filter(|item| item.key.as_deref() == Some("git")) {
            let hash = item.content.hash();
            item.last_refresh_ms = time_of("git".into(), hash, &mut || now);
        }
        for entry in &mut file.files {
            let reason = || Hash::of(entry.reason.as_deref().unwrap_or_default().as_bytes());
            let hash = entry.content.as_ref().map_or_else(reason, Text::hash);
            let modified = entry.last_refresh_ms;
            entry.last_refresh_ms = time_of(format!("file:{}", entry.path), hash, &mut || modified);
        }
        self.0 = next;
    }
}

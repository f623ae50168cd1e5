//! [`ContentTimes`]: when the content of an item last changed.

use std::collections::BTreeMap;

use hardpan_context::{Snapshot, SnapshotFile, TreeEntry};
use hardpan_prompt::{Hash, Text};
use serde::{Deserialize, Serialize};

/// The key of the overview among the items.
const OVERVIEW: &str = "overview";

/// When the contents of the tree, of the overview, of git's status and of files last changed. The time of a file is
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

impl ContentTime {
    /// The time of content that was `before`; `first_ms` is that of content which is seen for the first
    /// time.
    fn after(before: Option<&Self>, hash: Hash, now: i64, first_ms: &mut dyn FnMut() -> i64) -> Self {
        let hash = hash.to_string();
        let changed_at_ms = match before {
            Some(known) if known.hash == hash => known.changed_at_ms,
            // A clock that was set back does not make what is new old.
            Some(known) => known.changed_at_ms.max(now),
            None => first_ms().clamp(0, now.max(0)),
        };
        ContentTime { hash, changed_at_ms }
    }
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
        let mut before = std::mem::take(self);
        let mut next = BTreeMap::new();
        // Chosen after this, and dated then.
        next.extend(before.0.remove_entry(OVERVIEW));
        let mut time_of = |key: String, hash: Hash, first_ms: &mut dyn FnMut() -> i64| {
            let time = ContentTime::after(before.0.get(&key), hash, now, first_ms);
            let changed_at_ms = time.changed_at_ms;
            next.insert(key, time);
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

    /// Sets the time of the overview: when it was chosen, or last became another one.
    pub fn date_overview(&mut self, snapshot: &mut Snapshot) {
        let now = snapshot.now.as_millisecond();
        for item in snapshot.items.iter_mut().filter(|item| *item.key == *OVERVIEW) {
            let time = ContentTime::after(self.0.get(OVERVIEW), item.body.hash(), now, &mut || now);
            item.changed_at_ms = time.changed_at_ms;
            self.0.insert(OVERVIEW.to_owned(), time);
        }
    }

    /// The files that were shown, each with the hash of what was shown of it.
    pub fn shown_files(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.0.iter().filter_map(|(key, time)| Some((key.strip_prefix("file:")?, time)));
        files.map(|(path, time)| (path, time.hash.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn time_at(times: &mut ContentTimes, now: i64, status: &str) -> i64 {
        let mut file = SnapshotFile::empty(Timestamp::from_second(now).unwrap());
        let entry = serde_json::json!({
            "id": "git", "key": "git", "kind": "panel", "header": "git status", "content": status,
            "last_refresh_ms": 0,
        });
        file.items.push(serde_json::from_value(entry).unwrap());
        times.apply(&mut file, None, |_| 0);
        file.items[0].last_refresh_ms / 1000
    }

    #[test]
    fn a_clock_that_jumps_moves_no_time_of_what_stays_and_makes_nothing_older() {
        let mut times = ContentTimes::default();
        assert_eq!(time_at(&mut times, 1000, "one"), 1000);
        // A day ahead, a day back, to before 1970: the content is the same.
        for now in [87_400, 1000, 10, -5000, 1001] {
            assert_eq!(time_at(&mut times, now, "one"), 1000, "{now}");
        }
        assert_eq!(time_at(&mut times, 87_400, "two"), 87_400);
        // What is new is not older than what it replaces.
        assert_eq!(time_at(&mut times, 1000, "three"), 87_400);
        assert_eq!(time_at(&mut times, 1001, "three"), 87_400);
        assert_eq!(time_at(&mut times, 90_000, "four"), 90_000);
        assert_eq!(time_at(&mut ContentTimes::default(), -5000, "five"), 0);
    }
}

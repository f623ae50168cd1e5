//! [`CacheEntries`]: what is cached, and until when.

use std::collections::BTreeMap;

use hardpan_prompt::Hash;

use crate::cache::{CacheHit, EntryState, Moment};

/// How long an expired entry is remembered, in milliseconds (a day), so that a miss can be
/// explained by it.
const REMEMBERED_MS: i64 = 24 * 3600 * 1000;

/// The most entries kept, about 20 MB: a bound for caches whose lifetime is not documented.
pub(super) const MAX_ENTRIES: usize = 1 << 18;

/// One cached prefix and its times.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// When the request that wrote it was sent.
    written: Moment,
    /// When the last request that wrote or read it was sent; the lifetime counts from here.
    used: Moment,
    /// When the answer to the request that wrote it began; it cannot be read before.
    available: Moment,
    /// Lifetime in milliseconds. `None`: not documented, so it never expires.
    lifetime: Option<i64>,
}

impl Entry {
    fn expires(&self) -> Option<Moment> {
        self.lifetime.map(|lifetime| self.used.plus(lifetime))
    }

    /// The state in which a request sent at `at` finds the entry.
    pub fn state(&self, at: Moment) -> EntryState {
        match self.expires() {
            _ if at < self.available => EntryState::NotYet(self.available),
            Some(expires) if at >= expires => EntryState::Expired(expires),
            _ => EntryState::Readable,
        }
    }

    /// Reports the entry as it is read.
    pub fn hit(&self, block: usize, tokens: usize, at: Moment) -> CacheHit {
        let idle_ms = at.since(self.used).max(0); // a request that began later may have been answered earlier
        CacheHit { block, tokens, age_ms: at.since(self.written), idle_ms, expires: self.expires() }
    }
}

/// All cached prefixes, by the hash of everything they contain.
#[derive(Clone, Debug, Default)]
pub struct CacheEntries {
    entries: BTreeMap<Hash, Entry>,
    /// The number of entries at which the next clean-up is due.
    tidy_at: usize,
}

impl CacheEntries {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, key: &Hash) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Refreshes an entry that was readable at `at`. It keeps the lifetime it was written with.
    pub fn refresh(&mut self, key: Hash, at: Moment) {
        if let Some(entry) =
            self.entries.get_mut(&key).filter(|entry| entry.state(at) == EntryState::Readable)
        {
            entry.used = entry.used.max(at);
        }
    }

    /// Writes an entry, unless a readable one exists; that one has been refreshed instead.
    pub fn write(&mut self, key: Hash, at: Moment, available: Moment, lifetime: Option<i64>) {
        let new = Entry { written: at, used: at, available, lifetime };
        self.entries
            .entry(key)
            .and_modify(|old| match old.state(at) {
                EntryState::Readable => {}
                EntryState::Expired(_) => *old = new,
                // Two requests at once both write: the first answer makes it readable, the longer
                // life counts.
                EntryState::NotYet(_) => {
                    *old = Entry {
                        written: old.written.min(at),
                        used: old.used.max(at),
                        available: old.available.min(available),
                        lifetime: old.lifetime.zip(lifetime).map(|(old, new)| old.max(new)),
                    };
                }
            })
            .or_insert(new);
    }

    /// Drops entries that expired long ago, and the least recently used ones if there are too many.
    /// Runs only when the number of entries has doubled since the last time.
    pub fn tidy(&mut self, now: Moment) {
        if self.len() < self.tidy_at.max(1024) {
            return;
        }
        let is_recent = |entry: &Entry| entry.expires().is_none_or(|end| now < end.plus(REMEMBERED_MS));
        self.entries.retain(|_, entry| is_recent(entry));
        if self.len() >= MAX_ENTRIES {
            let mut by_use: Vec<_> = self.entries.iter().map(|(key, entry)| (entry.used, *key)).collect();
            let excess = by_use.len() - MAX_ENTRIES / 2;
            let (_, first_kept, _) = by_use.select_nth_unstable(excess);
            let first_kept = *first_kept;
            self.entries.retain(|key, entry| (entry.used, *key) >= first_kept);
        }
        self.tidy_at = (2 * self.len()).min(MAX_ENTRIES);
    }
}

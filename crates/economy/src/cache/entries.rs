//! What is cached, and until when.

use std::collections::BTreeMap;

use hardpan_prompt::Hash;

use crate::cache::{Hit, Moment, State};

/// How long an expired entry is remembered, so that a miss can be put down to it: a day.
const REMEMBERED_MS: i64 = 24 * 3600 * 1000;

/// The most entries kept, about 20 MB: a bound for caches whose lifetime nobody states.
pub(super) const MOST: usize = 1 << 18;

/// One cached prefix.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The start of the request that wrote it.
    written: Moment,
    /// The start of the last request that wrote or read it: its lifetime counts from here.
    used: Moment,
    /// When the answer of the request that wrote it began.
    available: Moment,
    /// In milliseconds. `None`: nobody says, so it does not expire.
    lifetime: Option<i64>,
}

impl Entry {
    fn expires(&self) -> Option<Moment> {
        self.lifetime.map(|lifetime| self.used.plus(lifetime))
    }

    /// As a request that begins at `at` finds it.
    pub fn state(&self, at: Moment) -> State {
        match self.expires() {
            _ if at < self.available => State::NotYet(self.available),
            Some(expires) if at >= expires => State::Expired(expires),
            _ => State::Readable,
        }
    }

    /// As it is reported when it is read.
    pub fn hit(&self, block: usize, tokens: usize, at: Moment) -> Hit {
        let idle_ms = at.since(self.used).max(0); // a request that began later may have been answered earlier
        Hit { block, tokens, age_ms: at.since(self.written), idle_ms, expires: self.expires() }
    }
}

/// All cached prefixes, by the hash of all that is in them.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    entries: BTreeMap<Hash, Entry>,
    /// The size at which expired entries are looked for again.
    tidy_at: usize,
}

impl Entries {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, key: &Hash) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// Keeps an entry warm that was readable at `at`; it keeps the lifetime it was written with.
    pub fn refresh(&mut self, key: Hash, at: Moment) {
        if let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.state(at) == State::Readable) {
            entry.used = entry.used.max(at);
        }
    }

    /// Writes an entry, unless one can be read: that one has been refreshed.
    pub fn write(&mut self, key: Hash, at: Moment, available: Moment, lifetime: Option<i64>) {
        let new = Entry { written: at, used: at, available, lifetime };
        self.entries
            .entry(key)
            .and_modify(|old| match old.state(at) {
                State::Readable => {}
                State::Expired(_) => *old = new,
                // Two requests at once both write: the first answer makes it readable, the longer life counts.
                State::NotYet(_) => {
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

    /// Forgets what expired long ago, and what has not been used for longest if there is too much of it. Looks only
    /// when the number of entries has doubled since the last time.
    pub fn tidy(&mut self, now: Moment) {
        if self.len() < self.tidy_at.max(1024) {
            return;
        }
        let is_recent = |entry: &Entry| entry.expires().is_none_or(|end| now < end.plus(REMEMBERED_MS));
        self.entries.retain(|_, entry| is_recent(entry));
        if self.len() >= MOST {
            let mut by_use: Vec<_> = self.entries.iter().map(|(key, entry)| (entry.used, *key)).collect();
            let excess = by_use.len() - MOST / 2;
            let (_, first_kept, _) = by_use.select_nth_unstable(excess);
            let first_kept = *first_kept;
            self.entries.retain(|key, entry| (entry.used, *key) >= first_kept);
        }
        self.tidy_at = (2 * self.len()).min(MOST);
    }
}

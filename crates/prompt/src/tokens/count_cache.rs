//! [`CountCache`]: token counts, kept for as long as they are likely to be needed again.

#![expect(
    clippy::disallowed_types,
    reason = "counts are looked up; the order in which old ones are dropped does not matter"
)]

use std::collections::HashMap;
use std::hash::{Hash as Hashable, Hasher};
use std::sync::Arc;

use super::counted_text::PrefixSums;
use crate::Hash;

/// An entry is dropped after this many measured prompts that did not use it. More than one, because
/// layouts are compared by measuring several prompts of the same moment in turn.
pub(super) const MAX_UNUSED_MEASURES: u64 = 8;

/// The most entries of each sort. Far above the few thousand texts of a prompt; it bounds the
/// memory of callers that count and never measure.
const MAX_ENTRIES: usize = 1 << 16;

/// Key of a tool call or a declared tool, which is counted as one text made of parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedTextKey {
    pub(super) name: Arc<str>,
    pub(super) description: Option<Arc<str>>,
    pub(super) json: Hash,
}

// The JSON nearly always tells two apart; names and descriptions are compared, but not hashed each
// time.
impl Hashable for NamedTextKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.json.hash(state);
    }
}

/// The counts of a sequence of segments. It keeps alive the sums they were made from, because the
/// next sequence will share most of them.
#[derive(Clone)]
pub(super) struct SegmentCounts {
    pub(super) counts: Arc<[u32]>,
    pub(super) _keeps_alive: Arc<[Arc<PrefixSums>]>,
}

/// Entries with the time of their last use.
struct TimestampedMap<K, V>(HashMap<K, (u64, V)>);

impl<K: Hashable + Eq, V: Clone> TimestampedMap<K, V> {
    fn get(&mut self, key: &K, now: u64) -> Option<V> {
        let (used, value) = self.0.get_mut(key)?;
        *used = now;
        Some(value.clone())
    }

    fn put(&mut self, key: K, value: V, now: u64) {
        if self.0.len() >= MAX_ENTRIES {
            self.0.retain(|_, (used, _)| *used == now);
        }
        if self.0.len() >= MAX_ENTRIES {
            self.0.clear();
        }
        self.0.insert(key, (now, value));
    }

    fn drop_unused(&mut self, since: u64, held: impl Fn(&V) -> bool) {
        self.0.retain(|_, (used, value)| *used >= since || held(value));
    }
}

/// Everything that a [`TokenCounter`](crate::TokenCounter) remembers. Time is the number of
/// measured prompts.
pub(super) struct CountCache {
    now: u64,
    texts: TimestampedMap<Hash, Arc<PrefixSums>>,
    sequences: TimestampedMap<Hash, SegmentCounts>,
    named: TimestampedMap<NamedTextKey, Arc<[u32]>>,
}

impl Default for CountCache {
    fn default() -> Self {
        let (texts, sequences, named) = Default::default();
        CountCache {
            now: 0,
            texts: TimestampedMap(texts),
            sequences: TimestampedMap(sequences),
            named: TimestampedMap(named),
        }
    }
}

impl CountCache {
    pub(super) fn get_text(&mut self, hash: Hash) -> Option<Arc<PrefixSums>> {
        self.texts.get(&hash, self.now)
    }

    pub(super) fn insert_text(&mut self, hash: Hash, sums: Arc<PrefixSums>) {
        self.texts.put(hash, sums, self.now);
    }

    pub(super) fn get_segments(&mut self, hash: Hash) -> Option<Arc<[u32]>> {
        self.sequences.get(&hash, self.now).map(|sequence| sequence.counts)
    }

    pub(super) fn insert_segments(&mut self, hash: Hash, sequence: SegmentCounts) {
        self.sequences.put(hash, sequence, self.now);
    }

    pub(super) fn get_named(&mut self, key: &NamedTextKey) -> Option<Arc<[u32]>> {
        self.named.get(key, self.now)
    }

    pub(super) fn insert_named(&mut self, key: NamedTextKey, counts: Arc<[u32]>) {
        self.named.put(key, counts, self.now);
    }

    /// Advances the time by one measured prompt, and drops what none of the last few used.
    pub(super) fn start_next_measure(&mut self) {
        self.now += 1;
        let since = self.now.saturating_sub(MAX_UNUSED_MEASURES);
        self.sequences.drop_unused(since, |_| false);
        self.named.drop_unused(since, |_| false);
        self.texts.drop_unused(since, |sums| Arc::strong_count(sums) > 1);
    }

    pub(super) fn len(&self) -> usize {
        self.texts.0.len() + self.sequences.0.len() + self.named.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;
    use crate::tokens::vocabulary::Tokenizer;

    fn sums() -> Arc<PrefixSums> {
        Arc::new(PrefixSums::new("", &Tokenizer::new(Vocabulary::O200k)))
    }

    fn hash(number: usize) -> Hash {
        Hash::of(&number.to_le_bytes())
    }

    #[test]
    fn an_entry_lives_as_long_as_it_is_used() {
        let mut cache = CountCache::default();
        cache.insert_text(hash(0), sums());
        cache.insert_text(hash(1), sums());
        for _ in 0..2 * MAX_UNUSED_MEASURES {
            assert!(cache.get_text(hash(0)).is_some());
            cache.start_next_measure();
        }
        assert!(cache.get_text(hash(0)).is_some());
        assert!(cache.get_text(hash(1)).is_none());
    }

    #[test]
    fn a_text_lives_as_long_as_a_sequence_made_of_it() {
        let mut cache = CountCache::default();
        let text = sums();
        cache.insert_text(hash(0), text.clone());
        cache.insert_segments(
            hash(1),
            SegmentCounts { counts: Arc::new([0, 0]), _keeps_alive: Arc::new([text]) },
        );
        for _ in 0..2 * MAX_UNUSED_MEASURES {
            assert!(cache.get_segments(hash(1)).is_some());
            cache.start_next_measure();
        }
        assert_eq!(cache.len(), 2);
        for _ in 0..=MAX_UNUSED_MEASURES {
            cache.start_next_measure();
        }
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn it_is_bounded_even_if_nothing_is_ever_measured() {
        let mut cache = CountCache::default();
        let text = sums();
        for number in 0..MAX_ENTRIES + 10 {
            cache.insert_text(hash(number), text.clone());
        }
        assert!(cache.len() <= MAX_ENTRIES);
        assert!(cache.get_text(hash(MAX_ENTRIES + 9)).is_some());
    }
}

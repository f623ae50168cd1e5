//! What has been counted, for as long as it is likely to be asked for again.

use std::collections::HashMap;
use std::hash::{Hash as Hashable, Hasher};
use std::sync::Arc;

use super::counted::Sums;
use crate::Hash;

/// An entry is dropped when this many prompts were measured without it. A few, because layouts are compared by
/// measuring several prompts of the same moment in turn.
pub(super) const MEASURES_KEPT: u64 = 8;

/// Entries of one sort at most. Far above what one prompt can need (a prompt has some thousands of texts); it
/// bounds the memory of those who count and never measure.
const MOST_ENTRIES: usize = 1 << 16;

/// A tool call or a declared tool: what is counted as one text made of parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: Arc<str>,
    pub(super) description: Option<Arc<str>>,
    pub(super) json: Hash,
}

// The JSON nearly always tells two apart; names and descriptions are compared, but not hashed each time.
impl Hashable for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.json.hash(state);
    }
}

/// The counts of a sequence of segments, and the sums they were made of, so that these live as long: the next
/// sequence will share most of them.
#[derive(Clone)]
pub(super) struct Sequence {
    pub(super) counts: Arc<[u32]>,
    pub(super) _made_of: Arc<[Arc<Sums>]>,
}

/// Entries with the time of their last use. Only ever looked up by key.
struct Shelf<K, V>(HashMap<K, (u64, V)>);

impl<K: Hashable + Eq, V: Clone> Shelf<K, V> {
    fn get(&mut self, key: &K, now: u64) -> Option<V> {
        let (used, value) = self.0.get_mut(key)?;
        *used = now;
        Some(value.clone())
    }

    fn put(&mut self, key: K, value: V, now: u64) {
        if self.0.len() >= MOST_ENTRIES {
            self.0.retain(|_, (used, _)| *used == now);
        }
        if self.0.len() >= MOST_ENTRIES {
            self.0.clear();
        }
        self.0.insert(key, (now, value));
    }

    fn drop_unused(&mut self, since: u64, held: impl Fn(&V) -> bool) {
        self.0.retain(|_, (used, value)| *used >= since || held(value));
    }
}

/// All that a counter remembers. Its time is the number of prompts measured.
pub(super) struct Memory {
    now: u64,
    texts: Shelf<Hash, Arc<Sums>>,
    sequences: Shelf<Hash, Sequence>,
    named: Shelf<Named, Arc<[u32]>>,
}

impl Default for Memory {
    fn default() -> Self {
        let (texts, sequences, named) = Default::default();
        Memory { now: 0, texts: Shelf(texts), sequences: Shelf(sequences), named: Shelf(named) }
    }
}

impl Memory {
    pub(super) fn text(&mut self, hash: Hash) -> Option<Arc<Sums>> {
        self.texts.get(&hash, self.now)
    }

    pub(super) fn keep_text(&mut self, hash: Hash, sums: Arc<Sums>) {
        self.texts.put(hash, sums, self.now);
    }

    pub(super) fn sequence(&mut self, hash: Hash) -> Option<Arc<[u32]>> {
        self.sequences.get(&hash, self.now).map(|sequence| sequence.counts)
    }

    pub(super) fn keep_sequence(&mut self, hash: Hash, sequence: Sequence) {
        self.sequences.put(hash, sequence, self.now);
    }

    pub(super) fn named(&mut self, key: &Named) -> Option<Arc<[u32]>> {
        self.named.get(key, self.now)
    }

    pub(super) fn keep_named(&mut self, key: Named, counts: Arc<[u32]>) {
        self.named.put(key, counts, self.now);
    }

    /// A prompt has been measured: forget what none of the last few had.
    pub(super) fn age(&mut self) {
        self.now += 1;
        let since = self.now.saturating_sub(MEASURES_KEPT);
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

    fn sums() -> Arc<Sums> {
        Arc::new(Sums::of("", &Tokenizer::new(Vocabulary::O200k)))
    }

    fn hash(number: usize) -> Hash {
        Hash::of(&number.to_le_bytes())
    }

    #[test]
    fn an_entry_lives_as_long_as_it_is_used() {
        let mut memory = Memory::default();
        memory.keep_text(hash(0), sums());
        memory.keep_text(hash(1), sums());
        for _ in 0..2 * MEASURES_KEPT {
            assert!(memory.text(hash(0)).is_some());
            memory.age();
        }
        assert!(memory.text(hash(0)).is_some());
        assert!(memory.text(hash(1)).is_none());
    }

    #[test]
    fn a_text_lives_as_long_as_a_sequence_made_of_it() {
        let mut memory = Memory::default();
        let text = sums();
        memory.keep_text(hash(0), text.clone());
        memory.keep_sequence(hash(1), Sequence { counts: Arc::new([0, 0]), _made_of: Arc::new([text]) });
        for _ in 0..2 * MEASURES_KEPT {
            assert!(memory.sequence(hash(1)).is_some());
            memory.age();
        }
        assert_eq!(memory.len(), 2);
        for _ in 0..=MEASURES_KEPT {
            memory.age();
        }
        assert_eq!(memory.len(), 0);
    }

    #[test]
    fn it_is_bounded_even_if_nothing_is_ever_measured() {
        let mut memory = Memory::default();
        let text = sums();
        for number in 0..MOST_ENTRIES + 10 {
            memory.keep_text(hash(number), text.clone());
        }
        assert!(memory.len() <= MOST_ENTRIES);
        assert!(memory.text(hash(MOST_ENTRIES + 9)).is_some());
    }
}

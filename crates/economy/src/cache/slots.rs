//! llama.cpp's cache: the last prompt of each slot, and nothing else.

use hardpan_prompt::Hash;

use crate::cache::prefix_chain::PrefixChain;
use crate::cache::{CacheHit, CacheLookup, EntryState, LookupOutcome, Moment};

/// A prompt goes to the slot with the longest common prefix, if that is more than a tenth of the
/// new prompt: the default of `--slot-prompt-similarity`.
const SIMILARITY: usize = 10;

#[derive(Clone, Debug)]
struct Slot {
    keys: Vec<Hash>,
    used: Moment,
    available: Moment,
}

impl Slot {
    /// How many blocks at the start of both prompts are the same; 0 while the slot is still busy.
    fn shared_blocks(&self, chain: &PrefixChain, at: Moment) -> usize {
        if at < self.available {
            return 0;
        }
        self.keys.iter().zip(&chain.keys).take_while(|(ours, theirs)| ours == theirs).count()
    }
}

/// The slots of a server that have been used so far.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    slots: Vec<Slot>,
}

impl Slots {
    /// What a request finds in the slot it is given.
    pub fn look_up(&self, count: usize, chain: &PrefixChain, at: Moment) -> (CacheLookup, Option<CacheHit>) {
        let last = chain.keys.len().saturating_sub(1);
        let mut look = CacheLookup::without_walk(last, LookupOutcome::Missed { beyond: None });
        look.back_to = Some(0);
        let Some(slot) = self.choose(count, chain, at).and_then(|index| self.slots.get(index)) else {
            return (look, None);
        };
        let Some(block) = slot.shared_blocks(chain, at).checked_sub(1) else { return (look, None) };
        look.back_to = Some(block);
        look.outcome = LookupOutcome::Hit { block };
        look.found.push((block, EntryState::Readable));
        let age_ms = at.since(slot.used);
        (look, Some(CacheHit { block, tokens: chain.through[block], age_ms, idle_ms: age_ms, expires: None }))
    }

    /// Stores a prompt in the slot it is given.
    pub fn fill(&mut self, count: usize, chain: &PrefixChain, at: Moment, available: Moment) {
        let slot = Slot { keys: chain.keys.clone(), used: at, available };
        match self.choose(count, chain, at) {
            Some(index) => self.slots[index] = slot,
            None => self.slots.push(slot),
        }
    }

    /// The most similar slot; otherwise an unused one (`None`), otherwise the least recently used.
    fn choose(&self, count: usize, chain: &PrefixChain, at: Moment) -> Option<usize> {
        let common = |slot: &Slot| {
            slot.shared_blocks(chain, at).checked_sub(1).map_or(0, |block| chain.through[block])
        };
        let by_prefix = self.slots.iter().enumerate().map(|(index, slot)| (common(slot), index));
        let similar = by_prefix.filter(|(tokens, _)| tokens * SIMILARITY > chain.total());
        let oldest =
            || self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.used).map(|(index, _)| index);
        let unused = self.slots.len() < count;
        similar.max().map(|(_, index)| index).or_else(|| if unused { None } else { oldest() })
    }
}

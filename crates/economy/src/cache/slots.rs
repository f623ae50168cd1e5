//! llama.cpp's memory: the last prompt of each slot, and nothing else.

use hardpan_prompt::Hash;

use crate::cache::chain::Chain;
use crate::cache::{Hit, Look, Moment, Outcome, State};

/// A slot is taken for its prompt if the common prefix is more than a tenth of the new one: the default of
/// `--slot-prompt-similarity`.
const SIMILARITY: usize = 10;

#[derive(Clone, Debug)]
struct Slot {
    keys: Vec<Hash>,
    used: Moment,
    available: Moment,
}

impl Slot {
    /// How many blocks its prompt and this one begin with in common; none while it is still busy.
    fn common(&self, chain: &Chain, at: Moment) -> usize {
        if at < self.available {
            return 0;
        }
        self.keys.iter().zip(&chain.keys).take_while(|(ours, theirs)| ours == theirs).count()
    }
}

/// The slots of a server that have been used.
#[derive(Clone, Debug, Default)]
pub struct Slots {
    slots: Vec<Slot>,
}

impl Slots {
    /// What a request finds in the slot it gets.
    pub fn look(&self, count: usize, chain: &Chain, at: Moment) -> (Look, Option<Hit>) {
        let last = chain.keys.len().saturating_sub(1);
        let mut look = Look::without_walk(last, Outcome::Missed { beyond: None });
        look.back_to = Some(0);
        let Some(slot) = self.choose(count, chain, at).and_then(|index| self.slots.get(index)) else {
            return (look, None);
        };
        let Some(block) = slot.common(chain, at).checked_sub(1) else { return (look, None) };
        look.back_to = Some(block);
        look.outcome = Outcome::Hit { block };
        look.found.push((block, State::Readable));
        let age_ms = at.since(slot.used);
        (look, Some(Hit { block, tokens: chain.through[block], age_ms, idle_ms: age_ms, expires: None }))
    }

    /// Puts a prompt into the slot it gets.
    pub fn fill(&mut self, count: usize, chain: &Chain, at: Moment, available: Moment) {
        let slot = Slot { keys: chain.keys.clone(), used: at, available };
        match self.choose(count, chain, at) {
            Some(index) => self.slots[index] = slot,
            None => self.slots.push(slot),
        }
    }

    /// The most similar slot, else an unused one (`None`), else the least recently used.
    fn choose(&self, count: usize, chain: &Chain, at: Moment) -> Option<usize> {
        let common =
            |slot: &Slot| slot.common(chain, at).checked_sub(1).map_or(0, |block| chain.through[block]);
        let by_prefix = self.slots.iter().enumerate().map(|(index, slot)| (common(slot), index));
        let similar = by_prefix.filter(|(tokens, _)| tokens * SIMILARITY > chain.total());
        let oldest =
            || self.slots.iter().enumerate().min_by_key(|(_, slot)| slot.used).map(|(index, _)| index);
        let unused = self.slots.len() < count;
        similar.max().map(|(_, index)| index).or_else(|| if unused { None } else { oldest() })
    }
}

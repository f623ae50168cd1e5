//! What a provider will read from its cache, write to it and bill.
//!
//! A [`Request`] is the plain description of one request: its blocks by identity, size and marker, the settings that the
//! cache looks at ([`Salts`]), and when it was sent. A [`CacheModel`] is the cache of one organisation at one provider.
//! [`Rules`] tell how that provider caches for the request's model; they are read off the catalogue.
//!
//! Two steps, because an entry is readable only once the answer of the request that wrote it has begun:
//! [`plan`](CacheModel::plan) looks and changes nothing; [`commit`](CacheModel::commit) writes and refreshes. Between
//! the two other requests may come and go.
//!
//! The rules are those of the providers' documentation (Anthropic: "Prompt caching"; OpenAI: "Prompt caching"; Groq,
//! DeepSeek and xAI likewise; vLLM: "Automatic Prefix Caching"; llama.cpp: the server's README), as of August 2026.
//! Where no document decides, [`Rules`] has a setting.

mod billing; // Billing, Hit, Look: what is billed, and why
mod chain; // Chain: the key of every prefix of a request
mod entries; // Entries: what is cached, and until when
mod request; // Request, CacheBlock, Salts, Moment: what the cache sees of a request
mod rules; // Rules: how a provider caches
mod slots; // Slots: llama.cpp's memory of the last prompts
#[cfg(test)]
mod tests;

use hardpan_models::CacheKind;

pub use billing::{Billing, Hit, Look, Outcome, State};
pub use request::{BlockKind, CacheBlock, Moment, Request, Salts, Section};
pub(crate) use request::{identities, tool_identity};
pub use rules::{Counted, Implicit, Invalidation, Rules};

use crate::Amounts;
use chain::Chain;
use entries::Entries;
use rules::{Mark, Marked};
use slots::Slots;

/// The cache of one organisation at one provider, for all its models: a model's entries are its own.
///
/// Times must not run backwards by much: a plan sees what was readable when its request began, as long as entries have
/// not been rewritten since.
#[derive(Clone, Debug, Default)]
pub struct CacheModel {
    entries: Entries,
    slots: Slots,
}

impl CacheModel {
    /// A cache that holds nothing.
    pub fn new() -> Self {
        CacheModel::default()
    }

    /// What would be billed for `request`, and why. Changes nothing.
    pub fn plan(&self, rules: &Rules, request: &Request) -> Billing {
        self.look(rules, request, &Chain::of(rules, request))
    }

    /// Writes what `request` writes and refreshes what it reads. To be called when the answer begins, at `answered`;
    /// a request that is never answered is never committed.
    pub fn commit(&mut self, rules: &Rules, request: &Request, answered: Moment) {
        let chain = Chain::of(rules, request);
        let answered = answered.max(request.at);
        if let Some(count) = rules.slots() {
            return self.slots.fill(count, &chain, request.at, answered);
        }
        if let Some(end) = self.look(rules, request, &chain).refreshed_through() {
            // A read keeps its entry warm, and all shorter ones on the way to it.
            chain.keys[..=end].iter().for_each(|key| self.entries.refresh(*key, request.at));
        }
        for (block, lifetime) in writes(rules, request, &chain) {
            self.entries.write(chain.keys[block], request.at, answered, lifetime);
        }
        self.entries.tidy(request.at);
    }

    /// Plans and commits at once: for requests that come one after the other.
    pub fn send(&mut self, rules: &Rules, request: &Request, answered: Moment) -> Billing {
        let billing = self.plan(rules, request);
        self.commit(rules, request, answered);
        billing
    }

    /// How many entries are remembered, those that expired within the last day included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn look(&self, rules: &Rules, request: &Request, chain: &Chain) -> Billing {
        match (rules.cache.kind, rules.slots(), request.blocks.len().checked_sub(1)) {
            (CacheKind::None, _, _) | (_, _, None) => Billing::plain(chain.total()),
            (CacheKind::Markers, _, _) => self.look_from_markers(rules, request, chain),
            (CacheKind::Automatic, None, Some(last)) => {
                by_prefix(rules, chain, self.walk(rules, chain, last, request.at))
            }
            (CacheKind::Automatic, Some(count), Some(_)) => {
                by_prefix(rules, chain, self.slots.look(count, chain, request.at))
            }
        }
    }

    /// From each marker, the last first, back to the first readable entry.
    fn look_from_markers(&self, rules: &Rules, request: &Request, chain: &Chain) -> Billing {
        let mut billing = Billing::plain(chain.total());
        let marked = rules.marked(request, chain);
        for mark in marked.iter().rev() {
            let (look, hit) = match mark {
                Marked::Usable(mark) => self.walk(rules, chain, mark.block, request.at),
                Marked::Not(block, outcome) => (Look::without_walk(*block, *outcome), None),
            };
            billing.looks.push(look);
            if hit.is_some() {
                billing.hit = hit;
                break;
            }
        }
        let read = billing.hit.map_or(0, |hit| hit.tokens);
        let written = rules.written(&marked);
        let hour = written.iter().filter(|mark| rules.is_long(mark.lifetime)).map(|mark| mark.tokens);
        // The documented A, B and C: the highest hit, the highest 1h marker after it, the last marker.
        let hour = hour.max().unwrap_or(0).max(read);
        let end = written.last().map_or(0, |mark| mark.tokens).max(read);
        billing.amounts =
            Amounts { input: chain.total() - end, read, write: end - hour, write_1h: hour - read };
        billing
    }

    /// Walks back from a marked block, the block itself being the first position.
    fn walk(&self, rules: &Rules, chain: &Chain, marker: usize, at: Moment) -> (Look, Option<Hit>) {
        let reach = rules.cache.look_back.map_or(usize::MAX, |positions| positions.max(1) as usize);
        let mut look = Look::without_walk(marker, Outcome::Missed { beyond: None });
        for block in (0..=marker).rev() {
            let entry = self.entries.get(&chain.keys[block]);
            let state = entry.map(|entry| entry.state(at));
            if chain.positions[marker] - chain.positions[block] >= reach {
                if state == Some(State::Readable) {
                    look.outcome = Outcome::Missed { beyond: Some(block) };
                    break;
                }
                continue; // for the diagnosis only: the provider does not look this far
            }
            look.back_to = Some(block);
            look.found.extend(state.map(|state| (block, state)));
            if let (Some(entry), Some(State::Readable)) = (entry, state) {
                look.outcome = Outcome::Hit { block };
                return (look, Some(entry.hit(block, chain.through[block], at)));
            }
        }
        (look, None)
    }
}

/// Bills a cache that keeps every prompt in whole steps of tokens, given how far a known prefix goes.
fn by_prefix(rules: &Rules, chain: &Chain, (mut look, mut hit): (Look, Option<Hit>)) -> Billing {
    let total = chain.total();
    // The last token is always computed afresh, so that there is something to answer from.
    let end = rules.whole_steps(total.saturating_sub(1));
    let read = hit.map_or(0, |hit| rules.whole_steps(hit.tokens.min(total.saturating_sub(1))));
    if read == 0
        && let Some(Hit { tokens, .. }) = hit.take()
    {
        look.outcome = Outcome::BelowMinimum { tokens, minimum: rules.minimum() };
    }
    if let Some(hit) = &mut hit {
        hit.tokens = read;
    }
    let amounts = Amounts { input: total - end, read, write: end - read, write_1h: 0 };
    Billing { amounts, hit, looks: vec![look] }
}

/// Where a request ends entries, and how long these live, in milliseconds.
fn writes(rules: &Rules, request: &Request, chain: &Chain) -> Vec<(usize, Option<i64>)> {
    match rules.cache.kind {
        CacheKind::None => Vec::new(),
        CacheKind::Markers => {
            let marked = rules.marked(request, chain);
            let ends = rules.written(&marked).into_iter();
            ends.map(|Mark { block, lifetime, .. }| (block, rules.lifetime_ms(lifetime))).collect()
        }
        // Known at block boundaries only: a text that changed in its middle counts as changed from its beginning.
        // Who knows more hands in smaller blocks.
        CacheKind::Automatic => {
            let lifetime = rules.cache.lifetime.map(|seconds| i64::from(seconds) * 1000);
            (0..request.blocks.len()).map(|block| (block, lifetime)).collect()
        }
    }
}

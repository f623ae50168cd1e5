//! A model of a provider's prompt cache: what a request reads, what it writes and what is billed.
//!
//! The principal type is [`CacheModel`], the cache of one organisation at one provider. It takes
//! [`CacheRequest`]s, plain descriptions of requests: their blocks by identity, size and marker,
//! the [`CacheSettings`] that caching depends on, and when they were sent. [`CacheRules`], derived
//! from the catalogue, tell how the provider caches for the request's model.
//!
//! There are two steps, because an entry becomes readable only when the answer to the request that
//! wrote it begins: [`plan`](CacheModel::plan) looks and changes nothing,
//! [`commit`](CacheModel::commit) writes and refreshes. Other requests may come and go between the
//! two.
//!
//! The rules follow the providers' documentation (Anthropic: "Prompt caching"; OpenAI: "Prompt
//! caching"; Groq, DeepSeek and xAI likewise; vLLM: "Automatic Prefix Caching"; llama.cpp: the
//! server's README) as of August 2026. Where no document decides, [`CacheRules`] has a setting.

mod billing; // Billing, CacheHit, CacheLookup: what is billed, and why
mod entries; // CacheEntries: what is cached, and until when
mod prefix_chain; // PrefixChain: the cache key of every prefix of a request
mod request; // CacheRequest, CacheBlock, CacheSettings, Moment: what the cache sees
mod rules; // CacheRules: how a provider caches
mod slots; // Slots: llama.cpp's memory of the last prompts
#[cfg(test)]
mod tests;

use hardpan_models::CacheKind;

pub use billing::{Billing, CacheHit, CacheLookup, EntryState, LookupOutcome};
pub use request::{BlockKind, CacheBlock, CacheRequest, CacheSettings, Moment, Section};
pub(crate) use request::{block_identities, tool_identity};
pub use rules::{CacheRules, ImplicitMarker, Invalidation, PositionCounting};

use crate::quote::split_prompt;
use entries::CacheEntries;
use prefix_chain::PrefixChain;
use rules::{MarkerStatus, UsableMarker};
use slots::Slots;

/// The cache of one organisation at one provider. It covers all models; each model has its own
/// entries.
///
/// Times must not run backwards by much: a plan sees what was readable when its request began, as
/// long as entries have not been rewritten since.
#[derive(Clone, Debug, Default)]
pub struct CacheModel {
    entries: CacheEntries,
    slots: Slots,
}

impl CacheModel {
    /// Makes an empty cache.
    pub fn new() -> Self {
        CacheModel::default()
    }

    /// Tells what would be billed for `request`, and why. Changes nothing.
    pub fn plan(&self, rules: &CacheRules, request: &CacheRequest) -> Billing {
        self.look_up(rules, request, &PrefixChain::new(rules, request))
    }

    /// Writes and refreshes entries for `request`. Call it when the answer begins, at `answered`; a
    /// request that is never answered is never committed.
    pub fn commit(&mut self, rules: &CacheRules, request: &CacheRequest, answered: Moment) {
        let chain = PrefixChain::new(rules, request);
        let answered = answered.max(request.at);
        if let Some(count) = rules.slots() {
            return self.slots.fill(count, &chain, request.at, answered);
        }
        if let Some(end) = self.look_up(rules, request, &chain).refreshed_through() {
            // A read keeps its entry warm, and all shorter ones on the way to it.
            chain.keys[..=end].iter().for_each(|key| self.entries.refresh(*key, request.at));
        }
        for (block, lifetime) in entries_to_write(rules, request, &chain) {
            self.entries.write(chain.keys[block], request.at, answered, lifetime);
        }
        self.entries.tidy(request.at);
    }

    /// Plans and commits at once, for requests that follow one another.
    pub fn send(&mut self, rules: &CacheRules, request: &CacheRequest, answered: Moment) -> Billing {
        let billing = self.plan(rules, request);
        self.commit(rules, request, answered);
        billing
    }

    /// Number of remembered entries, including those that expired within the last day.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no entry is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn look_up(&self, rules: &CacheRules, request: &CacheRequest, chain: &PrefixChain) -> Billing {
        match (rules.cache.kind, rules.slots(), request.blocks.len().checked_sub(1)) {
            (CacheKind::None, _, _) | (_, _, None) => Billing::uncached(chain.total()),
            (CacheKind::Markers, _, _) => self.look_up_from_markers(rules, request, chain),
            (CacheKind::Automatic, None, Some(last)) => {
                bill_prefix(rules, chain, self.walk_back(rules, chain, last, request.at))
            }
            (CacheKind::Automatic, Some(count), Some(_)) => {
                bill_prefix(rules, chain, self.slots.look_up(count, chain, request.at))
            }
        }
    }

    /// Walks back from each marker, the last one first, until a readable entry is found.
    fn look_up_from_markers(
        &self,
        rules: &CacheRules,
        request: &CacheRequest,
        chain: &PrefixChain,
    ) -> Billing {
        let mut billing = Billing::uncached(chain.total());
        let marked = rules.classify_markers(request, chain);
        for mark in marked.iter().rev() {
            let (look, hit) = match mark {
                MarkerStatus::Usable(mark) => self.walk_back(rules, chain, mark.block, request.at),
                MarkerStatus::Not(block, outcome) => (CacheLookup::without_walk(*block, *outcome), None),
            };
            billing.lookups.push(look);
            if hit.is_some() {
                billing.hit = hit;
                break;
            }
        }
        let read = billing.hit.map_or(0, |hit| hit.tokens);
        let written = rules.written_markers(&marked);
        let hour = written.iter().filter(|mark| rules.is_long(mark.lifetime)).map(|mark| mark.tokens);
        // The documented A, B and C: the highest hit, the highest 1h marker after it, the last
        // marker.
        let hour = hour.max().unwrap_or(0).max(read);
        let end = written.last().map_or(0, |mark| mark.tokens).max(read);
        billing.amounts = split_prompt(chain.total(), read, hour, end);
        billing
    }

    /// Walks back from a marked block; the block itself is the first position.
    fn walk_back(
        &self,
        rules: &CacheRules,
        chain: &PrefixChain,
        marker: usize,
        at: Moment,
    ) -> (CacheLookup, Option<CacheHit>) {
        let reach = rules.cache.look_back.map_or(usize::MAX, |positions| positions.max(1) as usize);
        let mut look = CacheLookup::without_walk(marker, LookupOutcome::Missed { beyond: None });
        for block in (0..=marker).rev() {
            let entry = self.entries.get(&chain.keys[block]);
            let state = entry.map(|entry| entry.state(at));
            if chain.positions[marker] - chain.positions[block] >= reach {
                if state == Some(EntryState::Readable) {
                    look.outcome = LookupOutcome::Missed { beyond: Some(block) };
                    break;
                }
                continue; // for the diagnosis only: the provider does not look this far
            }
            look.back_to = Some(block);
            look.found.extend(state.map(|state| (block, state)));
            if let (Some(entry), Some(EntryState::Readable)) = (entry, state) {
                look.outcome = LookupOutcome::Hit { block };
                return (look, Some(entry.hit(block, chain.through[block], at)));
            }
        }
        (look, None)
    }
}

/// Bills for a cache that keeps every prompt in whole steps of tokens, given how far a known prefix
/// goes.
fn bill_prefix(
    rules: &CacheRules,
    chain: &PrefixChain,
    (mut look, mut hit): (CacheLookup, Option<CacheHit>),
) -> Billing {
    let total = chain.total();
    // The last token is always computed afresh, so that there is something to answer from.
    let end = rules.cache.prefix_in_steps(total.saturating_sub(1));
    let read = hit.map_or(0, |hit| rules.cache.prefix_in_steps(hit.tokens.min(total.saturating_sub(1))));
    if read == 0
        && let Some(CacheHit { tokens, .. }) = hit.take()
    {
        look.outcome = LookupOutcome::BelowMinimum { tokens, minimum: rules.minimum() };
    }
    if let Some(hit) = &mut hit {
        hit.tokens = read;
    }
    Billing { amounts: split_prompt(total, read, read, end), hit, lookups: vec![look] }
}

/// The blocks at which the request ends cache entries, with the entries' lifetimes in milliseconds.
fn entries_to_write(
    rules: &CacheRules,
    request: &CacheRequest,
    chain: &PrefixChain,
) -> Vec<(usize, Option<i64>)> {
    match rules.cache.kind {
        CacheKind::None => Vec::new(),
        CacheKind::Markers => {
            let marked = rules.classify_markers(request, chain);
            let ends = rules.written_markers(&marked).into_iter();
            ends.map(|UsableMarker { block, lifetime, .. }| (block, rules.lifetime_ms(lifetime))).collect()
        }
        // Known at block boundaries only: a text that changed in its middle counts as changed from
        // its beginning. Who knows more hands in smaller blocks.
        CacheKind::Automatic => {
            let lifetime = rules.cache.lifetime.map(|seconds| i64::from(seconds) * 1000);
            (0..request.blocks.len()).map(|block| (block, lifetime)).collect()
        }
    }
}

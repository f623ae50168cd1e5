//! [`PreviousRequest`]: what the last request left in the cache, as far as the conversation can
//! tell.

use hardpan_models::CacheKind;
use hardpan_prompt::{CacheLifetime, TokenUsage};
use serde::{Deserialize, Serialize};

use crate::cache::{CacheRules, Moment};
use crate::ledger::{CompletedRequest, short_names};
use crate::verdict::trace::{SharedLengths, Trace};

/// The least uncertainty about our count of a part of a prompt, as a share of it. On whole prompts
/// the learned factor misses by a tenth of a percent (see
/// [`TokenFactor`](hardpan_prompt::TokenFactor)), but code, prose and numbers each have a factor of
/// their own, and these differ by several percent.
const MIN_DOUBT: f64 = 0.05;
/// The greatest uncertainty; beyond it no verdict would be possible.
const MAX_DOUBT: f64 = 0.5;

/// A number of the provider's tokens, with a margin of error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TokenEstimate {
    pub tokens: u64,
    /// How far the estimate may be off, in either direction.
    #[serde(rename = "off")]
    pub margin: u64,
}

/// A cache entry: the index of the block it ends with, and its lifetime in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry(pub usize, pub Option<i64>);

/// The prefix that the next request can expect to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CachedPrefix {
    /// Index of its last block.
    pub block: usize,
    #[serde(rename = "about")]
    pub estimate: TokenEstimate,
}

/// The last request of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreviousRequest {
    pub trace: Trace,
    #[serde(with = "short_names")]
    pub billed: TokenUsage,
    /// The entries that the next request may read, in order. For an automatic cache only the last
    /// one is listed.
    pub entries: Vec<Entry>,
    /// What the request left in the cache. `None`: nothing that was meant to stay.
    #[serde(rename = "promise")]
    pub cached_prefix: Option<CachedPrefix>,
    /// Tokens of the prefix that a breakpoint was set on, if the provider found it too small to
    /// keep.
    pub too_small: Option<u64>,
    /// When its answer began, in milliseconds since 1970; its entries could not be read before.
    pub began: i64,
    /// When the entries were last used, in milliseconds since 1970; lifetimes count from here.
    pub used: i64,
}

impl PreviousRequest {
    pub fn from_request(
        request: &CompletedRequest<'_>,
        trace: Trace,
        before: Option<&PreviousRequest>,
    ) -> Self {
        let rules = request.rules();
        let billed = request.billed();
        let mut past = PreviousRequest {
            entries: readable_entries(&rules, &trace, before, request.sent_at),
            trace,
            billed,
            cached_prefix: None,
            too_small: None,
            began: request.answer_began_at.0,
            used: request.sent_at.0,
        };
        past.cached_prefix = past.find_cached_prefix(&rules);
        let asked = past.entries.last().filter(|_| rules.cache.kind == CacheKind::Markers);
        let marked = asked.map(|entry| past.estimate_part(past.trace.tokens_through(entry.0)));
        // Breakpoints stand only where we counted enough; the provider may have counted less.
        let small = |estimate: &TokenEstimate| {
            estimate.tokens.saturating_sub(estimate.margin) < rules.minimum() as u64
        };
        past.too_small = marked
            .filter(|estimate| request.reports_cache && past.billed.cached() == 0 && small(estimate))
            .map(|estimate| estimate.tokens);
        past.cached_prefix = past.cached_prefix.filter(|_| past.too_small.is_none() && request.reports_cache);
        past
    }

    /// Whether the indexes fit together. Deserialized data may be damaged.
    pub fn is_sound(&self) -> bool {
        let is_block = |block: usize| block < self.trace.len();
        self.trace.is_sound()
            && self.entries.iter().all(|entry| is_block(entry.0))
            && self.cached_prefix.is_none_or(|cached_prefix| is_block(cached_prefix.block))
    }

    /// A copy without the beginnings of the long lists.
    pub fn without_first(&self, lengths: &SharedLengths) -> Self {
        PreviousRequest { trace: self.trace.without_first(lengths), entries: self.entries.clone(), ..*self }
    }

    /// Converts our count of a part of this prompt into the provider's tokens. The total is known
    /// exactly; only how it divides is uncertain, so the error of the part equals the error of the
    /// rest.
    pub fn estimate_part(&self, counted: u64) -> TokenEstimate {
        estimate_part(&self.billed, &self.trace, counted)
    }

    fn find_cached_prefix(&self, rules: &CacheRules) -> Option<CachedPrefix> {
        let step = u64::from(rules.cache.step.max(1));
        let Entry(block, _) = *self.entries.last()?;
        let estimate = self.estimate_part(self.trace.tokens_through(block));
        if rules.cache.kind == CacheKind::Automatic {
            let tokens = estimate.tokens.min(self.billed.prompt().saturating_sub(1)) / step * step;
            let estimate = TokenEstimate { tokens, margin: estimate.margin + step };
            return Some(CachedPrefix { block, estimate }).filter(|_| tokens >= rules.minimum() as u64);
        }
        // Up to the last marker the provider has counted for us. Some report no writes: then our
        // own count must do.
        let is_last = self.trace.markers(rules).last().is_some_and(|(last, _)| *last == block);
        let reported = self.billed.cached();
        let says_writes = self.billed.cache_written() > 0 || estimate.tokens <= reported + estimate.margin;
        let exact = is_last && reported > 0 && says_writes;
        let estimate = if exact { TokenEstimate { tokens: reported, margin: step } } else { estimate };
        Some(CachedPrefix { block, estimate })
    }

    /// Index of the last entry that was still alive at a moment.
    pub fn last_live_entry(&self, at: Moment) -> Option<usize> {
        let lives = |entry: &&Entry| entry.1.is_none_or(|lifetime| at.since(Moment(self.used)) < lifetime);
        self.entries.iter().rfind(lives).map(|entry| entry.0)
    }

    /// When the cached prefix expires. `None`: nothing is cached, or the lifetime is not
    /// documented.
    pub fn expires_at(&self) -> Option<Moment> {
        self.entries.last()?.1.map(|lifetime| Moment(self.used).plus(lifetime))
    }

    /// The most that can be read of this prompt at a moment, if everything from block `from` on is
    /// lost.
    pub fn readable_before(&self, rules: &CacheRules, from: usize, at: Moment) -> TokenEstimate {
        let alive = self.last_live_entry(at);
        let end = match rules.cache.kind {
            CacheKind::None => None,
            CacheKind::Automatic => alive.and_then(|alive| from.checked_sub(1).map(|last| last.min(alive))),
            CacheKind::Markers => {
                let lives = |block: usize| alive.is_some_and(|alive| block <= alive);
                let before = self.entries.iter().filter(|entry| entry.0 < from && lives(entry.0));
                before.map(|entry| entry.0).max()
            }
        };
        let Some(end) = end else { return TokenEstimate::default() };
        let estimate = match self.cached_prefix {
            Some(cached_prefix) if cached_prefix.block == end => cached_prefix.estimate,
            _ => self.estimate_part(self.trace.tokens_through(end)),
        };
        let step = u64::from(rules.cache.step.max(1));
        let tokens = Some(estimate.tokens / step * step).filter(|tokens| *tokens >= rules.minimum() as u64);
        TokenEstimate { tokens: tokens.unwrap_or(0), margin: estimate.margin + step }
    }
}

/// Converts our count of a part of a prompt into the provider's tokens, given the bill for the
/// whole.
pub(super) fn estimate_part(billed: &TokenUsage, trace: &Trace, counted: u64) -> TokenEstimate {
    let (total, whole) = (billed.prompt(), trace.total());
    let counted = counted.min(whole);
    if counted == whole {
        return TokenEstimate { tokens: total, margin: 0 };
    }
    let ratio = total as f64 / whole.max(1) as f64;
    let doubt = (ratio - 1.0).abs().clamp(MIN_DOUBT, MAX_DOUBT);
    let less = counted.min(whole - counted) as f64;
    TokenEstimate {
        tokens: (counted as f64 * ratio).round() as u64,
        margin: (less * ratio * doubt).ceil() as u64,
    }
}

/// The entries that may be read next time: they end at markers or, without markers, wherever a
/// request ends. Transient content (TAIL, the active tier) is not expected to stay.
fn readable_entries(
    rules: &CacheRules,
    trace: &Trace,
    before: Option<&PreviousRequest>,
    at: Moment,
) -> Vec<Entry> {
    let usual = |lifetime: Option<u32>| lifetime.map(|seconds| i64::from(seconds) * 1000);
    match rules.cache.kind {
        CacheKind::None => Vec::new(),
        CacheKind::Automatic => {
            let last = (0..trace.len()).rev().find(|block| !trace.is_transient(*block));
            last.map(|block| Entry(block, usual(rules.cache.lifetime))).into_iter().collect()
        }
        CacheKind::Markers => {
            let markers = trace.markers(rules).into_iter().filter(|(block, _)| !trace.is_transient(*block));
            markers
                .map(|(block, asked)| {
                    let long = rules.cache.long_lifetime.filter(|_| asked == CacheLifetime::OneHour);
                    let lifetime = usual(long.or(rules.cache.lifetime));
                    Entry(
                        block,
                        before.and_then(|before| kept_lifetime(before, trace, block, at)).unwrap_or(lifetime),
                    )
                })
                .collect()
        }
    }
}

/// An entry that is read keeps the lifetime it was written with, whatever the marker asks for now.
fn kept_lifetime(before: &PreviousRequest, trace: &Trace, block: usize, at: Moment) -> Option<Option<i64>> {
    let same = before.trace.model == trace.model && before.trace.provider == trace.provider;
    let unchanged = before.trace.first_difference(trace).is_none_or(|first| block < first);
    let entry = before.entries.iter().find(|entry| entry.0 == block)?;
    (same && unchanged && before.last_live_entry(at) >= Some(block)).then_some(entry.1)
}

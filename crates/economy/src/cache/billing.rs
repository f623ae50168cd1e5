//! [`Billing`]: what is billed for a request, and why.

use hardpan_prompt::TokenUsage;
use serde::Serialize;

use crate::cache::Moment;
use crate::ledger::short_names;
use crate::quote::split_prompt;

/// What is billed for a request, and how that came about. [`Rates::input_dollars`](crate::Rates::input_dollars)
/// prices it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Billing {
    /// The request's tokens by how they are billed; together they are all its tokens.
    ///
    /// An automatic cache "writes" at the price of input, as does [`quote`](crate::quote()).
    #[serde(with = "short_names")]
    pub amounts: TokenUsage,
    /// The entry that was read. `None`: nothing was read.
    pub hit: Option<CacheHit>,
    /// The walks through the cache, in order: from the last marker on, until one hits. An automatic
    /// cache makes a single walk, from the last block.
    #[serde(rename = "looks")]
    pub lookups: Vec<CacheLookup>,
}

impl Billing {
    pub(super) fn uncached(total: usize) -> Self {
        Billing { amounts: split_prompt(total, 0, 0, 0), hit: None, lookups: Vec::new() }
    }

    /// All tokens of the request, however they are billed.
    pub fn total(&self) -> u64 {
        self.amounts.prompt()
    }

    /// The last block whose entry the request refreshes: that of the readable entry it found, whether
    /// or not enough of it was left to read. A request that finds its whole prompt computes the last
    /// token afresh; where that leaves less than the minimum it reads nothing, and computes and keeps
    /// the same prefix again.
    pub(super) fn refreshed_through(&self) -> Option<usize> {
        let mut found = self.lookups.iter().flat_map(|lookup| &lookup.found);
        found.find(|(_, state)| *state == EntryState::Readable).map(|(block, _)| *block)
    }
}

/// The cache entry that a request reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheHit {
    /// Index of the last block that the entry covers.
    pub block: usize,
    /// Tokens read. Fewer than up to the block's end where a cache keeps whole steps.
    pub tokens: usize,
    /// How long ago the request that wrote it began, in milliseconds.
    pub age_ms: i64,
    /// How long ago the last request that wrote or read it began, in milliseconds.
    pub idle_ms: i64,
    /// When the entry would have expired without this request. `None`: not documented.
    pub expires: Option<Moment>,
}

/// One walk back through the cache, from a marked block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheLookup {
    /// Index of the marked block.
    pub marker: usize,
    /// The furthest block that was checked. `None`: none was.
    pub back_to: Option<usize>,
    /// How the walk ended.
    pub outcome: LookupOutcome,
    /// The checked blocks where an entry ends, or ended within the last day, the last block first.
    /// At the other checked blocks no entry was ever written.
    pub found: Vec<(usize, EntryState)>,
}

impl CacheLookup {
    pub(super) fn without_walk(marker: usize, outcome: LookupOutcome) -> Self {
        CacheLookup { marker, back_to: None, outcome, found: Vec::new() }
    }
}

/// How a walk through the cache ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LookupOutcome {
    /// The walk found an entry and read it.
    Hit {
        /// Index of the last block that the entry covers.
        block: usize,
    },
    /// The walk found nothing to read.
    Missed {
        /// The last readable entry that was out of reach, further back than the provider looks.
        beyond: Option<usize>,
    },
    /// The prefix is smaller than the provider keeps: nothing is read or written, and no error is
    /// raised.
    BelowMinimum {
        /// Size of the prefix, in tokens.
        tokens: usize,
        /// The smallest prefix that the provider keeps, in tokens.
        minimum: usize,
    },
    /// The block cannot carry a marker: blank text, or reasoning.
    Unmarkable,
}

/// The state in which a request finds an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// The entry can be read.
    Readable,
    /// The entry expired at this moment.
    Expired(Moment),
    /// The answer to the request that wrote the entry had not begun yet; it did at this moment.
    NotYet(Moment),
}

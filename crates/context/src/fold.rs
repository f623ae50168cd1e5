//! [`Fold`]: that a request rebuilt the cached part of its prompt, and why.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a request folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldReason {
    /// Someone asked for it.
    Requested,
    /// The cache is lost anyway, so that a fold costs nothing.
    CacheLost,
    /// What was cached for the short lifetime is lost, so that a fold after what lives on costs nothing.
    ShortCacheLost,
    /// The window is full, and a fold makes room.
    WindowFull,
    /// The rent paid for garbage, and the rent expected, have reached what a fold costs.
    RentPaid,
}

impl FoldReason {
    /// Whether the cache is lost, all or in part: then a fold may be free, and is not asked for.
    pub fn is_loss(self) -> bool {
        matches!(self, FoldReason::CacheLost | FoldReason::ShortCacheLost)
    }

    /// A stable name, for logs.
    pub fn as_str(self) -> &'static str {
        match self {
            FoldReason::Requested => "requested",
            FoldReason::CacheLost => "cache_lost",
            FoldReason::ShortCacheLost => "short_cache_lost",
            FoldReason::WindowFull => "window_full",
            FoldReason::RentPaid => "rent_paid",
        }
    }
}

impl fmt::Display for FoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A fold: the request lays the cached part of its prompt anew from what is true now. The figures
/// are those of the request before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fold {
    /// Why the request folds.
    pub reason: FoldReason,
    /// Blocks before its place, tools counted. They stay as they are, unless the cache is lost.
    pub position: usize,
    /// Tokens that a fold can rewrite: everything after the system prompt.
    pub tokens: usize,
    /// How many of these tokens it drops.
    pub garbage: usize,
    /// What the rewriting costs, in units of the price of one input token.
    pub price: f64,
    /// What the garbage has cost since the last fold, in the same units.
    pub rent: f64,
}

/// Where the next fold would begin, as of the last request, and what it would bring. Costs are in units
/// of the price of one input token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FoldOutlook {
    /// Tokens before the place: they stay as they are.
    pub kept_tokens: usize,
    /// Garbage after the place, in tokens: what the fold would drop.
    pub garbage_tokens: usize,
    /// What the fold would cost now; less than nothing if it pays at once.
    pub price: f64,
    /// The rent paid so far for this garbage, which has to reach most of the price.
    pub rent: f64,
    /// What each request saves after the fold.
    pub saving: f64,
}

//! [`StabilityTracker`]: how long each entry has been unchanged, and the tier it has earned.
//!
//! The tracker is part of the [`LayoutState`](crate::LayoutState). Before a request,
//! [`StabilityTracker::assign_tiers`] puts its tiers onto the snapshot. When the answer is complete,
//! [`collect_shown_entries`] reads from the request what was shown, and
//! [`StabilityTracker::record_response`] counts unchanged entries, moves them between tiers, and
//! says why.
//! The rules are described in `docs/layouts.md` and implemented in [`Rebalance`].

mod initial_tiers; // the tiers of the symbol map before the first request
mod rebalance; // the rules of moving between tiers
mod shown_entries; // which entries a request showed, and putting tiers onto the next one
mod tier_change; // which entry moved between tiers, and why
mod tracked_key; // what the tracker follows

use hardpan_prompt::{Hash, Tier};
use serde::{Deserialize, Serialize};

use crate::Target;

pub use initial_tiers::SymbolMapFile;
use rebalance::Rebalance;
pub use shown_entries::{ShownEntry, collect_shown_entries};
pub use tier_change::{TierChange, TierChangeReason, TierOpening};
pub use tracked_key::{TrackedKey, UnknownTrackedKey};

/// The tier of every file, symbol entry and exchange of the `tiers` layout, and for how many
/// responses each has been unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StabilityTracker {
    /// Files and symbol entries by key, then the exchanges in the order of the conversation.
    entries: Vec<TrackedEntry>,
}

/// A file, a symbol entry or an exchange of the conversation, with the tier it has earned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackedEntry {
    /// What it is.
    pub key: TrackedKey,
    /// The tier it stands in, or will stand in again when it is no longer hidden.
    pub tier: Tier,
    /// Responses in a row with an unchanged hash, capped by its tier.
    #[serde(rename = "n")]
    pub unchanged_responses: u32,
    /// The hash of its content as last shown; none before it has been shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// The tokens of its content as last shown, in the model's own tokenizer.
    pub tokens: usize,
    /// Whether it is a symbol entry that is not shown because its file is open.
    #[serde(rename = "aside", default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden_by_open_file: bool,
}

impl StabilityTracker {
    /// True before the first answer in `tiers`: nothing is tracked.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A tracker of these entries, in the order that it keeps: files and symbol entries by key,
    /// then the exchanges as given.
    pub fn from_entries(mut entries: Vec<TrackedEntry>) -> Self {
        // The sort is stable: the exchanges stay in their order.
        entries.sort_by(|a, b| match (a.key.is_exchange(), b.key.is_exchange()) {
            (false, false) => a.key.cmp(&b.key),
            (a, b) => a.cmp(&b),
        });
        StabilityTracker { entries }
    }

    /// All entries: files and symbol entries by key, then exchanges in conversation order.
    pub fn entries(&self) -> &[TrackedEntry] {
        &self.entries
    }

    /// The tracker after a complete response to a request that showed these entries, and what
    /// moved. The exchanges in `shown` come in conversation order; `target_tokens` is what a tier
    /// must hold to be worth a cache entry.
    pub fn record_response(
        &self,
        shown: &[ShownEntry],
        target_tokens: usize,
    ) -> (StabilityTracker, Vec<TierChange>) {
        let mut rebalance = Rebalance::from_response(self, shown, target_tokens);
        rebalance.run();
        rebalance.finish()
    }
}

/// How many tokens a tier must hold to be worth a cache entry: the provider's minimum plus a tenth,
/// because counts are not exact.
pub fn cache_target_tokens(target: &Target) -> usize {
    (target.profile.cache.min_tokens as usize * 11).div_ceil(10)
}

#[cfg(test)]
mod tests;

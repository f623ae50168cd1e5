//! [`StabilityTracker`]: how long each entry has been unchanged, and the tier it has earned.
//!
//! The tracker is part of the [`LayoutState`](crate::LayoutState). Before a request,
//! [`StabilityTracker::place`] moves its entries between tiers, and
//! [`StabilityTracker::assign_tiers`] puts the tiers onto the snapshot. When the answer is complete,
//! [`collect_shown_entries`] reads from the request what was shown, and
//! [`StabilityTracker::record_response`] counts what is unchanged.
//! The rules are described in `docs/layouts.md` and implemented in [`Placement`].

mod initial_tiers; // the tiers of the symbol map before the first request
mod placement; // the rules of moving between tiers
mod shown_entries; // which entries a request showed, and putting tiers onto the next one
mod tier_change; // which entry moved between tiers, and why
mod tracked_key; // what the tracker follows

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{Hash, Tier};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::Target;

pub use initial_tiers::SymbolMapFile;
pub use placement::ComingRequest;
use placement::Placement;
pub use shown_entries::{ShownEntry, collect_shown_entries};
pub use tier_change::{TierChange, TierChangeReason};
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
    /// Responses in a row with an unchanged hash, up to what the most stable tier wants.
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

    /// The tracker with its entries in the tiers of the coming request.
    pub fn place(&self, coming: &ComingRequest) -> StabilityTracker {
        Placement::place(self, coming)
    }

    /// The tier of an entry; `None` if it is not tracked.
    pub fn tier_of(&self, key: &TrackedKey) -> Option<Tier> {
        self.entries.iter().find(|entry| entry.key == *key).map(|entry| entry.tier)
    }

    /// The tracker after a complete response to a request that showed these entries. Exchanges in
    /// `shown` come in conversation order. A file that has been unchanged for long enough enters L3;
    /// all else moves when the next request is built.
    pub fn record_response(&self, shown: &[ShownEntry]) -> StabilityTracker {
        let known: FxHashMap<&TrackedKey, &TrackedEntry> =
            self.entries.iter().map(|entry| (&entry.key, entry)).collect();
        let is_file = |key: &TrackedKey| matches!(key, TrackedKey::File(_));
        let count = |shown: &ShownEntry| {
            let ShownEntry { key, hash, tokens, tier } = shown.clone();
            let unchanged_responses = match known.get(&key) {
                None => entry_count(tier),
                Some(before) if before.hash.is_none() => before.unchanged_responses,
                Some(before) if before.hash == Some(hash) => {
                    (before.unchanged_responses + 1).min(entry_count(Tier::L0))
                }
                Some(_) => 0,
            };
            let graduates =
                is_file(&key) && tier == Tier::Active && unchanged_responses >= entry_count(Tier::L3);
            let tier = if graduates { Tier::L3 } else { tier };
            TrackedEntry {
                key,
                tier,
                unchanged_responses,
                hash: Some(hash),
                tokens,
                hidden_by_open_file: false,
            }
        };
        let open: BTreeSet<&str> = shown.iter().filter_map(|entry| entry.key.file_path()).collect();
        let is_shown: BTreeSet<&TrackedKey> = shown.iter().map(|entry| &entry.key).collect();
        let is_hidden = |entry: &&TrackedEntry| {
            let path = entry.key.symbols_path();
            path.is_some_and(|path| open.contains(path)) && !is_shown.contains(&entry.key)
        };
        let hidden = self.entries.iter().filter(is_hidden);
        let hidden = hidden.map(|entry| TrackedEntry { hidden_by_open_file: true, ..entry.clone() });
        StabilityTracker::from_entries(shown.iter().map(count).chain(hidden).collect())
    }

    /// What moved since an earlier state of the tracker, and why: what is gone first.
    pub fn changes_since(&self, before: &StabilityTracker) -> Vec<TierChange> {
        let known: BTreeMap<&TrackedKey, &TrackedEntry> =
            before.entries.iter().map(|entry| (&entry.key, entry)).collect();
        let tracked: BTreeSet<&TrackedKey> = self.entries.iter().map(|entry| &entry.key).collect();
        let gone = before.entries.iter().filter(|entry| !tracked.contains(&entry.key));
        let gone = gone.filter_map(|entry| {
            let from = Some(entry.shown_tier()?);
            Some(TierChange { key: entry.key.clone(), from, to: None, reason: TierChangeReason::Gone })
        });
        let moved = self.entries.iter().filter_map(|entry| {
            let before = known.get(&entry.key).copied();
            let (from, to) = (before.and_then(TrackedEntry::shown_tier), entry.shown_tier());
            let reason = match (from, to) {
                _ if from == to => return None,
                (None, _) if before.is_some() => TierChangeReason::FileClosed,
                (None, _) => TierChangeReason::New,
                (_, None) => TierChangeReason::FileOpened,
                (Some(from), Some(to)) if to < from => {
                    TierChangeReason::Stable { unchanged_responses: entry.unchanged_responses }
                }
                _ if before.is_some_and(|before| before.hash != entry.hash) => TierChangeReason::Changed,
                _ if entry.key.is_exchange() => TierChangeReason::OlderFell,
                _ => TierChangeReason::UnderTarget,
            };
            Some(TierChange { key: entry.key.clone(), from, to, reason })
        });
        gone.chain(moved).collect()
    }
}

impl TrackedEntry {
    /// The tier it is shown in; none while it is hidden.
    fn shown_tier(&self) -> Option<Tier> {
        Some(self.tier).filter(|_| !self.hidden_by_open_file)
    }
}

/// The number of unchanged responses that an entry needs to enter a tier.
fn entry_count(tier: Tier) -> u32 {
    tier.threshold().unwrap_or(0)
}

/// How many tokens a tier must hold to be worth a cache entry: the provider's minimum plus a tenth,
/// because counts are not exact.
pub fn cache_target_tokens(target: &Target) -> usize {
    (target.profile.cache.min_tokens as usize * 11).div_ceil(10)
}

#[cfg(test)]
mod tests;

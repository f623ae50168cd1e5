//! [`TierChange`]: what moved between the tiers of the `tiers` layout, and why.

use std::fmt;

use hardpan_prompt::Tier;
use serde::Serialize;

use super::TrackedKey;

/// A move of one tracked entry between tiers, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TierChange {
    /// What moved.
    pub key: TrackedKey,
    /// The tier it was shown in; none if it was not shown.
    pub from: Option<Tier>,
    /// The tier it will be shown in; none if it will not be shown.
    pub to: Option<Tier>,
    /// Why it moved; `Display` gives it as a phrase.
    pub reason: TierChangeReason,
}

/// Why an entry moved between tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TierChangeReason {
    /// It was shown for the first time.
    New,
    /// Its content changed, so it starts again: a file in the active tier, a symbol entry in L3.
    Changed,
    /// It is no longer part of the context.
    Gone,
    /// A symbol entry is hidden because its file was opened.
    FileOpened,
    /// A symbol entry came back: its file is no longer open.
    FileClosed,
    /// It has been unchanged for long enough.
    Stable {
        /// For how many responses in a row it was unchanged.
        #[serde(rename = "n")]
        unchanged_responses: u32,
    },
    /// Its tier held too little to be worth a cache entry.
    UnderTarget,
    /// An older exchange fell to this tier, and exchanges stay in the order of the conversation.
    OlderFell,
}

impl fmt::Display for TierChangeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TierChangeReason::New => f.write_str("shown for the first time"),
            TierChangeReason::Changed => f.write_str("its content changed"),
            TierChangeReason::Gone => f.write_str("no longer shown"),
            TierChangeReason::FileOpened => f.write_str("the file itself is open"),
            TierChangeReason::FileClosed => f.write_str("its file was closed"),
            TierChangeReason::Stable { unchanged_responses } => {
                write!(f, "unchanged for {unchanged_responses} responses")
            }
            TierChangeReason::UnderTarget => f.write_str("its tier held too little to be worth caching"),
            TierChangeReason::OlderFell => {
                f.write_str("an older exchange fell, and the conversation keeps its order")
            }
        }
    }
}

impl fmt::Display for TierChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TierChange { key, from, to, reason } = self;
        match (from.map(tier_name), to.map(tier_name)) {
            (Some(from), Some(to)) => write!(f, "{key} moves from {from} to {to}: {reason}"),
            (None, Some(to)) => write!(f, "{key} comes to {to}: {reason}"),
            (Some(from), None) => write!(f, "{key} leaves {from}: {reason}"),
            (None, None) => write!(f, "{key}: {reason}"),
        }
    }
}

fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::L0 => "L0",
        Tier::L1 => "L1",
        Tier::L2 => "L2",
        Tier::L3 => "L3",
        Tier::Active => "active",
    }
}

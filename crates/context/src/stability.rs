//! How long each thing has been unchanged, and the tier it has earned by that.
//!
//! The [`Tracker`] is part of the [`Memory`]. Before a request, [`Tracker::assign`] puts its tiers onto the snapshot; when
//! the answer is complete, [`after_response`] reads off the request what was shown, counts, moves, and says why. The rules
//! are in `docs/layouts.md`; [`Round`] is their code.

mod change; // what moved, and why
mod first; // where the symbol map begins
mod round; // the rules
mod shown; // what a request showed, and where the next one shows it

use std::borrow::Cow;
use std::sync::Arc;

use hardpan_prompt::{Hash, Tier};
use serde::{Deserialize, Serialize};

use crate::{Assembled, LayoutName, Memory, Snapshot, Target};

pub use change::{Change, Reason, Room};
pub use first::Mapped;
use round::Round;
pub use shown::Shown;

/// What `tiers` knows of everything it shows: the tier, and for how many responses it has been unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tracker {
    /// Files and symbol entries by key, then the exchanges in the order of the conversation.
    entries: Vec<Tracked>,
}

/// One tracked thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tracked {
    /// `file:PATH`, `symbol:PATH`, or `history:ID` with the id of the message that begins the exchange.
    pub key: Arc<str>,
    /// The tier it stands in, or would if it had not stepped aside.
    pub tier: Tier,
    /// Responses in a row with an unchanged hash, as far as its tier lets it count.
    pub n: u32,
    /// The hash of what was last shown of it; none before it has been shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// The tokens of what was last shown of it, in the model's own.
    pub tokens: usize,
    /// Whether it is a symbol entry that has stepped aside for its open file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
}

impl Tracked {
    fn is_exchange(&self) -> bool {
        self.key.starts_with("history:")
    }
}

impl Tracker {
    /// Whether nothing is tracked.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Everything tracked: files and symbol entries by key, then the exchanges in the order of the conversation.
    pub fn entries(&self) -> &[Tracked] {
        &self.entries
    }

    /// The state after a complete response to a request that showed all this, and what moved. The exchanges among `shown`
    /// come in the order of the conversation; `target_tokens` is what a tier must hold to be worth a cache entry.
    pub fn after_response(&self, shown: &[Shown], target_tokens: usize) -> (Tracker, Vec<Change>) {
        let mut round = Round::observe(self, shown, target_tokens);
        round.settle();
        round.finish()
    }
}

/// What a tier must hold to be worth a cache entry: the provider's minimum and a tenth, since counts are not exact.
pub fn cache_target_tokens(target: &Target) -> usize {
    (target.wire.cache.min_tokens as usize * 11).div_ceil(10)
}

/// The memory after a complete answer to `assembled`, made from `snapshot`, and what moved between the tiers. To be called
/// once for every complete answer, those that end in tool calls included. Other layouts than `tiers` have no tiers.
pub fn after_response(
    memory: &Memory,
    snapshot: &Snapshot,
    assembled: &Assembled,
    target: &Target,
) -> (Memory, Vec<Change>) {
    if assembled.layout != LayoutName::Tiers {
        return (memory.clone(), Vec::new());
    }
    let shown = shown::shown(snapshot, assembled);
    let (tiers, changes) = memory.tiers.after_response(&shown, cache_target_tokens(target));
    (Memory { tiers, ..memory.clone() }, changes)
}

/// The snapshot as a layout is to see it: with the tracker's tiers, where the layout has tiers and there is a tracker.
pub(crate) fn assigned(snapshot: &Snapshot, layout: LayoutName) -> Cow<'_, Snapshot> {
    let tracker = &snapshot.memory.tiers;
    if layout == LayoutName::Tiers && !tracker.is_empty() {
        Cow::Owned(tracker.assign(snapshot))
    } else {
        Cow::Borrowed(snapshot)
    }
}

#[cfg(test)]
mod tests;

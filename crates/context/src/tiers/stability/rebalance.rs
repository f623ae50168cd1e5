//! [`Rebalance`]: one update of the tracker. It counts what a response confirmed and moves entries
//! between the tiers.
//!
//! N is an entry's count of responses in a row without a change.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::Tier;

use super::{
    ShownEntry, StabilityTracker, TierChange, TierChangeReason, TierOpening, TrackedEntry, TrackedKey,
};

/// The tiers that must hold enough for a cache entry, the most stable first. L0 always does,
/// because it holds the system prompt.
const CACHED_TIERS: [Tier; 3] = [Tier::L1, Tier::L2, Tier::L3];

fn tier_above(tier: Tier) -> Option<Tier> {
    Tier::ALL.into_iter().rev().find(|other| *other < tier)
}

fn tier_below(tier: Tier) -> Option<Tier> {
    Tier::ALL.into_iter().find(|other| *other > tier)
}

/// The N that an entry needs to enter a tier.
pub(super) fn entry_count(tier: Tier) -> u32 {
    tier.threshold().unwrap_or(0)
}

/// The N that a tier counts up to: what the tier above requires.
pub(super) fn count_ceiling(tier: Tier) -> u32 {
    entry_count(tier_above(tier).unwrap_or(tier))
}

/// The entries of a tracker while they are moved between tiers.
pub(super) struct Rebalance {
    members: Vec<Member>,
    removed: Vec<TierChange>,
    /// Tiers that the next request writes to the cache anyway: something left or entered them.
    rewritten: BTreeSet<Tier>,
    target: usize,
}

struct Member {
    tracked: TrackedEntry,
    from: Option<Tier>,
    reason: TierChangeReason,
    /// Whether N has been counted up, or must not be, in this update.
    counted: bool,
}

impl Rebalance {
    /// Starts from these entries, with nothing counted or moved.
    pub fn new(entries: Vec<TrackedEntry>, target: usize) -> Self {
        let member = |tracked: TrackedEntry| Member {
            from: Some(tracked.tier).filter(|_| !tracked.hidden_by_open_file),
            tracked,
            reason: TierChangeReason::New,
            counted: false,
        };
        let members = entries.into_iter().map(member).collect();
        Rebalance { members, removed: Vec::new(), rewritten: BTreeSet::new(), target }
    }

    /// Starts from the tracker before a response, and the entries that its request showed.
    pub fn from_response<'a>(before: &StabilityTracker, shown: &'a [ShownEntry], target: usize) -> Self {
        let mut rebalance = Rebalance::new(Vec::new(), target);
        let mut known: BTreeMap<&TrackedKey, &TrackedEntry> =
            before.entries.iter().map(|tracked| (&tracked.key, tracked)).collect();
        for shown in shown {
            let member = match known.remove(&shown.key) {
                Some(tracked) => rebalance.record_shown(tracked, shown),
                None => Member::new(shown),
            };
            rebalance.members.push(member);
        }
        let path = |shown: &'a ShownEntry| match &shown.key {
            TrackedKey::File(path) => Some(&**path),
            TrackedKey::Symbols(_) | TrackedKey::Exchange(_) => None,
        };
        let open: BTreeSet<&str> = shown.iter().filter_map(path).collect();
        let is_open = |tracked: &TrackedEntry| match &tracked.key {
            TrackedKey::Symbols(path) => open.contains(&**path),
            TrackedKey::File(_) | TrackedKey::Exchange(_) => false,
        };
        for tracked in known.into_values() {
            rebalance.record_absent(
                tracked,
                if is_open(tracked) { TierChangeReason::FileOpened } else { TierChangeReason::Gone },
            );
        }
        // The sort is stable: the exchanges keep the order they were shown in.
        rebalance.members.sort_by(|a, b| match (a.tracked.key.is_exchange(), b.tracked.key.is_exchange()) {
            (false, false) => a.tracked.key.cmp(&b.tracked.key),
            (a, b) => a.cmp(&b),
        });
        rebalance.enforce_conversation_order();
        rebalance
    }

    fn record_shown(&mut self, before: &TrackedEntry, shown: &ShownEntry) -> Member {
        let mut tracked = TrackedEntry {
            hash: Some(shown.hash),
            tokens: shown.tokens,
            hidden_by_open_file: false,
            ..before.clone()
        };
        let (mut from, mut reason, mut counted) = (Some(before.tier), TierChangeReason::New, true);
        if before.hash.is_some_and(|hash| hash != shown.hash) {
            self.rewritten.insert(before.tier);
            (tracked.tier, tracked.unchanged_responses, reason) =
                (Tier::Active, 0, TierChangeReason::Changed);
        } else if before.hidden_by_open_file {
            (from, reason) = (None, TierChangeReason::FileClosed);
        } else if before.hash.is_some() {
            counted = before.tier == Tier::Active;
            tracked.unchanged_responses =
                (tracked.unchanged_responses + u32::from(counted)).min(count_ceiling(tracked.tier));
        }
        Member { tracked, from, reason, counted }
    }

    /// Records an entry that was not shown: the symbol entry of an open file is hidden, anything
    /// else is removed.
    fn record_absent(&mut self, before: &TrackedEntry, reason: TierChangeReason) {
        let from = Some(before.tier).filter(|_| !before.hidden_by_open_file);
        self.rewritten.extend(from);
        if reason == TierChangeReason::FileOpened {
            let tracked = TrackedEntry { hidden_by_open_file: true, ..before.clone() };
            self.members.push(Member { tracked, from, reason, counted: true });
        } else if from.is_some() {
            self.removed.push(TierChange { key: before.key.clone(), from, to: None, reason });
        }
    }

    /// Keeps the exchanges in order: where an older exchange fell to a less stable tier, the later
    /// ones fall to the same tier.
    fn enforce_conversation_order(&mut self) {
        let mut least = Tier::L0;
        for index in 0..self.members.len() {
            let tracked = &self.members[index].tracked;
            if !tracked.key.is_exchange() {
                continue;
            }
            if tracked.tier < least {
                self.move_member(index, least, TierChangeReason::OlderFell);
            }
            least = self.members[index].tracked.tier;
        }
    }

    /// Promotes entries from L3 up until nothing moves, then demotes the first tier under the
    /// target, and repeats until both are done.
    pub fn run(&mut self) {
        loop {
            while self.promote_once() {}
            if !self.demote_underfilled() {
                return;
            }
        }
    }

    fn promote_once(&mut self) -> bool {
        let mut moved = self.promote_into(Tier::L3, Tier::Active);
        for (lower, upper) in [(Tier::L3, Tier::L2), (Tier::L2, Tier::L1), (Tier::L1, Tier::L0)] {
            for index in self.surplus_members(lower) {
                let Member { tracked, counted, .. } = &mut self.members[index];
                tracked.unchanged_responses =
                    (tracked.unchanged_responses + u32::from(!*counted)).min(count_ceiling(lower));
                *counted = true;
            }
            moved |= self.promote_into(upper, lower);
        }
        moved
    }

    /// Moves the entries that have earned it from `lower` into `upper`, if `upper` is rewritten
    /// anyway or empty, and holds enough for a cache entry afterwards.
    fn promote_into(&mut self, upper: Tier, lower: Tier) -> bool {
        let opening = match (self.rewritten.contains(&upper), self.members_in(upper).is_empty()) {
            (true, _) => TierOpening::Rewritten,
            (false, true) => TierOpening::Empty,
            (false, false) => return false,
        };
        let free = if lower == Tier::Active { self.members_in(lower) } else { self.surplus_members(lower) };
        let mut risers: Vec<usize> = free
            .into_iter()
            .filter(|index| self.members[*index].tracked.unchanged_responses >= count_ceiling(lower))
            .collect();
        self.retain_ordered_exchanges(&mut risers, upper, opening);
        let tokens = self.tokens(&self.members_in(upper)) + self.tokens(&risers);
        if risers.is_empty() || (CACHED_TIERS.contains(&upper) && tokens < self.target) {
            return false;
        }
        for index in risers {
            let n = self.members[index].tracked.unchanged_responses;
            self.move_member(index, upper, TierChangeReason::Stable { unchanged_responses: n, opening });
        }
        true
    }

    /// Drops exchanges from `risers` that would overtake an older one. Exchanges alone do not enter
    /// L3; they wait until L3 is written for something else.
    fn retain_ordered_exchanges(&self, risers: &mut Vec<usize>, upper: Tier, opening: TierOpening) {
        let is_exchange = |index: usize| self.members[index].tracked.key.is_exchange();
        let alone = risers.iter().all(|index| is_exchange(*index));
        let wanted = upper != Tier::L3 || opening == TierOpening::Rewritten || !alone;
        let exchanges = (0..self.members.len()).filter(|index| is_exchange(*index));
        let held_back =
            exchanges.into_iter().find(|at| self.members[*at].tracked.tier > upper && !risers.contains(at));
        risers.retain(|index| {
            !is_exchange(*index) || (wanted && held_back.is_none_or(|held_back| *index < held_back))
        });
    }

    /// Finds the first tier from L1 down that holds something, but less than the target, and moves
    /// its entries to the tier below. Returns false if there is none.
    pub fn demote_underfilled(&mut self) -> bool {
        for tier in CACHED_TIERS {
            let (held, target) = (self.members_in(tier), self.target);
            let tokens = self.tokens(&held);
            if let Some(lower) = tier_below(tier).filter(|_| !held.is_empty() && tokens < target) {
                for index in held {
                    self.move_member(index, lower, TierChangeReason::UnderTarget { tokens, target });
                }
                return true;
            }
        }
        false
    }

    fn move_member(&mut self, index: usize, to: Tier, reason: TierChangeReason) {
        let member = &mut self.members[index];
        self.rewritten.extend([member.tracked.tier, to]);
        member.tracked.tier = to;
        member.tracked.unchanged_responses = member.tracked.unchanged_responses.min(count_ceiling(to));
        member.reason = reason;
    }

    /// The members that stand in a tier.
    fn members_in(&self, tier: Tier) -> Vec<usize> {
        let is_held = |index: &usize| {
            let tracked = &self.members[*index].tracked;
            tracked.tier == tier && !tracked.hidden_by_open_file
        };
        (0..self.members.len()).filter(is_held).collect()
    }

    /// The members that a tier can give up and still reach the target. Those with the smallest N
    /// stay; of equals the later one stays, so that the older exchange rises first.
    fn surplus_members(&self, tier: Tier) -> Vec<usize> {
        let mut held = self.members_in(tier);
        held.sort_by_key(|index| (self.members[*index].tracked.unchanged_responses, Reverse(*index)));
        let mut tokens = 0;
        held.retain(|index| {
            let is_beyond = tokens >= self.target;
            tokens += self.members[*index].tracked.tokens;
            is_beyond
        });
        held
    }

    fn tokens(&self, members: &[usize]) -> usize {
        members.iter().map(|index| self.members[*index].tracked.tokens).sum()
    }

    /// The updated tracker, and what moved: removed entries first.
    pub fn finish(self) -> (StabilityTracker, Vec<TierChange>) {
        let mut changes = self.removed;
        for Member { tracked, from, reason, .. } in &self.members {
            let to = Some(tracked.tier).filter(|_| !tracked.hidden_by_open_file);
            if *from != to {
                changes.push(TierChange { key: tracked.key.clone(), from: *from, to, reason: *reason });
            }
        }
        (
            StabilityTracker { entries: self.members.into_iter().map(|member| member.tracked).collect() },
            changes,
        )
    }
}

impl Member {
    /// An entry that was not tracked yet starts in the tier it was shown in.
    fn new(shown: &ShownEntry) -> Self {
        let ShownEntry { key, hash, tokens, tier } = shown.clone();
        let tracked = TrackedEntry {
            key,
            tier,
            unchanged_responses: entry_count(tier),
            hash: Some(hash),
            tokens,
            hidden_by_open_file: false,
        };
        Member { tracked, from: None, reason: TierChangeReason::New, counted: true }
    }
}

//! [`Placement`]: which tier each entry of the next request stands in.
//!
//! An entry earns a tier by being unchanged. Moving it there rewrites the cache from that place on, so
//! entries move when that part is rewritten anyway. Only what is in the active tier moves for its own
//! sake: a file that has earned L3, and history that fills a tier.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{Hash, Item, ItemKind, Tier, exchange_ranges};

use super::{StabilityTracker, TrackedEntry, TrackedKey, entry_count};
use crate::Snapshot;

/// The tier that an entry has earned by being unchanged for so many responses.
pub fn earned_tier(unchanged_responses: u32) -> Tier {
    let is_earned = |tier: &Tier| tier.threshold().is_some_and(|least| unchanged_responses >= least);
    Tier::ALL.into_iter().find(is_earned).unwrap_or(Tier::Active)
}

/// The tier before one in the request; L0 has none.
fn tier_before(tier: Tier) -> Tier {
    Tier::ALL.into_iter().rev().find(|other| *other < tier).unwrap_or(Tier::L0)
}

/// What a request will show, as far as it decides the tiers.
pub struct ComingRequest {
    /// The files and symbol entries that stand before the conversation, with the hash of their current
    /// body.
    pub items: BTreeMap<TrackedKey, Hash>,
    /// Symbol entries that are hidden because their file is open.
    pub hidden: BTreeSet<TrackedKey>,
    /// The exchanges, in conversation order.
    pub exchanges: Vec<TrackedKey>,
    /// Entries whose text before the conversation is not as it was in the last request.
    pub rewritten: BTreeSet<TrackedKey>,
    /// The first tier with something that is not tracked and differs from the last request: the legend in
    /// L0, the tree and pages in the active tier.
    pub untracked_change: Option<Tier>,
    /// Whether a run begins. Within a run nothing before the conversation changes.
    pub is_new_run: bool,
    /// How many tokens make a cache entry worth its while.
    pub target_tokens: usize,
}

impl ComingRequest {
    /// What a request made of these items will show. `is_changed` tells whether the text of an item that
    /// stands before the conversation differs from the last request.
    pub fn new(
        snapshot: &Snapshot,
        items: &[Item],
        is_changed: impl Fn(&Item) -> bool,
        is_new_run: bool,
        target_tokens: usize,
    ) -> Self {
        let open: BTreeSet<&str> =
            items.iter().filter(|item| item.kind == ItemKind::File).map(Item::name).collect();
        let mut coming = ComingRequest {
            items: BTreeMap::new(),
            hidden: BTreeSet::new(),
            exchanges: exchange_ranges(&snapshot.messages)
                .into_iter()
                .map(|exchange| TrackedKey::of_exchange(&snapshot.messages[exchange.start].id))
                .collect(),
            rewritten: BTreeSet::new(),
            untracked_change: None,
            is_new_run,
            target_tokens,
        };
        for item in items {
            match TrackedKey::of_item(item.kind, &item.key) {
                None if !is_changed(item) => {}
                None => {
                    let tier = if item.kind == ItemKind::Legend { Tier::L0 } else { Tier::Active };
                    coming.untracked_change =
                        Some(coming.untracked_change.map_or(tier, |other| other.min(tier)));
                }
                Some(TrackedKey::Symbols(_)) if !snapshot.use_repo_map => {}
                Some(key @ TrackedKey::Symbols(_)) if open.contains(item.name()) => {
                    coming.hidden.insert(key);
                }
                Some(key) => {
                    if is_changed(item) {
                        coming.rewritten.insert(key.clone());
                    }
                    coming.items.insert(key, item.body.hash());
                }
            }
        }
        coming
    }
}

/// The entries of a tracker while they are placed for a request.
pub struct Placement {
    entries: Vec<TrackedEntry>,
    /// The most stable tier whose items this request rewrites; what follows is rewritten with it.
    rewritten_from: Option<Tier>,
}

impl Placement {
    /// Places the entries of a tracker for the coming request.
    pub fn place(tracker: &StabilityTracker, coming: &ComingRequest) -> StabilityTracker {
        let mut placement = Placement { entries: tracker.entries.clone(), rewritten_from: None };
        if coming.is_new_run {
            placement.follow_changes(coming);
        }
        placement.graduate(coming);
        if let Some(from) = placement.rewritten_from {
            let from = placement.first_free_tier(from);
            placement.raise_items(from);
            placement.pass_down_small_tiers(from, coming.target_tokens);
            placement.raise_exchanges(tier_before(from));
        }
        placement.keep_conversation_order();
        StabilityTracker::from_entries(placement.entries)
    }

    fn note_rewritten(&mut self, tier: Tier) {
        self.rewritten_from = Some(self.rewritten_from.map_or(tier, |from| from.min(tier)));
    }

    /// Takes out what is no longer shown, and moves what has changed: a file to the active tier, a
    /// symbol entry to L3, where symbol entries begin.
    fn follow_changes(&mut self, coming: &ComingRequest) {
        let exchanges: BTreeSet<&TrackedKey> = coming.exchanges.iter().collect();
        for mut entry in std::mem::take(&mut self.entries) {
            let (tier, was_hidden) = (entry.tier, entry.hidden_by_open_file);
            let body = coming.items.get(&entry.key);
            let is_hidden = coming.hidden.contains(&entry.key);
            if entry.key.is_exchange() {
                match exchanges.contains(&entry.key) {
                    true => self.entries.push(entry),
                    false => self.note_rewritten(tier),
                }
                continue;
            }
            if !was_hidden && (body.is_none() || coming.rewritten.contains(&entry.key)) {
                self.note_rewritten(tier);
            }
            if body.is_none() && !is_hidden {
                continue;
            }
            let is_same = body.is_none() || entry.hash.is_none() || body == entry.hash.as_ref();
            entry.hidden_by_open_file = is_hidden;
            if matches!(entry.key, TrackedKey::Symbols(_)) {
                let is_rewritten = entry.hash.is_some() && coming.rewritten.contains(&entry.key);
                if !is_same || is_rewritten {
                    let count = if is_same { entry.unchanged_responses } else { 0 };
                    entry.unchanged_responses = count.max(entry_count(Tier::L3));
                }
                if !is_hidden && (!is_same || is_rewritten || was_hidden) {
                    entry.tier = Tier::L3;
                    self.note_rewritten(if was_hidden { Tier::L3 } else { tier });
                }
            } else if !is_same {
                (entry.tier, entry.unchanged_responses) = (Tier::Active, 0);
                self.note_rewritten(tier);
            } else if coming.rewritten.contains(&entry.key) {
                // It changed within the last run, and has earned its tier anew since.
                entry.tier = Tier::Active;
            }
            self.entries.push(entry);
        }
        let tracked: BTreeSet<&TrackedKey> = self.entries.iter().map(|entry| &entry.key).collect();
        let new = coming.items.keys().filter(|key| !tracked.contains(key));
        let entered = new.map(|key| match key {
            TrackedKey::Symbols(_) => Tier::L3,
            TrackedKey::File(_) | TrackedKey::Exchange(_) => Tier::Active,
        });
        if let Some(first) = entered.chain(coming.untracked_change).min() {
            self.note_rewritten(first);
        }
    }

    /// Files that have earned L3 enter it. History enters when a run begins, if what has earned it fills
    /// a tier.
    fn graduate(&mut self, coming: &ComingRequest) {
        let has_earned = |entry: &&TrackedEntry| entry.unchanged_responses >= entry_count(Tier::L3);
        let is_file = |entry: &&TrackedEntry| matches!(entry.key, TrackedKey::File(_));
        let files = self.entries.iter().filter(is_file);
        // The tracker moves a file when it has counted that far; here this is followed.
        let is_new = |entry: &TrackedEntry| {
            entry.tier == Tier::Active && has_earned(&entry)
                || entry.tier == Tier::L3 && entry.unchanged_responses == entry_count(Tier::L3)
        };
        if files.into_iter().any(is_new) {
            self.note_rewritten(Tier::L3);
        }
        let history = self.entries.iter().filter(|entry| entry.key.is_exchange());
        let waiting = history.filter(|entry| entry.tier == Tier::Active).filter(has_earned);
        let tokens: usize = waiting.map(|entry| entry.tokens).sum();
        if coming.is_new_run && tokens > 0 && tokens >= coming.target_tokens {
            self.note_rewritten(Tier::Active);
        }
    }

    /// The most stable tier that items can enter if everything from `from` on is rewritten: the empty
    /// tiers right before it are free, too.
    fn first_free_tier(&self, from: Tier) -> Tier {
        let is_empty = |tier: Tier| self.entries.iter().all(|entry| entry.shown_tier() != Some(tier));
        let before = tier_before(from);
        if before > Tier::L0 && is_empty(before) { self.first_free_tier(before) } else { from }
    }

    /// Moves items up to the tier they have earned, but not before `from`.
    fn raise_items(&mut self, from: Tier) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.key.is_exchange()) {
            entry.tier = entry.tier.min(earned_tier(entry.unchanged_responses).max(from));
        }
    }

    /// Moves exchanges up to the tier they have earned, but not before the end of `end`: history stands
    /// last in its tier, so what it is added to stays as it is. None overtakes an older one.
    fn raise_exchanges(&mut self, end: Tier) {
        let mut oldest = Tier::L0;
        for entry in self.entries.iter_mut().filter(|entry| entry.key.is_exchange()) {
            let earned = earned_tier(entry.unchanged_responses).max(end).max(oldest);
            entry.tier = entry.tier.min(earned);
            oldest = entry.tier;
        }
    }

    /// Of the rewritten tiers L1 and L2, one that holds less than the target passes its items to the next.
    fn pass_down_small_tiers(&mut self, from: Tier, target: usize) {
        for (tier, next) in [(Tier::L1, Tier::L2), (Tier::L2, Tier::L3)] {
            let held = self.entries.iter().filter(|entry| entry.tier == tier && !entry.hidden_by_open_file);
            if tier >= from && held.map(|entry| entry.tokens).sum::<usize>() < target {
                let items = self.entries.iter_mut().filter(|entry| !entry.key.is_exchange());
                items.filter(|entry| entry.tier == tier).for_each(|entry| entry.tier = next);
            }
        }
    }

    /// No exchange stands in a more stable tier than an older one.
    fn keep_conversation_order(&mut self) {
        let mut oldest = Tier::L0;
        for entry in self.entries.iter_mut().filter(|entry| entry.key.is_exchange()) {
            entry.tier = entry.tier.max(oldest);
            oldest = entry.tier;
        }
    }
}

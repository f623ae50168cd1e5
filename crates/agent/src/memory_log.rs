//! [`MemoryChange`]: the layouts' state in the session file, stored as what each request changed.
//!
//! The base of `strata` contains whole files. It is written when it is laid, and after that only
//! what was added: an update, the frontier. State that is lost costs a fold and nothing else, so
//! nobody waits for it to be durable.
//!
//! The tracker of `tiers` counts with every answer, for everything it shows, and so do the hits of
//! `panels`. They are written at the end of a run only, the tracker as the entries that differ: a
//! crash loses the counts of one run.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_context::{
    Frontier, FrozenHistory, ItemUpdate, LayoutState, PanelsState, RentAccount, ShownPanel, StabilityTracker,
    StrataState, TrackedEntry,
};
use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};

/// What a request changed in the layouts' state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryChange {
    /// Replaces the whole state.
    Whole(Box<LayoutState>),
    /// Adds to the state.
    Added(Box<MemoryAdditions>),
    /// Changes entries of the `tiers` tracker.
    Tiers(Box<TierChange>),
    /// What `panels` showed last, and its cost so far.
    Shown(Vec<ShownPanel>),
}

/// The entries of a tracker that differ from the previous one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TierChange {
    /// Entries that are new or changed.
    set: Vec<TrackedEntry>,
    /// Keys that are no longer tracked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<Arc<str>>,
}

/// What was added to the state, and the small values that change with each request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryAdditions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    updates: Vec<ItemUpdate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frontier: Option<Frontier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Hash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<RentAccount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    histories: Vec<Arc<FrozenHistory>>,
    /// Only read: since it is written once per run, it has a record of its own.
    #[serde(skip_serializing)]
    shown: Option<Vec<ShownPanel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_tiers: Option<u32>,
}

impl MemoryChange {
    /// The change from one state to the next, without the counters that change with every request;
    /// `None` if nothing else changed.
    pub fn between(before: &LayoutState, after: &LayoutState) -> Option<MemoryChange> {
        let LayoutState { panels: PanelsState { histories, shown: _ }, strata, tiers: _, empty_tiers } =
            after;
        let same = *histories == before.panels.histories && *strata == before.strata;
        if same && *empty_tiers == before.empty_tiers {
            return None;
        }
        Some(additions_between(before, after).map_or_else(
            || MemoryChange::Whole(Box::new(after.clone())),
            |added| MemoryChange::Added(Box::new(added)),
        ))
    }

    /// The change from one tracker to the next; `None` if they are equal.
    pub fn between_trackers(before: &StabilityTracker, after: &StabilityTracker) -> Option<MemoryChange> {
        let known: BTreeMap<&str, &TrackedEntry> = by_key(before);
        let still: BTreeMap<&str, &TrackedEntry> = by_key(after);
        let is_new = |tracked: &&TrackedEntry| known.get(&*tracked.key) != Some(tracked);
        let gone = known.values().filter(|tracked| !still.contains_key(&*tracked.key));
        let change = TierChange {
            set: after.entries().iter().filter(is_new).cloned().collect(),
            gone: gone.map(|tracked| tracked.key.clone()).collect(),
        };
        (before != after).then(|| MemoryChange::Tiers(Box::new(change)))
    }

    /// Applies the change to a state.
    pub fn apply(self, memory: &mut LayoutState) {
        match self {
            MemoryChange::Whole(whole) => *memory = *whole,
            MemoryChange::Tiers(tiers) => memory.tiers = apply_tier_change(&memory.tiers, *tiers),
            MemoryChange::Shown(shown) => memory.panels.shown = shown,
            MemoryChange::Added(added) => {
                let MemoryAdditions { updates, frontier, tail, account, histories, shown, empty_tiers } =
                    *added;
                memory.strata.updates.extend(updates);
                memory.strata.frontier = frontier.or(memory.strata.frontier);
                memory.strata.tail_hash = tail.or(memory.strata.tail_hash);
                memory.strata.account = account.unwrap_or(memory.strata.account);
                memory.panels.histories.extend(histories);
                memory.panels.shown = shown.unwrap_or_else(|| std::mem::take(&mut memory.panels.shown));
                memory.empty_tiers = empty_tiers.unwrap_or(memory.empty_tiers);
            }
        }
    }
}

fn by_key(tracker: &StabilityTracker) -> BTreeMap<&str, &TrackedEntry> {
    tracker.entries().iter().map(|tracked| (&*tracked.key, tracked)).collect()
}

/// The tracker after a change: entries sorted by key, then the exchanges in order of appearance.
fn apply_tier_change(before: &StabilityTracker, TierChange { set, gone }: TierChange) -> StabilityTracker {
    let is_exchange = |tracked: &TrackedEntry| tracked.key.starts_with("history:");
    let stays = |tracked: &&TrackedEntry| !gone.contains(&tracked.key);
    let mut entries: Vec<TrackedEntry> = before.entries().iter().filter(stays).cloned().collect();
    for tracked in set {
        match entries.iter_mut().find(|known| known.key == tracked.key) {
            Some(known) => *known = tracked,
            None => entries.push(tracked),
        }
    }
    // A stable sort: the exchanges stay in their order.
    entries.sort_by(|a, b| match (is_exchange(a), is_exchange(b)) {
        (false, false) => a.key.cmp(&b.key),
        (a, b) => a.cmp(&b),
    });
    // A tracker is deserialized from the list of its entries; one that does not parse counts as
    // empty.
    serde_json::to_value(entries).ok().and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default()
}

/// What was added; `None` if something else changed too.
fn additions_between(before: &LayoutState, after: &LayoutState) -> Option<MemoryAdditions> {
    let StrataState { base, has_base, updates, stubs, frontier, tail_hash, folds, account } = &after.strata;
    let old = &before.strata;
    let same = *has_base == old.has_base && *folds == old.folds && *stubs == old.stubs && *base == old.base;
    let panels: &PanelsState = &after.panels;
    let added = MemoryAdditions {
        updates: appended(&old.updates, updates)?,
        frontier: frontier.filter(|_| *frontier != old.frontier),
        tail: tail_hash.filter(|_| *tail_hash != old.tail_hash),
        account: Some(*account).filter(|_| *account != old.account),
        histories: appended(&before.panels.histories, &panels.histories)?,
        shown: None,
        empty_tiers: (after.empty_tiers != before.empty_tiers).then_some(after.empty_tiers),
    };
    // A removal cannot be expressed as an addition.
    let nothing_removed =
        (frontier.is_some() || old.frontier.is_none()) && (tail_hash.is_some() || old.tail_hash.is_none());
    (same && nothing_removed).then_some(added)
}

/// The elements of `after` beyond `before`, if `after` begins with `before`.
fn appended<T: Clone + PartialEq>(before: &[T], after: &[T]) -> Option<Vec<T>> {
    after.strip_prefix(before).map(<[T]>::to_vec)
}

#[cfg(test)]
mod tests {
    use hardpan_context::{BaseGroup, BaseItem, UpdateForm};
    use hardpan_prompt::{ItemKind, Text};

    use super::*;

    fn laid(body: &str) -> LayoutState {
        let placed =
            BaseItem { key: "file:a".into(), title: None, kind: ItemKind::File, body: Text::new(body) };
        let mut memory = LayoutState::default();
        memory.strata.base = Arc::new(vec![BaseGroup { name: "calm".into(), items: vec![placed] }]);
        memory.strata.has_base = true;
        memory
    }

    fn update(text: &str) -> ItemUpdate {
        ItemUpdate {
            key: "file:a".into(),
            kind: ItemKind::File,
            anchor: "m1".into(),
            form: UpdateForm::Body,
            text: Text::new(text),
            body: Some(Text::new(text)),
        }
    }

    #[test]
    fn what_was_added_is_told_without_what_was_there() {
        let before = laid("a long file");
        let mut after = before.clone();
        after.strata.updates.push(update("new"));
        after.strata.frontier = Some(Frontier { blocks: 3, hash: Hash::of(b"x") });
        let change = MemoryChange::between(&before, &after).unwrap();
        let written = serde_json::to_string(&change).unwrap();
        assert!(written.contains("\"new\"") && !written.contains("a long file"), "{written}");
        let mut restored = before;
        serde_json::from_str::<MemoryChange>(&written).unwrap().apply(&mut restored);
        assert_eq!(restored, after);
    }

    fn tracker(entries: &[(&str, u32)]) -> StabilityTracker {
        let entry =
            |(key, n): &(&str, u32)| serde_json::json!({"key": key, "tier": "L3", "n": n, "tokens": 10});
        serde_json::from_value(entries.iter().map(entry).collect()).unwrap()
    }

    #[test]
    fn a_tracker_is_told_by_the_entries_that_are_others() {
        let states = [
            tracker(&[]),
            tracker(&[("file:b", 0), ("symbol:a", 3), ("history:m1", 0)]),
            tracker(&[("file:a", 0), ("file:b", 1), ("symbol:a", 3), ("history:m1", 0), ("history:m3", 0)]),
            tracker(&[("file:a", 1), ("symbol:a", 3), ("history:m3", 0), ("history:m0", 2)]),
            tracker(&[]),
        ];
        let mut restored = LayoutState::default();
        for next in &states[1..] {
            let change = MemoryChange::between_trackers(&restored.tiers, next).unwrap();
            let written = serde_json::to_string(&change).unwrap();
            serde_json::from_str::<MemoryChange>(&written).unwrap().apply(&mut restored);
            assert_eq!(&restored.tiers, next);
        }
        assert_eq!(MemoryChange::between_trackers(&restored.tiers, &states[4]), None);
        let Some(MemoryChange::Tiers(change)) = MemoryChange::between_trackers(&states[1], &states[2]) else {
            panic!("a change")
        };
        assert_eq!(change.set.len(), 3);
        let before = LayoutState { tiers: states[1].clone(), ..LayoutState::default() };
        let after = LayoutState { tiers: states[2].clone(), ..LayoutState::default() };
        assert_eq!(MemoryChange::between(&before, &after), None, "it is not written with each request");
    }

    #[test]
    fn a_fold_is_told_as_a_whole_and_nothing_is_told_of_nothing() {
        let (before, mut after) = (laid("one"), laid("two"));
        after.strata.folds = 1;
        let change = MemoryChange::between(&before, &after).unwrap();
        assert!(matches!(change, MemoryChange::Whole(_)));
        let mut restored = before.clone();
        change.apply(&mut restored);
        assert_eq!(restored, after);
        assert_eq!(MemoryChange::between(&before, &before.clone()), None);
    }
}

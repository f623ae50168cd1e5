//! The layouts' memory in the session file: what changed with each request, not all of it each time.
//!
//! BASE holds whole files. It is written when it was laid, and then only what was added: an update, the frontier. A memory
//! that is lost costs a fold, nothing else, so nobody waits for it to be durable.
//!
//! The tracker of `tiers` counts on with every answer, for everything it shows, and so do the hits of `panels`. They are written
//! at the end of a run only, the tracker as the entries that are others than before: a crash loses the counts of one run.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_context::{
    Account, Frontier, FrozenHistory, Memory, PanelsMemory, ShownPanel, StrataMemory, Tracked, Tracker,
    Update,
};
use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};

/// What a request changed of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// All of it is new.
    Whole(Box<Memory>),
    /// Only this was added or replaced.
    Added(Box<Added>),
    /// The tracker has counted on.
    Tiers(Box<Tiers>),
    /// What `panels` showed last, and what that has cost so far.
    Shown(Vec<ShownPanel>),
}

/// What is new in a tracker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tiers {
    /// Entries that are new, or others than before.
    set: Vec<Tracked>,
    /// Keys that are not tracked any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<Arc<str>>,
}

/// What was added to a memory, and the small things that change with each request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Added {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    updates: Vec<Update>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frontier: Option<Frontier>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Hash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<Account>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    histories: Vec<Arc<FrozenHistory>>,
    /// Only read: it is written once for a run.
    #[serde(skip_serializing)]
    shown: Option<Vec<ShownPanel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_tiers: Option<u32>,
}

impl Change {
    /// What leads from one memory to the next, all that counts on with every request aside; none if nothing does.
    pub fn between(before: &Memory, after: &Memory) -> Option<Change> {
        let Memory { panels: PanelsMemory { histories, shown: _ }, strata, tiers: _, empty_tiers } = after;
        let same = *histories == before.panels.histories && *strata == before.strata;
        if same && *empty_tiers == before.empty_tiers {
            return None;
        }
        Some(
            added(before, after).map_or_else(
                || Change::Whole(Box::new(after.clone())),
                |added| Change::Added(Box::new(added)),
            ),
        )
    }

    /// What leads from one tracker to the next; none if nothing does.
    pub fn of_tiers(before: &Tracker, after: &Tracker) -> Option<Change> {
        let known: BTreeMap<&str, &Tracked> = by_key(before);
        let still: BTreeMap<&str, &Tracked> = by_key(after);
        let is_new = |tracked: &&Tracked| known.get(&*tracked.key) != Some(tracked);
        let gone = known.values().filter(|tracked| !still.contains_key(&*tracked.key));
        let change = Tiers {
            set: after.entries().iter().filter(is_new).cloned().collect(),
            gone: gone.map(|tracked| tracked.key.clone()).collect(),
        };
        (before != after).then(|| Change::Tiers(Box::new(change)))
    }

    /// The memory after it.
    pub fn apply(self, memory: &mut Memory) {
        match self {
            Change::Whole(whole) => *memory = *whole,
            Change::Tiers(tiers) => memory.tiers = applied(&memory.tiers, *tiers),
            Change::Shown(shown) => memory.panels.shown = shown,
            Change::Added(added) => {
                let Added { updates, frontier, tail, account, histories, shown, empty_tiers } = *added;
                memory.strata.updates.extend(updates);
                memory.strata.frontier = frontier.or(memory.strata.frontier);
                memory.strata.tail = tail.or(memory.strata.tail);
                memory.strata.account = account.unwrap_or(memory.strata.account);
                memory.panels.histories.extend(histories);
                memory.panels.shown = shown.unwrap_or_else(|| std::mem::take(&mut memory.panels.shown));
                memory.empty_tiers = empty_tiers.unwrap_or(memory.empty_tiers);
            }
        }
    }
}

fn by_key(tracker: &Tracker) -> BTreeMap<&str, &Tracked> {
    tracker.entries().iter().map(|tracked| (&*tracked.key, tracked)).collect()
}

/// The tracker after a change: entries by key, then the exchanges, to which new ones come last.
fn applied(before: &Tracker, Tiers { set, gone }: Tiers) -> Tracker {
    let is_exchange = |tracked: &Tracked| tracked.key.starts_with("history:");
    let stays = |tracked: &&Tracked| !gone.contains(&tracked.key);
    let mut entries: Vec<Tracked> = before.entries().iter().filter(stays).cloned().collect();
    for tracked in set {
        match entries.iter_mut().find(|known| known.key == tracked.key) {
            Some(known) => *known = tracked,
            None => entries.push(tracked),
        }
    }
    // Stable: the exchanges stay in their order.
    entries.sort_by(|a, b| match (is_exchange(a), is_exchange(b)) {
        (false, false) => a.key.cmp(&b.key),
        (a, b) => a.cmp(&b),
    });
    // A tracker is read from the list of its entries; that of another version counts as none.
    serde_json::to_value(entries).ok().and_then(|list| serde_json::from_value(list).ok()).unwrap_or_default()
}

/// What was only added; none where something else changed, too.
fn added(before: &Memory, after: &Memory) -> Option<Added> {
    let StrataMemory { base, laid, updates, stubs, frontier, tail, folds, account } = &after.strata;
    let old = &before.strata;
    let same = *laid == old.laid && *folds == old.folds && *stubs == old.stubs && *base == old.base;
    let panels: &PanelsMemory = &after.panels;
    let added = Added {
        updates: rest(&old.updates, updates)?,
        frontier: frontier.filter(|_| *frontier != old.frontier),
        tail: tail.filter(|_| *tail != old.tail),
        account: Some(*account).filter(|_| *account != old.account),
        histories: rest(&before.panels.histories, &panels.histories)?,
        shown: None,
        empty_tiers: (after.empty_tiers != before.empty_tiers).then_some(after.empty_tiers),
    };
    // What was taken away cannot be told by what was added.
    let told = (frontier.is_some() || old.frontier.is_none()) && (tail.is_some() || old.tail.is_none());
    (same && told).then_some(added)
}

/// What `after` has more than `before`, if it begins with it.
fn rest<T: Clone + PartialEq>(before: &[T], after: &[T]) -> Option<Vec<T>> {
    after.strip_prefix(before).map(<[T]>::to_vec)
}

#[cfg(test)]
mod tests {
    use hardpan_context::{Group, Placed, UpdateForm};
    use hardpan_prompt::{Kind, Text};

    use super::*;

    fn laid(body: &str) -> Memory {
        let placed = Placed { key: "file:a".into(), title: None, kind: Kind::File, body: Text::new(body) };
        let mut memory = Memory::default();
        memory.strata.base = Arc::new(vec![Group { name: "calm".into(), items: vec![placed] }]);
        memory.strata.laid = true;
        memory
    }

    fn update(text: &str) -> Update {
        Update {
            key: "file:a".into(),
            kind: Kind::File,
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
        let change = Change::between(&before, &after).unwrap();
        let written = serde_json::to_string(&change).unwrap();
        assert!(written.contains("\"new\"") && !written.contains("a long file"), "{written}");
        let mut told = before;
        serde_json::from_str::<Change>(&written).unwrap().apply(&mut told);
        assert_eq!(told, after);
    }

    fn tracker(entries: &[(&str, u32)]) -> Tracker {
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
        let mut told = Memory::default();
        for next in &states[1..] {
            let change = Change::of_tiers(&told.tiers, next).unwrap();
            let written = serde_json::to_string(&change).unwrap();
            serde_json::from_str::<Change>(&written).unwrap().apply(&mut told);
            assert_eq!(&told.tiers, next);
        }
        assert_eq!(Change::of_tiers(&told.tiers, &states[4]), None);
        let Some(Change::Tiers(change)) = Change::of_tiers(&states[1], &states[2]) else {
            panic!("a change")
        };
        assert_eq!(change.set.len(), 3);
        let before = Memory { tiers: states[1].clone(), ..Memory::default() };
        let after = Memory { tiers: states[2].clone(), ..Memory::default() };
        assert_eq!(Change::between(&before, &after), None, "it is not written with each request");
    }

    #[test]
    fn a_fold_is_told_as_a_whole_and_nothing_is_told_of_nothing() {
        let (before, mut after) = (laid("one"), laid("two"));
        after.strata.folds = 1;
        let change = Change::between(&before, &after).unwrap();
        assert!(matches!(change, Change::Whole(_)));
        let mut told = before.clone();
        change.apply(&mut told);
        assert_eq!(told, after);
        assert_eq!(Change::between(&before, &before.clone()), None);
    }
}

//! How sessions store the state of `tiers`: the tracker once per run, as the entries that differ.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Tiers;
use super::stability::{StabilityTracker, TrackedEntry, TrackedKey};
use crate::LayoutState;
use crate::layout_state::{StateChange, StateStorage};
use crate::run_context::RunContextChange;

/// The fields of `tiers` in an additions record.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct TiersAdditions {
    #[serde(skip_serializing_if = "Option::is_none")]
    empty_tiers: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tiers_run: Option<RunContextChange>,
}

/// The entries of a tracker that differ from the previous one.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct TrackerChange {
    /// Entries that are new or changed.
    set: Vec<TrackedEntry>,
    /// Keys that are no longer tracked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gone: Vec<TrackedKey>,
}

impl StateStorage for Tiers {
    fn state_change(&self, before: &LayoutState, after: &LayoutState) -> StateChange {
        let empty_tiers = Some(after.empty_tiers).filter(|count| *count != before.empty_tiers);
        let tiers_run = after.tiers_run.change_since(&before.tiers_run);
        if empty_tiers.is_none() && tiers_run.is_none() {
            return StateChange::Nothing;
        }
        StateChange::added(&TiersAdditions { empty_tiers, tiers_run })
    }

    fn apply_additions(&self, state: &mut LayoutState, added: &Value) -> Result<(), serde_json::Error> {
        let TiersAdditions { empty_tiers, tiers_run } = TiersAdditions::deserialize(added)?;
        state.empty_tiers = empty_tiers.unwrap_or(state.empty_tiers);
        tiers_run.into_iter().for_each(|change| state.tiers_run.apply(change));
        Ok(())
    }

    fn counters_record(&self) -> Option<&'static str> {
        Some("tiers")
    }

    fn counter_change(&self, stored: &LayoutState, now: &LayoutState) -> Option<Value> {
        let change = || serde_json::to_value(change_between(&stored.tiers, &now.tiers)).unwrap_or_default();
        (stored.tiers != now.tiers).then(change)
    }

    fn apply_counters(&self, state: &mut LayoutState, counters: Value) -> Result<(), serde_json::Error> {
        state.tiers = apply_change(&state.tiers, serde_json::from_value(counters)?);
        Ok(())
    }

    fn keep_after_compaction(&self, before: &LayoutState, after: &mut LayoutState) {
        after.empty_tiers = before.empty_tiers;
    }
}

fn change_between(before: &StabilityTracker, after: &StabilityTracker) -> TrackerChange {
    let (known, still) = (by_key(before), by_key(after));
    let is_new = |tracked: &&TrackedEntry| known.get(&tracked.key) != Some(tracked);
    let gone = known.values().filter(|tracked| !still.contains_key(&tracked.key));
    TrackerChange {
        set: after.entries().iter().filter(is_new).cloned().collect(),
        gone: gone.map(|tracked| tracked.key.clone()).collect(),
    }
}

fn by_key(tracker: &StabilityTracker) -> BTreeMap<&TrackedKey, &TrackedEntry> {
    tracker.entries().iter().map(|tracked| (&tracked.key, tracked)).collect()
}

/// The tracker after a change: new exchanges follow those that it had.
fn apply_change(before: &StabilityTracker, TrackerChange { set, gone }: TrackerChange) -> StabilityTracker {
    let stays = |tracked: &&TrackedEntry| !gone.contains(&tracked.key);
    let mut entries: Vec<TrackedEntry> = before.entries().iter().filter(stays).cloned().collect();
    for tracked in set {
        match entries.iter_mut().find(|known| known.key == tracked.key) {
            Some(known) => *known = tracked,
            None => entries.push(tracked),
        }
    }
    StabilityTracker::from_entries(entries)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::layout_state::LayoutStateLog;

    fn state(entries: &[(&str, u32)]) -> LayoutState {
        let entry = |(key, n): &(&str, u32)| json!({"key": key, "tier": "L3", "n": n, "tokens": 10});
        let tiers = entries.iter().map(entry).collect::<Value>();
        serde_json::from_value(json!({ "tiers": tiers })).unwrap()
    }

    #[test]
    fn a_tracker_is_stored_as_the_entries_that_differ() {
        let states = [
            state(&[("file:b", 0), ("symbol:a", 3), ("history:m1", 0)]),
            state(&[("file:a", 0), ("file:b", 1), ("symbol:a", 3), ("history:m1", 0), ("history:m3", 0)]),
            state(&[("file:a", 1), ("symbol:a", 3), ("history:m3", 0), ("history:m0", 2)]),
            state(&[]),
        ];
        let mut log = LayoutStateLog::default();
        let mut records = Vec::new();
        for next in &states {
            assert_eq!(log.commit(next.clone()), None, "it is not stored with each request");
            records.extend(log.end_run());
            assert_eq!(LayoutStateLog::from_records(records.clone()).current(), next);
        }
        assert_eq!(log.end_run(), Vec::<Value>::new());
        let set: Vec<&Value> = records.iter().map(|record| &record["tiers"]["set"]).collect();
        assert_eq!(set.iter().map(|set| set.as_array().unwrap().len()).collect::<Vec<_>>(), [3, 3, 2, 0]);
        assert_eq!(records[3]["tiers"]["gone"], json!(["file:a", "history:m0", "history:m3", "symbol:a"]));
    }

    #[test]
    fn the_count_of_empty_tiers_survives_a_compaction() {
        let mut log = LayoutStateLog::default();
        let mut next = state(&[("file:a", 1)]);
        next.empty_tiers = 4;
        assert_eq!(log.commit(next), Some(json!({"added": {"empty_tiers": 4}})));
        log.end_run();
        log.compact();
        assert_eq!(*log.current(), LayoutState { empty_tiers: 4, ..LayoutState::default() });
        log.commit(state(&[("file:a", 1)]));
        assert_eq!(log.end_run().len(), 1, "what was stored before the compaction counts no more");
    }
}

//! [`LayoutStateLog`]: the layouts' state, and the records that store it in a session file.
//!
//! The base of `strata` contains whole files. It is written when it is laid, and after that only
//! what was added: an update, the frontier. State that is lost costs a fold and nothing else, so
//! nobody needs to wait for a record to be durable.
//!
//! A record is a JSON object with one field: `whole` with the state, `added` with the fields that a
//! request added or changed, or the [name](crate::StateStorage::counters_record) of a layout's
//! counters.

use serde_json::{Map, Value, json};

use super::{LayoutState, StateChange};
use crate::LayoutName;

/// Replaces the whole state.
const WHOLE: &str = "whole";
/// Adds to the state.
const ADDED: &str = "added";

/// The state of the layouts in a conversation, and what the session file has of it.
#[derive(Clone, Debug, Default)]
pub struct LayoutStateLog {
    current: LayoutState,
    /// The state whose counters were stored last.
    stored: LayoutState,
}

impl LayoutStateLog {
    /// Reads the records of a session, oldest first. A record that another version wrote empties the
    /// state: that costs a fold, nothing else.
    pub fn from_records(records: impl IntoIterator<Item = Value>) -> Self {
        let mut current = LayoutState::default();
        for record in records {
            if apply_record(&mut current, record).is_none() {
                current = LayoutState::default();
            }
        }
        LayoutStateLog { stored: current.clone(), current }
    }

    /// Applies one more record, as a session stores them. A record that another version wrote empties
    /// the state.
    pub fn apply(&mut self, record: Value) {
        if apply_record(&mut self.current, record).is_none() {
            self.current = LayoutState::default();
        }
    }

    /// The state that the next request is built with.
    pub fn current(&self) -> &LayoutState {
        &self.current
    }

    /// The same, to record a response in it.
    pub fn current_mut(&mut self) -> &mut LayoutState {
        &mut self.current
    }

    /// Commits the state after a request. Returns the record to store, if something but counters
    /// changed.
    pub fn commit(&mut self, next: LayoutState) -> Option<Value> {
        let before = std::mem::replace(&mut self.current, next);
        let mut added = Map::new();
        for name in LayoutName::ALL {
            match name.layout().state_change(&before, &self.current) {
                StateChange::Nothing => {}
                StateChange::Added(fields) => added.extend(fields),
                StateChange::Rewritten => {
                    self.stored = self.current.clone();
                    return Some(json!({ WHOLE: self.current }));
                }
            }
        }
        (!added.is_empty()).then(|| json!({ ADDED: added }))
    }

    /// The records to store at the end of a run: the counters that changed since they were stored
    /// last.
    pub fn end_run(&mut self) -> Vec<Value> {
        let mut records = Vec::new();
        for layout in LayoutName::ALL.map(LayoutName::layout) {
            if let Some(name) = layout.counters_record()
                && let Some(counters) = layout.counter_change(&self.stored, &self.current)
            {
                records.push(json!({ name: counters }));
            }
        }
        if !records.is_empty() {
            self.stored = self.current.clone();
        }
        records
    }

    /// Begins anew after a compaction.
    pub fn compact(&mut self) {
        self.current = self.current.after_compaction();
        self.stored = LayoutState::default();
    }
}

/// Applies a record; `None` if it cannot be understood.
fn apply_record(state: &mut LayoutState, record: Value) -> Option<()> {
    let Value::Object(fields) = record else { return None };
    let mut fields = fields.into_iter();
    let ((kind, content), None) = (fields.next()?, fields.next()) else { return None };
    match kind.as_str() {
        WHOLE => *state = serde_json::from_value(content).ok()?,
        ADDED => {
            for name in LayoutName::ALL {
                name.layout().apply_additions(state, &content).ok()?;
            }
        }
        counters => {
            let mut layouts = LayoutName::ALL.map(LayoutName::layout).into_iter();
            let layout = layouts.find(|layout| layout.counters_record() == Some(counters))?;
            layout.apply_counters(state, content).ok()?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_understood_empties_the_state() {
        let known = json!({"added": {"empty_tiers": 4}});
        let state = |record: Value| LayoutStateLog::from_records([known.clone(), record]).current;
        for unknown in [
            json!({"whole": {"future": 1}}),
            json!({"added": {"empty_tiers": "many"}}),
            json!({"future": []}),
            json!({"shown": 5}),
            json!({"tiers": {}, "shown": []}),
            json!([]),
        ] {
            assert!(state(unknown.clone()).is_empty(), "{unknown}");
        }
        assert_eq!(state(json!({"added": {"future": 1}})).empty_tiers, 4, "a new field is ignored");
    }
}

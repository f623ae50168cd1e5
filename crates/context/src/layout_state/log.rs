//! [`LayoutStateLog`]: the layouts' state, and the records that store it in a session file.
//!
//! The base of `strata` contains whole files. It is written when it is laid, and after that only
//! what was added: an update, the frontier. State that is lost costs a fold and nothing else, so
//! nobody needs to wait for a record to be durable.
//!
//! A record is a JSON object with one field: `whole` with the state, `added` with the fields that a
//! request added or changed, or the [name](crate::StateStorage::counters_record) of a layout's
//! counters.

use std::sync::Arc;

use hardpan_prompt::{Hash, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{LayoutState, StateChange};
use crate::LayoutName;
use crate::declared_tools::DeclaredTools;

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
                StateChange::Rewritten => return Some(self.store_whole()),
            }
        }
        match added_declarations(before.declared_tools.as_ref(), self.current.declared_tools.as_ref()) {
            StateChange::Nothing => {}
            StateChange::Added(fields) => added.extend(fields),
            StateChange::Rewritten => return Some(self.store_whole()),
        }
        (!added.is_empty()).then(|| json!({ ADDED: added }))
    }

    fn store_whole(&mut self) -> Value {
        self.stored = self.current.clone();
        json!({ WHOLE: self.current })
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

/// The declared tools in an additions record.
#[derive(Serialize, Deserialize)]
struct DeclaredToolsAddition {
    /// Only where they are others than before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    declared_tools: Option<Arc<Vec<Tool>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    declared_with: Option<Hash>,
}

fn added_declarations(before: Option<&DeclaredTools>, after: Option<&DeclaredTools>) -> StateChange {
    let Some(after) = after else {
        return if before.is_some() { StateChange::Rewritten } else { StateChange::Nothing };
    };
    if before == Some(after) {
        return StateChange::Nothing;
    }
    let is_same = before.is_some_and(|before| before.tools == after.tools);
    StateChange::added(&DeclaredToolsAddition {
        declared_tools: (!is_same).then(|| after.tools.clone()),
        declared_with: Some(after.prefix),
    })
}

fn apply_declarations(state: &mut LayoutState, added: &Value) -> Result<(), serde_json::Error> {
    let DeclaredToolsAddition { declared_tools, declared_with } = DeclaredToolsAddition::deserialize(added)?;
    let former = state.declared_tools.take();
    state.declared_tools = match (declared_with, former) {
        (None, former) => former,
        (Some(prefix), former) => {
            declared_tools.or(former.map(|former| former.tools)).map(|tools| DeclaredTools { tools, prefix })
        }
    };
    Ok(())
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
            apply_declarations(state, &content).ok()?;
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

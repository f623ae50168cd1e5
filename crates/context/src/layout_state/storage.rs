//! [`StateStorage`]: how a layout's part of the [`LayoutState`] is stored in a session.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::LayoutState;

/// What a request changed in a layout's part of the state.
pub enum StateChange {
    /// Nothing that is worth storing now.
    Nothing,
    /// Something was added, or a small value changed: the fields of the record `added`.
    Added(Map<String, Value>),
    /// More than that: the state has to be stored whole.
    Rewritten,
}

impl StateChange {
    /// The fields of an additions record. A layout chooses names that no other layout has.
    pub fn added(fields: &impl Serialize) -> Self {
        match serde_json::to_value(fields) {
            Ok(Value::Object(fields)) => StateChange::Added(fields),
            _ => StateChange::Rewritten,
        }
    }
}

/// How a layout's part of the [`LayoutState`] is stored in a session. The defaults fit a layout
/// that keeps no state.
///
/// A request stores what it added, or the whole state if that does not tell it. Counters that
/// change with every request are stored once per run, in a record of the layout's own: a crash
/// loses the counts of one run.
pub trait StateStorage {
    /// What a request changed, apart from counters.
    fn state_change(&self, _before: &LayoutState, _after: &LayoutState) -> StateChange {
        StateChange::Nothing
    }

    /// Applies the fields of an additions record that are this layout's; the others are ignored.
    fn apply_additions(&self, _state: &mut LayoutState, _added: &Value) -> Result<(), serde_json::Error> {
        Ok(())
    }

    /// The name of the record that stores the layout's counters, if it has any.
    fn counters_record(&self) -> Option<&'static str> {
        None
    }

    /// How the counters differ from those that were stored last; `None` if they do not.
    fn counter_change(&self, _stored: &LayoutState, _now: &LayoutState) -> Option<Value> {
        None
    }

    /// Applies a record of the layout's counters.
    fn apply_counters(&self, _state: &mut LayoutState, _counters: Value) -> Result<(), serde_json::Error> {
        Ok(())
    }

    /// Carries over what a compaction does not end, from the state before it to an empty one.
    fn keep_after_compaction(&self, _before: &LayoutState, _after: &mut LayoutState) {}
}

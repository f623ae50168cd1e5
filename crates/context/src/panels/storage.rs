//! How sessions store the state of `panels`: each frozen history as it is made, what a run begins with
//! and what changes within it, the panels of the last request once per run.

use std::sync::Arc;

use hardpan_prompt::Text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Panels;
use super::state::{FrozenHistory, PanelsState, ShownPanel};
use crate::LayoutState;
use crate::layout_state::{StateChange, StateStorage};
use crate::run_context::RunContextChange;

/// The fields of `panels` in an additions record.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct PanelsAdditions {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    histories: Vec<Arc<FrozenHistory>>,
    /// Only read: since it is written once per run, it has a record of its own.
    #[serde(skip_serializing)]
    shown: Option<Vec<ShownPanel>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    panels_run: Option<RunContextChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    footer: Option<Text>,
}

impl StateStorage for Panels {
    fn state_change(&self, before: &LayoutState, after: &LayoutState) -> StateChange {
        // Every field is named, so that a new one forces a decision here.
        let PanelsState { histories, shown: _, run, footer } = &after.panels;
        let Some(added) = histories.strip_prefix(&*before.panels.histories) else {
            return StateChange::Rewritten;
        };
        let panels_run = run.change_since(&before.panels.run);
        if footer.is_none() && before.panels.footer.is_some() {
            return StateChange::Rewritten;
        }
        let footer = footer.clone().filter(|footer| before.panels.footer.as_ref() != Some(footer));
        if added.is_empty() && panels_run.is_none() && footer.is_none() {
            return StateChange::Nothing;
        }
        StateChange::added(&PanelsAdditions { histories: added.to_vec(), shown: None, panels_run, footer })
    }

    fn apply_additions(&self, state: &mut LayoutState, added: &Value) -> Result<(), serde_json::Error> {
        let PanelsAdditions { histories, shown, panels_run, footer } = PanelsAdditions::deserialize(added)?;
        state.panels.histories.extend(histories);
        panels_run.into_iter().for_each(|change| state.panels.run.apply(change));
        state.panels.footer = footer.or(state.panels.footer.take());
        shown.into_iter().for_each(|shown| state.panels.shown = shown);
        Ok(())
    }

    fn counters_record(&self) -> Option<&'static str> {
        Some("shown")
    }

    fn counter_change(&self, stored: &LayoutState, now: &LayoutState) -> Option<Value> {
        let shown = &now.panels.shown;
        (*shown != stored.panels.shown).then(|| serde_json::to_value(shown).unwrap_or_default())
    }

    fn apply_counters(&self, state: &mut LayoutState, counters: Value) -> Result<(), serde_json::Error> {
        state.panels.shown = serde_json::from_value(counters)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::Hash;
    use serde_json::json;

    use super::*;
    use crate::layout_state::LayoutStateLog;

    fn history(id: &str) -> Arc<FrozenHistory> {
        Arc::new(FrozenHistory {
            id: id.into(),
            title: "Old".into(),
            content: Text::new("Words"),
            at_ms: 5,
            messages: vec!["m1".into()],
        })
    }

    #[test]
    fn a_frozen_history_is_stored_at_once_and_hits_at_the_end_of_the_run() {
        let shown = ShownPanel {
            key: "file:a".into(),
            hash: Hash::of(b"a"),
            changed_at_ms: 7,
            hits: 2,
            misses: 1,
            cost: 0.5,
        };
        let mut log = LayoutStateLog::default();
        let mut state = LayoutState::default();
        state.panels.shown.push(shown.clone());
        assert_eq!(log.commit(state.clone()), None);
        state.panels.histories.push(history("H1"));
        let added = log.commit(state.clone()).unwrap();
        assert_eq!(added, json!({"added": {"histories": [history("H1")]}}));
        let counters = log.end_run();
        assert_eq!(counters, [json!({ "shown": [shown] })]);
        assert_eq!(log.end_run(), Vec::<Value>::new());
        let restored = LayoutStateLog::from_records([added].into_iter().chain(counters));
        assert_eq!(*restored.current(), state);
    }

    #[test]
    fn panels_within_an_additions_record_are_still_read() {
        let shown = json!([{"key": "file:a", "hash": Hash::of(b"a"), "changed_at_ms": 7, "hits": 2, "misses": 1, "cost": 0.5}]);
        let restored = LayoutStateLog::from_records([json!({"added": {"shown": shown}})]);
        assert_eq!(serde_json::to_value(&restored.current().panels.shown).unwrap(), shown);
    }
}

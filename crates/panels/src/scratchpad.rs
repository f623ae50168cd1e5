//! [`Scratchpad`] (P9): named cells of text that the model keeps for itself.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::Value;

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshStrategy, Revision};

/// How much all cells hold together, in bytes.
const MAX_BYTES: usize = 32 * 1024;

/// The scratchpad.
#[derive(Debug, Default)]
pub struct Scratchpad {
    cells: Mutex<BTreeMap<String, String>>,
    revision: Revision,
}

impl Scratchpad {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let (name, text) = (call.target()?, call.text()?);
        let mut cells = self.lock();
        let others = cells.iter().filter(|(cell, _)| *cell != name);
        let taken: usize = others.map(|(name, text)| name.len() + text.len()).sum();
        if taken + name.len() + text.len() > MAX_BYTES {
            return Err(ActionError::Full { what: "the scratchpad", limit: format!("{MAX_BYTES} bytes") });
        }
        cells.insert(name.to_owned(), text.trim_end().to_owned());
        Ok(format!("wrote {name}"))
    }

    fn clear(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let name = call.target()?;
        let mut cells = self.lock();
        if cells.remove(name).is_none() {
            let known = cells.keys().cloned().collect();
            return Err(ActionError::NotFound { what: "cell", name: name.into(), known });
        }
        Ok(format!("cleared {name}"))
    }
}

impl Panel for Scratchpad {
    fn key(&self) -> &str {
        "scratchpad"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P9")
    }

    fn title(&self) -> String {
        "Scratchpad".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Derived
    }

    fn revision(&self) -> u64 {
        self.revision.current()
    }

    fn render(&self) -> Option<String> {
        let cells = self.lock();
        let texts: Vec<String> = cells.iter().map(|(name, text)| format!("[{name}]\n{text}")).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    fn actions(&self) -> &'static [PanelAction] {
        const {
            &[
                PanelAction::new("scratch_write", "target: cell, text"),
                PanelAction::new("scratch_clear", "target: cell"),
            ]
        }
    }

    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let done = match call.action {
            "scratch_write" => self.write(call)?,
            "scratch_clear" => self.clear(call)?,
            _ => return Err(ActionError::UnknownAction { action: call.action.to_owned() }),
        };
        self.revision.bump();
        Ok(done)
    }

    fn save(&self) -> Option<Value> {
        let cells = self.lock();
        (!cells.is_empty()).then(|| serde_json::to_value(&*cells).unwrap_or_default())
    }

    fn restore(&self, state: Option<&Value>) {
        let cells = state.and_then(|state| BTreeMap::deserialize(state).ok()).unwrap_or_default();
        *self.lock() = cells;
        self.revision.bump();
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn cells_are_written_replaced_and_cleared() {
        let pad = Scratchpad::default();
        let act = |action, target, text| {
            let call = ActionCall { target, text, ..ActionCall::new(action, Timestamp::UNIX_EPOCH) };
            pad.act(&call).map_err(|error| error.to_string())
        };
        act("scratch_write", Some("plan"), Some("first\n")).unwrap();
        act("scratch_write", Some("facts"), Some("two\nlines")).unwrap();
        act("scratch_write", Some("plan"), Some("second")).unwrap();
        assert_eq!(pad.render().unwrap(), "[facts]\ntwo\nlines\n\n[plan]\nsecond");
        let restored = Scratchpad::default();
        restored.restore(pad.save().as_ref());
        assert_eq!(restored.render(), pad.render());
        act("scratch_clear", Some("facts"), None).unwrap();
        assert_eq!(
            act("scratch_clear", Some("facts"), None).unwrap_err(),
            "there is no cell facts; there is plan"
        );
        let big = "x".repeat(MAX_BYTES);
        assert!(act("scratch_write", Some("big"), Some(&big)).unwrap_err().contains("no room"));
        assert_eq!(pad.render().unwrap(), "[plan]\nsecond");
    }
}

//! [`Logs`] (P8): what happened, with times.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshStrategy, Revision};

/// How many entries are kept; older ones are dropped.
const MAX_ENTRIES: usize = 100;
/// The longest entry, in characters.
const MAX_TEXT: usize = 400;

/// The log that model and agent write.
#[derive(Debug, Default)]
pub struct Logs {
    entries: Mutex<VecDeque<LogEntry>>,
    revision: Revision,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct LogEntry {
    at: Timestamp,
    text: String,
}

impl Logs {
    /// Adds an entry, in one line.
    pub fn record(&self, text: &str, now: Timestamp) {
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = line.chars().take(MAX_TEXT).collect();
        let mut entries = self.lock();
        entries.push_back(LogEntry { at: now, text });
        while entries.len() > MAX_ENTRIES {
            entries.pop_front();
        }
        drop(entries);
        self.revision.bump();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<LogEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Panel for Logs {
    fn key(&self) -> &str {
        "logs"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P8")
    }

    fn title(&self) -> String {
        "Logs".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Derived
    }

    fn revision(&self) -> u64 {
        self.revision.current()
    }

    fn render(&self) -> Option<String> {
        let entries = self.lock();
        let line = |entry: &LogEntry| format!("{} {}", entry.at.strftime("%Y-%m-%d %H:%M:%S"), entry.text);
        let lines: Vec<String> = entries.iter().map(line).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn actions(&self) -> &'static [PanelAction] {
        const { &[PanelAction::new("log", "text")] }
    }

    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        if call.action != "log" {
            return Err(ActionError::UnknownAction { action: call.action.to_owned() });
        }
        self.record(call.text()?, call.now);
        Ok("logged".into())
    }

    fn save(&self) -> Option<Value> {
        let entries = self.lock();
        (!entries.is_empty()).then(|| serde_json::to_value(&*entries).unwrap_or_default())
    }

    fn restore(&self, state: Option<&Value>) {
        let entries = state.and_then(|state| VecDeque::deserialize(state).ok()).unwrap_or_default();
        *self.lock() = entries;
        self.revision.bump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_their_time_and_the_oldest_are_dropped() {
        let logs = Logs::default();
        for number in 0..=MAX_ENTRIES {
            let at = Timestamp::from_second(number as i64).unwrap();
            let text = format!("entry\n{number}");
            logs.act(&ActionCall { text: Some(&text), ..ActionCall::new("log", at) }).unwrap();
        }
        let shown = logs.render().unwrap();
        assert_eq!(shown.lines().count(), MAX_ENTRIES);
        assert_eq!(shown.lines().next().unwrap(), "1970-01-01 00:00:01 entry 1");
        let restored = Logs::default();
        restored.restore(logs.save().as_ref());
        assert_eq!(restored.render().unwrap(), shown);
    }
}

//! Which tools are switched off: stored in the session, so that a resumed conversation declares the
//! tools that it declared before, and its cache is still good.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_session::{PendingSave, Record};
use hardpan_tools::{ToolRegistry, ToolState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::{Agent, lock};
use crate::conversation::Conversation;
use crate::error::AgentError;

/// The `custom_type` of the session entry.
const SWITCHES_ENTRY: &str = "hardpan.tools";

/// The data of the session entry.
#[derive(Default, Serialize, Deserialize)]
struct StoredSwitches {
    off: BTreeSet<Arc<str>>,
}

/// The tools that a session's branch has switched off, from the branch's custom entries.
pub fn switched_off_tools(custom: &BTreeMap<Arc<str>, Value>) -> BTreeSet<Arc<str>> {
    let stored = custom.get(SWITCHES_ENTRY).cloned();
    stored.and_then(|stored| serde_json::from_value::<StoredSwitches>(stored).ok()).unwrap_or_default().off
}

impl Agent {
    /// Switches a tool on or off from the next request on, and stores that in the session. Returns
    /// whether it changed anything. A request with other tools finds nothing in the cache:
    /// [`Agent::forecast_cost`] knows the price.
    pub async fn switch_tool(&self, name: &str, state: ToolState) -> Result<bool, AgentError> {
        let changed = self.tools().switch(name, state)?;
        if let Some(saved) = self.store_tool_switches() {
            saved.await?;
        }
        Ok(changed)
    }

    /// Whether switching a tool loses nothing of the cache: the layout tells the model in a message.
    pub fn tool_changes_are_free(&self) -> bool {
        self.target().takes_tool_changes() && self.layout().layout().appends_tool_changes()
    }

    /// Stores which tools are switched off, if the branch does not say so already.
    pub(crate) fn store_tool_switches(&self) -> Option<PendingSave> {
        let off = self.tools().switched_off();
        lock(&self.inner.conversation).set_switched_off_tools(off, self.now())
    }
}

impl Conversation {
    fn set_switched_off_tools(&mut self, off: BTreeSet<Arc<str>>, now: Timestamp) -> Option<PendingSave> {
        if switched_off_tools(&self.custom) == off {
            return None;
        }
        let data = serde_json::to_value(StoredSwitches { off }).unwrap_or_default();
        self.custom.insert(SWITCHES_ENTRY.into(), data.clone());
        Some(self.append_record(Record::Custom { custom_type: SWITCHES_ENTRY.into(), data }, now))
    }

    /// Switches the tools as the conversation had them. A conversation that has not begun takes them
    /// as they are.
    pub(crate) fn restore_tool_switches(&self, tools: &ToolRegistry) {
        if !self.messages.is_empty() || self.custom.contains_key(SWITCHES_ENTRY) {
            tools.restore_switched_off(switched_off_tools(&self.custom));
        }
    }
}

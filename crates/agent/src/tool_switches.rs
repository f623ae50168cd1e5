//! Which tools are switched off: stored in the session, so that a resumed conversation refuses the
//! calls that it refused before.
//!
//! A switch does not change the tools that requests declare, since nothing would be read from the cache
//! then: the next fold does, or the person pays for it ([`Agent::declare_tools_now`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_context::LayoutName;
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
    /// Switches a tool on or off, and stores that in the session. Returns whether it changed anything.
    /// The calls of a tool that is off are refused from now on; one that no request has declared waits
    /// until the tools are declared anew.
    pub async fn switch_tool(&self, name: &str, state: ToolState) -> Result<bool, AgentError> {
        let changed = self.tools().switch(name, state)?;
        if let Some(saved) = self.store_tool_switches() {
            saved.await?;
        }
        Ok(changed)
    }

    /// Lets the next request declare the tools as they are. It finds nothing in the cache:
    /// [`Agent::forecast_cost`] knows the price. Where a message tells the model of tools, there is no
    /// need to.
    pub async fn declare_tools_now(&self) -> Result<(), AgentError> {
        if self.tool_changes_are_free() {
            return Ok(());
        }
        let saved = lock(&self.inner.conversation).forget_declared_tools(self.now());
        self.note_declared_tools();
        match saved {
            Some(saved) => Ok(saved.await?),
            None => Ok(()),
        }
    }

    /// Lets the registry know which tools requests declare.
    pub(crate) fn note_declared_tools(&self) {
        let layout = self.layout();
        let names = match self.tool_changes_are_free() {
            true => None,
            false => lock(&self.inner.conversation).declared_tools(layout),
        };
        self.tools().set_declared(names);
    }

    /// Whether the model gets to know of switched tools by a message, and nothing of the cache is lost.
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

    /// The names of the tools that requests in this layout declare; none before the first.
    fn declared_tools(&self, layout: LayoutName) -> Option<BTreeSet<Arc<str>>> {
        let tools = self.memory.current().declared_tools(layout)?;
        Some(tools.iter().map(|tool| tool.name.clone()).collect())
    }

    /// Lets the next request declare the tools as they are, and stores that.
    fn forget_declared_tools(&mut self, now: Timestamp) -> Option<PendingSave> {
        let mut state = self.memory.current().clone();
        state.forget_declared_tools();
        let memory = self.memory.commit(state)?;
        Some(self.append_record(Record::Memory { memory }, now))
    }

    /// Switches the tools as the conversation had them. A conversation that has not begun takes them
    /// as they are.
    pub(crate) fn restore_tool_switches(&self, tools: &ToolRegistry) {
        if !self.messages.is_empty() || self.custom.contains_key(SWITCHES_ENTRY) {
            tools.restore_switched_off(switched_off_tools(&self.custom));
        }
    }
}

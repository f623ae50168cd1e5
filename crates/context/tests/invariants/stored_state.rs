//! [`StoredState`]: the layouts' state as sessions store it, as far as the checks read it.

use std::collections::BTreeMap;

use hardpan_context::{LayoutName, LayoutState};
use hardpan_prompt::MessageId;
use serde::Deserialize;
use serde_json::Value;

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct StoredState {
    pub strata: StoredStrata,
    pub panels: StoredPanels,
    tiers_run: StoredRun,
}

/// The items as a run shows them before the conversation.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredRun {
    items: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct StoredStrata {
    base: Vec<StoredGroup>,
    pub updates: Vec<StoredUpdate>,
    pub frontier: Option<StoredFrontier>,
    pub tails: Vec<StoredTail>,
    pub folds: u32,
    pub bases: u32,
}

/// A TAIL that was sent for one turn.
#[derive(Deserialize)]
pub struct StoredTail {
    pub text: String,
}

#[derive(Deserialize)]
struct StoredGroup {
    items: Vec<StoredItem>,
}

#[derive(Deserialize)]
struct StoredItem {
    key: String,
    body: String,
}

#[derive(Deserialize)]
pub struct StoredUpdate {
    key: String,
    pub anchor: MessageId,
    pub form: StoredForm,
    pub body: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredForm {
    Diff,
    Body,
    Said,
    Closed,
}

#[derive(Clone, Copy, Deserialize)]
pub struct StoredFrontier {
    pub blocks: usize,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct StoredPanels {
    pub histories: Vec<Value>,
    run: StoredRun,
}

impl StoredState {
    pub fn new(layout_state: &LayoutState) -> Self {
        let stored = serde_json::to_value(layout_state).expect("a state can be written");
        serde_json::from_value(stored).expect("the stored form has these fields")
    }
}

impl StoredState {
    /// The body of an item before the conversation, in a layout that keeps it within a run.
    pub fn run_body(&self, layout: LayoutName, key: &str) -> Option<&str> {
        let run = match layout {
            LayoutName::Panels => &self.panels.run,
            LayoutName::Tiers => &self.tiers_run,
            LayoutName::Strata | LayoutName::Inline => return None,
        };
        run.items.get(key).map(String::as_str)
    }
}

impl StoredStrata {
    /// What the LOG has told about an item, in order.
    pub fn updates_of(&self, key: &str) -> Vec<&StoredUpdate> {
        self.updates.iter().filter(|update| update.key == key).collect()
    }

    /// The body of an item in BASE.
    pub fn base_body(&self, key: &str) -> Option<&str> {
        let mut items = self.base.iter().flat_map(|group| &group.items);
        items.find(|item| item.key == key).map(|item| item.body.as_str())
    }
}

//! [`SavedPanels`]: what a session stores about its panels.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::PanelIds;

/// What a session stores about its panels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedPanels {
    /// The ids of panels and of open files, by key.
    #[serde(skip_serializing_if = "PanelIds::is_empty")]
    pub ids: PanelIds,
    /// The files that the model opened, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<Arc<str>>,
    /// The panels by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) panels: BTreeMap<Arc<str>, SavedPanel>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SavedPanel {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    #[serde(skip_serializing_if = "is_first_page")]
    pub page: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    #[serde(skip_serializing_if = "is_zero")]
    pub changed_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

fn is_first_page(page: &usize) -> bool {
    *page <= 1
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl SavedPanels {
    /// Without the panels that would be opened again: for a conversation that somebody else may have
    /// written, which must start nothing.
    pub fn without_opened_panels(mut self) -> Self {
        self.panels.retain(|key, _| !key.contains(':'));
        self
    }
}

//! [`PanelsState`]: what `panels` carries over from one request to the next.

use std::sync::Arc;

use hardpan_prompt::{Hash, MessageId, Text};
use serde::{Deserialize, Serialize};

use crate::run_context::RunContext;

/// What `panels` carries over: frozen conversation, and the panels of the last request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PanelsState {
    /// Stretches of conversation that were moved into panels, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histories: Vec<Arc<FrozenHistory>>,
    /// The panels of the last request, in the order they were sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<ShownPanel>,
    /// What stands before the conversation within a run.
    #[serde(skip_serializing_if = "RunContext::is_empty")]
    pub run: RunContext,
    /// The text that ends the panels: it keeps its times within a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<Text>,
}

impl PanelsState {
    /// True before the first request in `panels`.
    pub fn is_empty(&self) -> bool {
        *self == PanelsState::default()
    }
}

/// A stretch of old conversation, frozen into a panel of the `panels` layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrozenHistory {
    /// The panel's id: `H1`, `H2`, …
    pub id: Arc<str>,
    /// The panel's header, which names the first and the last message.
    pub title: Arc<str>,
    /// The messages as text, as the panel shows them.
    pub content: Text,
    /// When its last message was written, or else when it was frozen, in milliseconds since 1970.
    pub at_ms: i64,
    /// The ids of the messages it replaces; these are no longer sent as messages.
    pub messages: Vec<MessageId>,
}

/// A panel as the last request sent it, and how well it has been cached so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownPanel {
    /// The key of the item it shows.
    pub key: Arc<str>,
    /// The hash of its content, to see whether the next request sends the same.
    pub hash: Hash,
    /// When its content last changed, in milliseconds since 1970.
    #[serde(default)]
    pub changed_at_ms: i64,
    /// In how many requests it and every panel before it were unchanged (a cache hit).
    pub hits: u32,
    /// In how many requests it, or a panel before it, had changed.
    pub misses: u32,
    /// What it has cost so far, in dollars.
    pub cost: f64,
}

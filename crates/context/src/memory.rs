//! What the layouts remember from request to request.

use std::sync::Arc;

use hardpan_prompt::{Hash, Kind, MessageId, Text};
use serde::{Deserialize, Serialize};

use crate::Tracker;

/// The memory of all layouts. Assembly takes one and returns the next, and
/// [`after_response`](crate::after_response) counts on in `tiers`; nothing else changes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// What `panels` remembers.
    #[serde(skip_serializing_if = "PanelsMemory::is_empty")]
    pub panels: PanelsMemory,
    /// What `strata` remembers.
    #[serde(skip_serializing_if = "StrataMemory::is_empty")]
    pub strata: StrataMemory,
    /// What `tiers` knows of how stable things are.
    #[serde(skip_serializing_if = "Tracker::is_empty")]
    pub tiers: Tracker,
    /// How many tiers `tiers` has skipped since the session began.
    #[serde(skip_serializing_if = "is_zero")]
    pub empty_tiers: u32,
}

fn is_empty(groups: &Arc<Vec<Group>>) -> bool {
    groups.is_empty()
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Memory {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        *self == Memory::default()
    }
}

/// What `panels` remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PanelsMemory {
    /// Conversation that was detached, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histories: Vec<Arc<FrozenHistory>>,
    /// The panels of the last request in order, with the hash of their content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<ShownPanel>,
}

impl PanelsMemory {
    fn is_empty(&self) -> bool {
        *self == PanelsMemory::default()
    }
}

/// A stretch of conversation, frozen into a panel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrozenHistory {
    /// The panel's id.
    pub id: Arc<str>,
    /// Its header.
    pub title: Arc<str>,
    /// Its content.
    pub content: Text,
    /// When it was frozen, in milliseconds since 1970.
    pub at_ms: i64,
    /// The messages it holds.
    pub messages: Vec<MessageId>,
}

/// A panel as the last request had it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownPanel {
    /// The item's key.
    pub key: Arc<str>,
    /// The hash of its content.
    pub hash: Hash,
    /// Requests in which it and all before it were unchanged.
    pub hits: u32,
    /// Requests in which it was not.
    pub misses: u32,
    /// What it has cost so far, in dollars.
    pub cost: f64,
}

/// What `strata` remembers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StrataMemory {
    /// The groups of BASE as they were last folded; empty before the first request.
    #[serde(skip_serializing_if = "is_empty")]
    pub base: Arc<Vec<Group>>,
    /// Whether BASE has been laid: an empty one counts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub laid: bool,
    /// What was told in the conversation since, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Update>,
    /// Messages whose shown content moved to BASE, with the item it belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stubs: Vec<Stub>,
    /// How far the last request was cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frontier: Option<Frontier>,
    /// The hash of the last TAIL, the clock left aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<Hash>,
    /// How many folds there have been.
    pub folds: u32,
    /// What has been paid for garbage since the last one.
    #[serde(skip_serializing_if = "Account::is_empty")]
    pub account: Account,
}

/// The rent for garbage, and what a fold would cost: as the last request left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Account {
    /// Paid for garbage since the last fold, in units of one token of input.
    pub rent: f64,
    /// Tokens after the system prompt.
    pub after: usize,
    /// Tokens of garbage among them.
    pub garbage: usize,
}

impl Account {
    fn is_empty(&self) -> bool {
        *self == Account::default()
    }
}

impl StrataMemory {
    fn is_empty(&self) -> bool {
        *self == StrataMemory::default()
    }
}

/// A group of items in BASE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The group's name: its volatility.
    pub name: Arc<str>,
    /// Its items in order.
    pub items: Vec<Placed>,
}

/// An item as it stands in BASE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// The item's key.
    pub key: Arc<str>,
    /// What a person calls it, where the key does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// What sort of thing it is.
    pub kind: Kind,
    /// Its body as it was placed.
    pub body: Text,
}

/// Something told in the conversation about an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The item's key.
    pub key: Arc<str>,
    /// What sort of thing it is.
    pub kind: Kind,
    /// The message it was told with: the prompt, or the last result of a tool round.
    pub anchor: MessageId,
    /// Whether it is a diff, a body, or a farewell.
    pub form: UpdateForm,
    /// The text as sent.
    pub text: Text,
    /// The item's body after it; none once it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Text>,
}

/// How an update says what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateForm {
    /// The difference to what was shown before.
    Diff,
    /// The whole body.
    Body,
    /// The message it was told with shows the body itself: nothing is added.
    Said,
    /// The item was closed.
    Closed,
}

/// A message whose shown content moved to BASE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stub {
    /// The message.
    pub message: MessageId,
    /// The item.
    pub key: Arc<str>,
}

/// How far a request was cached: so many blocks, with this hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frontier {
    /// Blocks up to and including the last breakpoint, tools counted.
    pub blocks: usize,
    /// The hash over them.
    pub hash: Hash,
}

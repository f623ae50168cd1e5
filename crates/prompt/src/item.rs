//! Keyed, mutable context.
//!
//! The principal type is [`Item`]: a file, a panel, a page, a symbol map entry. An item keeps its
//! key for good while its body changes; a layout decides where its current body goes.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ItemKind, MessageId, Text};

/// A stability tier of the `tiers` layout, from most to least stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Tier {
    /// Unchanged for 12 or more responses.
    L0,
    /// Unchanged for 9 or more responses.
    L1,
    /// Unchanged for 6 or more responses.
    L2,
    /// Unchanged for 3 or more responses: where items enter the cached part.
    L3,
    /// Changed within the last few responses; never cached.
    #[serde(rename = "active")]
    Active,
}

impl Tier {
    /// Every tier, most stable first.
    pub const ALL: [Tier; 5] = [Tier::L0, Tier::L1, Tier::L2, Tier::L3, Tier::Active];

    /// For how many responses an item must have been unchanged to be in this tier. `None` for the
    /// active tier, which takes everything.
    pub fn threshold(self) -> Option<u32> {
        match self {
            Tier::L0 => Some(12),
            Tier::L1 => Some(9),
            Tier::L2 => Some(6),
            Tier::L3 => Some(3),
            Tier::Active => None,
        }
    }
}

/// How often an item is expected to change. `strata` orders the items of BASE by it, so that a
/// change loses little of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Volatility {
    /// Practically never: a fetched page.
    #[serde(rename = "still")]
    Static,
    /// Now and then: the symbol map, the tree.
    #[serde(rename = "calm")]
    Slow,
    /// While being worked on: files, panels.
    #[serde(rename = "lively")]
    Active,
    /// Every turn: clock, git status, consoles. Such an item goes into TAIL and is never cached.
    Tail,
}

/// One piece of keyed, mutable context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Identifies the item for good: `file:src/a.rs`, `symbols:src/a.rs`, `panel:todo`,
    /// `url:https://…`, `tree`.
    pub key: Arc<str>,
    /// The id under which the model sees it in the `panels` layout: `P1`, `P10`, `chat`.
    pub id: Arc<str>,
    /// The column of the breakdown that its tokens count towards.
    pub kind: ItemKind,
    /// The name a person knows it by: a path, a panel's name, a page's title.
    pub title: Arc<str>,
    /// The current text, as the model should see it.
    pub body: Text,
    /// When the body last changed, in milliseconds since 1970.
    pub changed_at_ms: i64,
    /// How often the body is expected to change.
    pub volatility: Volatility,
    /// Its tier in the `tiers` layout. `None`: the tracker has not assigned one.
    pub tier: Option<Tier>,
    /// For how many responses the body has been unchanged. `None`: not tracked.
    pub unchanged_responses: Option<u32>,
    /// The message that already shows this very body, such as the result of a read or the call of a
    /// write. `None`: no message does.
    pub shown_by: Option<MessageId>,
}

impl Item {
    /// The path or address in the key: what follows the first colon (`src/a.rs` of
    /// `file:src/a.rs`).
    pub fn name(&self) -> &str {
        key_name(&self.key)
    }
}

/// The path or address in an item's key, see [`Item::name`].
pub fn key_name(key: &str) -> &str {
    key.split_once(':').map_or(key, |(_, name)| name)
}

//! Keyed, mutable context.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Kind, MessageId, Text};

/// A stability tier of the `tiers` layout, from most to least stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Tier {
    /// 12 or more responses unchanged.
    L0,
    /// 9 or more.
    L1,
    /// 6 or more.
    L2,
    /// 3 or more.
    L3,
    /// Changed recently.
    #[serde(rename = "active")]
    Active,
}

impl Tier {
    /// Every tier, most stable first.
    pub const ALL: [Tier; 5] = [Tier::L0, Tier::L1, Tier::L2, Tier::L3, Tier::Active];

    /// How many unchanged responses an item needs to be here; none for active.
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

/// How often an item is expected to change: the order of BASE in `strata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Volatility {
    /// Practically never: a fetched page.
    Still,
    /// Now and then: the symbol map, the tree.
    Calm,
    /// While being worked on: files, panels.
    Lively,
    /// Every turn: clock, git status, consoles. Such an item is never cached.
    Tail,
}

/// One piece of keyed, mutable context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What it is, for good: `file:src/a.rs`, `symbols:src/a.rs`, `panel:todo`, `url:https://…`, `tree`.
    pub key: Arc<str>,
    /// The name the model sees in `panels`: `P1`, `P10`, `chat`.
    pub id: Arc<str>,
    /// What sort of thing it is.
    pub kind: Kind,
    /// What a person calls it: a path, a panel's name, a page's title.
    pub title: Arc<str>,
    /// What the model is to see.
    pub body: Text,
    /// When the body last changed, in milliseconds since 1970.
    pub changed_at_ms: i64,
    /// How often it changes.
    pub volatility: Volatility,
    /// Its tier in `tiers`, where the tracker has assigned one.
    pub tier: Option<Tier>,
    /// For how many responses it has been unchanged, where tracked.
    pub n: Option<u32>,
    /// The message that already shows this body (a read's result, a write's call), if one does.
    pub said_by: Option<MessageId>,
}

impl Item {
    /// The path or address in the key: what follows the first colon.
    pub fn name(&self) -> &str {
        self.key.split_once(':').map_or(&self.key, |(_, name)| name)
    }
}

//! What moved between the tiers, and why.

use std::fmt;
use std::sync::Arc;

use hardpan_prompt::Tier;
use serde::Serialize;

/// A move between tiers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// What moved: `file:PATH`, `symbol:PATH` or `history:ID`.
    pub key: Arc<str>,
    /// Where it was shown; none if it was not.
    pub from: Option<Tier>,
    /// Where it will be shown; none if it will not.
    pub to: Option<Tier>,
    /// Why.
    pub reason: Reason,
}

/// Why something moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It has not been shown before.
    New,
    /// Its content changed.
    Changed,
    /// It is no longer shown.
    Gone,
    /// A symbol entry stepped aside for its file.
    FileOpened,
    /// A symbol entry came back: its file is no longer open.
    FileClosed,
    /// It has been unchanged for long enough, and the tier above had to be written anyway.
    Stable {
        /// For how many responses.
        n: u32,
        /// Why the tier above could take it.
        room: Room,
    },
    /// Its tier held too little to be worth a cache entry.
    UnderTarget {
        /// What the tier held.
        tokens: usize,
        /// What it should have held.
        target: usize,
    },
    /// An older exchange fell, and the conversation keeps its order.
    OlderFell,
}

/// Why a tier can take something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Room {
    /// It is rewritten anyway.
    Broken,
    /// Nothing is in it.
    Empty,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::New => f.write_str("shown for the first time"),
            Reason::Changed => f.write_str("its content changed"),
            Reason::Gone => f.write_str("no longer shown"),
            Reason::FileOpened => f.write_str("the file itself is open"),
            Reason::FileClosed => f.write_str("its file was closed: back to the tier it had earned"),
            Reason::Stable { n, room } => {
                let room = match room {
                    Room::Broken => "is rewritten anyway",
                    Room::Empty => "was empty",
                };
                write!(f, "unchanged for {n} responses, and the tier above {room}")
            }
            Reason::UnderTarget { tokens, target } => {
                write!(f, "its tier held {tokens} tokens, less than the {target} worth caching")
            }
            Reason::OlderFell => f.write_str("an older exchange fell, and the conversation keeps its order"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { key, from, to, reason } = self;
        match (from.map(name), to.map(name)) {
            (Some(from), Some(to)) => write!(f, "{key} moves from {from} to {to}: {reason}"),
            (None, Some(to)) => write!(f, "{key} comes to {to}: {reason}"),
            (Some(from), None) => write!(f, "{key} leaves {from}: {reason}"),
            (None, None) => write!(f, "{key}: {reason}"),
        }
    }
}

fn name(tier: Tier) -> &'static str {
    match tier {
        Tier::L0 => "L0",
        Tier::L1 => "L1",
        Tier::L2 => "L2",
        Tier::L3 => "L3",
        Tier::Active => "active",
    }
}

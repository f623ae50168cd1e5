//! [`Keep`]: how much of a conversation a fold may take out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of a conversation requests keep. Whatever a fold takes out can be recalled.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Everything: requests only grow.
    All,
    /// All but repeated and outdated copies of files.
    History,
    /// As `History`, and of outputs only those that no later run of the same command replaced.
    #[default]
    Current,
    /// As `Current`, without what has not been used for long.
    Lean,
}

impl Keep {
    /// All levels, from the one that keeps most.
    pub const ALL: [Keep; 4] = [Keep::All, Keep::History, Keep::Current, Keep::Lean];

    /// The level's name in settings and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Keep::All => "all",
            Keep::History => "history",
            Keep::Current => "current",
            Keep::Lean => "lean",
        }
    }
}

impl std::fmt::Display for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no level of [`Keep`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a level to keep; use all, history, current or lean")]
pub struct UnknownKeep {
    /// The name given.
    pub name: String,
}

impl std::str::FromStr for Keep {
    type Err = UnknownKeep;

    fn from_str(name: &str) -> Result<Self, UnknownKeep> {
        let level = Keep::ALL.into_iter().find(|level| level.as_str() == name);
        level.ok_or_else(|| UnknownKeep { name: name.to_owned() })
    }
}

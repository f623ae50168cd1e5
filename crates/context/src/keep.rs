//! [`KeepLevel`]: how much of a conversation a fold may take out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much of a conversation requests keep. Whatever a fold takes out can be recalled.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum KeepLevel {
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

impl KeepLevel {
    /// All levels, from the one that keeps most.
    pub const ALL: [KeepLevel; 4] = [KeepLevel::All, KeepLevel::History, KeepLevel::Current, KeepLevel::Lean];

    /// The level's name in settings and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            KeepLevel::All => "all",
            KeepLevel::History => "history",
            KeepLevel::Current => "current",
            KeepLevel::Lean => "lean",
        }
    }
}

impl std::fmt::Display for KeepLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no level of [`KeepLevel`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a level to keep; use all, history, current or lean")]
pub struct UnknownKeepLevel {
    /// The name given.
    pub name: String,
}

impl std::str::FromStr for KeepLevel {
    type Err = UnknownKeepLevel;

    fn from_str(name: &str) -> Result<Self, UnknownKeepLevel> {
        let level = KeepLevel::ALL.into_iter().find(|level| level.as_str() == name);
        level.ok_or_else(|| UnknownKeepLevel { name: name.to_owned() })
    }
}

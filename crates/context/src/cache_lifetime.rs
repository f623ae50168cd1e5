//! [`LifetimeSetting`]: for how long the provider is asked to keep what requests cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// For how long the provider is asked to keep what requests cache, where it offers two lifetimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum LifetimeSetting {
    /// As long as is expected to cost least, by the pauses of the conversation so far.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// The short lifetime: five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// The long lifetime: an hour.
    #[serde(rename = "1h")]
    OneHour,
}

impl LifetimeSetting {
    /// All settings, the default first.
    pub const ALL: [LifetimeSetting; 3] =
        [LifetimeSetting::Auto, LifetimeSetting::FiveMinutes, LifetimeSetting::OneHour];

    /// The name in settings and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            LifetimeSetting::Auto => "auto",
            LifetimeSetting::FiveMinutes => "5m",
            LifetimeSetting::OneHour => "1h",
        }
    }

    /// True for the default, which files leave out.
    pub fn is_auto(&self) -> bool {
        *self == LifetimeSetting::Auto
    }
}

impl std::fmt::Display for LifetimeSetting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is no [`LifetimeSetting`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a lifetime of cache entries; use auto, 5m or 1h")]
pub struct UnknownLifetime {
    /// The name given.
    pub name: String,
}

impl std::str::FromStr for LifetimeSetting {
    type Err = UnknownLifetime;

    fn from_str(name: &str) -> Result<Self, UnknownLifetime> {
        let setting = LifetimeSetting::ALL.into_iter().find(|setting| setting.as_str() == name);
        setting.ok_or_else(|| UnknownLifetime { name: name.to_owned() })
    }
}

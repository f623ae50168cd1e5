//! How much a model reasons before it answers: [`Thinking`] and [`Effort`], as a request says it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The form of thinking that a request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Thinking {
    /// The request says nothing: the model does what it does by itself.
    #[default]
    Unspecified,
    /// No thinking.
    Disabled,
    /// Thinking only between tool calls: the least that some models take.
    BetweenTools,
    /// The model decides how long it thinks.
    Adaptive,
    /// Thinking with a budget of so many tokens, which count towards `max_tokens`.
    Budget(u32),
}

impl Thinking {
    /// Whether the request turns thinking on.
    pub fn is_on(self) -> bool {
        matches!(self, Thinking::Adaptive | Thinking::Budget(_))
    }

    /// The budget in tokens. `None`: the request gives none.
    pub fn budget(self) -> Option<u32> {
        match self {
            Thinking::Budget(tokens) => Some(tokens),
            Thinking::Unspecified | Thinking::Disabled | Thinking::BetweenTools | Thinking::Adaptive => None,
        }
    }
}

impl fmt::Display for Thinking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Thinking::Unspecified => f.write_str("unspecified"),
            Thinking::Disabled => f.write_str("disabled"),
            Thinking::BetweenTools => f.write_str("between_tools"),
            Thinking::Adaptive => f.write_str("adaptive"),
            Thinking::Budget(tokens) => write!(f, "{tokens} tokens"),
        }
    }
}

/// How much work a model puts into an answer: reasoning, tool calls and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No reasoning at all.
    None,
    /// As little reasoning as possible.
    Minimal,
    /// Fast and cheap.
    Low,
    /// Between fast and thorough.
    Medium,
    /// Thorough.
    High,
    /// More thorough than `high`, at a higher price.
    #[serde(rename = "xhigh")]
    XHigh,
    /// Everything the model can do.
    Max,
}

impl Effort {
    /// All levels, from the least to the most.
    pub const ALL: [Effort; 7] = [
        Effort::None,
        Effort::Minimal,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::XHigh,
        Effort::Max,
    ];

    /// The word that requests carry.
    pub fn as_str(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::XHigh => "xhigh",
            Effort::Max => "max",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no level of effort.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown effort \"{0}\"; the levels are none, minimal, low, medium, high, xhigh and max")]
pub struct UnknownEffort(pub String);

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(word: &str) -> Result<Self, UnknownEffort> {
        let level = Effort::ALL.into_iter().find(|effort| effort.as_str() == word);
        level.ok_or_else(|| UnknownEffort(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_survives_its_word_and_its_json() {
        for effort in Effort::ALL {
            assert_eq!(effort.as_str().parse(), Ok(effort));
            assert_eq!(serde_json::to_string(&effort).unwrap(), format!("\"{effort}\""));
        }
        assert_eq!("huge".parse::<Effort>(), Err(UnknownEffort("huge".into())));
    }

    #[test]
    fn levels_are_ordered_from_the_least_to_the_most() {
        assert!(Effort::ALL.is_sorted());
    }
}

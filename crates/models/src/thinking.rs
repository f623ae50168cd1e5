//! What a person asks of a model's thinking ([`ThinkingSetting`]), what the model offers
//! ([`ThinkingSupport`]), and what a request then says ([`ThinkingRequest`]).

use std::fmt;
use std::str::FromStr;

use hardpan_prompt::{Effort, Thinking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much the model shall think, as a person says it. Its text form is `default`, `off`, a level
/// such as `high`, or a number of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkingSetting {
    /// What the model does by itself.
    #[default]
    Default,
    /// As little as the model allows.
    Off,
    /// A level of effort.
    Level(Effort),
    /// At most so many tokens.
    Budget(u32),
}

/// A text that is no thinking setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no thinking level; the levels are off, minimal, low, medium, high, xhigh, max, a number of tokens, or default"
)]
pub struct UnknownThinkingLevel(pub String);

impl FromStr for ThinkingSetting {
    type Err = UnknownThinkingLevel;

    fn from_str(text: &str) -> Result<Self, UnknownThinkingLevel> {
        match text {
            "default" | "auto" => return Ok(ThinkingSetting::Default),
            "off" | "none" | "0" => return Ok(ThinkingSetting::Off),
            _ => {}
        }
        let level = text.parse().map(ThinkingSetting::Level).ok();
        let budget = || text.parse().map(ThinkingSetting::Budget).ok();
        level.or_else(budget).ok_or_else(|| UnknownThinkingLevel(text.to_owned()))
    }
}

impl fmt::Display for ThinkingSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThinkingSetting::Default => f.write_str("default"),
            ThinkingSetting::Off => f.write_str("off"),
            ThinkingSetting::Level(effort) => write!(f, "{effort}"),
            ThinkingSetting::Budget(tokens) => write!(f, "{tokens}"),
        }
    }
}

/// How a model's thinking is turned off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingOff {
    /// By saying nothing: the model thinks only if asked.
    #[default]
    Unspecified,
    /// By saying that it is disabled.
    Disabled,
    /// By asking for thinking between tool calls only.
    BetweenTools,
    /// Not at all: the model always thinks.
    Never,
}

/// What a model offers for thinking. The default is a model that cannot be told anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ThinkingSupport {
    /// Whether it takes thinking whose length it decides itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adaptive: bool,
    /// Whether it takes a budget in tokens.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub budget: bool,
    /// Whether it thinks when a request says nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_default: bool,
    /// How thinking is turned off.
    pub off: ThinkingOff,
    /// The levels of effort that it takes; empty if it takes none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub efforts: Vec<Effort>,
    /// Its effort when a request says nothing. Requests say it all the same: models differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_effort: Option<Effort>,
    /// The highest effort that goes with thinking turned off. Absent: all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_effort_when_off: Option<Effort>,
    /// Whether old reasoning stays in the context only until the person's next message.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub last_turn_only: bool,
    /// Whether reasoning comes without its text unless a request asks for a summary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hidden_by_default: bool,
}

/// What a request says about thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThinkingRequest {
    /// The form of thinking.
    pub thinking: Thinking,
    /// The effort. `None`: the request does not say.
    pub effort: Option<Effort>,
    /// What was replaced, because the model does not offer what was asked for.
    pub substitution: Option<ThinkingSubstitution>,
}

/// What a request says in place of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThinkingSubstitution {
    /// The model does not think, or cannot be told how much.
    #[error("this model's thinking cannot be set; nothing is sent about it")]
    CannotBeSet,
    /// The model always thinks; it is asked for as little as possible.
    #[error("this model always thinks; its lowest effort is used instead{}", .effort.map(|effort| format!(": {effort}")).unwrap_or_default())]
    AlwaysThinks {
        /// The effort that is sent, if the model takes one.
        effort: Option<Effort>,
    },
    /// The model does not offer the level.
    #[error("this model has no effort {asked}; {sent} is used")]
    OtherEffort {
        /// The level asked for.
        asked: Effort,
        /// The nearest level that the model has.
        sent: Effort,
    },
    /// The model takes levels, not budgets.
    #[error("this model takes no thinking budget; effort {sent} is used for {tokens} tokens")]
    EffortForBudget {
        /// The budget asked for.
        tokens: u32,
        /// The level that comes nearest.
        sent: Effort,
    },
    /// The model takes budgets, not levels.
    #[error("this model takes a thinking budget; {tokens} tokens are used for {asked}")]
    BudgetForEffort {
        /// The level asked for.
        asked: Effort,
        /// The budget that stands for it.
        tokens: u32,
    },
}

/// The smallest thinking budget that providers take, in tokens (Anthropic's).
const MIN_BUDGET: u32 = 1024;

impl ThinkingSupport {
    /// Whether a request can say anything about this model's thinking.
    pub fn can_be_set(&self) -> bool {
        self.adaptive || self.budget || !self.efforts.is_empty()
    }

    /// What a request says for a setting, in the nearest form that the model has. `max_tokens`: the
    /// limit of the answer, which thinking counts towards.
    pub fn request(&self, setting: ThinkingSetting, max_tokens: u32) -> ThinkingRequest {
        if !self.can_be_set() {
            let substitution = matches!(setting, ThinkingSetting::Level(_) | ThinkingSetting::Budget(_))
                .then_some(ThinkingSubstitution::CannotBeSet);
            return ThinkingRequest { substitution, ..ThinkingRequest::default() };
        }
        match setting {
            ThinkingSetting::Default => ThinkingRequest {
                thinking: if self.by_default { self.open_form() } else { Thinking::Unspecified },
                effort: self.default_effort,
                substitution: None,
            },
            ThinkingSetting::Off | ThinkingSetting::Budget(0) | ThinkingSetting::Level(Effort::None) => {
                self.request_off()
            }
            ThinkingSetting::Level(asked) => self.request_level(asked, max_tokens),
            ThinkingSetting::Budget(tokens) => self.request_budget(tokens),
        }
    }

    /// Thinking whose length the model decides itself, as far as a request can say so.
    fn open_form(&self) -> Thinking {
        if self.adaptive { Thinking::Adaptive } else { Thinking::Unspecified }
    }

    fn request_off(&self) -> ThinkingRequest {
        let capped = |effort: Effort| self.max_effort_when_off.map_or(effort, |most| effort.min(most));
        let off = |thinking, effort| ThinkingRequest { thinking, effort, substitution: None };
        if self.efforts.contains(&Effort::None) {
            return off(Thinking::Unspecified, Some(Effort::None));
        }
        match self.off {
            ThinkingOff::Unspecified => off(Thinking::Unspecified, self.default_effort),
            ThinkingOff::Disabled => off(Thinking::Disabled, self.default_effort.map(capped)),
            ThinkingOff::BetweenTools => off(Thinking::BetweenTools, self.default_effort.map(capped)),
            ThinkingOff::Never => {
                let effort = self.efforts.iter().min().copied();
                ThinkingRequest {
                    thinking: self.open_form(),
                    effort,
                    substitution: Some(ThinkingSubstitution::AlwaysThinks { effort }),
                }
            }
        }
    }

    fn request_level(&self, asked: Effort, max_tokens: u32) -> ThinkingRequest {
        let sent = self.nearest_effort(asked);
        let other = sent.filter(|sent| *sent != asked);
        let substitution = other.map(|sent| ThinkingSubstitution::OtherEffort { asked, sent });
        if self.budget && !self.adaptive {
            let tokens = budget_for(asked).min(max_tokens / 2).max(MIN_BUDGET);
            let in_place = ThinkingSubstitution::BudgetForEffort { asked, tokens };
            let substitution = if sent == Some(asked) { None } else { Some(in_place) };
            return ThinkingRequest { thinking: Thinking::Budget(tokens), effort: sent, substitution };
        }
        ThinkingRequest { thinking: self.open_form(), effort: sent, substitution }
    }

    fn request_budget(&self, tokens: u32) -> ThinkingRequest {
        if self.budget {
            let effort = self.default_effort;
            return ThinkingRequest { thinking: Thinking::Budget(tokens), effort, substitution: None };
        }
        let sent = self.nearest_effort(effort_for(tokens));
        let substitution = sent.map(|sent| ThinkingSubstitution::EffortForBudget { tokens, sent });
        ThinkingRequest { thinking: self.open_form(), effort: sent, substitution }
    }

    /// The offered level nearest to the one asked for; of two equally near, the lower. `none` is
    /// never a stand-in: it turns thinking off.
    fn nearest_effort(&self, asked: Effort) -> Option<Effort> {
        let offered = self.efforts.iter().copied().filter(|effort| *effort != Effort::None);
        offered.min_by_key(|effort| ((*effort as i32 - asked as i32).abs(), *effort))
    }
}

/// The budget that stands for a level, in tokens.
fn budget_for(effort: Effort) -> u32 {
    match effort {
        Effort::None => 0,
        Effort::Minimal => MIN_BUDGET,
        Effort::Low => 4_000,
        Effort::Medium => 10_000,
        Effort::High => 24_000,
        Effort::XHigh => 48_000,
        Effort::Max => 64_000,
    }
}

/// The level that stands for a budget: the smallest whose own budget covers it.
fn effort_for(tokens: u32) -> Effort {
    let levels = [Effort::Low, Effort::Medium, Effort::High, Effort::XHigh];
    levels.into_iter().find(|level| tokens <= budget_for(*level)).unwrap_or(Effort::Max)
}

#[cfg(test)]
mod tests;

//! What a provider says about a request besides its answer: [`CacheDiagnosis`], its own reason for
//! a cache loss, and [`DroppedReasoning`], the reasoning that it did not pass on.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A provider's own comparison of a request with the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CacheDiagnosis {
    /// The requests agree as far as the later one continues the earlier one.
    NoDifference,
    /// Something differs; only the first difference is named.
    Changed {
        /// What differs.
        part: ChangedPart,
        /// The provider's estimate of the tokens after the difference. `None`: it gave none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed_tokens: Option<u64>,
    },
    /// The comparison was not ready when the answer began.
    Pending,
    /// The provider does not know the earlier request any more.
    PreviousNotFound,
    /// The provider cannot tell.
    Unavailable,
}

impl CacheDiagnosis {
    /// The part that differs. `None`: nothing does, or nothing is known.
    pub fn changed_part(&self) -> Option<ChangedPart> {
        match self {
            CacheDiagnosis::Changed { part, .. } => Some(*part),
            CacheDiagnosis::NoDifference
            | CacheDiagnosis::Pending
            | CacheDiagnosis::PreviousNotFound
            | CacheDiagnosis::Unavailable => None,
        }
    }

    /// Whether the provider compared the requests and says how that ended.
    pub fn is_conclusive(&self) -> bool {
        matches!(self, CacheDiagnosis::NoDifference | CacheDiagnosis::Changed { .. })
    }
}

impl fmt::Display for CacheDiagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CacheDiagnosis::NoDifference => f.write_str("nothing changed"),
            CacheDiagnosis::Changed { part, missed_tokens: None } => write!(f, "{part} changed"),
            CacheDiagnosis::Changed { part, missed_tokens: Some(tokens) } => {
                write!(f, "{part} changed, about {tokens} tokens before the end")
            }
            CacheDiagnosis::Pending => f.write_str("the comparison was not ready"),
            CacheDiagnosis::PreviousNotFound => f.write_str("the earlier request is not known any more"),
            CacheDiagnosis::Unavailable => f.write_str("no reason can be given"),
        }
    }
}

/// A part of a request that a provider compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedPart {
    /// The model, or its speed.
    Model,
    /// The system prompt.
    System,
    /// The declared tools.
    Tools,
    /// An earlier message.
    Messages,
    /// The system prompt or an earlier message, which this provider does not tell apart.
    Input,
    /// The key that separates caches.
    CacheKey,
    /// The effort.
    Effort,
    /// The format or the verbosity of the answer.
    OutputFormat,
    /// The service tier.
    ServiceTier,
}

impl ChangedPart {
    /// Whether a change of `other` is one of this part.
    pub fn includes(self, other: ChangedPart) -> bool {
        let is_input = matches!(other, ChangedPart::System | ChangedPart::Messages);
        self == other || (self == ChangedPart::Input && is_input)
    }
}

impl fmt::Display for ChangedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChangedPart::Model => "the model",
            ChangedPart::System => "the system prompt",
            ChangedPart::Tools => "the tools",
            ChangedPart::Messages => "an earlier message",
            ChangedPart::Input => "the system prompt or an earlier message",
            ChangedPart::CacheKey => "the cache key",
            ChangedPart::Effort => "the effort",
            ChangedPart::OutputFormat => "the output format",
            ChangedPart::ServiceTier => "the service tier",
        })
    }
}

/// Reasoning that the provider took out of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedReasoning {
    /// Where it was in the request: `messages.3.content.0`.
    pub path: String,
    /// Why, in the provider's word: `prefix_binding_mismatch`.
    pub reason: String,
}

impl DroppedReasoning {
    /// Whether something before it had been changed by us.
    pub fn is_our_fault(&self) -> bool {
        self.reason == "prefix_binding_mismatch"
    }
}

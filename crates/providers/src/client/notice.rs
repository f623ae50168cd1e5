//! [`ClientNotice`]: what a user should know about how an answer was obtained.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hardpan_prompt::DroppedReasoning;

use super::UnsupportedFeature;
use crate::ProviderError;

/// Something that happened while an answer was requested, other than the answer itself. Its
/// `Display` is a sentence for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientNotice {
    /// The request failed and is sent again after a wait.
    Retry {
        /// Why it failed.
        error: ProviderError,
        /// How long the client waits before it sends the request again.
        wait: Duration,
        /// The number of the attempt that follows; the first is 1.
        attempt: u32,
        /// The maximum number of attempts.
        tries: u32,
    },
    /// The model refused a feature, and the request is sent again without it.
    Downgrade {
        /// The model's id.
        model: Arc<str>,
        /// What the model refused.
        feature: UnsupportedFeature,
    },
    /// The connection broke in the middle of the answer. What came is kept.
    BrokenOff {
        /// How it broke.
        error: ProviderError,
    },
    /// The provider took earlier reasoning out of the request.
    DroppedReasoning {
        /// What was taken out, and why.
        dropped: Vec<DroppedReasoning>,
    },
    /// The provider's own tool searches the web.
    WebSearch {
        /// What it searches for; empty if the provider does not say.
        query: String,
    },
    /// A part of the answer is of a type that Hardpan does not know, and is missing from it.
    SkippedPart {
        /// The provider's name of the type.
        part_type: String,
    },
}

impl ClientNotice {
    /// Whether the request is sent again, so that its answer belongs to a later moment.
    pub fn restarts_request(&self) -> bool {
        match self {
            ClientNotice::Retry { .. } | ClientNotice::Downgrade { .. } => true,
            ClientNotice::BrokenOff { .. }
            | ClientNotice::DroppedReasoning { .. }
            | ClientNotice::WebSearch { .. }
            | ClientNotice::SkippedPart { .. } => false,
        }
    }
}

impl fmt::Display for ClientNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientNotice::Retry { error, wait, attempt, tries } => {
                write!(f, "{error}. Trying again in {:.1} s ({attempt} of {tries})", wait.as_secs_f64())
            }
            ClientNotice::Downgrade { model, feature } => {
                write!(f, "{model} does not take {feature}: the request was sent again without them")
            }
            ClientNotice::BrokenOff { error } => error.fmt(f),
            ClientNotice::DroppedReasoning { dropped } => {
                let ours = dropped.iter().any(DroppedReasoning::is_our_fault);
                let places: Vec<&str> = dropped.iter().map(|one| one.path.as_str()).collect();
                let whose = if ours {
                    "Hardpan changed something before it; this is a fault of ours"
                } else {
                    "it cannot be used here"
                };
                write!(f, "The provider left out earlier reasoning ({}): {whose}.", places.join(", "))
            }
            ClientNotice::WebSearch { query } if query.is_empty() => {
                write!(f, "The provider searches the web.")
            }
            ClientNotice::WebSearch { query } => write!(f, "The provider searches the web: {query}"),
            ClientNotice::SkippedPart { part_type } => {
                write!(f, "A part of the answer, of type `{part_type}`, is not shown.")
            }
        }
    }
}

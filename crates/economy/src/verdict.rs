//! Why a request read less from the cache than it should have.
//!
//! A [`CacheMonitor`] follows one conversation. It keeps a trace of the last prompt (hashes, origins, counts; no texts) and what the
//! provider reported for it, and holds each new request against it. A [`Verdict`] names the first block that differs, the
//! cause, the tokens that were paid again, what that cost, and whose doing it was. It rests on the two prompts, the
//! reported usage and the times alone: no part of the program that changes a prompt has to own up to it.
//!
//! **What should have been read**: what the request before had left in the cache, as its provider reported it: all that it
//! read or wrote up to its last breakpoint. What was never meant to stay (TAIL, the active tier) does not count. Where the
//! prompts differ, only what is in both counts: a new text is not paid *again*.
//!
//! **What is no loss**: a shortfall within the doubt of the figures. Automatic caches keep whole steps of tokens (128 with
//! OpenAI), so a step is always allowed. Where the provider has counted the very prefix for us that is all; elsewhere a part of
//! the prompt is known only by our own count, scaled to the bill. The whole being exact, the error of a part is that of the
//! rest; it is taken as the smaller of both times the doubt about our factor: how far our count of the whole was off, at least
//! 5%.

mod cause; // Cause, Blame, How
mod difference; // what differs first between two prompts
mod previous_request; // what a request left in the cache
#[cfg(test)]
mod tests;
mod trace; // what is remembered of a prompt
mod monitor; // Watch: the conversation, request by request
mod monitor_change; // WatchChange: what is new in a monitor

use serde::{Deserialize, Serialize};

pub use cause::{Blame, Cause, ContentChange};
pub use trace::PieceOrigin;
pub use monitor::CacheMonitor;
pub use monitor_change::CacheMonitorChange;

use crate::format::{format_dollars, format_number, replace_control_characters};

/// Where two prompts differ first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceLocation {
    /// The block, counted through tools, system and messages from 0.
    pub block: usize,
    /// Its name in the request, such as `messages[3].content[1]`.
    pub address: String,
    /// Where it came from, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<PieceOrigin>,
}

/// What is to be said about a request's use of the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// How many tokens it should have read.
    pub expected_read: u64,
    /// How many it read.
    pub read: u64,
    /// Tokens that had been cached and were paid again.
    pub lost_tokens: u64,
    /// What was paid for them beyond the price of reading them.
    pub lost_dollars: f64,
    /// Why.
    pub cause: Cause,
    /// Whose doing it was.
    #[serde(rename = "ours")]
    pub blame: Blame,
    /// Where the prompts differ first, if that is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<DifferenceLocation>,
}

impl Verdict {
    fn without_loss(cause: Cause, expected_read: u64, read: u64) -> Self {
        Verdict {
            expected_read,
            read,
            lost_tokens: 0,
            lost_dollars: 0.0,
            cause,
            blame: Blame::Nobody,
            first_difference: None,
        }
    }

    /// Whether anything was lost.
    pub fn is_loss(&self) -> bool {
        self.lost_tokens > 0
    }

    /// One sentence for a person, and whose doing it was.
    pub fn sentence(&self) -> String {
        let cause = replace_control_characters(&self.cause.describe());
        if !self.is_loss() {
            return match &self.cause {
                Cause::AsExpected if self.read > 0 => {
                    format!("Nothing was paid again: {} tokens were read from the cache.", format_number(self.read))
                }
                Cause::AsExpected => "Nothing was paid again.".into(),
                // Tools and system prompt are often those of another conversation.
                Cause::FirstRequest if self.read > 0 => {
                    let read = format_number(self.read);
                    format!("Nothing was lost: the first request found {read} tokens in the cache already.")
                }
                _ => format!("Nothing was lost: {cause}."),
            };
        }
        let (were, tokens) =
            (format_number(self.lost_tokens), if self.lost_tokens == 1 { "token" } else { "tokens" });
        let price = if self.lost_dollars > 0.0 {
            format!(" ({})", format_dollars(self.lost_dollars))
        } else {
            String::new()
        };
        let origin = self.first_difference.as_ref().and_then(|spot| spot.origin.as_ref());
        // These say that something was laid out anew; where it began says what.
        let wider = matches!(self.cause, Cause::Resumed | Cause::Folded);
        let from = origin.filter(|_| wider).map(|origin| format!(", from {} on", replace_control_characters(&origin.describe())));
        let blame = match self.blame {
            Blame::Us => " Ours.",
            Blame::Provider => " The provider's.",
            Blame::Person => " Yours.",
            Blame::Nobody => "",
        };
        let verb = if self.lost_tokens == 1 { "was" } else { "were" };
        format!("{were} {tokens}{price} {verb} paid again: {cause}{}.{blame}", from.unwrap_or_default())
    }
}

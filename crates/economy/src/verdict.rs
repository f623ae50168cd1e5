//! Why a request read less from the cache than it should have.
//!
//! The principal type is [`CacheMonitor`], which follows one conversation. It keeps a trace of the
//! last prompt (hashes, origins and counts, but no texts) together with what the provider reported
//! for it, and compares each new request with it. The resulting [`Verdict`] names the first block
//! that differs, the cause, the tokens that were paid again, what they cost, and who is to blame.
//! It relies only on the two prompts, the reported usage and the times, so no code that changes a
//! prompt has to report that it did.
//!
//! **What should have been read**: everything that the previous request left in the cache, as its
//! provider reported it, up to its last breakpoint. Content that was never meant to stay (TAIL, the
//! active tier) does not count. Where the prompts differ, only what both contain counts: new text
//! is not paid *again*.
//!
//! **What is not a loss**: a shortfall within the uncertainty of the figures. Automatic caches keep
//! whole steps of tokens (128 at OpenAI), so one step is always tolerated. That is all where the
//! provider counted exactly this prefix. Elsewhere, a part of the prompt is known only by our own
//! count, scaled to the bill. The whole is exact, so the error of a part equals the error of the
//! rest; it is estimated as the smaller of the two times the uncertainty of our factor, which is
//! how far our count of the whole was off, but at least 5%.

mod cause; // Cause, Blame, ContentChange: why a loss happened
mod difference; // Difference: the first change between two prompts
mod monitor; // CacheMonitor: follows a conversation, request by request
mod monitor_change;
mod previous_request; // PreviousRequest: what a request left in the cache
mod reconcile; // VerdictSource: our word and the provider's
mod server_tools; // ToolChanges: whose tools changed
#[cfg(test)]
mod tests;
mod trace; // Trace, PieceOrigin: what is remembered of a prompt // CacheMonitorChange: how a monitor is stored

use std::sync::Arc;

use hardpan_prompt::CacheDiagnosis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cause::{Blame, Cause, ContentChange};
pub use monitor::CacheMonitor;
pub use monitor_change::CacheMonitorChange;
pub use reconcile::VerdictSource;
pub use trace::PieceOrigin;

use crate::format::{format_dollars, format_number, replace_control_characters};

/// The first position at which two prompts differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DifferenceLocation {
    /// Index of the block, counted from 0 through tools, system prompt and messages.
    pub block: usize,
    /// The block's path in the request body, such as `messages[3].content[1]`.
    pub address: String,
    /// What put the block there, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<PieceOrigin>,
}

/// What a request's use of the cache amounts to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Tokens that the request should have read.
    pub expected_read: u64,
    /// Tokens that it did read.
    pub read: u64,
    /// Tokens that had been cached and were paid again.
    pub lost_tokens: u64,
    /// Dollars paid for them beyond the price of reading them.
    pub lost_dollars: f64,
    /// Why they were paid again.
    pub cause: Cause,
    /// Who caused the loss.
    #[serde(rename = "ours")]
    pub blame: Blame,
    /// Where the prompts differ first, if that is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<DifferenceLocation>,
    /// Who found the cause.
    #[serde(default)]
    pub source: VerdictSource,
    /// What the provider says about the same request, if it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_says: Option<CacheDiagnosis>,
    /// The cause that we had found, where the provider names another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub our_cause: Option<Box<Cause>>,
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
            source: VerdictSource::Ours,
            provider_says: None,
            our_cause: None,
        }
    }

    /// The verdict with an extension to blame, because it made the change that the cause names.
    #[must_use]
    pub fn caused_by_extension(self, extension: Arc<str>) -> Self {
        let change = match (self.cause, &self.first_difference) {
            // That another process goes on explains nothing once it is known who made the change.
            (Cause::Resumed, Some(difference)) => {
                let origin = difference.origin.as_ref().map(PieceOrigin::describe);
                Cause::SystemChanged(origin.unwrap_or_else(|| difference.address.clone()))
            }
            (cause, _) => cause,
        };
        let cause = Cause::ChangedByExtension { extension, change: Box::new(change) };
        Verdict { cause, blame: Blame::Extension, ..self }
    }

    /// Whether any tokens were paid again.
    pub fn is_loss(&self) -> bool {
        self.lost_tokens > 0
    }

    /// The verdict as a sentence for a person, ending with who is to blame.
    pub fn sentence(&self) -> String {
        let cause = replace_control_characters(&self.cause.describe());
        if !self.is_loss() {
            return match &self.cause {
                Cause::AsExpected if self.read > 0 => {
                    format!(
                        "Nothing was paid again: {} tokens were read from the cache.",
                        format_number(self.read)
                    )
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
        let from = origin
            .filter(|_| wider)
            .map(|origin| format!(", from {} on", replace_control_characters(&origin.describe())));
        let blame = match self.blame {
            Blame::Us => " Hardpan could have avoided it.",
            Blame::Extension => {
                " The extension could have avoided it: `ctx.ephemeral` says what changes from turn to turn."
            }
            Blame::Provider => " Only the provider could have avoided it.",
            Blame::Person => " You could have avoided it.",
            Blame::Nobody => "",
        };
        let also = match (&self.our_cause, self.source, self.provider_says) {
            (Some(ours), ..) => {
                format!("; we saw that {}", replace_control_characters(&ours.describe()))
            }
            (None, VerdictSource::Both, Some(CacheDiagnosis::Changed { .. })) => {
                ", and the provider says so, too".into()
            }
            (None, VerdictSource::Ours, Some(CacheDiagnosis::NoDifference)) => {
                ", although the provider says that nothing changed".into()
            }
            _ => String::new(),
        };
        let verb = if self.lost_tokens == 1 { "was" } else { "were" };
        format!("{were} {tokens}{price} {verb} paid again: {cause}{}{also}.{blame}", from.unwrap_or_default())
    }
}

//! [`LossCause`]: why tokens that had been cached were paid again, as far as a recording tells.

use hardpan_economy::Cause;
use hardpan_economy::format::format_number;

/// Why cached tokens were paid again.
#[derive(Clone, Debug, PartialEq)]
pub enum LossCause {
    /// The recording names the cause, or leaves no doubt.
    Recorded(Cause),
    /// Nothing recorded explains the loss; this is what the bill shows.
    Unrecorded(UnexplainedLoss),
}

/// Where the cause of a loss is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseSource {
    /// The agent's own verdict of the time, which knew both prompts.
    Verdict,
    /// The recorded requests: the audit compared both.
    Request,
    /// Times, sizes and the conversation: what the audit concludes from them.
    Inferred,
}

impl CauseSource {
    /// The source's name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            CauseSource::Verdict => "verdict",
            CauseSource::Request => "request",
            CauseSource::Inferred => "inferred",
        }
    }

    /// The source in words, as an addition to a cause.
    pub fn describe(self) -> &'static str {
        match self {
            CauseSource::Verdict => "the agent's own verdict",
            CauseSource::Request => "from the recorded request",
            CauseSource::Inferred => "inferred",
        }
    }
}

/// How much was lost while the cache should have been warm, with nothing recorded that explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnexplainedLoss {
    /// The whole prefix. Tools and system prompt come first, so one of them must have changed.
    WholePrefix,
    /// The whole prefix, at a provider that caches automatically and promises nothing.
    WholePrefixAutomatic,
    /// All but the first so many tokens: something after them changed.
    AllBut(u64),
    /// All but the first so many tokens, at a provider that caches automatically.
    AllButAutomatic(u64),
    /// The previous request had not been answered yet, so what it wrote could not be read.
    NotYetAnswered,
    /// The recorded requests agree in all that the provider caches.
    SameRequest,
}

impl LossCause {
    /// The cause in words, with its figures, as the second half of a sentence.
    pub fn describe(&self) -> String {
        match self {
            LossCause::Recorded(cause) => cause.describe(),
            LossCause::Unrecorded(UnexplainedLoss::WholePrefix) => {
                "the whole prefix was lost while warm: the system prompt or the tools changed".into()
            }
            LossCause::Unrecorded(UnexplainedLoss::WholePrefixAutomatic) => {
                "the whole prefix was lost while warm: its beginning changed, or the provider no longer had it".into()
            }
            LossCause::Unrecorded(UnexplainedLoss::AllBut(tokens)) => {
                format!("all but the first {} tokens were lost while warm: something after them changed", format_number(*tokens))
            }
            LossCause::Unrecorded(UnexplainedLoss::AllButAutomatic(tokens)) => format!(
                "all but the first {} tokens were lost while warm: something after them changed, or the provider no longer had it",
                format_number(*tokens)
            ),
            LossCause::Unrecorded(UnexplainedLoss::NotYetAnswered) => {
                "the request before it was still unanswered, so what that wrote could not be read yet".into()
            }
            LossCause::Unrecorded(UnexplainedLoss::SameRequest) => {
                "both requests agree, and the provider no longer had the prefix".into()
            }
        }
    }

    /// The cause without its figures, so that equal ones can be added up.
    pub fn category(&self) -> &'static str {
        match self {
            LossCause::Recorded(Cause::Expired { .. }) => "the cache expired",
            LossCause::Recorded(Cause::ModelChanged { .. }) => "the model changed",
            LossCause::Recorded(Cause::ProviderChanged { .. }) => "the provider changed",
            LossCause::Recorded(Cause::Compacted) => "the conversation was compacted",
            LossCause::Recorded(Cause::Folded) => "a fold laid the items anew",
            LossCause::Recorded(Cause::Resumed) => "the session was resumed by another process",
            LossCause::Recorded(Cause::ThinkingChanged | Cause::EffortChanged | Cause::SettingChanged(_)) => {
                "a setting changed"
            }
            LossCause::Recorded(Cause::ImageAdded | Cause::ImageRemoved) => {
                "the first image came, or the last one went"
            }
            LossCause::Recorded(Cause::TooManyNewBlocks { .. }) => "too many new blocks came at once",
            LossCause::Recorded(Cause::Unmarked) => "no breakpoint was set",
            LossCause::Recorded(Cause::BelowMinimum { .. }) => "the prefix was under the provider's minimum",
            LossCause::Recorded(Cause::SaidByProvider { .. }) => "the provider names a change",
            LossCause::Recorded(Cause::Evicted) | LossCause::Unrecorded(UnexplainedLoss::SameRequest) => {
                "the provider no longer had it"
            }
            LossCause::Recorded(Cause::ToolsChanged { .. }) => "the tools changed",
            LossCause::Recorded(Cause::SystemChanged(_)) => "the system prompt changed",
            LossCause::Recorded(
                Cause::ItemChanged { .. } | Cause::MessageChanged { .. } | Cause::LayoutChanged(_),
            ) => "the prompt was laid out otherwise",
            LossCause::Recorded(Cause::AsExpected | Cause::FirstRequest) => "nothing was lost",
            LossCause::Unrecorded(UnexplainedLoss::WholePrefix) => {
                "lost while warm: the system prompt or the tools changed"
            }
            LossCause::Unrecorded(
                UnexplainedLoss::WholePrefixAutomatic | UnexplainedLoss::AllButAutomatic(_),
            ) => "lost while warm: the prompt changed, or the provider no longer had it",
            LossCause::Unrecorded(UnexplainedLoss::AllBut(_)) => {
                "lost in part while warm: something in the conversation changed"
            }
            LossCause::Unrecorded(UnexplainedLoss::NotYetAnswered) => {
                "the request before was still unanswered"
            }
        }
    }

    /// Whether the agent could have avoided the loss: it was neither the user's choice nor a rule
    /// of the provider.
    pub(super) fn is_avoidable(&self, trigger: RequestTrigger) -> bool {
        match self {
            // The agent changed the bytes; an automatic cache may also forget by itself.
            LossCause::Unrecorded(lost) => {
                matches!(
                    lost,
                    UnexplainedLoss::WholePrefix
                        | UnexplainedLoss::AllBut(_)
                        | UnexplainedLoss::NotYetAnswered
                )
            }
            // The agent could have kept the cache warm during a long tool call; a pause is the user's choice.
            LossCause::Recorded(Cause::Expired { .. }) => trigger == RequestTrigger::Tools,
            LossCause::Recorded(
                Cause::AsExpected
                | Cause::FirstRequest
                | Cause::ImageAdded
                | Cause::ThinkingChanged
                | Cause::EffortChanged
                | Cause::SettingChanged(_)
                | Cause::ModelChanged { .. }
                | Cause::ProviderChanged { .. }
                | Cause::BelowMinimum { .. }
                | Cause::Evicted,
            ) => false,
            LossCause::Recorded(_) => true,
        }
    }
}

/// What a request was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestTrigger {
    /// A message of the user.
    Person,
    /// The results of tools.
    Tools,
}

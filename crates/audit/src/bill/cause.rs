//! Why something that had been cached was paid again, as far as a recording tells.

use hardpan_economy::Cause;
use hardpan_economy::words::number;

/// Why something was paid again.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The recording says so, or leaves no doubt.
    Recorded(Cause),
    /// Nothing recorded explains it; what can be told from the bill.
    Unrecorded(Lost),
}

/// What was lost while it should have been warm, with nothing recorded that explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// All of it: tools and system prompt come first, so one of them was another.
    WholePrefix,
    /// All of it, at a provider that caches by itself and promises nothing.
    WholePrefixAutomatic,
    /// All but this beginning, in tokens: something behind it was another.
    AllBut(u64),
    /// All but this beginning, in tokens, at a provider that caches by itself.
    AllButAutomatic(u64),
    /// The request before had not been answered yet, so what it wrote could not be read.
    NotYetAnswered,
}

impl Why {
    /// In words, as the second half of a sentence.
    pub fn words(&self) -> String {
        match self {
            Why::Recorded(cause) => cause.words(),
            Why::Unrecorded(Lost::WholePrefix) => {
                "the whole prefix was lost while warm: the system prompt or the tools changed".into()
            }
            Why::Unrecorded(Lost::WholePrefixAutomatic) => {
                "the whole prefix was lost while warm: its beginning changed, or the provider no longer had it".into()
            }
            Why::Unrecorded(Lost::AllBut(tokens)) => {
                format!("all but the first {} tokens were lost while warm: something after them changed", number(*tokens))
            }
            Why::Unrecorded(Lost::AllButAutomatic(tokens)) => format!(
                "all but the first {} tokens were lost while warm: something after them changed, or the provider no longer had it",
                number(*tokens)
            ),
            Why::Unrecorded(Lost::NotYetAnswered) => {
                "the request before it was still unanswered, so what that wrote could not be read yet".into()
            }
        }
    }

    /// The cause without its figures, so that losses of one sort can be added up.
    pub fn sort(&self) -> &'static str {
        match self {
            Why::Recorded(Cause::Expired { .. }) => "the cache expired",
            Why::Recorded(Cause::ModelChanged { .. }) => "the model changed",
            Why::Recorded(Cause::ProviderChanged { .. }) => "the provider changed",
            Why::Recorded(Cause::Compacted) => "the conversation was compacted",
            Why::Recorded(Cause::Folded) => "a fold laid the items anew",
            Why::Recorded(Cause::Resumed) => "the session was resumed by another process",
            Why::Recorded(Cause::ThinkingChanged | Cause::EffortChanged | Cause::SettingChanged(_)) => {
                "a setting changed"
            }
            Why::Recorded(Cause::ImageAdded | Cause::ImageRemoved) => {
                "the first image came, or the last one went"
            }
            Why::Recorded(Cause::TooManyNewBlocks { .. }) => "too many new blocks came at once",
            Why::Recorded(Cause::Unmarked) => "no breakpoint was set",
            Why::Recorded(Cause::BelowMinimum { .. }) => "the prefix was under the provider's minimum",
            Why::Recorded(Cause::Evicted) => "the provider no longer had it",
            Why::Recorded(
                Cause::ToolsChanged { .. }
                | Cause::SystemChanged(_)
                | Cause::ItemChanged { .. }
                | Cause::MessageChanged { .. }
                | Cause::LayoutChanged(_),
            ) => "the prompt was laid out otherwise",
            Why::Recorded(Cause::AsExpected | Cause::FirstRequest) => "nothing was lost",
            Why::Unrecorded(Lost::WholePrefix) => "lost while warm: the system prompt or the tools changed",
            Why::Unrecorded(Lost::WholePrefixAutomatic | Lost::AllButAutomatic(_)) => {
                "lost while warm: the prompt changed, or the provider no longer had it"
            }
            Why::Unrecorded(Lost::AllBut(_)) => {
                "lost in part while warm: something in the conversation changed"
            }
            Why::Unrecorded(Lost::NotYetAnswered) => "the request before was still unanswered",
        }
    }

    /// Whether the program that laid out the prompt could have avoided it: no person's choice, and no rule of the
    /// provider's.
    pub(super) fn is_ours(&self, turn: Turn) -> bool {
        match self {
            // Bytes that differ are the agent's doing; a cache that promises nothing may forget by itself.
            Why::Unrecorded(lost) => {
                matches!(lost, Lost::WholePrefix | Lost::AllBut(_) | Lost::NotYetAnswered)
            }
            // A tool that took longer than the cache lives is the agent's doing; a person's pause is theirs.
            Why::Recorded(Cause::Expired { .. }) => turn == Turn::Tools,
            Why::Recorded(
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
            Why::Recorded(_) => true,
        }
    }
}

/// What a request answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something that a person said.
    Person,
    /// What tools answered.
    Tools,
}

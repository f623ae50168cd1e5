//! [`AnswerEvent`]: the pieces of a streamed answer, in one form for all providers.

use std::fmt;

use hardpan_prompt::{CacheDiagnosis, DroppedReasoning, ProviderBlock, WebSource};

use crate::ReportedUsage;
use crate::limits::short_message;

/// A piece of a streamed answer.
///
/// [`AnswerEvent::Start`] comes at most once, and first. Exactly one [`AnswerEvent::Stop`] or
/// [`AnswerEvent::Error`] comes, last.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerEvent {
    /// The provider has begun its answer.
    Start {
        /// The provider's id of the response; may be empty.
        id: String,
        /// The model that answers, in the provider's name for it; may be empty.
        model: String,
    },
    /// The next piece of the text.
    Text(String),
    /// The next piece of the reasoning.
    Reasoning(String),
    /// The complete signature of the preceding reasoning. Further reasoning is a new part.
    Signature(String),
    /// A complete part of encrypted reasoning.
    RedactedReasoning(String),
    /// The model begins a tool call.
    CallStart {
        /// The number of the call in this answer, from 0.
        index: usize,
        /// The provider's id of the call; generated if it gave none.
        id: String,
        /// The tool's name; empty if the provider never sent one.
        name: String,
    },
    /// The next piece of a call's arguments.
    CallDelta {
        /// The number of the call, as in `CallStart`.
        index: usize,
        /// A fragment of the arguments' JSON, cut anywhere.
        json: String,
    },
    /// A call's arguments are complete.
    CallEnd {
        /// The number of the call, as in `CallStart`.
        index: usize,
    },
    /// The provider's own tool searches the web, once.
    WebSearch {
        /// What it searches for; empty if the provider does not say.
        query: String,
    },
    /// A complete block of the provider's own web search, which goes back as it came.
    ProviderBlock(ProviderBlock),
    /// Pages that the answer cites. A page may come more than once.
    Sources(Vec<WebSource>),
    /// The tokens used so far. A later report replaces an earlier one.
    Usage(ReportedUsage),
    /// The provider's own comparison of this request with the one before it.
    CacheDiagnosis(CacheDiagnosis),
    /// The provider took reasoning out of the request.
    DroppedReasoning(Vec<DroppedReasoning>),
    /// A part of the answer is of a type that Hardpan does not know; it is left out.
    SkippedPart {
        /// The provider's name of the type.
        part_type: String,
    },
    /// The answer has ended, for this reason.
    Stop(StopReason),
    /// The provider reported an error, or sent something that cannot be parsed.
    Error(StreamError),
}

impl AnswerEvent {
    /// Joins adjacent pieces of the same text, reasoning or call: where a provider cuts its answer
    /// has no meaning.
    pub fn merge(events: impl IntoIterator<Item = AnswerEvent>) -> Vec<AnswerEvent> {
        let mut merged: Vec<AnswerEvent> = Vec::new();
        for event in events {
            match (merged.last_mut(), &event) {
                (Some(AnswerEvent::Text(text)), AnswerEvent::Text(more)) => text.push_str(more),
                (Some(AnswerEvent::Reasoning(text)), AnswerEvent::Reasoning(more)) => text.push_str(more),
                (
                    Some(AnswerEvent::CallDelta { index, json }),
                    AnswerEvent::CallDelta { index: same, json: more },
                ) if index == same => {
                    json.push_str(more);
                }
                _ => merged.push(event),
            }
        }
        merged
    }

    /// Whether this event ends the answer.
    pub fn is_last(&self) -> bool {
        matches!(self, AnswerEvent::Stop(_) | AnswerEvent::Error(_))
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model completed its answer.
    End,
    /// The token limit of the request.
    Length,
    /// The end of the model's context window.
    Window,
    /// The model waits for the results of its tool calls.
    ToolUse,
    /// The model wrote one of the request's stop sequences.
    StopSequence,
    /// The model, or the provider's content filter, refused to answer.
    Refusal,
    /// The provider's own tools take long: send the answer back to continue.
    Pause,
    /// A reason that Hardpan does not know, in the provider's word.
    Other(String),
    /// The connection ended before the answer did.
    Cut,
}

impl StopReason {
    /// Parses a provider's word. One table serves all providers: no word has two meanings.
    pub fn from_provider(word: &str) -> Self {
        match word {
            "stop" | "end_turn" | "eos" | "eos_token" | "complete" | "COMPLETE" => StopReason::End,
            "length" | "max_tokens" | "model_length" => StopReason::Length,
            "model_context_window_exceeded" => StopReason::Window,
            "tool_use" | "tool_calls" | "tool_call" | "function_call" => StopReason::ToolUse,
            "stop_sequence" => StopReason::StopSequence,
            "refusal" | "content_filter" | "sensitive" => StopReason::Refusal,
            "pause_turn" => StopReason::Pause,
            other => StopReason::Other(other.to_owned()),
        }
    }

    /// Hardpan's word for the reason, or the provider's for [`Other`](Self::Other).
    pub fn as_str(&self) -> &str {
        match self {
            StopReason::End => "end",
            StopReason::Length => "length",
            StopReason::Window => "window",
            StopReason::ToolUse => "tool_use",
            StopReason::StopSequence => "stop_sequence",
            StopReason::Refusal => "refusal",
            StopReason::Pause => "pause",
            StopReason::Other(word) => word,
            StopReason::Cut => "cut",
        }
    }

    /// Whether the model ended its answer itself, so that its calls may run. `false` for unknown
    /// reasons.
    pub fn is_clean(&self) -> bool {
        match self {
            StopReason::End | StopReason::ToolUse | StopReason::StopSequence => true,
            StopReason::Length
            | StopReason::Window
            | StopReason::Refusal
            | StopReason::Pause
            | StopReason::Other(_)
            | StopReason::Cut => false,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error that a provider sent within an answer, or instead of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct StreamError {
    /// What sort of error it is.
    pub kind: StreamErrorKind,
    /// The provider's code, a word or a number, if it gave one.
    pub code: Option<String>,
    /// The provider's message, or ours for our own kinds.
    pub message: String,
}

/// The kind of a [`StreamError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamErrorKind {
    /// The answer cannot be parsed.
    Malformed,
    /// The answer exceeds the size limit.
    TooLong,
    /// The provider reported an error; holds its word for the type, such as `overloaded_error`.
    Provider(String),
}

impl fmt::Display for StreamErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StreamErrorKind::Malformed => "malformed_answer",
            StreamErrorKind::TooLong => "answer_too_long",
            StreamErrorKind::Provider(word) => word,
        })
    }
}

impl StreamError {
    /// An error without a code.
    pub fn new(kind: StreamErrorKind, message: impl Into<String>) -> Self {
        StreamError { kind, code: None, message: short_message(message.into()) }
    }

    /// An error that the provider reported under this word, without a code.
    pub fn from_provider(word: impl Into<String>, message: impl Into<String>) -> Self {
        StreamError::new(StreamErrorKind::Provider(word.into()), message)
    }

    /// An answer that cannot be parsed. The message quotes the beginning of `shown`.
    pub(crate) fn malformed(reason: impl fmt::Display, shown: &str) -> Self {
        const SHOWN: usize = 200; // characters: enough to tell an HTML page from a torn object
        let mut quoted: String = shown.chars().take(SHOWN).collect();
        if quoted.len() < shown.len() {
            quoted.push('…');
        }
        let message = format!("the response cannot be parsed ({reason}): {quoted}");
        StreamError::new(StreamErrorKind::Malformed, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_pieces_are_joined_and_others_are_not() {
        let delta = |index, json: &str| AnswerEvent::CallDelta { index, json: json.into() };
        let pieces = [
            AnswerEvent::Text("a".into()),
            AnswerEvent::Text("b".into()),
            delta(0, "{"),
            delta(0, "}"),
            delta(1, "{}"),
        ];
        assert_eq!(
            AnswerEvent::merge(pieces),
            [AnswerEvent::Text("ab".into()), delta(0, "{}"), delta(1, "{}")]
        );
    }

    #[test]
    fn a_long_page_is_quoted_in_part() {
        let error = StreamError::malformed("x", &"é".repeat(500));
        assert_eq!(error.message.matches('é').count(), 200);
    }
}

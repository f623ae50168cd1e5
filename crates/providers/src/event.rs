//! What an answer says, piece by piece, in one form for all providers.

use std::fmt;

use crate::Usage;

/// A piece of an answer.
///
/// [`Event::Start`] comes at most once and first; exactly one [`Event::Stop`] or [`Event::Error`] comes, last.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The answer begins.
    Start {
        /// The provider's id for it; may be empty.
        id: String,
        /// The model that answers, as the provider calls it; may be empty.
        model: String,
    },
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// The signature of the reasoning before it, whole. More reasoning is then another part.
    Signature(String),
    /// Encrypted reasoning, whole.
    RedactedReasoning(String),
    /// A tool call begins.
    CallStart {
        /// Which call of this answer, counted from 0.
        index: usize,
        /// The provider's id for it; made up where it gave none.
        id: String,
        /// The tool; empty if the provider never named it.
        name: String,
    },
    /// More of a call's arguments.
    CallDelta {
        /// The call.
        index: usize,
        /// A fragment of JSON.
        json: String,
    },
    /// A call's arguments are complete.
    CallEnd {
        /// The call.
        index: usize,
    },
    /// What was used so far. A later report replaces an earlier one.
    Usage(Usage),
    /// Something that a person should know about how the answer was got.
    Footnote(String),
    /// The answer is over.
    Stop(StopReason),
    /// The provider broke off, or what it sent cannot be understood.
    Error(StreamError),
}

impl Event {
    /// Joins adjacent pieces of the same text, reasoning or call: how an answer was cut into pieces means nothing.
    pub fn merge(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
        let mut merged: Vec<Event> = Vec::new();
        for event in events {
            match (merged.last_mut(), &event) {
                (Some(Event::Text(text)), Event::Text(more)) => text.push_str(more),
                (Some(Event::Reasoning(text)), Event::Reasoning(more)) => text.push_str(more),
                (Some(Event::CallDelta { index, json }), Event::CallDelta { index: same, json: more })
                    if index == same =>
                {
                    json.push_str(more);
                }
                _ => merged.push(event),
            }
        }
        merged
    }

    /// Whether nothing comes after it.
    pub fn is_last(&self) -> bool {
        matches!(self, Event::Stop(_) | Event::Error(_))
    }
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model had said what it had to say.
    End,
    /// The limit of tokens, or the end of the window.
    Length,
    /// The model waits for its tools.
    ToolUse,
    /// One of the request's stop sequences.
    StopSequence,
    /// The model or a filter refused.
    Refusal,
    /// The provider's own tools take long: send the answer back to go on.
    Pause,
    /// A word that is not known, as the provider said it.
    Other(String),
    /// The stream ended before the answer did.
    Cut,
}

impl StopReason {
    /// What a provider's word means. One table for all of them: no word means two things.
    pub fn from_word(word: &str) -> Self {
        match word {
            "stop" | "end_turn" | "eos" | "eos_token" | "complete" | "COMPLETE" => StopReason::End,
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => StopReason::Length,
            "tool_use" | "tool_calls" | "tool_call" | "function_call" => StopReason::ToolUse,
            "stop_sequence" => StopReason::StopSequence,
            "refusal" | "content_filter" | "sensitive" => StopReason::Refusal,
            "pause_turn" => StopReason::Pause,
            other => StopReason::Other(other.to_owned()),
        }
    }

    /// Our word for it, or the provider's where we have none.
    pub fn word(&self) -> &str {
        match self {
            StopReason::End => "end",
            StopReason::Length => "length",
            StopReason::ToolUse => "tool_use",
            StopReason::StopSequence => "stop_sequence",
            StopReason::Refusal => "refusal",
            StopReason::Pause => "pause",
            StopReason::Other(word) => word,
            StopReason::Cut => "cut",
        }
    }

    /// Whether the model ended of its own will, so that what it asked for may be done. An unknown word is no yes.
    pub fn is_clean(&self) -> bool {
        match self {
            StopReason::End | StopReason::ToolUse | StopReason::StopSequence => true,
            StopReason::Length
            | StopReason::Refusal
            | StopReason::Pause
            | StopReason::Other(_)
            | StopReason::Cut => false,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An error inside an answer, or in place of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct StreamError {
    /// The provider's word for the type of error; [`MALFORMED`](Self::MALFORMED) and [`TOO_LONG`](Self::TOO_LONG) are
    /// ours.
    pub kind: String,
    /// The provider's code, where it gave one: a word or a number.
    pub code: Option<String>,
    /// What it says.
    pub message: String,
}

impl StreamError {
    /// The kind of what cannot be understood.
    pub const MALFORMED: &str = "malformed_answer";
    /// The kind of what does not end.
    pub const TOO_LONG: &str = "answer_too_long";

    /// An error by kind and message.
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        StreamError { kind: kind.into(), code: None, message: message.into() }
    }

    /// What was sent cannot be understood. `shown` is quoted, as much of it as helps.
    pub(crate) fn malformed(reason: impl fmt::Display, shown: &str) -> Self {
        const SHOWN: usize = 200; // characters: enough to tell an HTML page from a torn object
        let mut quoted: String = shown.chars().take(SHOWN).collect();
        if quoted.len() < shown.len() {
            quoted.push('…');
        }
        StreamError::new(Self::MALFORMED, format!("the server sent what is no answer ({reason}): {quoted}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_pieces_are_joined_and_others_are_not() {
        let delta = |index, json: &str| Event::CallDelta { index, json: json.into() };
        let pieces =
            [Event::Text("a".into()), Event::Text("b".into()), delta(0, "{"), delta(0, "}"), delta(1, "{}")];
        assert_eq!(Event::merge(pieces), [Event::Text("ab".into()), delta(0, "{}"), delta(1, "{}")]);
    }

    #[test]
    fn a_long_page_is_quoted_in_part() {
        let error = StreamError::malformed("x", &"é".repeat(500));
        assert_eq!(error.message.matches('é').count(), 200);
    }
}

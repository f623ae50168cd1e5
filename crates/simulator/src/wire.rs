//! Encodes answers in the format of their protocol, whole or as a stream of events.

mod anthropic; // Anthropic Messages
mod openai; // OpenAI Chat Completions

use bytes::Bytes;
use hardpan_models::{Protocol, ReasoningField};
use hardpan_prompt::{Hash, TokenUsage};
use serde_json::Value;

use crate::answer::SimulatedAnswer;

/// The metadata of an answer.
#[derive(Clone, Debug)]
pub struct AnswerHead {
    /// The number of the request, from which ids are derived: the same run gives the same ids.
    pub number: u64,
    /// The model's name, as in the request.
    pub model: String,
    /// When the answer was created, in seconds since 1970.
    pub created: i64,
    /// The tokens of the request and of the answer, by how they are billed.
    pub tokens: TokenUsage,
    /// The field in which a Chat Completions server sends reasoning, if it does.
    pub reasoning: ReasoningField,
    /// Which usage fields a Chat Completions server sends.
    pub usage: UsageFormat,
}

/// How a Chat Completions server reports cached tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageFormat {
    /// Cache reads, in `prompt_tokens_details.cached_tokens`.
    Reads,
    /// Like `Reads`, and cache writes in `cache_write_tokens`.
    ReadsAndWrites,
    /// Like `Reads`, and DeepSeek's `prompt_cache_hit_tokens` and `prompt_cache_miss_tokens`.
    HitsAndMisses,
}

/// Whether a Chat Completions stream ends with a usage chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageChunk {
    /// The request asked for usage, or the server always sends it.
    Sent,
    /// The request did not ask for usage.
    Omitted,
}

/// The role of an event in its stream: faults treat them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The beginning or end of a message or block, and everything else.
    Frame,
    /// A piece of text, reasoning or arguments.
    Delta,
    /// The end marker of the stream.
    End,
}

/// One event of a stream, encoded.
#[derive(Clone, Debug)]
pub struct StreamEvent {
    /// Its role in the stream.
    pub kind: EventKind,
    /// The encoded event, including the blank line.
    pub bytes: Bytes,
}

/// Encodes an answer that is not streamed.
pub fn answer_body(protocol: Protocol, answer: &SimulatedAnswer, head: &AnswerHead) -> Bytes {
    let body = match protocol {
        Protocol::Anthropic => anthropic::answer_body(answer, head),
        Protocol::Openai => openai::answer_body(answer, head),
    };
    body.to_string().into()
}

/// Encodes a streamed answer.
pub fn answer_events(
    protocol: Protocol,
    answer: &SimulatedAnswer,
    head: &AnswerHead,
    usage: UsageChunk,
) -> Vec<StreamEvent> {
    match protocol {
        Protocol::Anthropic => anthropic::answer_events(answer, head),
        Protocol::Openai => openai::answer_events(answer, head, usage),
    }
}

/// Encodes an error event in the middle of a stream.
pub fn error_event(protocol: Protocol, body: &Value) -> Bytes {
    match protocol {
        Protocol::Anthropic => format!("event: error\ndata: {body}\n\n").into(),
        Protocol::Openai => format!("data: {body}\n\n").into(),
    }
}

/// An id that looks like a provider's, derived from the numbers.
pub fn make_id(prefix: &str, number: u64, part: usize) -> String {
    let hash = Hash::of(format!("{prefix} {number} {part}").as_bytes()).to_string();
    format!("{prefix}{}", &hash[..24])
}

/// The simulator's signature for a piece of reasoning. It depends on the text only, so that it is
/// valid for every model.
pub fn sign_reasoning(reasoning: &str) -> String {
    let hash = Hash::chain([Hash::of(b"simulated"), Hash::of(reasoning.as_bytes())]);
    format!("sim{hash}")
}

/// Splits a text into pieces of a few words, as streams send them. At least one, which may be
/// empty.
fn split_text(text: &str) -> Vec<&str> {
    const ENOUGH: usize = 16; // bytes after which a piece ends with the word
    const MOST: usize = 48; // bytes after which it ends anyway
    let (mut split_text, mut start, mut after_space) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        let size = at - start;
        if (size >= ENOUGH && after_space) || size >= MOST {
            split_text.push(&text[start..at]);
            start = at;
        }
        after_space = character.is_whitespace() || character == ',';
    }
    split_text.push(&text[start..]);
    split_text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text() {
        for text in ["", "a", "größer als alles, was bisher gesagt wurde, und länger", &"é".repeat(200)] {
            assert_eq!(split_text(text).concat(), text);
        }
        assert!(split_text(&"some words of a longer text ".repeat(4)).len() > 3);
    }
}

//! An answer in the form of its protocol, whole or as events.

mod anthropic; // Anthropic Messages
mod openai; // OpenAI Chat Completions

use bytes::Bytes;
use hardpan_economy::Amounts;
use hardpan_models::{Protocol, ReasoningField};
use hardpan_prompt::Hash;
use serde_json::Value;

use crate::said::{Said, Spoken};

/// What an answer says of itself.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its number, from which ids are made: the same run gives the same ids.
    pub number: u64,
    /// The model, as the request named it.
    pub model: String,
    /// Seconds since 1970.
    pub created: i64,
    /// The prompt, by how it is billed.
    pub billed: Amounts,
    /// The answer.
    pub spoken: Spoken,
    /// Where the server shows reasoning, if it does. Anthropic's place is fixed.
    pub reasoning: ReasoningField,
    /// How usage is told.
    pub usage: UsageForm,
}

/// How a Chat Completions server tells what was read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageForm {
    /// `prompt_tokens_details.cached_tokens`.
    Reads,
    /// The same, and `cache_write_tokens` beside it.
    ReadsAndWrites,
    /// The same as `Reads`, and DeepSeek's own two fields.
    HitsAndMisses,
}

/// Whether a stream ends with its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageChunk {
    /// The request asked for it.
    Sent,
    /// It did not.
    Omitted,
}

/// What an event is to a stream: faults tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A beginning or an end of something.
    Frame,
    /// A piece of text, reasoning or arguments.
    Delta,
    /// The marker that nothing follows.
    End,
}

/// One event of a stream, as its bytes.
#[derive(Clone, Debug)]
pub struct Sent {
    /// What it is.
    pub kind: EventKind,
    /// The event with its empty line.
    pub bytes: Bytes,
}

/// The body of an answer that is not streamed.
pub fn whole(protocol: Protocol, said: &Said, head: &Head) -> Bytes {
    let body = match protocol {
        Protocol::Anthropic => anthropic::whole(said, head),
        Protocol::Openai => openai::whole(said, head),
    };
    body.to_string().into()
}

/// The events of an answer that is.
pub fn stream(protocol: Protocol, said: &Said, head: &Head, usage: UsageChunk) -> Vec<Sent> {
    match protocol {
        Protocol::Anthropic => anthropic::stream(said, head),
        Protocol::Openai => openai::stream(said, head, usage),
    }
}

/// An error in the middle of a stream.
pub fn error_event(protocol: Protocol, body: &Value) -> Bytes {
    match protocol {
        Protocol::Anthropic => format!("event: error\ndata: {body}\n\n").into(),
        Protocol::Openai => format!("data: {body}\n\n").into(),
    }
}

/// An id of the look that a provider's has, made of numbers.
pub fn id(prefix: &str, number: u64, part: usize) -> String {
    let hash = Hash::of(format!("{prefix} {number} {part}").as_bytes()).to_string();
    format!("{prefix}{}", &hash[..24])
}

/// The signature that the simulator gives its reasoning, by which it knows it again, whichever model is asked.
pub fn signature(reasoning: &str) -> String {
    let hash = Hash::chain([Hash::of(b"simulated"), Hash::of(reasoning.as_bytes())]);
    format!("sim{hash}")
}

/// Pieces of text as a stream brings them: a few words each. At least one, which may be empty.
fn pieces(text: &str) -> Vec<&str> {
    const ENOUGH: usize = 16; // bytes after which a piece ends with the word
    const MOST: usize = 48; // bytes after which it ends anyway
    let (mut pieces, mut start, mut after_space) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        let size = at - start;
        if (size >= ENOUGH && after_space) || size >= MOST {
            pieces.push(&text[start..at]);
            start = at;
        }
        after_space = character.is_whitespace() || character == ',';
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text() {
        for text in ["", "a", "größer als alles, was bisher gesagt wurde, und länger", &"é".repeat(200)] {
            assert_eq!(pieces(text).concat(), text);
        }
        assert!(pieces(&"some words of a longer text ".repeat(4)).len() > 3);
    }
}

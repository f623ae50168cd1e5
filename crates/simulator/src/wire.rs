//! What the servers of all protocols use to encode answers: [`AnswerHead`], [`StreamEvent`], ids.

use bytes::Bytes;
use hardpan_prompt::{Hash, TokenUsage};
use serde_json::Value;

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
    /// Why the request missed the cache; `null` where it did not ask.
    pub diagnostics: Value,
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

/// An id that looks like a provider's, derived from the numbers.
pub fn make_id(prefix: &str, number: u64, part: usize) -> String {
    let hash = Hash::of(format!("{prefix} {number} {part}").as_bytes()).to_string();
    format!("{prefix}{}", &hash[..24])
}

/// Splits a text into pieces of a few words, as streams send them. At least one, which may be
/// empty.
pub fn split_text(text: &str) -> Vec<&str> {
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

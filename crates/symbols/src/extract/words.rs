//! [`collect_words`]: the words of a file that may refer to a definition.

#![expect(clippy::disallowed_types, reason = "the words are sorted before anybody sees them")]

use std::collections::HashSet;

use super::{RawCaptures, Span};
use crate::language::Language;
use crate::name_table::WordHash;

/// Lengths of words that count: a single letter tells nothing, and nobody types more than this.
const LENGTHS: std::ops::RangeInclusive<usize> = 2..=100;

/// Every word of the code except names of definitions, keywords, and what is inside comments,
/// strings and tests: sorted, each once.
///
/// Words are read from the bytes, not from the tree: visiting every node again would cost a quarter
/// of the parse.
pub(super) fn collect_words<'t>(language: &Language, text: &'t str, captures: &RawCaptures) -> Vec<&'t str> {
    let mut names = captures.names.keys().copied().peekable();
    let mut found: HashSet<&str, WordHash> = HashSet::default();
    let bytes = text.as_bytes();
    for code in code_spans(text.len(), captures) {
        let mut at = code.start;
        while at < code.end {
            if !is_word_byte(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            while at < code.end && is_word_byte(bytes[at]) {
                at += 1;
            }
            if at < code.end && language.word_endings().contains(&bytes[at]) {
                at += 1;
            }
            while names.next_if(|name| *name < start).is_some() {}
            let is_name = names.peek() == Some(&start);
            if !is_name && LENGTHS.contains(&(at - start)) && !bytes[start].is_ascii_digit() {
                found.extend(text.get(start..at));
            }
        }
    }
    let mut words: Vec<&str> = found.into_iter().filter(|word| !language.is_keyword(word)).collect();
    words.sort_unstable();
    words
}

/// The ranges between comments, strings and tests.
fn code_spans(length: usize, captures: &RawCaptures) -> Vec<Span> {
    let mut gaps: Vec<&Span> = captures.texts.iter().chain(&captures.tests).collect();
    gaps.sort_unstable_by_key(|span| span.start);
    let mut spans = Vec::with_capacity(gaps.len() + 1);
    let mut start = 0;
    for gap in gaps {
        if gap.start > start {
            spans.push(start..gap.start);
        }
        start = start.max(gap.end);
    }
    spans.push(start..length);
    spans
}

/// Whether a byte belongs to a word. Bytes from 0x80 on are letters of other scripts.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

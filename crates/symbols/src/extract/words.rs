//! The words of a file that refer to something.

use std::collections::HashMap;

use super::{Gathered, Span};
use crate::language::Language;
use crate::names::WordHash;

/// A single letter says nothing, and nobody types more than this.
const LENGTHS: std::ops::RangeInclusive<usize> = 2..=100;

/// Every word of the code but the names of definitions and what lies in comments, strings and tests: sorted, each once.
///
/// Words are read off the bytes, not off the tree: visiting every node again would cost a quarter of the parse.
pub(super) fn words<'t>(language: &Language, text: &'t str, gathered: &Gathered) -> Vec<&'t str> {
    let mut names = gathered.names.keys().copied().peekable();
    let mut found: HashMap<&str, (), WordHash> = HashMap::default();
    let bytes = text.as_bytes();
    for code in code_spans(text.len(), gathered) {
        let mut at = code.start;
        while at < code.end {
            if !is_letter(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            while at < code.end && is_letter(bytes[at]) {
                at += 1;
            }
            if at < code.end && language.word_endings().contains(&bytes[at]) {
                at += 1;
            }
            while names.next_if(|name| *name < start).is_some() {}
            let is_name = names.peek() == Some(&start);
            if !is_name && LENGTHS.contains(&(at - start)) && !bytes[start].is_ascii_digit() {
                found.extend(text.get(start..at).map(|word| (word, ())));
            }
        }
    }
    let mut words: Vec<&str> = found.into_keys().filter(|word| !language.is_keyword(word)).collect();
    words.sort_unstable();
    words
}

/// What lies between comments, strings and tests.
fn code_spans(length: usize, gathered: &Gathered) -> Vec<Span> {
    let mut gaps: Vec<&Span> = gathered.texts.iter().chain(&gathered.tests).collect();
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

/// Letters of every script are bytes from 0x80 on.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

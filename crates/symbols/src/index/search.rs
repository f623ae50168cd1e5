//! [`SymbolIndex::search`]: definitions whose names contain given words.

use std::cmp::Reverse;

use super::SymbolIndex;
use super::report::{SymbolMatch, symbol_report};
use crate::capture::SymbolKind;

/// A word may stand within a part of a name from this many letters on; a shorter one must begin it.
const MIN_INNER_LETTERS: usize = 4;

impl SymbolIndex {
    /// Definitions whose names, or the paths of their files, contain the words, whatever their case.
    /// Those that contain most of them come first, then those that most files use; tests come last.
    ///
    /// ```
    /// let mut index = hardpan_symbols::SymbolIndex::default();
    /// index.update("a.py", b"class RetryPolicy: ...\ndef send(): ...");
    /// assert_eq!(index.search(&["retry"])[0].symbol.name, "RetryPolicy");
    /// assert_eq!(index.search(&["nothing"]), []);
    /// ```
    pub fn search(&self, words: &[&str]) -> Vec<SymbolMatch> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let mut matches = Vec::new();
        for (id, file) in self.files_by_path() {
            let path = name_parts(&file.path);
            for (definition, name) in file.outline.definitions.iter().zip(&file.names) {
                if definition.kind == SymbolKind::Extension {
                    continue;
                }
                let parts = name_parts(&definition.name);
                let in_name = words.iter().filter(|word| contains_word(&parts, word)).count();
                if in_name == 0 {
                    continue;
                }
                let in_path = words
                    .iter()
                    .filter(|word| !contains_word(&parts, word) && contains_word(&path, word))
                    .count();
                // A name that is nothing but the words is meant before one that has them among others.
                let only = usize::from(parts.len() <= in_name);
                let uses = self.uses_of(id, *name);
                let matched = SymbolMatch {
                    path: file.path.to_string(),
                    symbol: symbol_report(file, definition),
                    uses,
                };
                let order = (Reverse(4 * in_name + 2 * in_path + only), file.is_test, Reverse(uses));
                matches.push((order, matched));
            }
        }
        // Equal ones keep the order of paths and lines.
        matches.sort_by_key(|(order, _)| *order);
        matches.into_iter().map(|(_, matched)| matched).collect()
    }
}

/// The parts of a name in lower case: `retry`, `policy` for `RetryPolicy`, `retry_policy` or
/// `retry/policy.rs`.
fn name_parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut last = ' ';
    for char in name.chars() {
        let begins = !last.is_alphanumeric() || (char.is_uppercase() && !last.is_uppercase());
        if char.is_alphanumeric() {
            match parts.last_mut().filter(|_| !begins) {
                Some(part) => part.extend(char.to_lowercase()),
                None => parts.push(char.to_lowercase().collect()),
            }
        }
        last = char;
    }
    parts
}

fn contains_word(parts: &[String], word: &str) -> bool {
    let within = word.chars().count() >= MIN_INNER_LETTERS;
    parts.iter().any(|part| part.starts_with(word) || (within && part.contains(word)))
        || (within && parts.concat().contains(&word.replace(['_', '-'], "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_where_people_hear_a_word() {
        for name in ["RetryPolicy", "retry_policy", "retryPolicy", "retry/policy", "RETRY-POLICY"] {
            assert_eq!(name_parts(name), ["retry", "policy"], "{name}");
        }
    }

    #[test]
    fn the_best_match_comes_first() {
        let mut index = SymbolIndex::default();
        index.update("core.py", b"class RetryPolicy: ...\ndef retry(): ...\ndef entry(): ...\n");
        index.update("net/policy.py", b"class Policy: ...\ndef retry_all(): ...\n");
        index.update("main.py", b"from core import RetryPolicy\nRetryPolicy()\n");
        index.update("tests/test_core.py", b"def test_retry(): ...\n");
        let found = |words: &[&str]| -> Vec<String> {
            index.search(words).into_iter().map(|found| found.symbol.name).collect()
        };
        assert_eq!(found(&["retry"]), ["retry", "RetryPolicy", "retry_all", "test_retry"]);
        assert_eq!(found(&["policy", "retry"])[..2], ["RetryPolicy", "retry_all"]);
        assert_eq!(found(&["retrypolicy"]), ["RetryPolicy"]);
        assert_eq!(found(&["try"]), Vec::<String>::new());
    }
}

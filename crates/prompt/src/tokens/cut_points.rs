//! Where a text may be cut so that the parts' counts add up to the whole's.
//!
//! A tokenizer first splits text into pieces by a pattern, then counts each piece by itself. So
//! counts add up at a place that is the end of a piece whatever stands around it. Two such places
//! are easy to see. Both hold for both vocabularies, and neither looks further back than one byte:
//!
//! - **After a word.** Before the place stands an ASCII letter, after it an ASCII byte that is
//!   neither a letter nor an apostrophe (which may begin `'s`); or an ASCII digit, and an ASCII
//!   byte that is not a digit. Pieces with letters end with the run of letters, and pieces with
//!   digits hold nothing else.
//! - **After a newline**, unless `/` follows (o200k's punctuation runs on over `\n` and `/`), and
//!   unless the white space that follows may hold another newline, since white space up to the last
//!   newline is one piece. So after spaces and tabs there must be a character, and it must not be
//!   white space.
//!
//! A place is a cut only if the text itself proves it: at the end of the text nothing is known of
//! what follows. So a cut of a text stays one when text is put before it or after it.

/// Whether counts add up at byte `at`. Always a character boundary if so.
pub(super) fn is_cut_point(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    if at == 0 || at >= bytes.len() {
        return false;
    }
    let next = bytes[at];
    match bytes[at - 1] {
        b'a'..=b'z' | b'A'..=b'Z' => next.is_ascii() && !next.is_ascii_alphabetic() && next != b'\'',
        b'0'..=b'9' => next.is_ascii() && !next.is_ascii_digit(),
        b'\n' => next != b'/' && begins_visibly(&text[at..]),
        _ => false,
    }
}

/// Whether the first character after spaces and tabs is there and is not white space.
fn begins_visibly(text: &str) -> bool {
    text.trim_start_matches([' ', '\t']).chars().next().is_some_and(|first| !first.is_whitespace())
}

/// The first cut at or after `from`.
pub(super) fn next_cut_point(text: &str, from: usize) -> Option<usize> {
    (from..text.len()).find(|&at| is_cut_point(text, at))
}

/// The last cut after `from`.
pub(super) fn last_cut_point(text: &str, from: usize) -> Option<usize> {
    (from + 1..text.len()).rev().find(|&at| is_cut_point(text, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vocabulary;
    use crate::tokens::vocabulary::Tokenizer;
    use proptest::prelude::*;

    const NONE: [usize; 0] = [];

    fn cuts(text: &str) -> Vec<usize> {
        (0..=text.len()).filter(|&at| is_cut_point(text, at)).collect()
    }

    #[test]
    fn words_and_numbers_end_at_a_cut() {
        assert_eq!(cuts("ab cd"), [2]);
        assert_eq!(cuts("ab'll be"), [5]);
        assert_eq!(cuts("a1b2"), [1, 2, 3]);
        assert_eq!(cuts("12's"), [2]);
    }

    #[test]
    fn what_follows_must_be_known() {
        assert_eq!(cuts("ab"), NONE);
        assert_eq!(cuts("é\n"), NONE);
        assert_eq!(cuts("é\n  "), NONE);
        assert_eq!(cuts("é\n  é"), [3]);
    }

    #[test]
    fn a_newline_is_no_cut_before_a_slash_or_another_newline() {
        assert_eq!(cuts(".\n/"), NONE);
        assert_eq!(cuts(".\n /"), [2]);
        assert_eq!(cuts("-\n \t\n-"), [5]);
        assert_eq!(cuts("-\n\u{3000}\n-"), [6]);
        assert_eq!(cuts("-\n\x0b\n-"), [4]);
        assert_eq!(cuts("-\n漢"), [2]);
    }

    #[test]
    fn letters_beyond_ascii_may_go_on() {
        assert_eq!(cuts("naïve caf\u{e9} e\u{301}."), [6]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn counts_add_up_at_every_cut(text in "([a-zA-Z]{1,3}|[0-9]{1,4}|[ \\t\\n\\r\\x0b\\x0c/]{1,4}|'(s|S|ll|re|l)|[ -/:-@]{1,2}|\\PC|\\s){0,30}") {
            for vocabulary in [Vocabulary::O200k, Vocabulary::Cl100k] {
                let tokenizer = Tokenizer::new(vocabulary);
                let whole = tokenizer.count(&text);
                for at in cuts(&text) {
                    let parts = tokenizer.count(&text[..at]) + tokenizer.count(&text[at..]);
                    prop_assert_eq!(parts, whole, "{} at {} of {:?}", vocabulary, at, text);
                }
            }
        }

        #[test]
        fn a_cut_stays_one_whatever_is_put_around_it(before in "[a\\n /']{0,3}", text in "[a1\\n\\t /'é]{0,8}", after in "[a\\n /']{0,3}") {
            let joined = [before.as_str(), &text, &after].concat();
            for at in cuts(&text) {
                prop_assert!(is_cut_point(&joined, before.len() + at), "{} of {:?} in {:?}", at, text, joined);
            }
        }
    }
}

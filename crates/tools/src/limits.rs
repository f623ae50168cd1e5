//! [`LimitedLines`] and other means to keep answers short, and to say what was cut.

use std::borrow::Cow;
use std::ops::Range;

/// The most bytes of one answer: some 12,000 tokens.
pub(crate) const MAX_ANSWER_BYTES: usize = 50 * 1024;

/// An answer of whole lines that grows until it reaches a limit.
pub(crate) struct LimitedLines {
    text: String,
    /// How many lines the answer has.
    pub count: usize,
    most: usize,
}

/// The limit because of which a line was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// The number of lines given to [`LimitedLines::new`].
    Lines,
    /// [`MAX_ANSWER_BYTES`].
    Bytes,
}

impl LimitedLines {
    /// An empty answer of at most `most` lines.
    pub fn new(most: usize) -> Self {
        LimitedLines { text: String::new(), count: 0, most }
    }

    /// Adds a line, unless the answer is full.
    pub fn push(&mut self, line: &str) -> Result<(), LimitReached> {
        if self.count == self.most {
            return Err(LimitReached::Lines);
        }
        if self.text.len() + line.len() + 1 > MAX_ANSWER_BYTES {
            return Err(LimitReached::Bytes);
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
        Ok(())
    }

    /// The answer, with the notices in brackets on a last line.
    pub fn append_notices(mut self, notices: &[String]) -> String {
        if notices.is_empty() {
            self.text.pop(); // the last line end
        }
        append_notices(self.text, notices)
    }
}

/// Appends notices in brackets on a line of their own: `[one; two]`.
pub(crate) fn append_notices(mut text: String, notices: &[String]) -> String {
    if notices.is_empty() {
        return text;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + "[" + &notices.join("; ") + "]"
}

/// Cuts a line after so many characters and says how many were cut. The line ending stays.
pub(crate) fn truncate_line(line: &str, characters: usize) -> Cow<'_, str> {
    // Fast path for short lines: there are never more characters than bytes.
    if line.len() <= characters {
        return line.into();
    }
    let text = line.trim_end_matches(['\r', '\n']);
    match text.char_indices().nth(characters) {
        None => line.into(),
        Some((at, _)) => {
            let more = text[at..].chars().count();
            format!("{}…[{more} more characters]{}", &text[..at], &line[text.len()..]).into()
        }
    }
}

/// At most `bytes` bytes of a line around the match `found`, with `…` where something is cut.
pub(crate) fn excerpt_around(line: &[u8], found: Range<usize>, bytes: usize) -> String {
    if line.len() <= bytes {
        return String::from_utf8_lossy(line).into_owned();
    }
    // A quarter of the room goes before the match: what follows it tells more.
    let mut start = found.start.saturating_sub(bytes / 4).min(line.len() - bytes);
    let mut end = start + bytes;
    let within_char = |at: usize| line.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    while within_char(start) {
        start += 1;
    }
    while end > start && within_char(end) {
        end -= 1;
    }
    let mark = |cut: bool| if cut { "…" } else { "" };
    format!("{}{}{}", mark(start > 0), String::from_utf8_lossy(&line[start..end]), mark(end < line.len()))
}

/// Escapes the line breaks of a name, so that it stays on one line.
pub(crate) fn escape_line_ends(name: &str) -> Cow<'_, str> {
    if name.contains(['\n', '\r']) {
        name.replace('\n', "\\n").replace('\r', "\\r").into()
    } else {
        name.into()
    }
}

/// A count with its noun: `1 file`, `2 files`.
pub(crate) fn pluralize(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_takes_lines_until_it_is_full() {
        let mut lines = LimitedLines::new(2);
        assert_eq!(
            [lines.push("a"), lines.push("b"), lines.push("c")],
            [Ok(()), Ok(()), Err(LimitReached::Lines)]
        );
        assert_eq!(lines.append_notices(&["one".into(), "two".into()]), "a\nb\n[one; two]");
        let mut lines = LimitedLines::new(9);
        assert_eq!(lines.push(&"x".repeat(MAX_ANSWER_BYTES - 1)), Ok(()));
        assert_eq!(lines.push(""), Err(LimitReached::Bytes));
        assert_eq!(lines.append_notices(&[]).len(), MAX_ANSWER_BYTES - 1);
    }

    #[test]
    fn a_line_is_cut_after_characters_and_keeps_its_end() {
        assert_eq!(truncate_line("äöü\r\n", 3), "äöü\r\n");
        assert_eq!(truncate_line("äöüß\r\n", 3), "äöü…[1 more characters]\r\n");
        assert_eq!(truncate_line("abc", 3), "abc");
    }

    #[test]
    fn a_line_is_cut_around_what_was_found() {
        let line = format!("{}needle{}", "a".repeat(50), "b".repeat(50));
        assert_eq!(excerpt_around(line.as_bytes(), 50..56, 16), "…aaaaneedlebbbbbb…");
        assert_eq!(excerpt_around(line.as_bytes(), 0..1, 4), "aaaa…");
        assert_eq!(excerpt_around(line.as_bytes(), 105..106, 4), "…bbbb");
        assert_eq!(excerpt_around("äääää".as_bytes(), 4..6, 4), "…ä…");
    }

    #[test]
    fn only_line_ends_of_names_are_escaped() {
        assert_eq!(escape_line_ends("a\nb\rc\x1b[0m"), "a\\nb\\rc\x1b[0m");
    }

    proptest! {
        #[test]
        fn a_cut_never_splits_a_character(line in ".{0,40}", at in 0usize..50, bytes in 4usize..20) {
            let cut = excerpt_around(line.as_bytes(), at..at + 1, bytes);
            let is_split = cut.contains(char::REPLACEMENT_CHARACTER) && !line.contains(char::REPLACEMENT_CHARACTER);
            prop_assert!(!is_split);
            prop_assert!(cut.len() <= bytes + 2 * '…'.len_utf8());
            prop_assert!(line.contains(cut.trim_start_matches('…').trim_end_matches('…')) || line.contains('…'));
        }
    }
}

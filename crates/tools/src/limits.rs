//! How much an answer holds, and how what is cut off is told.

use std::borrow::Cow;
use std::ops::Range;

/// The most bytes of one answer: some 12,000 tokens.
pub(crate) const BYTES: usize = 50 * 1024;

/// An answer of lines that grows until it is full.
pub(crate) struct Lines {
    text: String,
    /// How many lines were taken.
    pub count: usize,
    most: usize,
}

/// Which limit an answer came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// As many lines as were asked for.
    Lines,
    /// [`BYTES`].
    Bytes,
}

impl Lines {
    /// An answer of at most so many lines.
    pub fn new(most: usize) -> Self {
        Lines { text: String::new(), count: 0, most }
    }

    /// Takes a line, unless the answer is full.
    pub fn push(&mut self, line: &str) -> Result<(), Full> {
        if self.count == self.most {
            return Err(Full::Lines);
        }
        if self.text.len() + line.len() + 1 > BYTES {
            return Err(Full::Bytes);
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.count += 1;
        Ok(())
    }

    /// The answer, with what is to be noticed in brackets under it.
    pub fn with_notices(mut self, notices: &[String]) -> String {
        if notices.is_empty() {
            self.text.pop(); // the last line end
        }
        with_notices(self.text, notices)
    }
}

/// A text, with what is to be noticed in brackets on a line of its own under it.
pub(crate) fn with_notices(mut text: String, notices: &[String]) -> String {
    if notices.is_empty() {
        return text;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + "[" + &notices.join("; ") + "]"
}

/// A line of at most so many characters; what is cut off is counted. A line end stays.
pub(crate) fn cut_end(line: &str, characters: usize) -> Cow<'_, str> {
    // Most lines are short: bytes are never fewer than characters.
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

/// At most so many bytes of a line around what was found in it, `…` where something is cut off.
pub(crate) fn cut_around(line: &[u8], found: Range<usize>, bytes: usize) -> String {
    if line.len() <= bytes {
        return String::from_utf8_lossy(line).into_owned();
    }
    // A quarter before it: what follows tells more.
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

/// A name as part of a line: its line ends are escaped, all else stays.
pub(crate) fn one_line(name: &str) -> Cow<'_, str> {
    if name.contains(['\n', '\r']) {
        name.replace('\n', "\\n").replace('\r', "\\r").into()
    } else {
        name.into()
    }
}

/// `1 file`, `2 files`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_takes_lines_until_it_is_full() {
        let mut lines = Lines::new(2);
        assert_eq!([lines.push("a"), lines.push("b"), lines.push("c")], [Ok(()), Ok(()), Err(Full::Lines)]);
        assert_eq!(lines.with_notices(&["one".into(), "two".into()]), "a\nb\n[one; two]");
        let mut lines = Lines::new(9);
        assert_eq!(lines.push(&"x".repeat(BYTES - 1)), Ok(()));
        assert_eq!(lines.push(""), Err(Full::Bytes));
        assert_eq!(lines.with_notices(&[]).len(), BYTES - 1);
    }

    #[test]
    fn a_line_is_cut_after_characters_and_keeps_its_end() {
        assert_eq!(cut_end("äöü\r\n", 3), "äöü\r\n");
        assert_eq!(cut_end("äöüß\r\n", 3), "äöü…[1 more characters]\r\n");
        assert_eq!(cut_end("abc", 3), "abc");
    }

    #[test]
    fn a_line_is_cut_around_what_was_found() {
        let line = format!("{}needle{}", "a".repeat(50), "b".repeat(50));
        assert_eq!(cut_around(line.as_bytes(), 50..56, 16), "…aaaaneedlebbbbbb…");
        assert_eq!(cut_around(line.as_bytes(), 0..1, 4), "aaaa…");
        assert_eq!(cut_around(line.as_bytes(), 105..106, 4), "…bbbb");
        assert_eq!(cut_around("äääää".as_bytes(), 4..6, 4), "…ä…");
    }

    #[test]
    fn only_line_ends_of_names_are_escaped() {
        assert_eq!(one_line("a\nb\rc\x1b[0m"), "a\\nb\\rc\x1b[0m");
    }

    proptest! {
        #[test]
        fn a_cut_never_splits_a_character(line in ".{0,40}", at in 0usize..50, bytes in 4usize..20) {
            let cut = cut_around(line.as_bytes(), at..at + 1, bytes);
            let is_split = cut.contains(char::REPLACEMENT_CHARACTER) && !line.contains(char::REPLACEMENT_CHARACTER);
            prop_assert!(!is_split);
            prop_assert!(cut.len() <= bytes + 2 * '…'.len_utf8());
            prop_assert!(line.contains(cut.trim_start_matches('…').trim_end_matches('…')) || line.contains('…'));
        }
    }
}

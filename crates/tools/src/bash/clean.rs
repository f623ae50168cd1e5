//! Output without what a terminal would obey.

/// What stands for bytes that are no text.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Turns bytes, cut anywhere, into text: escape sequences are left out; control characters and what is not UTF-8 are
/// replaced, a run of them by one mark. Tabs, line feeds and lone carriage returns stay.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    state: State,
    /// The bytes of a character that is not whole yet.
    part: Vec<u8>,
    carriage_return: bool,
    /// The last thing put out was a replacement.
    replaced: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// ESC and an intermediate byte: one more follows.
    Intermediate,
    /// ESC [ … up to a letter.
    Control,
    /// ESC ] and its kin … up to BEL or ESC \.
    Words,
    /// ESC within such a text.
    WordsEscape,
}

impl Cleaner {
    /// The text of the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            // Most output is plain: take it in one go.
            let plain =
                if self.at_rest() { rest.iter().take_while(|byte| is_plain(**byte)).count() } else { 0 };
            if plain > 0 {
                text.push_str(std::str::from_utf8(&rest[..plain]).unwrap_or_default());
                self.replaced = false;
                rest = &rest[plain..];
                continue;
            }
            self.byte(byte, &mut text);
            rest = after;
        }
        text
    }

    /// What is left when no more bytes come.
    pub fn end(&mut self) -> String {
        let mut text = String::new();
        self.broken_part(&mut text);
        if std::mem::take(&mut self.carriage_return) {
            text.push('\r');
        }
        text
    }

    fn at_rest(&self) -> bool {
        self.state == State::Text && self.part.is_empty() && !self.carriage_return
    }

    fn byte(&mut self, byte: u8, text: &mut String) {
        self.state = match (self.state, byte) {
            (State::Text, _) => return self.text_byte(byte, text),
            (State::Escape, b'[') => State::Control,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::Words,
            (State::Escape, 0x20..=0x2F) => State::Intermediate,
            (State::Control, 0x20..=0x3F) => State::Control,
            (State::Intermediate, 0x20..=0x2F) => State::Intermediate,
            (State::Words, 0x1B) => State::WordsEscape,
            (State::Words | State::WordsEscape, 0x07) => State::Text,
            // An endless one would swallow everything: a line end is not part of it.
            (State::Words, b'\n') => {
                self.state = State::Text;
                return self.text_byte(byte, text);
            }
            (State::Words, _) => State::Words,
            (State::WordsEscape, b'\\') => State::Text,
            // ESC begins anew, and a control character is no part of a sequence.
            (_, 0x1B) => State::Escape,
            (State::Escape | State::Intermediate | State::Control, 0x00..=0x1F) => {
                self.state = State::Text;
                return self.text_byte(byte, text);
            }
            (State::WordsEscape, _) => State::Words,
            (State::Escape | State::Intermediate | State::Control, _) => State::Text,
        };
    }

    fn text_byte(&mut self, byte: u8, text: &mut String) {
        if !self.part.is_empty() {
            if byte & 0xC0 == 0x80 {
                self.part.push(byte);
                return self.whole_part(text);
            }
            self.broken_part(text);
        }
        if std::mem::take(&mut self.carriage_return) && byte != b'\n' {
            self.put('\r', text);
        }
        match byte {
            0x1B => self.state = State::Escape,
            b'\r' => self.carriage_return = true,
            b'\n' | b'\t' | 0x20..=0x7E => self.put(char::from(byte), text),
            0xC2..=0xF4 => self.part.push(byte),
            _ => self.put(REPLACEMENT, text),
        }
    }

    /// Puts the character out if all its bytes are there.
    fn whole_part(&mut self, text: &mut String) {
        match std::str::from_utf8(&self.part) {
            Ok(whole) => {
                let char = whole.chars().next().unwrap_or(REPLACEMENT);
                self.part.clear();
                // U+0080 to U+009F are control characters, too.
                self.put(if char.is_control() { REPLACEMENT } else { char }, text);
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) => self.broken_part(text),
        }
    }

    fn broken_part(&mut self, text: &mut String) {
        if !self.part.is_empty() {
            self.part.clear();
            self.put(REPLACEMENT, text);
        }
    }

    fn put(&mut self, char: char, text: &mut String) {
        let replaced = char == REPLACEMENT;
        if !(replaced && self.replaced) {
            text.push(char);
        }
        self.replaced = replaced;
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7E | b'\n' | b'\t')
}

/// A whole text cleaned.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaner = Cleaner::default();
    cleaner.feed(text.as_bytes()) + &cleaner.end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escape_sequences_are_left_out() {
        for (raw, text) in [
            ("\x1b[1;31mred\x1b[0m", "red"),
            ("\x1b]0;title\x07rest", "rest"),
            ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b]52;c;never ends\nnext", "\nnext"),
            ("\x1b(Bplain", "plain"),
            ("\x1bPdata\x1b\\after", "after"),
            ("\x1b[2J\x1b[Hx", "x"),
            ("a\x1b[3\nb", "a\nb"),
            ("\x1b\x1b[1mx", "x"),
            ("lone \x1b", "lone "),
        ] {
            assert_eq!(clean(raw), text, "{raw:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_replaced_once_per_run() {
        let mut cleaner = Cleaner::default();
        assert_eq!(cleaner.feed(b"a\0\0\x01b\xff\xfe\xc3"), "a\u{fffd}b\u{fffd}");
        assert_eq!(cleaner.feed(b"\xa4 \xc3"), "ä ");
        assert_eq!(cleaner.end(), "\u{fffd}");
        assert_eq!(clean("\u{9b}31m"), "\u{fffd}31m");
    }

    #[test]
    fn line_ends_become_line_feeds_and_lone_carriage_returns_stay() {
        assert_eq!(clean("a\r\nb\rc\r"), "a\nb\rc\r");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_bytes_are_cut(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\x1b[];m\r\n\x07\\\xc3\xa4".to_vec())], 0..60),
            cut in 0usize..60,
        ) {
            let mut whole = Cleaner::default();
            let whole = whole.feed(&bytes) + &whole.end();
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            let mut pieces = Cleaner::default();
            let pieces = pieces.feed(one) + &pieces.feed(two) + &pieces.end();
            prop_assert_eq!(&pieces, &whole);
            prop_assert!(!whole.chars().any(|char| char.is_control() && !"\r\n\t".contains(char)));
        }
    }
}

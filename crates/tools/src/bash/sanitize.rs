//! [`TextSanitizer`]: turns output into text without anything that a terminal would interpret.

/// What replaces control characters and bytes that are not UTF-8.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Turns bytes, in chunks that may end anywhere, into text. Escape sequences are removed. Control
/// characters and invalid UTF-8 are replaced, each run of them by one U+FFFD. Tabs, line feeds and
/// lone carriage returns stay.
#[derive(Debug, Default)]
pub(crate) struct TextSanitizer {
    state: EscapeState,
    /// The first bytes of a character whose rest has not come yet.
    partial_character: Vec<u8>,
    carriage_return: bool,
    /// Whether the last character emitted was a replacement.
    replaced: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// ESC and an intermediate byte: one more follows.
    Intermediate,
    /// ESC [ … up to a letter.
    ControlSequence,
    /// ESC ] and its kin … up to BEL or ESC \.
    StringSequence,
    /// ESC within such a string.
    StringEscape,
}

impl TextSanitizer {
    /// Returns the text of the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            // Most output is plain: take it in one go.
            let plain = if self.is_plain_text() {
                rest.iter().take_while(|byte| is_plain(**byte)).count()
            } else {
                0
            };
            if plain > 0 {
                text.push_str(std::str::from_utf8(&rest[..plain]).unwrap_or_default());
                self.replaced = false;
                rest = &rest[plain..];
                continue;
            }
            self.push_byte(byte, &mut text);
            rest = after;
        }
        text
    }

    /// Returns what is still held back. Call it when no more bytes come.
    pub fn end(&mut self) -> String {
        let mut text = String::new();
        self.emit_broken_character(&mut text);
        if std::mem::take(&mut self.carriage_return) {
            text.push('\r');
        }
        text
    }

    fn is_plain_text(&self) -> bool {
        self.state == EscapeState::Text && self.partial_character.is_empty() && !self.carriage_return
    }

    fn push_byte(&mut self, byte: u8, text: &mut String) {
        self.state = match (self.state, byte) {
            (EscapeState::Text, _) => return self.push_text_byte(byte, text),
            (EscapeState::Escape, b'[') => EscapeState::ControlSequence,
            (EscapeState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => EscapeState::StringSequence,
            (EscapeState::Escape, 0x20..=0x2F) => EscapeState::Intermediate,
            (EscapeState::ControlSequence, 0x20..=0x3F) => EscapeState::ControlSequence,
            (EscapeState::Intermediate, 0x20..=0x2F) => EscapeState::Intermediate,
            (EscapeState::StringSequence, 0x1B) => EscapeState::StringEscape,
            (EscapeState::StringSequence | EscapeState::StringEscape, 0x07) => EscapeState::Text,
            // A line feed ends the sequence: an unterminated one would swallow all the rest.
            (EscapeState::StringSequence, b'\n') => {
                self.state = EscapeState::Text;
                return self.push_text_byte(byte, text);
            }
            (EscapeState::StringSequence, _) => EscapeState::StringSequence,
            (EscapeState::StringEscape, b'\\') => EscapeState::Text,
            // ESC begins a new sequence, and other control characters end one.
            (_, 0x1B) => EscapeState::Escape,
            (EscapeState::Escape | EscapeState::Intermediate | EscapeState::ControlSequence, 0x00..=0x1F) => {
                self.state = EscapeState::Text;
                return self.push_text_byte(byte, text);
            }
            (EscapeState::StringEscape, _) => EscapeState::StringSequence,
            (EscapeState::Escape | EscapeState::Intermediate | EscapeState::ControlSequence, _) => {
                EscapeState::Text
            }
        };
    }

    fn push_text_byte(&mut self, byte: u8, text: &mut String) {
        if !self.partial_character.is_empty() {
            if byte & 0xC0 == 0x80 {
                self.partial_character.push(byte);
                return self.emit_complete_character(text);
            }
            self.emit_broken_character(text);
        }
        if std::mem::take(&mut self.carriage_return) && byte != b'\n' {
            self.emit('\r', text);
        }
        match byte {
            0x1B => self.state = EscapeState::Escape,
            b'\r' => self.carriage_return = true,
            b'\n' | b'\t' | 0x20..=0x7E => self.emit(char::from(byte), text),
            0xC2..=0xF4 => self.partial_character.push(byte),
            _ => self.emit(REPLACEMENT, text),
        }
    }

    /// Emits the character if all its bytes are there.
    fn emit_complete_character(&mut self, text: &mut String) {
        match std::str::from_utf8(&self.partial_character) {
            Ok(whole) => {
                let char = whole.chars().next().unwrap_or(REPLACEMENT);
                self.partial_character.clear();
                // U+0080 to U+009F are control characters, too.
                self.emit(if char.is_control() { REPLACEMENT } else { char }, text);
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) => self.emit_broken_character(text),
        }
    }

    fn emit_broken_character(&mut self, text: &mut String) {
        if !self.partial_character.is_empty() {
            self.partial_character.clear();
            self.emit(REPLACEMENT, text);
        }
    }

    fn emit(&mut self, char: char, text: &mut String) {
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

/// A whole text without control sequences, and with a mark for what is no text.
pub fn sanitize(text: &str) -> String {
    let mut sanitizer = TextSanitizer::default();
    sanitizer.feed(text.as_bytes()) + &sanitizer.end()
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
            assert_eq!(sanitize(raw), text, "{raw:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_replaced_once_per_run() {
        let mut sanitizer = TextSanitizer::default();
        assert_eq!(sanitizer.feed(b"a\0\0\x01b\xff\xfe\xc3"), "a\u{fffd}b\u{fffd}");
        assert_eq!(sanitizer.feed(b"\xa4 \xc3"), "ä ");
        assert_eq!(sanitizer.end(), "\u{fffd}");
        assert_eq!(sanitize("\u{9b}31m"), "\u{fffd}31m");
    }

    #[test]
    fn line_ends_become_line_feeds_and_lone_carriage_returns_stay() {
        assert_eq!(sanitize("a\r\nb\rc\r"), "a\nb\rc\r");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_bytes_are_cut(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"\x1b[];m\r\n\x07\\\xc3\xa4".to_vec())], 0..60),
            cut in 0usize..60,
        ) {
            let mut whole = TextSanitizer::default();
            let whole = whole.feed(&bytes) + &whole.end();
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            let mut pieces = TextSanitizer::default();
            let pieces = pieces.feed(one) + &pieces.feed(two) + &pieces.end();
            prop_assert_eq!(&pieces, &whole);
            prop_assert!(!whole.chars().any(|char| char.is_control() && !"\r\n\t".contains(char)));
        }
    }
}

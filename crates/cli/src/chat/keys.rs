//! [`KeyDecoder`]: turns the bytes of a terminal into keys.

/// Starts the sequence of a key that is not a character, such as an arrow.
const ESCAPE: u8 = 0x1b;

/// The sequence that ends a bracketed paste.
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key press, or a whole paste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// Pasted text, line ends included: they do not submit the line as Enter does.
    Paste(String),
    Enter,
    /// Alt-Enter: a line end within the text.
    Newline,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    CutLine,
    CutWord,
    CutRest,
    /// Ctrl-D: the end of input.
    Eof,
}

/// Decodes keys from reads that may end in the middle of a sequence or a character.
#[derive(Debug, Default)]
pub struct KeyDecoder {
    state: DecoderState,
    /// The first bytes of a multi-byte character.
    partial: Vec<u8>,
}

#[derive(Debug, Default)]
enum DecoderState {
    #[default]
    Plain,
    Escaped,
    /// Within an escape sequence; holds its parameter bytes so far.
    Sequence(Vec<u8>),
    Pasting(Vec<u8>),
}

impl KeyDecoder {
    /// The keys that these bytes complete.
    pub fn decode(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|&byte| self.push_byte(byte)).collect()
    }

    fn push_byte(&mut self, byte: u8) -> Option<Key> {
        match &mut self.state {
            DecoderState::Plain => return self.decode_plain(byte),
            DecoderState::Escaped => {
                self.state = if matches!(byte, b'[' | b'O') {
                    DecoderState::Sequence(vec![])
                } else {
                    DecoderState::Plain
                };
                match byte {
                    b'[' | b'O' => {}
                    b'\r' | b'\n' => return Some(Key::Newline),
                    _ => return self.decode_plain(byte),
                }
            }
            DecoderState::Sequence(bytes) => match byte {
                0x20..=0x3f => bytes.push(byte),
                ESCAPE => self.state = DecoderState::Escaped,
                _ => {
                    let (key, state) = decode_sequence(bytes, byte);
                    self.state = state;
                    return key;
                }
            },
            DecoderState::Pasting(bytes) => {
                bytes.push(byte);
                if let Some(pasted) = bytes.strip_suffix(PASTE_END) {
                    let text = String::from_utf8_lossy(pasted).replace("\r\n", "\n").replace('\r', "\n");
                    self.state = DecoderState::Plain;
                    return Some(Key::Paste(text));
                }
            }
        }
        None
    }

    fn decode_plain(&mut self, byte: u8) -> Option<Key> {
        // Not a continuation byte, so the character before was broken.
        if byte & 0xc0 != 0x80 {
            self.partial.clear();
        }
        if byte < 0x20 || byte == 0x7f {
            return match byte {
                b'\r' | b'\n' => Some(Key::Enter),
                0x7f | 0x08 => Some(Key::Backspace),
                b'\t' => Some(Key::Char('\t')),
                0x01 => Some(Key::Home),
                0x02 => Some(Key::Left),
                0x04 => Some(Key::Eof),
                0x05 => Some(Key::End),
                0x06 => Some(Key::Right),
                0x0b => Some(Key::CutRest),
                0x0e => Some(Key::Down),
                0x10 => Some(Key::Up),
                0x15 => Some(Key::CutLine),
                0x17 => Some(Key::CutWord),
                ESCAPE => {
                    self.state = DecoderState::Escaped;
                    None
                }
                _ => None,
            };
        }
        self.partial.push(byte);
        let read = std::str::from_utf8(&self.partial);
        // The rest of the character is still to come.
        if read.is_err_and(|error| error.error_len().is_none()) {
            return None;
        }
        let c = read.ok().and_then(|text| text.chars().next()).unwrap_or('\u{fffd}');
        self.partial.clear();
        Some(Key::Char(c))
    }
}

/// The key of an escape sequence with these parameters and this final byte; none if it is unknown.
fn decode_sequence(parameters: &[u8], end: u8) -> (Option<Key>, DecoderState) {
    let key = match (parameters, end) {
        (b"200", b'~') => return (None, DecoderState::Pasting(vec![])),
        (_, b'A') => Key::Up,
        (_, b'B') => Key::Down,
        (_, b'C') => Key::Right,
        (_, b'D') => Key::Left,
        (_, b'H') | (b"1" | b"7", b'~') => Key::Home,
        (_, b'F') | (b"4" | b"8", b'~') => Key::End,
        (b"3", b'~') => Key::Delete,
        _ => return (None, DecoderState::Plain),
    };
    (Some(key), DecoderState::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_however_their_bytes_are_cut() {
        let bytes = "aé😀\x1b[A\x1b[3~\x1b[1;5C\x1bOD\x1b\r\x1b[200~x\r\ny\rz\x1b[0m\x03\x1b[201~\x7f\x15\r"
            .as_bytes();
        let expected = [
            Key::Char('a'),
            Key::Char('é'),
            Key::Char('😀'),
            Key::Up,
            Key::Delete,
            Key::Right,
            Key::Left,
            Key::Newline,
            Key::Paste("x\ny\nz\x1b[0m\x03".into()),
            Key::Backspace,
            Key::CutLine,
            Key::Enter,
        ];
        assert_eq!(KeyDecoder::default().decode(bytes), expected);
        let mut keys = KeyDecoder::default();
        let one_by_one: Vec<Key> = bytes.iter().flat_map(|byte| keys.decode(&[*byte])).collect();
        assert_eq!(one_by_one, expected);
    }

    #[test]
    fn bytes_that_mean_nothing_lose_nothing_that_follows() {
        let mut keys = KeyDecoder::default();
        assert_eq!(keys.decode(b"\x1b[99x\x1b[?1\xff\x1c\xc3(a"), [Key::Char('('), Key::Char('a')]);
        assert_eq!(keys.decode(b"\xff"), [Key::Char('\u{fffd}')]);
        assert_eq!(keys.decode(b"\x1b\x1b[\x1b[Bb"), [Key::Down, Key::Char('b')]);
    }
}

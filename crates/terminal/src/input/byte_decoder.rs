//! [`ByteDecoder`]: what a terminal sends, as events. Reads may end anywhere; a character or a
//! sequence that is not complete waits for the next one.
//!
//! Our own, because crossterm's reader waits for an edge: of 10,000 characters that arrive at once it
//! sees the first thousand until another key is pressed.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

const ESCAPE: u8 = 0x1b;
const PASTE_END: &[u8] = b"\x1b[201~";

/// Something that a terminal sent.
#[derive(Clone, Debug, PartialEq)]
pub enum TerminalEvent {
    /// Keys, pastes, the focus.
    Input(Event),
    /// The answer to the question for the background colour: red, green, blue.
    Background(u8, u8, u8),
}

/// Decodes the bytes of a terminal.
#[derive(Debug, Default)]
pub struct ByteDecoder {
    /// What is not decoded yet: the beginning of a character, a sequence or a paste.
    pending: Vec<u8>,
    is_pasting: bool,
}

/// What the bytes at hand begin with.
enum Decoded {
    /// An event of so many bytes; none if they mean nothing.
    Event(Option<TerminalEvent>, usize),
    /// More bytes are needed.
    Partial,
}

impl ByteDecoder {
    /// The events that these bytes complete.
    pub fn decode(&mut self, bytes: &[u8]) -> Vec<TerminalEvent> {
        // The end of a paste may be cut in two.
        let searched_from = self.pending.len().saturating_sub(PASTE_END.len());
        self.pending.extend_from_slice(bytes);
        let mut events = Vec::new();
        let mut at = 0;
        loop {
            if self.is_pasting {
                let from = if at == 0 { searched_from } else { at };
                let end = find(&self.pending[from..], PASTE_END).map(|found| from + found);
                let Some(end) = end else { break };
                let text = String::from_utf8_lossy(&self.pending[at..end]).into_owned();
                events.push(TerminalEvent::Input(Event::Paste(text)));
                self.is_pasting = false;
                at = end + PASTE_END.len();
                continue;
            }
            if self.pending[at..].starts_with(b"\x1b[200~") {
                (self.is_pasting, at) = (true, at + 6);
                continue;
            }
            match decode_one(&self.pending[at..]) {
                Decoded::Event(event, length) => {
                    events.extend(event);
                    at += length;
                }
                Decoded::Partial => break,
            }
        }
        self.pending.drain(..at);
        events
    }

    /// Whether an escape waits for what follows it.
    pub fn has_escape(&self) -> bool {
        !self.is_pasting && self.pending == [ESCAPE]
    }

    /// Nothing more came: an escape that stands alone is the key.
    pub fn finish(&mut self) -> Option<TerminalEvent> {
        self.has_escape().then(|| {
            self.pending.clear();
            key(KeyCode::Esc, KeyModifiers::NONE)
        })
    }
}

fn find(bytes: &[u8], searched: &[u8]) -> Option<usize> {
    bytes.windows(searched.len()).position(|window| window == searched)
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> TerminalEvent {
    TerminalEvent::Input(Event::Key(KeyEvent::new(code, modifiers)))
}

fn decode_one(bytes: &[u8]) -> Decoded {
    match bytes {
        [] | [ESCAPE] => Decoded::Partial,
        [ESCAPE, b'[', rest @ ..] => decode_csi(rest),
        [ESCAPE, b'O', rest @ ..] => match rest {
            [] => Decoded::Partial,
            [b'P'..=b'S', ..] => {
                Decoded::Event(Some(key(KeyCode::F(rest[0] - b'P' + 1), KeyModifiers::NONE)), 3)
            }
            [end, ..] => Decoded::Event(arrow(*end).map(|code| key(code, KeyModifiers::NONE)), 3),
        },
        [ESCAPE, b']' | b'P' | b'_' | b'^', rest @ ..] => decode_string(bytes[1], rest),
        // Alt, or Esc before another sequence.
        [ESCAPE, ESCAPE, ..] => Decoded::Event(Some(key(KeyCode::Esc, KeyModifiers::NONE)), 1),
        [ESCAPE, rest @ ..] => match decode_character(rest) {
            Decoded::Event(Some(TerminalEvent::Input(Event::Key(pressed))), length) => {
                let modifiers = pressed.modifiers | KeyModifiers::ALT;
                Decoded::Event(Some(key(pressed.code, modifiers)), length + 1)
            }
            Decoded::Event(event, length) => Decoded::Event(event, length + 1),
            Decoded::Partial => Decoded::Partial,
        },
        bytes => decode_character(bytes),
    }
}

/// A character, or a control character as the key that sends it.
fn decode_character(bytes: &[u8]) -> Decoded {
    let one = |code, modifiers| Decoded::Event(Some(key(code, modifiers)), 1);
    let ctrl = KeyModifiers::CONTROL;
    match bytes[0] {
        b'\r' => one(KeyCode::Enter, KeyModifiers::NONE),
        b'\t' => one(KeyCode::Tab, KeyModifiers::NONE),
        0x7f => one(KeyCode::Backspace, KeyModifiers::NONE),
        0 => one(KeyCode::Char(' '), ctrl),
        byte @ 0x01..=0x1a => one(KeyCode::Char(char::from(byte - 1 + b'a')), ctrl),
        byte @ 0x1c..=0x1f => one(KeyCode::Char(char::from(byte - 0x1c + b'4')), ctrl),
        _ => {
            let longest = &bytes[..bytes.len().min(4)];
            let text = match std::str::from_utf8(longest) {
                Ok(text) => text,
                Err(error) if error.valid_up_to() > 0 => {
                    std::str::from_utf8(&longest[..error.valid_up_to()]).unwrap_or_default()
                }
                // The rest of the character is still to come.
                Err(error) if error.error_len().is_none() && longest.len() < 4 => return Decoded::Partial,
                Err(_) => return one(KeyCode::Char(char::REPLACEMENT_CHARACTER), KeyModifiers::NONE),
            };
            let Some(c) = text.chars().next() else { return Decoded::Event(None, 1) };
            let modifiers = if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
            Decoded::Event(Some(key(KeyCode::Char(c), modifiers)), c.len_utf8())
        }
    }
}

/// A control sequence, behind `ESC [`.
fn decode_csi(rest: &[u8]) -> Decoded {
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        // An escape within begins anew.
        return match rest.iter().position(|byte| *byte == ESCAPE) {
            Some(at) => Decoded::Event(None, at + 2),
            None => Decoded::Partial,
        };
    };
    if let Some(at) = rest[..end].iter().position(|byte| *byte == ESCAPE) {
        return Decoded::Event(None, at + 2);
    }
    let parameters = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    match (parameters.strip_prefix('<'), rest[end]) {
        (Some(parameters), b'M') => return Decoded::Event(mouse(parameters), end + 3),
        // A button that is let go.
        (Some(_), _) => return Decoded::Event(None, end + 3),
        // The mouse of terminals that know the older form alone: three bytes follow.
        (None, b'M') if end == 0 && rest.len() < 4 => return Decoded::Partial,
        (None, b'M') if end == 0 => return Decoded::Event(None, 6),
        _ => {}
    }
    // Further values of a parameter stand behind a colon: other layouts, and the kind of event.
    let mut numbers = parameters.split(';').map(|field| field.split(':').next().unwrap_or_default());
    let number = numbers.next().and_then(|number| number.parse::<u32>().ok());
    let modifiers = modifiers(numbers.next().and_then(|number| number.parse().ok()).unwrap_or(1));
    let is_release = parameters.split(';').nth(1).is_some_and(|field| field.ends_with(":3"));
    let event = match rest[end] {
        _ if is_release => None,
        b'I' => Some(TerminalEvent::Input(Event::FocusGained)),
        b'O' => Some(TerminalEvent::Input(Event::FocusLost)),
        b'Z' => Some(key(KeyCode::BackTab, KeyModifiers::SHIFT)),
        b'~' => number.and_then(numbered_key).map(|code| key(code, modifiers)),
        b'u' => number.and_then(|number| kitty_key(number, modifiers)),
        letter @ (b'P' | b'Q' | b'S') => Some(key(KeyCode::F(letter - b'P' + 1), modifiers)),
        letter => arrow(letter).map(|code| key(code, modifiers)),
    };
    Decoded::Event(event, end + 3)
}

/// A button or the wheel: `button ; column ; row`, counted from 1.
fn mouse(parameters: &str) -> Option<TerminalEvent> {
    /// Shift, Alt and Ctrl, which change nothing here.
    const MODIFIERS: u16 = 4 | 8 | 16;
    let mut numbers = parameters.split(';').map(|number| number.parse::<u16>().ok());
    let (button, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let kind = match button & !MODIFIERS {
        0 => MouseEventKind::Down(MouseButton::Left),
        64 => MouseEventKind::ScrollUp,
        65 => MouseEventKind::ScrollDown,
        _ => return None,
    };
    let (column, row) = (column.saturating_sub(1), row.saturating_sub(1));
    let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
    Some(TerminalEvent::Input(Event::Mouse(event)))
}

fn modifiers(parameter: u32) -> KeyModifiers {
    let bits = parameter.saturating_sub(1);
    let mut modifiers = KeyModifiers::NONE;
    for (bit, modifier) in [(1, KeyModifiers::SHIFT), (2, KeyModifiers::ALT), (4, KeyModifiers::CONTROL)] {
        if bits & bit != 0 {
            modifiers |= modifier;
        }
    }
    modifiers
}

fn arrow(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        _ => return None,
    })
}

/// The key of `ESC [ number ~`.
fn numbered_key(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => KeyCode::F(u8::try_from(number - 10).ok()?),
        17..=21 => KeyCode::F(u8::try_from(number - 11).ok()?),
        23 | 24 => KeyCode::F(u8::try_from(number - 12).ok()?),
        _ => return None,
    })
}

/// The key of kitty's protocol: a code point and modifiers.
fn kitty_key(number: u32, modifiers: KeyModifiers) -> Option<TerminalEvent> {
    let code = match number {
        9 if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        127 => KeyCode::Backspace,
        // Keys without a character live in the private use area.
        57344..=63743 => return None,
        number => KeyCode::Char(char::from_u32(number)?),
    };
    Some(key(code, modifiers))
}

/// A string of the terminal, such as an answer: up to BEL or `ESC \`.
fn decode_string(kind: u8, rest: &[u8]) -> Decoded {
    let end = rest.iter().position(|byte| matches!(*byte, 0x07 | ESCAPE));
    let Some(end) = end else {
        // Nobody sends one this long: the escape was a key.
        return if rest.len() > 4096 { Decoded::Event(None, 2) } else { Decoded::Partial };
    };
    let length = match rest[end..] {
        [ESCAPE, b'\\', ..] => end + 2,
        [ESCAPE] => return Decoded::Partial,
        [ESCAPE, ..] => end,
        _ => end + 1,
    };
    let background = (kind == b']').then(|| background(&rest[..end])).flatten();
    Decoded::Event(background.map(|(r, g, b)| TerminalEvent::Background(r, g, b)), length + 2)
}

/// `11;rgb:ffff/ffff/ffff`, with one to four digits for each colour.
fn background(answer: &[u8]) -> Option<(u8, u8, u8)> {
    let text = std::str::from_utf8(answer).ok()?.strip_prefix("11;rgb:")?;
    let mut parts = text.split('/').map(|digits| {
        let value = u32::from_str_radix(digits, 16).ok()?;
        let most = 16u32.checked_pow(u32::try_from(digits.len()).ok().filter(|count| *count <= 4)?)? - 1;
        u8::try_from(value * 255 / most).ok()
    });
    Some((parts.next()??, parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::decode_batch;

    /// Everything that the bytes mean, as settings name keys.
    fn decoded(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = ByteDecoder::default();
        let mut events: Vec<TerminalEvent> = pieces.iter().flat_map(|piece| decoder.decode(piece)).collect();
        events.extend(decoder.finish());
        let shown = |event: &TerminalEvent| match event {
            TerminalEvent::Background(r, g, b) => format!("background {r} {g} {b}"),
            TerminalEvent::Input(event) => match &decode_batch(std::slice::from_ref(event))[..] {
                [crate::input::InputEvent::Key(key)] => key.to_string(),
                other => format!("{other:?}"),
            },
        };
        events.iter().map(shown).collect()
    }

    const KEYS: &[u8] = "aé😀\x1b[A\x1b[3~\x1b[1;5C\x1bOD\x1b\r\x1bb\x1b[Z\x1bOP\x1b[15~\x7f\x15\r\n\x1f\x1b[106;5u\x1b[13;2u\x1b[I"
        .as_bytes();

    #[test]
    fn keys_are_the_same_however_their_bytes_are_cut() {
        let expected = [
            "a",
            "é",
            "😀",
            "↑",
            "Del",
            "Ctrl-→",
            "←",
            "Alt-Enter",
            "Alt-B",
            "Shift-Tab",
            "F1",
            "F5",
            "⌫",
            "Ctrl-U",
            "Enter",
            "Ctrl-J",
            "Ctrl-_",
            "Ctrl-J",
            "Shift-Enter",
            "[Focus { has_focus: true }]",
        ];
        assert_eq!(decoded(&[KEYS]), expected);
        let one_by_one: Vec<&[u8]> = KEYS.chunks(1).collect();
        assert_eq!(decoded(&one_by_one), expected);
    }

    #[test]
    fn a_paste_is_one_event_and_holds_what_looks_like_keys() {
        let bytes = b"\x1b[200~x\r\ny\x1b[0m\x03\x1b[201~z";
        let expected = ["[Paste(\"x\\ny\\u{1b}[0m\\u{3}\")]", "z"];
        assert_eq!(decoded(&[bytes]), expected);
        let one_by_one: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decoded(&one_by_one), expected);
    }

    #[test]
    fn bytes_that_mean_nothing_lose_nothing_that_follows() {
        assert_eq!(decoded(&[b"\x1b[99x\x1b[?1;2c\xffa\x1b[\x1b[Bb"]), ["\u{fffd}", "a", "↓", "b"]);
        assert_eq!(decoded(&[b"\x1b"]), ["Esc"]);
        assert_eq!(decoded(&[b"\x1b\x1b"]), ["Esc", "Esc"]);
        assert_eq!(decoded(&[b"\x1b]0;title\x07\x1bP1$r\x1b\\x"]), ["x"]);
    }

    #[test]
    fn the_mouse_clicks_and_scrolls_and_its_other_reports_mean_nothing() {
        let bytes =
            b"\x1b[<0;5;3M\x1b[<0;5;3m\x1b[<64;1;1M\x1b[<69;1;1M\x1b[<35;9;9M\x1b[<2;1;1M\x1b[M !!a\x1b[<;;M";
        let expected = ["[Click { row: 2, column: 4 }]", "[Wheel(-3)]", "[Wheel(3)]", "a"];
        assert_eq!(decoded(&[bytes]), expected);
        let one_by_one: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(decoded(&one_by_one), expected);
    }

    #[test]
    fn the_background_is_read_from_the_terminals_answer() {
        assert_eq!(decoded(&[b"\x1b]11;rgb:ffff/8080/0000\x1b\\"]), ["background 255 128 0"]);
        assert_eq!(decoded(&[b"\x1b]11;rgb:f/8/0\x07a"]), ["background 255 136 0", "a"]);
    }

    #[test]
    fn a_megabyte_is_decoded_in_linear_time() {
        let mut bytes = b"\x1b[200~".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', 1 << 20));
        bytes.extend(PASTE_END);
        let mut decoder = ByteDecoder::default();
        let events: usize = bytes.chunks(1024).map(|piece| decoder.decode(piece).len()).sum();
        assert_eq!(events, 1);
    }
}

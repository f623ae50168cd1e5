//! What a person does at the terminal, decoded: [`decode_batch`] turns the events of one `read()`
//! into [`InputEvent`]s.

mod byte_decoder; // ByteDecoder: the bytes of a terminal
mod terminal_input; // TerminalInput: reads them

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEventKind};

use crate::keymap::KeyPress;
use crate::screen::ScreenSize;

pub use byte_decoder::{ByteDecoder, TerminalEvent};
pub use terminal_input::TerminalInput;

/// Something that a person or the terminal did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputEvent {
    /// A key was pressed.
    Key(KeyPress),
    /// Text was pasted: line ends are `\n`.
    Paste(String),
    /// The wheel was turned, by rows; negative is up. Only the alternate screen reports it.
    Wheel(i16),
    /// The left button of the mouse was pressed; only with `mouse = true`, in the alternate screen.
    Click {
        /// Row of the screen, from 0.
        row: u16,
        /// Column, from 0.
        column: u16,
    },
    /// The terminal has another size.
    Resize(ScreenSize),
    /// The terminal's window got or lost the focus.
    Focus {
        /// Whether it has it now.
        has_focus: bool,
    },
}

/// Equal arrows in one `read()` from which on they are a wheel and no keys.
const WHEEL_STEPS: usize = 3;

/// Rows of one step of a wheel that is reported as such.
const WHEEL_ROWS: i16 = 3;

/// Decodes what one `read()` gave. Terminals without bracketed paste send a paste as keys: a line
/// end inside of the batch, with text after it, marks one. There are no timers, and a doubt errs
/// towards not sending.
pub fn decode_batch(events: &[Event]) -> Vec<InputEvent> {
    if let Some(text) = unmarked_paste(events) {
        return vec![InputEvent::Paste(text)];
    }
    let mut decoded = Vec::new();
    let mut rest = events;
    while let Some((event, after)) = rest.split_first() {
        if let Some((rows, length)) = wheel(rest) {
            decoded.push(InputEvent::Wheel(rows));
            rest = &rest[length..];
            continue;
        }
        decoded.extend(decode(event));
        rest = after;
    }
    decoded
}

fn decode(event: &Event) -> Option<InputEvent> {
    match event {
        Event::Key(key) => KeyPress::from_event(*key).map(InputEvent::Key),
        Event::Paste(text) => Some(InputEvent::Paste(normalized_line_ends(text))),
        Event::Resize(columns, rows) => {
            Some(InputEvent::Resize(ScreenSize { columns: (*columns).max(1), rows: (*rows).max(1) }))
        }
        Event::FocusGained => Some(InputEvent::Focus { has_focus: true }),
        Event::FocusLost => Some(InputEvent::Focus { has_focus: false }),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Some(InputEvent::Wheel(-WHEEL_ROWS)),
            MouseEventKind::ScrollDown => Some(InputEvent::Wheel(WHEEL_ROWS)),
            MouseEventKind::Down(MouseButton::Left) => {
                Some(InputEvent::Click { row: mouse.row, column: mouse.column })
            }
            _ => None,
        },
    }
}

fn normalized_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The text of a batch that is a paste without marks.
fn unmarked_paste(events: &[Event]) -> Option<String> {
    let typed = |event: &Event| match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => typed_text(key),
        _ => None,
    };
    let text: Option<String> = events.iter().map(typed).collect();
    let text = normalized_line_ends(&text?);
    let has_text_after_line_end = text.trim_end_matches('\n').contains('\n');
    // A key that repeats (Enter held down) has no text.
    (has_text_after_line_end && text.chars().any(|c| c != '\n')).then_some(text)
}

/// What a key would be in pasted text.
fn typed_text(key: &KeyEvent) -> Option<char> {
    match (key.code, key.modifiers) {
        (KeyCode::Char(c), KeyModifiers::NONE | KeyModifiers::SHIFT) => Some(c),
        (KeyCode::Enter, KeyModifiers::NONE) | (KeyCode::Char('j'), KeyModifiers::CONTROL) => Some('\n'),
        (KeyCode::Tab, KeyModifiers::NONE) => Some('\t'),
        _ => None,
    }
}

/// Rows of a wheel, and how many events of the batch are part of it.
fn wheel(events: &[Event]) -> Option<(i16, usize)> {
    let arrow = |event: &Event| match event {
        Event::Key(KeyEvent { code: KeyCode::Up, modifiers: KeyModifiers::NONE, .. }) => Some(-1),
        Event::Key(KeyEvent { code: KeyCode::Down, modifiers: KeyModifiers::NONE, .. }) => Some(1),
        _ => None,
    };
    let direction: i16 = arrow(events.first()?)?;
    let length = events.iter().take_while(|event| arrow(event) == Some(direction)).count();
    let rows = i16::try_from(length).unwrap_or(i16::MAX).saturating_mul(direction);
    (length >= WHEEL_STEPS).then_some((rows, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<Event> {
        let key = |c| match c {
            '\r' => Event::Key(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)),
            '\n' => Event::Key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL)),
            '↑' => Event::Key(KeyEvent::new(KeyCode::Up, KeyModifiers::NONE)),
            c => Event::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)),
        };
        text.chars().map(key).collect()
    }

    fn press(text: &str) -> InputEvent {
        InputEvent::Key(KeyPress::parse(text).unwrap())
    }

    #[test]
    fn text_after_a_line_end_in_one_read_is_a_paste_and_fast_typing_is_not() {
        assert_eq!(decode_batch(&keys("ls\rrm -rf /\r")), [InputEvent::Paste("ls\nrm -rf /\n".into())]);
        assert_eq!(decode_batch(&keys("ls\r")), [press("l"), press("s"), press("enter")]);
        assert_eq!(decode_batch(&keys("\r\r\r")), [press("enter"), press("enter"), press("enter")]);
        assert_eq!(decode_batch(&keys("a\n")), [press("a"), press("ctrl-j")]);
    }

    #[test]
    fn a_marked_paste_has_line_feeds_alone() {
        let pasted = decode_batch(&[Event::Paste("a\r\nb\rc\n".into())]);
        assert_eq!(pasted, [InputEvent::Paste("a\nb\nc\n".into())]);
    }

    #[test]
    fn three_arrows_in_one_read_are_the_wheel_and_one_is_a_key() {
        assert_eq!(decode_batch(&keys("↑↑↑")), [InputEvent::Wheel(-3)]);
        assert_eq!(decode_batch(&keys("↑")), [press("up")]);
    }
}

//! What the page's bytes show: through `vt100`, which keeps a scrollback and does not rewrap, and
//! through tmux, which does.

mod guard;
mod page;
mod tmux;

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use ratatui::text::Line;

use super::{CursorPlace, Frame};

/// Sequences that would touch what the shell or the page printed before.
const FORBIDDEN: [&str; 8] =
    ["\x1b[2J", "\x1b[3J", "\x1b[H", "\x1b[1;", "\x1b[6n", "\x1b[?1000h", "\x1b[?1003h", "\x1b[?1006h"];

/// Bytes that several owners write.
#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<u8>>>);

impl Recording {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Write for Recording {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Panics if bytes contain what the page must never write: whole-screen erasure, absolute
/// positions, scroll regions, cursor queries, mouse capture.
fn assert_nothing_forbidden(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for sequence in FORBIDDEN {
        assert!(!text.contains(sequence), "{sequence:?} in {text:?}");
    }
    for (at, _) in text.match_indices("\x1b[") {
        let rest = &text[at + 2..];
        let last = rest.find(|c: char| ('@'..='~').contains(&c)).map(|end| rest.as_bytes()[end]);
        assert!(
            !matches!(last, Some(b'r' | b'H' | b'f' | b'S' | b'T' | b'L' | b'M')),
            "{:?}",
            &rest[..8.min(rest.len())]
        );
    }
}

/// A frame with a live area of `height` rows, the cursor in the row before the last.
fn frame(print: &[String], height: usize, number: usize) -> Frame {
    let row = |index: usize| match index + 1 {
        last if last == height => Line::from(format!("status {number}.")),
        _ => Line::from(format!("live {number} {index} {}", "x".repeat(index * 7 % 50))),
    };
    Frame {
        print: print.iter().cloned().map(Line::from).collect(),
        live: (0..height).map(row).collect(),
        cursor: CursorPlace { row: height.saturating_sub(2), column: number % 9 },
        ..Frame::default()
    }
}

//! Text for people: an answer as it streams on standard output, and whole lines on standard error,
//! which begin on a line of their own.

use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};

use unicode_width::UnicodeWidthChar;

use crate::output;

/// Columns printed of the answer's last line; 0 at the start of a line.
static COLUMN: Mutex<usize> = Mutex::new(0);

/// Prints whole lines on standard error, above the input line. Control characters are made harmless.
pub fn print_lines(text: &str) {
    print_controls(&output::safe_lines(text));
}

/// The same, dimmed where the terminal can.
pub fn print_dimmed_lines(text: &str) {
    let text = output::safe_lines(text);
    print_controls(&if is_styled() { format!("\x1b[2m{text}\x1b[0m") } else { text });
}

fn print_controls(text: &str) {
    let mut column = lock();
    if std::mem::take(&mut *column) > 0 {
        write_stdout("\n");
    }
    output::write_controls(&format!("{}\n", text.strip_suffix('\n').unwrap_or(text)));
}

/// Prints more of an answer on standard output. Control characters are made harmless.
pub fn print_answer(text: &str) {
    let text = &output::safe_lines(text);
    let mut column = lock();
    *column = text.chars().fold(*column, |column, c| match c {
        '\n' => 0,
        // To the next tab stop.
        '\t' => column / 8 * 8 + 8,
        c => column + c.width().unwrap_or(0),
    });
    write_stdout(text);
}

/// Ends the answer's line, if one is open.
pub fn end_answer_line() {
    let is_open = *lock() > 0;
    if is_open {
        print_answer("\n");
    }
}

/// The width of standard error in columns; none if it is not a terminal.
pub fn width() -> Option<usize> {
    io::stderr().is_terminal().then(|| screen_size().0)
}

/// Whether standard error shows dimmed text (and `NO_COLOR` is not set).
pub fn is_styled() -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !is_dumb() && !plain
}

/// Whether the terminal understands no cursor movement.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Columns and rows of the terminal.
pub fn screen_size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    let (width, height) = size.map_or((100, 24), |(width, height)| (width.0.into(), height.0.into()));
    (width.max(4), height.max(2))
}

fn write_stdout(text: &str) {
    if !text.is_empty() {
        let _ = output::print_controls(text);
    }
}

/// Held while printing, unlike other locks: what is on the screen must be what the state says.
fn lock() -> MutexGuard<'static, usize> {
    COLUMN.lock().unwrap_or_else(PoisonError::into_inner)
}

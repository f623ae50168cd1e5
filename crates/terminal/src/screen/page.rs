//! [`PageScreen`]: finished lines are printed once and belong to the terminal from then on; the
//! rows of the live area below them are redrawn.
//!
//! Nothing here asks the terminal where its cursor is, and nothing moves it to an absolute row. The
//! page knows how many rows its cursor is below the first live row, goes up by that, and writes.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use ratatui::text::Line;

use super::encode::EncodedRow;
use crate::text::isolate_rtl;

/// A frame that was drawn less than this before a change of size was reported may have been drawn after
/// the change: tmux rewraps at once, and reports up to a quarter of a second later, or more if the
/// machine is busy. Its rows were cut then, and not wrapped.
const SETTLED: Duration = Duration::from_secs(1);

const BEGIN_FRAME: &str = "\x1b[?2026h";
const END_FRAME: &str = "\x1b[?2026l";
const AUTOWRAP_OFF: &str = "\x1b[?7l";
const AUTOWRAP_ON: &str = "\x1b[?7h";
const ERASE_BELOW: &str = "\x1b[J";
const ERASE_LINE_END: &str = "\x1b[K";

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenSize {
    /// Columns, at least 1.
    pub columns: u16,
    /// Rows, at least 1.
    pub rows: u16,
}

/// Whether a terminal wraps its old lines again when its width changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrap {
    /// It does: tmux, kitty, VTE, iTerm2, Windows Terminal and most others.
    Yes,
    /// It cuts or extends its rows: xterm, the Linux console, screen.
    No,
}

impl Rewrap {
    /// What the terminal does, as far as its environment variables tell.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let term = variable("TERM").unwrap_or_default();
        let is_screen = term.starts_with("screen") && variable("TMUX").is_none();
        if is_screen || term == "linux" || variable("XTERM_VERSION").is_some() {
            Rewrap::No
        } else {
            Rewrap::Yes
        }
    }
}

/// Where the cursor stands in the live area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CursorPlace {
    /// Row of the live area, from 0.
    pub row: usize,
    /// Column, from 0.
    pub column: usize,
}

/// What the page shows next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// Finished lines. They are printed above the live area, and the terminal wraps them.
    pub print: Vec<Line<'static>>,
    /// The rows of the live area, cut at the right edge.
    pub live: Vec<Line<'static>>,
    /// Where the cursor stands in the live area.
    pub cursor: CursorPlace,
}

/// The normal screen of a terminal, written through any [`Write`].
#[derive(Debug)]
pub struct PageScreen<W> {
    out: W,
    rewrap: Rewrap,
    /// The live rows on the screen; empty if there is no live area.
    drawn: Vec<EncodedRow>,
    cursor: CursorPlace,
    size: Option<ScreenSize>,
    drawn_at: Duration,
    /// When a change of size was first reported since.
    resized_at: Option<Duration>,
    /// Rows between the live area's first and the cursor, for a guard that has to clean up.
    rows_above_cursor: Arc<AtomicU16>,
}

impl<W: Write> PageScreen<W> {
    /// A page that begins at the terminal's cursor, which is at the start of a line.
    pub fn new(out: W, rewrap: Rewrap) -> Self {
        PageScreen {
            out,
            rewrap,
            drawn: Vec::new(),
            cursor: CursorPlace::default(),
            size: None,
            drawn_at: Duration::ZERO,
            resized_at: None,
            rows_above_cursor: Arc::default(),
        }
    }

    /// How many rows above the cursor the live area begins, kept up to date: whoever has to end the
    /// program without this page erases from there.
    pub fn rows_above_cursor(&self) -> Arc<AtomicU16> {
        self.rows_above_cursor.clone()
    }

    /// What the page writes to.
    pub fn writer(&mut self) -> &mut W {
        &mut self.out
    }

    /// Prints a frame's lines and draws its live area. `size` was read just now; `now` only grows.
    /// Writes nothing if nothing changed.
    pub fn draw(&mut self, frame: &Frame, size: ScreenSize, now: Duration) -> io::Result<()> {
        let columns = usize::from(size.columns);
        // More live rows than the screen has could not be erased again.
        let room = usize::from(size.rows).max(1);
        let first = (frame.cursor.row + 1).saturating_sub(room);
        let live: Vec<EncodedRow> = frame
            .live
            .iter()
            .skip(first)
            .take(room)
            .map(|line| EncodedRow::clipped(&isolate_rtl(line.clone()), columns))
            .collect();
        let cursor = match live.len() {
            0 => CursorPlace::default(),
            rows => CursorPlace {
                row: (frame.cursor.row - first).min(rows - 1),
                column: frame.cursor.column.min(columns.saturating_sub(1)),
            },
        };
        let is_same_size = self.size == Some(size);
        if frame.print.is_empty() && is_same_size && !self.drawn.is_empty() {
            let rewritten = self.rewrite_changed(&live, cursor, columns);
            self.remember(live, cursor, size, now);
            return self.write(&rewritten);
        }
        let mut out = self.go_to_top(size, now);
        out.push_str(ERASE_BELOW);
        push_printed(&mut out, &frame.print, columns);
        push_live(&mut out, &live, cursor);
        self.remember(live, cursor, size, now);
        self.write(&out)
    }

    /// The terminal has reported another size: the next frame is drawn for it.
    pub fn note_resize(&mut self, now: Duration) {
        self.resized_at.get_or_insert(now);
    }

    /// Prints lines where the cursor is, at the start of a line, without a live area.
    pub fn print(&mut self, lines: &[Line<'static>], size: ScreenSize) -> io::Result<()> {
        let mut out = String::new();
        push_printed(&mut out, lines, usize::from(size.columns));
        self.out.write_all(out.as_bytes())?;
        self.out.flush()
    }

    /// Erases the live area, before something else uses the screen: a view, the shell, an editor.
    /// The next frame draws it again, below whatever was printed meanwhile.
    pub fn erase(&mut self, size: ScreenSize, now: Duration) -> io::Result<()> {
        if self.drawn.is_empty() {
            return Ok(());
        }
        let mut out = self.go_to_top(size, now);
        out.push_str(ERASE_BELOW);
        self.remember(Vec::new(), CursorPlace::default(), size, now);
        self.write(&out)
    }

    /// Makes the next frame draw every live row, even those that did not change.
    pub fn redraw(&mut self) {
        self.size = None;
    }

    fn remember(&mut self, live: Vec<EncodedRow>, cursor: CursorPlace, size: ScreenSize, now: Duration) {
        (self.drawn, self.cursor, self.size, self.drawn_at) = (live, cursor, Some(size), now);
        self.resized_at = None;
        let rows = u16::try_from(cursor.row).unwrap_or(u16::MAX);
        self.rows_above_cursor.store(rows, Ordering::Relaxed);
    }

    /// Moves to the first column of the first live row.
    fn go_to_top(&self, size: ScreenSize, now: Duration) -> String {
        let columns = usize::from(size.columns).max(1);
        let was_resized = self.size.is_some_and(|before| before.columns != size.columns);
        let reported = self.resized_at.unwrap_or(now);
        let is_settled = reported.saturating_sub(self.drawn_at) >= SETTLED;
        let rows = if was_resized && self.rewrap == Rewrap::Yes && is_settled {
            let above =
                self.drawn.iter().take(self.cursor.row).map(|row| row.rows_at(columns)).sum::<usize>();
            above + self.cursor.column / columns
        } else {
            self.cursor.row
        };
        let mut out = String::new();
        push_up(&mut out, rows);
        out.push('\r');
        out
    }

    /// Rewrites the live rows that differ, and the cursor's place. Empty if nothing differs.
    fn rewrite_changed(&self, live: &[EncodedRow], cursor: CursorPlace, columns: usize) -> String {
        if live == self.drawn && cursor == self.cursor {
            return String::new();
        }
        let mut out = AUTOWRAP_OFF.to_owned();
        let mut row = self.cursor.row;
        for (index, encoded) in live.iter().enumerate() {
            if self.drawn.get(index) == Some(encoded) {
                continue;
            }
            push_vertical(&mut out, row, index);
            out.push('\r');
            out.push_str(&encoded.bytes);
            // A full row leaves the cursor on its last column, and erasing from there would take it.
            if encoded.width < columns {
                out.push_str(ERASE_LINE_END);
            }
            row = index;
        }
        if live.len() < self.drawn.len() {
            push_vertical(&mut out, row, live.len());
            out.push('\r');
            out.push_str(ERASE_BELOW);
            row = live.len();
        }
        out.push_str(AUTOWRAP_ON);
        push_vertical(&mut out, row, cursor.row);
        push_column(&mut out, cursor.column);
        out
    }

    fn write(&mut self, bytes: &str) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let framed = format!("{BEGIN_FRAME}{bytes}{END_FRAME}");
        self.out.write_all(framed.as_bytes())?;
        self.out.flush()
    }
}

/// Adds lines that the terminal wraps.
fn push_printed(out: &mut String, lines: &[Line<'static>], columns: usize) {
    for line in lines {
        out.push_str(&EncodedRow::whole(&isolate_rtl(line.clone()), columns).bytes);
        out.push_str("\r\n");
    }
}

/// Draws live rows from the cursor's row on.
fn push_live(out: &mut String, live: &[EncodedRow], cursor: CursorPlace) {
    if live.is_empty() {
        return;
    }
    out.push_str(AUTOWRAP_OFF);
    for (index, row) in live.iter().enumerate() {
        out.push_str(if index > 0 { "\r\n" } else { "" });
        out.push_str(&row.bytes);
    }
    out.push_str(AUTOWRAP_ON);
    push_up(out, live.len() - 1 - cursor.row);
    push_column(out, cursor.column);
}

fn push_up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

/// Moves from one live row to another. Downwards by line feeds, which scroll: a terminal that was made
/// lower has dropped the rows below the cursor, and another way down would stop at its last row. The
/// way back up would then end above the live area, in what was printed.
fn push_vertical(out: &mut String, from: usize, to: usize) {
    push_up(out, from.saturating_sub(to));
    out.extend(std::iter::repeat_n('\n', to.saturating_sub(from)));
}

fn push_column(out: &mut String, column: usize) {
    out.push('\r');
    if column > 0 {
        let _ = write!(out, "\x1b[{column}C");
    }
}

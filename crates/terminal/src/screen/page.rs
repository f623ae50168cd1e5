//! [`PageScreen`]: finished lines are printed once and belong to the terminal from then on; the
//! rows of the live area below them are redrawn.
//!
//! Nothing here asks the terminal where its cursor is, and nothing moves it to an absolute row. The
//! page knows how many rows its cursor is below the first live row, goes up by that, and writes.
//!
//! A terminal that wraps its lines again may do so long before it reports the new size, and frames are
//! drawn in between. The way up must never be too long then, or it erases what was printed. It is not,
//! as long as no two live rows are ever one line to the terminal:
//! - Live rows are drawn with autowrap off, and end with CR LF.
//! - What is written where a wrapped row of an older frame may go on begins with an erased row: that
//!   makes the terminal forget that its row goes on in the next.
//! - Rows below the cursor, and the rows that the cursor moves down to, are only written together with
//!   all rows from the cursor's on.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use ratatui::text::Line;

use super::encode::EncodedRow;
use super::picture::PrintedPicture;
use crate::text::isolate_rtl;

/// A frame that was drawn less than this before a change of size was reported may have been drawn after
/// the change. Its rows were cut then, and not wrapped.
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
    /// It does, and the size that it reports is the one it has: kitty, VTE, iTerm2, Windows Terminal and
    /// most others.
    Reported,
    /// It does, but what stands between tells us later: tmux by a quarter of a second or more, SSH by
    /// the way there. It may have another width by then.
    ReportedLate,
    /// It cuts or extends its rows: xterm, the Linux console, screen.
    No,
}

impl Rewrap {
    /// What the terminal does, as far as its environment variables tell.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        let term = variable("TERM").unwrap_or_default();
        let is_set = |name| variable(name).is_some();
        let is_screen = term.starts_with("screen") && !is_set("TMUX");
        if is_screen || term == "linux" || is_set("XTERM_VERSION") {
            Rewrap::No
        } else if ["TMUX", "ZELLIJ", "SSH_CONNECTION"].into_iter().any(is_set) {
            Rewrap::ReportedLate
        } else {
            Rewrap::Reported
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
    /// Pictures between those lines, in their order.
    pub pictures: Vec<PrintedPicture>,
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
            let rewritten = self.rewrite_changed(&live, cursor);
            self.remember(live, cursor, size, now);
            return self.write(&rewritten);
        }
        let mut out = self.go_to_top(size, now);
        out.push_str(ERASE_BELOW);
        push_printed(&mut out, &frame.print, &frame.pictures, columns);
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
        push_printed(&mut out, lines, &[], usize::from(size.columns));
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
        let mut out = String::new();
        if !was_resized || self.rewrap == Rewrap::No {
            push_up(&mut out, self.cursor.row);
            out.push('\r');
            return out;
        }
        let above = self.drawn.iter().take(self.cursor.row).map(|row| row.rows_at(columns)).sum::<usize>();
        let wrapped = above + self.cursor.column / columns;
        let reported = self.resized_at.unwrap_or(now);
        let is_settled = reported.saturating_sub(self.drawn_at) >= SETTLED;
        if self.rewrap == Rewrap::Reported && is_settled {
            push_up(&mut out, wrapped);
            out.push('\r');
        } else {
            // There are at least as many rows as were drawn. Those that came of wrapping stay: a row too
            // many is better than an erased line. They get a line end, so that what follows is no part
            // of them.
            push_up(&mut out, self.cursor.row);
            out.push('\r');
            if wrapped > self.cursor.row {
                out.push_str(ERASE_BELOW);
                out.push_str("\r\n");
            }
        }
        out
    }

    /// Rewrites the live rows that differ, and the cursor's place. Empty if nothing differs.
    fn rewrite_changed(&self, live: &[EncodedRow], cursor: CursorPlace) -> String {
        if live == self.drawn && cursor == self.cursor {
            return String::new();
        }
        let differs = |index: usize| live.get(index) != self.drawn.get(index);
        let from = self.cursor.row;
        let mut out = AUTOWRAP_OFF.to_owned();
        let mut row = from;
        for index in (0..from.min(live.len())).filter(|index| differs(*index)) {
            push_vertical(&mut out, row, index);
            push_row(&mut out, &live[index]);
            row = index;
        }
        let is_lower = cursor.row > from || (from + 1..live.len().max(self.drawn.len())).any(differs);
        if is_lower || live.len() <= from {
            // All rows from the cursor's on; or none, if there are fewer now.
            let first = from.min(live.len());
            push_vertical(&mut out, row, first);
            out.push('\r');
            out.push_str(ERASE_BELOW);
            out.push_str(&live[first..].iter().map(|row| &*row.bytes).collect::<Vec<_>>().join("\r\n"));
            row = first.max(live.len().saturating_sub(1));
        } else if differs(from) {
            push_vertical(&mut out, row, from);
            push_row(&mut out, &live[from]);
            row = from;
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

/// Adds lines that the terminal wraps, and pictures between them.
fn push_printed(out: &mut String, lines: &[Line<'static>], pictures: &[PrintedPicture], columns: usize) {
    let mut pictures = pictures.iter().peekable();
    for index in 0..=lines.len() {
        while let Some(picture) = pictures.next_if(|picture| picture.after <= index) {
            out.push_str(&picture.bytes);
            out.push_str("\r\n");
        }
        if let Some(line) = lines.get(index) {
            out.push_str(&EncodedRow::whole(&isolate_rtl(line.clone()), columns).bytes);
            out.push_str("\r\n");
        }
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

/// Writes one live row over whatever its row shows.
fn push_row(out: &mut String, row: &EncodedRow) {
    out.push('\r');
    out.push_str(ERASE_LINE_END);
    out.push_str(&row.bytes);
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

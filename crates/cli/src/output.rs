//! [`print()`] and [`print_json`] for standard output, `note!` for standard error, [`Table`] for
//! columns, and [`safe`] for text that must not steer the terminal. What others wrote is harmless
//! whichever of them prints it; only [`print_controls`] and [`write_controls`] write anything else.
//!
//! Nothing here panics if the reader is gone, as `println!` and `eprintln!` do; the lints of this
//! crate forbid those.

use std::io::{self, IsTerminal, Write};

pub use hardpan_prompt::figures::{format_dollars as dollars, format_paid as paid_or_simulated};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub use hardpan_terminal::text::{escape_json, safe, safe_lines, strip_lines};

/// How a command prints its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

impl OutputFormat {
    /// What a `--json` flag asks for.
    pub fn from_json_flag(json: bool) -> Self {
        if json { OutputFormat::Json } else { OutputFormat::Text }
    }
}

/// Why standard output cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: {0}")]
pub struct OutputError(#[from] io::Error);

/// Writes text to standard output and flushes it. Control characters of others are made harmless on
/// a terminal, and left out with their sequences elsewhere; line ends and tabs stay.
pub fn print(text: impl AsRef<str>) -> Result<(), OutputError> {
    print_raw(harmless(text.as_ref()).as_bytes())
}

/// Writes rows and sentences to standard output. A terminal that is narrower than a line gets it in
/// several, broken at blanks, below the column in which its last part begins.
pub fn print_wrapped(text: impl AsRef<str>) -> Result<(), OutputError> {
    if !io::stdout().is_terminal() {
        return print(text);
    }
    let (width, _) = crate::chat::screen::screen_size();
    print(wrap_lines(text.as_ref(), width))
}

fn wrap_lines(text: &str, width: usize) -> String {
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let column = line.rfind("  ").map_or(0, |at| line[..at].width() + 2);
        let indent = if column < width / 2 { column } else { 2.min(width / 2) };
        let (mut rest, mut room) = (line, width);
        while rest.width() > room {
            let fits = rest.char_indices().map(|(at, _)| at).take_while(|at| rest[..*at].width() <= room);
            let Some(cut) = fits.filter(|at| rest[*at..].starts_with(' ') && *at > 0).last() else { break };
            if rest[..cut].trim().is_empty() {
                break;
            }
            wrapped.push_str(rest[..cut].trim_end());
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
            rest = rest[cut..].trim_start();
            room = width - indent;
        }
        wrapped.push_str(rest);
        wrapped.push_str(end);
    }
    wrapped
}

/// Writes a value to standard output, as JSON in lines for people.
pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(print_raw((escape_json(serde_json::to_string_pretty(value)?) + "\n").as_bytes())?)
}

/// Writes a line of JSON to standard output.
pub fn print_json_line(json: impl Into<String>) -> Result<(), OutputError> {
    print_raw((escape_json(json.into()) + "\n").as_bytes())
}

/// Writes JSON to standard output exactly as it is, except to a terminal: there it gets escapes.
pub fn print_exact_json(bytes: &[u8]) -> Result<(), OutputError> {
    if !io::stdout().is_terminal() {
        return print_raw(bytes);
    }
    print_json_line(String::from_utf8_lossy(bytes))
}

/// Writes our own control sequences, and text that is harmless already, to standard output.
pub fn print_controls(text: &str) -> Result<(), OutputError> {
    print_raw(text.as_bytes())
}

fn print_raw(bytes: &[u8]) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// The text in the form for standard output.
fn harmless(text: &str) -> String {
    if io::stdout().is_terminal() { safe_lines(text) } else { strip_lines(text) }
}

/// Writes a line for people to standard error. If nobody reads it, it is dropped.
macro_rules! note {
    ($($text:tt)*) => { $crate::output::write_note(format_args!("{}\n", format_args!($($text)*))) };
}

/// Like `note!`, without the line end: for questions.
macro_rules! note_inline {
    ($($text:tt)*) => { $crate::output::write_note(format_args!($($text)*)) };
}

/// Writes a line that the next one replaces to standard error: our own words and numbers alone.
macro_rules! progress {
    ($($text:tt)*) => { $crate::output::write_controls(&format!($($text)*)) };
}

/// What `note!` calls. Control characters are made harmless: much of what people are told quotes
/// others.
pub fn write_note(text: std::fmt::Arguments<'_>) {
    write_controls(&safe_lines(&text.to_string()));
}

/// Writes our own control sequences, and text that is harmless already, to standard error: one write,
/// so that it does not mix with that of other threads.
pub fn write_controls(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Whether the error means that the reader of our output went away (`hardpan … | head`), which is
/// not worth a message. Another pipe that broke, such as a connection, is.
pub fn is_output_closed(error: &anyhow::Error) -> bool {
    let broken = |OutputError(error): &OutputError| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref().is_some_and(broken)
}

/// A number with separators: `1,234,567`.
pub fn thousands(n: usize) -> String {
    hardpan_economy::format::format_number(n as u64)
}

/// The error as a person reads it: its text, and every cause that the text does not tell already.
pub fn error_text(error: &anyhow::Error) -> String {
    hardpan_app::error_text(error.as_ref())
}

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table whose columns are as narrow as their cells allow.
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| safe(&cell)).collect());
    }

    /// The table as text. Lines wider than `width` columns are cut.
    pub fn render(&self, width: usize) -> String {
        let heads: Vec<String> = self.columns.iter().map(|(head, _)| (*head).to_owned()).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().chain([&heads]).map(|row| row[column].width());
                cells.max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        for row in [&heads].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                if column > 0 {
                    line.push_str("  ");
                }
                let pad = " ".repeat(widths[column].saturating_sub(cell.width()));
                let last = column + 1 == row.len();
                match self.columns[column].1 {
                    Align::Right => line.extend([pad.as_str(), cell]),
                    Align::Left if last => line.push_str(cell),
                    Align::Left => line.extend([cell, pad.as_str()]),
                }
            }
            out.push_str(cut(line.trim_end(), width).as_str());
            out.push('\n');
        }
        out
    }
}

/// The text, cut to `width` columns; an ellipsis marks the cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_blanks_below_their_last_column() {
        let text = "paid  20 tokens  a sentence of words\nshort\n\nno_blank_in_this_word\n";
        assert_eq!(
            wrap_lines(text, 20),
            "paid  20 tokens  a\n  sentence of words\nshort\n\nno_blank_in_this_word\n"
        );
        assert_eq!(wrap_lines("a  one two three four\n", 10), "a  one two\n   three\n   four\n");
        assert_eq!(wrap_lines(text, 100), text);
    }

    #[test]
    fn only_our_own_output_counts_as_closed() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_output_closed(&anyhow::Error::from(OutputError(broken())).context("a table")));
        assert!(!is_output_closed(&OutputError(io::ErrorKind::StorageFull.into()).into()));
        assert!(!is_output_closed(&anyhow::Error::from(broken())));
    }

    #[test]
    fn a_table_is_cut_to_its_width() {
        let mut table = Table::new(&[("n", Align::Right), ("what", Align::Left)]);
        table.row(vec!["10".into(), "something long".into()]);
        assert_eq!(table.render(80), " n  what\n10  something long\n");
        assert_eq!(table.render(10), " n  what\n10  somet…\n");
    }
}

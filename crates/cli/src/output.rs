//! [`print()`] for standard output, `note!` for standard error, [`Table`] for columns, and [`safe`]
//! for text that must not steer the terminal.
//!
//! Nothing here panics if the reader is gone, as `println!` and `eprintln!` do; the lints of this
//! crate forbid those.

use std::io::{self, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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

/// Writes all bytes to standard output and flushes it.
pub fn print(bytes: impl AsRef<[u8]>) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes.as_ref())?;
    Ok(out.flush()?)
}

/// Writes a line for people to standard error. If nobody reads it, it is dropped.
macro_rules! note {
    ($($text:tt)*) => { $crate::output::write_note(format_args!("{}\n", format_args!($($text)*))) };
}

/// Like `note!`, without the line end: for questions and for progress.
macro_rules! note_inline {
    ($($text:tt)*) => { $crate::output::write_note(format_args!($($text)*)) };
}

/// What `note!` calls. The text is one write, so that it does not mix with that of other threads.
pub fn write_note(text: std::fmt::Arguments<'_>) {
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}

/// Whether the error means that the reader of our output went away (`hardpan … | head`), which is
/// not worth a message. Another pipe that broke, such as a connection, is.
pub fn is_output_closed(error: &anyhow::Error) -> bool {
    let broken = |OutputError(error): &OutputError| error.kind() == io::ErrorKind::BrokenPipe;
    error.downcast_ref().is_some_and(broken)
}

/// Replaces control characters, line ends included, so that foreign text never steers the terminal.
pub fn safe(text: &str) -> String {
    text.chars().map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }).collect()
}

/// Like [`safe`], but keeps line ends and tabs, which code has.
pub fn safe_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.chars().map(|c| if is_unsafe(c) && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

/// Control characters, and those that change the direction of writing.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A number with separators: `1,234,567`.
pub fn thousands(n: usize) -> String {
    hardpan_economy::format::format_number(n as u64)
}

/// An amount of money: `$0.0123`, with six digits after the point below one cent.
pub fn dollars(amount: f64) -> String {
    if amount == 0.0 || amount >= 0.01 { format!("${amount:.4}") } else { format!("${amount:.6}") }
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

//! [`Table`]: rows whose columns are as wide as their cells, or as the terminal allows.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::inline::inline;
use super::{Context, MAX_OPEN_ROWS};
use crate::text::{line_width, width, wrap};
use crate::theme::Role;

/// Between two columns.
const GAP: usize = 2;

/// If columns would have to be narrower than this, each row becomes a list of its cells.
const MIN_COLUMN: usize = 6;

/// A table that is open.
#[derive(Clone, Debug)]
pub(super) struct Table {
    head: Vec<String>,
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
    /// Rows without a word since the last one with some: at the end of a table they are not printed.
    empty_rows: usize,
    /// Set with the first line that is printed.
    arrangement: Option<Arrangement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alignment {
    Left,
    Centre,
    Right,
}

#[derive(Clone, Debug)]
enum Arrangement {
    Columns(Vec<usize>),
    /// Each row as lines of head and cell.
    Records,
}

impl Table {
    /// The table that a line and the delimiters below it begin.
    pub(super) fn open(head: &str, delimiters: &str) -> Option<Self> {
        let has_bars = head.contains('|') && delimiters.contains('|');
        if !has_bars || !delimiters.contains('-') {
            return None;
        }
        let alignments: Option<Vec<Alignment>> =
            cells(delimiters).iter().map(|cell| alignment(cell)).collect();
        let (head, alignments) = (cells(head), alignments?);
        let is_table = head.len() == alignments.len();
        is_table.then(|| Table { head, alignments, rows: Vec::new(), empty_rows: 0, arrangement: None })
    }

    /// Takes a row, and returns lines once the table is longer than what is kept open.
    pub(super) fn push_row(&mut self, line: &str, context: &Context<'_>) -> Vec<Line<'static>> {
        let mut row = cells(line);
        let columns = self.head.len();
        if row.len() > columns {
            let last = row.split_off(columns - 1).join(" | ");
            row.push(last);
        }
        row.resize(columns, String::new());
        // A line break alone shows nothing either.
        let is_blank = |cell: &String| {
            cell.is_empty() || (cell.starts_with('<') && inline(cell, Style::new(), context.theme).is_empty())
        };
        if row.iter().all(is_blank) {
            self.empty_rows += 1;
            return Vec::new();
        }
        let separators =
            std::iter::repeat_n(vec![String::new(); columns], std::mem::take(&mut self.empty_rows));
        self.rows.extend(separators);
        self.rows.push(row);
        let is_long = self.rows.len() > MAX_OPEN_ROWS;
        if is_long || self.arrangement.is_some() { self.print(context) } else { Vec::new() }
    }

    /// The lines that are not printed yet.
    pub(super) fn finish(&mut self, context: &Context<'_>) -> Vec<Line<'static>> {
        self.print(context)
    }

    fn print(&mut self, context: &Context<'_>) -> Vec<Line<'static>> {
        let rows: Vec<Vec<Vec<Span<'static>>>> = self
            .rows
            .drain(..)
            .map(|row| row.iter().map(|cell| cell_spans(cell, Style::new(), context)).collect())
            .collect();
        let head: Vec<Vec<Span<'static>>> =
            self.head.iter().map(|cell| cell_spans(cell, context.theme.bold(Role::Text), context)).collect();
        let is_new = self.arrangement.is_none();
        let arrangement = self.arrangement.get_or_insert_with(|| arrange(&head, &rows, context.width));
        let mut lines = Vec::new();
        match arrangement {
            Arrangement::Columns(widths) => {
                if is_new {
                    lines.extend(row_lines(&head, widths, &self.alignments));
                    let quiet = context.theme.style(Role::Quiet);
                    let rules: Vec<String> =
                        widths.iter().map(|width| context.theme.glyphs.line.repeat(*width)).collect();
                    lines.push(Line::styled(rules.join(&" ".repeat(GAP)), quiet));
                }
                for row in &rows {
                    lines.extend(row_lines(row, widths, &self.alignments));
                }
            }
            Arrangement::Records => {
                for (index, row) in rows.iter().enumerate() {
                    if !is_new || index > 0 {
                        lines.push(Line::default());
                    }
                    lines.extend(record_lines(&head, row, context.prose_width()));
                }
            }
        }
        lines
    }
}

/// The cells of a row: what is between bars that no backslash precedes.
fn cells(line: &str) -> Vec<String> {
    let text = line.trim();
    let text = text.strip_prefix('|').unwrap_or(text);
    let mut cells = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = cells.len() - 1;
        match c {
            '\\' if chars.next_if_eq(&'|').is_some() => cells[last].push('|'),
            '|' if chars.peek().is_none() => break,
            '|' => cells.push(String::new()),
            c => cells[last].push(c),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn alignment(cell: &str) -> Option<Alignment> {
    let dashes = cell.trim_matches(':');
    if dashes.is_empty() || !dashes.chars().all(|c| c == '-') {
        return None;
    }
    Some(match (cell.starts_with(':'), cell.ends_with(':')) {
        (true, true) => Alignment::Centre,
        (false, true) => Alignment::Right,
        _ => Alignment::Left,
    })
}

fn cell_spans(cell: &str, style: Style, context: &Context<'_>) -> Vec<Span<'static>> {
    inline(cell, style, context.theme).join(&Span::raw(" "))
}

fn spans_width(spans: &[Span<'static>]) -> usize {
    spans.iter().map(|span| width(&span.content)).sum()
}

/// Columns as wide as their cells; if that is too wide, the widest give way first.
fn arrange(head: &[Vec<Span<'static>>], rows: &[Vec<Vec<Span<'static>>>], available: usize) -> Arrangement {
    let mut widths: Vec<usize> = head.iter().map(|cell| spans_width(cell)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(spans_width(cell));
        }
    }
    let room = available.saturating_sub(GAP * widths.len().saturating_sub(1));
    if widths.iter().sum::<usize>() > room {
        let total = |limit: usize| widths.iter().map(|width| (*width).min(limit)).sum::<usize>();
        let limit = (1..=room).rev().find(|limit| total(*limit) <= room).unwrap_or(0);
        if limit < MIN_COLUMN {
            return Arrangement::Records;
        }
        let mut spare = room - total(limit);
        for width in widths.iter_mut().filter(|width| **width > limit) {
            let more = spare.min(1);
            spare -= more;
            *width = limit + more;
        }
    }
    Arrangement::Columns(widths.iter().map(|width| (*width).max(1)).collect())
}

/// A row; a cell that is too long for its column takes several lines.
fn row_lines(row: &[Vec<Span<'static>>], widths: &[usize], alignments: &[Alignment]) -> Vec<Line<'static>> {
    let wrapped: Vec<Vec<Line<'static>>> =
        row.iter().zip(widths).map(|(cell, width)| wrap_cell(cell, *width)).collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
    let mut lines = Vec::new();
    for index in 0..height {
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut pending = 0;
        for ((cell, columns), alignment) in wrapped.iter().zip(widths).zip(alignments) {
            let line = cell.get(index).cloned().unwrap_or_default();
            let free = columns.saturating_sub(line_width(&line));
            let before = match alignment {
                Alignment::Left => 0,
                Alignment::Centre => free / 2,
                Alignment::Right => free,
            };
            // Nothing is padded to the right of the last cell.
            if !line.spans.is_empty() && pending + before > 0 {
                spans.push(Span::raw(" ".repeat(pending + before)));
                pending = 0;
            } else {
                pending += before;
            }
            spans.extend(line.spans);
            pending += free - before + GAP;
        }
        lines.push(Line::from(spans));
    }
    lines
}

/// The lines of a cell. An address that does not fit is broken like any word, and is no link then.
fn wrap_cell(cell: &[Span<'static>], columns: usize) -> Vec<Line<'static>> {
    let lines = wrap(cell, columns);
    if lines.iter().all(|line| line_width(line) <= columns) {
        return lines;
    }
    let plain = |line: &Line<'static>| Line::raw(line.to_string());
    lines.iter().flat_map(|line| crate::text::hard_wrap(&plain(line), columns)).collect()
}

fn record_lines(
    head: &[Vec<Span<'static>>],
    row: &[Vec<Span<'static>>],
    columns: usize,
) -> Vec<Line<'static>> {
    let named = head.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
    named
        .flat_map(|(head, cell)| {
            let mut spans = head.clone();
            if !head.is_empty() {
                spans.push(Span::raw(": "));
            }
            spans.extend(cell.iter().cloned());
            wrap(&spans, columns)
        })
        .collect()
}

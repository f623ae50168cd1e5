//! The columns of the table.

use ratatui::text::{Line, Span};

use super::{CacheMark, ContextColumns, ContextRow, LastUse, Layer, LayerAge};
use crate::blocks::core_sample::{CacheState, LayerPart, layer_bar};
use crate::blocks::format::{column_dollars, count};
use crate::text::{escape, pad_left, pad_right, truncate, width};
use crate::theme::{Role, Theme};

/// How wide each column is. Amounts and `holds` may be missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableWidths {
    name: usize,
    pub(super) bar: usize,
    tokens: usize,
    age: usize,
    last: usize,
    next: usize,
    amount: usize,
    has_holds: bool,
    has_notes: bool,
}

impl TableWidths {
    /// From 100 columns on.
    pub(super) const WIDE: Self = TableWidths {
        name: 13,
        bar: 12,
        tokens: 9,
        age: 10,
        last: 11,
        next: 8,
        amount: 8,
        has_holds: true,
        has_notes: true,
    };

    /// Below 100 columns.
    pub(super) fn for_columns(columns: usize) -> Self {
        let narrow = TableWidths {
            name: 15,
            bar: 14,
            tokens: 7,
            age: 10,
            last: 11,
            next: 9,
            amount: 0,
            has_holds: true,
            has_notes: false,
        };
        match columns {
            72.. => narrow,
            58.. => TableWidths { bar: 6, has_holds: false, ..narrow },
            46.. => TableWidths { bar: 5, age: 0, has_holds: false, ..narrow },
            _ => TableWidths { name: 14, bar: 4, age: 0, next: 0, has_holds: false, ..narrow },
        }
    }

    pub(super) fn head(&self, columns: &ContextColumns, theme: &Theme) -> Line<'static> {
        let amount = columns.amount;
        let name = pad_right(columns.name, self.name + self.bar);
        let holds = if self.has_holds && self.amount > 0 { "  holds" } else { "" };
        let cells = [
            ("tokens", self.tokens),
            (columns.age, self.age),
            ("last req.", self.last),
            ("next $", self.next),
            (amount, self.amount),
        ];
        let cells: String = cells.into_iter().map(|(text, columns)| cell(text, columns)).collect();
        Line::styled(format!(" {name}{cells}{holds}"), theme.style(Role::Quiet))
    }

    pub(super) fn layer(
        &self,
        layer: &Layer,
        is_chosen: bool,
        tokens_per_cell: f64,
        is_price_unknown: bool,
        columns: usize,
        theme: &Theme,
    ) -> Line<'static> {
        let glyphs = theme.glyphs;
        let style = if is_chosen { theme.bold(Role::Text) } else { theme.style(Role::Text) };
        let indent = "  ".repeat(layer.depth);
        let name = format!("{indent}{}", layer.full_name(theme));
        let name = pad_right(&truncate(&name, self.name - 1, glyphs.ellipsis), self.name);
        let marker = if is_chosen { glyphs.prompt } else { " " };
        let mut spans = vec![Span::styled(marker, theme.style(Role::Accent)), Span::styled(name, style)];
        let tokens = layer.tokens();
        if tokens == 0 && layer.age == LayerAge::None {
            // Requests do not send it: there are no figures.
            spans.push(Span::styled(escape(&layer.holds).into_owned(), theme.style(Role::Quiet)));
            return Line::from(spans);
        }
        if tokens == 0 {
            let none = glyphs.range;
            let text = pad_right("empty, skipped", self.bar.max(14));
            let cells = [(none, (self.bar + self.tokens).saturating_sub(width(&text)))];
            let age = age_text(&layer.age, theme);
            let rest = [(age.as_str(), self.age), (none, self.last), (none, self.next), (none, self.amount)];
            let cells: String =
                cells.into_iter().chain(rest).map(|(text, columns)| cell(text, columns)).collect();
            spans.push(Span::styled(format!("{text}{cells}"), theme.style(Role::Quiet)));
            return Line::from(spans);
        }
        let bar = layer_bar(&layer.parts, tokens_per_cell, theme);
        let used: usize = bar.iter().map(|span| width(&span.content)).sum();
        spans.extend(bar);
        spans.push(Span::raw(" ".repeat(self.bar.saturating_sub(used))));
        spans.push(Span::styled(cell(&count(tokens), self.tokens), style));
        spans.push(Span::styled(cell(&age_text(&layer.age, theme), self.age), style));
        let (last, role) = last_text(&layer.last);
        spans.push(Span::styled(cell(&last, self.last), theme.style(role)));
        let amount = |amount: f64| if is_price_unknown { "?".to_owned() } else { column_dollars(amount) };
        spans.push(Span::styled(cell(&amount(layer.next), self.next), style));
        spans.push(Span::styled(cell(&amount(layer.amount), self.amount), theme.style(Role::Quiet)));
        let holds =
            if self.amount > 0 { holds_text(layer, theme) } else { escape(&layer.holds).into_owned() };
        let used: usize = spans.iter().map(|span| width(&span.content)).sum();
        // A narrow table has the words only where they fit.
        if !holds.is_empty() && self.has_holds && (self.amount > 0 || used + 2 + width(&holds) <= columns) {
            spans.push(Span::raw(format!("  {holds}")));
        }
        spans.retain(|span| !span.content.is_empty());
        Line::from(spans)
    }

    pub(super) fn mark(&self, mark: &CacheMark, theme: &Theme) -> Line<'static> {
        let glyphs = theme.glyphs;
        let (glyph, role) =
            if mark.is_older { (glyphs.older_entry, Role::Quiet) } else { (glyphs.breakpoint, Role::Accent) };
        let tokens = format!(" {}", count(mark.tokens));
        let mut spans =
            vec![Span::raw(" "), Span::styled(glyph, theme.style(role)), Span::raw(tokens.clone())];
        if self.has_notes && !mark.note.is_empty() {
            let line = glyphs.line.repeat(11_usize.saturating_sub(width(&tokens)).max(1));
            spans.push(Span::styled(format!(" {line} {}", escape(&mark.note)), theme.style(Role::Quiet)));
        }
        Line::from(spans)
    }
}

/// How many tokens a cell of a bar stands for: the largest layer fills the bar.
pub(super) fn tokens_per_cell(rows: &[ContextRow], cells: usize) -> f64 {
    let tokens = rows.iter().filter_map(|row| match row {
        ContextRow::Layer(layer) => Some(layer.tokens()),
        ContextRow::Mark(_) => None,
    });
    tokens.max().unwrap_or(0) as f64 / cells.max(1) as f64
}

/// A cell of a column that is there.
fn cell(text: &str, columns: usize) -> String {
    if columns == 0 {
        return String::new();
    }
    // A space always stands before it, even if the text is too long.
    format!(" {}", pad_left(text, columns - 1))
}

/// What a layer holds, and how much of it is garbage.
fn holds_text(layer: &Layer, theme: &Theme) -> String {
    let holds = escape(&layer.holds).into_owned();
    let is_garbage = |(_, state): &&LayerPart| *state == CacheState::Garbage;
    let garbage: usize = layer.parts.iter().filter(is_garbage).map(|(tokens, _)| tokens).sum();
    if garbage == 0 || layer.depth > 0 {
        return holds;
    }
    let garbage = format!("{} {} garbage", theme.glyphs.garbage, count(garbage));
    if holds.is_empty() { garbage } else { format!("{holds} {} {garbage}", theme.glyphs.separator) }
}

fn age_text(age: &LayerAge, theme: &Theme) -> String {
    match age {
        LayerAge::None => theme.glyphs.range.to_owned(),
        LayerAge::Between(first, last) => format!("{first}{}{last}", theme.glyphs.range),
        LayerAge::New => "new".to_owned(),
        LayerAge::Requests(requests) => format!("{requests} req"),
        LayerAge::Text(text) => escape(text).into_owned(),
    }
}

fn last_text(last: &LastUse) -> (String, Role) {
    match last {
        LastUse::Read(100) => ("100% read".to_owned(), Role::Good),
        LastUse::Read(share) => (format!("{share}% read"), Role::Care),
        LastUse::Written => ("written".to_owned(), Role::Care),
        LastUse::Sent => ("sent".to_owned(), Role::Text),
        LastUse::Text(text) => (escape(text).into_owned(), Role::Care),
    }
}

//! [`ContextView`]: the prompt as layers from stable to volatile, with what each costs.
//!
//! The values are plain: a face fills them from the breakdown of the next request, the last bill and
//! the cache monitor. One form serves all layouts; [`ContextColumns`] names what differs.

mod facts; // garbage, folds, expiry, verdict, spending
mod merge; // neighbouring layers in one row, for narrow screens
mod rows; // the columns of the table
mod sidebar;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use self::tests::strata as sample_context;
use super::core_sample::LayerPart;
use super::format::{count, dollars};
use super::parts::Parts;
use super::view::ViewLines;
use crate::text::{escape, line_width, truncate_line, width, wrap_indented};
use crate::theme::{Role, Theme};
use ratatui::text::{Line, Span};
use rows::TableWidths;

pub use facts::{CacheExpiry, ContextFacts, Garbage, LastRequest, LastVerdict, NextFold, SessionTotals};

/// From this width on, the view has all columns.
pub const WIDE: usize = 100;

/// Everything that the view shows.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextView {
    /// The layout: `strata`, `tiers`, `panels`.
    pub layout: String,
    /// The model and its effort.
    pub model: String,
    /// Tokens that the model takes.
    pub max_tokens: usize,
    /// What the next request costs if the cache holds, in dollars.
    pub next: f64,
    /// What it costs if the cache has nothing.
    pub cold: f64,
    /// The catalogue does not know what the model costs.
    pub is_price_unknown: bool,
    /// What the columns are called.
    pub columns: ContextColumns,
    /// Layers and breakpoints, in the order sent.
    pub rows: Vec<ContextRow>,
    /// The chosen row among the layers, counted from 0.
    pub chosen: usize,
    /// Each layer has its row also where it is narrow; else neighbours share one there.
    pub is_split: bool,
    /// What is said below the table.
    pub facts: ContextFacts,
    /// Lines of the layout's own below the table: what moved, what changed.
    pub notes: Vec<String>,
    /// Keys and what they do: `("p", "pin")`.
    pub keys: Vec<(String, String)>,
}

/// The heads of the columns that differ from layout to layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextColumns {
    /// Of the first column: `layer`, `tier`, `panel`.
    pub name: &'static str,
    /// Of the age: `unchanged`, `N`, `refreshed`.
    pub age: &'static str,
    /// Of the second amount: `cold $`, `so far`.
    pub amount: &'static str,
}

impl ContextColumns {
    /// For strata.
    pub const STRATA: Self = ContextColumns { name: "layer", age: "unchanged", amount: "cold $" };
    /// For tiers.
    pub const TIERS: Self = ContextColumns { name: "tier", age: "N", amount: "cold $" };
    /// For panels.
    pub const PANELS: Self = ContextColumns { name: "panel", age: "refreshed", amount: "so far" };
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub enum ContextRow {
    /// A layer, or an item within one.
    Layer(Layer),
    /// A place where a cache entry ends.
    Mark(CacheMark),
}

/// A part of the prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The region: `tools`, `BASE`, `LOG`, `L3`, `P12 file`; of an item, its name.
    pub name: String,
    /// What distinguishes it from others of the region: `slow`, `new`.
    pub part: Option<String>,
    /// The turns that it holds: first and last.
    pub turns: Option<(usize, usize)>,
    /// 0 for a layer, 1 for an item within one.
    pub depth: usize,
    /// Its tokens, by what the cache did with them. Empty for a tier that was skipped.
    pub parts: Vec<LayerPart>,
    /// For how long it has been as it is.
    pub age: LayerAge,
    /// What the last request did with it.
    pub last: LastUse,
    /// What it costs in the next request, in dollars.
    pub next: f64,
    /// What it costs without a cache, or has cost so far.
    pub amount: f64,
    /// What it holds, in words. Garbage is added.
    pub holds: String,
    /// A cache entry ends with it: for layouts that show no marks between layers.
    pub has_breakpoint: bool,
}

/// For how long a layer has been as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerAge {
    /// It was not in the last request.
    New,
    /// For so many requests.
    Requests(u32),
    /// For a number of responses between these: a tier.
    Between(u32, u32),
    /// In the layout's own terms: `14:02:11`.
    Text(String),
    /// It has no age.
    None,
}

/// What the last request did with a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastUse {
    /// So much of it came from the cache, in percent.
    Read(u8),
    /// It was written to the cache.
    Written,
    /// It was sent without the cache.
    Sent,
    /// In the layout's own terms: `changed`, `after P3`.
    Text(String),
}

/// A place where a cache entry ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMark {
    /// An entry of an older request that can still be read, rather than a breakpoint of the next.
    pub is_older: bool,
    /// Tokens before it.
    pub tokens: usize,
    /// What to say about it: `5 min`, `end of the last request`.
    pub note: String,
}

impl Layer {
    /// All its tokens.
    pub fn tokens(&self) -> usize {
        self.parts.iter().map(|(tokens, _)| tokens).sum()
    }

    /// Its name with what distinguishes it: `LOG 1–9`, `BASE slow`.
    pub fn full_name(&self, theme: &Theme) -> String {
        let mut name = escape(&self.name).into_owned();
        if let Some(part) = &self.part {
            name = format!("{name} {}", escape(part));
        }
        let mark = if self.has_breakpoint { format!(" {}", theme.glyphs.breakpoint) } else { String::new() };
        match self.turns {
            Some((first, last)) if first == last => format!("{name} {first}{mark}"),
            Some((first, last)) => format!("{name} {first}{}{last}{mark}", theme.glyphs.range),
            None => name + &mark,
        }
    }
}

impl ContextView {
    /// All tokens of the prompt.
    pub fn tokens(&self) -> usize {
        let layers = self.rows.iter().filter_map(|row| match row {
            ContextRow::Layer(layer) if layer.depth == 0 => Some(layer.tokens()),
            _ => None,
        });
        layers.sum()
    }

    /// How full the window is, in percent.
    fn share(&self) -> String {
        format!("{:.0}%", 100.0 * self.tokens() as f64 / self.max_tokens.max(1) as f64)
    }

    /// The prompt from stable to new, for the core sample.
    pub fn layer_parts(&self) -> Vec<LayerPart> {
        let layers = self.rows.iter().filter_map(|row| match row {
            ContextRow::Layer(layer) if layer.depth == 0 => Some(layer.parts.clone()),
            _ => None,
        });
        layers.flatten().collect()
    }

    /// The row of the table that shows a layer on a screen of this width: neighbours may share one.
    pub(crate) fn shown_row(&self, layer: usize, columns: usize) -> Option<usize> {
        if columns >= WIDE || self.is_split { Some(layer) } else { merge::merged_index(&self.rows, layer) }
    }

    /// The view for a screen of this width.
    pub fn lines(&self, columns: usize, theme: &Theme) -> ViewLines {
        let is_wide = columns >= WIDE;
        let widths = if is_wide { TableWidths::WIDE } else { TableWidths::for_columns(columns) };
        let is_merged = !is_wide && !self.is_split;
        let (rows, chosen) = if is_merged {
            (merge::merge_neighbours(&self.rows, theme), merge::merged_index(&self.rows, self.chosen))
        } else {
            (self.rows.clone(), Some(self.chosen))
        };
        let mut view = ViewLines { head: self.title(columns, theme), ..ViewLines::default() };
        view.head.push(truncate_line(widths.head(&self.columns, theme), columns, theme.glyphs.ellipsis));
        let per_cell = rows::tokens_per_cell(&rows, widths.bar);
        let mut index = 0;
        for row in &rows {
            match row {
                ContextRow::Layer(layer) => {
                    let is_chosen = chosen == Some(index);
                    if is_chosen {
                        view.chosen = Some((view.rows.len(), view.rows.len() + 1));
                    }
                    index += 1;
                    let line =
                        widths.layer(layer, is_chosen, per_cell, self.is_price_unknown, columns, theme);
                    view.rows.push(truncate_line(line, columns, theme.glyphs.ellipsis));
                }
                ContextRow::Mark(mark) => {
                    view.rows.push(truncate_line(widths.mark(mark, theme), columns, theme.glyphs.ellipsis));
                }
            }
        }
        if is_wide {
            view.rows.push(Line::default());
        }
        for note in &self.notes {
            let note = [Span::raw(escape(note).into_owned())];
            view.rows.extend(wrap_indented(&note, columns, &Span::raw(" "), &Span::raw("   ")));
        }
        view.foot = self.facts.lines(is_wide, columns, theme);
        view.foot.push(key_line(&self.keys, columns, theme));
        view
    }

    fn title(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let is_wide = columns >= WIDE;
        let tokens = self.tokens();
        let share = self.share();
        let mut names = Parts::new(theme);
        let mut figures = Parts::new(theme);
        if is_wide {
            names.push("context", Role::Text);
            figures.push(format!("{} of {} ({share})", count(tokens), count(self.max_tokens)), Role::Text);
        }
        for name in [&self.layout, &self.model] {
            names.push_spans(vec![Span::styled(escape(name).into_owned(), theme.bold(Role::Text))]);
        }
        if !is_wide {
            names.push(format!("{} ({share})", count(tokens)), Role::Text);
        }
        let next = if is_wide { "next request" } else { "next" };
        let price = match self.is_price_unknown {
            true => "price unknown".to_owned(),
            false => format!("{next} {}, cold {}", dollars(self.next), dollars(self.cold)),
        };
        if !is_wide {
            names.push(price, Role::Text);
            let lines = names.lines(columns, 1).into_iter();
            return lines.map(|line| truncate_line(line, columns, theme.glyphs.ellipsis)).collect();
        }
        figures.push(price, Role::Text);
        let (mut left, right) = (names.line(" "), figures.line(""));
        let gap = columns.saturating_sub(line_width(&left) + line_width(&right)).max(2);
        left.spans.push(Span::raw(" ".repeat(gap)));
        left.spans.extend(right.spans);
        vec![truncate_line(left, columns, theme.glyphs.ellipsis)]
    }
}

/// Keys and what they do, as many as fit; the last, which leads back, always.
pub(crate) fn key_line(keys: &[(String, String)], columns: usize, theme: &Theme) -> Line<'static> {
    let spans = |(key, word): &(String, String)| {
        [Span::styled(key.clone(), theme.style(Role::Accent)), Span::raw(format!(" {word}"))]
    };
    let needed = |(key, word): &(String, String)| width(key) + width(word) + 3;
    let Some((last, others)) = keys.split_last() else { return Line::default() };
    let mut line = Line::from(" ");
    for key in others {
        if line_width(&line) + needed(key) + needed(last) > columns + 2 {
            break;
        }
        line.spans.extend(spans(key));
        line.spans.push(Span::raw("  "));
    }
    line.spans.extend(spans(last));
    line
}

//! [`ModelPicker`]: models with their prices, and what a switch costs now.

use ratatui::text::{Line, Span};

use super::{Filter, WIDE, marker};
use crate::blocks::format::dollars;
use crate::blocks::view::ViewLines;
use crate::text::{escape, pad_left, pad_right, truncate, truncate_line, wrap_indented};
use crate::theme::{Role, Theme};

/// The models to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPicker {
    /// What is typed.
    pub filter: Filter,
    /// The models that match, in order.
    pub models: Vec<ModelRow>,
    /// The chosen one.
    pub chosen: usize,
    /// The efforts that the chosen model offers.
    pub efforts: Vec<String>,
    /// The chosen one of them.
    pub effort: usize,
    /// Whether another effort keeps the cache.
    pub effort_keeps_cache: bool,
}

/// A model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRow {
    /// Its name: `sonnet 5.5`.
    pub name: String,
    /// Its provider.
    pub provider: String,
    /// How many tokens it takes: `1M`.
    pub window: String,
    /// What it costs.
    pub prices: Option<ModelPrices>,
    /// Whether it can be chosen, and what the switch costs.
    pub state: ModelState,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelPrices {
    /// Input without the cache.
    pub input: f64,
    /// Input read from the cache.
    pub read: f64,
    /// Input written to the cache.
    pub write: f64,
    /// Output.
    pub output: f64,
}

/// Whether a model can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelState {
    /// It is in use; what a request costs.
    Current(f64),
    /// What the first request after a switch costs, and those after it.
    Switch {
        /// The first one, which finds no cache.
        now: f64,
        /// The others.
        then: f64,
    },
    /// There is no key; the variable that could hold it.
    NoKey(String),
}

impl ModelPicker {
    /// The view for a screen of this width.
    pub fn lines(&self, columns: usize, theme: &Theme) -> ViewLines {
        let is_wide = columns >= WIDE;
        let ellipsis = theme.glyphs.ellipsis;
        let heads = if is_wide {
            "   in    read   write     out   switch       then"
        } else {
            "   in    read   switch, then"
        };
        let at = if columns >= 60 { 26 + name_columns(columns) } else { 30 };
        let head = if columns >= 70 { heads } else { "" };
        let mut view = ViewLines {
            head: vec![truncate_line(self.filter.line("model", head, at, theme), columns, ellipsis)],
            ..ViewLines::default()
        };
        for (index, model) in self.models.iter().enumerate() {
            let is_chosen = index == self.chosen;
            if is_chosen {
                view.chosen = Some((index, index + 1));
            }
            view.rows.push(truncate_line(model.line(is_chosen, columns, theme), columns, ellipsis));
        }
        if !self.efforts.is_empty() {
            view.foot = self.effort_lines(columns, theme);
        }
        view
    }

    fn effort_lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let glyphs = theme.glyphs;
        let mut spans = Vec::new();
        for (index, effort) in self.efforts.iter().enumerate() {
            let effort = escape(effort);
            spans.push(if index == self.effort {
                let (open, close) = glyphs.chosen;
                Span::styled(format!(" {open}{effort}{close}"), theme.bold(Role::Accent))
            } else {
                Span::raw(format!(" {effort}"))
            });
            spans.push(Span::raw(" "));
        }
        let cache = if self.effort_keeps_cache { "keeps the cache here" } else { "gives up the cache" };
        let hint = format!("  {} {cache}", glyphs.left_right);
        spans.push(Span::styled(hint, theme.style(Role::Quiet)));
        let label = Span::styled(" effort ", theme.style(Role::Quiet));
        wrap_indented(&spans, columns, &label, &Span::raw(" ".repeat(8)))
    }
}

/// Columns of the names: what the others leave, since names of a family differ at their end.
fn name_columns(columns: usize) -> usize {
    match columns {
        WIDE.. => (columns - 77).min(40),
        70.. => columns.saturating_sub(59).max(15),
        60.. => columns - 41,
        _ => columns.saturating_sub(22).max(12),
    }
}

impl ModelRow {
    fn line(&self, is_chosen: bool, columns: usize, theme: &Theme) -> Line<'static> {
        let style = if is_chosen { theme.bold(Role::Text) } else { theme.style(Role::Text) };
        let fit = |text: &str, columns: usize| {
            pad_right(&truncate(&escape(text), columns - 1, theme.glyphs.ellipsis), columns)
        };
        let mut spans =
            vec![marker(is_chosen, theme), Span::styled(fit(&self.name, name_columns(columns)), style)];
        if columns >= 60 {
            spans.push(Span::raw(fit(&self.provider, 13)));
        }
        if let ModelState::NoKey(variable) = &self.state {
            spans.push(Span::styled(format!("no key: {}", escape(variable)), theme.style(Role::Quiet)));
            return Line::from(spans);
        }
        if columns >= 60 {
            spans.push(Span::raw(fit(&self.window, 6)));
        }
        let price = |amount: f64, columns: usize| pad_left(&format!("{amount:.2}"), columns);
        match self.prices {
            _ if columns < 70 => {}
            Some(ModelPrices { input, read, write, output }) => {
                spans.push(Span::raw(price(input, 9)));
                spans.push(Span::raw(price(read, 8)));
                if columns >= WIDE {
                    spans.push(Span::raw(price(write, 8)));
                    spans.push(Span::raw(price(output, 8)));
                }
            }
            None => spans.push(Span::raw(pad_left("price unknown", if columns >= WIDE { 33 } else { 17 }))),
        }
        let is_wide = columns >= WIDE;
        let (now, then) = match &self.state {
            ModelState::Current(request) => ("current".to_owned(), dollars(*request)),
            ModelState::Switch { now, then } => (dollars(*now), dollars(*then)),
            ModelState::NoKey(_) => (String::new(), String::new()),
        };
        let (now, then) =
            if is_wide { (pad_right(&now, 9), pad_left(&then, 9)) } else { (pad_right(&now, 8), then) };
        spans.push(Span::raw(format!("   {now}{then}")));
        Line::from(spans)
    }
}

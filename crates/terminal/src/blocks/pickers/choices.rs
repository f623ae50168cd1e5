//! [`ChoicePicker`]: a list of names with what they mean and cost: layouts, agents, tools.

use ratatui::text::{Line, Span};

use super::{Filter, marker};
use crate::blocks::format::dollars;
use crate::blocks::view::ViewLines;
use crate::text::{escape, line_width, pad_right, truncate, truncate_line, width};
use crate::theme::{Role, Theme};

/// A list to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct ChoicePicker {
    /// What is chosen: `layout`, `agent`, `tools`.
    pub title: String,
    /// What is typed.
    pub filter: Filter,
    /// The choices that match, in order.
    pub choices: Vec<Choice>,
    /// The chosen one.
    pub chosen: usize,
}

/// A choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// Its name.
    pub name: String,
    /// What it means, in a sentence.
    pub meaning: String,
    /// Whether it is in use; for lists in which several can be, `Some`.
    pub is_on: Option<bool>,
    /// It is the one in use.
    pub is_current: bool,
    /// What choosing it costs with the next request, in dollars.
    pub price: Option<f64>,
}

impl ChoicePicker {
    /// The view for a screen of this width.
    pub fn lines(&self, columns: usize, theme: &Theme) -> ViewLines {
        let has_price = self.choices.iter().any(|choice| choice.price.is_some()) && columns >= 50;
        let head = if has_price { "now costs" } else { "" };
        let title = escape(&self.title);
        let at = columns.saturating_sub(head.len());
        let mut view = ViewLines {
            head: vec![truncate_line(
                self.filter.line(&title, head, at, theme),
                columns,
                theme.glyphs.ellipsis,
            )],
            ..ViewLines::default()
        };
        let widest = self.choices.iter().map(|choice| width(&escape(&choice.name))).max().unwrap_or(0);
        let name_columns = widest.min(columns / 3) + 2;
        for (index, choice) in self.choices.iter().enumerate() {
            let is_chosen = index == self.chosen;
            if is_chosen {
                view.chosen = Some((index, index + 1));
            }
            let line = choice.line(is_chosen, name_columns, columns, has_price, theme);
            view.rows.push(truncate_line(line, columns, theme.glyphs.ellipsis));
        }
        view
    }
}

impl Choice {
    fn line(
        &self,
        is_chosen: bool,
        name_columns: usize,
        columns: usize,
        has_price: bool,
        theme: &Theme,
    ) -> Line<'static> {
        let style = if is_chosen { theme.bold(Role::Text) } else { theme.style(Role::Text) };
        let ellipsis = theme.glyphs.ellipsis;
        let mut spans = vec![marker(is_chosen, theme)];
        if let Some(is_on) = self.is_on {
            let (mark, role) = if is_on { (theme.glyphs.done, Role::Good) } else { (" ", Role::Text) };
            spans.push(Span::styled(format!("{mark} "), theme.style(role)));
        }
        let name = truncate(&escape(&self.name), name_columns - 2, ellipsis);
        spans.push(Span::styled(pad_right(&name, name_columns), style));
        let price = match self.price {
            _ if !has_price => String::new(),
            _ if self.is_current => "current".to_owned(),
            price => price.map(dollars).unwrap_or_default(),
        };
        let used: usize = spans.iter().map(|span| width(&span.content)).sum();
        let room = columns.saturating_sub(used + if has_price { 11 } else { 0 });
        let meaning = truncate(&escape(&self.meaning), room, ellipsis);
        spans.push(Span::raw(meaning));
        let mut line = Line::from(spans);
        if !price.is_empty() {
            let gap = columns.saturating_sub(9 + line_width(&line));
            line.spans.push(Span::raw(" ".repeat(gap)));
            line.spans.push(Span::raw(price));
        }
        line
    }
}

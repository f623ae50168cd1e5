//! [`ActPrice`]: what an act on the context costs, before it is done.

use ratatui::text::{Line, Span};

use crate::blocks::format::dollars;
use crate::text::{escape, line_width, pad_right, width, wrap_indented};
use crate::theme::{Role, Theme};

/// What an act costs: for a change of model, effort, tools or layout, and for opening, closing,
/// pinning and excluding an item.
#[derive(Clone, Debug, PartialEq)]
pub struct ActPrice {
    /// The question: `Exclude packages/tui/test/fuzzy.test.ts?`
    pub question: String,
    /// What it is about: `2,140 tokens in BASE`.
    pub about: String,
    /// The choices, in order.
    pub choices: Vec<PriceChoice>,
    /// The chosen one.
    pub chosen: usize,
}

/// A way to do it.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceChoice {
    /// Its key: `n`, `f`, `Esc`.
    pub key: String,
    /// What it does: `now`, `at the next free fold`.
    pub act: String,
    /// What follows: `38,900 tokens after it are written again`.
    pub effect: String,
    /// What it costs, in dollars.
    pub price: Option<f64>,
    /// More about it, in a line of its own.
    pub note: Option<String>,
}

impl ActPrice {
    /// The question and its choices.
    pub fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let question = [Span::styled(escape(&self.question).into_owned(), theme.bold(Role::Text))];
        let about = escape(&self.about).into_owned();
        let mut lines = wrap_indented(&question, columns, &Span::raw(" "), &Span::raw(" "));
        match lines.last_mut() {
            Some(title) if line_width(title) + 4 + width(&about) <= columns => {
                title.spans.push(Span::raw(format!("    {about}")));
            }
            _ => lines.extend(wrap_indented(&[Span::raw(about)], columns, &Span::raw(" "), &Span::raw(" "))),
        }
        lines.push(Line::default());
        let key_columns = self.choices.iter().map(|choice| width(&choice.key)).max().unwrap_or(1).max(3);
        let act_columns = self.choices.iter().map(|choice| width(&choice.act)).max().unwrap_or(0) + 2;
        let start = 3 + key_columns + 2;
        // Where effects do not fit beside the acts, they stand below them.
        let effect_column = if columns >= 72 { start + act_columns } else { start };
        let price_column = columns.min(80).saturating_sub(6);
        for (index, choice) in self.choices.iter().enumerate() {
            let is_chosen = index == self.chosen;
            let marker = if is_chosen { theme.glyphs.prompt } else { " " };
            let style = if is_chosen { theme.bold(Role::Text) } else { theme.style(Role::Text) };
            let mut line = Line::from(vec![
                Span::styled(format!(" {marker} "), theme.style(Role::Accent)),
                Span::styled(pad_right(&choice.key, key_columns + 2), theme.style(Role::Accent)),
                Span::styled(choice.act.clone(), style),
            ]);
            let price = choice.price.map(dollars).unwrap_or_default();
            let effect = escape(&choice.effect).into_owned();
            let is_beside = columns >= 72 && effect_column + width(&effect) + 2 <= price_column;
            if is_beside {
                pad_to(&mut line, effect_column);
                line.spans.push(Span::raw(effect.clone()));
            }
            if !price.is_empty() {
                let column = price_column.max(line_width(&line) + 2);
                pad_to(&mut line, column);
                let role = if choice.price > Some(0.0) { Role::Care } else { Role::Good };
                line.spans.push(Span::styled(price, theme.style(role)));
            }
            lines.push(line);
            let below = [(!is_beside).then_some(effect), choice.note.clone()];
            let indent = Span::raw(" ".repeat(effect_column));
            for text in below.into_iter().flatten().filter(|text| !text.is_empty()) {
                let text = [Span::styled(escape(&text).into_owned(), theme.style(Role::Quiet))];
                lines.extend(wrap_indented(&text, columns, &indent, &indent));
            }
        }
        lines
    }
}

fn pad_to(line: &mut Line<'static>, column: usize) {
    let gap = column.saturating_sub(line_width(line));
    line.spans.push(Span::raw(" ".repeat(gap)));
}

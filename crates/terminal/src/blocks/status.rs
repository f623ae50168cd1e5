//! [`StatusLine`]: mode, model, core sample, cost and warmth in one line; what matters least goes
//! first where it is narrow.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::conversation::Cost;
use super::core_sample::{LayerPart, STRIP_CELLS, core_sample};
use super::format::{age, dollars, short_count};
use super::parts::Parts;
use crate::text::{escape, line_width, truncate_line};
use crate::theme::{Role, Theme};

/// What stands below the input line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusLine {
    /// The mode: `ask`, `edits`, `plan`, `all`.
    pub mode: String,
    /// The mode lets everything run.
    pub is_dangerous: bool,
    /// The model and its effort: `sonnet 5.5 high`, `offline`.
    pub model: String,
    /// The prompt from stable to new; empty before the first request.
    pub layers: Vec<LayerPart>,
    /// What the session has cost.
    pub cost: Cost,
    /// What the next request costs, in dollars.
    pub next: Option<f64>,
    /// How long the cache keeps the prompt.
    pub warmth: Option<Warmth>,
    /// What to press: `? help`.
    pub hint: Option<String>,
}

/// Whether the cache still has the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmth {
    /// For this long.
    Warm(Duration),
    /// Not any more.
    Cold,
}

/// What of the line is shown.
#[derive(Clone, Copy)]
struct Shown {
    cells: usize,
    tokens: bool,
    model: bool,
    next: bool,
    warmth: bool,
    hint: bool,
}

/// From everything to the least, in the order in which parts go.
const STEPS: [Shown; 8] = {
    let all = Shown { cells: STRIP_CELLS, tokens: true, model: true, next: true, warmth: true, hint: true };
    let without_hint = Shown { hint: false, ..all };
    let without_next = Shown { next: false, ..without_hint };
    let without_model = Shown { model: false, ..without_next };
    let without_tokens = Shown { tokens: false, ..without_model };
    let short = Shown { cells: 11, ..without_tokens };
    let shorter = Shown { cells: 6, ..without_tokens };
    [
        all,
        without_hint,
        without_next,
        without_model,
        without_tokens,
        short,
        shorter,
        Shown { warmth: false, ..shorter },
    ]
};

impl StatusLine {
    /// The line, in at most `columns`.
    pub fn line(&self, columns: usize, theme: &Theme) -> Line<'static> {
        let candidates = STEPS.iter().map(|shown| self.line_with(*shown, theme));
        let fitting = candidates.into_iter().find(|line| line_width(line) <= columns);
        fitting.unwrap_or_else(|| {
            truncate_line(self.line_with(STEPS[STEPS.len() - 1], theme), columns, theme.glyphs.ellipsis)
        })
    }

    fn line_with(&self, shown: Shown, theme: &Theme) -> Line<'static> {
        let mut parts = Parts::new(theme);
        let mode = if self.is_dangerous { theme.bold(Role::Danger) } else { theme.style(Role::Accent) };
        parts.push_spans(vec![Span::styled(escape(&self.mode).into_owned(), mode)]);
        if shown.model && !self.model.is_empty() {
            parts.push(escape(&self.model).into_owned(), Role::Text);
        }
        let total: usize = self.layers.iter().map(|(tokens, _)| tokens).sum();
        if total > 0 {
            let mut spans = core_sample(&self.layers, shown.cells, theme);
            if shown.tokens {
                spans.push(Span::raw(format!(" {}", short_count(total))));
            }
            parts.push_spans(spans);
        }
        parts.push(self.cost.text(), Role::Text);
        if let Some(next) = self.next.filter(|_| shown.next) {
            parts.push(format!("next {}", dollars(next)), Role::Text);
        }
        match self.warmth.filter(|_| shown.warmth) {
            Some(Warmth::Warm(left)) => {
                let is_short = left < Duration::from_secs(60);
                parts.push(format!("warm {}", age(left)), if is_short { Role::Care } else { Role::Text });
            }
            Some(Warmth::Cold) => parts.push("cold", Role::Text),
            None => {}
        }
        if let Some(hint) = self.hint.as_ref().filter(|_| shown.hint) {
            parts.push(hint.clone(), Role::Quiet);
        }
        parts.line("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::core_sample::CacheState;

    #[test]
    fn what_matters_least_goes_first() {
        let status = StatusLine {
            mode: "ask".into(),
            model: "sonnet 5.5 high".into(),
            layers: vec![
                (29_700, CacheState::Read),
                (6_500, CacheState::Garbage),
                (3_100, CacheState::Read),
                (6_100, CacheState::Garbage),
                (1_850, CacheState::Written),
                (240, CacheState::Sent),
            ],
            cost: Cost { paid: 0.48, ..Cost::default() },
            next: Some(0.0096),
            warmth: Some(Warmth::Warm(Duration::from_secs(252))),
            ..StatusLine::default()
        };
        let drawn: Vec<String> = [80, 70, 60, 46, 40, 30, 20]
            .map(|columns| status.line(columns, &Theme::default()).to_string())
            .to_vec();
        insta::assert_snapshot!(drawn.join("\n"), @r"
        ask · sonnet 5.5 high · ██████████░░█░░▓ 47k · $0.48 · next $0.0096 · warm 4 min
        ask · sonnet 5.5 high · ██████████░░█░░▓ 47k · $0.48 · warm 4 min
        ask · ██████████░░█░░▓ 47k · $0.48 · warm 4 min
        ask · ██████████░░█░░▓ · $0.48 · warm 4 min
        ask · ███████░█░▓ · $0.48 · warm 4 min
        ask · ████░▓ · $0.48
        ask · ████░▓ · $0.48
        ");
        let start = StatusLine {
            mode: "ask".into(),
            model: "offline".into(),
            hint: Some("? help".into()),
            ..StatusLine::default()
        };
        assert_eq!(start.line(80, &Theme::default()).to_string(), "ask · offline · $0 · ? help");
    }
}

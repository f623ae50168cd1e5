//! [`SessionPicker`]: earlier sessions, and what going on with one costs.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::{Filter, WIDE, marker};
use crate::blocks::conversation::Cost;
use crate::blocks::format::{age, clock, dollars};
use crate::blocks::view::ViewLines;
use crate::text::{escape, pad_left, pad_right, truncate, truncate_line};
use crate::theme::{Role, Theme};

/// The sessions to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionPicker {
    /// What is typed.
    pub filter: Filter,
    /// Sessions of all folders are listed.
    pub is_everywhere: bool,
    /// The sessions that match, in order.
    pub sessions: Vec<SessionRow>,
    /// The chosen one.
    pub chosen: usize,
}

/// A session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// The time since its last entry.
    pub age: Duration,
    /// The name that a person gave it.
    pub name: Option<String>,
    /// The first prompt.
    pub prompt: String,
    /// The agent that wrote it, if it was another.
    pub agent: Option<String>,
    /// The branch that was checked out.
    pub branch: String,
    /// How many prompts it has.
    pub turns: usize,
    /// What it has cost.
    pub cost: Cost,
    /// What its next request costs.
    pub going_on: GoingOn,
}

/// What going on costs.
#[derive(Clone, Debug, PartialEq)]
pub enum GoingOn {
    /// The cache still has it, for this long.
    Warm(f64, Duration),
    /// The cache has nothing of it.
    Cold(f64),
    /// Another agent's: it can be audited, or copied at this price.
    Copy(f64),
    /// The price is not known.
    Unknown,
}

impl SessionPicker {
    /// The view for a screen of this width.
    pub fn lines(&self, columns: usize, theme: &Theme) -> ViewLines {
        let ellipsis = theme.glyphs.ellipsis;
        let right = match (columns, self.is_everywhere) {
            (..60, _) => "",
            (_, true) => "all folders",
            (_, false) => "this folder",
        };
        let layout = SessionColumns::new(columns);
        let mut view = ViewLines {
            head: vec![
                truncate_line(self.filter.line("sessions", right, 34, theme), columns, ellipsis),
                Line::styled(layout.head(theme), theme.style(Role::Quiet)),
            ],
            ..ViewLines::default()
        };
        for (index, session) in self.sessions.iter().enumerate() {
            let is_chosen = index == self.chosen;
            if is_chosen {
                view.chosen = Some((index, index + 1));
            }
            view.rows.push(truncate_line(layout.row(session, is_chosen, theme), columns, ellipsis));
        }
        view
    }
}

/// How wide each column is.
struct SessionColumns {
    prompt: usize,
    branch: usize,
    turns: usize,
    has_going_on: bool,
}

impl SessionColumns {
    fn new(columns: usize) -> Self {
        let is_wide = columns >= WIDE;
        let has_going_on = columns >= 60;
        let (branch, turns) = if is_wide { (11, 7) } else { (0, 0) };
        let fixed = 8 + branch + turns + 8 + if has_going_on { 3 + 21 } else { 0 };
        SessionColumns { prompt: columns.saturating_sub(fixed).max(10), branch, turns, has_going_on }
    }

    fn head(&self, theme: &Theme) -> String {
        let (open, close) = theme.glyphs.name;
        let name = format!("first prompt or {open}name{close}");
        let mut head = format!("        {}", pad_right(&name, self.prompt));
        if self.branch > 0 {
            head.push_str(&pad_right("branch", self.branch));
            head.push_str(&pad_left("turns", self.turns));
        }
        head.push_str(&pad_left("cost", 8));
        if self.has_going_on {
            head.push_str("   to go on");
        }
        head
    }

    fn row(&self, session: &SessionRow, is_chosen: bool, theme: &Theme) -> Line<'static> {
        let style = if is_chosen { theme.bold(Role::Text) } else { theme.style(Role::Text) };
        let ellipsis = theme.glyphs.ellipsis;
        let fit = |text: &str, columns: usize| pad_right(&truncate(text, columns - 1, ellipsis), columns);
        let (open, close) = theme.glyphs.name;
        let mut prompt = String::new();
        if let Some(name) = &session.name {
            prompt.push_str(&format!("{open}{}{close} ", escape(name)));
        }
        if let Some(agent) = &session.agent {
            prompt.push_str(&format!("({}) ", escape(agent)));
        }
        let first = session.prompt.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
        prompt.push_str(&escape(first.trim()));
        let mut spans = vec![
            marker(is_chosen, theme),
            Span::styled(pad_right(&age(session.age).replace(" min", " m"), 5), theme.style(Role::Quiet)),
            Span::styled(fit(&prompt, self.prompt), style),
        ];
        if self.branch > 0 {
            spans.push(Span::raw(fit(&escape(&session.branch), self.branch)));
            spans.push(Span::raw(pad_left(&session.turns.to_string(), self.turns)));
        }
        let cost = if session.cost.is_unknown { "?".to_owned() } else { dollars(session.cost.paid) };
        spans.push(Span::raw(pad_left(&cost, 8)));
        if self.has_going_on {
            let (text, role) = match &session.going_on {
                GoingOn::Warm(price, left) => {
                    (format!("{}, warm {}", dollars(*price), clock(*left)), Role::Good)
                }
                GoingOn::Cold(price) => (format!("{}, cold", dollars(*price)), Role::Text),
                GoingOn::Copy(price) => (format!("audit, or copy: {}", dollars(*price)), Role::Text),
                GoingOn::Unknown => ("price unknown".to_owned(), Role::Quiet),
            };
            spans.push(Span::styled(format!("   {text}"), theme.style(role)));
        }
        Line::from(spans)
    }
}

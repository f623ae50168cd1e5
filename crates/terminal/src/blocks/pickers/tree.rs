//! [`TreeView`]: the steps of a session with their branches, and what going back to one does.

use ratatui::text::{Line, Span};

use crate::blocks::format::dollars;
use crate::blocks::view::ViewLines;
use crate::text::{escape, line_width, pad_right, truncate, truncate_line, width, wrap_indented};
use crate::theme::{Role, Theme};

/// The steps of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeView {
    /// The steps, parents before children.
    pub steps: Vec<TreeStep>,
    /// The chosen one.
    pub chosen: usize,
    /// What going back to the chosen one does.
    pub step_back: Option<StepBack>,
}

/// A prompt and everything up to the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeStep {
    /// Its number: `2`, `3a`.
    pub number: String,
    /// How many branches it lies within.
    pub depth: usize,
    /// It is the last of its branch.
    pub is_last: bool,
    /// The branches around it that go on below it, from the outermost.
    pub open_branches: Vec<bool>,
    /// The prompt.
    pub prompt: String,
    /// What it changed: `fuzzy.ts +1 −1`.
    pub changes: String,
    /// What it cost, in dollars.
    pub cost: f64,
    /// The label that a person gave it.
    pub label: Option<String>,
    /// What else to say: `left yesterday`.
    pub note: Option<String>,
    /// The conversation is here.
    pub is_here: bool,
}

/// What going back does.
#[derive(Clone, Debug, PartialEq)]
pub struct StepBack {
    /// The number of the step.
    pub number: String,
    /// The files that go back to their earlier state.
    pub files: Vec<String>,
    /// What the next request costs then, in dollars.
    pub next: f64,
    /// The cache still has that prompt.
    pub is_cached: bool,
}

impl TreeView {
    /// The view for a screen of this width.
    pub fn lines(&self, columns: usize, theme: &Theme) -> ViewLines {
        let mut view = ViewLines::default();
        for (index, step) in self.steps.iter().enumerate() {
            if index == self.chosen {
                view.chosen = Some((index, index + 1));
            }
            let line = step.line(index == self.chosen, columns, theme);
            view.rows.push(truncate_line(line, columns, theme.glyphs.ellipsis));
        }
        if let Some(step_back) = &self.step_back {
            view.foot.extend(step_back.lines(columns, theme));
        }
        view
    }
}

impl TreeStep {
    fn line(&self, is_chosen: bool, columns: usize, theme: &Theme) -> Line<'static> {
        let glyphs = theme.glyphs;
        let style = if is_chosen { theme.bold(Role::Text) } else { theme.style(Role::Text) };
        let quiet = theme.style(Role::Quiet);
        let mut spans = vec![match (self.is_here, is_chosen) {
            (_, true) => Span::styled(glyphs.prompt, theme.style(Role::Accent)),
            (true, false) => Span::styled(glyphs.here, theme.style(Role::Good)),
            _ => Span::raw(" "),
        }];
        let mut branches = String::new();
        for depth in 0..self.depth {
            let is_open = self.open_branches.get(depth).copied().unwrap_or(false);
            branches.push_str(&format!("{} ", if is_open { glyphs.bar } else { " " }));
        }
        branches.push_str(if self.is_last { glyphs.last_branch } else { glyphs.branch });
        spans.push(Span::styled(format!("{branches} "), quiet));
        // Changes, cost and notes stand in columns; where it is narrow, notes and changes go.
        let (prompt_end, changes_end) = if columns >= 96 {
            (50, 72)
        } else {
            (columns.saturating_sub(30).max(20), columns.saturating_sub(10))
        };
        let has_changes = columns >= 64;
        let prompt_end = if has_changes { prompt_end } else { columns.saturating_sub(10) };
        let number = format!("{}  ", escape(&self.number));
        let start = 1 + width(&branches) + 1 + width(&number);
        spans.push(Span::styled(number, quiet));
        let first = self.prompt.lines().next().unwrap_or("");
        let room = prompt_end.saturating_sub(start + 1).max(4);
        let prompt = truncate(&escape(first), room, glyphs.ellipsis);
        spans.push(Span::styled(pad_right(&prompt, room + 1), style));
        let mut line = Line::from(spans);
        if has_changes {
            let room = changes_end - prompt_end;
            let changes = truncate(&escape(&self.changes), room - 1, glyphs.ellipsis);
            line.spans.push(Span::raw(pad_right(&changes, room)));
        }
        line.spans.push(Span::raw(pad_right(&dollars(self.cost), 8)));
        if columns >= 96 {
            let mut notes = Vec::new();
            if let Some(label) = &self.label {
                notes.push(format!("{} {}", glyphs.label, escape(label)));
            }
            notes.extend(self.note.as_deref().map(|note| escape(note).into_owned()));
            if self.is_here {
                notes.push("you are here".to_owned());
            }
            line.spans.push(Span::styled(notes.join(&format!(" {} ", glyphs.separator)), quiet));
        }
        line
    }
}

impl StepBack {
    fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let dot = theme.glyphs.separator;
        let names: Vec<String> = self.files.iter().map(|file| escape(file).into_owned()).collect();
        let files = match names.as_slice() {
            [] => "no file changes".to_owned(),
            [file] => format!("{file} goes back (u keeps it)"),
            [files @ .., last] if files.len() < 4 => {
                format!("{} and {last} go back (u keeps them)", files.join(", "))
            }
            files => format!("{} files go back (u keeps them)", files.len()),
        };
        let cached = if self.is_cached { "still cached" } else { "not cached any more" };
        let parts = [
            format!("to {}: {files}", escape(&self.number)),
            format!("next request {}, {cached}", dollars(self.next)),
            "s summary".to_owned(),
        ];
        let mut lines: Vec<Line<'static>> = Vec::new();
        for part in parts {
            match lines.last_mut() {
                Some(line) if line_width(line) + 3 + width(&part) <= columns => {
                    line.spans.push(Span::raw(format!(" {dot} {part}")));
                }
                _ => lines.extend(wrap_indented(
                    &[Span::raw(part)],
                    columns,
                    &Span::raw(" "),
                    &Span::raw("   "),
                )),
            }
        }
        lines
    }
}

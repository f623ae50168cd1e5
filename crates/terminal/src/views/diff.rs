//! Changes of files, side by side where there is room.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::{View, ViewData, ViewFrame, ViewKind, ViewOutcome};
use crate::blocks::pickers::WIDE;
use crate::blocks::{FileDiff, key_line, side_by_side};
use crate::input::InputEvent;
use crate::keymap::{Action, KeyLayer, KeyMeaning};
use crate::model::Model;
use crate::text::{escape, hard_wrap, line_width, truncate_line};
use crate::theme::{Role, Theme};

/// The view.
pub(super) struct DiffScreen {
    kind: ViewKind,
    diffs: Vec<FileDiff>,
    /// The rows for a screen of this width, and the first row of each change.
    drawn: Option<(u16, Vec<Line<'static>>, Vec<usize>)>,
    top: usize,
}

impl DiffScreen {
    pub(super) fn new(kind: ViewKind, diffs: Vec<FileDiff>) -> Self {
        DiffScreen { kind, diffs, drawn: None, top: 0 }
    }

    fn prepare(&mut self, model: &Model) {
        if self.drawn.as_ref().is_none_or(|(columns, ..)| *columns != model.size.columns) {
            let (rows, changes) = diff_rows(&self.diffs, usize::from(model.size.columns), &model.theme);
            self.drawn = Some((model.size.columns, rows, changes));
        }
        self.scroll_to(self.top, model);
    }

    fn scroll_to(&mut self, row: usize, model: &Model) {
        let count = self.drawn.as_ref().map_or(0, |(_, rows, _)| rows.len());
        self.top = row.min(count.saturating_sub(body_rows(model)));
    }

    fn scroll_by(&mut self, rows: isize, model: &Model) {
        self.scroll_to(self.top.saturating_add_signed(rows), model);
    }

    fn go_to_change(&mut self, is_next: bool, model: &Model) {
        let Some((_, _, changes)) = &self.drawn else { return };
        // A little of what stands before it is shown with it.
        let start = |row: &usize| row.saturating_sub(2);
        let found = match is_next {
            true => changes.iter().map(start).find(|row| *row > self.top),
            false => changes.iter().rev().map(start).find(|row| *row < self.top),
        };
        if let Some(row) = found {
            self.scroll_to(row, model);
        }
    }
}

fn body_rows(model: &Model) -> usize {
    usize::from(model.size.rows).saturating_sub(1)
}

/// All files under each other, each with its name; the first row of each change.
fn diff_rows(diffs: &[FileDiff], columns: usize, theme: &Theme) -> (Vec<Line<'static>>, Vec<usize>) {
    let (mut rows, mut changes) = (Vec::new(), Vec::new());
    for diff in diffs {
        if !rows.is_empty() {
            rows.push(Line::default());
        }
        let facts = diff.facts(theme).join(&format!(" {} ", theme.glyphs.separator));
        let title = Line::from(vec![
            Span::styled(format!(" {}", escape(diff.path())), theme.bold(Role::Text)),
            Span::styled(format!(" {} {facts}", theme.glyphs.separator), theme.style(Role::Quiet)),
        ]);
        rows.push(truncate_line(title, columns, theme.glyphs.ellipsis));
        let start = rows.len();
        if columns >= WIDE {
            let (lines, at) = side_by_side(diff, columns, theme);
            rows.extend(lines);
            changes.extend(at.into_iter().map(|at| start + at));
        } else {
            changes.push(start);
            for line in diff.unified(columns, theme) {
                match line_width(&line) <= columns {
                    true => rows.push(line),
                    false => rows.extend(hard_wrap(&line, columns)),
                }
            }
        }
    }
    (rows, changes)
}

impl View for DiffScreen {
    fn kind(&self) -> ViewKind {
        self.kind.clone()
    }

    fn take_input(&mut self, input: &InputEvent, _at: Duration, model: &Model) -> ViewOutcome {
        self.prepare(model);
        let key = match input {
            InputEvent::Wheel(rows) => {
                self.scroll_by(isize::from(*rows), model);
                return ViewOutcome::Stay;
            }
            InputEvent::Key(key) => *key,
            _ => return ViewOutcome::Stay,
        };
        let layers = [KeyLayer::Diff, KeyLayer::View];
        let KeyMeaning::Action(action) = model.keymap.meaning(&layers, None, key) else {
            return ViewOutcome::Stay;
        };
        let page = isize::try_from(body_rows(model).max(1)).unwrap_or(1);
        match action {
            Action::ViewBack => return ViewOutcome::Close,
            Action::DiffNext => self.go_to_change(true, model),
            Action::DiffPrevious => self.go_to_change(false, model),
            Action::ViewDown => self.scroll_by(1, model),
            Action::ViewUp => self.scroll_by(-1, model),
            Action::ViewPageDown | Action::ViewMark => self.scroll_by(page, model),
            Action::ViewPageUp => self.scroll_by(-page, model),
            Action::ViewTop => self.scroll_to(0, model),
            Action::ViewBottom => self.scroll_to(usize::MAX, model),
            _ => {}
        }
        ViewOutcome::Stay
    }

    fn draw(&mut self, model: &Model) -> ViewFrame {
        self.prepare(model);
        let height = body_rows(model);
        let all = self.drawn.as_ref().map_or(&[][..], |(_, rows, _)| rows);
        let mut rows: Vec<Line<'static>> = all.iter().skip(self.top).take(height).cloned().collect();
        if all.is_empty() {
            rows.push(Line::from(" no file has changed"));
        }
        rows.resize(height, Line::default());
        let key = |action, word: &str| (model.keymap.hint(action), word.to_owned());
        let last = (self.top + height).min(all.len());
        let keys = [
            key(Action::DiffNext, "next change"),
            key(Action::DiffPrevious, "the one before"),
            (format!("{last} of {}", all.len()), "rows".to_owned()),
            key(Action::ViewBack, "back"),
        ];
        rows.push(key_line(&keys, usize::from(model.size.columns), &model.theme));
        ViewFrame { rows, cursor: None }
    }

    fn take_data(&mut self, data: ViewData) {
        if let ViewData::Diff(diffs) = data {
            *self = DiffScreen { top: self.top, ..DiffScreen::new(self.kind.clone(), diffs) };
        }
    }
}

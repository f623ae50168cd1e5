//! [`Pager`]: lines in the alternate screen, to scroll and search: help, the whole of a call, a diff,
//! an item of the context.

use std::time::Duration;

use ratatui::text::{Line, Span};

use super::{View, ViewData, ViewFrame, ViewKind, ViewOutcome};
use crate::input::InputEvent;
use crate::keymap::{Action, KeyLayer, KeyMeaning};
use crate::model::Model;
use crate::screen::ScreenSize;
use crate::text::{escape, hard_wrap, line_width};
use crate::theme::Role;

/// Lines that are looked at.
#[derive(Clone, Debug)]
pub struct Pager {
    kind: ViewKind,
    lines: Vec<Line<'static>>,
    /// The lines as rows of a screen of this width.
    rows: (u16, Vec<Line<'static>>),
    /// The first row that is shown.
    top: usize,
    /// The text that is searched for, and whether it is still being typed.
    search: Option<(String, bool)>,
    is_waiting: bool,
}

impl Pager {
    /// Shows lines from the first on.
    pub fn new(kind: ViewKind, lines: Vec<Line<'static>>) -> Self {
        Pager { kind, lines, rows: (0, Vec::new()), top: 0, search: None, is_waiting: false }
    }

    /// Stands in for a view whose data has not arrived.
    pub fn waiting(kind: ViewKind) -> Self {
        Pager { is_waiting: true, ..Pager::new(kind, vec![Line::from(" reading")]) }
    }

    /// Wraps the lines if the screen has another width, and stays within them.
    fn fit(&mut self, size: ScreenSize) {
        if self.rows.0 != size.columns {
            let columns = usize::from(size.columns).max(1);
            let rows = |line: &Line<'static>| match line_width(line) <= columns {
                true => vec![line.clone()],
                false => hard_wrap(line, columns),
            };
            self.rows = (size.columns, self.lines.iter().flat_map(rows).collect());
        }
        self.scroll_to(self.top, size);
    }

    fn scroll_by(&mut self, rows: isize, size: ScreenSize) {
        self.scroll_to(self.top.saturating_add_signed(rows), size);
    }

    fn scroll_to(&mut self, row: usize, size: ScreenSize) {
        self.top = row.min(self.rows.1.len().saturating_sub(body_rows(size)));
    }

    /// Goes to the next row with the searched text, from a row on; round at the ends.
    fn find(&mut self, from: usize, step: isize, size: ScreenSize) {
        let Some((text, _)) = self.search.clone().filter(|(text, _)| !text.is_empty()) else { return };
        let rows = &self.rows.1;
        let wanted = text.to_lowercase();
        let is_match = |row: &usize| rows[*row].to_string().to_lowercase().contains(&wanted);
        let after = (from.min(rows.len())..rows.len()).chain(0..from.min(rows.len()));
        let found = if step > 0 { after.clone().find(is_match) } else { after.rev().find(is_match) };
        if let Some(row) = found {
            self.scroll_to(row, size);
        }
    }

    /// Takes a key while the search is typed.
    fn type_search(&mut self, key: crate::keymap::KeyPress, model: &Model) {
        let Some((text, is_typed)) = &mut self.search else { return };
        match model.keymap.meaning(&[KeyLayer::Search], None, key) {
            KeyMeaning::Action(Action::SearchCancel) => self.search = None,
            KeyMeaning::Action(Action::SearchAccept) => {
                *is_typed = false;
                self.find(self.top, 1, model.size);
            }
            KeyMeaning::Action(Action::SearchDelete) => drop(text.pop()),
            _ => text.extend(key.typed()),
        }
    }

    fn last_row(&self, model: &Model) -> Line<'static> {
        let (theme, rows) = (&model.theme, self.rows.1.len());
        let last = (self.top + body_rows(model.size)).min(rows);
        let separator = theme.glyphs.separator;
        let text = match &self.search {
            Some((text, true)) => format!("/{}", escape(text)),
            _ => format!(
                "{last} of {rows} rows {separator} {} search {separator} {} back",
                model.keymap.hint(Action::ViewSearch),
                model.keymap.hint(Action::ViewBack)
            ),
        };
        Line::from(Span::styled(text, theme.style(Role::Quiet)))
    }
}

/// The rows above the last one.
fn body_rows(size: ScreenSize) -> usize {
    usize::from(size.rows).saturating_sub(1)
}

impl View for Pager {
    fn kind(&self) -> ViewKind {
        self.kind.clone()
    }

    fn take_input(&mut self, input: &InputEvent, _at: Duration, model: &Model) -> ViewOutcome {
        let size = model.size;
        self.fit(size);
        let page = isize::try_from(body_rows(size).max(1)).unwrap_or(1);
        let key = match input {
            InputEvent::Wheel(rows) => {
                self.scroll_by(isize::from(*rows), size);
                return ViewOutcome::Stay;
            }
            InputEvent::Key(key) => *key,
            _ => return ViewOutcome::Stay,
        };
        if let Some((_, true)) = self.search {
            self.type_search(key, model);
            return ViewOutcome::Stay;
        }
        let KeyMeaning::Action(action) = model.keymap.meaning(&[KeyLayer::View], None, key) else {
            return ViewOutcome::Stay;
        };
        match action {
            Action::ViewBack => return ViewOutcome::Close,
            Action::ViewDown => self.scroll_by(1, size),
            Action::ViewUp => self.scroll_by(-1, size),
            Action::ViewPageDown | Action::ViewMark => self.scroll_by(page, size),
            Action::ViewPageUp => self.scroll_by(-page, size),
            Action::ViewTop => self.scroll_to(0, size),
            Action::ViewBottom => self.scroll_to(usize::MAX, size),
            Action::ViewSearch => self.search = Some((String::new(), true)),
            Action::ViewSearchNext => self.find(self.top + 1, 1, size),
            Action::ViewSearchPrevious => self.find(self.top, -1, size),
            _ => {}
        }
        ViewOutcome::Stay
    }

    fn draw(&mut self, model: &Model) -> ViewFrame {
        self.fit(model.size);
        let height = body_rows(model.size);
        let mut rows: Vec<Line<'static>> = self.rows.1.iter().skip(self.top).take(height).cloned().collect();
        rows.resize(height, Line::default());
        rows.push(self.last_row(model));
        ViewFrame { rows, cursor: None }
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    fn take_data(&mut self, data: ViewData) {
        if let ViewData::Lines(lines) = data {
            *self =
                Pager { top: self.top, search: self.search.take(), ..Pager::new(self.kind.clone(), lines) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::KeyPress;
    use crate::test_face::TestFace;

    fn press(pager: &mut Pager, key: &str, face: &TestFace) -> ViewOutcome {
        let key = InputEvent::Key(KeyPress::parse(key).unwrap());
        pager.take_input(&key, face.now, &face.model)
    }

    fn first_row(pager: &mut Pager, face: &TestFace) -> String {
        pager.draw(&face.model).rows[0].to_string()
    }

    #[test]
    fn it_scrolls_searches_and_closes() {
        let face = TestFace::new(20, 6);
        let lines = (0..50).map(|n| Line::from(format!("line {n}"))).collect();
        let mut pager = Pager::new(ViewKind::Help, lines);
        assert_eq!(first_row(&mut pager, &face), "line 0");
        press(&mut pager, "j", &face);
        press(&mut pager, "pagedown", &face);
        assert_eq!(first_row(&mut pager, &face), "line 6");
        press(&mut pager, "G", &face);
        assert_eq!(first_row(&mut pager, &face), "line 45");
        for key in ["/", "1", "3", "enter"] {
            press(&mut pager, key, &face);
        }
        assert_eq!(first_row(&mut pager, &face), "line 13");
        pager.take_input(&InputEvent::Wheel(-3), face.now, &face.model);
        assert_eq!(first_row(&mut pager, &face), "line 10");
        assert_eq!(press(&mut pager, "x", &face), ViewOutcome::Stay);
        assert_eq!(press(&mut pager, "q", &face), ViewOutcome::Close);
    }

    #[test]
    fn long_lines_wrap_and_nothing_is_lost_when_it_is_made_narrow() {
        let mut pager = Pager::new(ViewKind::Help, vec![Line::from("x".repeat(45))]);
        pager.fit(ScreenSize { columns: 20, rows: 6 });
        assert_eq!(pager.rows.1.len(), 3);
        pager.fit(ScreenSize { columns: 10, rows: 3 });
        assert_eq!(pager.rows.1.len(), 5);
    }
}

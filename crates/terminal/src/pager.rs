//! [`Pager`]: lines in the alternate screen, to scroll and search: help, the whole of a call, a diff,
//! the context.

use ratatui::text::{Line, Span};

use crate::input::InputEvent;
use crate::keymap::{Action, KeyLayer, KeyMeaning, Keymap};
use crate::screen::{EncodedRow, ScreenSize};
use crate::text::{escape, hard_wrap, line_width};
use crate::theme::{Role, Theme};

/// What became of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagerOutcome {
    /// The pager goes on.
    Stay,
    /// Back to the page.
    Close,
}

/// Lines that are looked at.
#[derive(Clone, Debug)]
pub struct Pager {
    lines: Vec<Line<'static>>,
    /// The first row that is shown.
    top: usize,
    size: ScreenSize,
    /// The text that is searched for, and whether it is still being typed.
    search: Option<(String, bool)>,
    /// Something needs an answer on the page.
    is_asked: bool,
}

impl Pager {
    /// Shows lines from the first on.
    pub fn new(lines: Vec<Line<'static>>, size: ScreenSize) -> Self {
        Pager { lines, top: 0, size, search: None, is_asked: false }
    }

    /// Says in the last row that something needs an answer.
    pub fn set_asked(&mut self, is_asked: bool) {
        self.is_asked = is_asked;
    }

    /// The terminal has another size.
    pub fn set_size(&mut self, size: ScreenSize) {
        self.size = size;
        self.scroll_to(self.top);
    }

    /// Takes what the person did.
    pub fn take_input(&mut self, input: &InputEvent, keymap: &Keymap) -> PagerOutcome {
        let page = self.body_rows().max(1);
        let key = match input {
            InputEvent::Wheel(rows) => {
                self.scroll_by(isize::from(*rows));
                return PagerOutcome::Stay;
            }
            InputEvent::Key(key) => *key,
            _ => return PagerOutcome::Stay,
        };
        if let Some((text, true)) = &mut self.search {
            match keymap.meaning(&[KeyLayer::Search], None, key) {
                KeyMeaning::Action(Action::SearchCancel) => self.search = None,
                KeyMeaning::Action(Action::SearchAccept) => {
                    let text = text.clone();
                    self.search = Some((text, false));
                    self.find(self.top, 1);
                }
                KeyMeaning::Action(Action::SearchDelete) => drop(text.pop()),
                _ => text.extend(key.typed()),
            }
            return PagerOutcome::Stay;
        }
        let KeyMeaning::Action(action) = keymap.meaning(&[KeyLayer::View], None, key) else {
            return PagerOutcome::Stay;
        };
        let page = isize::try_from(page).unwrap_or(1);
        match action {
            Action::ViewBack => return PagerOutcome::Close,
            Action::ViewDown => self.scroll_by(1),
            Action::ViewUp => self.scroll_by(-1),
            Action::ViewPageDown | Action::ViewMark => self.scroll_by(page),
            Action::ViewPageUp => self.scroll_by(-page),
            Action::ViewTop => self.scroll_to(0),
            Action::ViewBottom => self.scroll_to(usize::MAX),
            Action::ViewSearch => self.search = Some((String::new(), true)),
            Action::ViewSearchNext => self.find(self.top + 1, 1),
            Action::ViewSearchPrevious => self.find(self.top, -1),
            _ => {}
        }
        PagerOutcome::Stay
    }

    fn body_rows(&self) -> usize {
        usize::from(self.size.rows).saturating_sub(1)
    }

    /// The lines as rows of the screen.
    fn rows(&self) -> Vec<Line<'static>> {
        let columns = usize::from(self.size.columns).max(1);
        let rows = |line: &Line<'static>| match line_width(line) <= columns {
            true => vec![line.clone()],
            false => hard_wrap(line, columns),
        };
        self.lines.iter().flat_map(rows).collect()
    }

    fn scroll_by(&mut self, rows: isize) {
        self.scroll_to(self.top.saturating_add_signed(rows));
    }

    fn scroll_to(&mut self, row: usize) {
        self.top = row.min(self.rows().len().saturating_sub(self.body_rows()));
    }

    /// Goes to the next row with the searched text, from a row on; round at the ends.
    fn find(&mut self, from: usize, step: isize) {
        let Some((text, _)) = self.search.clone().filter(|(text, _)| !text.is_empty()) else { return };
        let rows = self.rows();
        let is_match = |row: &usize| rows[*row].to_string().to_lowercase().contains(&text.to_lowercase());
        let after = (from.min(rows.len())..rows.len()).chain(0..from.min(rows.len()));
        let found = if step > 0 { after.clone().find(is_match) } else { after.rev().find(is_match) };
        if let Some(row) = found {
            self.scroll_to(row);
        }
    }

    /// The bytes that draw the pager on the alternate screen.
    pub fn draw(&self, keymap: &Keymap, theme: &Theme) -> String {
        let columns = usize::from(self.size.columns);
        let rows = self.rows();
        let mut out = String::from("\x1b[?2026h\x1b[H");
        for row in rows.iter().skip(self.top).take(self.body_rows()) {
            out.push_str(&EncodedRow::clipped(row, columns).bytes);
            out.push_str("\x1b[K\r\n");
        }
        out.push_str("\x1b[J");
        // The last row is always there, however short the text is.
        out.push_str(&format!("\x1b[{};1H", self.size.rows));
        let last = self.top + self.body_rows().min(rows.len().saturating_sub(self.top));
        let place = format!("{last} of {} rows", rows.len());
        let separator = theme.glyphs.separator;
        let key = |action| keymap.hint(action);
        let text = match &self.search {
            Some((text, true)) => format!("/{}", escape(text)),
            _ => format!(
                "{place} {separator} {} search {separator} {} back",
                key(Action::ViewSearch),
                key(Action::ViewBack)
            ),
        };
        let mut spans = vec![Span::styled(text, theme.style(Role::Quiet))];
        if self.is_asked {
            spans.insert(0, Span::styled("! asks  ", theme.bold(Role::Care)));
        }
        out.push_str(&EncodedRow::clipped(&Line::from(spans), columns.saturating_sub(1)).bytes);
        out.push_str("\x1b[K\x1b[?2026l");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keymap::KeyPress;

    fn press(pager: &mut Pager, key: &str) -> PagerOutcome {
        pager.take_input(&InputEvent::Key(KeyPress::parse(key).unwrap()), &Keymap::default())
    }

    fn first_row(pager: &Pager) -> String {
        let mut parser = vt100::Parser::new(6.try_into().unwrap(), 20.try_into().unwrap(), 0);
        parser.process(pager.draw(&Keymap::default(), &Theme::default()).as_bytes());
        parser.screen().rows(0, 20).next().unwrap()
    }

    #[test]
    fn it_scrolls_searches_and_closes() {
        let lines = (0..50).map(|n| Line::from(format!("line {n}"))).collect();
        let mut pager = Pager::new(lines, ScreenSize { columns: 20, rows: 6 });
        assert_eq!(first_row(&pager), "line 0");
        press(&mut pager, "j");
        press(&mut pager, "pagedown");
        assert_eq!(first_row(&pager), "line 6");
        press(&mut pager, "G");
        assert_eq!(first_row(&pager), "line 45");
        press(&mut pager, "/");
        press(&mut pager, "1");
        press(&mut pager, "3");
        press(&mut pager, "enter");
        assert_eq!(first_row(&pager), "line 13");
        pager.take_input(&InputEvent::Wheel(-3), &Keymap::default());
        assert_eq!(first_row(&pager), "line 10");
        assert_eq!(press(&mut pager, "x"), PagerOutcome::Stay);
        assert_eq!(press(&mut pager, "q"), PagerOutcome::Close);
    }

    #[test]
    fn long_lines_wrap_and_nothing_is_lost_when_it_is_made_narrow() {
        let mut pager = Pager::new(vec![Line::from("x".repeat(45))], ScreenSize { columns: 20, rows: 6 });
        assert_eq!(pager.rows().len(), 3);
        pager.set_size(ScreenSize { columns: 10, rows: 3 });
        assert_eq!(pager.rows().len(), 5);
    }
}

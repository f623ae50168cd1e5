//! What the full screen looks like: the conversation, the context beside it, and below both the live
//! area of the page.

use ratatui::text::{Line, Span};

use super::find::Needle;
use super::full_screen::{FullScreen, SIDEBAR};
use crate::blocks::format::count;
use crate::keymap::Action;
use crate::model::Model;
use crate::text::{escape, line_width, width};
use crate::theme::Role;
use crate::view::{LiveArea, LivePlace, live_area};
use crate::views::ViewFrame;

impl FullScreen {
    pub(super) fn frame(&mut self, model: &Model) -> ViewFrame {
        self.update(model);
        let transcript = &model.transcript;
        let place = LivePlace::FullScreen { hint: self.hint(model), has_keys: self.cursor.is_none() };
        let LiveArea { rows: live, cursor } = live_area(model, &place);
        let height = usize::from(model.size.rows);
        self.region = height.saturating_sub(live.len());
        self.open_last_call_if_asked(transcript);
        self.show_cursor(transcript);
        let top = self.top_place(transcript);
        let mut rows = top.map_or_else(Vec::new, |top| {
            // A screen around what is seen is made as well, so that the next key finds it.
            self.rows.up(transcript, top, self.region);
            self.rows.down(transcript, top, 2 * self.region);
            self.rows.rows_from(transcript, top, self.region)
        });
        let needle = Needle::new(&self.search.text);
        if !needle.is_empty() && !self.search.is_typed {
            rows = rows.into_iter().map(|row| needle.mark(row)).collect();
        }
        rows.resize(self.region, Line::default());
        self.add_sidebar(&mut rows, model);
        let cursor = match (top, self.cursor) {
            _ if self.search.is_typed => (height.saturating_sub(1), 1 + width(&escape(&self.search.text))),
            (Some(top), Some(cursor)) => {
                let (first, _) = self.rows.position(top);
                (self.rows.position(cursor).0.saturating_sub(first), 0)
            }
            _ => (self.region + cursor.row, cursor.column),
        };
        rows.extend(live);
        ViewFrame { rows, cursor: Some(cursor) }
    }

    fn add_sidebar(&self, rows: &mut [Line<'static>], model: &Model) {
        let Some(context) = self.context.as_ref().filter(|_| self.has_sidebar(model)) else { return };
        let columns = self.text_columns(model);
        let mut beside = context.sidebar(SIDEBAR, &model.theme).into_iter();
        let bar = format!(" {} ", model.theme.glyphs.bar);
        for row in rows {
            let gap = " ".repeat(columns.saturating_sub(line_width(row)));
            row.spans.push(Span::raw(gap));
            row.spans.push(Span::styled(bar.clone(), model.theme.style(Role::Quiet)));
            row.spans.extend(beside.next().unwrap_or_default().spans);
        }
    }

    /// The last row: where one is, and what keys do.
    fn hint(&self, model: &Model) -> Line<'static> {
        let quiet = model.theme.style(Role::Quiet);
        if self.search.is_typed {
            return Line::from(Span::styled(format!("/{}", escape(&self.search.text)), quiet));
        }
        let key = |action| model.keymap.hint(action);
        let separator = format!(" {} ", model.theme.glyphs.separator);
        let Some(cursor) = self.cursor else {
            let parts = [
                format!("{} page", key(Action::FullBack)),
                format!("{} scrolls", key(Action::FullUp)),
                format!("{} last call", key(Action::FullLastCall)),
                format!("{} context", key(Action::FullStrata)),
            ];
            return Line::from(Span::styled(parts.join(&separator), quiet));
        };
        let (row, all) = self.rows.position(cursor);
        let place = match self.search.has_failed {
            true => format!("\"{}\" is not here", escape(&self.search.text)),
            false => format!("{} of {}", count(row), count(all)),
        };
        let parts = [
            place,
            format!("{} find", key(Action::ViewSearch)),
            format!("{} {} next", key(Action::ViewSearchNext), key(Action::ViewSearchPrevious)),
            format!("{} folds", key(Action::Fold)),
            format!("{} line", key(Action::ToLine)),
            format!("{} page", key(Action::FullBack)),
        ];
        let hint = Span::styled(parts.join(&separator), quiet);
        match model.approvals.is_empty() && model.question.is_none() {
            true => Line::from(hint),
            false => {
                let asks = format!("! asks, {} answers  ", key(Action::ToLine));
                Line::from(vec![Span::styled(asks, model.theme.bold(Role::Care)), hint])
            }
        }
    }
}

//! The views that lie on the page: opening, closing and drawing them.

use std::io::Write;

use super::{Face, FaceError};
use crate::model::{Effect, Event};
use crate::screen::ScreenSize;
use crate::views::{ViewData, ViewKind, ViewOutcome, mark_question, open_view};

impl Face<'_> {
    pub(super) fn open_view(&mut self, kind: ViewKind) -> Result<(), FaceError> {
        let data = self.host.view_data(&kind, &self.model);
        let Some(view) = open_view(kind, data) else { return Ok(()) };
        if self.views.is_empty() {
            // What waits to be printed is printed first: it belongs to the page.
            self.draw()?;
            self.page.erase(self.model.size, (self.clock)())?;
            self.guard.enter_alternate()?;
            self.view_screen.forget();
            self.has_rung = self.asks();
            self.model.update(Event::PageHidden(true), (self.clock)());
        }
        self.views.push(view);
        self.due = Some((self.clock)());
        Ok(())
    }

    /// Whether something on the page needs an answer.
    pub(super) fn asks(&self) -> bool {
        !self.model.approvals.is_empty() || self.model.question.is_some()
    }

    /// Does what a view wants.
    pub(super) fn follow(&mut self, outcome: ViewOutcome) -> Result<(), FaceError> {
        if matches!(outcome, ViewOutcome::Close | ViewOutcome::CloseWith(_)) {
            self.views.pop();
            self.leave_empty_stack()?;
        }
        match outcome {
            ViewOutcome::Effect(effect) | ViewOutcome::CloseWith(effect) => {
                if let Effect::Send(submission) = &effect {
                    // A command stands on the page as if it had been typed.
                    self.model.print_prompt(submission);
                }
                self.perform(vec![effect])
            }
            ViewOutcome::Stay | ViewOutcome::Close | ViewOutcome::Pass => Ok(()),
        }
    }

    pub(super) fn close_views(&mut self) -> Result<(), FaceError> {
        let had_views = !self.views.is_empty();
        self.views.clear();
        if had_views { self.leave_empty_stack() } else { Ok(()) }
    }

    /// Gives the page back once no view lies on it.
    pub(super) fn leave_empty_stack(&mut self) -> Result<(), FaceError> {
        if self.views.is_empty() {
            self.guard.leave_alternate()?;
            self.model.update(Event::PageHidden(false), (self.clock)());
            self.page.redraw();
            self.due = Some((self.clock)());
        }
        Ok(())
    }

    /// The conversation has gone on: what views show of it may be old.
    pub(super) fn refresh_views(&mut self) {
        for view in self.views.iter_mut().filter(|view| view.kind().follows_conversation()) {
            match self.host.view_data(&view.kind(), &self.model) {
                ViewData::Nothing | ViewData::Loading => {}
                data => view.take_data(data),
            }
        }
    }

    pub(super) fn draw_view(&mut self, size: ScreenSize) -> Result<(), FaceError> {
        let Some(view) = self.views.last_mut() else { return Ok(()) };
        let mut frame = view.draw(&self.model);
        let has_live_area = view.has_live_area();
        let asks = self.asks();
        let mut bytes = String::new();
        if asks && !has_live_area {
            mark_question(&mut frame, usize::from(size.rows), &self.model.theme);
            bytes.push_str(if self.has_rung { "" } else { "\x07" });
        }
        self.has_rung = asks;
        bytes.push_str(&self.view_screen.draw(&frame, size));
        if !bytes.is_empty() {
            let out = self.page.writer();
            out.write_all(bytes.as_bytes())?;
            out.flush()?;
        }
        if has_live_area {
            self.model.update(Event::Drawn, (self.clock)());
        }
        Ok(())
    }
}

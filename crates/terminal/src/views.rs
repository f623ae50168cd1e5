//! Views: what lies on top of the page in the alternate screen, and gives it back.
//!
//! The principal type is the trait [`View`]: it takes input through the keymap, draws itself for a
//! size, and is told when new data arrives. The loop holds a stack of them; [`open_view`] is the one
//! place that knows which view shows what.

mod pager; // Pager: lines to scroll and search
mod view_data; // ViewKind, ViewData: what is shown, and what it is made of
mod view_screen; // ViewScreen: frames as bytes

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::full::FullScreen;
use crate::input::InputEvent;
use crate::model::{Effect, Model};
use crate::theme::{Role, Theme};

pub use pager::Pager;
pub use view_data::{ViewData, ViewKind};
pub use view_screen::ViewScreen;

/// What became of an input.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewOutcome {
    /// The view goes on.
    Stay,
    /// Back to what is below.
    Close,
    /// Something is to be done; the view goes on. [`Effect::Open`] lays another view on top.
    Effect(Effect),
    /// Back to what is below, and something is to be done.
    CloseWith(Effect),
    /// The view does not want it: the page takes it.
    Pass,
}

/// What a view looks like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewFrame {
    /// The rows from the top, at most as many as the screen has; longer ones are clipped.
    pub rows: Vec<Line<'static>>,
    /// Where the cursor is: row and column, from 0. In the last row if the view says nothing.
    pub cursor: Option<(usize, usize)>,
}

/// Something that takes the whole screen and the keys.
pub trait View: Send {
    /// What it shows.
    fn kind(&self) -> ViewKind;

    /// Takes what the person did at `at`.
    fn take_input(&mut self, input: &InputEvent, at: Duration, model: &Model) -> ViewOutcome;

    /// Draws itself for the size, the theme and the keys of the model.
    fn draw(&mut self, model: &Model) -> ViewFrame;

    /// New data has arrived. What the person has chosen stays chosen where that still exists.
    fn take_data(&mut self, _data: ViewData) {}

    /// Whether the live area of the page is a part of the view: questions are then answered in it.
    fn has_live_area(&self) -> bool {
        false
    }

    /// When it has to be drawn again although nothing happens.
    fn next_tick(&self, _model: &Model) -> Option<Duration> {
        None
    }
}

/// The view that shows data of a kind; none if there is nothing to show.
pub fn open_view(kind: ViewKind, data: ViewData) -> Option<Box<dyn View>> {
    match (kind, data) {
        (_, ViewData::Nothing) => None,
        (ViewKind::LastCall, ViewData::Conversation(context)) => {
            Some(Box::new(FullScreen::at_last_call(context)))
        }
        (_, ViewData::Conversation(context)) => Some(Box::new(FullScreen::new(context))),
        (kind, ViewData::Lines(lines)) => Some(Box::new(Pager::new(kind, lines))),
        (kind, ViewData::Loading) => Some(Box::new(Pager::new(kind, vec![Line::from(" …")]))),
    }
}

/// Says in the last row that something needs an answer on the page.
pub fn mark_question(frame: &mut ViewFrame, rows: usize, theme: &Theme) {
    frame.rows.resize(rows, Line::default());
    if let Some(last) = frame.rows.last_mut() {
        last.spans.insert(0, Span::styled("! asks  ", theme.bold(Role::Care)));
    }
}

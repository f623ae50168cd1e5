//! Views: what lies on top of the page in the alternate screen, and gives it back.
//!
//! The principal type is the trait [`View`]: it takes input through the keymap, draws itself for a
//! size, and is told when new data arrives. The loop holds a stack of them; [`open_view`] is the one
//! place that knows which view shows what.

mod chooser; // PickerView: a list that is narrowed by typing
mod context; // the context, with what can be done to it
mod diff; // changed files
mod models; // models, efforts, and other names to choose from
mod pager; // Pager: lines to scroll and search
mod price; // what an act costs, before it is done
mod sessions; // sessions to go on with
#[cfg(test)]
mod tests;
mod tree; // the tree of a session
mod view_data; // ViewKind, ViewData: what is shown, and what it is made of
mod view_screen; // ViewScreen: frames as bytes

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::blocks::ViewLines;
use crate::editor::{Submission, SubmissionKind};
use crate::full::FullScreen;
use crate::input::InputEvent;
use crate::model::{Effect, Model};
use crate::theme::{Role, Theme};

pub use context::{ContextData, ContextItem};
pub use models::{ChoiceData, ModelData};
pub use pager::Pager;
pub use price::PriceData;
pub use sessions::{SessionData, SessionItem};
pub use tree::{TreeData, TreeItem};
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

    /// Whether it stands in for a view whose data has not arrived.
    fn is_waiting(&self) -> bool {
        false
    }

    /// When it has to be drawn again although nothing happens.
    fn next_tick(&self, _model: &Model) -> Option<Duration> {
        None
    }
}

/// The view that shows data of a kind; none if there is nothing to show. A pager waits for data that
/// comes later, and the loop then puts the view in its place.
pub fn open_view(kind: ViewKind, data: ViewData) -> Option<Box<dyn View>> {
    Some(match data {
        ViewData::Nothing => return None,
        ViewData::Loading => Box::new(Pager::waiting(kind)),
        ViewData::Lines(lines) => Box::new(Pager::new(kind, lines)),
        ViewData::Conversation(context) => match kind {
            ViewKind::LastCall => Box::new(FullScreen::at_last_call(context)),
            _ => Box::new(FullScreen::new(context)),
        },
        ViewData::Context(data) => Box::new(context::ContextScreen::new(*data)),
        ViewData::Models(data) => Box::new(chooser::PickerView::new(kind, models::ModelList::new(data))),
        ViewData::Sessions(data) => {
            Box::new(chooser::PickerView::new(kind, sessions::SessionList::new(data)))
        }
        ViewData::Choices(data) => Box::new(chooser::PickerView::new(kind, models::ChoiceList(data))),
        ViewData::Tree(data) => Box::new(tree::TreeScreen::new(data)),
        ViewData::Price(data) => Box::new(price::PriceView::new(kind, data)),
        ViewData::Diff(diffs) => Box::new(diff::DiffScreen::new(kind, diffs)),
    })
}

/// Runs a slash command.
fn command(text: &str) -> Effect {
    let (text, shown) = (text.to_owned(), text.to_owned());
    Effect::Send(Submission { text, shown, kind: SubmissionKind::Command })
}

/// Where the cursor is in a view that is `height` rows high: before what is chosen.
fn cursor_row(view: &ViewLines, height: usize) -> Option<(usize, usize)> {
    let (start, _) = view.chosen?;
    let shown = view.fit(height);
    let row = shown.iter().position(|line| Some(line) == view.rows.get(start))?;
    Some((row, 0))
}

/// The entry of a list that a click on a row of the screen means; none beside the entries. `lines` draws
/// the list with one of its `count` entries chosen.
fn clicked_entry(
    row: u16,
    height: u16,
    (count, chosen): (usize, usize),
    lines: impl Fn(usize) -> ViewLines,
) -> Option<usize> {
    let row = lines(chosen).row_on_screen(height.into(), row.into())?;
    let start = |entry| lines(entry).chosen.map_or(0, |(start, _)| start);
    // Entries stand in their order: as many begin at or above the row.
    let (mut below, mut above) = (0, count);
    while below < above {
        let middle = below.midpoint(above);
        if start(middle) <= row { below = middle + 1 } else { above = middle }
    }
    let entry = below.checked_sub(1)?;
    lines(entry).chosen.filter(|(start, end)| (*start..*end).contains(&row)).map(|_| entry)
}

/// Says in the last row that something needs an answer on the page.
pub fn mark_question(frame: &mut ViewFrame, rows: usize, theme: &Theme) {
    frame.rows.resize(rows, Line::default());
    if let Some(last) = frame.rows.last_mut() {
        last.spans.insert(0, Span::styled("! asks  ", theme.bold(Role::Care)));
    }
}

//! [`view`]: the model as a frame. Lines that are finished are printed; what may still change is the
//! live area: the unfinished block, running tools, questions, the queue, the input line, the status.

mod activity; // what the agent does
mod approval; // the question about a call
mod extension_rows; // widgets and words of extensions
mod input_line; // the line, its completions, the search
#[cfg(test)]
mod tests;

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::blocks::format::clock;
use crate::blocks::queue_lines;
use crate::keymap::Action;
use crate::model::{BlockKind, FaceState, Mode, Model, Phase};
use crate::screen::{CursorPlace, Frame};
use crate::text::truncate_line;
use crate::theme::Role;
use input_line::InputRows;

/// The live area takes at most this many rows, and at most half of the screen.
const MOST_LIVE_ROWS: usize = 14;
/// But never fewer: the line, the status, and a question have to be seen.
const FEWEST_LIVE_ROWS: usize = 6;
/// Queued messages that are shown.
const QUEUE_ROWS: usize = 4;

/// Rows that stay free for what the agent does, with a blank one above and below.
const ACTIVITY_ROWS: usize = 3;

/// Rows that the widgets of extensions get above the line, and below it.
const WIDGET_ROWS_ABOVE: usize = 5;
const WIDGET_ROWS_BELOW: usize = 3;

/// Where a live area stands.
#[derive(Clone, Debug)]
pub(crate) enum LivePlace {
    /// Below what was printed.
    Page,
    /// Below the conversation of the full screen, which shows the answer itself.
    FullScreen {
        /// What its keys do, for the last row.
        hint: Line<'static>,
        /// Whether keys go to the line.
        has_keys: bool,
    },
}

/// Rows that are redrawn, and where the cursor stands in them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LiveArea {
    pub(crate) rows: Vec<Line<'static>>,
    pub(crate) cursor: CursorPlace,
}

/// Draws the model.
pub fn view(model: &Model) -> Frame {
    let LiveArea { rows, cursor } = live_area(model, &LivePlace::Page);
    let (print, pictures) = (model.page.lines().to_vec(), model.page.pictures().to_vec());
    Frame { print, pictures, live: rows, cursor }
}

/// Draws what may still change.
pub(crate) fn live_area(model: &Model, place: &LivePlace) -> LiveArea {
    let columns = usize::from(model.size.columns);
    let rows = usize::from(model.size.rows);
    let budget = (rows / 2).clamp(FEWEST_LIVE_ROWS, MOST_LIVE_ROWS).min(rows.max(1));
    let input = input_line::input_rows(model, (budget / 3).max(1));
    let mut below = extension_rows::widget_rows(&model.extensions.below, WIDGET_ROWS_BELOW, model);
    below.push(status(model));
    below.extend(extension_rows::status_row(model));
    below.extend(match place {
        LivePlace::Page => hint(model),
        LivePlace::FullScreen { hint: own, has_keys: true } => {
            let separator = Span::raw(format!(" {} ", model.theme.glyphs.separator));
            let mut line = hint(model).unwrap_or_default();
            line.spans.extend((!line.spans.is_empty()).then_some(separator));
            line.spans.extend(own.spans.iter().cloned());
            Some(line)
        }
        LivePlace::FullScreen { hint: own, has_keys: false } => Some(own.clone()),
    });
    // Where there is hardly any room, the input line stays.
    below.truncate(budget.saturating_sub(input.rows.len()));
    let room = budget.saturating_sub(below.len() + input.rows.len());
    let mut above = above_input(model, room, place);
    let skipped = above.len().saturating_sub(room);
    above.drain(..skipped);
    let InputRows { rows: input, cursor } = input;
    let cursor = CursorPlace { row: above.len() + cursor.row, column: cursor.column };
    let live = above.into_iter().chain(input).chain(below);
    let fit = |line| truncate_line(line, columns, model.theme.glyphs.ellipsis);
    LiveArea { rows: live.map(fit).collect(), cursor }
}

/// Everything above the input line. What is cut, is cut at the top of the activity.
fn above_input(model: &Model, room: usize, place: &LivePlace) -> Vec<Line<'static>> {
    let taken = |sections: &[Vec<Line<'static>>]| sections.iter().map(Vec::len).sum::<usize>();
    let own = [approval::question_rows(model), queue_rows(model), input_line::list_rows(model)];
    // What extensions show gives way to what the agent does and asks.
    let active = if activity::activity_kind(model).is_some() { ACTIVITY_ROWS } else { 0 };
    let widget_room = room.saturating_sub(taken(&own) + active + 1).min(WIDGET_ROWS_ABOVE);
    let [questions, queue, lists] = own;
    let widgets = extension_rows::widget_rows(&model.extensions.above, widget_room, model);
    let sections = [widgets, questions, queue, lists];
    let room = room.saturating_sub(taken(&sections));
    let is_page = matches!(place, LivePlace::Page);
    let kind = activity::activity_kind(model).filter(|kind| is_page || *kind != BlockKind::Answer);
    let needs_blank = |kind| usize::from(!is_page || model.page.needs_blank_before(kind));
    // One blank row above the activity, and one below it.
    let mut activity = kind.map_or_else(Vec::new, |kind| {
        let room = room.saturating_sub(needs_blank(kind) + 1);
        let mut rows = activity::activity_rows(model, room);
        let skipped = rows.len().saturating_sub(room);
        rows.drain(..skipped);
        rows
    });
    let mut rows = Vec::new();
    match kind.filter(|_| !activity.is_empty()) {
        Some(kind) => {
            rows.extend((needs_blank(kind) > 0 && activity[0].width() > 0).then(Line::default));
            rows.append(&mut activity);
            rows.push(Line::default());
        }
        None => {
            let follows_greeting =
                is_page && taken(&sections) == 0 && model.page.last_kind() == Some(BlockKind::Greeting);
            rows.extend((needs_blank(BlockKind::Text) > 0 && !follows_greeting).then(Line::default));
        }
    }
    rows.extend(sections.into_iter().flatten());
    rows
}

fn queue_rows(model: &Model) -> Vec<Line<'static>> {
    let columns = usize::from(model.size.columns);
    let shown = model.queue.len().min(QUEUE_ROWS);
    let mut rows = queue_lines(&model.queue[..shown], columns, &model.theme);
    if model.queue.len() > shown {
        let more = format!("  {} {} more", model.theme.glyphs.ellipsis, model.queue.len() - shown);
        rows.push(Line::styled(more, model.theme.style(Role::Quiet)));
    }
    rows
}

fn status(model: &Model) -> Line<'static> {
    let mut status = model.status.clone();
    model.mode.name().clone_into(&mut status.mode);
    status.is_dangerous = model.mode == Mode::All;
    status.hint = model.background_work.clone();
    if status.hint.is_none()
        && model.state() == FaceState::Idle
        && model.editor.is_empty()
        && status.layers.is_empty()
    {
        status.hint = Some(format!("{} help", model.keymap.hint(Action::EmptyHelp)));
    }
    status.line(usize::from(model.size.columns), &model.theme)
}

/// The row below the status: what a second key does, or what keys do during a run.
fn hint(model: &Model) -> Option<Line<'static>> {
    let quiet = model.theme.style(Role::Quiet);
    if let Some((text, _)) = &model.hint {
        return Some(Line::styled(text.clone(), model.theme.style(Role::Care)));
    }
    let key = |action| model.keymap.hint(action).replace('↑', model.theme.glyphs.up);
    let separator = format!(" {} ", model.theme.glyphs.separator);
    let stops = format!("{} stops", key(Action::Stop));
    let parts = match model.state() {
        FaceState::Idle | FaceState::ApprovalActive | FaceState::ApprovalWaiting => return None,
        FaceState::ApprovalReason => {
            vec![
                format!("{} says no", key(Action::SendReason)),
                format!("{} back", key(Action::CancelReason)),
            ]
        }
        FaceState::Question => vec![
            match model.question.as_ref().filter(|question| question.prompt.takes_one_key()) {
                Some(question) => format!("1 to {} answers", question.prompt.choices.len()),
                None => format!("{} answers", key(Action::SendAnswer)),
            },
            format!("{} no answer", key(Action::RefuseAnswer)),
            format!("{} stops", key(Action::StopFromQuestion)),
        ],
        FaceState::Stopping => vec![format!("{} again ends it at once", key(Action::Stop))],
        FaceState::Streaming | FaceState::Tool | FaceState::Compacting | FaceState::Retry => {
            let mut parts =
                vec![format!("{} steers", key(Action::Submit)), format!("{} at the end", key(Action::Queue))];
            if !model.queue.is_empty() {
                parts.push(format!("{} edits the queue", key(Action::Up)));
            }
            parts.push(stops);
            parts
        }
    };
    let mut text = parts.join(&separator);
    if model.phase == Phase::Streaming
        && model.has_text
        && let Some(since) = model.run_since
    {
        text.push_str(&format!("{separator}{}", clock(elapsed(model, since))));
    }
    Some(Line::from(vec![Span::styled(text, quiet)]))
}

fn elapsed(model: &Model, since: Duration) -> Duration {
    model.now.saturating_sub(since)
}

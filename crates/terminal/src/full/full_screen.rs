//! [`FullScreen`]: scrolling, folding and searching the conversation. Keys that mean nothing of that
//! go to the input line below it, as on the page.

use std::time::Duration;

use super::find::Needle;
use super::transcript_rows::{RowPlace, TranscriptRows};
use crate::blocks::ContextView;
use crate::input::InputEvent;
use crate::keymap::{Action, KeyLayer, KeyMeaning, KeyPress};
use crate::model::Model;
use crate::transcript::{BlockSource, Transcript};
use crate::views::{View, ViewData, ViewFrame, ViewKind, ViewOutcome};

/// From this width on, the context stands beside the conversation.
pub(super) const SIDEBAR_FROM: usize = 100;

/// Columns of the context.
pub(super) const SIDEBAR: usize = 33;

/// The full screen.
#[derive(Clone, Debug)]
pub struct FullScreen {
    pub(super) rows: TranscriptRows,
    /// The first row on the screen; none while it follows the end.
    pub(super) top: Option<RowPlace>,
    /// The row that keys are about; none while they go to the line.
    pub(super) cursor: Option<RowPlace>,
    /// Rows of the conversation on the screen.
    pub(super) region: usize,
    pub(super) search: Search,
    pub(super) context: Option<Box<ContextView>>,
    pub(super) is_sidebar_hidden: bool,
    /// The last call is gone to once there is a size.
    opens_last_call: bool,
    generation: usize,
    columns: usize,
}

/// What is searched for.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    pub(super) text: String,
    pub(super) is_typed: bool,
    pub(super) has_failed: bool,
}

impl FullScreen {
    /// The conversation at its end; keys go to the line.
    pub fn new(context: Option<Box<ContextView>>) -> Self {
        FullScreen {
            rows: TranscriptRows::new(1, Default::default()),
            top: None,
            cursor: None,
            region: 1,
            search: Search::default(),
            context,
            is_sidebar_hidden: false,
            opens_last_call: false,
            generation: 0,
            columns: 0,
        }
    }

    /// The conversation at its last call, which is unfolded.
    pub fn at_last_call(context: Option<Box<ContextView>>) -> Self {
        FullScreen { opens_last_call: true, ..FullScreen::new(context) }
    }

    pub(super) fn has_sidebar(&self, model: &Model) -> bool {
        usize::from(model.size.columns) >= SIDEBAR_FROM && self.context.is_some() && !self.is_sidebar_hidden
    }

    /// Columns that the conversation has.
    pub(super) fn text_columns(&self, model: &Model) -> usize {
        let columns = usize::from(model.size.columns);
        if self.has_sidebar(model) { columns - SIDEBAR - 3 } else { columns }
    }

    /// Learns what was said, and the size. What is on the screen stays there.
    pub(super) fn update(&mut self, model: &Model) {
        let transcript = &model.transcript;
        if self.generation != transcript.generation() {
            self.generation = transcript.generation();
            self.go_to_line();
        }
        let columns = self.text_columns(model);
        let height = |place: Option<RowPlace>| place.map_or(0, |place| self.rows.known_height(place.block));
        let (top_height, cursor_height) = (height(self.top), height(self.cursor));
        self.rows.update(transcript, columns, &model.theme);
        if std::mem::replace(&mut self.columns, columns) != columns {
            self.top = self.top.map(|top| self.rows.moved_place(transcript, top, top_height));
            self.cursor = self.cursor.map(|place| self.rows.moved_place(transcript, place, cursor_height));
        }
    }

    /// The first row on the screen.
    pub(super) fn top_place(&mut self, transcript: &Transcript) -> Option<RowPlace> {
        let last = self.rows.last_place(transcript)?;
        let end = self.rows.up(transcript, last, self.region.saturating_sub(1));
        Some(self.top.map_or(end, |top| top.min(end)))
    }

    /// Keys go to the line again, and the end is followed.
    fn go_to_line(&mut self) {
        (self.top, self.cursor) = (None, None);
    }

    /// Scrolls by rows. Behind the end is the line.
    fn scroll(&mut self, transcript: &Transcript, rows: isize) {
        let Some(top) = self.top_place(transcript) else { return };
        let count = rows.unsigned_abs();
        if rows < 0 {
            let moved = self.rows.up(transcript, top, count);
            let cursor = self.cursor.map_or(moved, |cursor| self.rows.up(transcript, cursor, count));
            (self.top, self.cursor) = (Some(moved), Some(cursor));
        } else if let Some(cursor) = self.cursor {
            // As many rows again have to be there below.
            let is_at_end = self.rows.down(transcript, top, count + self.region).is_none();
            match (self.rows.down(transcript, top, count), self.rows.down(transcript, cursor, count)) {
                (Some(top), Some(cursor)) if !is_at_end => {
                    (self.top, self.cursor) = (Some(top), Some(cursor));
                }
                _ => self.go_to_line(),
            }
        }
    }

    /// Moves the cursor by a row. Behind the last row is the line.
    fn move_cursor(&mut self, transcript: &Transcript, is_down: bool) {
        let Some(cursor) = self.cursor else { return };
        let moved = match is_down {
            true => self.rows.down(transcript, cursor, 1),
            false => Some(self.rows.up(transcript, cursor, 1)),
        };
        match moved {
            Some(place) => self.go_to(transcript, place),
            None => self.go_to_line(),
        }
    }

    /// Puts the cursor somewhere, and scrolls as little as that needs.
    fn go_to(&mut self, transcript: &Transcript, place: RowPlace) {
        self.cursor = Some(place);
        self.show_cursor(transcript);
    }

    pub(super) fn show_cursor(&mut self, transcript: &Transcript) {
        let (Some(cursor), Some(top)) = (self.cursor, self.top_place(transcript)) else { return };
        let highest = self.rows.up(transcript, cursor, self.region.saturating_sub(1));
        self.top = Some(top.max(highest).min(cursor));
    }

    /// The first row of a block that is not blank.
    fn first_row(transcript: &Transcript, block: usize) -> RowPlace {
        RowPlace { block, row: usize::from(transcript.has_blank_before(block)) }
    }

    pub(super) fn open_last_call_if_asked(&mut self, transcript: &Transcript) {
        if std::mem::take(&mut self.opens_last_call) {
            self.open_last_call(transcript);
        }
    }

    fn open_last_call(&mut self, transcript: &Transcript) {
        let Some(block) = transcript.last_call() else { return };
        self.rows.set_unfolded(transcript, block, true);
        // The output of the person's own command stands below it.
        if transcript
            .blocks()
            .get(block + 1)
            .is_some_and(|next| matches!(next.source, BlockSource::Output(_)))
        {
            self.rows.set_unfolded(transcript, block + 1, true);
        }
        let place = FullScreen::first_row(transcript, block);
        (self.top, self.cursor) = (Some(place), Some(place));
        self.top = self.top_place(transcript);
    }

    fn toggle_fold(&mut self, transcript: &Transcript) {
        let Some(cursor) = self.cursor else { return };
        self.rows.toggle_fold(transcript, cursor.block);
        self.go_to(transcript, FullScreen::first_row(transcript, cursor.block));
    }

    /// Goes to what was clicked, and folds or unfolds it; below the conversation is the line.
    fn click(&mut self, row: usize, column: usize, model: &Model) {
        let transcript = &model.transcript;
        if row >= self.region {
            return self.go_to_line();
        }
        let top = self.top_place(transcript);
        let place = top.and_then(|top| self.rows.down(transcript, top, row));
        if let Some(place) = place.filter(|_| column < self.text_columns(model)) {
            self.top = top;
            self.cursor = Some(place);
            self.toggle_fold(transcript);
        }
    }

    /// Goes to the next place of the searched text, or the one before; round at the ends.
    fn find(&mut self, transcript: &Transcript, is_down: bool) {
        let needle = Needle::new(&self.search.text);
        let count = transcript.blocks().len();
        if needle.is_empty() || count == 0 {
            return;
        }
        let start = match (self.cursor, self.rows.last_place(transcript)) {
            (Some(cursor), _) => cursor,
            (None, Some(last)) => last,
            (None, None) => return,
        };
        // The block of the cursor is looked at twice: first behind the cursor, at last before it.
        let found = (0..=count).find_map(|step| {
            let block = match is_down {
                true => (start.block + step) % count,
                false => (start.block + count - step % count) % count,
            };
            let rows = self.matching_rows(transcript, block, &needle);
            let is_ahead = |row: &usize| match (step, is_down) {
                (0, true) => *row > start.row,
                (0, false) => *row < start.row,
                _ => true,
            };
            let mut ahead = rows.into_iter().filter(is_ahead);
            let row = if is_down { ahead.next() } else { ahead.next_back() };
            row.map(|row| RowPlace { block, row })
        });
        self.search.has_failed = found.is_none();
        if let Some(place) = found {
            self.go_to(transcript, place);
        }
    }

    /// The rows of a block that show the text. What is folded away is unfolded for it.
    fn matching_rows(&mut self, transcript: &Transcript, block: usize, needle: &Needle) -> Vec<usize> {
        let source = &transcript.blocks()[block].source;
        if !source.texts().iter().any(|text| needle.is_in(text)) {
            return Vec::new();
        }
        let rows = needle.rows_in(self.rows.rows(transcript, block));
        if rows.is_empty() && self.rows.set_unfolded(transcript, block, true) {
            return needle.rows_in(self.rows.rows(transcript, block));
        }
        rows
    }

    fn type_search(&mut self, key: KeyPress, model: &Model) {
        match model.keymap.meaning(&[KeyLayer::Search], None, key) {
            KeyMeaning::Action(Action::SearchCancel) => self.search = Search::default(),
            KeyMeaning::Action(Action::SearchAccept) => {
                self.search.is_typed = false;
                self.find(&model.transcript, true);
            }
            KeyMeaning::Action(Action::SearchDelete) => drop(self.search.text.pop()),
            _ => self.search.text.extend(key.typed()),
        }
    }

    fn press(&mut self, key: KeyPress, model: &Model) -> ViewOutcome {
        let transcript = &model.transcript;
        let is_browsing = self.cursor.is_some();
        let layers: &[KeyLayer] = match is_browsing {
            true => &[KeyLayer::Browse, KeyLayer::FullScreen, KeyLayer::View],
            false => &[KeyLayer::FullScreen],
        };
        let action = match model.keymap.meaning(layers, None, key) {
            // The second key of a sequence that began in the line.
            _ if model.pending_key.is_some() => return ViewOutcome::Pass,
            KeyMeaning::Action(action) => action,
            _ if is_browsing => return ViewOutcome::Stay,
            _ => return ViewOutcome::Pass,
        };
        let page = isize::try_from(self.region.saturating_sub(1).max(1)).unwrap_or(1);
        match action {
            Action::FullBack => return ViewOutcome::Close,
            Action::FullUp | Action::ViewPageUp => self.scroll(transcript, -page),
            Action::FullDown | Action::ViewPageDown => self.scroll(transcript, page),
            Action::FullLastCall => self.open_last_call(transcript),
            Action::FullStrata if usize::from(model.size.columns) < SIDEBAR_FROM => return ViewOutcome::Pass,
            Action::FullStrata => self.is_sidebar_hidden = !self.is_sidebar_hidden,
            Action::Fold => self.toggle_fold(transcript),
            Action::ToLine | Action::ViewBack | Action::ViewBottom => self.go_to_line(),
            Action::ViewDown => self.move_cursor(transcript, true),
            Action::ViewUp => self.move_cursor(transcript, false),
            Action::ViewTop => self.go_to(transcript, RowPlace::default()),
            Action::ViewSearch => self.search = Search { is_typed: true, ..Search::default() },
            Action::ViewSearchNext => self.find(transcript, true),
            Action::ViewSearchPrevious => self.find(transcript, false),
            _ => {}
        }
        ViewOutcome::Stay
    }
}

impl View for FullScreen {
    fn kind(&self) -> ViewKind {
        ViewKind::Full
    }

    fn take_input(&mut self, input: &InputEvent, _at: Duration, model: &Model) -> ViewOutcome {
        self.update(model);
        match input {
            InputEvent::Wheel(rows) => self.scroll(&model.transcript, isize::from(*rows)),
            InputEvent::Click { row, column } => {
                self.click(usize::from(*row), usize::from(*column), model);
            }
            InputEvent::Key(key) if self.search.is_typed => self.type_search(*key, model),
            InputEvent::Key(key) => return self.press(*key, model),
            InputEvent::Paste(_) => {
                self.go_to_line();
                return ViewOutcome::Pass;
            }
            InputEvent::Resize(_) | InputEvent::Focus { .. } => return ViewOutcome::Pass,
        }
        ViewOutcome::Stay
    }

    fn draw(&mut self, model: &Model) -> ViewFrame {
        self.frame(model)
    }

    fn take_data(&mut self, data: ViewData) {
        if let ViewData::Conversation(context) = data {
            self.context = context;
        }
    }

    fn has_live_area(&self) -> bool {
        true
    }
}

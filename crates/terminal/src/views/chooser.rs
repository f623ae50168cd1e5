//! [`PickerView`]: a list that is narrowed by typing, from which one entry is taken.

use std::time::Duration;

use ratatui::text::Line;

use super::{View, ViewData, ViewFrame, ViewKind, ViewOutcome, clicked_entry};
use crate::blocks::pickers::Filter;
use crate::blocks::{ViewLines, key_line};
use crate::editor::FuzzyList;
use crate::input::InputEvent;
use crate::keymap::{Action, KeyLayer, KeyMeaning, Keymap};
use crate::model::Model;
use crate::text::width;
use crate::theme::Theme;

/// The entries of a picker.
pub trait PickList: Send {
    /// What typing is compared with, one text for each entry.
    fn names(&self) -> Vec<String>;

    /// The entry that is chosen at first.
    fn first(&self) -> usize {
        0
    }

    /// The word before what is typed.
    fn title(&self) -> String;

    /// The picker with the entries that match, in order; `chosen` is one of them.
    fn lines(&self, shown: &[usize], chosen: usize, filter: Filter, screen: (usize, &Theme)) -> ViewLines;

    /// Does something with the chosen entry: take it, or what else the list offers.
    fn act(&mut self, action: Action, chosen: Option<usize>, keymap: &Keymap) -> ViewOutcome;

    /// Keys of its own with what they do.
    fn keys(&self, keymap: &Keymap) -> Vec<(String, String)>;

    /// Takes a text that is being typed instead of the filter; false if none is.
    fn type_text(&mut self, _typed: Option<char>, _action: Option<Action>) -> Option<ViewOutcome> {
        None
    }

    /// New entries; false if the data is of another list.
    fn take_data(&mut self, data: ViewData) -> bool;
}

/// A list with what is typed and chosen.
pub struct PickerView<L> {
    kind: ViewKind,
    list: L,
    filter: String,
    /// The entries that match.
    shown: Vec<usize>,
    /// The chosen one among them.
    chosen: usize,
}

impl<L: PickList> PickerView<L> {
    /// All entries, with the first one chosen.
    pub fn new(kind: ViewKind, list: L) -> Self {
        let mut picker = PickerView { kind, list, filter: String::new(), shown: Vec::new(), chosen: 0 };
        picker.narrow();
        picker.chosen = picker.list.first().min(picker.shown.len().saturating_sub(1));
        picker
    }

    fn narrow(&mut self) {
        self.shown = FuzzyList::new(self.list.names()).best(&self.filter, usize::MAX);
        self.chosen = self.chosen.min(self.shown.len().saturating_sub(1));
    }

    fn entry(&self) -> Option<usize> {
        self.shown.get(self.chosen).copied()
    }

    fn step(&mut self, rows: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(rows).min(last);
    }

    /// Chooses the entry of a row; takes it if it is chosen already.
    fn click(&mut self, row: u16, model: &Model) -> ViewOutcome {
        let place = (self.shown.len(), self.chosen);
        let entry = clicked_entry(row, model.size.rows, place, |chosen| self.lines(chosen, model));
        match entry {
            Some(entry) if entry == self.chosen => {
                self.list.act(Action::PickTake, self.entry(), &model.keymap)
            }
            Some(entry) => {
                self.chosen = entry;
                ViewOutcome::Stay
            }
            None => ViewOutcome::Stay,
        }
    }

    fn lines(&self, chosen: usize, model: &Model) -> ViewLines {
        let columns = usize::from(model.size.columns);
        let filter = Filter { text: self.filter.clone() };
        let mut view = self.list.lines(&self.shown, chosen, filter, (columns, &model.theme));
        if self.shown.is_empty() {
            let text = if self.filter.is_empty() { "there is none" } else { "nothing matches" };
            view.rows.push(Line::from(format!("   {text}")));
        }
        let mut keys = self.list.keys(&model.keymap);
        keys.push((model.keymap.hint(Action::PickBack), "back".to_owned()));
        view.foot.push(key_line(&keys, columns, &model.theme));
        view
    }

    fn retype(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        self.chosen = 0;
        self.narrow();
    }
}

impl<L: PickList> View for PickerView<L> {
    fn kind(&self) -> ViewKind {
        self.kind.clone()
    }

    fn take_input(&mut self, input: &InputEvent, _at: Duration, model: &Model) -> ViewOutcome {
        let key = match input {
            InputEvent::Wheel(rows) => {
                self.step(isize::from(*rows));
                return ViewOutcome::Stay;
            }
            InputEvent::Paste(text) => {
                let text: String = text.chars().filter(|c| !c.is_control()).collect();
                self.retype(|filter| filter.push_str(&text));
                return ViewOutcome::Stay;
            }
            InputEvent::Click { row, .. } => return self.click(*row, model),
            InputEvent::Key(key) => *key,
            InputEvent::Resize(_) | InputEvent::Focus { .. } => return ViewOutcome::Stay,
        };
        let action = match model.keymap.meaning(&[KeyLayer::Picker], None, key) {
            KeyMeaning::Action(action) => Some(action),
            KeyMeaning::Prefix | KeyMeaning::None => None,
        };
        if let Some(outcome) = self.list.type_text(key.typed().filter(|_| action.is_none()), action) {
            return outcome;
        }
        let page = isize::try_from(model.size.rows.saturating_sub(4).max(1)).unwrap_or(1);
        match action {
            Some(Action::PickDown) => self.step(1),
            Some(Action::PickUp) => self.step(-1),
            Some(Action::PickPageDown) => self.step(page),
            Some(Action::PickPageUp) => self.step(-page),
            Some(Action::PickErase) => self.retype(|filter| _ = filter.pop()),
            Some(Action::PickClear) => self.retype(String::clear),
            Some(Action::PickBack) => return ViewOutcome::Close,
            Some(action) => return self.list.act(action, self.entry(), &model.keymap),
            None => {
                if let Some(c) = key.typed() {
                    self.retype(|filter| filter.push(c));
                }
            }
        }
        ViewOutcome::Stay
    }

    fn draw(&mut self, model: &Model) -> ViewFrame {
        let column = width(&format!(
            " {} {} {}",
            self.list.title(),
            model.theme.glyphs.prompt,
            crate::text::escape(&self.filter)
        ));
        let rows = self.lines(self.chosen, model).fit(usize::from(model.size.rows));
        ViewFrame { rows, cursor: Some((0, column)) }
    }

    fn take_data(&mut self, data: ViewData) {
        let before = self.entry().and_then(|entry| self.list.names().get(entry).cloned());
        if self.list.take_data(data) {
            self.narrow();
            let names = self.list.names();
            let same = self.shown.iter().position(|entry| names.get(*entry) == before.as_ref());
            self.chosen = same.unwrap_or(self.chosen);
        }
    }
}

//! The context: a cursor over layers and their items, and what can be done with each.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{View, ViewData, ViewFrame, ViewKind, ViewOutcome, clicked_entry, cursor_row};
use crate::blocks::{ContextRow, ContextView, Layer, ViewLines};
use crate::input::InputEvent;
use crate::keymap::{Action, KeyLayer, KeyMeaning, Keymap};
use crate::model::{Effect, Model};

/// The prompt with the items of its layers.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextData {
    /// Layers and marks.
    pub view: ContextView,
    /// The items of each layer, in the order of the layers.
    pub items: Vec<Vec<ContextItem>>,
}

/// Something within a layer: a file, a message, a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextItem {
    /// What commands call it: `file:src/a.rs`, `message:e3`.
    pub key: String,
    /// Its row.
    pub layer: Layer,
    /// Whether it is pinned: another pin lets it go.
    pub is_pinned: bool,
    /// Whether requests leave it out: recalling it brings it back.
    pub is_excluded: bool,
}

impl ContextItem {
    fn is_file(&self) -> bool {
        self.key.starts_with("file:")
    }

    /// Files can be pinned; another press lets them go.
    fn pin_command(&self) -> Option<String> {
        let command = if self.is_pinned { "unpin" } else { "pin" };
        self.is_file().then(|| format!("/{command} {}", self.key))
    }

    /// Takes it out where that is free; what a person has opened is closed.
    fn close_command(&self) -> Option<String> {
        match &self.key {
            _ if self.is_excluded => None,
            key if self.is_pinned => Some(format!("/unpin {key}")),
            key if self.is_file() || key.starts_with("message:") => Some(format!("/exclude {key} free")),
            key => Some(format!("/close {key}")),
        }
    }

    /// Files and messages can be taken out at once.
    fn exclude_command(&self) -> Option<String> {
        let can_go = !self.is_excluded && (self.is_file() || self.key.starts_with("message:"));
        can_go.then(|| format!("/exclude {}", self.key))
    }
}

/// The view.
pub(super) struct ContextScreen {
    data: ContextData,
    /// Layers whose items are shown, by their place.
    open: BTreeSet<usize>,
    /// The chosen one of the layers and items that are shown.
    chosen: usize,
    is_split: bool,
}

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Layer(usize),
    Item(usize, usize),
}

impl ContextScreen {
    pub(super) fn new(data: ContextData) -> Self {
        let is_split = data.view.is_split;
        ContextScreen { data, open: BTreeSet::new(), chosen: 0, is_split }
    }

    /// The rows with the items of open layers, and what each layer row stands for.
    fn rows(&self) -> (Vec<ContextRow>, Vec<Place>) {
        let (mut rows, mut places) = (Vec::new(), Vec::new());
        let mut index = 0;
        for row in &self.data.view.rows {
            rows.push(row.clone());
            if let ContextRow::Layer(_) = row {
                places.push(Place::Layer(index));
                let items = self.data.items.get(index).filter(|_| self.open.contains(&index));
                for (at, item) in items.into_iter().flatten().enumerate() {
                    rows.push(ContextRow::Layer(item.layer.clone()));
                    places.push(Place::Item(index, at));
                }
                index += 1;
            }
        }
        (rows, places)
    }

    fn view(&self, rows: Vec<ContextRow>, keymap: &Keymap) -> ContextView {
        self.view_with(self.chosen, rows, keymap)
    }

    fn view_with(&self, chosen: usize, rows: Vec<ContextRow>, keymap: &Keymap) -> ContextView {
        ContextView {
            rows,
            chosen,
            is_split: self.is_split || !self.open.is_empty(),
            keys: keys(keymap),
            ..self.data.view.clone()
        }
    }

    fn item(&self) -> Option<&ContextItem> {
        let (_, places) = self.rows();
        match places.get(self.chosen)? {
            Place::Item(layer, at) => self.data.items.get(*layer)?.get(*at),
            Place::Layer(layer) => match self.data.items.get(*layer)?.as_slice() {
                // A layer of one item stands for it: a panel, the tail.
                [only] => Some(only),
                _ => None,
            },
        }
    }

    /// Opens what is chosen: a layer shows its items, an item its text.
    fn open(&mut self, columns: usize, keymap: &Keymap) -> ViewOutcome {
        let (rows, places) = self.rows();
        let view = self.view(rows, keymap);
        let row = view.shown_row(self.chosen, columns);
        let shares_row = (0..places.len()).filter(|place| view.shown_row(*place, columns) == row).count() > 1;
        if shares_row {
            self.is_split = true;
            return ViewOutcome::Stay;
        }
        match places.get(self.chosen) {
            Some(Place::Layer(layer)) if self.data.items.get(*layer).is_some_and(|items| items.len() > 1) => {
                let layer = *layer;
                if !self.open.remove(&layer) {
                    self.open.insert(layer);
                }
                self.is_split = true;
                let (_, places) = self.rows();
                self.chosen = places.iter().position(|place| *place == Place::Layer(layer)).unwrap_or(0);
                ViewOutcome::Stay
            }
            _ => match self.item() {
                Some(item) => ViewOutcome::Effect(Effect::Open(ViewKind::Item(item.key.clone()))),
                None => ViewOutcome::Stay,
            },
        }
    }

    fn lines(&self, chosen: usize, model: &Model) -> ViewLines {
        let (rows, _) = self.rows();
        let view = self.view_with(chosen, rows, &model.keymap);
        view.lines(usize::from(model.size.columns), &model.theme)
    }

    /// Chooses what stands in a row; opens it if it is chosen already.
    fn click(&mut self, row: u16, model: &Model) -> ViewOutcome {
        let (_, places) = self.rows();
        let place = (places.len(), self.chosen);
        let entry = clicked_entry(row, model.size.rows, place, |chosen| self.lines(chosen, model));
        let Some(entry) = entry else { return ViewOutcome::Stay };
        // The first of those that share a row stands for it.
        let start = self.lines(entry, model).chosen;
        let first = (0..=entry).find(|other| self.lines(*other, model).chosen == start);
        let is_chosen = first == Some(self.chosen);
        self.chosen = first.unwrap_or(entry);
        match is_chosen {
            true => self.open(usize::from(model.size.columns), &model.keymap),
            false => ViewOutcome::Stay,
        }
    }

    /// Prices a command about the chosen item.
    fn price(&self, command: impl FnOnce(&ContextItem) -> Option<String>) -> ViewOutcome {
        let text = self.item().and_then(command);
        text.map_or(ViewOutcome::Stay, |text| ViewOutcome::Effect(Effect::Open(ViewKind::Price(text))))
    }

    fn step(&mut self, step: isize, columns: usize, keymap: &Keymap) {
        let (rows, places) = self.rows();
        let last = places.len().saturating_sub(1);
        let view = self.view(rows, keymap);
        let row = |index| view.shown_row(index, columns);
        // Layers that share a row are one step.
        let mut left = step.unsigned_abs();
        while left > 0 {
            let next = self.chosen.saturating_add_signed(step.signum()).min(last);
            if next == self.chosen {
                break;
            }
            let is_other_row = row(next) != row(self.chosen);
            self.chosen = next;
            left -= usize::from(is_other_row);
        }
        // The first of those that share a row stands for it.
        let shown = row(self.chosen);
        self.chosen = (0..=self.chosen).find(|index| row(*index) == shown).unwrap_or(self.chosen);
    }
}

fn keys(keymap: &Keymap) -> Vec<(String, String)> {
    let words = [
        (Action::ContextOpen, "open"),
        (Action::ContextPin, "pin"),
        (Action::ContextClose, "close"),
        (Action::ContextExclude, "exclude"),
        (Action::ContextRecall, "recall"),
        (Action::ContextFold, "fold"),
        (Action::ContextWhy, "why"),
        (Action::ContextBytes, "bytes"),
        (Action::ContextDiff, "diff"),
        (Action::ContextLayout, "layout"),
        (Action::ViewBack, "back"),
    ];
    words.map(|(action, word)| (keymap.hint(action), word.to_owned())).to_vec()
}

impl View for ContextScreen {
    fn kind(&self) -> ViewKind {
        ViewKind::Context
    }

    fn take_input(&mut self, input: &InputEvent, _at: Duration, model: &Model) -> ViewOutcome {
        let (columns, keymap) = (usize::from(model.size.columns), &model.keymap);
        let key = match input {
            InputEvent::Wheel(rows) => {
                self.step(isize::from(*rows), columns, keymap);
                return ViewOutcome::Stay;
            }
            InputEvent::Click { row, .. } => return self.click(*row, model),
            InputEvent::Key(key) => *key,
            _ => return ViewOutcome::Stay,
        };
        let KeyMeaning::Action(action) = keymap.meaning(&[KeyLayer::Context, KeyLayer::View], None, key)
        else {
            return ViewOutcome::Stay;
        };
        let page = isize::try_from(model.size.rows.saturating_sub(4).max(1)).unwrap_or(1);
        let open = |kind| ViewOutcome::Effect(Effect::Open(kind));
        match action {
            Action::ContextOpen => return self.open(columns, keymap),
            Action::ContextPin => return self.price(ContextItem::pin_command),
            Action::ContextClose => return self.price(ContextItem::close_command),
            Action::ContextExclude => return self.price(ContextItem::exclude_command),
            Action::ContextRecall => {
                return match self.item() {
                    Some(item) if item.is_excluded => {
                        self.price(|item| Some(format!("/include {}", item.key)))
                    }
                    Some(item) => open(ViewKind::Item(item.key.clone())),
                    None => ViewOutcome::Stay,
                };
            }
            Action::ContextFold => return open(ViewKind::Price("/fold".to_owned())),
            Action::ContextWhy => return open(ViewKind::Why),
            Action::ContextBytes => return open(ViewKind::RequestBytes),
            Action::ContextDiff => return open(ViewKind::RequestDiff),
            Action::ContextLayout => return open(ViewKind::Layout),
            Action::ViewBack => return ViewOutcome::Close,
            Action::ViewDown => self.step(1, columns, keymap),
            Action::ViewUp => self.step(-1, columns, keymap),
            Action::ViewPageDown | Action::ViewMark => self.step(page, columns, keymap),
            Action::ViewPageUp => self.step(-page, columns, keymap),
            Action::ViewTop => self.chosen = 0,
            Action::ViewBottom => self.step(10_000, columns, keymap),
            _ => {}
        }
        ViewOutcome::Stay
    }

    fn draw(&mut self, model: &Model) -> ViewFrame {
        let view = self.lines(self.chosen, model);
        let height = usize::from(model.size.rows);
        ViewFrame { cursor: cursor_row(&view, height), rows: view.fit(height) }
    }

    fn take_data(&mut self, data: ViewData) {
        if let ViewData::Context(data) = data {
            let key = self.item().map(|item| item.key.clone());
            self.data = *data;
            let (_, places) = self.rows();
            let is_same = |place: &Place| match place {
                Place::Item(layer, at) => {
                    self.data.items.get(*layer).and_then(|items| items.get(*at)).map(|item| &item.key)
                        == key.as_ref()
                }
                Place::Layer(_) => false,
            };
            let same = key.as_ref().and_then(|_| places.iter().position(is_same));
            self.chosen = same.unwrap_or(self.chosen).min(places.len().saturating_sub(1));
        }
    }
}

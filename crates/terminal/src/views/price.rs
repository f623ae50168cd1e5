//! The price before an act: now, at the next free fold, or not at all.

use std::time::Duration;

use super::{View, ViewData, ViewFrame, ViewKind, ViewOutcome, command};
use crate::blocks::pickers::ActPrice;
use crate::input::InputEvent;
use crate::keymap::{Action, KeyLayer, KeyMeaning};
use crate::model::Model;

/// A price, and what each choice does.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceData {
    /// The question and its choices.
    pub price: ActPrice,
    /// For each choice the command that it runs; none leaves everything as it is.
    pub commands: Vec<Option<String>>,
}

/// The question.
pub(super) struct PriceView {
    kind: ViewKind,
    data: PriceData,
}

impl PriceView {
    pub(super) fn new(kind: ViewKind, data: PriceData) -> Self {
        PriceView { kind, data }
    }

    fn choose(&self, index: usize) -> ViewOutcome {
        match self.data.commands.get(index) {
            Some(Some(text)) => ViewOutcome::CloseWith(command(text)),
            Some(None) => ViewOutcome::Close,
            None => ViewOutcome::Stay,
        }
    }

    /// Takes the choice with this key.
    fn choose_key(&self, key: &str) -> ViewOutcome {
        let found = self.data.price.choices.iter().position(|choice| choice.key == key);
        found.map_or(ViewOutcome::Stay, |index| self.choose(index))
    }

    fn step(&mut self, step: isize) {
        let last = self.data.price.choices.len().saturating_sub(1);
        self.data.price.chosen = self.data.price.chosen.saturating_add_signed(step).min(last);
    }
}

impl View for PriceView {
    fn kind(&self) -> ViewKind {
        self.kind.clone()
    }

    fn take_input(&mut self, input: &InputEvent, _at: Duration, model: &Model) -> ViewOutcome {
        let InputEvent::Key(key) = input else { return ViewOutcome::Stay };
        let layers = [KeyLayer::Price, KeyLayer::View];
        let KeyMeaning::Action(action) = model.keymap.meaning(&layers, None, *key) else {
            return ViewOutcome::Stay;
        };
        match action {
            Action::PriceNow => return self.choose_key(&model.keymap.hint(Action::PriceNow)),
            Action::PriceFold => return self.choose_key(&model.keymap.hint(Action::PriceFold)),
            Action::PriceTake => return self.choose(self.data.price.chosen),
            Action::ViewBack => return ViewOutcome::Close,
            Action::ViewDown => self.step(1),
            Action::ViewUp => self.step(-1),
            _ => {}
        }
        ViewOutcome::Stay
    }

    fn draw(&mut self, model: &Model) -> ViewFrame {
        let mut rows = self.data.price.lines(usize::from(model.size.columns), &model.theme);
        rows.truncate(usize::from(model.size.rows));
        ViewFrame { rows, cursor: None }
    }

    fn take_data(&mut self, data: ViewData) {
        if let ViewData::Price(data) = data {
            let chosen = self.data.price.chosen.min(data.price.choices.len().saturating_sub(1));
            self.data = data;
            self.data.price.chosen = chosen;
        }
    }
}

//! The picker of model and effort.

use super::chooser::PickList;
use super::{ViewData, ViewKind, ViewOutcome, command};
use crate::blocks::ViewLines;
use crate::blocks::pickers::{Filter, ModelPicker, ModelRow, ModelState};
use crate::keymap::{Action, Keymap};
use crate::model::Effect;
use crate::theme::Theme;

/// The models and efforts to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelData {
    /// Each model with the name that `/model` takes.
    pub models: Vec<(String, ModelRow)>,
    /// The efforts as `/thinking` takes them.
    pub efforts: Vec<String>,
    /// The one in use.
    pub effort: usize,
    /// Whether changing the effort costs nothing.
    pub effort_keeps_cache: bool,
}

/// The picker.
pub(super) struct ModelList {
    data: ModelData,
    /// The effort that is marked.
    effort: usize,
}

impl ModelList {
    pub(super) fn new(data: ModelData) -> Self {
        ModelList { effort: data.effort, data }
    }

    fn step_effort(&mut self, step: isize) {
        let last = self.data.efforts.len().saturating_sub(1);
        self.effort = self.effort.saturating_add_signed(step).min(last);
    }
}

impl PickList for ModelList {
    fn names(&self) -> Vec<String> {
        self.data.models.iter().map(|(name, row)| format!("{name} {}", row.provider)).collect()
    }

    fn first(&self) -> usize {
        let is_current = |(_, row): &(String, ModelRow)| matches!(row.state, ModelState::Current(_));
        self.data.models.iter().position(is_current).unwrap_or(0)
    }

    fn title(&self) -> String {
        "model".to_owned()
    }

    fn lines(
        &self,
        shown: &[usize],
        chosen: usize,
        filter: Filter,
        (columns, theme): (usize, &Theme),
    ) -> ViewLines {
        let models = shown.iter().filter_map(|index| self.data.models.get(*index));
        let picker = ModelPicker {
            filter,
            models: models.map(|(_, row)| row.clone()).collect(),
            chosen,
            efforts: self.data.efforts.clone(),
            effort: self.effort,
            effort_keeps_cache: self.data.effort_keeps_cache,
        };
        picker.lines(columns, theme)
    }

    fn act(&mut self, action: Action, chosen: Option<usize>, _keymap: &Keymap) -> ViewOutcome {
        match action {
            Action::PickLeft => self.step_effort(-1),
            Action::PickRight => self.step_effort(1),
            Action::PickTake => {
                let Some((name, row)) = chosen.and_then(|index| self.data.models.get(index)) else {
                    return ViewOutcome::Stay;
                };
                let effort = self.data.efforts.get(self.effort).filter(|_| self.effort != self.data.effort);
                return match (&row.state, effort) {
                    (ModelState::NoKey(_), _) => ViewOutcome::Stay,
                    (ModelState::Current(_), None) => ViewOutcome::Close,
                    (ModelState::Current(_), Some(effort)) => {
                        ViewOutcome::CloseWith(Effect::Open(ViewKind::Price(format!("/thinking {effort}"))))
                    }
                    // The effort is a part of the same choice: it changes with the model.
                    (ModelState::Switch { .. }, Some(effort)) => ViewOutcome::CloseWith(Effect::Open(
                        ViewKind::Price(format!("/model {name} {effort}")),
                    )),
                    (ModelState::Switch { .. }, None) => {
                        ViewOutcome::CloseWith(Effect::Open(ViewKind::Price(format!("/model {name}"))))
                    }
                };
            }
            _ => {}
        }
        ViewOutcome::Stay
    }

    fn keys(&self, keymap: &Keymap) -> Vec<(String, String)> {
        let efforts = format!("{}{}", keymap.hint(Action::PickLeft), keymap.hint(Action::PickRight));
        vec![(keymap.hint(Action::PickTake), "switch".to_owned()), (efforts, "effort".to_owned())]
    }

    fn take_data(&mut self, data: ViewData) -> bool {
        let ViewData::Models(data) = data else { return false };
        self.data = data;
        true
    }
}

/// A list of names of which one, or each by itself, is taken: layouts, agents, tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ChoiceData {
    /// What is chosen: `layout`.
    pub title: String,
    /// Each choice with the command that takes it.
    pub choices: Vec<(crate::blocks::pickers::Choice, String)>,
    /// Whether the list stays open for another one: tools are switched one by one.
    pub stays_open: bool,
}

/// The picker of a [`ChoiceData`].
pub(super) struct ChoiceList(pub(super) ChoiceData);

impl PickList for ChoiceList {
    fn names(&self) -> Vec<String> {
        self.0.choices.iter().map(|(choice, _)| choice.name.clone()).collect()
    }

    fn first(&self) -> usize {
        self.0.choices.iter().position(|(choice, _)| choice.is_current).unwrap_or(0)
    }

    fn title(&self) -> String {
        self.0.title.clone()
    }

    fn lines(
        &self,
        shown: &[usize],
        chosen: usize,
        filter: Filter,
        (columns, theme): (usize, &Theme),
    ) -> ViewLines {
        let choices = shown.iter().filter_map(|index| self.0.choices.get(*index));
        let picker = crate::blocks::pickers::ChoicePicker {
            title: self.0.title.clone(),
            filter,
            choices: choices.map(|(choice, _)| choice.clone()).collect(),
            chosen,
        };
        picker.lines(columns, theme)
    }

    fn act(&mut self, action: Action, chosen: Option<usize>, _keymap: &Keymap) -> ViewOutcome {
        let Some((choice, text)) = chosen.and_then(|index| self.0.choices.get(index)) else {
            return ViewOutcome::Stay;
        };
        match action {
            Action::PickTake if choice.is_current => ViewOutcome::Close,
            Action::PickTake if self.0.stays_open => ViewOutcome::Effect(command_or_price(choice, text)),
            Action::PickTake => ViewOutcome::CloseWith(command_or_price(choice, text)),
            _ => ViewOutcome::Stay,
        }
    }

    fn keys(&self, keymap: &Keymap) -> Vec<(String, String)> {
        let word = if self.0.stays_open { "on or off" } else { "choose" };
        vec![(keymap.hint(Action::PickTake), word.to_owned())]
    }

    fn take_data(&mut self, data: ViewData) -> bool {
        let ViewData::Choices(data) = data else { return false };
        self.0 = data;
        true
    }
}

/// What costs something is priced first; what does not is done.
fn command_or_price(choice: &crate::blocks::pickers::Choice, text: &str) -> Effect {
    match choice.price {
        Some(price) if price > 0.0 => Effect::Open(ViewKind::Price(text.to_owned())),
        _ => command(text),
    }
}

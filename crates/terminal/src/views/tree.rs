//! The tree of a session: the steps, and going back to one.

use std::time::Duration;

use super::{View, ViewData, ViewFrame, ViewKind, ViewOutcome, clicked_entry, command, cursor_row};
use crate::blocks::pickers::{StepBack, TreeStep, TreeView};
use crate::blocks::{ViewLines, key_line};
use crate::input::InputEvent;
use crate::keymap::{Action, KeyLayer, KeyMeaning};
use crate::model::Model;

/// The steps of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeData {
    /// The steps, parents before children.
    pub steps: Vec<TreeItem>,
}

/// A step with what going back to it does.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeItem {
    /// The entry that `/tree` goes back to.
    pub entry: String,
    /// What the tree shows of it.
    pub step: TreeStep,
    /// What going back does; none where the conversation is.
    pub back: Option<StepBack>,
}

/// The tree.
pub(super) struct TreeScreen {
    data: TreeData,
    chosen: usize,
}

impl TreeScreen {
    pub(super) fn new(data: TreeData) -> Self {
        let here = data.steps.iter().position(|item| item.step.is_here).unwrap_or(0);
        TreeScreen { data, chosen: here }
    }

    fn step(&mut self, rows: isize) {
        let last = self.data.steps.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(rows).min(last);
    }

    fn lines(&self, chosen: usize, model: &Model) -> ViewLines {
        let columns = usize::from(model.size.columns);
        let tree = TreeView {
            steps: self.data.steps.iter().map(|item| item.step.clone()).collect(),
            chosen,
            step_back: self.data.steps.get(chosen).and_then(|item| item.back.clone()),
        };
        let mut view = tree.lines(columns, &model.theme);
        let key = |action, word: &str| (model.keymap.hint(action), word.to_owned());
        let keys = [
            key(Action::TreeGo, "go back"),
            key(Action::TreeKeepFiles, "keep the files"),
            key(Action::TreeSummary, "with a summary"),
            key(Action::ViewBack, "back"),
        ];
        view.foot.push(key_line(&keys, columns, &model.theme));
        view
    }

    /// Goes back to the chosen step, with what follows its entry in the command.
    fn go(&self, how: &str) -> ViewOutcome {
        match self.data.steps.get(self.chosen) {
            Some(item) if item.back.is_some() => {
                let text = format!("/tree {} {how}", item.entry);
                ViewOutcome::CloseWith(command(text.trim_end()))
            }
            _ => ViewOutcome::Stay,
        }
    }
}

impl View for TreeScreen {
    fn kind(&self) -> ViewKind {
        ViewKind::Tree
    }

    fn take_input(&mut self, input: &InputEvent, _at: Duration, model: &Model) -> ViewOutcome {
        let key = match input {
            InputEvent::Wheel(rows) => {
                self.step(isize::from(*rows));
                return ViewOutcome::Stay;
            }
            // Going back changes files: that takes a key.
            InputEvent::Click { row, .. } => {
                let place = (self.data.steps.len(), self.chosen);
                let clicked = clicked_entry(*row, model.size.rows, place, |chosen| self.lines(chosen, model));
                self.chosen = clicked.unwrap_or(self.chosen);
                return ViewOutcome::Stay;
            }
            InputEvent::Key(key) => *key,
            _ => return ViewOutcome::Stay,
        };
        let layers = [KeyLayer::Tree, KeyLayer::View];
        let KeyMeaning::Action(action) = model.keymap.meaning(&layers, None, key) else {
            return ViewOutcome::Stay;
        };
        let page = isize::try_from(model.size.rows.saturating_sub(4).max(1)).unwrap_or(1);
        match action {
            Action::TreeGo => return self.go("files"),
            Action::TreeKeepFiles => return self.go(""),
            Action::TreeSummary => return self.go("summary files"),
            Action::ViewBack => return ViewOutcome::Close,
            Action::ViewDown => self.step(1),
            Action::ViewUp => self.step(-1),
            Action::ViewPageDown | Action::ViewMark => self.step(page),
            Action::ViewPageUp => self.step(-page),
            Action::ViewTop => self.chosen = 0,
            Action::ViewBottom => self.step(isize::MAX),
            _ => {}
        }
        ViewOutcome::Stay
    }

    fn draw(&mut self, model: &Model) -> ViewFrame {
        let (view, height) = (self.lines(self.chosen, model), usize::from(model.size.rows));
        ViewFrame { cursor: cursor_row(&view, height), rows: view.fit(height) }
    }

    fn take_data(&mut self, data: ViewData) {
        if let ViewData::Tree(data) = data {
            let before = self.data.steps.get(self.chosen).map(|item| item.entry.clone());
            let same = data.steps.iter().position(|item| Some(&item.entry) == before.as_ref());
            self.chosen = same.unwrap_or(self.chosen.min(data.steps.len().saturating_sub(1)));
            self.data = data;
        }
    }
}

//! The picker of sessions.

use ratatui::text::{Line, Span};

use super::chooser::PickList;
use super::{ViewData, ViewKind, ViewOutcome, command};
use crate::blocks::ViewLines;
use crate::blocks::pickers::{Filter, SessionPicker, SessionRow};
use crate::keymap::{Action, Keymap};
use crate::model::Effect;
use crate::text::{escape, truncate};
use crate::theme::{Role, Theme};

/// The sessions to choose from.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionData {
    /// Sessions of all folders are listed.
    pub is_everywhere: bool,
    /// The sessions, the newest first.
    pub sessions: Vec<SessionItem>,
}

/// A session with what commands call it.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionItem {
    /// Its id.
    pub id: String,
    /// The folder that it works in, if it is another one.
    pub folder: Option<String>,
    /// What the list shows of it.
    pub row: SessionRow,
}

/// What the last line asks.
enum SessionPrompt {
    None,
    /// A new name is typed for a session.
    Name {
        id: String,
        text: String,
    },
    /// A second press deletes it.
    Delete {
        id: String,
        title: String,
    },
    /// It belongs to another folder.
    Elsewhere {
        id: String,
        folder: String,
    },
}

/// The picker.
pub(super) struct SessionList {
    data: SessionData,
    prompt: SessionPrompt,
}

impl SessionList {
    pub(super) fn new(data: SessionData) -> Self {
        SessionList { data, prompt: SessionPrompt::None }
    }

    fn prompt_line(&self, columns: usize, theme: &Theme) -> Option<Line<'static>> {
        let (text, role) = match &self.prompt {
            SessionPrompt::None => return None,
            SessionPrompt::Name { text, .. } => (format!(" name: {}", escape(text)), Role::Text),
            SessionPrompt::Delete { title, .. } => {
                (format!(" again deletes it for good: {}", escape(title)), Role::Danger)
            }
            SessionPrompt::Elsewhere { id, folder } => {
                let text =
                    format!(" in another folder: cd {} && hardpan --resume {}", escape(folder), escape(id));
                (text, Role::Care)
            }
        };
        let text = truncate(&text, columns, theme.glyphs.ellipsis);
        Some(Line::from(Span::styled(text, theme.style(role))))
    }
}

impl PickList for SessionList {
    fn names(&self) -> Vec<String> {
        let name = |item: &SessionItem| {
            let row = &item.row;
            format!("{} {} {}", row.name.as_deref().unwrap_or_default(), row.prompt, row.branch)
        };
        self.data.sessions.iter().map(name).collect()
    }

    fn title(&self) -> String {
        "sessions".to_owned()
    }

    fn lines(
        &self,
        shown: &[usize],
        chosen: usize,
        filter: Filter,
        (columns, theme): (usize, &Theme),
    ) -> ViewLines {
        let sessions = shown.iter().filter_map(|index| self.data.sessions.get(*index));
        let picker = SessionPicker {
            filter,
            is_everywhere: self.data.is_everywhere,
            sessions: sessions.map(|item| item.row.clone()).collect(),
            chosen,
        };
        let mut view = picker.lines(columns, theme);
        view.foot.extend(self.prompt_line(columns, theme));
        view
    }

    fn act(&mut self, action: Action, chosen: Option<usize>, _keymap: &Keymap) -> ViewOutcome {
        if action == Action::PickOther {
            let kind = if self.data.is_everywhere { ViewKind::Sessions } else { ViewKind::AllSessions };
            return ViewOutcome::CloseWith(Effect::Open(kind));
        }
        let Some(SessionItem { id, folder, row }) = chosen.and_then(|index| self.data.sessions.get(index))
        else {
            return ViewOutcome::Stay;
        };
        let (id, title) = (id.clone(), row.name.clone().unwrap_or_else(|| row.prompt.clone()));
        let before = std::mem::replace(&mut self.prompt, SessionPrompt::None);
        match (action, before) {
            (Action::PickTake, _) => match folder {
                Some(folder) => self.prompt = SessionPrompt::Elsewhere { id, folder: folder.clone() },
                None => return ViewOutcome::CloseWith(command(&format!("/resume {id}"))),
            },
            (Action::PickRename, _) => {
                let text = row.name.clone().unwrap_or_default();
                self.prompt = SessionPrompt::Name { id, text };
            }
            (Action::PickDelete, SessionPrompt::Delete { id: asked, .. }) if asked == id => {
                return ViewOutcome::Effect(command(&format!("/sessions delete {id}")));
            }
            (Action::PickDelete, _) => self.prompt = SessionPrompt::Delete { id, title },
            _ => {}
        }
        ViewOutcome::Stay
    }

    fn keys(&self, keymap: &Keymap) -> Vec<(String, String)> {
        let key = |action, word: &str| (keymap.hint(action), word.to_owned());
        vec![
            key(Action::PickTake, "go on"),
            key(Action::PickOther, if self.data.is_everywhere { "this folder" } else { "all folders" }),
            key(Action::PickRename, "name"),
            key(Action::PickDelete, "delete"),
        ]
    }

    fn type_text(&mut self, typed: Option<char>, action: Option<Action>) -> Option<ViewOutcome> {
        if !matches!(self.prompt, SessionPrompt::Name { .. }) {
            // A second press counts only right after the first.
            if action != Some(Action::PickDelete) {
                self.prompt = SessionPrompt::None;
            }
            return None;
        }
        let SessionPrompt::Name { id, text } = &mut self.prompt else { return None };
        match action {
            Some(Action::PickErase) => drop(text.pop()),
            Some(Action::PickClear) => text.clear(),
            Some(Action::PickBack) => self.prompt = SessionPrompt::None,
            Some(Action::PickTake) => {
                let name = command(&format!("/sessions name {id} {}", text.trim()));
                self.prompt = SessionPrompt::None;
                return Some(ViewOutcome::Effect(name));
            }
            _ => text.extend(typed),
        }
        Some(ViewOutcome::Stay)
    }

    fn take_data(&mut self, data: ViewData) -> bool {
        let ViewData::Sessions(data) = data else { return false };
        self.data = data;
        true
    }
}

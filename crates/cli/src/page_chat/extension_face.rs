//! [`ExtensionFace`]: what extensions show and take in the terminal: words, widgets, keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_agent::events::{FaceChange, FaceChanged, WidgetPlace};
use hardpan_app::ConversationApp;
use hardpan_terminal::keymap::{KeyPress, Keymap};
use hardpan_terminal::model::{AgentUpdate, Event, ExtensionArea};

/// Who shows something, and the extension's own name for it.
type PartKey = (Arc<str>, String);

/// What extensions show, by who shows it.
#[derive(Default)]
pub struct ExtensionFace {
    statuses: BTreeMap<PartKey, String>,
    widgets: BTreeMap<PartKey, (WidgetPlace, Vec<String>)>,
    working: Option<(Arc<str>, String)>,
}

impl ExtensionFace {
    /// What the face is told about a change.
    pub fn take(&mut self, FaceChanged { owner, change }: FaceChanged, app: &ConversationApp) -> Vec<Event> {
        match change {
            FaceChange::Status { key, text: Some(text) } => _ = self.statuses.insert((owner, key), text),
            FaceChange::Status { key, text: None } => _ = self.statuses.remove(&(owner, key)),
            FaceChange::Widget { key, lines: Some(lines), place } => {
                self.widgets.insert((owner, key), (place, lines));
            }
            FaceChange::Widget { key, lines: None, .. } => _ = self.widgets.remove(&(owner, key)),
            FaceChange::WorkingMessage { text } => self.working = text.map(|text| (owner, text)),
            FaceChange::Cleared => {
                self.statuses.retain(|(by, _), _| *by != owner);
                self.widgets.retain(|(by, _), _| *by != owner);
                self.working.take_if(|(by, _)| *by == owner);
            }
            FaceChange::Title { text } => return vec![Event::Title(text)],
            FaceChange::EditorText { text, insert: true } => return vec![Event::ExtensionInsert(text)],
            FaceChange::EditorText { text, insert: false } => return vec![Event::SetLine(text)],
            FaceChange::Reloaded => return extension_keys(app),
        }
        vec![Event::Extensions(self.area())]
    }

    fn area(&self) -> ExtensionArea {
        let lines = |wanted: WidgetPlace| {
            let placed = self.widgets.values().filter(move |(place, _)| *place == wanted);
            placed.flat_map(|(_, lines)| lines.clone()).collect()
        };
        ExtensionArea {
            statuses: self.statuses.values().cloned().collect(),
            above: lines(WidgetPlace::AboveEditor),
            below: lines(WidgetPlace::BelowEditor),
            working: self.working.as_ref().map(|(_, text)| text.clone()),
        }
    }
}

/// The keys that extensions take, and what the person should know about those that they cannot have.
pub fn extension_keys(app: &ConversationApp) -> Vec<Event> {
    let keymap = Keymap::new(&app.settings.config.keys).unwrap_or_default();
    let (mut keys, mut events) = (BTreeMap::new(), Vec::new());
    for shortcut in app.extensions.shortcuts() {
        let refusal = match KeyPress::parse(&shortcut.key.to_lowercase().replace('+', "-")) {
            None => "no terminal sends it".to_owned(),
            Some(key) if key.typed().is_some() => "it types a character".to_owned(),
            Some(key) => match keymap.action_of(key) {
                Some(action) => format!("it is the key of \"{}\" here", action.name()),
                None => {
                    keys.insert(key, shortcut.key);
                    continue;
                }
            },
        };
        let (extension, key) = (shortcut.extension, shortcut.key);
        let text = format!("extension {extension}: the key {key} has no effect: {refusal}");
        events.push(Event::Agent(AgentUpdate::Note(text)));
    }
    events.push(Event::ExtensionKeys(keys));
    events
}

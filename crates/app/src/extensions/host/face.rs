//! What an extension shows in the face.

use hardpan_agent::events::{FaceChange, Note, NoteKind, NoteLevel, WidgetPlace};
use hardpan_extensions::HostError;
use serde_json::Value;

use super::{ExtensionHost, text};

impl ExtensionHost {
    pub(super) fn change_face(&self, change: FaceChange) -> Result<(), HostError> {
        self.agent()?.change_face(&self.name, change);
        Ok(())
    }

    pub(super) fn change_widget(&self, arguments: &Value) -> Result<(), HostError> {
        let lines = arguments["lines"]
            .as_array()
            .map(|lines| lines.iter().map(|line| line.as_str().unwrap_or_default().to_owned()).collect());
        let place = match arguments["placement"].as_str() {
            Some("belowEditor") => WidgetPlace::BelowEditor,
            _ => WidgetPlace::AboveEditor,
        };
        self.change_face(FaceChange::Widget { key: text(arguments, "key")?.to_owned(), lines, place })
    }

    pub(super) fn notify(&self, arguments: &Value) -> Result<(), HostError> {
        let level = serde_json::from_value(arguments["level"].clone()).unwrap_or(NoteLevel::Info);
        let kind = NoteKind::Extension { extension: self.name.clone(), level };
        self.agent()?.publish_note(&Note { text: text(arguments, "text")?.to_owned(), kind });
        Ok(())
    }
}

//! [`Dialog`] and [`FaceChange`]: what an extension asks of a face, as values. Every face answers or
//! shows them in its own way; one that cannot gives the default.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DialogEnd, DialogStart, Event, FaceChanged};
use crate::Agent;

/// A question to the person, with the kind of answer that it wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Dialog {
    /// Yes or no; without an answer, no.
    Confirm {
        /// What is asked, in a line.
        title: String,
        /// More about it; may have several lines.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// One of several.
    Select {
        /// What is asked, in a line.
        title: String,
        /// What can be chosen.
        choices: Vec<String>,
    },
    /// A line of text.
    Input {
        /// What is asked, in a line.
        title: String,
        /// An example of what can be typed.
        #[serde(skip_serializing_if = "Option::is_none")]
        placeholder: Option<String>,
    },
    /// A text of any length.
    Editor {
        /// What is asked, in a line.
        title: String,
        /// The text to begin with.
        text: String,
    },
}

/// The person's answer to a [`Dialog`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogAnswer {
    /// To [`Dialog::Confirm`].
    Confirmed(bool),
    /// To the others: the choice, the line, the text.
    Text(String),
}

/// Where a widget stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WidgetPlace {
    /// Above the input line.
    #[default]
    AboveEditor,
    /// Below it.
    BelowEditor,
}

/// Something that an extension shows in a face, beside the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum FaceChange {
    /// A few words for the status line.
    Status {
        /// The extension's own name for them.
        key: String,
        /// The words; null takes them away.
        text: Option<String>,
    },
    /// Lines beside the input line.
    Widget {
        /// The extension's own name for them.
        key: String,
        /// The lines; null takes them away.
        lines: Option<Vec<String>>,
        /// Where they stand.
        place: WidgetPlace,
    },
    /// The title of the window.
    Title {
        /// The title.
        text: String,
    },
    /// What the face says while the agent works.
    WorkingMessage {
        /// The words; null for the face's own.
        text: Option<String>,
    },
    /// The text of the input line.
    EditorText {
        /// The text.
        text: String,
        /// Whether it is put in at the cursor; otherwise it replaces what is there.
        insert: bool,
    },
    /// Everything that the extension shows is taken away.
    Cleared,
    /// Extensions were loaded anew: their commands and keys may be others.
    Reloaded,
}

impl Dialog {
    /// What is asked, in a line.
    pub fn title(&self) -> &str {
        match self {
            Dialog::Confirm { title, .. }
            | Dialog::Select { title, .. }
            | Dialog::Input { title, .. }
            | Dialog::Editor { title, .. } => title,
        }
    }
}

impl Agent {
    /// Tells the faces that somebody is asked something. The answer comes from the face that asks.
    pub fn publish_dialog_start(&self, owner: &Arc<str>, dialog: &Dialog) {
        let event = DialogStart { owner: owner.clone(), dialog: dialog.clone() };
        self.events().publish(&event);
        self.tell_handlers_later(event);
    }

    /// Tells the faces that a question was answered, or is no longer asked.
    pub fn publish_dialog_end(&self, owner: &Arc<str>, answered: bool) {
        let event = DialogEnd { owner: owner.clone(), answered };
        self.events().publish(&event);
        self.tell_handlers_later(event);
    }

    /// Tells handlers without waiting for them: whoever asks a person may be a handler.
    fn tell_handlers_later<E: Event<Reply = ()>>(&self, event: E) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.events().has_handlers::<E>() {
            let agent = self.clone();
            runtime.spawn(async move { agent.events().tell_handlers(&agent, event).await });
        }
    }

    /// Shows something in the faces, beside the conversation.
    pub fn change_face(&self, owner: &Arc<str>, change: FaceChange) {
        self.events().publish(&FaceChanged { owner: owner.clone(), change });
    }
}

//! [`NotificationKind`] and its notifications: what happened that the model should know of.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationKind {
    /// The person said something. The message itself is in the conversation.
    UserMessage,
    /// The conversation was resumed.
    Reload,
    /// The output of a console matched, or its process ended.
    Console,
    /// A timer that the model set is due.
    Timer,
    /// A file was changed by somebody else.
    FileChanged,
    /// The run ended with todos that are not done.
    TodoLeft,
}

impl NotificationKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            NotificationKind::UserMessage => "user message",
            NotificationKind::Reload => "reload",
            NotificationKind::Console => "console",
            NotificationKind::Timer => "timer",
            NotificationKind::FileChanged => "file changed",
            NotificationKind::TodoLeft => "todo left",
        }
    }

    /// Whether it is a reason to go on. What the person says is answered anyway, files change for many
    /// reasons, and todos are told one by one.
    pub(super) fn is_work(self) -> bool {
        matches!(self, NotificationKind::Console | NotificationKind::Timer)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Notification {
    pub number: u32,
    pub at: Timestamp,
    pub kind: NotificationKind,
    pub text: String,
    pub processed: bool,
}

impl Notification {
    pub(super) fn line(&self) -> String {
        format!("{} {}: {}", self.number, self.kind.name(), self.text)
    }
}

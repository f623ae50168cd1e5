//! The session of an agent: switching to another one, its name and labels, and the state that
//! extensions store in it.

use std::path::PathBuf;
use std::sync::Arc;

use hardpan_session::Record;

use crate::agent::{Agent, lock};
use crate::conversation::Conversation;
use crate::error::{AgentError, EntryError};
use crate::events::{SessionFork, SessionSwitch};
use crate::run_status::Activity;
use crate::session_ledger::FlushScope;

/// How the conversation given to [`Agent::switch_session`] relates to the current one. It decides
/// which event is emitted: [`SessionSwitch`] or [`SessionFork`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionSwitchKind {
    /// A new session, or another one that was resumed.
    Other,
    /// A session of its own that starts with a copy of the current branch.
    Fork {
        /// The entry of the old session that the fork continues from; `None` for its end.
        entry: Option<Arc<str>>,
    },
}

impl Agent {
    /// The session's id and the path of its file.
    pub fn session(&self) -> (Arc<str>, PathBuf) {
        let conversation = lock(&self.inner.conversation);
        (conversation.session.clone(), conversation.path().to_owned())
    }

    /// Replaces the conversation once the agent is idle. Queued inputs stay queued.
    pub async fn switch_session(&self, conversation: Conversation, how: SessionSwitchKind) {
        let _alone = self.begin(Activity::SwitchingSession).await;
        conversation.restore_tool_switches(self.tools());
        let to = conversation.session.clone();
        let previous = {
            let mut current = lock(&self.inner.conversation);
            current.store_run_records(FlushScope::Session, self.now());
            std::mem::replace(&mut *current, conversation)
        };
        let from = previous.session.clone();
        // Dropping it waits until its file is written. A panic has been reported where it happened.
        let _ = tokio::task::spawn_blocking(move || drop(previous)).await;
        self.note_declared_tools();
        *lock(&self.inner.last_request) = None;
        *lock(&self.inner.request_before) = None;
        lock(&self.inner.selection).client = Arc::default();
        match how {
            SessionSwitchKind::Other => self.events().emit(self, SessionSwitch { from, to }).await,
            SessionSwitchKind::Fork { entry } => {
                self.events().emit(self, SessionFork { from, entry, to }).await;
            }
        }
    }

    /// Stores a name for the session, which session lists show.
    pub async fn rename_session(&self, name: &str) -> Result<(), AgentError> {
        let now = self.now();
        let saved = lock(&self.inner.conversation).append_record(Record::Name { name: name.into() }, now);
        Ok(saved.await?)
    }

    /// Labels an entry of the session; `None` removes its label.
    pub async fn label_entry(&self, entry: &str, label: Option<&str>) -> Result<(), AgentError> {
        let now = self.now();
        let saved = {
            let mut conversation = lock(&self.inner.conversation);
            if !conversation.has_entry(entry) {
                return Err(EntryError::Unknown { entry: entry.to_owned() }.into());
            }
            let record = Record::Label { target: entry.into(), label: label.map(Into::into) };
            conversation.append_record(record, now)
        };
        Ok(saved.await?)
    }

    /// What the conversation's branch had stored under `custom_type` when it was opened or gone back
    /// to.
    pub fn extension_state(&self, custom_type: &str) -> Option<serde_json::Value> {
        lock(&self.inner.conversation).custom.get(custom_type).cloned()
    }

    /// Stores an extension's own state in the session file. It is never sent to a model; the last
    /// value per `custom_type` is back in [`Conversation::custom`] after a resume.
    pub async fn store_extension_state(
        &self,
        custom_type: &str,
        data: serde_json::Value,
    ) -> Result<(), AgentError> {
        let now = self.now();
        let record = Record::Custom { custom_type: custom_type.into(), data };
        let saved = lock(&self.inner.conversation).append_record(record, now);
        Ok(saved.await?)
    }
}

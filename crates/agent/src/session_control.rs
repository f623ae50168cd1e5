//! The session of an agent: switching to another one, its name and labels, and the state that
//! extensions store in it.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use hardpan_session::Record;

use crate::agent::{Agent, lock};
use crate::conversation::Conversation;
use crate::error::{AgentError, EntryError};
use crate::events::{
    BeforeSwitchReply, Event, LeaveReason, SessionBeforeFork, SessionBeforeSwitch, SessionFork, SessionLeave,
    SessionRenamed, SessionSwitch, SwitchReason,
};
use crate::run_status::Activity;
use crate::session_ledger::FlushScope;

/// How the conversation given to [`Agent::switch_session`] relates to the current one. It decides
/// which event is emitted: [`SessionSwitch`] or [`SessionFork`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionSwitchKind {
    /// A new session.
    New,
    /// Another one, which is resumed.
    Resume,
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
        let reason = match how {
            SessionSwitchKind::New => LeaveReason::New,
            SessionSwitchKind::Resume => LeaveReason::Resume,
            SessionSwitchKind::Fork { .. } => LeaveReason::Fork,
        };
        let target_file = conversation.path().to_owned();
        self.events().tell_handlers(self, SessionLeave { reason, target_file }).await;
        let previous = {
            let mut current = lock(&self.inner.conversation);
            current.store_run_records(FlushScope::Session, self.now());
            std::mem::replace(&mut *current, conversation)
        };
        let (from, from_file) = (previous.session.clone(), previous.path().to_owned());
        // Dropping it waits until its file is written. A panic has been reported where it happened.
        let _ = tokio::task::spawn_blocking(move || drop(previous)).await;
        self.note_declared_tools();
        self.forget_listed_skills();
        *lock(&self.inner.last_request) = None;
        *lock(&self.inner.request_before) = None;
        lock(&self.inner.selection).client = Arc::default();
        let reason = match how {
            SessionSwitchKind::New => SwitchReason::New,
            SessionSwitchKind::Resume => SwitchReason::Resume,
            SessionSwitchKind::Fork { entry } => {
                return self.events().emit(self, SessionFork { from, entry, to, from_file }).await;
            }
        };
        self.events().emit(self, SessionSwitch { from, to, reason, from_file }).await;
    }

    /// Asks the handlers whether the agent may leave its session; the error has their reason against
    /// it. Call it before [`Agent::switch_session`], with the file of a session that is resumed.
    pub async fn ask_before_switch(
        &self,
        reason: SwitchReason,
        target_file: Option<PathBuf>,
    ) -> Result<(), AgentError> {
        self.ask_whether(SessionBeforeSwitch { reason, target_file }).await
    }

    /// Asks the handlers whether the conversation may be forked from `entry`, or from its end.
    pub async fn ask_before_fork(&self, entry: Option<&str>) -> Result<(), AgentError> {
        self.ask_whether(SessionBeforeFork { entry: entry.map(Into::into) }).await
    }

    async fn ask_whether(&self, event: impl Event<Reply = BeforeSwitchReply>) -> Result<(), AgentError> {
        let mut cancelled = None;
        let (_, faults) = self
            .events()
            .ask_handlers(self, event, |_, reply| match reply {
                BeforeSwitchReply::Continue => ControlFlow::Continue(()),
                BeforeSwitchReply::Cancel { reason } => {
                    cancelled = Some(reason);
                    ControlFlow::Break(())
                }
            })
            .await;
        self.events().report_faults(&faults);
        cancelled.map_or(Ok(()), |reason| Err(AgentError::Cancelled { reason }))
    }

    /// Stores a name for the session, which session lists show.
    pub async fn rename_session(&self, name: &str) -> Result<(), AgentError> {
        let now = self.now();
        let saved = lock(&self.inner.conversation).append_record(Record::Name { name: name.into() }, now);
        saved.await?;
        // Nobody waits for the handlers: one of them may be what renames the session.
        if self.events().has_handlers::<SessionRenamed>() {
            let (agent, event) = (self.clone(), SessionRenamed { name: name.to_owned() });
            tokio::spawn(async move { agent.events().tell_handlers(&agent, event).await });
        }
        Ok(())
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

    /// Stores which branch of git is checked out, if it is another one than before.
    pub async fn record_git_branch(&self, branch: &str) -> Result<(), AgentError> {
        let now = self.now();
        let saved = lock(&self.inner.conversation).set_git_branch(branch, now);
        match saved {
            Some(saved) => Ok(saved.await?),
            None => Ok(()),
        }
    }

    /// What the conversation's branch has stored under `custom_type`.
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
        let saved = {
            let mut conversation = lock(&self.inner.conversation);
            conversation.custom.insert(custom_type.into(), data.clone());
            conversation.append_record(Record::Custom { custom_type: custom_type.into(), data }, now)
        };
        Ok(saved.await?)
    }
}

//! Continuing from an earlier entry of the same session. Nothing is lost: the branch that is left
//! stays in the file.

use hardpan_context::fill_template;
use hardpan_prompt::{MessageBody, Text};
use hardpan_session::{Session, SessionError};

use crate::agent::{Agent, lock};
use crate::compact::SummaryForm;
use crate::conversation::ConversationError;
use crate::error::{AgentError, EntryError};
use crate::events::SessionTree;
use crate::run::unless_aborted;
use crate::run_status::Activity;

/// What the new branch keeps from the branch that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchExit {
    /// Nothing: the new branch starts at the entry as it is.
    WithoutSummary,
    /// A summary of it, which the model writes and the new branch begins with.
    WithSummary,
}

impl Agent {
    /// Continues the conversation from `entry`. With [`BranchExit::WithSummary`] this sends one
    /// request to the model first.
    pub async fn go_to_entry(&self, entry: &str, exit: BranchExit) -> Result<(), AgentError> {
        let mut run_state = self.try_begin(Activity::ChangingBranch)?;
        let token = self.new_abort_token();
        let from = lock(&self.inner.conversation).leaf().cloned();
        let messages = self.messages();
        let summary = match exit {
            BranchExit::WithSummary if !messages.is_empty() => {
                // Checked before paying for the summary.
                let session = self.read_stored_session().await.map_err(EntryError::from)?;
                session.path_to(Some(entry)).map_err(EntryError::from)?;
                let phrase = &self.inner.setup.texts.phrases.agent.branch_request;
                let request = fill_template(phrase, &[("from", entry)]);
                let all = messages.len();
                let asking = self.request_summary(
                    &mut run_state,
                    &messages,
                    all,
                    &request,
                    "branch_summary",
                    SummaryForm::OnPrefix,
                );
                let summary = unless_aborted(&token, asking).await;
                Some(summary.map_err(|_| EntryError::Aborted)?.map_err(EntryError::from)?)
            }
            BranchExit::WithoutSummary | BranchExit::WithSummary => None,
        };
        let session = self.read_stored_session().await.map_err(EntryError::from)?;
        lock(&self.inner.conversation).go_to_entry(&session, entry).map_err(EntryError::from)?;
        *lock(&self.inner.last_request) = None;
        *lock(&self.inner.request_before) = None;
        if let Some(summary) = summary {
            self.add_message(MessageBody::BranchSummary { summary: Text::new(summary) }, None).await?;
        }
        self.events().emit(self, SessionTree { from, to: entry.into() }).await;
        drop(run_state);
        self.flush_shell_messages_if_idle().await
    }

    /// Reads the session file once everything appended so far is in it. The conversation is not
    /// locked meanwhile.
    pub(crate) async fn read_stored_session(&self) -> Result<Session, ConversationError> {
        let (path, flushed) = {
            let conversation = lock(&self.inner.conversation);
            (conversation.path().to_owned(), conversation.flush())
        };
        flushed.await?;
        let name = path.display().to_string();
        let reading = tokio::task::spawn_blocking(move || Session::open(&path));
        let read = reading.await.unwrap_or_else(|error| Err(SessionError::Io { name, error: error.into() }));
        Ok(read?)
    }
}

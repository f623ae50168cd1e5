//! Continuing from an earlier entry of the same session. Nothing is lost: the branch that is left
//! stays in the file.

use hardpan_context::fill_template;
use std::ops::ControlFlow;
use std::sync::Arc;

use hardpan_prompt::{MessageBody, Text};
use hardpan_session::{POSITION_RECORD, Record, Session, SessionError};
use serde_json::json;

use crate::agent::{Agent, lock};
use crate::compact::SummaryForm;
use crate::conversation::ConversationError;
use crate::error::{AgentError, EntryError};
use crate::events::{BeforeTreeReply, SessionBeforeTree, SessionTree};
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
        self.go_to_entry_with(entry, exit, None).await
    }

    /// Does what [`Agent::go_to_entry`] does; `instructions` tell the model what its summary should
    /// focus on.
    pub async fn go_to_entry_with(
        &self,
        entry: &str,
        exit: BranchExit,
        instructions: Option<String>,
    ) -> Result<(), AgentError> {
        let mut run_state = self.try_begin(Activity::ChangingBranch)?;
        let token = self.new_abort_token();
        let from = lock(&self.inner.conversation).leaf().cloned();
        let messages = self.messages();
        let BeforeTreeReply { cancel, summary: given, instructions, label } =
            self.ask_before_tree(entry, exit, instructions).await?;
        if let Some(reason) = cancel {
            return Err(AgentError::Cancelled { reason });
        }
        let from_handler = given.is_some();
        let summary = match exit {
            BranchExit::WithSummary if given.is_some() => given,
            BranchExit::WithSummary if !messages.is_empty() => {
                // Checked before paying for the summary.
                let session = self.read_stored_session().await.map_err(EntryError::from)?;
                session.path_to(Some(entry)).map_err(EntryError::from)?;
                let phrase = &self.inner.setup.texts.phrases.agent.branch_request;
                let mut request = fill_template(phrase, &[("from", entry)]);
                if let Some(focus) = instructions.as_deref().map(str::trim).filter(|focus| !focus.is_empty())
                {
                    let phrase = &self.inner.setup.texts.phrases.agent.summary_instructions;
                    request.push_str("\n\n");
                    request.push_str(&fill_template(phrase, &[("instructions", focus)]));
                }
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
        let mut summary_entry = None;
        if let Some(summary) = summary {
            let body = MessageBody::BranchSummary { summary: Text::new(summary) };
            summary_entry = Some(self.add_message(body, None, None).await?);
        } else {
            self.store_position(from.as_deref()).await?;
        }
        if let Some(label) = label {
            let target = summary_entry.as_ref().map_or(entry, |summary| &*summary.0);
            self.label_entry(target, Some(&label)).await?;
        }
        let from_handler = from_handler && summary_entry.is_some();
        let event = SessionTree { from, to: entry.into(), summary: summary_entry, from_handler };
        self.events().emit(self, event).await;
        drop(run_state);
        self.flush_shell_messages_if_idle().await
    }

    /// Asks the handlers about a change of branches. The last answer to each question counts, and the
    /// first that cancels it ends the asking.
    async fn ask_before_tree(
        &self,
        target: &str,
        exit: BranchExit,
        instructions: Option<String>,
    ) -> Result<BeforeTreeReply, AgentError> {
        let mut answer = BeforeTreeReply { instructions: instructions.clone(), ..BeforeTreeReply::default() };
        if !self.events().has_handlers::<SessionBeforeTree>() {
            return Ok(answer);
        }
        let (session, old_leaf) = self.stored_session().await?;
        let ids = |leaf: &str| -> Result<Vec<Arc<str>>, SessionError> {
            Ok(session.path_to(Some(leaf))?.iter().map(|entry| entry.id.clone()).collect())
        };
        let new_path = ids(target).map_err(EntryError::from)?;
        let old_path =
            old_leaf.as_deref().map(&ids).transpose().map_err(EntryError::from)?.unwrap_or_default();
        let shared = old_path.iter().zip(&new_path).take_while(|(old, new)| old == new).count();
        let left = &old_path[shared..];
        let entries = session.entries.iter().filter(|entry| left.contains(&entry.id)).cloned().collect();
        let event = SessionBeforeTree {
            target: target.into(),
            common_ancestor: shared.checked_sub(1).and_then(|last| old_path.get(last)).cloned(),
            old_leaf,
            wants_summary: exit == BranchExit::WithSummary,
            instructions,
            entries: Arc::new(entries),
        };
        let asking = self.events().ask_handlers(self, event, |_, reply| {
            let BeforeTreeReply { cancel, summary, instructions, label } = reply;
            answer.summary = summary.or(answer.summary.take());
            answer.instructions = instructions.or(answer.instructions.take());
            answer.label = label.or(answer.label.take());
            answer.cancel = cancel;
            if answer.cancel.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let (_, faults) = asking.await;
        self.events().report_faults(&faults);
        Ok(answer)
    }

    /// The session as its file has it, once everything appended so far is in it, and the entry that the
    /// conversation continues from.
    pub async fn stored_session(&self) -> Result<(Session, Option<Arc<str>>), AgentError> {
        let leaf = lock(&self.inner.conversation).leaf().cloned();
        Ok((self.read_stored_session().await.map_err(EntryError::from)?, leaf))
    }

    /// Stores that the conversation goes on from here: whoever resumes it comes to the same place.
    async fn store_position(&self, from: Option<&str>) -> Result<(), AgentError> {
        let record = Record::Custom { custom_type: POSITION_RECORD.into(), data: json!({"from": from}) };
        let saved = {
            let mut conversation = lock(&self.inner.conversation);
            if conversation.leaf().map(|leaf| &**leaf) == from {
                return Ok(());
            }
            conversation.append_record(record, self.now())
        };
        Ok(saved.await?)
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

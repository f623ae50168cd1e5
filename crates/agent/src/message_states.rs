//! Summarising and deleting messages: requests show another form of them, or nothing. The session file
//! keeps everything.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use hardpan_prompt::{MessageId, MessageState, Text};
use hardpan_session::{PendingSave, Record};
use jiff::Timestamp;

use crate::agent::{Agent, lock};
use crate::conversation::Conversation;
use crate::error::{AgentError, EntryError};
use crate::events::MessageStateChanged;
use crate::stored_knowledge::rebuild_knowledge;

/// How often the session file is read while others append to it. After that, files shown by messages that
/// were restored count as not known, which costs tokens and is never wrong.
const MAX_READS: usize = 16;

/// A stretch of the conversation, by the ids of its first and last message.
#[derive(Clone, Copy, Debug)]
pub struct MessageRange<'a> {
    /// The first message.
    pub first: &'a str,
    /// The last message; the first one if `None`.
    pub last: Option<&'a str>,
}

impl Agent {
    /// Has requests show a summary in place of messages, from the next one on.
    pub async fn summarise_messages(
        &self,
        range: MessageRange<'_>,
        summary: &str,
    ) -> Result<usize, AgentError> {
        if summary.trim().is_empty() {
            return Err(EntryError::NoSummary.into());
        }
        self.set_states(range, MessageState::TlDr, Some(Text::new(summary.trim()))).await
    }

    /// Leaves messages out of requests, from the next one on.
    pub async fn delete_messages(&self, range: MessageRange<'_>) -> Result<usize, AgentError> {
        self.set_states(range, MessageState::Deleted, None).await
    }

    /// Has requests show messages as they are again.
    pub async fn restore_messages(&self, range: MessageRange<'_>) -> Result<usize, AgentError> {
        let changed = self.set_states(range, MessageState::Whole, None).await?;
        // What the file told is taken only if nothing was appended since: a panel or a watcher may store
        // a record at any moment, and then the file is read again.
        for _ in 0..MAX_READS {
            let (session, leaf) = self.stored_session().await?;
            let mut conversation = lock(&self.inner.conversation);
            if conversation.leaf() == leaf.as_ref() {
                let path = session.path_to(leaf.as_deref()).map_err(EntryError::from)?;
                conversation.knowledge = rebuild_knowledge(&path);
                break;
            }
        }
        Ok(changed)
    }

    /// Has the next request move messages into a frozen history panel: those up to the turn of `last`, or
    /// all. Returns how many.
    pub fn freeze_messages(&self, last: Option<&str>) -> Result<usize, AgentError> {
        let layout = self.layout();
        if !layout.layout().is_about_panels() {
            return Err(EntryError::NotFrozen { layout }.into());
        }
        let mut conversation = lock(&self.inner.conversation);
        let last = last.map(MessageId::from);
        if let Some(id) =
            last.as_ref().filter(|id| !conversation.messages.iter().any(|known| known.id == **id))
        {
            return Err(EntryError::Unknown { entry: id.to_string() }.into());
        }
        let limits = conversation.memory.current().freeze_limits(&conversation.messages, last.as_ref());
        conversation.freeze = limits;
        Ok(limits.ok_or(EntryError::NothingToFreeze)?.chunk_messages)
    }

    /// Takes a frozen history panel out of requests: its messages are deleted, which restoring them undoes.
    /// False if there is none of this id.
    pub async fn close_history(&self, id: &str) -> Result<bool, AgentError> {
        let range = {
            let conversation = lock(&self.inner.conversation);
            let histories = conversation.memory.current().frozen_histories();
            let found = histories.iter().find(|history| history.id.eq_ignore_ascii_case(id));
            found.and_then(|history| {
                Some((history.messages.first()?.clone(), history.messages.last()?.clone()))
            })
        };
        let Some((first, last)) = range else { return Ok(false) };
        self.delete_messages(MessageRange { first: &first.0, last: Some(&last.0) }).await?;
        Ok(true)
    }

    /// The frozen history panels: id and title.
    pub fn histories(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let conversation = lock(&self.inner.conversation);
        let histories = conversation.memory.current().frozen_histories();
        histories.iter().map(|history| (history.id.clone(), history.title.clone())).collect()
    }

    /// Sets the state of messages. In the state `tl_dr` the first of them has the summary, and the
    /// others are deleted. Returns how many there are.
    async fn set_states(
        &self,
        range: MessageRange<'_>,
        state: MessageState,
        tl_dr: Option<Text>,
    ) -> Result<usize, AgentError> {
        let now = self.now();
        let (messages, saved) = {
            let mut conversation = lock(&self.inner.conversation);
            let positions = conversation.positions(range)?;
            let ids: Vec<MessageId> =
                conversation.messages[positions.clone()].iter().map(|message| message.id.clone()).collect();
            let saved = positions.clone().map(|at| {
                let is_summary = state == MessageState::TlDr && at != *positions.start();
                let (state, tl_dr) =
                    if is_summary { (MessageState::Deleted, None) } else { (state, tl_dr.clone()) };
                conversation.set_message_state(at, state, tl_dr, now)
            });
            let saved: Vec<PendingSave> = saved.collect();
            conversation.forget_hidden_messages();
            (ids, saved)
        };
        for save in saved {
            save.await?;
        }
        let count = messages.len();
        self.events().emit(self, MessageStateChanged { messages, state }).await;
        Ok(count)
    }
}

impl Conversation {
    /// The positions of a range of messages.
    fn positions(&self, range: MessageRange<'_>) -> Result<RangeInclusive<usize>, EntryError> {
        let position = |id: &str| {
            let found = self.messages.iter().position(|message| &*message.id.0 == id);
            found.ok_or_else(|| EntryError::Unknown { entry: id.to_owned() })
        };
        let first = position(range.first)?;
        let last = range.last.map_or(Ok(first), position)?;
        if last < first {
            let (first, last) = (range.first.to_owned(), range.last.unwrap_or_default().to_owned());
            return Err(EntryError::Backwards { first, last });
        }
        Ok(first..=last)
    }

    fn set_message_state(
        &mut self,
        at: usize,
        state: MessageState,
        tl_dr: Option<Text>,
        now: Timestamp,
    ) -> PendingSave {
        let message = &mut self.messages[at];
        (message.state, message.tl_dr) = (state, tl_dr.clone());
        let target = message.id.0.clone();
        self.append_record(Record::MessageState { target, state, tl_dr }, now)
    }

    /// What is no longer shown is no longer known.
    fn forget_hidden_messages(&mut self) {
        let shown = self.messages.iter().filter(|message| message.state == MessageState::Whole);
        let shown: BTreeSet<&MessageId> = shown.map(|message| &message.id).collect();
        self.knowledge.retain_messages(&shown);
    }
}

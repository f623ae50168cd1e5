//! Recalling stored messages: [`Agent::recall`] for faces, and the tool `recall`, with which the
//! model gets back what a fold took out of requests.

use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use hardpan_context::KeepLevel;
use hardpan_prompt::AgentMessage;
use hardpan_session::{RecallError, StoredContent};
use hardpan_tools::{ArchiveError, ArchivedContent, MessageArchive, Recall, ToolSource};

use crate::agent::{Agent, Inner, lock};
use crate::error::{AgentError, EntryError};

impl Agent {
    /// The exact content of a message on the current branch, also if requests no longer show it.
    pub async fn recall(&self, id: &str) -> Result<StoredContent, AgentError> {
        let (found, leaf) = {
            let conversation = lock(&self.inner.conversation);
            let messages: Vec<&AgentMessage> = conversation.messages.iter().collect();
            (StoredContent::find(&messages, id), conversation.leaf().cloned())
        };
        match (found, leaf) {
            // A compaction may have replaced it: then only the file has it.
            (Err(RecallError::Unknown { .. }), Some(leaf)) => {
                let session = self.read_stored_session().await.map_err(EntryError::from)?;
                Ok(session.stored_content(Some(&leaf), id)?)
            }
            (found, _) => Ok(found?),
        }
    }

    /// Registers the tool `recall` if requests may fold: before the first of them, since a changed
    /// list of tools loses the cache. Without other tools there are no results to recall.
    pub(crate) fn register_recall(&self) {
        let folds = self.layout().layout().folds() && self.keep() != KeepLevel::All;
        if !folds || self.tools().list().is_empty() {
            return;
        }
        let archive = Arc::new(ConversationArchive(Arc::downgrade(&self.inner)));
        let tool = Arc::new(Recall::new(archive));
        if let Err(error) = self.tools().register(&ToolSource::built_in(), tool) {
            tracing::warn!(%error, "the model cannot recall what folds take out");
        }
    }
}

/// The agent's conversation, as the tool reads it. The agent owns the tool, so this does not own the
/// agent.
struct ConversationArchive(Weak<Inner>);

impl MessageArchive for ConversationArchive {
    fn recall<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<ArchivedContent, ArchiveError>> {
        Box::pin(async move {
            let inner = self.0.upgrade().ok_or_else(|| ArchiveError::new(ConversationClosed))?;
            let found = Agent { inner }.recall(id).await.map_err(ArchiveError::new)?;
            Ok(ArchivedContent { text: found.full_text(), images: found.images })
        })
    }
}

/// The agent was dropped.
#[derive(Debug, thiserror::Error)]
#[error("the conversation is closed")]
struct ConversationClosed;

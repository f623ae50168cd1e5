//! The conversations of sub-agents: [`Agent::begin_child`] begins one beside the agent's own.

use std::path::Path;

use hardpan_prompt::MessageBody;
use hardpan_session::Header;

use crate::agent::{Agent, lock};
use crate::conversation::{Conversation, ConversationError};
use crate::events::{AgentEvent, Event};

/// What the conversation of a sub-agent begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildStart {
    /// With nothing.
    Alone,
    /// With nothing, but so that its requests begin like those of the agent that starts it, as long as
    /// both have the same tools and the same context.
    SharedPrefix,
    /// With a copy of the agent's conversation, up to the answer that starts the sub-agent.
    Fork,
}

impl Agent {
    /// Begins the conversation of a sub-agent. Its file is created when its first entry is stored; that
    /// of a copy, at once.
    pub async fn begin_child(
        &self,
        start: ChildStart,
        path: &Path,
        header: Header,
    ) -> Result<Conversation, ConversationError> {
        match start {
            ChildStart::Alone => Ok(Conversation::begin(path, header)?),
            ChildStart::SharedPrefix => {
                Ok(Conversation::begin_like(&lock(&self.inner.conversation), path, header)?)
            }
            ChildStart::Fork => {
                let session = self.read_stored_session().await?;
                let last_answer = {
                    let conversation = lock(&self.inner.conversation);
                    let is_answer = |body: &MessageBody| matches!(body, MessageBody::Assistant { .. });
                    let last = conversation.messages.iter().rfind(|message| is_answer(&message.body));
                    last.map(|message| message.id.clone())
                };
                let entry = last_answer
                    .and_then(|id| session.entries.iter().find(|entry| entry.id == id.0))
                    .and_then(|entry| entry.parent.clone());
                Conversation::fork(&session, entry.as_deref(), path, header)
            }
        }
    }

    /// The files that the beginning of the agent's requests shows whole, by their paths.
    pub fn prefix_files(&self) -> Vec<String> {
        let layout = self.layout();
        let conversation = lock(&self.inner.conversation);
        let files = layout.layout().cached_files(conversation.memory.current());
        files.into_iter().map(|(path, _)| path.to_owned()).collect()
    }

    /// Emits an event about something that works for this agent.
    pub async fn announce<E: Event<Reply = ()> + Into<AgentEvent>>(&self, event: E) {
        self.events().emit(self, event).await;
    }
}

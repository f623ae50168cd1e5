//! [`PendingAnswer`]: recovers answers that a crash cut off, from the pieces that were saved while
//! they streamed.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use jiff::Timestamp;

use crate::entry::Entry;
use crate::record::{PartialRecord, Record};

/// `stop_reason` of an answer that was put together from its pieces.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// The pieces of one answer that were read so far.
#[derive(Clone, Debug)]
pub(crate) struct PendingAnswer {
    /// Id of the message they belong to.
    pub(crate) message_id: Arc<str>,
    /// Line number of the last piece.
    pub(crate) line: usize,
    pub(crate) parent: Option<usize>,
    time: Option<Timestamp>,
    parts: Vec<MessagePart>,
    provider: Option<Arc<str>>,
    model: Option<Arc<str>>,
}

impl PendingAnswer {
    pub(crate) fn new(message_id: Arc<str>) -> Self {
        let (parts, provider, model) = (Vec::new(), None, None);
        PendingAnswer { message_id, line: 0, parent: None, time: None, parts, provider, model }
    }

    /// Adds the next piece.
    pub(crate) fn add_partial(
        &mut self,
        line: usize,
        parent: Option<usize>,
        time: Option<Timestamp>,
        partial: &PartialRecord,
    ) {
        (self.line, self.parent, self.time) = (line, parent, time.or(self.time));
        self.provider = self.provider.take().or_else(|| partial.provider.clone());
        self.model = self.model.take().or_else(|| partial.model.clone());
        self.parts.extend(partial.parts.iter().cloned());
    }

    /// Whether no content arrived.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The recovered message as an entry that follows `parent`.
    pub(crate) fn into_entry(self, parent: Option<&str>) -> Entry {
        let body = MessageBody::Assistant {
            content: join_parts(self.parts),
            provider: self.provider,
            model: self.model,
            stop_reason: Some(INTERRUPTED.into()),
        };
        let mut message = AgentMessage::new(&*self.message_id, body);
        message.time = self.time;
        Entry::message(parent, message)
    }
}

/// Joins what only the saving took apart: text with text, and reasoning with reasoning up to its
/// signature.
fn join_parts(parts: Vec<MessagePart>) -> Vec<MessagePart> {
    let mut parts_so_far: Vec<GrowingPart> = Vec::new();
    for part in parts {
        match (parts_so_far.last_mut(), part) {
            (Some(GrowingPart::Text(text)), MessagePart::Text { text: more }) => text.push_str(&more),
            (_, MessagePart::Text { text }) => parts_so_far.push(GrowingPart::Text(text.as_str().to_owned())),
            (
                Some(GrowingPart::Reasoning { text, signature: signature @ None }),
                MessagePart::Reasoning { text: more, signature: seal, redacted: None },
            ) => {
                text.push_str(&more);
                *signature = seal;
            }
            (_, MessagePart::Reasoning { text, signature, redacted: None }) => {
                parts_so_far.push(GrowingPart::Reasoning { text: text.as_str().to_owned(), signature });
            }
            (_, part) => parts_so_far.push(GrowingPart::Other(part)),
        }
    }
    parts_so_far.into_iter().map(GrowingPart::into_part).collect()
}

/// A part that can still grow. A `Text` is hashed when it is created, which would be too often for
/// each of many pieces.
enum GrowingPart {
    Text(String),
    Reasoning { text: String, signature: Option<Arc<str>> },
    Other(MessagePart),
}

impl GrowingPart {
    fn into_part(self) -> MessagePart {
        match self {
            GrowingPart::Text(text) => MessagePart::text(text),
            GrowingPart::Reasoning { text, signature } => {
                MessagePart::Reasoning { text: text.into(), signature, redacted: None }
            }
            GrowingPart::Other(part) => part,
        }
    }
}

impl Entry {
    /// The partial record of this entry, if it is one.
    pub(crate) fn as_partial(&self) -> Option<&PartialRecord> {
        match &self.record {
            Record::Partial(partial) => Some(partial),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

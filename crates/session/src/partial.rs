//! Answers that were cut off by a crash: put together from the pieces that were saved while they came.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Body, Part};
use jiff::Timestamp;

use crate::entry::Entry;
use crate::record::{Partial, Record};

/// What an answer's `stop_reason` says when it was put together from its pieces.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// The pieces of one answer, as far as the file has been read.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    /// The message they will be.
    pub(crate) of: Arc<str>,
    /// The line of the last piece, and the entry that it follows.
    pub(crate) line: usize,
    pub(crate) parent: Option<usize>,
    time: Option<Timestamp>,
    parts: Vec<Part>,
    provider: Option<Arc<str>>,
    model: Option<Arc<str>>,
}

impl Pieces {
    pub(crate) fn new(of: Arc<str>) -> Self {
        let (parts, provider, model) = (Vec::new(), None, None);
        Pieces { of, line: 0, parent: None, time: None, parts, provider, model }
    }

    /// Takes the next piece.
    pub(crate) fn add(
        &mut self,
        line: usize,
        parent: Option<usize>,
        time: Option<Timestamp>,
        piece: &Partial,
    ) {
        (self.line, self.parent, self.time) = (line, parent, time.or(self.time));
        self.provider = self.provider.take().or_else(|| piece.provider.clone());
        self.model = self.model.take().or_else(|| piece.model.clone());
        self.parts.extend(piece.parts.iter().cloned());
    }

    /// Whether nothing has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The message that they are, after the entry `parent`.
    pub(crate) fn into_entry(self, parent: Option<&str>) -> Entry {
        let body = Body::Assistant {
            content: join(self.parts),
            provider: self.provider,
            model: self.model,
            stop_reason: Some(INTERRUPTED.into()),
        };
        let mut message = AgentMessage::new(&*self.of, body);
        message.time = self.time;
        Entry::message(parent, message)
    }
}

/// Joins what only the saving took apart: text with text, and reasoning with reasoning until it is signed.
fn join(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Joined> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(Joined::Text(text)), Part::Text { text: more }) => text.push_str(&more),
            (_, Part::Text { text }) => joined.push(Joined::Text(text.as_str().to_owned())),
            (
                Some(Joined::Reasoning { text, signature: signature @ None }),
                Part::Reasoning { text: more, signature: seal, redacted: None },
            ) => {
                text.push_str(&more);
                *signature = seal;
            }
            (_, Part::Reasoning { text, signature, redacted: None }) => {
                joined.push(Joined::Reasoning { text: text.as_str().to_owned(), signature });
            }
            (_, part) => joined.push(Joined::Other(part)),
        }
    }
    joined.into_iter().map(Joined::into_part).collect()
}

/// A part that can still grow: a `Text` is hashed when it is made, which for each of many pieces would be too often.
enum Joined {
    Text(String),
    Reasoning { text: String, signature: Option<Arc<str>> },
    Other(Part),
}

impl Joined {
    fn into_part(self) -> Part {
        match self {
            Joined::Text(text) => Part::text(text),
            Joined::Reasoning { text, signature } => {
                Part::Reasoning { text: text.into(), signature, redacted: None }
            }
            Joined::Other(part) => part,
        }
    }
}

impl Entry {
    /// The piece that this entry is, if it is one.
    pub(crate) fn as_partial(&self) -> Option<&Partial> {
        match &self.record {
            Record::Partial(piece) => Some(piece),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

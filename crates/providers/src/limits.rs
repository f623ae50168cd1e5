//! Limits on what a server may send, so that none can fill the memory: [`AnswerBudget`] counts what
//! an answer holds, whatever its protocol. Every limit lies far above what models write.

use crate::{AnswerEvent, StreamError, StreamErrorKind};

/// All bytes of a streamed answer, comments and framing included. A token takes up to 400 bytes.
pub(crate) const MAX_STREAM_BYTES: usize = 256 << 20;

/// Bytes of a stream between two pieces of content: what parsers keep until they can emit it.
pub(crate) const MAX_BYTES_WITHOUT_CONTENT: usize = 32 << 20;

/// The body of an answer that is not streamed.
pub(crate) const MAX_BODY_BYTES: usize = 8 << 20;

/// A page of a list of models. It becomes JSON values, which may take fifty times as much memory.
pub(crate) const MAX_LIST_BYTES: usize = 3 << 20;

/// The body of an error response. More than this is cut, not refused.
pub(crate) const MAX_ERROR_BYTES: usize = 256 << 10;

/// The length of a provider's error message, in characters. More is cut.
pub(crate) const MAX_MESSAGE_CHARS: usize = 2000;

/// A report of token counts; a longer one is ignored.
pub(crate) const MAX_USAGE_BYTES: usize = 64 << 10;

/// Text, reasoning, signatures and arguments of one answer together.
const MAX_CONTENT_BYTES: usize = 16 << 20;

/// The arguments of one call. They become JSON values, which take many times the memory.
const MAX_ARGUMENT_BYTES: usize = 4 << 20;

/// Calls, signatures and skipped parts of one answer, and items that a parser keeps track of.
pub(crate) const MAX_PARTS: usize = 4096;

/// Reports of token counts in one answer: some servers send one with every token.
const MAX_REPORTS: usize = 4 << 20;

/// Counts the events of one answer against the limits.
#[derive(Debug, Default)]
pub(crate) struct AnswerBudget {
    content: usize,
    parts: usize,
    reports: usize,
    /// The number and the length of the arguments that grow at present.
    arguments: (usize, usize),
}

impl AnswerBudget {
    /// Counts an event. `Err` if the answer has become larger than any model's.
    pub fn count(&mut self, event: &AnswerEvent) -> Result<(), StreamError> {
        match event {
            AnswerEvent::Text(text) | AnswerEvent::Reasoning(text) => self.content += text.len(),
            AnswerEvent::Signature(data) | AnswerEvent::RedactedReasoning(data) => {
                self.content += data.len();
                self.parts += 1;
            }
            AnswerEvent::CallStart { id, name, .. } => {
                self.content += id.len() + name.len();
                self.parts += 1;
            }
            AnswerEvent::CallDelta { index, json } => {
                self.content += json.len();
                let before = if self.arguments.0 == *index { self.arguments.1 } else { 0 };
                self.arguments = (*index, before + json.len());
            }
            AnswerEvent::SkippedPart { part_type: said } | AnswerEvent::WebSearch { query: said } => {
                self.content += said.len();
                self.parts += 1;
            }
            AnswerEvent::ProviderBlock(block) => {
                self.content += block.json.as_str().len();
                self.parts += 1;
            }
            AnswerEvent::Sources(sources) => {
                self.content +=
                    sources.iter().map(|source| source.title.len() + source.url.len()).sum::<usize>();
                self.parts += sources.len();
            }
            AnswerEvent::Usage(_) | AnswerEvent::CacheDiagnosis(_) => self.reports += 1,
            AnswerEvent::DroppedReasoning(_) => self.parts += 1,
            AnswerEvent::Start { .. }
            | AnswerEvent::CallEnd { .. }
            | AnswerEvent::Stop(_)
            | AnswerEvent::Error(_) => {}
        }
        let limits = [
            (self.content, MAX_CONTENT_BYTES, "bytes of content"),
            (self.arguments.1, MAX_ARGUMENT_BYTES, "bytes of arguments of one call"),
            (self.parts, MAX_PARTS, "parts"),
            (self.reports, MAX_REPORTS, "reports"),
        ];
        match limits.into_iter().find(|(count, limit, _)| count > limit) {
            Some((_, limit, what)) => Err(too_long(limit, what)),
            None => Ok(()),
        }
    }
}

/// Whether the model says something with this event, so that the answer makes progress.
pub(crate) fn is_content(event: &AnswerEvent) -> bool {
    match event {
        AnswerEvent::Text(text) | AnswerEvent::Reasoning(text) => !text.is_empty(),
        AnswerEvent::CallDelta { json, .. } => !json.is_empty(),
        AnswerEvent::Signature(_)
        | AnswerEvent::RedactedReasoning(_)
        | AnswerEvent::WebSearch { .. }
        | AnswerEvent::ProviderBlock(_)
        | AnswerEvent::Sources(_)
        | AnswerEvent::CallStart { .. }
        | AnswerEvent::CallEnd { .. }
        | AnswerEvent::Stop(_)
        | AnswerEvent::Error(_) => true,
        AnswerEvent::Start { .. }
        | AnswerEvent::Usage(_)
        | AnswerEvent::CacheDiagnosis(_)
        | AnswerEvent::DroppedReasoning(_)
        | AnswerEvent::SkippedPart { .. } => false,
    }
}

/// An answer with more than `limit` of something.
pub(crate) fn too_long(limit: usize, what: &str) -> StreamError {
    StreamError::new(StreamErrorKind::TooLong, format!("it has more than {limit} {what}"))
}

/// A message of a server, cut to a length that people read.
pub(crate) fn short_message(mut message: String) -> String {
    if let Some((at, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
        message.truncate(at);
        message.push('…');
        message.shrink_to_fit();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(event: &AnswerEvent, times: usize) -> Result<(), StreamError> {
        let mut budget = AnswerBudget::default();
        (0..times).try_for_each(|_| budget.count(event))
    }

    #[test]
    fn text_arguments_and_parts_have_their_limits() {
        let megabyte = "x".repeat(1 << 20);
        assert!(count(&AnswerEvent::Text(megabyte.clone()), 16).is_ok());
        let error = count(&AnswerEvent::Text(megabyte.clone()), 17).unwrap_err();
        assert_eq!(error.to_string(), "answer_too_long: it has more than 16777216 bytes of content");
        let delta = AnswerEvent::CallDelta { index: 0, json: megabyte };
        assert!(count(&delta, 4).is_ok() && count(&delta, 5).is_err());
        let start = AnswerEvent::CallStart { index: 0, id: "a".into(), name: "b".into() };
        assert!(count(&start, MAX_PARTS).is_ok() && count(&start, MAX_PARTS + 1).is_err());
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(short_message("é".repeat(3000)).chars().count(), MAX_MESSAGE_CHARS + 1);
        assert_eq!(short_message("short".into()), "short");
    }
}

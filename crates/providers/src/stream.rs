//! [`StreamDecoder`] turns the bytes of an answer into [`AnswerEvent`]s, without a network.
//!
//! The client, the simulator's tests and the fuzz targets all use this decoder.

pub(crate) mod json; // strings, arguments and errors in JSON

use std::{fmt, mem};

use hardpan_models::Protocol;

use crate::codec::codec;
use crate::limits::{AnswerBudget, MAX_BYTES_WITHOUT_CONTENT, MAX_STREAM_BYTES, is_content, too_long};
use crate::{AnswerEvent, StopReason, StreamError, StreamErrorKind, ThinkTags, sse};

/// Decodes a streamed answer, from bytes that may be cut anywhere.
///
/// The answer is complete once its stop reason has arrived, even if the stream then ends without
/// the end marker (`message_stop`, `[DONE]`). A stream that ends earlier is
/// [cut](crate::StopReason::Cut).
///
/// ```
/// use hardpan_models::Protocol;
/// use hardpan_providers::{AnswerEvent, StopReason, StreamDecoder};
///
/// let mut decoder = StreamDecoder::new(Protocol::Openai);
/// let mut events = decoder.push(b"data: {\"id\":\"x\",\"choices\":[{\"delta\":{\"content\":\"Hel");
/// assert!(events.is_empty());
/// events.extend(decoder.push(b"lo\"}}]}\n\n"));
/// events.extend(decoder.finish());
/// assert_eq!(events[1..], [AnswerEvent::Text("Hello".into()), AnswerEvent::Stop(StopReason::Cut)]);
/// ```
#[derive(Debug)]
pub struct StreamDecoder {
    sse: sse::Parser,
    answer: Box<dyn AnswerParser>,
    bytes_read: usize,
    /// `bytes_read` when the last piece of content came.
    read_at_content: usize,
    budget: AnswerBudget,
    finished: bool,
}

/// Parses one answer of a protocol, streamed or whole. A codec makes one for each answer.
pub trait AnswerParser: fmt::Debug + Send {
    /// Parses the data of one server-sent event.
    fn read(&mut self, data: &str, events: &mut Vec<AnswerEvent>) -> Result<StreamProgress, StreamError>;

    /// Parses an answer that was not streamed.
    fn read_body(&mut self, body: &str, events: &mut Vec<AnswerEvent>) -> Result<(), StreamError>;

    /// Emits what is left, and returns why the answer ended.
    fn finish(&mut self, end: StreamEnd, events: &mut Vec<AnswerEvent>) -> StopReason;
}

/// Whether the stream continues after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamProgress {
    /// More events are expected.
    More,
    /// The event was the protocol's end marker.
    Over,
}

/// How the bytes of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// With the protocol's end marker, or as a complete body.
    Marked,
    /// Without the end marker.
    Unmarked,
}

impl StreamDecoder {
    /// A decoder for a server that sends reasoning in its own fields, or begins its answer with
    /// `<think>`.
    pub fn new(protocol: Protocol) -> Self {
        StreamDecoder::with_tags(protocol, ThinkTags::default())
    }

    /// A decoder for a server that uses `<think>` tags in another way. Ignored for protocols without
    /// such tags.
    pub fn with_tags(protocol: Protocol, tags: ThinkTags) -> Self {
        StreamDecoder {
            sse: sse::Parser::default(),
            answer: codec(protocol).answer_parser(tags),
            bytes_read: 0,
            read_at_content: 0,
            budget: AnswerBudget::default(),
            finished: false,
        }
    }

    /// Decodes more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<AnswerEvent> {
        let mut events = Vec::new();
        while !self.finished {
            let (before, unread) = (events.len(), bytes.len());
            let step = match self.sse.next(&mut bytes) {
                Ok(Some(event)) => read_event(&mut *self.answer, event, &mut events),
                Ok(None) if bytes.len() == unread => break,
                Ok(None) => Ok(StreamProgress::More),
                Err(error) => Err(line_too_long(&error)),
            };
            self.bytes_read = self.bytes_read.saturating_add(unread - bytes.len());
            let step = self.check_limits(&mut events, before).and(step);
            self.apply_step(step, &mut events);
        }
        events
    }

    /// Ends the stream. Returns the last events, unless the end marker already produced them.
    pub fn finish(&mut self) -> Vec<AnswerEvent> {
        let mut events = Vec::new();
        if self.finished {
            return events;
        }
        let step = match self.sse.finish() {
            Ok(Some(event)) => read_event(&mut *self.answer, event, &mut events),
            Ok(None) => Ok(StreamProgress::More),
            Err(error) => Err(line_too_long(&error)),
        };
        let step = self.check_limits(&mut events, 0).and(step);
        match step {
            // A torn last line means that the stream was cut; it is not an error of its own.
            Err(error) if error.kind == StreamErrorKind::Malformed => {}
            step => self.apply_step(step, &mut events),
        }
        if !mem::replace(&mut self.finished, true) {
            let stop = self.answer.finish(StreamEnd::Unmarked, &mut events);
            events.push(AnswerEvent::Stop(stop));
        }
        events
    }

    /// Whether the last event has been returned. Bytes after it are ignored.
    pub fn is_over(&self) -> bool {
        self.finished
    }

    /// Counts the events from `start` on. Those after one that exceeds a limit are dropped.
    fn check_limits(&mut self, events: &mut Vec<AnswerEvent>, start: usize) -> Result<(), StreamError> {
        for at in start..events.len() {
            if let Err(error) = self.budget.count(&events[at]) {
                events.truncate(at);
                return Err(error);
            }
            if is_content(&events[at]) {
                self.read_at_content = self.bytes_read;
            }
        }
        if self.bytes_read > MAX_STREAM_BYTES {
            return Err(too_long(MAX_STREAM_BYTES, "bytes"));
        }
        if self.bytes_read - self.read_at_content > MAX_BYTES_WITHOUT_CONTENT {
            return Err(too_long(MAX_BYTES_WITHOUT_CONTENT, "bytes without content"));
        }
        Ok(())
    }

    fn apply_step(&mut self, step: Result<StreamProgress, StreamError>, events: &mut Vec<AnswerEvent>) {
        match step {
            Ok(StreamProgress::More) => return,
            Ok(StreamProgress::Over) => {
                let stop = self.answer.finish(StreamEnd::Marked, events);
                events.push(AnswerEvent::Stop(stop));
            }
            Err(error) => events.push(AnswerEvent::Error(error)),
        }
        self.finished = true;
    }
}

fn read_event(
    answer: &mut dyn AnswerParser,
    event: sse::SseEvent<'_>,
    events: &mut Vec<AnswerEvent>,
) -> Result<StreamProgress, StreamError> {
    match event.data.trim() {
        "" => Ok(StreamProgress::More),       // keep-alive
        "[DONE]" => Ok(StreamProgress::Over), // OpenAI's marker; some gateways send it in every protocol
        data if event.event == Some("error") => Err(json::parse_error(data)),
        data => answer.read(data, events),
    }
}

/// Decodes an answer that was not streamed into the same events that a stream would have produced.
///
/// An error body, or a body that is not an answer, becomes an [`AnswerEvent::Error`].
pub fn decode_answer_body(protocol: Protocol, body: &[u8]) -> Vec<AnswerEvent> {
    decode_answer_body_with_tags(protocol, ThinkTags::default(), body)
}

/// Like [`decode_answer_body`], for a server that uses `<think>` tags in another way.
pub fn decode_answer_body_with_tags(protocol: Protocol, tags: ThinkTags, body: &[u8]) -> Vec<AnswerEvent> {
    let mut answer = codec(protocol).answer_parser(tags);
    let body = String::from_utf8_lossy(body);
    let mut events = Vec::new();
    let read = answer.read_body(&body, &mut events);
    let mut budget = AnswerBudget::default();
    let read = read.and_then(|()| events.iter().try_for_each(|event| budget.count(event)));
    match read {
        Ok(()) => {
            let stop = answer.finish(StreamEnd::Marked, &mut events);
            events.push(AnswerEvent::Stop(stop));
        }
        Err(error) => events.push(AnswerEvent::Error(error)),
    }
    events
}

fn line_too_long(error: &sse::EventTooLong) -> StreamError {
    StreamError::new(StreamErrorKind::TooLong, error.to_string())
}

#[cfg(test)]
pub(crate) mod tests;

//! [`StreamDecoder`] turns the bytes of an answer into [`AnswerEvent`]s, without a network.
//!
//! The client, the simulator's tests and the fuzz targets all use this decoder.

mod anthropic; // streams of Anthropic Messages
mod calls; // CallAssembler: which call a fragment belongs to
mod json; // strings, arguments and errors in JSON
mod openai; // streams of OpenAI Chat Completions
mod think; // ThinkTagSplitter: reasoning in <think> tags

use std::mem;

use hardpan_models::Protocol;

pub use self::think::ThinkTags;
use crate::{AnswerEvent, StreamError, StreamErrorKind, sse};

/// The maximum bytes of data in one answer. No model writes so much; a broken server might.
const LIMIT: usize = 256 << 20;

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
    parser: sse::Parser,
    decoder: ProtocolDecoder,
    bytes_read: usize,
    finished: bool,
}

#[derive(Debug)]
enum ProtocolDecoder {
    Anthropic(anthropic::AnthropicDecoder),
    Openai(openai::OpenaiDecoder),
}

/// Whether the stream continues after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamProgress {
    More,
    Over,
}

/// How the bytes of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamEnd {
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

    /// A decoder for a server that uses `<think>` tags in another way. Ignored for Anthropic, whose
    /// protocol has no tags.
    pub fn with_tags(protocol: Protocol, tags: ThinkTags) -> Self {
        StreamDecoder {
            parser: sse::Parser::default(),
            decoder: ProtocolDecoder::new(protocol, tags),
            bytes_read: 0,
            finished: false,
        }
    }

    /// Decodes more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<AnswerEvent> {
        let mut events = Vec::new();
        while !self.finished {
            let step = match self.parser.next(&mut bytes) {
                Ok(Some(event)) => {
                    self.bytes_read = self.bytes_read.saturating_add(event.data.len());
                    self.decoder.read(event, &mut events)
                }
                Ok(None) => break,
                Err(error) => Err(too_long(&error)),
            };
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
        let step = match self.parser.finish() {
            Ok(Some(event)) => self.decoder.read(event, &mut events),
            Ok(None) => Ok(StreamProgress::More),
            Err(error) => Err(too_long(&error)),
        };
        match step {
            // A torn last line means that the stream was cut; it is not an error of its own.
            Err(error) if error.kind == StreamErrorKind::Malformed => {}
            step => self.apply_step(step, &mut events),
        }
        if !mem::replace(&mut self.finished, true) {
            self.decoder.finish_answer(StreamEnd::Unmarked, &mut events);
        }
        events
    }

    /// Whether the last event has been returned. Bytes after it are ignored.
    pub fn is_over(&self) -> bool {
        self.finished
    }

    fn apply_step(&mut self, step: Result<StreamProgress, StreamError>, events: &mut Vec<AnswerEvent>) {
        let step =
            if self.bytes_read > LIMIT { Err(too_long(&format!("more than {LIMIT} bytes"))) } else { step };
        match step {
            Ok(StreamProgress::More) => return,
            Ok(StreamProgress::Over) => self.decoder.finish_answer(StreamEnd::Marked, events),
            Err(error) => events.push(AnswerEvent::Error(error)),
        }
        self.finished = true;
    }
}

impl ProtocolDecoder {
    fn new(protocol: Protocol, tags: ThinkTags) -> Self {
        match protocol {
            Protocol::Anthropic => ProtocolDecoder::Anthropic(anthropic::AnthropicDecoder::default()),
            Protocol::Openai => ProtocolDecoder::Openai(openai::OpenaiDecoder::new(tags)),
        }
    }

    fn read(
        &mut self,
        event: sse::SseEvent<'_>,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<StreamProgress, StreamError> {
        match event.data.trim() {
            "" => Ok(StreamProgress::More),       // keep-alive
            "[DONE]" => Ok(StreamProgress::Over), // OpenAI's marker, and that of some gateways for both protocols
            data if event.event == Some("error") => Err(json::parse_error(data)),
            data => match self {
                ProtocolDecoder::Anthropic(decoder) => decoder.read(data, events),
                ProtocolDecoder::Openai(decoder) => decoder.read(data, events),
            },
        }
    }

    fn finish_answer(&mut self, ending: StreamEnd, events: &mut Vec<AnswerEvent>) {
        let stop = match self {
            ProtocolDecoder::Anthropic(decoder) => decoder.finish_answer(ending),
            ProtocolDecoder::Openai(decoder) => decoder.finish_answer(ending, events),
        };
        events.push(AnswerEvent::Stop(stop));
    }
}

/// Decodes an answer that was not streamed into the same events that a stream would have produced.
///
/// An error body, or a body that is not an answer, becomes an [`AnswerEvent::Error`].
pub fn decode_answer_body(protocol: Protocol, body: &[u8]) -> Vec<AnswerEvent> {
    decode_whole_body(ProtocolDecoder::new(protocol, ThinkTags::default()), body)
}

/// Like [`decode_answer_body`], for a server that uses `<think>` tags in another way.
pub fn decode_answer_body_with_tags(protocol: Protocol, tags: ThinkTags, body: &[u8]) -> Vec<AnswerEvent> {
    decode_whole_body(ProtocolDecoder::new(protocol, tags), body)
}

fn decode_whole_body(mut decoder: ProtocolDecoder, body: &[u8]) -> Vec<AnswerEvent> {
    let body = String::from_utf8_lossy(body);
    let mut events = Vec::new();
    let read = match &mut decoder {
        ProtocolDecoder::Anthropic(decoder) => decoder.read_body(&body, &mut events),
        ProtocolDecoder::Openai(decoder) => decoder.read_body(&body, &mut events),
    };
    match read {
        Ok(()) => decoder.finish_answer(StreamEnd::Marked, &mut events),
        Err(error) => events.push(AnswerEvent::Error(error)),
    }
    events
}

fn too_long(what: &dyn std::fmt::Display) -> StreamError {
    StreamError::new(StreamErrorKind::TooLong, what.to_string())
}

#[cfg(test)]
mod tests;

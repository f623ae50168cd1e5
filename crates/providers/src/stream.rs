//! From the bytes of an answer to its events, without a network.
//!
//! Transport, simulator, tests and fuzzing all read with this one [`Decoder`].

mod anthropic; // Anthropic Messages
mod calls; // which call a piece belongs to
mod json; // strings, arguments and errors in JSON
mod openai; // OpenAI Chat Completions and those that speak it
mod think; // reasoning in tags

use std::mem;

use hardpan_models::Protocol;

pub use self::think::ThinkTags;
use crate::{Event, StreamError, sse};

/// The most bytes of data in one answer. No model says so much; a server that never stops might.
const LIMIT: usize = 256 << 20;

/// Takes the bytes of a streamed answer, cut anywhere, and gives its events.
///
/// The answer is whole once its reason for stopping has come: a stream that ends then without its end marker
/// (`message_stop`, `[DONE]`) is no less complete. One that ends before is [cut](crate::StopReason::Cut).
///
/// ```
/// use hardpan_models::Protocol;
/// use hardpan_providers::{Decoder, Event, StopReason};
///
/// let mut decoder = Decoder::new(Protocol::Openai);
/// let mut events = decoder.push(b"data: {\"id\":\"x\",\"choices\":[{\"delta\":{\"content\":\"Hel");
/// assert!(events.is_empty());
/// events.extend(decoder.push(b"lo\"}}]}\n\n"));
/// events.extend(decoder.finish());
/// assert_eq!(events[1..], [Event::Text("Hello".into()), Event::Stop(StopReason::Cut)]);
/// ```
#[derive(Debug)]
pub struct Decoder {
    lines: sse::Parser,
    reader: Reader,
    taken: usize,
    over: bool,
}

#[derive(Debug)]
enum Reader {
    Anthropic(anthropic::Reader),
    Openai(openai::Reader),
}

/// What a line says about those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    More,
    Over,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// With the protocol's marker, or as a whole body.
    Marked,
    /// The bytes ended.
    Unmarked,
}

impl Decoder {
    /// For a server that takes reasoning apart from text, or begins its answer with `<think>`.
    pub fn new(protocol: Protocol) -> Self {
        Decoder::with_tags(protocol, ThinkTags::default())
    }

    /// For a server with its own ways of thinking. Anthropic's protocol has no tags.
    pub fn with_tags(protocol: Protocol, tags: ThinkTags) -> Self {
        Decoder { lines: sse::Parser::default(), reader: Reader::new(protocol, tags), taken: 0, over: false }
    }

    /// Takes more bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while !self.over {
            let step = match self.lines.next(&mut bytes) {
                Ok(Some(event)) => {
                    self.taken = self.taken.saturating_add(event.data.len());
                    self.reader.read(event, &mut events)
                }
                Ok(None) => break,
                Err(error) => Err(too_long(&error)),
            };
            self.settle(step, &mut events);
        }
        events
    }

    /// The bytes have ended. Gives the last events, if they have not come yet.
    pub fn finish(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.over {
            return events;
        }
        let step = match self.lines.finish() {
            Ok(Some(event)) => self.reader.read(event, &mut events),
            Ok(None) => Ok(Next::More),
            Err(error) => Err(too_long(&error)),
        };
        match step {
            // A torn last line is a sign that the stream was cut, and no other fault.
            Err(error) if error.kind == StreamError::MALFORMED => {}
            step => self.settle(step, &mut events),
        }
        if !mem::replace(&mut self.over, true) {
            self.reader.end(Ending::Unmarked, &mut events);
        }
        events
    }

    /// Whether the last event has been given. What the server sends after it is not read.
    pub fn is_over(&self) -> bool {
        self.over
    }

    fn settle(&mut self, step: Result<Next, StreamError>, events: &mut Vec<Event>) {
        let step = if self.taken > LIMIT { Err(too_long(&format!("more than {LIMIT} bytes"))) } else { step };
        match step {
            Ok(Next::More) => return,
            Ok(Next::Over) => self.reader.end(Ending::Marked, events),
            Err(error) => events.push(Event::Error(error)),
        }
        self.over = true;
    }
}

impl Reader {
    fn new(protocol: Protocol, tags: ThinkTags) -> Self {
        match protocol {
            Protocol::Anthropic => Reader::Anthropic(anthropic::Reader::default()),
            Protocol::Openai => Reader::Openai(openai::Reader::new(tags)),
        }
    }

    fn read(&mut self, event: sse::SseEvent<'_>, events: &mut Vec<Event>) -> Result<Next, StreamError> {
        match event.data.trim() {
            "" => Ok(Next::More),       // kept alive
            "[DONE]" => Ok(Next::Over), // OpenAI's marker, and that of some gateways for both protocols
            data if event.event == Some("error") => Err(json::error(data)),
            data => match self {
                Reader::Anthropic(reader) => reader.read(data, events),
                Reader::Openai(reader) => reader.read(data, events),
            },
        }
    }

    fn end(&mut self, ending: Ending, events: &mut Vec<Event>) {
        let stop = match self {
            Reader::Anthropic(reader) => reader.end(ending),
            Reader::Openai(reader) => reader.end(ending, events),
        };
        events.push(Event::Stop(stop));
    }
}

/// The events of an answer that came in one piece: those that a stream of it would have given.
///
/// An error body gives its [`Event::Error`], and so does what is no answer at all.
pub fn events_of_body(protocol: Protocol, body: &[u8]) -> Vec<Event> {
    whole(Reader::new(protocol, ThinkTags::default()), body)
}

/// The same, for a server with its own ways of thinking.
pub fn events_of_body_with_tags(protocol: Protocol, tags: ThinkTags, body: &[u8]) -> Vec<Event> {
    whole(Reader::new(protocol, tags), body)
}

fn whole(mut reader: Reader, body: &[u8]) -> Vec<Event> {
    let body = String::from_utf8_lossy(body);
    let mut events = Vec::new();
    let read = match &mut reader {
        Reader::Anthropic(reader) => reader.whole(&body, &mut events),
        Reader::Openai(reader) => reader.whole(&body, &mut events),
    };
    match read {
        Ok(()) => reader.end(Ending::Marked, &mut events),
        Err(error) => events.push(Event::Error(error)),
    }
    events
}

fn too_long(what: &dyn std::fmt::Display) -> StreamError {
    StreamError::new(StreamError::TOO_LONG, what.to_string())
}

#[cfg(test)]
mod tests;

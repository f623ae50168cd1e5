//! Anthropic Messages, streamed or whole.

use std::collections::BTreeMap;
use std::mem;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{self, Str, arguments, or_empty};
use super::{Ending, Next};
use crate::usage::Report;
use crate::{Event, StopReason, StreamError};

/// One line of the stream. All kinds share one form, since a tagged enum would read each line twice; what is rare is
/// boxed, since a large form would be moved about for every word of text.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(default)]
    r#type: Kind,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<Box<Block<'a>>>,
    #[serde(borrow)]
    message: Option<Box<Message<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    Error,
    /// Pings, and what is not known yet.
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    r#type: DeltaKind,
    /// Each kind has its own name for it, and only one.
    #[serde(borrow, alias = "thinking", alias = "signature", alias = "partial_json")]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DeltaKind {
    TextDelta,
    ThinkingDelta,
    SignatureDelta,
    InputJsonDelta,
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    r#type: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    #[serde(borrow)]
    data: Option<Str<'a>>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// The message: whole, or at its start.
#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// A block whose stop has not come.
#[derive(Debug)]
enum Open {
    Text,
    Reasoning { signature: String },
    Call { index: usize, whole: String },
    Unknown,
}

/// Reads an answer line by line.
#[derive(Debug, Default)]
pub struct Reader {
    started: bool,
    open: BTreeMap<u64, Open>,
    calls: usize,
    report: Report,
    stop: Option<StopReason>,
}

impl Reader {
    pub fn read(&mut self, data: &str, events: &mut Vec<Event>) -> Result<Next, StreamError> {
        let line: Line<'_> = match serde_json::from_str(data) {
            Ok(line) => line,
            Err(error) => return misfit(data, &error),
        };
        match line.r#type {
            Kind::ContentBlockDelta => self.delta(line.index, line.delta.unwrap_or_default(), events)?,
            Kind::MessageStart => {
                if let Some(message) = line.message {
                    self.start(*message, events);
                }
            }
            Kind::ContentBlockStart => {
                if let Some(block) = line.content_block {
                    self.open(line.index, *block, events)?;
                }
            }
            Kind::ContentBlockStop => self.close(line.index, events),
            Kind::MessageDelta => {
                self.stop_reason(&line.delta.unwrap_or_default().stop_reason);
                self.usage(line.usage, events);
            }
            Kind::MessageStop => return Ok(Next::Over),
            Kind::Error => return Err(json::error(data)),
            Kind::Other => {}
        }
        Ok(Next::More)
    }

    /// An answer that came in one piece.
    pub fn whole(&mut self, body: &str, events: &mut Vec<Event>) -> Result<(), StreamError> {
        let message: Message<'_> =
            serde_json::from_str(body).map_err(|error| StreamError::malformed(error, body))?;
        if message.content.is_none() {
            return Err(json::error(body));
        }
        for (index, block) in (0..).zip(self.start(message, events)) {
            self.open(index, block, events)?;
            self.close(index, events);
        }
        Ok(())
    }

    pub fn end(&mut self, ending: Ending) -> StopReason {
        match (self.stop.take(), ending) {
            (Some(stop), _) => stop,
            (None, Ending::Marked) if self.calls > 0 => StopReason::ToolUse,
            (None, Ending::Marked) => StopReason::End,
            (None, Ending::Unmarked) => StopReason::Cut,
        }
    }

    fn start<'a>(&mut self, message: Message<'a>, events: &mut Vec<Event>) -> Vec<Block<'a>> {
        let Message { id, model, content, stop_reason, usage } = message;
        if !mem::replace(&mut self.started, true) {
            let (id, model) = (id.unwrap_or_default().into(), model.unwrap_or_default().into());
            events.push(Event::Start { id, model });
        }
        self.stop_reason(&stop_reason);
        self.usage(usage, events);
        content.unwrap_or_default()
    }

    fn stop_reason(&mut self, word: &Option<Str<'_>>) {
        if let Some(word) = word {
            self.stop = Some(StopReason::from_word(word));
        }
    }

    fn usage(&mut self, usage: Option<&RawValue>, events: &mut Vec<Event>) {
        if let Some(usage) = usage {
            self.report.take(usage.get());
            events.push(Event::Usage(self.report.anthropic()));
        }
    }

    fn open(&mut self, index: u64, block: Block<'_>, events: &mut Vec<Event>) -> Result<(), StreamError> {
        if self.open.contains_key(&index) {
            return Ok(()); // said twice
        }
        let open = match &*block.r#type {
            "text" => {
                push(Event::Text, block.text, events);
                Open::Text
            }
            "thinking" => {
                push(Event::Reasoning, block.thinking, events);
                Open::Reasoning { signature: block.signature.unwrap_or_default().into() }
            }
            "redacted_thinking" => {
                events.push(Event::RedactedReasoning(block.data.unwrap_or_default().into()));
                Open::Unknown
            }
            "tool_use" => {
                let index = self.calls;
                self.calls += 1;
                let id = match or_empty(&block.id) {
                    "" => format!("call_{index}"),
                    id => id.to_owned(),
                };
                events.push(Event::CallStart { index, id, name: block.name.unwrap_or_default().into() });
                let whole = block.input.map_or(Ok(Default::default()), arguments)?.into_owned();
                Open::Call { index, whole }
            }
            other => {
                events
                    .push(Event::Footnote(format!("A part of the answer, of type `{other}`, is not shown.")));
                Open::Unknown
            }
        };
        self.open.insert(index, open);
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: Delta<'_>, events: &mut Vec<Event>) -> Result<(), StreamError> {
        match (self.open.get_mut(&index), delta.r#type) {
            (Some(Open::Unknown), _) => {}
            (_, DeltaKind::TextDelta) => push(Event::Text, delta.text, events),
            (_, DeltaKind::ThinkingDelta) => push(Event::Reasoning, delta.text, events),
            // Held until the block ends: a signature that is not whole is worth nothing.
            (Some(Open::Reasoning { signature }), DeltaKind::SignatureDelta) => {
                signature.push_str(or_empty(&delta.text));
            }
            (Some(Open::Call { index, whole }), DeltaKind::InputJsonDelta) => {
                let json: String = delta.text.unwrap_or_default().into();
                if !json.is_empty() {
                    whole.clear(); // what stood at the start was a place holder
                    events.push(Event::CallDelta { index: *index, json });
                }
            }
            (_, DeltaKind::InputJsonDelta) => {
                let json = or_empty(&delta.text);
                return Err(StreamError::malformed("a piece of a tool call that never began", json));
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, index: u64, events: &mut Vec<Event>) {
        match self.open.remove(&index) {
            Some(Open::Reasoning { signature }) if !signature.is_empty() => {
                events.push(Event::Signature(signature));
            }
            Some(Open::Call { index, whole }) => {
                if !whole.is_empty() && whole != "{}" {
                    events.push(Event::CallDelta { index, json: whole });
                }
                events.push(Event::CallEnd { index });
            }
            _ => {}
        }
    }
}

fn push(make: fn(String) -> Event, text: Option<Str<'_>>, events: &mut Vec<Event>) {
    let text: String = text.unwrap_or_default().into();
    if !text.is_empty() {
        events.push(make(text));
    }
}

/// A line that does not fit. Later kinds of events may have other forms, so only the known ones must.
fn misfit(data: &str, error: &serde_json::Error) -> Result<Next, StreamError> {
    #[derive(Deserialize)]
    struct OnlyKind {
        #[serde(default)]
        r#type: Kind,
    }
    match serde_json::from_str::<OnlyKind>(data) {
        Ok(OnlyKind { r#type: Kind::Other }) => Ok(Next::More),
        Ok(OnlyKind { r#type: Kind::Error }) => Err(json::error(data)),
        _ => Err(StreamError::malformed(error, data)),
    }
}

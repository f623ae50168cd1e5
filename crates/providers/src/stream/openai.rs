//! OpenAI Chat Completions, streamed or whole, and what those that speak it make of it.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::calls::{Calls, Piece};
use super::json::{self, Str, arguments, or_empty};
use super::think::{Splitter, ThinkTags};
use super::{Ending, Next};
use crate::usage::Report;
use crate::{Event, StopReason, StreamError, Usage};

/// One line of the stream, or the whole answer: they differ in `delta` and `message` alone.
#[derive(Debug, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    object: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    timings: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    x_groq: Option<Groq<'a>>,
}

/// Groq's own corner: its usage, and its errors after the start.
#[derive(Debug, Deserialize)]
struct Groq<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    /// In place of `delta` where the answer comes whole.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    /// Moonshot puts it here.
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    /// OpenRouter does.
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Content<'a>>,
    #[serde(borrow)]
    reasoning: Option<Content<'a>>,
    #[serde(borrow)]
    refusal: Option<Str<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Debug, Deserialize)]
struct Call<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Text, or a list of parts, which Mistral sends when the model reasons.
#[derive(Debug)]
enum Content<'a> {
    Text(Str<'a>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Box<Content<'a>>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of parts")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Str::borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Str::owned(text)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Content::Parts(Vec::new()))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Content<'_> {
    /// All the text in it.
    fn text(&self, out: &mut String) {
        match self {
            Content::Text(text) => out.push_str(text),
            Content::Parts(parts) => parts.iter().for_each(|part| out.push_str(or_empty(&part.text))),
        }
    }
}

/// Reads an answer line by line.
#[derive(Debug, Default)]
pub struct Reader {
    /// The answer's id, once it has started.
    id: Option<String>,
    think: Splitter,
    calls: Calls,
    report: Report,
    reported: Option<Usage>,
    stop: Option<StopReason>,
    refused: bool,
}

impl Reader {
    pub fn new(tags: ThinkTags) -> Self {
        Reader { think: Splitter::new(tags), ..Reader::default() }
    }

    pub fn read(&mut self, data: &str, events: &mut Vec<Event>) -> Result<Next, StreamError> {
        let line: Line<'_> =
            serde_json::from_str(data).map_err(|error| StreamError::malformed(error, data))?;
        self.take(line, data, events)?;
        Ok(Next::More)
    }

    /// An answer that came in one piece.
    pub fn whole(&mut self, body: &str, events: &mut Vec<Event>) -> Result<(), StreamError> {
        let line: Line<'_> =
            serde_json::from_str(body).map_err(|error| StreamError::malformed(error, body))?;
        if line.choices.as_ref().is_none_or(Vec::is_empty) && line.error.is_none() {
            return Err(json::error(body));
        }
        self.take(line, body, events)
    }

    pub fn end(&mut self, ending: Ending, events: &mut Vec<Event>) -> StopReason {
        self.think.flush(events);
        let stop = match (self.stop.take(), ending) {
            (Some(StopReason::End), _) if self.refused => StopReason::Refusal,
            (Some(stop), _) => stop,
            (None, Ending::Marked) if !self.calls.is_empty() => StopReason::ToolUse,
            (None, Ending::Marked) => StopReason::End,
            (None, Ending::Unmarked) => return StopReason::Cut,
        };
        // Here no call says that it ends; the answer does.
        self.calls.end(self.id.as_deref().unwrap_or_default(), events);
        stop
    }

    fn take(&mut self, line: Line<'_>, data: &str, events: &mut Vec<Event>) -> Result<(), StreamError> {
        let Line { id, object, model, choices, usage, timings, error, x_groq } = line;
        let (groq_usage, groq_error) = x_groq.map_or((None, None), |groq| (groq.usage, groq.error));
        // One answer is asked for; whatever else a server sends is not it.
        let choice = choices.into_iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0);
        let choice_error = choice.as_ref().and_then(|choice| choice.error);
        if let Some(error) = [error, groq_error, choice_error].into_iter().flatten().find(json::is_error) {
            return Err(json::error(error.get()));
        }
        if object.as_deref() == Some("error") {
            return Err(json::error(data)); // vLLM
        }
        self.start(id, model, choice.is_some(), events);
        let mut choice_usage = None;
        if let Some(Choice { index: _, delta, message, finish_reason, usage, error: _ }) = choice {
            choice_usage = usage;
            if let Some(delta) = delta.or(message) {
                self.delta(delta, events)?;
            }
            self.finish_reason(&finish_reason, data, events)?;
        }
        for usage in [groq_usage, choice_usage, usage].into_iter().flatten() {
            self.report.take(usage.get());
        }
        if let Some(timings) = timings {
            self.report.take_timings(timings.get());
        }
        if [groq_usage, choice_usage, usage, timings].iter().any(Option::is_some) {
            self.usage(events);
        }
        Ok(())
    }

    /// Azure begins with a line about its filters that has neither id nor choices.
    fn start(&mut self, id: Option<Str<'_>>, model: Option<Str<'_>>, answers: bool, events: &mut Vec<Event>) {
        if self.id.is_none() && (answers || !or_empty(&id).is_empty()) {
            let id: String = id.unwrap_or_default().into();
            self.id = Some(id.clone());
            events.push(Event::Start { id, model: model.unwrap_or_default().into() });
        }
    }

    fn delta(&mut self, delta: Delta<'_>, events: &mut Vec<Event>) -> Result<(), StreamError> {
        let Delta { content, reasoning_content, reasoning, refusal, tool_calls } = delta;
        // Some servers send both, the same in each.
        for thought in [reasoning_content, reasoning].into_iter().flatten() {
            if self.reason(&thought, events) {
                break;
            }
        }
        match content {
            Some(Content::Text(text)) => self.think.push(&text, events),
            Some(Content::Parts(parts)) => {
                for Part { text, thinking } in parts {
                    if let Some(thought) = thinking {
                        self.reason(&thought, events);
                    }
                    self.think.push(or_empty(&text), events);
                }
            }
            None => {}
        }
        if let Some(refusal) = refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.think.push(&refusal, events);
        }
        for Call { index, id, function } in tool_calls.into_iter().flatten() {
            self.think.flush(events);
            let (name, raw) = function.map_or((None, None), |function| (function.name, function.arguments));
            let json = raw.map_or(Ok(Default::default()), arguments)?;
            let piece = Piece { index, id: or_empty(&id), name: or_empty(&name), arguments: &json };
            self.calls.take(&piece, self.id.as_deref().unwrap_or_default(), events)?;
        }
        Ok(())
    }

    fn finish_reason(
        &mut self,
        word: &Option<Str<'_>>,
        data: &str,
        events: &mut Vec<Event>,
    ) -> Result<(), StreamError> {
        match or_empty(word) {
            "" => {}
            "error" => return Err(StreamError::new("error", data)), // Mistral
            word => {
                self.think.flush(events);
                self.stop = Some(StopReason::from_word(word));
            }
        }
        Ok(())
    }

    /// Some servers report with every line; only news is passed on.
    fn usage(&mut self, events: &mut Vec<Event>) {
        let usage = self.report.openai();
        if usage != Usage::default() && self.reported.as_ref() != Some(&usage) {
            self.reported = Some(usage.clone());
            events.push(Event::Usage(usage));
        }
    }

    /// Passes on reasoning. Whether there was any.
    fn reason(&mut self, thought: &Content<'_>, events: &mut Vec<Event>) -> bool {
        let mut text = String::new();
        thought.text(&mut text);
        if text.is_empty() {
            return false;
        }
        self.think.flush(events);
        events.push(Event::Reasoning(text));
        true
    }
}

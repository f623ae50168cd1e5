//! Decodes answers of OpenAI Chat Completions, streamed or whole, in the dialects of all compatible
//! servers.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::calls::{CallAssembler, CallFragment};
use super::think::{ThinkTagSplitter, ThinkTags};
use super::usage;
use crate::stream::json::{self, Str, or_empty, parse_arguments};
use crate::stream::{AnswerParser, StreamEnd, StreamProgress};
use crate::usage::UsageFields;
use crate::{AnswerEvent, ReportedUsage, StopReason, StreamError};

/// One chunk of the stream, or a whole answer: they differ only in `delta` and `message`.
#[derive(Debug, Deserialize)]
struct CompletionChunk<'a> {
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

/// Groq's extension: usage, and errors after the start of the stream.
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
    /// Replaces `delta` in an answer that is not streamed.
    #[serde(borrow)]
    message: Option<Delta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    /// Where Moonshot reports usage.
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    /// Where OpenRouter reports errors.
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
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Debug, Deserialize)]
struct CallDelta<'a> {
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

/// A string, or a list of parts, which Mistral sends for reasoning models.
#[derive(Debug)]
enum Content<'a> {
    Text(Str<'a>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Debug, Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Box<Content<'a>>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
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
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl Content<'_> {
    /// Appends all text to `out`.
    fn text(&self, out: &mut String) {
        match self {
            Content::Text(text) => out.push_str(text),
            Content::Parts(parts) => parts.iter().for_each(|part| out.push_str(or_empty(&part.text))),
        }
    }
}

/// Decodes an answer chunk by chunk.
#[derive(Debug, Default)]
pub struct AnswerDecoder {
    /// The answer's id; `None` until it has started.
    id: Option<String>,
    splitter: ThinkTagSplitter,
    calls: CallAssembler,
    report: UsageFields,
    last_usage: Option<ReportedUsage>,
    stop: Option<StopReason>,
    refused: bool,
}

impl AnswerDecoder {
    pub fn new(tags: ThinkTags) -> Self {
        AnswerDecoder { splitter: ThinkTagSplitter::new(tags), ..AnswerDecoder::default() }
    }
}

impl AnswerParser for AnswerDecoder {
    fn read(&mut self, data: &str, events: &mut Vec<AnswerEvent>) -> Result<StreamProgress, StreamError> {
        let line: CompletionChunk<'_> =
            serde_json::from_str(data).map_err(|error| StreamError::malformed(error, data))?;
        self.apply_chunk(line, data, events)?;
        Ok(StreamProgress::More)
    }

    fn read_body(&mut self, body: &str, events: &mut Vec<AnswerEvent>) -> Result<(), StreamError> {
        let line: CompletionChunk<'_> =
            serde_json::from_str(body).map_err(|error| StreamError::malformed(error, body))?;
        if line.choices.as_ref().is_none_or(Vec::is_empty) && line.error.is_none() {
            return Err(json::parse_error(body));
        }
        self.apply_chunk(line, body, events)
    }

    fn finish(&mut self, end: StreamEnd, events: &mut Vec<AnswerEvent>) -> StopReason {
        self.splitter.flush(events);
        let stop = match (self.stop.take(), end) {
            (Some(StopReason::End), _) if self.refused => StopReason::Refusal,
            (Some(stop), _) => stop,
            (None, StreamEnd::Marked) if !self.calls.is_empty() => StopReason::ToolUse,
            (None, StreamEnd::Marked) => StopReason::End,
            (None, StreamEnd::Unmarked) => return StopReason::Cut,
        };
        // In this protocol calls have no end of their own: they end with the answer.
        self.calls.finish_calls(self.id.as_deref().unwrap_or_default(), events);
        stop
    }
}

impl AnswerDecoder {
    fn apply_chunk(
        &mut self,
        line: CompletionChunk<'_>,
        data: &str,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), StreamError> {
        let CompletionChunk { id, object, model, choices, usage, timings, error, x_groq } = line;
        let (groq_usage, groq_error) = x_groq.map_or((None, None), |groq| (groq.usage, groq.error));
        // Requests ask for one choice; ignore any other.
        let choice = choices.into_iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0);
        let choice_error = choice.as_ref().and_then(|choice| choice.error);
        if let Some(error) = [error, groq_error, choice_error].into_iter().flatten().find(json::is_error) {
            return Err(json::parse_error(error.get()));
        }
        if object.as_deref() == Some("error") {
            return Err(json::parse_error(data)); // vLLM
        }
        self.start_message(id, model, choice.is_some(), events);
        let mut choice_usage = None;
        if let Some(Choice { index: _, delta, message, finish_reason, usage, error: _ }) = choice {
            choice_usage = usage;
            if let Some(delta) = delta.or(message) {
                self.apply_delta(delta, events)?;
            }
            self.record_finish_reason(&finish_reason, data, events)?;
        }
        for usage in [groq_usage, choice_usage, usage].into_iter().flatten() {
            self.report.merge(usage.get());
        }
        if let Some(timings) = timings {
            self.report.merge_as("timings", timings.get()); // llama.cpp
        }
        if [groq_usage, choice_usage, usage, timings].iter().any(Option::is_some) {
            self.emit_usage(events);
        }
        Ok(())
    }

    /// Emits the start event, once. Skips Azure's first chunk, about its content filter, which has
    /// neither id nor choices.
    fn start_message(
        &mut self,
        id: Option<Str<'_>>,
        model: Option<Str<'_>>,
        answers: bool,
        events: &mut Vec<AnswerEvent>,
    ) {
        if self.id.is_none() && (answers || !or_empty(&id).is_empty()) {
            let id: String = id.unwrap_or_default().into();
            self.id = Some(id.clone());
            events.push(AnswerEvent::Start { id, model: model.unwrap_or_default().into() });
        }
    }

    fn apply_delta(&mut self, delta: Delta<'_>, events: &mut Vec<AnswerEvent>) -> Result<(), StreamError> {
        let Delta { content, reasoning_content, reasoning, refusal, tool_calls } = delta;
        // Some servers send the same text in both fields.
        for thought in [reasoning_content, reasoning].into_iter().flatten() {
            if self.emit_reasoning(&thought, events) {
                break;
            }
        }
        match content {
            Some(Content::Text(text)) => self.splitter.push(&text, events),
            Some(Content::Parts(parts)) => {
                for ContentPart { text, thinking } in parts {
                    if let Some(thought) = thinking {
                        self.emit_reasoning(&thought, events);
                    }
                    self.splitter.push(or_empty(&text), events);
                }
            }
            None => {}
        }
        if let Some(refusal) = refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.splitter.push(&refusal, events);
        }
        for CallDelta { index, id, function } in tool_calls.into_iter().flatten() {
            self.splitter.flush(events);
            let (name, raw) = function.map_or((None, None), |function| (function.name, function.arguments));
            let json = raw.map_or(Ok(Default::default()), parse_arguments)?;
            let piece = CallFragment { index, id: or_empty(&id), name: or_empty(&name), arguments: &json };
            self.calls.add_fragment(&piece, self.id.as_deref().unwrap_or_default(), events)?;
        }
        Ok(())
    }

    fn record_finish_reason(
        &mut self,
        word: &Option<Str<'_>>,
        data: &str,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), StreamError> {
        match or_empty(word) {
            "" => {}
            "error" => return Err(StreamError::from_provider("error", data)), // Mistral
            word => {
                self.splitter.flush(events);
                self.stop = Some(StopReason::from_provider(word));
            }
        }
        Ok(())
    }

    /// Emits the usage if it changed: some servers repeat it with every chunk.
    fn emit_usage(&mut self, events: &mut Vec<AnswerEvent>) {
        let usage = usage::from_fields(&self.report);
        if usage != ReportedUsage::default() && self.last_usage.as_ref() != Some(&usage) {
            self.last_usage = Some(usage.clone());
            events.push(AnswerEvent::Usage(usage));
        }
    }

    /// Emits reasoning. Returns whether there was any.
    fn emit_reasoning(&mut self, thought: &Content<'_>, events: &mut Vec<AnswerEvent>) -> bool {
        let mut text = String::new();
        thought.text(&mut text);
        if text.is_empty() {
            return false;
        }
        self.splitter.flush(events);
        events.push(AnswerEvent::Reasoning(text));
        true
    }
}

#[cfg(test)]
mod tests;

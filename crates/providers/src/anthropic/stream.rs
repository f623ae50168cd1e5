//! Decodes answers of Anthropic Messages, streamed or whole.

mod web_search; // calls, results and citations of the server's own search

use std::collections::BTreeMap;
use std::mem;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use self::web_search::{CitedText, ServerCall};
use super::{report, usage};
use crate::limits::{MAX_PARTS, too_long};
use crate::stream::json::{self, Str, or_empty, parse_arguments};
use crate::stream::{AnswerParser, StreamEnd, StreamProgress};
use crate::usage::UsageFields;
use crate::{AnswerEvent, StopReason, StreamError};

/// The JSON of one event. All types share one struct, because a tagged enum would parse each event
/// twice. Rare fields are boxed, because a large struct would be moved for every word of text.
#[derive(Debug, Deserialize)]
struct EventPayload<'a> {
    #[serde(default)]
    r#type: EventType,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<Box<Message<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EventType {
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    Error,
    /// Pings, and types that did not exist when this was written.
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    r#type: DeltaType,
    /// Each type of delta has its own name for its one text field.
    #[serde(borrow, alias = "thinking", alias = "signature", alias = "partial_json")]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DeltaType {
    TextDelta,
    ThinkingDelta,
    SignatureDelta,
    InputJsonDelta,
    CitationsDelta,
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct ContentBlock<'a> {
    #[serde(borrow, default)]
    r#type: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    citations: Option<Vec<Value>>,
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

/// A message: complete in a body, without content in `message_start`.
#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    model: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    stop_reason: Option<Str<'a>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    /// Absent if the server does not know the field; `null` if it found no difference.
    #[serde(borrow, default, deserialize_with = "present")]
    diagnostics: Option<&'a RawValue>,
    #[serde(borrow)]
    input_transformations: Option<&'a RawValue>,
}

/// Tells a field that is `null` from one that is absent.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A content block that has started but not stopped.
#[derive(Debug)]
enum OpenBlock {
    Text(CitedText),
    Reasoning { signature: String },
    Call { index: usize, whole: String },
    ServerCall(ServerCall),
    Unknown,
}

/// Decodes an answer event by event.
#[derive(Debug, Default)]
pub struct AnswerDecoder {
    started: bool,
    open_blocks: BTreeMap<u64, OpenBlock>,
    calls: usize,
    report: UsageFields,
    stop: Option<StopReason>,
}

impl AnswerParser for AnswerDecoder {
    fn read(&mut self, data: &str, events: &mut Vec<AnswerEvent>) -> Result<StreamProgress, StreamError> {
        let line: EventPayload<'_> = match serde_json::from_str(data) {
            Ok(line) => line,
            Err(error) => return skip_or_reject(data, &error),
        };
        match line.r#type {
            EventType::ContentBlockDelta => {
                self.apply_delta(line.index, line.delta.unwrap_or_default(), events)?;
            }
            EventType::MessageStart => {
                if let Some(message) = line.message {
                    self.start_message(*message, events);
                }
            }
            EventType::ContentBlockStart => {
                if let Some(block) = line.content_block {
                    self.open_block(line.index, block, events)?;
                }
            }
            EventType::ContentBlockStop => self.close_block(line.index, events),
            EventType::MessageDelta => {
                self.record_stop_reason(&line.delta.unwrap_or_default().stop_reason);
                self.record_usage(line.usage, events);
            }
            EventType::MessageStop => return Ok(StreamProgress::Over),
            EventType::Error => return Err(json::parse_error(data)),
            EventType::Other => {}
        }
        Ok(StreamProgress::More)
    }

    fn read_body(&mut self, body: &str, events: &mut Vec<AnswerEvent>) -> Result<(), StreamError> {
        let message: Message<'_> =
            serde_json::from_str(body).map_err(|error| StreamError::malformed(error, body))?;
        if message.content.is_none() {
            return Err(json::parse_error(body));
        }
        for (index, block) in (0..).zip(self.start_message(message, events)) {
            self.open_block(index, block, events)?;
            self.close_block(index, events);
        }
        Ok(())
    }

    fn finish(&mut self, end: StreamEnd, _events: &mut Vec<AnswerEvent>) -> StopReason {
        match (self.stop.take(), end) {
            (Some(stop), _) => stop,
            (None, StreamEnd::Marked) if self.calls > 0 => StopReason::ToolUse,
            (None, StreamEnd::Marked) => StopReason::End,
            (None, StreamEnd::Unmarked) => StopReason::Cut,
        }
    }
}

impl AnswerDecoder {
    fn start_message<'a>(
        &mut self,
        message: Message<'a>,
        events: &mut Vec<AnswerEvent>,
    ) -> Vec<&'a RawValue> {
        let Message { id, model, content, stop_reason, usage, diagnostics, input_transformations } = message;
        if !mem::replace(&mut self.started, true) {
            let (id, model) = (id.unwrap_or_default().into(), model.unwrap_or_default().into());
            events.push(AnswerEvent::Start { id, model });
        }
        self.record_stop_reason(&stop_reason);
        self.record_usage(usage, events);
        events.extend(diagnostics.and_then(report::parse_diagnosis).map(AnswerEvent::CacheDiagnosis));
        let dropped = input_transformations.map(report::parse_transformations).unwrap_or_default();
        if !dropped.is_empty() {
            events.push(AnswerEvent::DroppedReasoning(dropped));
        }
        content.unwrap_or_default()
    }

    fn record_stop_reason(&mut self, word: &Option<Str<'_>>) {
        if let Some(word) = word {
            self.stop = Some(StopReason::from_provider(word));
        }
    }

    fn record_usage(&mut self, usage: Option<&RawValue>, events: &mut Vec<AnswerEvent>) {
        if let Some(usage) = usage {
            self.report.merge(usage.get());
            events.push(AnswerEvent::Usage(usage::from_fields(&self.report)));
        }
    }

    fn open_block(
        &mut self,
        index: u64,
        raw: &RawValue,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), StreamError> {
        let wrong = |error| StreamError::malformed(error, raw.get());
        let block: ContentBlock<'_> = serde_json::from_str(raw.get()).map_err(wrong)?;
        if self.open_blocks.contains_key(&index) {
            return Ok(()); // a duplicate event
        }
        if self.open_blocks.len() == MAX_PARTS {
            return Err(too_long(MAX_PARTS, "open blocks"));
        }
        let open = match &*block.r#type {
            "text" => {
                let open = CitedText::new(or_empty(&block.text), block.citations);
                push_text(AnswerEvent::Text, block.text, events);
                OpenBlock::Text(open)
            }
            "thinking" => {
                push_text(AnswerEvent::Reasoning, block.thinking, events);
                OpenBlock::Reasoning { signature: block.signature.unwrap_or_default().into() }
            }
            "redacted_thinking" => {
                events.push(AnswerEvent::RedactedReasoning(block.data.unwrap_or_default().into()));
                OpenBlock::Unknown
            }
            "tool_use" => {
                let index = self.calls;
                self.calls += 1;
                let id = match or_empty(&block.id) {
                    "" => format!("call_{index}"),
                    id => id.to_owned(),
                };
                events.push(AnswerEvent::CallStart {
                    index,
                    id,
                    name: block.name.unwrap_or_default().into(),
                });
                let whole = block.input.map_or(Ok(Default::default()), parse_arguments)?.into_owned();
                OpenBlock::Call { index, whole }
            }
            "server_tool_use" => {
                OpenBlock::ServerCall(ServerCall::new(serde_json::from_str(raw.get()).map_err(wrong)?))
            }
            "web_search_tool_result" => {
                web_search::push_result(&serde_json::from_str(raw.get()).map_err(wrong)?, events);
                OpenBlock::Unknown
            }
            other => {
                events.push(AnswerEvent::SkippedPart { part_type: other.to_owned() });
                OpenBlock::Unknown
            }
        };
        self.open_blocks.insert(index, open);
        Ok(())
    }

    fn apply_delta(
        &mut self,
        index: u64,
        delta: Delta<'_>,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), StreamError> {
        match (self.open_blocks.get_mut(&index), delta.r#type) {
            (Some(OpenBlock::Unknown), _) => {}
            (open, DeltaType::TextDelta) => {
                if let Some(OpenBlock::Text(open)) = open {
                    open.push_text(or_empty(&delta.text));
                }
                push_text(AnswerEvent::Text, delta.text, events);
            }
            (Some(OpenBlock::Text(open)), DeltaType::CitationsDelta) => {
                let citation = delta.citation.map(|citation| serde_json::from_str(citation.get()));
                let wrong = |error| StreamError::malformed(error, delta.citation.map_or("", RawValue::get));
                open.push_citation(citation.transpose().map_err(wrong)?);
            }
            (_, DeltaType::ThinkingDelta) => push_text(AnswerEvent::Reasoning, delta.text, events),
            // Collected until the block ends: an incomplete signature is useless.
            (Some(OpenBlock::Reasoning { signature }), DeltaType::SignatureDelta) => {
                signature.push_str(or_empty(&delta.text));
            }
            (Some(OpenBlock::Call { index, whole }), DeltaType::InputJsonDelta) => {
                let json: String = delta.text.unwrap_or_default().into();
                if !json.is_empty() {
                    whole.clear(); // the input at the start was a placeholder
                    events.push(AnswerEvent::CallDelta { index: *index, json });
                }
            }
            (Some(OpenBlock::ServerCall(call)), DeltaType::InputJsonDelta) => {
                call.push(or_empty(&delta.text));
            }
            (_, DeltaType::InputJsonDelta) => {
                let json = or_empty(&delta.text);
                return Err(StreamError::malformed("arguments of a tool call that never began", json));
            }
            _ => {}
        }
        Ok(())
    }

    fn close_block(&mut self, index: u64, events: &mut Vec<AnswerEvent>) {
        match self.open_blocks.remove(&index) {
            Some(OpenBlock::Reasoning { signature }) if !signature.is_empty() => {
                events.push(AnswerEvent::Signature(signature));
            }
            Some(OpenBlock::Call { index, whole }) => {
                if !whole.is_empty() && whole != "{}" {
                    events.push(AnswerEvent::CallDelta { index, json: whole });
                }
                events.push(AnswerEvent::CallEnd { index });
            }
            Some(OpenBlock::ServerCall(call)) => call.finish(events),
            Some(OpenBlock::Text(text)) => text.finish(events),
            _ => {}
        }
    }
}

fn push_text(make: fn(String) -> AnswerEvent, text: Option<Str<'_>>, events: &mut Vec<AnswerEvent>) {
    let text: String = text.unwrap_or_default().into();
    if !text.is_empty() {
        events.push(make(text));
    }
}

/// Handles an event that does not parse. Only known types must: future types may have other shapes,
/// and are skipped.
fn skip_or_reject(data: &str, error: &serde_json::Error) -> Result<StreamProgress, StreamError> {
    #[derive(Deserialize)]
    struct OnlyType {
        #[serde(default)]
        r#type: EventType,
    }
    match serde_json::from_str::<OnlyType>(data) {
        Ok(OnlyType { r#type: EventType::Other }) => Ok(StreamProgress::More),
        Ok(OnlyType { r#type: EventType::Error }) => Err(json::parse_error(data)),
        _ => Err(StreamError::malformed(error, data)),
    }
}

#[cfg(test)]
mod tests;

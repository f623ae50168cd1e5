//! Decodes answers of the Responses API, streamed or whole.
//!
//! An item is known by its id, or by its index where a server sends no ids. Each part of an item is
//! taken from its first source: the deltas, the `….done` event, the complete item. So streams that
//! leave out some of them, or repeat them, give the same answer.

mod payload; // the JSON of events and items

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{Json, ProviderBlock, ProviderBlockKind, WebSource};
use serde_json::value::RawValue;

use self::payload::{
    Annotation, EventPayload, EventType, Item, ItemFields, ItemKind, Part, Response, skip_or_reject,
};
use super::{report, usage};
use crate::limits::{MAX_PARTS, too_long};
use crate::stream::json::{self, Str, or_empty};
use crate::stream::{AnswerParser, StreamEnd, StreamProgress};
use crate::usage::UsageFields;
use crate::{AnswerEvent, StopReason, StreamError};

/// Between two summaries of one reasoning item, and between two messages of one answer.
const SEPARATOR: &str = "\n\n";

/// Decodes an answer event by event.
#[derive(Debug, Default)]
pub struct AnswerDecoder {
    started: bool,
    items: BTreeMap<ItemKey, ItemState>,
    calls: usize,
    /// The last text or reasoning that was emitted, to know where a separator belongs.
    last_text: Option<(ItemKey, TextPart)>,
    refused: bool,
    report: UsageFields,
    stop: Option<StopReason>,
}

/// What an item is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ItemKey {
    Id(String),
    Index(u64),
}

#[derive(Debug, Default)]
struct ItemState {
    /// The number of the call in this answer; `None` until it has begun, and for other items.
    call: Option<usize>,
    /// The parts whose text has been emitted, at least in part.
    emitted: BTreeSet<TextPart>,
    is_skipped: bool,
    is_done: bool,
}

/// A text within an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TextPart {
    /// A part of a message, by `content_index`.
    Content(u64),
    /// A summary of reasoning, by `summary_index`.
    Summary(u64),
    /// Open reasoning, by `content_index`.
    Reasoning(u64),
    /// The arguments of a call.
    Arguments,
}

impl AnswerParser for AnswerDecoder {
    fn read(&mut self, data: &str, events: &mut Vec<AnswerEvent>) -> Result<StreamProgress, StreamError> {
        if self.items.len() > MAX_PARTS {
            return Err(too_long(MAX_PARTS, "items"));
        }
        let event: EventPayload<'_> = match serde_json::from_str(data) {
            Ok(event) => event,
            Err(error) => return skip_or_reject(data, &error),
        };
        let content = TextPart::Content(event.content_index);
        let summary = TextPart::Summary(event.summary_index);
        let reasoning = TextPart::Reasoning(event.content_index);
        match event.r#type {
            EventType::OutputTextDelta => self.push_delta(&event, content, events),
            EventType::RefusalDelta => {
                self.refused = true;
                self.push_delta(&event, content, events);
            }
            EventType::SummaryDelta => self.push_delta(&event, summary, events),
            EventType::ReasoningDelta => self.push_delta(&event, reasoning, events),
            EventType::ArgumentsDelta => self.push_delta(&event, TextPart::Arguments, events),
            EventType::OutputTextDone => self.push_rest(&event, &event.text, content, events),
            EventType::RefusalDone => {
                self.refused = true;
                self.push_rest(&event, &event.refusal, content, events);
            }
            EventType::SummaryDone => self.push_rest(&event, &event.text, summary, events),
            EventType::ReasoningDone => self.push_rest(&event, &event.text, reasoning, events),
            EventType::ArgumentsDone => self.push_rest(&event, &event.arguments, TextPart::Arguments, events),
            EventType::ItemAdded => {
                if let Some(item) = event.item {
                    self.begin_item(event.output_index, &Item::parse(item)?, events);
                }
            }
            EventType::ItemDone => {
                if let Some(item) = event.item {
                    self.finish_item(event.output_index, &Item::parse(item)?, events);
                }
            }
            EventType::Created | EventType::InProgress => {
                if let Some(response) = &event.response {
                    self.start(&response.id, &response.model, events);
                }
            }
            EventType::Completed | EventType::Incomplete | EventType::Failed => {
                if let Some(response) = &event.response {
                    self.finish_response(response, data, events)?;
                }
                // A server that names only the event has ended all the same.
                self.stop.get_or_insert_with(|| match event.r#type {
                    EventType::Completed => StopReason::End,
                    _ => StopReason::Other("incomplete".into()),
                });
                return Ok(StreamProgress::Over);
            }
            EventType::Error => return Err(json::parse_error(data)),
            EventType::Other => {}
        }
        Ok(StreamProgress::More)
    }

    fn read_body(&mut self, body: &str, events: &mut Vec<AnswerEvent>) -> Result<(), StreamError> {
        let response: Response<'_> =
            serde_json::from_str(body).map_err(|error| StreamError::malformed(error, body))?;
        if response.output.is_none() {
            return Err(json::parse_error(body));
        }
        self.finish_response(&response, body, events)
    }

    fn finish(&mut self, _end: StreamEnd, _events: &mut Vec<AnswerEvent>) -> StopReason {
        match self.stop.take() {
            Some(StopReason::End) if self.refused => StopReason::Refusal,
            Some(StopReason::End) if self.calls > 0 => StopReason::ToolUse,
            Some(stop) => stop,
            // Only the last event of the response says that it is complete, no marker after it.
            None => StopReason::Cut,
        }
    }
}

impl AnswerDecoder {
    fn start(&mut self, id: &Option<Str<'_>>, model: &Option<Str<'_>>, events: &mut Vec<AnswerEvent>) {
        if !std::mem::replace(&mut self.started, true) {
            let (id, model) = (or_empty(id).to_owned(), or_empty(model).to_owned());
            events.push(AnswerEvent::Start { id, model });
        }
    }

    /// Reads a whole response: the one that ends a stream, or one that was not streamed.
    fn finish_response(
        &mut self,
        response: &Response<'_>,
        data: &str,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), StreamError> {
        if let Some(error) = response.error.as_ref().filter(|error| json::is_error(error)) {
            return Err(json::parse_error(error.get()));
        }
        self.start(&response.id, &response.model, events);
        for (index, item) in (0..).zip(response.output.iter().flatten()) {
            self.finish_item(index, &Item::parse(item)?, events);
        }
        if let Some(usage) = response.usage.filter(|usage: &&RawValue| usage.get() != "null") {
            self.report.merge(usage.get());
            events.push(AnswerEvent::Usage(usage::from_fields(&self.report)));
        }
        let diagnosis = response.prompt_cache_diagnostics.and_then(report::parse_diagnosis);
        events.extend(diagnosis.map(AnswerEvent::CacheDiagnosis));
        self.stop = match or_empty(&response.status) {
            "completed" => Some(StopReason::End),
            "incomplete" => {
                let details = response.incomplete_details.as_ref();
                let reason = details.map_or("", |details| or_empty(&details.reason));
                Some(match reason {
                    "max_output_tokens" => StopReason::Length,
                    "" => StopReason::Other("incomplete".into()),
                    reason => StopReason::from_provider(reason),
                })
            }
            "failed" => return Err(json::parse_error(data)),
            "cancelled" => Some(StopReason::Other("cancelled".into())),
            _ => self.stop.take(), // left out, as by small servers, or still running
        };
        Ok(())
    }

    /// The state of an item that is not complete yet. `None`: what comes of it is ignored.
    fn open_item(&mut self, key: &ItemKey) -> Option<&mut ItemState> {
        let state = self.items.entry(key.clone()).or_default();
        (!state.is_done && !state.is_skipped).then_some(state)
    }

    fn begin_item(&mut self, index: u64, item: &Item<'_>, events: &mut Vec<AnswerEvent>) {
        self.start(&None, &None, events); // of a server that does not say that it begins
        let next = self.calls;
        let Some(state) = self.open_item(&item_key(&item.id, index)) else { return };
        match &item.kind {
            ItemKind::FunctionCall if state.call.is_none() => {
                state.call = Some(next);
                self.calls += 1;
                let id = match (or_empty(&item.fields.call_id), or_empty(&item.id)) {
                    ("", "") => format!("call_{next}"),
                    ("", id) | (id, _) => id.to_owned(),
                };
                let name = or_empty(&item.fields.name).to_owned();
                events.push(AnswerEvent::CallStart { index: next, id, name });
                self.last_text = None;
            }
            ItemKind::FunctionCall | ItemKind::Message | ItemKind::Reasoning | ItemKind::WebSearch(_) => {}
            ItemKind::Other(name) => {
                state.is_skipped = true;
                events.push(AnswerEvent::SkippedPart { part_type: name.clone() });
            }
        }
    }

    /// Emits what has not been emitted of a complete item, and ends it.
    fn finish_item(&mut self, index: u64, item: &Item<'_>, events: &mut Vec<AnswerEvent>) {
        self.begin_item(index, item, events);
        let key = item_key(&item.id, index);
        if self.open_item(&key).is_none() {
            return;
        }
        let ItemFields { call_id: _, name: _, arguments, content, summary, encrypted_content } = &item.fields;
        let text = |part: &Part<'_>| or_empty(&part.text).to_owned();
        match &item.kind {
            ItemKind::Message => {
                for (index, part) in (0..).zip(content.iter().flatten()) {
                    let refusal = or_empty(&part.refusal);
                    self.refused |= !refusal.is_empty();
                    self.emit_whole(&key, TextPart::Content(index), &text(part), events);
                    self.emit_whole(&key, TextPart::Content(index), refusal, events);
                    let sources = sources(part);
                    if !sources.is_empty() {
                        events.push(AnswerEvent::Sources(sources));
                    }
                }
            }
            ItemKind::Reasoning => {
                for (index, part) in (0..).zip(summary.iter().flatten()) {
                    self.emit_whole(&key, TextPart::Summary(index), &text(part), events);
                }
                for (index, part) in (0..).zip(content.iter().flatten()) {
                    self.emit_whole(&key, TextPart::Reasoning(index), &text(part), events);
                }
                // Only a complete item has it complete.
                let encrypted = or_empty(encrypted_content);
                if !encrypted.is_empty() {
                    events.push(AnswerEvent::Signature(encrypted.to_owned()));
                    self.last_text = None;
                }
            }
            ItemKind::FunctionCall => {
                self.emit_whole(&key, TextPart::Arguments, or_empty(arguments), events);
                let call = self.items.get(&key).and_then(|state| state.call);
                events.extend(call.map(|index| AnswerEvent::CallEnd { index }));
            }
            ItemKind::WebSearch(search) => {
                // Only searches are billed; pages of them that the model opens are not.
                if search["action"]["type"] == "search" {
                    let query = search["action"]["query"].as_str().unwrap_or_default().to_owned();
                    events.push(AnswerEvent::WebSearch { query });
                }
                let id = or_empty(&item.id).into();
                let (kind, json) = (ProviderBlockKind::Search, Json::new(search));
                events.push(AnswerEvent::ProviderBlock(ProviderBlock { kind, id, json }));
                self.last_text = None;
            }
            ItemKind::Other(_) => {}
        }
        self.items.entry(key).or_default().is_done = true;
    }

    fn push_delta(&mut self, event: &EventPayload<'_>, part: TextPart, events: &mut Vec<AnswerEvent>) {
        self.emit(&event.key(), part, or_empty(&event.delta), events);
    }

    /// The whole text of a part, at its end: emitted if its deltas did not come.
    fn push_rest(
        &mut self,
        event: &EventPayload<'_>,
        text: &Option<Str<'_>>,
        part: TextPart,
        events: &mut Vec<AnswerEvent>,
    ) {
        self.emit_whole(&event.key(), part, or_empty(text), events);
    }

    fn emit_whole(&mut self, key: &ItemKey, part: TextPart, text: &str, events: &mut Vec<AnswerEvent>) {
        if self.items.get(key).is_none_or(|state| !state.emitted.contains(&part)) {
            self.emit(key, part, text, events);
        }
    }

    fn emit(&mut self, key: &ItemKey, part: TextPart, text: &str, events: &mut Vec<AnswerEvent>) {
        if text.is_empty() {
            return;
        }
        self.start(&None, &None, events);
        let Some(state) = self.open_item(key) else { return };
        if part == TextPart::Arguments {
            // Arguments of a call that has not begun: they come whole with the complete item.
            let Some(index) = state.call else { return };
            state.emitted.insert(part);
            events.push(AnswerEvent::CallDelta { index, json: text.to_owned() });
            return;
        }
        state.emitted.insert(part);
        let is_message = |part: &TextPart| matches!(part, TextPart::Content(_));
        let place = (key.clone(), part);
        let follows = self.last_text.as_ref().is_some_and(|last| {
            // Two parts of one message are one text; two messages, or two summaries, are not.
            let is_same_message = last.0 == place.0 && is_message(&part);
            *last != place && is_message(&last.1) == is_message(&part) && !is_same_message
        });
        let text = if follows { format!("{SEPARATOR}{text}") } else { text.to_owned() };
        events.push(if is_message(&part) { AnswerEvent::Text(text) } else { AnswerEvent::Reasoning(text) });
        self.last_text = Some(place);
    }
}

/// The pages that a text cites.
fn sources(part: &Part<'_>) -> Vec<WebSource> {
    let source = |annotation: &Annotation<'_>| {
        let (title, url) = (or_empty(&annotation.title).to_owned(), or_empty(&annotation.url).to_owned());
        (!url.is_empty()).then_some(WebSource { title, url })
    };
    part.annotations.iter().flatten().filter_map(source).collect()
}

fn item_key(id: &Option<Str<'_>>, index: u64) -> ItemKey {
    match or_empty(id) {
        "" => ItemKey::Index(index),
        id => ItemKey::Id(id.to_owned()),
    }
}

impl EventPayload<'_> {
    fn key(&self) -> ItemKey {
        item_key(&self.item_id, self.output_index)
    }
}

#[cfg(test)]
mod tests;

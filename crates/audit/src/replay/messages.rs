//! [`ConvertedEntries`]: recorded entries as messages of our own agent.
//!
//! The messages have the recorded texts, so that each counts what was billed for it. Calls get ids of
//! their own, since recordings repeat ids. What our agent could not send as it is (a call without a
//! result, reasoning whose signature is not recorded, an image without its data) becomes text.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_context::knowledge::FileObservation;
use hardpan_prompt::{AgentMessage, Json, MessageBody, MessagePart, Text, ToolCall};
use serde_json::{Value, json};

use crate::file_observer::FileObserver;
use crate::import::{EntryContent, RecordedCall, RecordedPart, RecordedResult, Recording, Speaker};

/// The size assumed for an image, in counted tokens: about a megapixel.
const IMAGE_TOKENS: usize = 1200;
/// What a block costs in addition to its text, in counted tokens.
const BLOCK_FRAME_TOKENS: usize = 8;

/// A part of a message that the bill gives a size.
#[derive(Clone, Debug)]
pub(crate) enum SizedPart {
    Text(Text),
    Call { name: Arc<str>, arguments: Json },
}

/// A message, its parts, and their tokens by our own counter.
#[derive(Clone, Debug)]
pub(crate) struct ConvertedMessage {
    pub message: AgentMessage,
    pub parts: Vec<(SizedPart, usize)>,
    /// All its tokens by our own counter.
    pub counted: usize,
    /// What the message tells about files.
    pub observations: Observations,
}

/// What a message tells about files.
#[derive(Clone, Debug)]
pub(crate) enum Observations {
    /// As our own agent recorded it.
    Recorded(Vec<FileObservation>),
    /// As the texts tell: indexes of [`FileObserver::observations`], which may be completed later.
    Observed(std::ops::Range<usize>),
}

/// Converts the entries of a recording.
pub(crate) struct ConvertedEntries<'a> {
    recording: &'a Recording,
    count: &'a dyn Fn(&str) -> usize,
    /// The call that each result answers, by the position of the result: entry and part.
    calls: BTreeMap<(usize, usize), (usize, usize)>,
    answered: BTreeSet<(usize, usize)>,
    pub observer: FileObserver,
}

impl<'a> ConvertedEntries<'a> {
    pub fn new(recording: &'a Recording, count: &'a dyn Fn(&str) -> usize) -> Self {
        let calls = pair_calls(recording);
        let answered = calls.values().copied().collect();
        let observer = FileObserver::new(recording.cwd.as_deref());
        ConvertedEntries { recording, count, calls, answered, observer }
    }

    /// The messages of an entry. Entries must be converted in the order in which they happened.
    pub fn convert(&mut self, entry: usize) -> Vec<ConvertedMessage> {
        let recorded = &self.recording.entries[entry];
        if let Some(message) = &recorded.message {
            let observations = self.observations_of_own(entry);
            let (message, parts) = ((**message).clone(), Vec::new());
            let counted = self.count_own(entry);
            return vec![ConvertedMessage { message, parts, counted, observations }];
        }
        match &recorded.content {
            EntryContent::Compaction { summary, .. } => {
                vec![self.user_message(entry, &[RecordedPart::Text(summary.clone())])]
            }
            EntryContent::Message { speaker, parts } => {
                let mut messages = Vec::new();
                let is_result = |part: &RecordedPart| matches!(part, RecordedPart::Result(_));
                if *speaker == Speaker::Assistant {
                    messages.extend(self.assistant_message(entry, parts));
                }
                for (index, part) in parts.iter().enumerate() {
                    if let RecordedPart::Result(result) = part {
                        messages.push(self.result_message(entry, index, result));
                    }
                }
                let others: Vec<RecordedPart> =
                    parts.iter().filter(|part| !is_result(part)).cloned().collect();
                if *speaker != Speaker::Assistant && !others.is_empty() {
                    messages.push(self.user_message(entry, &others));
                }
                messages
            }
        }
    }

    fn count_text(&self, text: &str) -> usize {
        (self.count)(text) + BLOCK_FRAME_TOKENS
    }

    fn user_message(&self, entry: usize, parts: &[RecordedPart]) -> ConvertedMessage {
        let texts: Vec<(Text, usize)> =
            parts.iter().enumerate().filter_map(|(index, part)| self.as_text(entry, index, part)).collect();
        let content = texts.iter().map(|(text, _)| MessagePart::text(text.clone())).collect();
        ConvertedMessage {
            message: AgentMessage::new(format!("e{entry}").as_str(), MessageBody::User { content }),
            counted: texts.iter().map(|(_, counted)| counted).sum(),
            parts: texts.into_iter().map(|(text, counted)| (SizedPart::Text(text), counted)).collect(),
            observations: Observations::Recorded(Vec::new()),
        }
    }

    /// A part as plain text. `None` if it is blank, since no request contains blank text.
    fn as_text(&self, entry: usize, index: usize, part: &RecordedPart) -> Option<(Text, usize)> {
        let (text, counted) = match part {
            RecordedPart::Text(text) | RecordedPart::Reasoning(text) => {
                (text.to_string(), self.count_text(text))
            }
            RecordedPart::Image { .. } => (format!("[image {entry}.{index}]"), IMAGE_TOKENS),
            RecordedPart::Call(call) => {
                let text = format!("{} {}", call.tool, call.arguments);
                let counted = self.count_text(&text);
                (text, counted)
            }
            RecordedPart::Result(result) => (result.text.to_string(), self.count_text(&result.text)),
        };
        (!text.trim().is_empty()).then(|| (Text::new(text), counted))
    }

    fn assistant_message(&self, entry: usize, parts: &[RecordedPart]) -> Option<ConvertedMessage> {
        let (mut content, mut sized) = (Vec::new(), Vec::new());
        for (index, part) in parts.iter().enumerate() {
            match part {
                RecordedPart::Call(call) if self.answered.contains(&(entry, index)) => {
                    let (name, arguments) = (valid_tool_name(&call.tool), object_arguments(call));
                    let counted =
                        (self.count)(&call.arguments) + (self.count)(&call.tool) + 2 * BLOCK_FRAME_TOKENS;
                    content.push(MessagePart::ToolCall(ToolCall {
                        id: call_id((entry, index)),
                        name: name.clone(),
                        arguments: arguments.clone(),
                        result: None,
                    }));
                    sized.push((SizedPart::Call { name, arguments }, counted));
                }
                RecordedPart::Result(_) => {}
                part => {
                    let Some((text, counted)) = self.as_text(entry, index, part) else { continue };
                    content.push(MessagePart::text(text.clone()));
                    sized.push((SizedPart::Text(text), counted));
                }
            }
        }
        let body = MessageBody::Assistant { content, provider: None, model: None, stop_reason: None };
        (!sized.is_empty()).then(|| ConvertedMessage {
            message: AgentMessage::new(format!("e{entry}").as_str(), body),
            counted: sized.iter().map(|(_, counted)| counted).sum(),
            parts: sized,
            observations: Observations::Recorded(Vec::new()),
        })
    }

    fn result_message(&mut self, entry: usize, index: usize, result: &RecordedResult) -> ConvertedMessage {
        let mut text =
            if result.text.trim().is_empty() { "(nothing)".to_owned() } else { result.text.to_string() };
        (0..result.images.len())
            .for_each(|image| text.push_str(&format!("\n[image {entry}.{index}.{image}]")));
        let text = Text::new(text);
        let counted = self.count_text(&result.text) + result.images.len() * IMAGE_TOKENS;
        let id = format!("e{entry}.{index}");
        let content = vec![MessagePart::text(text.clone())];
        let call = self.calls.get(&(entry, index)).copied();
        let observations = call.and_then(|call| recorded_call(self.recording, call));
        let observations = observations.map_or(0..0, |call| self.observer.observe(call, result));
        let body = match call {
            Some(call) => MessageBody::ToolResult {
                call_id: call_id(call),
                tool_name: None,
                content,
                is_error: result.failed,
                not_run: None,
            },
            None => MessageBody::User { content },
        };
        ConvertedMessage {
            message: AgentMessage::new(id.as_str(), body),
            parts: vec![(SizedPart::Text(text), counted)],
            counted,
            observations: Observations::Observed(observations),
        }
    }

    /// The tokens of an entry of our own agent, as requests count them.
    fn count_own(&self, entry: usize) -> usize {
        let EntryContent::Message { parts, .. } = &self.recording.entries[entry].content else { return 0 };
        let count = |part: &RecordedPart| match part {
            RecordedPart::Text(text) | RecordedPart::Reasoning(text) => (self.count)(text),
            RecordedPart::Image { .. } => IMAGE_TOKENS,
            RecordedPart::Call(call) => (self.count)(&format!("{}\n{}", call.tool, call.arguments)),
            RecordedPart::Result(result) => (self.count)(&result.text) + result.images.len() * IMAGE_TOKENS,
        };
        parts.iter().map(count).sum()
    }

    /// What an entry of our own agent tells about files. The recorded observations have no texts;
    /// where the call and its result tell the same content, they have it.
    fn observations_of_own(&mut self, entry: usize) -> Observations {
        let recorded = &self.recording.entries[entry];
        let mut observations = recorded.observations.clone();
        let EntryContent::Message { parts, .. } = &recorded.content else {
            return Observations::Recorded(observations);
        };
        for (index, part) in parts.iter().enumerate() {
            let RecordedPart::Result(result) = part else { continue };
            let call = self.calls.get(&(entry, index)).and_then(|call| recorded_call(self.recording, *call));
            let Some(call) = call else { continue };
            let told = self.observer.observe(call, result);
            for observation in &mut observations {
                let texts =
                    self.observer.observations()[told.clone()].iter().filter_map(|told| told.text.as_ref());
                observation.text = texts
                    .flat_map(with_and_without_line_end)
                    .find(|text| observation.hash == Some(text.hash()));
            }
        }
        Observations::Recorded(observations)
    }
}

/// A result does not tell whether the last line of a file has an end.
fn with_and_without_line_end(text: &Text) -> [Text; 2] {
    let without = text.strip_suffix('\n').unwrap_or(text);
    [text.clone(), Text::new(without)]
}

fn recorded_call(recording: &Recording, (entry, part): (usize, usize)) -> Option<&RecordedCall> {
    let EntryContent::Message { parts, .. } = &recording.entries[entry].content else { return None };
    match parts.get(part)? {
        RecordedPart::Call(call) => Some(call),
        _ => None,
    }
}

/// For each result, the call that it answers: the last one before it with its id.
fn pair_calls(recording: &Recording) -> BTreeMap<(usize, usize), (usize, usize)> {
    let mut last: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut pairs = BTreeMap::new();
    for (entry, recorded) in recording.entries.iter().enumerate() {
        let EntryContent::Message { parts, .. } = &recorded.content else { continue };
        for (index, part) in parts.iter().enumerate() {
            match part {
                RecordedPart::Call(call) => drop(last.insert(&call.id, (entry, index))),
                RecordedPart::Result(result) => {
                    if let Some(call) = last.remove(&*result.call) {
                        pairs.insert((entry, index), call);
                    }
                }
                RecordedPart::Text(_) | RecordedPart::Reasoning(_) | RecordedPart::Image { .. } => {}
            }
        }
    }
    pairs
}

fn call_id((entry, part): (usize, usize)) -> Arc<str> {
    format!("c{entry}_{part}").into()
}

/// The name in the form in which every request contains it.
fn valid_tool_name(name: &str) -> Arc<str> {
    let valid = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = name.chars().map(valid).take(64).collect();
    if name.is_empty() { "unknown".into() } else { name.into() }
}

fn object_arguments(call: &RecordedCall) -> Json {
    let value: Option<Value> = serde_json::from_str(&call.arguments).ok();
    Json::new(&value.filter(Value::is_object).unwrap_or_else(|| json!({ "input": &*call.arguments })))
}

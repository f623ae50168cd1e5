//! [`ImportedConversation`]: the conversation of a recording as entries of a session of ours, so that it
//! can be continued.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_economy::cache::Moment;
use hardpan_prompt::{AgentMessage, Json, MessageBody, MessageId, MessagePart, MessageState, Text, ToolCall};
use hardpan_session::{Entry, Record};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::import::{
    AnswerStatus, EntryContent, RecordedCall, RecordedPart, RecordedResult, Recording, Speaker,
};

/// The longest name of a tool that all providers take.
const MAX_TOOL_NAME: usize = 64;

/// What a recording holds and the conversation does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Lines that could not be read.
    pub lines: usize,
    /// Messages on branches that were left, and those of sub-agents.
    pub other_branches: usize,
    /// Encrypted reasoning, which only the agent that recorded it could send back.
    pub encrypted_reasoning: usize,
    /// Images whose data is not in the recording, or in no form that providers take.
    pub images: usize,
    /// Results of calls that are not in the recording.
    pub results_without_call: usize,
    /// Messages that say nothing that a model could read.
    pub empty_messages: usize,
    /// Summaries that only the other agent can read: what they stand for is taken in their place.
    pub unreadable_summaries: usize,
    /// What the other agent told its model about itself, its tools and the folder.
    pub agent_messages: usize,
}

impl LeftOut {
    /// Each kind with its number, for people; only those that there are.
    pub fn lines(&self) -> Vec<String> {
        let LeftOut {
            lines,
            other_branches,
            encrypted_reasoning,
            images,
            results_without_call,
            empty_messages,
            unreadable_summaries,
            agent_messages,
        } = *self;
        let counts = [
            (lines, "lines that cannot be read"),
            (other_branches, "messages of other branches and sub-agents"),
            (encrypted_reasoning, "blocks of encrypted reasoning"),
            (images, "images without usable data"),
            (results_without_call, "results of calls that are not recorded"),
            (empty_messages, "empty messages"),
            (unreadable_summaries, "encrypted summaries; what they stand for is taken whole"),
            (agent_messages, "messages with the other agent's own instructions and tools"),
        ];
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }
}

/// A conversation that another agent recorded.
#[derive(Clone, Debug)]
pub struct ImportedConversation {
    /// Its entries in order, each the parent of the next: the branch that was active last. Empty if
    /// nothing of the recording can be continued.
    pub entries: Vec<Entry>,
    /// How many of them are messages.
    pub messages: usize,
    /// The model of the last answer, as it is recorded.
    pub model: Option<Arc<str>>,
    /// What could not be taken.
    pub left_out: LeftOut,
}

impl ImportedConversation {
    /// Takes the conversation out of a recording. Ids of messages and calls are new: those of other
    /// agents need not be unique, nor such that every provider takes them.
    pub fn new(recording: &Recording) -> Self {
        let is_own = |at: &usize| !recording.side_entries.contains(at);
        let leaf = (0..recording.entries.len()).rev().find(is_own);
        let mut path: Vec<usize> = std::iter::successors(leaf, |&at| recording.entries[at].parent).collect();
        path.reverse();
        let answers = recording.requests.iter().filter_map(|request| Some((request.answer?, request)));
        let mut converter = Converter {
            answers: answers
                .map(|(at, request)| (at, (request.provider.clone(), request.model.clone(), request.status)))
                .collect(),
            ..Converter::default()
        };
        converter.left_out.lines = recording.problems.len();
        converter.left_out.other_branches = recording.entries.len() - path.len();
        for at in path {
            let entry = &recording.entries[at];
            converter.add(at, entry.at.and_then(timestamp), &entry.content);
        }
        let Converter { entries, left_out, model, .. } = converter;
        let messages = entries.iter().filter(|entry| matches!(entry.record, Record::Message(_))).count();
        ImportedConversation { entries, messages, model, left_out }
    }
}

fn timestamp(at: Moment) -> Option<Timestamp> {
    Timestamp::from_millisecond(at.0).ok()
}

/// Provider and model of an answer, and how it ended.
type AnswerMaker = (Option<Arc<str>>, Arc<str>, AnswerStatus);

#[derive(Default)]
struct Converter {
    answers: BTreeMap<usize, AnswerMaker>,
    entries: Vec<Entry>,
    /// The id of the first entry that was made of each recorded one.
    made: BTreeMap<usize, Arc<str>>,
    /// New id and name of each call that waits for its result, by its recorded id.
    open_calls: BTreeMap<Arc<str>, (Arc<str>, Arc<str>)>,
    calls: usize,
    model: Option<Arc<str>>,
    left_out: LeftOut,
}

impl Converter {
    fn add(&mut self, at: usize, time: Option<Timestamp>, content: &EntryContent) {
        match content {
            // What came before is worth more than nothing in its place.
            EntryContent::Compaction { summary, .. } if summary.trim().is_empty() => {
                self.left_out.unreadable_summaries += 1;
            }
            EntryContent::Compaction { summary, kept } => {
                let first_kept =
                    kept.and_then(|kept| self.made.range(kept..).next()).map(|(_, id)| id.clone());
                let summary = Text::new(&**summary);
                self.push(at, time, |_| Record::Compaction {
                    summary,
                    first_kept,
                    tokens_before: None,
                    details: None,
                });
            }
            EntryContent::Message { speaker: Speaker::Assistant, parts } => self.add_answer(at, time, parts),
            EntryContent::Message { speaker: Speaker::Agent, .. } => self.left_out.agent_messages += 1,
            EntryContent::Message { parts, .. } => {
                for result in parts.iter().filter_map(|part| match part {
                    RecordedPart::Result(result) => Some(result),
                    _ => None,
                }) {
                    self.add_result(at, time, result);
                }
                let content: Vec<MessagePart> =
                    parts.iter().filter_map(|part| self.plain_part(part)).collect();
                if !content.is_empty() {
                    self.push_message(at, time, MessageBody::User { content });
                } else if !parts.iter().any(|part| matches!(part, RecordedPart::Result(_))) {
                    self.left_out.empty_messages += 1;
                }
            }
        }
    }

    fn add_answer(&mut self, at: usize, time: Option<Timestamp>, parts: &[RecordedPart]) {
        let mut content = Vec::new();
        for part in parts {
            match part {
                RecordedPart::Call(call) => content.push(MessagePart::ToolCall(self.convert_call(call))),
                // What is encrypted has no words.
                RecordedPart::Reasoning(text) if text.trim().contains(char::is_whitespace) => {
                    content.push(MessagePart::Reasoning {
                        text: Text::new(&**text),
                        signature: None,
                        redacted: None,
                    });
                }
                RecordedPart::Reasoning(_) => self.left_out.encrypted_reasoning += 1,
                RecordedPart::Image { .. } => self.left_out.images += 1,
                part => content.extend(self.plain_part(part)),
            }
        }
        if content.is_empty() {
            self.left_out.empty_messages += 1;
            return;
        }
        let (provider, model, status) = match self.answers.get(&at) {
            Some((provider, model, status)) => (provider.clone(), Some(model.clone()), Some(*status)),
            None => (None, None, None),
        };
        let model = model.filter(|model| !model.is_empty());
        self.model = model.clone().or(self.model.take());
        let stop_reason = match status {
            Some(AnswerStatus::Aborted) => Some("aborted".into()),
            Some(AnswerStatus::Failed) => Some("error".into()),
            _ => None,
        };
        self.push_message(at, time, MessageBody::Assistant { content, provider, model, stop_reason });
    }

    fn add_result(&mut self, at: usize, time: Option<Timestamp>, result: &RecordedResult) {
        let Some((call_id, tool_name)) = self.open_calls.remove(&result.call) else {
            self.left_out.results_without_call += 1;
            self.left_out.images += result.images.len();
            return;
        };
        let text = (!result.text.is_empty()).then(|| MessagePart::text(&*result.text));
        let images = result.images.iter().flatten().cloned().map(MessagePart::Image);
        let content: Vec<MessagePart> = text.into_iter().chain(images).collect();
        self.left_out.images += result.images.iter().filter(|image| image.is_none()).count();
        self.push_message(
            at,
            time,
            MessageBody::ToolResult {
                call_id,
                tool_name: Some(tool_name),
                content,
                is_error: result.failed,
                not_run: None,
            },
        );
    }

    /// Text or an image; none if a model could not read it.
    fn plain_part(&mut self, part: &RecordedPart) -> Option<MessagePart> {
        match part {
            RecordedPart::Text(text) if !text.trim().is_empty() => Some(MessagePart::text(&**text)),
            RecordedPart::Image { image: Some(image), .. } => Some(MessagePart::Image((**image).clone())),
            RecordedPart::Image { image: None, .. } => {
                self.left_out.images += 1;
                None
            }
            _ => None,
        }
    }

    fn convert_call(&mut self, call: &RecordedCall) -> ToolCall {
        self.calls += 1;
        let id: Arc<str> = format!("imported_{}", self.calls).into();
        let name: Arc<str> = tool_name(&call.tool).into();
        self.open_calls.insert(call.id.clone(), (id.clone(), name.clone()));
        let arguments = match serde_json::from_str::<Value>(&call.arguments) {
            Ok(arguments @ Value::Object(_)) => arguments,
            Ok(Value::Null) => json!({}),
            Ok(other) => json!({ "input": other }),
            Err(_) => json!({ "input": &*call.arguments }),
        };
        ToolCall { id, name, arguments: Json::new(&arguments), result: None }
    }

    fn push_message(&mut self, at: usize, time: Option<Timestamp>, body: MessageBody) {
        self.push(at, time, |id| {
            Record::Message(Box::new(AgentMessage {
                id: MessageId(id),
                time,
                state: MessageState::Whole,
                tl_dr: None,
                tier: None,
                unchanged_responses: None,
                facts: None,
                body: Arc::new(body),
            }))
        });
    }

    fn push(&mut self, at: usize, time: Option<Timestamp>, record: impl FnOnce(Arc<str>) -> Record) {
        let id: Arc<str> = format!("i{}", self.entries.len() + 1).into();
        let parent = self.entries.last().map(|last| last.id.clone());
        self.entries.push(Entry::new(id.clone(), parent.as_deref(), time, record(id.clone())));
        self.made.entry(at).or_insert(id);
    }
}

/// A name that every provider takes: letters, digits, `_` and `-`, beginning with a letter.
fn tool_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().map(plain).take(MAX_TOOL_NAME).collect();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => name,
        _ => format!("tool_{name}").chars().take(MAX_TOOL_NAME).collect(),
    }
}

#[cfg(test)]
mod tests;

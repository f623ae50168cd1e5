//! Reads Hardpan's own sessions, with `hardpan_session`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_context::LayoutStateLog;
use hardpan_context::knowledge::FileObservation;
use hardpan_economy::cache::Moment;
use hardpan_prompt::{AgentMessage, Item, MessageBody, MessagePart, MessageState};
use hardpan_session::{Entry, Record, RequestRecord, Session};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::file_action::FileAction;
use super::json_fields::JsonFields;
use super::recording::answer_status;
use super::{
    AnswerStatus, BilledRequest, EntryContent, ImportError, ImportProblem, RecordedCall, RecordedPart,
    RecordedResult, Recording, RecordingFormat, SourceAgent, Speaker, UnbilledRequest,
};

pub(super) const FORMAT: RecordingFormat = RecordingFormat { agent: SourceAgent::Hardpan, recognizes, read };

/// Ours has a version and `time`; pi's first version has none, and its time is `timestamp`.
fn recognizes(kind: &str, line: &Value) -> bool {
    let has = |key| line.get(key).is_some();
    match kind {
        "session" => has("version") && has("cwd") && !has("timestamp"),
        "message" => {
            has("parent") && line.get("message").is_some_and(|message| message.str("role").is_some())
        }
        _ => false,
    }
}

fn read(recording: &mut Recording, bytes: &[u8]) -> Result<(), ImportError> {
    let session = Session::parse(&recording.file, bytes)?;
    recording.id = Some(session.header.id.clone());
    recording.cwd = Some(session.header.cwd.clone()).filter(|cwd| !cwd.is_empty());
    let problems = session.problems.iter();
    recording.problems.extend(
        problems.map(|problem| ImportProblem { line: problem.line, message: problem.kind.to_string() }),
    );
    let mut reader = HardpanReader::default();
    for (number, entry) in (2..).zip(&session.entries) {
        let parent = entry.parent.as_ref().and_then(|parent| reader.by_id.get(parent).copied().flatten());
        let at = reader.read_entry(recording, number, parent, entry);
        reader.by_id.entry(entry.id.clone()).or_insert(at);
    }
    for (number, parent, thinking, items, request) in std::mem::take(&mut reader.requests) {
        reader.thinking = thinking;
        reader.add_request(recording, number, parent, items, &request);
    }
    Ok(())
}

/// A request that is not imported yet: its line, the entry it follows, the thinking level, the
/// items, and the record.
type PendingRequest = (usize, Option<usize>, Option<Arc<str>>, Arc<Vec<Item>>, Arc<RequestRecord>);

#[derive(Default)]
struct HardpanReader {
    /// The entry of each id: its own, or, where the line is nothing that a model sees, the entry
    /// before it.
    by_id: BTreeMap<Arc<str>, Option<usize>>,
    endings: BTreeMap<usize, AnswerStatus>,
    thinking: Option<Arc<str>>,
    /// What the layouts remembered after the last request, and the items that it tells of.
    layout_state: LayoutStateLog,
    items: Option<Arc<Vec<Item>>>,
    /// Requests may be written before their answers, so they are imported once all messages are
    /// known.
    requests: Vec<PendingRequest>,
}

impl HardpanReader {
    fn told_items(&mut self) -> Arc<Vec<Item>> {
        let state = self.layout_state.current();
        self.items.get_or_insert_with(|| Arc::new(state.told_items())).clone()
    }

    /// Imports one record. Returns the entry that the next one follows.
    fn read_entry(
        &mut self,
        recording: &mut Recording,
        number: usize,
        parent: Option<usize>,
        entry: &Entry,
    ) -> Option<usize> {
        let Entry { id, time, record, extra, .. } = entry;
        let at = time.map(|time| Moment(time.as_millisecond()));
        match record {
            Record::Message(message) => {
                let Some((speaker, parts)) = recorded_parts(message) else { return parent };
                let entry = recording.add_entry(number, parent, at, EntryContent::Message { speaker, parts });
                recording.entries[entry].message = Some(Arc::new((**message).clone()));
                recording.entries[entry].observations = stored_observations(extra);
                if let MessageBody::Assistant { stop_reason, .. } = &*message.body {
                    self.endings.insert(entry, answer_status(stop_reason.as_deref()));
                }
                Some(entry)
            }
            Record::Compaction { summary, first_kept, .. } => {
                let kept = first_kept.as_ref().and_then(|kept| self.by_id.get(kept).copied().flatten());
                let content = EntryContent::Compaction { summary: summary.as_str().into(), kept };
                let entry = recording.add_entry(number, parent, at, content);
                let body = MessageBody::CompactionSummary { summary: summary.clone() };
                recording.entries[entry].message = Some(Arc::new(AgentMessage::new(&**id, body)));
                Some(entry)
            }
            Record::ThinkingChange { level } => {
                self.thinking = Some(level.clone());
                parent
            }
            // A simulator answered: nothing was paid, so there is nothing to audit.
            Record::Request(request) if request.would_cost.is_some() => parent,
            Record::Request(request) => {
                let (thinking, items) = (self.thinking.clone(), self.told_items());
                self.requests.push((number, parent, thinking, items, request.clone()));
                parent
            }
            Record::Memory { memory } => {
                self.layout_state.apply(memory.clone());
                self.items = None;
                parent
            }
            Record::Partial(_)
            | Record::ModelChange { .. }
            | Record::Label { .. }
            | Record::MessageState { .. }
            | Record::Name { .. }
            | Record::Custom { .. }
            | Record::Other { .. } => parent,
        }
    }

    fn add_request(
        &self,
        recording: &mut Recording,
        line: usize,
        parent: Option<usize>,
        items: Arc<Vec<Item>>,
        request: &RequestRecord,
    ) {
        let answer = request.message.as_ref().and_then(|id| self.by_id.get(id).copied().flatten());
        let leaf = answer.map_or(parent, |answer| recording.entries[answer].parent);
        let started = Moment(request.started.as_millisecond());
        let ended = started.plus(i64::try_from(request.ended_ms.unwrap_or(0)).unwrap_or(0));
        let usage = request.usage;
        let model = request.model.clone();
        if usage.prompt() == 0 {
            return recording.unbilled.push(UnbilledRequest { started, ended, model, leaf, line });
        }
        recording.requests.push(BilledRequest {
            started,
            ended,
            provider: Some(request.provider.clone()),
            model,
            usage,
            factor: request.factor,
            items,
            thinking: self.thinking.clone(),
            status: answer
                .and_then(|answer| self.endings.get(&answer).copied())
                .unwrap_or(AnswerStatus::Complete),
            leaf,
            answer,
            compacted: false,
            thread: 0,
            // Only turns and pings send the conversation.
            is_standalone: !matches!(&*request.purpose, "turn" | "ping"),
            shape: None,
            verdict: request
                .extra
                .get("verdict")
                .and_then(|told| serde_json::from_value(told.clone()).ok())
                .map(Arc::new),
            line,
        });
    }
}

/// What a stored message told about files. What another version wrote and this one cannot read tells
/// nothing.
fn stored_observations(extra: &Map<String, Value>) -> Vec<FileObservation> {
    extra.get("file_observations").and_then(|stored| Vec::deserialize(stored).ok()).unwrap_or_default()
}

/// What the model sees of a message. `None` if it sees nothing.
fn recorded_parts(message: &AgentMessage) -> Option<(Speaker, Vec<RecordedPart>)> {
    if matches!(message.state, MessageState::Detached | MessageState::Deleted) {
        return None;
    }
    let text = |text: &str| vec![RecordedPart::Text(text.into())];
    Some(match &*message.body {
        MessageBody::User { content } | MessageBody::Custom { content, .. } => {
            (Speaker::User, convert_parts(content))
        }
        MessageBody::Assistant { content, .. } => (Speaker::Assistant, convert_parts(content)),
        MessageBody::ToolResult { call_id, content, is_error, .. } => (
            Speaker::Tool,
            vec![RecordedPart::Result(RecordedResult {
                failed: *is_error,
                ..convert_result(call_id, content)
            })],
        ),
        MessageBody::BashExecution { exclude_from_context: true, .. } => return None,
        MessageBody::BashExecution { command, output, .. } => {
            (Speaker::User, text(&format!("Ran `{command}`\n```\n{output}\n```")))
        }
        MessageBody::CompactionSummary { summary } | MessageBody::BranchSummary { summary } => {
            (Speaker::User, text(summary.as_str()))
        }
    })
}

fn convert_parts(content: &[MessagePart]) -> Vec<RecordedPart> {
    let mut parts = Vec::new();
    for part in content {
        match part {
            MessagePart::Text { text } => parts.push(RecordedPart::Text(text.as_str().into())),
            MessagePart::Image(image) => parts.push(RecordedPart::image(Some(&image.data))),
            MessagePart::ProviderBlock(_) | MessagePart::Sources { .. } => {}
            MessagePart::Reasoning { text, .. } => parts.push(RecordedPart::Reasoning(text.as_str().into())),
            MessagePart::ToolCall(call) => {
                let action = FileAction::from_call(&call.name, &call.arguments.value());
                let arguments = call.arguments.as_str().into();
                parts.push(RecordedPart::Call(RecordedCall {
                    id: call.id.clone(),
                    tool: call.name.clone(),
                    arguments,
                    action,
                }));
                let answer = call.result.as_ref().map(|answer| RecordedResult {
                    failed: answer.is_error,
                    ..convert_result(&call.id, &answer.content)
                });
                parts.extend(answer.map(RecordedPart::Result));
            }
        }
    }
    parts
}

/// A successful result with this content.
fn convert_result(call: &Arc<str>, content: &[MessagePart]) -> RecordedResult {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|part| if let MessagePart::Text { text } = part { Some(text.as_str()) } else { None })
        .collect();
    let images = content.iter().filter_map(|part| match part {
        MessagePart::Image(image) => Some(Some(image.clone())),
        _ => None,
    });
    RecordedResult {
        call: call.clone(),
        text: texts.join("\n").into(),
        images: images.collect(),
        failed: false,
    }
}

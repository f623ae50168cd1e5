//! Our own sessions, read by `hardpan_session`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_economy::cache::Moment;
use hardpan_economy::ledger::Tokens;
use hardpan_prompt::{AgentMessage, Body, Part, State};
use hardpan_session::{Record, RequestRecord, RequestUsage, Session, SessionError};
use jiff::Timestamp;

use super::act::Act;
use super::record::ending;
use super::{BilledRequest, Call, CallResult, Ending, Piece, Problem, Recording, Said, Speaker, Unbilled};

pub(super) fn read(recording: &mut Recording, bytes: &[u8]) -> Result<(), SessionError> {
    let session = Session::parse(&recording.file, bytes)?;
    recording.id = Some(session.header.id.clone());
    recording.cwd = Some(session.header.cwd.clone()).filter(|cwd| !cwd.is_empty());
    let problems = session.problems.iter();
    recording
        .problems
        .extend(problems.map(|problem| Problem { line: problem.line, what: problem.what.clone() }));
    let mut reader = Reader::default();
    for (number, entry) in (2..).zip(&session.entries) {
        let parent = entry.parent.as_ref().and_then(|parent| reader.by_id.get(parent).copied().flatten());
        let at = reader.entry(recording, number, parent, entry.time, &entry.record);
        reader.by_id.entry(entry.id.clone()).or_insert(at);
    }
    for (number, parent, thinking, request) in std::mem::take(&mut reader.requests) {
        reader.thinking = thinking;
        reader.bill(recording, number, parent, &request);
    }
    Ok(())
}

/// A request: its line, the entry it follows, how far the model thought, and the record.
type Asked = (usize, Option<usize>, Option<Arc<str>>, Arc<RequestRecord>);

#[derive(Default)]
struct Reader {
    /// The entry of each id: its own, or, where it says nothing to a model, the one it follows.
    by_id: BTreeMap<Arc<str>, Option<usize>>,
    endings: BTreeMap<usize, Ending>,
    thinking: Option<Arc<str>>,
    /// A request can be written before its answer: they are looked at once all messages are known.
    requests: Vec<Asked>,
}

impl Reader {
    /// The entry that what comes next follows.
    fn entry(
        &mut self,
        recording: &mut Recording,
        number: usize,
        parent: Option<usize>,
        time: Option<Timestamp>,
        record: &Record,
    ) -> Option<usize> {
        let at = time.map(|time| Moment(time.as_millisecond()));
        match record {
            Record::Message(message) => {
                let Some((speaker, pieces)) = said(message) else { return parent };
                let entry = recording.add(number, parent, at, Said::Message { speaker, pieces });
                if let Body::Assistant { stop_reason, .. } = &*message.body {
                    self.endings.insert(entry, ending(stop_reason.as_deref()));
                }
                Some(entry)
            }
            Record::Compaction { summary, first_kept, .. } => {
                let kept = first_kept.as_ref().and_then(|kept| self.by_id.get(kept).copied().flatten());
                Some(recording.add(
                    number,
                    parent,
                    at,
                    Said::Compaction { summary: summary.as_str().into(), kept },
                ))
            }
            Record::ThinkingChange { level } => {
                self.thinking = Some(level.clone());
                parent
            }
            Record::Request(request) => {
                self.requests.push((number, parent, self.thinking.clone(), request.clone()));
                parent
            }
            Record::Partial(_)
            | Record::ModelChange { .. }
            | Record::Label { .. }
            | Record::Name { .. }
            | Record::Memory { .. }
            | Record::Custom { .. }
            | Record::Other { .. } => parent,
        }
    }

    fn bill(&self, recording: &mut Recording, line: usize, parent: Option<usize>, request: &RequestRecord) {
        let answer = request.message.as_ref().and_then(|id| self.by_id.get(id).copied().flatten());
        let leaf = answer.map_or(parent, |answer| recording.entries[answer].parent);
        let started = Moment(request.started.as_millisecond());
        let ended = started.plus(i64::try_from(request.ended_ms.unwrap_or(0)).unwrap_or(0));
        let RequestUsage { input, cache_read, cache_write_5m, cache_write_1h, output, reasoning: _ } =
            request.usage;
        let usage =
            Tokens { input, read: cache_read, write: cache_write_5m, write_1h: cache_write_1h, output };
        let model = request.model.clone();
        if usage.prompt() == 0 {
            return recording.unbilled.push(Unbilled { started, ended, model, leaf, line });
        }
        recording.requests.push(BilledRequest {
            started,
            ended,
            provider: Some(request.provider.clone()),
            model,
            usage,
            thinking: self.thinking.clone(),
            ending: answer.and_then(|answer| self.endings.get(&answer).copied()).unwrap_or(Ending::Complete),
            leaf,
            answer,
            compacted: false,
            thread: 0,
            // Pings and turns are the conversation itself; whatever else has a prompt of its own.
            apart: !matches!(&*request.purpose, "turn" | "ping"),
            verdict: request
                .extra
                .get("verdict")
                .and_then(|told| serde_json::from_value(told.clone()).ok())
                .map(Arc::new),
            line,
        });
    }
}

/// What the model sees of a message; none if it sees nothing.
fn said(message: &AgentMessage) -> Option<(Speaker, Vec<Piece>)> {
    if matches!(message.state, State::Detached | State::Deleted) {
        return None;
    }
    let text = |text: &str| vec![Piece::Text(text.into())];
    Some(match &*message.body {
        Body::User { content } | Body::Custom { content, .. } => (Speaker::User, pieces(content)),
        Body::Assistant { content, .. } => (Speaker::Assistant, pieces(content)),
        Body::ToolResult { call_id, content, is_error, .. } => {
            (Speaker::Tool, vec![Piece::Result(CallResult { failed: *is_error, ..result(call_id, content) })])
        }
        Body::BashExecution { exclude_from_context: true, .. } => return None,
        Body::BashExecution { command, output, .. } => {
            (Speaker::User, text(&format!("Ran `{command}`\n```\n{output}\n```")))
        }
        Body::CompactionSummary { summary } | Body::BranchSummary { summary } => {
            (Speaker::User, text(summary.as_str()))
        }
    })
}

fn pieces(parts: &[Part]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => pieces.push(Piece::Text(text.as_str().into())),
            Part::Image(image) => pieces.push(Piece::Image { bytes: image.data.len() * 3 / 4 }),
            Part::Reasoning { text, .. } => pieces.push(Piece::Reasoning(text.as_str().into())),
            Part::ToolCall(call) => {
                let act = Act::of(&call.name, &call.arguments.value());
                let arguments = call.arguments.as_str().into();
                pieces.push(Piece::Call(Call {
                    id: call.id.clone(),
                    tool: call.name.clone(),
                    arguments,
                    act,
                }));
                let answer = call.result.as_ref().map(|answer| CallResult {
                    failed: answer.is_error,
                    ..result(&call.id, &answer.content)
                });
                pieces.extend(answer.map(Piece::Result));
            }
        }
    }
    pieces
}

/// A result that did not fail.
fn result(call: &Arc<str>, content: &[Part]) -> CallResult {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None })
        .collect();
    let images = content.iter().filter(|part| matches!(part, Part::Image(_))).count();
    CallResult { call: call.clone(), text: texts.join("\n").into(), images, failed: false }
}

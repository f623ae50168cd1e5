//! Reads the sessions of Claude Code: `~/.claude/projects/*/*.jsonl`, sub-agents included.
//!
//! One answer is written on several lines, one per block, with the same `message.id` and the usage
//! repeated: here they are one entry and one request, with the last line's usage. Results of
//! parallel calls each follow the line of their call; the model saw them all, so they are put one
//! after the other.
//!
//! Newer versions also record the requests as they were sent, and running totals of the cost.

mod api_requests; // ApiRequests: requests as they were sent
mod cost_totals; // CostTotals: running totals, and what the transcript leaves out

use hardpan_prompt::TokenUsage;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use api_requests::ApiRequests;
use cost_totals::{CostTotals, UsageByModel, plain_model};

use super::file_action::FileAction;
use super::json_fields::JsonFields;
use super::recording::answer_status;
use super::{
    AnswerStatus, BilledRequest, EntryContent, ImportError, RecordedCall, RecordedPart, RecordedResult,
    Recording, RecordingFormat, SourceAgent, Speaker, UnbilledRequest, read_lines,
};

/// The model name of answers that Claude Code itself inserted.
const SYNTHETIC: &str = "<synthetic>";
/// How the message begins that follows an answer which the user stopped.
const INTERRUPTED: &str = "[Request interrupted by user";
/// How messages begin that tell of Claude Code's own commands, such as `/cost`: a warning, and their output.
const LOCAL_COMMAND: &str = "<local-command-";

pub(super) const FORMAT: RecordingFormat =
    RecordingFormat { agent: SourceAgent::ClaudeCode, recognizes, read };

/// `summary` and snapshots can come first, and have neither id nor parent. Agents that borrowed the
/// format have other contents in the same frame.
fn recognizes(kind: &str, line: &Value) -> bool {
    match kind {
        "user" | "assistant" => {
            (line.get("sessionId").is_some() || line.get("uuid").is_some())
                && line.get("message").is_some_and(|message| message.get("content").is_some())
        }
        "summary" => line.get("leafUuid").is_some(),
        "api-request" | "api-request-shape" | "cost-state" => line.get("sessionId").is_some(),
        _ => false,
    }
}

fn read(recording: &mut Recording, bytes: &[u8]) -> Result<(), ImportError> {
    let mut reader = ClaudeCodeReader::default();
    read_lines(recording, bytes, |recording, number, line| reader.read_line(recording, number, &line));
    reader.finish(recording);
    Ok(())
}

#[derive(Default)]
struct ClaudeCodeReader {
    /// The entry of each uuid: its own, or, where the line is nothing that a model sees, the entry
    /// before it.
    by_id: BTreeMap<Arc<str>, Option<usize>>,
    /// Answers by `message.id`.
    answers: BTreeMap<Arc<str>, Answer>,
    /// For each result the answer that it belongs to, and for each answer its last result.
    round: BTreeMap<usize, usize>,
    last_result: BTreeMap<usize, usize>,
    api_requests: ApiRequests,
    cost_totals: CostTotals,
}

struct Answer {
    entry: usize,
    line: usize,
    model: Arc<str>,
    usage: TokenUsage,
    status: AnswerStatus,
    /// The id of the `api-request` that it answers.
    request: Option<Arc<str>>,
}

impl Answer {
    fn add_to(self, recording: &mut Recording, api_requests: &mut ApiRequests) {
        let Answer { entry, line, model, usage, status, request } = self;
        let leaf = recording.entries[entry].parent;
        let ended = recording.entries[entry].at.unwrap_or_default();
        let request = api_requests.answered(request.as_deref());
        let sent = request.and_then(|request| request.sent);
        // Where the start is not recorded, assume it was sent right after the previous entry.
        let previous_time = leaf.and_then(|leaf| recording.entries[leaf].at);
        let started = sent.or(previous_time).unwrap_or(ended).min(ended);
        if usage.prompt() == 0 {
            if *model != *SYNTHETIC {
                recording.unbilled.push(UnbilledRequest { started, ended, model, leaf, line });
            }
            return;
        }
        recording.requests.push(BilledRequest {
            started,
            ended,
            provider: Some("anthropic".into()),
            model,
            usage,
            thinking: request.and_then(|request| request.effort.clone()),
            status,
            leaf,
            answer: Some(entry),
            compacted: false,
            thread: 0,
            is_standalone: false,
            shape: request.map(|request| request.shape.clone()),
            factor: None,
            items: Arc::default(),
            verdict: None,
            line,
        });
    }
}

impl ClaudeCodeReader {
    /// Adds the requests, and what the totals have beyond them.
    fn finish(self, recording: &mut Recording) {
        let answered = self.answered_usage();
        let ClaudeCodeReader { answers, mut api_requests, cost_totals, .. } = self;
        for answer in answers.into_values() {
            answer.add_to(recording, &mut api_requests);
        }
        recording.total_dollars = cost_totals.dollars(&answered);
        recording.side_usage = cost_totals
            .side_usage(|model| api_requests.side_purposes(|sent_to| *plain_model(sent_to) == *model));
    }

    /// The usage of all answers so far.
    fn answered_usage(&self) -> UsageByModel {
        let mut usage = UsageByModel::new();
        for answer in self.answers.values().filter(|answer| answer.usage.total() > 0) {
            *usage.entry(plain_model(&answer.model)).or_default() += answer.usage;
        }
        usage
    }

    fn read_line(&mut self, recording: &mut Recording, number: usize, line: &Value) {
        if recording.cwd.is_none() {
            recording.cwd = line.str("cwd").map(Into::into);
        }
        if recording.id.is_none() {
            recording.id = line.str("sessionId").map(Into::into);
        }
        match line.str("type") {
            Some("api-request-shape") => return self.api_requests.read_shape(line),
            Some("api-request") => return self.api_requests.read_request(line),
            Some("cost-state") => return self.cost_totals.read(line, self.answered_usage()),
            _ => {}
        }
        let Some(id) = line.str("uuid") else { return }; // summaries, snapshots, queues: nothing that a model saw
        if self.by_id.contains_key(id) {
            return; // a resumed session can repeat its lines
        }
        let parent = self.find_parent(recording, number, line);
        let at = match line.str("type") {
            Some("user") => self.read_user(recording, number, line, parent),
            Some("assistant") => self.read_answer(recording, number, line, parent),
            _ => parent,
        };
        if let Some(entry) = at.filter(|_| line.is("isSidechain")) {
            recording.side_entries.insert(entry);
        }
        self.by_id.insert(id.into(), at);
    }

    /// The entry that a line follows. After a compaction that is the old conversation, so that it
    /// stays one thread.
    fn find_parent(&self, recording: &mut Recording, number: usize, line: &Value) -> Option<usize> {
        let name = line.str("parentUuid").or_else(|| line.str("logicalParentUuid"))?;
        match self.by_id.get(name) {
            Some(found) => found.map(|at| self.end_of_round(at)),
            None => {
                // The line of its parent may be the one that cannot be read.
                let is_side = line.get("isSidechain").and_then(Value::as_bool) == Some(true);
                let is_own = |at: &usize| !recording.side_entries.contains(at);
                let before = (0..recording.entries.len()).rev().find(is_own).filter(|_| !is_side);
                let taken = match before {
                    Some(_) => "taken to follow the message before",
                    None => "taken as the start of a conversation",
                };
                recording
                    .report_problem(number, format!("{taken}: `{name}`, its parent, is on no earlier line"));
                before.map(|at| self.end_of_round(at))
            }
        }
    }

    /// The last result of the same answer, for an entry that is one of its results.
    fn end_of_round(&self, at: usize) -> usize {
        let answer = self.round.get(&at);
        answer.and_then(|answer| self.last_result.get(answer)).copied().unwrap_or(at)
    }

    fn read_user(
        &mut self,
        recording: &mut Recording,
        number: usize,
        line: &Value,
        parent: Option<usize>,
    ) -> Option<usize> {
        let (at, message) = (line.moment("timestamp"), line.get("message").unwrap_or(&Value::Null));
        let parts = message_parts(message);
        if line.is("isCompactSummary") {
            let summary =
                parts.iter().map(|part| if let RecordedPart::Text(text) = part { text } else { "" });
            let content =
                EntryContent::Compaction { summary: summary.collect::<String>().into(), kept: None };
            return Some(recording.add_entry(number, parent, at, content));
        }
        if parts.is_empty() {
            return parent;
        }
        if matches!(&parts[0], RecordedPart::Text(text) if text.starts_with(INTERRUPTED)) {
            self.mark_interrupted(parent);
        }
        let is_result = parts.iter().any(|part| matches!(part, RecordedPart::Result(_)));
        let answer =
            parent.filter(|_| is_result).map(|parent| self.round.get(&parent).copied().unwrap_or(parent));
        let parent = answer.and_then(|answer| self.last_result.get(&answer)).copied().or(parent);
        let is_local = matches!(&parts[0], RecordedPart::Text(text) if text.starts_with(LOCAL_COMMAND));
        let speaker = match (is_result, is_local) {
            (true, _) => Speaker::Tool,
            (false, true) => Speaker::Agent,
            (false, false) => Speaker::User,
        };
        let entry = recording.add_entry(number, parent, at, EntryContent::Message { speaker, parts });
        if let Some(answer) = answer {
            self.round.insert(entry, answer);
            self.last_result.insert(answer, entry);
        }
        Some(entry)
    }

    fn mark_interrupted(&mut self, parent: Option<usize>) {
        let answer = parent.map(|parent| self.round.get(&parent).copied().unwrap_or(parent));
        if let Some(answer) = self.answers.values_mut().find(|known| Some(known.entry) == answer) {
            answer.status = AnswerStatus::Aborted;
        }
    }

    fn read_answer(
        &mut self,
        recording: &mut Recording,
        number: usize,
        line: &Value,
        parent: Option<usize>,
    ) -> Option<usize> {
        let message = line.get("message").unwrap_or(&Value::Null);
        let (at, parts) = (line.moment("timestamp"), message_parts(message));
        let id: Arc<str> = message.str("id").or_else(|| line.str("uuid")).unwrap_or_default().into();
        let usage = message.get("usage").map(parse_usage).unwrap_or_default();
        if let Some(known) = self.answers.get_mut(&id) {
            if usage.prompt() > 0 {
                known.usage = usage;
            }
            let entry = &mut recording.entries[known.entry];
            entry.at = entry.at.max(at);
            if let EntryContent::Message { parts: all, .. } = &mut entry.content {
                all.extend(parts);
            }
            return Some(known.entry);
        }
        let model: Arc<str> = message.str("model").unwrap_or_default().into();
        let status = if line.is("isApiErrorMessage") {
            AnswerStatus::Failed
        } else {
            answer_status(message.str("stop_reason"))
        };
        let entry = recording.add_entry(
            number,
            parent,
            at,
            EntryContent::Message { speaker: Speaker::Assistant, parts },
        );
        let request = line.str("requestRef").map(Into::into);
        let answer = Answer { entry, line: number, model, usage, status, request };
        self.answers.insert(id, answer);
        Some(entry)
    }
}

fn parse_usage(usage: &Value) -> TokenUsage {
    let written = usage.count("cache_creation_input_tokens");
    let by_lifetime = usage.get("cache_creation").unwrap_or(&Value::Null);
    let cache_write_1h = by_lifetime.count("ephemeral_1h_input_tokens");
    TokenUsage {
        input: usage.count("input_tokens"),
        cache_read: usage.count("cache_read_input_tokens"),
        cache_write_5m: written
            .max(by_lifetime.count("ephemeral_5m_input_tokens") + cache_write_1h)
            .saturating_sub(cache_write_1h),
        cache_write_1h,
        output: usage.count("output_tokens"),
        reasoning: None,
    }
}

fn message_parts(message: &Value) -> Vec<RecordedPart> {
    if let Some(text) = message.str("content") {
        return vec![RecordedPart::Text(text.into())];
    }
    message.list("content").iter().filter_map(convert_block).collect()
}

fn convert_block(block: &Value) -> Option<RecordedPart> {
    Some(match block.str("type")? {
        "text" => RecordedPart::Text(block.str("text")?.into()),
        "thinking" => RecordedPart::Reasoning(block.str("thinking").unwrap_or_default().into()),
        "redacted_thinking" => RecordedPart::Reasoning(block.str("data").unwrap_or_default().into()),
        "image" => image_part(block),
        "tool_use" | "server_tool_use" => {
            let tool = block.str("name").unwrap_or_default();
            let input = block.get("input").unwrap_or(&Value::Null);
            RecordedPart::Call(RecordedCall {
                id: block.str("id").unwrap_or_default().into(),
                tool: tool.into(),
                arguments: input.to_string().into(),
                action: FileAction::from_call(tool, input),
            })
        }
        "tool_result" => {
            let content = block.list("content");
            let text: Arc<str> = match block.str("content") {
                Some(text) => text.into(),
                None => {
                    content.iter().filter_map(|part| part.str("text")).collect::<Vec<_>>().join("\n").into()
                }
            };
            let images = content.iter().filter(|part| part.str("type") == Some("image"));
            let images = images.map(|part| RecordedPart::usable_image(image_data(part))).collect();
            let call = block.str("tool_use_id").unwrap_or_default().into();
            RecordedPart::Result(RecordedResult { call, text, images, failed: block.is("is_error") })
        }
        _ => return None,
    })
}

fn image_part(block: &Value) -> RecordedPart {
    RecordedPart::image(image_data(block))
}

fn image_data(block: &Value) -> Option<&str> {
    block.get("source").and_then(|source| source.str("data"))
}

//! Reads the sessions of Qwen Code: `~/.qwen/projects/*/chats/*.jsonl`.
//!
//! The frame of a line is Claude Code's (`uuid`, `parentUuid`, `sessionId`), its content is
//! Gemini's: `message.parts`, and `usageMetadata` whose `promptTokenCount` includes what was read
//! from the cache.

use hardpan_prompt::TokenUsage;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::file_action::FileAction;
use super::json_fields::JsonFields;
use super::{
    AnswerStatus, BilledRequest, EntryContent, ImportError, RecordedCall, RecordedPart, RecordedResult,
    Recording, RecordingFormat, SourceAgent, Speaker, UnbilledRequest, read_lines,
};

pub(super) const FORMAT: RecordingFormat = RecordingFormat { agent: SourceAgent::QwenCode, recognizes, read };

fn recognizes(kind: &str, line: &Value) -> bool {
    let has_parts = || line.get("message").is_some_and(|message| message.get("parts").is_some());
    match kind {
        "user" | "assistant" | "tool_result" => line.get("uuid").is_some() && has_parts(),
        "system" => line.get("uuid").is_some() && line.get("systemPayload").is_some(),
        _ => false,
    }
}

fn read(recording: &mut Recording, bytes: &[u8]) -> Result<(), ImportError> {
    let mut reader = QwenReader::default();
    read_lines(recording, bytes, |recording, number, line| reader.read_line(recording, number, &line));
    Ok(())
}

#[derive(Default)]
struct QwenReader {
    /// The entry of each uuid: its own, or, where the line is nothing that a model sees, the entry
    /// before it.
    by_id: BTreeMap<Arc<str>, Option<usize>>,
}

impl QwenReader {
    fn read_line(&mut self, recording: &mut Recording, number: usize, line: &Value) {
        if recording.id.is_none() {
            recording.id = line.str("sessionId").map(Into::into);
        }
        if recording.cwd.is_none() {
            recording.cwd = line.str("cwd").map(Into::into);
        }
        let Some(id) = line.str("uuid") else { return };
        let parent = line.str("parentUuid").and_then(|parent| match self.by_id.get(parent) {
            Some(found) => *found,
            None => {
                recording.report_problem(
                    number,
                    format!("taken to follow the message before: `{parent}` is on no earlier line"),
                );
                recording.entries.len().checked_sub(1)
            }
        });
        let at = self.read_record(recording, number, line, parent);
        self.by_id.entry(id.into()).or_insert(at);
    }

    /// Imports one line. Returns the entry that the next one follows.
    fn read_record(
        &mut self,
        recording: &mut Recording,
        number: usize,
        line: &Value,
        parent: Option<usize>,
    ) -> Option<usize> {
        let at = line.moment("timestamp");
        let parts = line.get("message").map(message_parts).unwrap_or_default();
        let content = match (line.str("type")?, line.str("subtype")) {
            ("assistant", _) => return Some(read_answer(recording, number, line, parent, parts)),
            ("system", Some("chat_compression")) => {
                let history =
                    line.get("systemPayload").map_or(&[][..], |told| told.list("compressedHistory"));
                let summary: String = history.iter().map(ToString::to_string).collect();
                EntryContent::Compaction { summary: summary.into(), kept: None }
            }
            _ if parts.is_empty() => return parent,
            ("tool_result", _) => EntryContent::Message { speaker: Speaker::Tool, parts },
            ("user", _) => EntryContent::Message { speaker: Speaker::User, parts },
            _ => return parent,
        };
        Some(recording.add_entry(number, parent, at, content))
    }
}

fn read_answer(
    recording: &mut Recording,
    line_number: usize,
    line: &Value,
    leaf: Option<usize>,
    parts: Vec<RecordedPart>,
) -> usize {
    let content = EntryContent::Message { speaker: Speaker::Assistant, parts };
    let answer = recording.add_entry(line_number, leaf, line.moment("timestamp"), content);
    let ended = recording.entries[answer].at.unwrap_or_default();
    // The start is not recorded; assume it was sent right after the previous entry.
    let previous_time = leaf.and_then(|leaf| recording.entries[leaf].at);
    let started = previous_time.unwrap_or(ended).min(ended);
    let model: Arc<str> = line.str("model").unwrap_or_default().into();
    let usage = line.get("usageMetadata").map(parse_usage).unwrap_or_default();
    if usage.prompt() == 0 {
        recording.unbilled.push(UnbilledRequest { started, ended, model, leaf, line: line_number });
        return answer;
    }
    recording.requests.push(BilledRequest {
        started,
        ended,
        provider: None,
        model,
        usage,
        thinking: None,
        status: AnswerStatus::Complete,
        leaf,
        answer: Some(answer),
        compacted: false,
        thread: 0,
        is_standalone: false,
        shape: None,
        factor: None,
        items: Arc::default(),
        verdict: None,
        line: line_number,
    });
    answer
}

fn parse_usage(usage: &Value) -> TokenUsage {
    let (prompt, total) = (usage.count("promptTokenCount"), usage.count("totalTokenCount"));
    let cache_read = usage.count("cachedContentTokenCount").min(prompt);
    // Depending on the provider, the candidates include the thoughts or not; the total always does.
    let output = total.saturating_sub(prompt).max(usage.count("candidatesTokenCount"));
    TokenUsage { input: prompt - cache_read, cache_read, output, ..TokenUsage::default() }
}

fn message_parts(message: &Value) -> Vec<RecordedPart> {
    message.list("parts").iter().filter_map(convert_part).collect()
}

fn convert_part(part: &Value) -> Option<RecordedPart> {
    if let Some(text) = part.str("text") {
        let text = text.into();
        return Some(if part.is("thought") {
            RecordedPart::Reasoning(text)
        } else {
            RecordedPart::Text(text)
        });
    }
    if let Some(call) = part.get("functionCall") {
        let tool = call.str("name").unwrap_or_default();
        let arguments = call.get("args").unwrap_or(&Value::Null);
        return Some(RecordedPart::Call(RecordedCall {
            id: call.str("id").unwrap_or(tool).into(),
            tool: tool.into(),
            arguments: arguments.to_string().into(),
            action: FileAction::from_call(tool, arguments),
        }));
    }
    if let Some(answer) = part.get("functionResponse") {
        let response = answer.get("response").unwrap_or(&Value::Null);
        let failure = response.str("error");
        let text = failure.or_else(|| response.str("output")).unwrap_or_default();
        return Some(RecordedPart::Result(RecordedResult {
            call: answer.str("id").or_else(|| answer.str("name")).unwrap_or_default().into(),
            text: text.into(),
            images: Vec::new(),
            failed: failure.is_some(),
        }));
    }
    let data = part.get("inlineData")?.str("data");
    Some(RecordedPart::image(data))
}

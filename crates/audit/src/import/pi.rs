//! Reads the sessions of pi: `~/.pi/agent/sessions/*/*.jsonl`.
//!
//! Version 1 is a list; from version 2 on every entry has an id and a parent. `message.timestamp`
//! is the start of the request, the entry's `timestamp` its end.

use hardpan_prompt::{Image, TokenUsage};
use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_economy::cache::Moment;
use serde_json::Value;

use super::file_action::FileAction;
use super::json_fields::JsonFields;
use super::recording::answer_status;
use super::{
    AnswerStatus, BilledRequest, EntryContent, ImportError, RecordedCall, RecordedPart, RecordedResult,
    Recording, RecordingFormat, RequestShape, ShapePart, SourceAgent, Speaker, UnbilledRequest, read_lines,
};

pub(super) const FORMAT: RecordingFormat = RecordingFormat { agent: SourceAgent::Pi, recognizes, read };

fn recognizes(kind: &str, line: &Value) -> bool {
    match kind {
        "session" => line.get("id").is_some(),
        "message" => line.get("message").is_some_and(|message| message.str("role").is_some()),
        _ => false,
    }
}

fn read(recording: &mut Recording, bytes: &[u8]) -> Result<(), ImportError> {
    let mut reader = PiReader::default();
    read_lines(recording, bytes, |recording, number, line| reader.read_line(recording, number, &line));
    Ok(())
}

#[derive(Default)]
struct PiReader {
    provider: Option<Arc<str>>,
    model: Arc<str>,
    thinking: Option<Arc<str>>,
    /// The thinking level when the last prompt was sent: pi keeps it until the next one.
    turn_thinking: Option<Arc<str>>,
    /// For each line of the file its entry, or the one that comes before it.
    by_line: BTreeMap<usize, Option<usize>>,
    /// The entry of each id: its own, or, where the line is nothing that a model sees, the entry
    /// before it.
    by_id: BTreeMap<Arc<str>, Option<usize>>,
    last: Option<usize>,
    /// The sections of the system prompt by name, and the tools, where the session records them.
    sections: Vec<ShapePart>,
    tools: Vec<ShapePart>,
    /// The shape of the next request, until something of it changes. `None` where it is not
    /// recorded.
    shape: Option<Arc<RequestShape>>,
}

impl PiReader {
    fn read_line(&mut self, recording: &mut Recording, number: usize, line: &Value) {
        let parent = match line.get("parentId") {
            Some(Value::String(parent)) => match self.by_id.get(parent.as_str()) {
                Some(found) => *found,
                None => {
                    recording.report_problem(
                        number,
                        format!("taken to follow the line before: `{parent}` is on no earlier line"),
                    );
                    self.last
                }
            },
            Some(Value::Null) => None,
            _ => self.last,
        };
        let at = self.read_entry(recording, number, line, parent);
        self.last = at;
        self.by_line.insert(number, at);
        if let Some(id) = line.str("id") {
            self.by_id.insert(id.into(), at);
        }
    }

    /// Imports one line. Returns the entry that the next one follows.
    fn read_entry(
        &mut self,
        recording: &mut Recording,
        number: usize,
        line: &Value,
        parent: Option<usize>,
    ) -> Option<usize> {
        let at = line.moment("timestamp");
        match line.str("type") {
            Some("session") => {
                recording.id = line.str("id").map(Into::into);
                recording.cwd = line.str("cwd").map(Into::into);
                self.provider = line.str("provider").map(Into::into);
                self.model = line.str("modelId").unwrap_or_default().into();
                self.thinking = line.str("thinkingLevel").map(Into::into);
                None
            }
            Some("message") => match line.get("message") {
                Some(message) => self.read_message(recording, number, message, at, parent),
                None => {
                    recording.report_problem(number, "left out: it has no `message`");
                    parent
                }
            },
            Some("model_change") => {
                self.provider = line.str("provider").map(Into::into);
                self.model = line.str("modelId").unwrap_or_default().into();
                parent
            }
            Some("thinking_level_change") => {
                self.thinking = line.str("thinkingLevel").map(Into::into);
                parent
            }
            Some("compaction") => {
                let summary = line.str("summary").unwrap_or_default().into();
                let kept = self.first_kept(line);
                Some(recording.add_entry(number, parent, at, EntryContent::Compaction { summary, kept }))
            }
            Some("branch_summary") => {
                let summary = vec![RecordedPart::Text(line.str("summary").unwrap_or_default().into())];
                Some(recording.add_entry(
                    number,
                    parent,
                    at,
                    EntryContent::Message { speaker: Speaker::User, parts: summary },
                ))
            }
            Some("custom_message") => {
                let parts = message_parts(line);
                Some(recording.add_entry(
                    number,
                    parent,
                    at,
                    EntryContent::Message { speaker: Speaker::User, parts },
                ))
            }
            Some(_) => parent,
            None => {
                recording.report_problem(number, "left out: it has no `type`");
                parent
            }
        }
    }

    /// The first entry that a compaction keeps: by id, or in version 1 by the number of its line,
    /// from 0.
    fn first_kept(&self, line: &Value) -> Option<usize> {
        if let Some(id) = line.str("firstKeptEntryId") {
            return self.by_id.get(id).copied().flatten();
        }
        let index = usize::try_from(line.get("firstKeptEntryIndex")?.as_u64()?).ok()?;
        self.by_line.range(index + 1..).find_map(|(_, at)| *at)
    }

    fn read_message(
        &mut self,
        recording: &mut Recording,
        number: usize,
        message: &Value,
        at: Option<Moment>,
        parent: Option<usize>,
    ) -> Option<usize> {
        let content = match message.str("role") {
            Some("assistant") => return self.read_answer(recording, number, message, at, parent),
            Some("system") if message.get("sections").is_some() || message.get("toolsAdded").is_some() => {
                self.read_system(message);
                return parent;
            }
            Some("toolResult") => {
                let (text, images) = text_of(message);
                let call = message.str("toolCallId").unwrap_or_default().into();
                let result = RecordedResult { call, text, images, failed: message.is("isError") };
                EntryContent::Message { speaker: Speaker::Tool, parts: vec![RecordedPart::Result(result)] }
            }
            Some("bashExecution") => {
                let [command, output] = ["command", "output"].map(|key| message.str(key).unwrap_or_default());
                let text = format!("Ran `{command}`\n```\n{output}\n```");
                EntryContent::Message { speaker: Speaker::User, parts: vec![RecordedPart::Text(text.into())] }
            }
            Some(role) => {
                // A message typed while tools run joins the turn; only one after a complete answer begins another.
                if role == "user" && !awaits_tools(recording, parent) {
                    self.turn_thinking = self.thinking.clone();
                }
                EntryContent::Message { speaker: Speaker::User, parts: message_parts(message) }
            }
            None => {
                recording.report_problem(number, "left out: the message has no `role`");
                return parent;
            }
        };
        let is_excluded = message.is("excludeFromContext");
        if is_excluded {
            parent
        } else {
            Some(recording.add_entry(number, parent, at.or(message.moment("timestamp")), content))
        }
    }

    /// The system prompt by sections, and the tools that came or went. What is not mentioned stays.
    fn read_system(&mut self, message: &Value) {
        for (name, text) in message.get("sections").and_then(Value::as_object).into_iter().flatten() {
            replace_part(&mut self.sections, ShapePart::new(name.as_str(), text));
        }
        for removed in message.list("toolsRemoved") {
            let name = removed.as_str().or_else(|| removed.str("name"));
            self.tools.retain(|tool| Some(&*tool.name) != name);
        }
        for tool in ShapePart::from_tools(message.list("toolsAdded")) {
            replace_part(&mut self.tools, tool);
        }
        self.shape = Some(Arc::new(RequestShape {
            tools: Some(self.tools.as_slice().into()),
            system: Some(self.sections.as_slice().into()),
            ..RequestShape::default()
        }));
    }

    fn read_answer(
        &mut self,
        recording: &mut Recording,
        line: usize,
        message: &Value,
        at: Option<Moment>,
        parent: Option<usize>,
    ) -> Option<usize> {
        let status = answer_status(message.str("stopReason"));
        // pi does not send failed or aborted answers back to the model.
        let answer = (status == AnswerStatus::Complete).then(|| {
            let content =
                EntryContent::Message { speaker: Speaker::Assistant, parts: message_parts(message) };
            recording.add_entry(line, parent, at, content)
        });
        let started = message.moment("timestamp").or(at).unwrap_or_default();
        let ended = at.unwrap_or(started).max(started);
        let model: Arc<str> = message.str("model").map_or_else(|| self.model.clone(), Into::into);
        let provider = message.str("provider").map(Into::into).or_else(|| self.provider.clone());
        let usage = message.get("usage").map(parse_usage).unwrap_or_default();
        if usage.prompt() == 0 {
            recording.unbilled.push(UnbilledRequest { started, ended, model, leaf: parent, line });
        } else {
            recording.requests.push(BilledRequest {
                started,
                ended,
                provider,
                model,
                usage,
                thinking: self.turn_thinking.clone().or_else(|| self.thinking.clone()),
                status,
                leaf: parent,
                answer,
                compacted: false,
                thread: 0,
                is_standalone: false,
                shape: self.shape.clone(),
                factor: None,
                items: Arc::default(),
                verdict: None,
                line,
            });
        }
        answer.or(parent)
    }
}

/// Puts a part in the place of the one with its name, or at the end.
fn replace_part(parts: &mut Vec<ShapePart>, part: ShapePart) {
    match parts.iter_mut().find(|known| known.name == part.name) {
        Some(known) => *known = part,
        None => parts.push(part),
    }
}

/// Whether the last message is an answer with tool calls, so that a new one does not begin a turn.
fn awaits_tools(recording: &Recording, parent: Option<usize>) -> bool {
    match parent.map(|parent| &recording.entries[parent].content) {
        Some(EntryContent::Message { speaker: Speaker::Assistant, parts }) => {
            parts.iter().any(|part| matches!(part, RecordedPart::Call(_)))
        }
        _ => false,
    }
}

fn parse_usage(usage: &Value) -> TokenUsage {
    // `cacheWrite1h` is the part of `cacheWrite` that was written for an hour.
    let written = usage.count("cacheWrite");
    let cache_write_1h = usage.count("cacheWrite1h").min(written);
    TokenUsage {
        input: usage.count("input"),
        cache_read: usage.count("cacheRead"),
        cache_write_5m: written - cache_write_1h,
        cache_write_1h,
        output: usage.count("output"),
        ..TokenUsage::default()
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
        "image" => RecordedPart::image(block.str("data")),
        "toolCall" => {
            let tool = block.str("name").unwrap_or_default();
            let arguments = block.get("arguments").unwrap_or(&Value::Null);
            RecordedPart::Call(RecordedCall {
                id: block.str("id").unwrap_or_default().into(),
                tool: tool.into(),
                arguments: arguments.to_string().into(),
                action: FileAction::from_call(tool, arguments),
            })
        }
        _ => return None,
    })
}

/// The texts of a message, joined, and its images.
fn text_of(message: &Value) -> (Arc<str>, Vec<Option<Image>>) {
    if let Some(text) = message.str("content") {
        return (text.into(), Vec::new());
    }
    let content = message.list("content");
    let texts: Vec<&str> = content.iter().filter_map(|block| block.str("text")).collect();
    let images = content.iter().filter(|block| block.str("type") == Some("image"));
    let images = images.map(|block| RecordedPart::usable_image(block.str("data"))).collect();
    (texts.join("\n").into(), images)
}

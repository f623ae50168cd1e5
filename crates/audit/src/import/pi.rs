//! pi's sessions: `~/.pi/agent/sessions/*/*.jsonl`.
//!
//! Version 1 is a list; from version 2 on every entry has an id and a parent. `message.timestamp` is the start of the request,
//! the entry's `timestamp` its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_economy::cache::Moment;
use hardpan_economy::ledger::Tokens;
use serde_json::Value;

use super::act::Act;
use super::record::ending;
use super::value::Fields;
use super::{BilledRequest, Call, CallResult, Ending, Line, Piece, Recording, Said, Speaker, Unbilled};

pub(super) fn read(recording: &mut Recording, lines: &[Line]) {
    let mut reader = Reader::default();
    for (number, line) in lines {
        match line {
            Ok(line) => reader.line(recording, *number, line),
            Err(error) => recording.report(*number, format!("left out: it is not JSON ({error})")),
        }
    }
}

#[derive(Default)]
struct Reader {
    provider: Option<Arc<str>>,
    model: Arc<str>,
    thinking: Option<Arc<str>>,
    /// The level when the turn began: pi keeps it until the next prompt.
    turn_thinking: Option<Arc<str>>,
    /// The entry that stands at each line of the file, or before it.
    by_line: BTreeMap<usize, Option<usize>>,
    /// The entry of each id: its own, or, where it says nothing to a model, the one it follows.
    by_id: BTreeMap<Arc<str>, Option<usize>>,
    last: Option<usize>,
}

impl Reader {
    fn line(&mut self, recording: &mut Recording, number: usize, line: &Value) {
        let parent = match line.get("parentId") {
            Some(Value::String(parent)) => match self.by_id.get(parent.as_str()) {
                Some(found) => *found,
                None => {
                    recording.report(
                        number,
                        format!("taken to follow the line before: `{parent}` is on no earlier line"),
                    );
                    self.last
                }
            },
            Some(Value::Null) => None,
            _ => self.last,
        };
        let at = self.entry(recording, number, line, parent);
        self.last = at;
        self.by_line.insert(number, at);
        if let Some(id) = line.str("id") {
            self.by_id.insert(id.into(), at);
        }
    }

    /// The entry that what comes next follows.
    fn entry(
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
                Some(message) => self.message(recording, number, message, at, parent),
                None => {
                    recording.report(number, "left out: it has no `message`");
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
                let kept = self.kept(line);
                Some(recording.add(number, parent, at, Said::Compaction { summary, kept }))
            }
            Some("branch_summary") => {
                let summary = vec![Piece::Text(line.str("summary").unwrap_or_default().into())];
                Some(recording.add(
                    number,
                    parent,
                    at,
                    Said::Message { speaker: Speaker::User, pieces: summary },
                ))
            }
            Some("custom_message") => {
                let pieces = pieces(line);
                Some(recording.add(number, parent, at, Said::Message { speaker: Speaker::User, pieces }))
            }
            Some(_) => parent,
            None => {
                recording.report(number, "left out: it has no `type`");
                parent
            }
        }
    }

    /// By id, or in version 1 by the number of the line, from 0.
    fn kept(&self, line: &Value) -> Option<usize> {
        if let Some(id) = line.str("firstKeptEntryId") {
            return self.by_id.get(id).copied().flatten();
        }
        let index = usize::try_from(line.get("firstKeptEntryIndex")?.as_u64()?).ok()?;
        self.by_line.range(index + 1..).find_map(|(_, at)| *at)
    }

    fn message(
        &mut self,
        recording: &mut Recording,
        number: usize,
        message: &Value,
        at: Option<Moment>,
        parent: Option<usize>,
    ) -> Option<usize> {
        let said = match message.str("role") {
            Some("assistant") => return self.answer(recording, number, message, at, parent),
            Some("toolResult") => {
                let (text, images) = text_of(message);
                let call = message.str("toolCallId").unwrap_or_default().into();
                let result = CallResult { call, text, images, failed: message.is("isError") };
                Said::Message { speaker: Speaker::Tool, pieces: vec![Piece::Result(result)] }
            }
            Some("bashExecution") => {
                let [command, output] = ["command", "output"].map(|key| message.str(key).unwrap_or_default());
                let text = format!("Ran `{command}`\n```\n{output}\n```");
                Said::Message { speaker: Speaker::User, pieces: vec![Piece::Text(text.into())] }
            }
            Some(role) => {
                // What is typed while tools run joins the turn; only a prompt after a whole answer begins one.
                if role == "user" && !awaits_tools(recording, parent) {
                    self.turn_thinking = self.thinking.clone();
                }
                Said::Message { speaker: Speaker::User, pieces: pieces(message) }
            }
            None => {
                recording.report(number, "left out: the message has no `role`");
                return parent;
            }
        };
        let is_excluded = message.is("excludeFromContext");
        if is_excluded {
            parent
        } else {
            Some(recording.add(number, parent, at.or(message.moment("timestamp")), said))
        }
    }

    fn answer(
        &mut self,
        recording: &mut Recording,
        line: usize,
        message: &Value,
        at: Option<Moment>,
        parent: Option<usize>,
    ) -> Option<usize> {
        let ending = ending(message.str("stopReason"));
        // pi does not send back an answer that broke or was stopped.
        let answer = (ending == Ending::Complete).then(|| {
            let said = Said::Message { speaker: Speaker::Assistant, pieces: pieces(message) };
            recording.add(line, parent, at, said)
        });
        let started = message.moment("timestamp").or(at).unwrap_or_default();
        let ended = at.unwrap_or(started).max(started);
        let model: Arc<str> = message.str("model").map_or_else(|| self.model.clone(), Into::into);
        let provider = message.str("provider").map(Into::into).or_else(|| self.provider.clone());
        let usage = message.get("usage").map(usage).unwrap_or_default();
        if usage.prompt() == 0 {
            recording.unbilled.push(Unbilled { started, ended, model, leaf: parent, line });
        } else {
            recording.requests.push(BilledRequest {
                started,
                ended,
                provider,
                model,
                usage,
                thinking: self.turn_thinking.clone().or_else(|| self.thinking.clone()),
                ending,
                leaf: parent,
                answer,
                compacted: false,
                thread: 0,
                apart: false,
                verdict: None,
                line,
            });
        }
        answer.or(parent)
    }
}

/// Whether the last thing said before is a call: the turn goes on.
fn awaits_tools(recording: &Recording, parent: Option<usize>) -> bool {
    match parent.map(|parent| &recording.entries[parent].said) {
        Some(Said::Message { speaker: Speaker::Assistant, pieces }) => {
            pieces.iter().any(|piece| matches!(piece, Piece::Call(_)))
        }
        _ => false,
    }
}

fn usage(usage: &Value) -> Tokens {
    Tokens {
        input: usage.count("input"),
        read: usage.count("cacheRead"),
        write: usage.count("cacheWrite"),
        write_1h: 0,
        output: usage.count("output"),
    }
}

fn pieces(message: &Value) -> Vec<Piece> {
    if let Some(text) = message.str("content") {
        return vec![Piece::Text(text.into())];
    }
    message.list("content").iter().filter_map(piece).collect()
}

fn piece(block: &Value) -> Option<Piece> {
    Some(match block.str("type")? {
        "text" => Piece::Text(block.str("text")?.into()),
        "thinking" => Piece::Reasoning(block.str("thinking").unwrap_or_default().into()),
        "image" => Piece::Image { bytes: block.str("data").map_or(0, str::len) * 3 / 4 },
        "toolCall" => {
            let tool = block.str("name").unwrap_or_default();
            let arguments = block.get("arguments").unwrap_or(&Value::Null);
            Piece::Call(Call {
                id: block.str("id").unwrap_or_default().into(),
                tool: tool.into(),
                arguments: arguments.to_string().into(),
                act: Act::of(tool, arguments),
            })
        }
        _ => return None,
    })
}

/// The texts of a message, joined, and its images.
fn text_of(message: &Value) -> (Arc<str>, usize) {
    if let Some(text) = message.str("content") {
        return (text.into(), 0);
    }
    let content = message.list("content");
    let texts: Vec<&str> = content.iter().filter_map(|block| block.str("text")).collect();
    let images = content.iter().filter(|block| block.str("type") == Some("image")).count();
    (texts.join("\n").into(), images)
}

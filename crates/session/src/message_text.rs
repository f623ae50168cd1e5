//! The readable text of messages: [`EntryPreview`] for lists and trees, roles and plain texts for
//! search and export.

use hardpan_prompt::{MessageBody, MessagePart};

use crate::entry::Entry;
use crate::record::Record;

/// An entry shortened to one line, for lists and trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPreview {
    /// The role of a message as the file spells it (`user`, `assistant`, …), or what else the entry
    /// records (`compaction`, `model`, `thinking`).
    pub role: &'static str,
    /// The text on one line. An answer that has no text shows its tool calls instead.
    pub text: String,
}

impl Entry {
    /// Shortens the entry to one line of at most `limit` characters of text. `None` for entries
    /// that only the program needs (labels, requests, layout memory).
    pub fn preview(&self, limit: usize) -> Option<EntryPreview> {
        let (role, text) = match &self.record {
            Record::Message(message) => (role_name(&message.body), preview_text(&message.body)),
            Record::Compaction { summary, .. } => ("compaction", summary.to_string()),
            Record::ModelChange { provider, model } => ("model", format!("{provider}/{model}")),
            Record::ThinkingChange { level } => ("thinking", level.to_string()),
            _ => return None,
        };
        Some(EntryPreview { role, text: truncate_to_line(&text, limit) })
    }
}

fn preview_text(body: &MessageBody) -> String {
    let text = body_texts(body).join(" ");
    match body {
        MessageBody::Assistant { content, .. } if text.trim().is_empty() => {
            let calls = content.iter().filter_map(|part| match part {
                MessagePart::ToolCall(call) => Some(format!("{}({})", call.name, call.arguments.as_str())),
                _ => None,
            });
            calls.collect::<Vec<_>>().join(" ")
        }
        _ => text,
    }
}

/// The role as the session file spells it.
pub(crate) fn role_name(body: &MessageBody) -> &'static str {
    match body {
        MessageBody::User { .. } => "user",
        MessageBody::Assistant { .. } => "assistant",
        MessageBody::ToolResult { .. } => "tool_result",
        MessageBody::Custom { .. } => "custom",
        MessageBody::BashExecution { .. } => "bash_execution",
        MessageBody::CompactionSummary { .. } => "compaction_summary",
        MessageBody::BranchSummary { .. } => "branch_summary",
    }
}

/// Every text of a message, without reasoning and without the arguments of tool calls.
pub(crate) fn body_texts(body: &MessageBody) -> Vec<&str> {
    match body {
        MessageBody::User { content }
        | MessageBody::Assistant { content, .. }
        | MessageBody::ToolResult { content, .. }
        | MessageBody::Custom { content, .. } => content.iter().flat_map(part_texts).collect(),
        MessageBody::BashExecution { command, output, .. } => vec![command, output],
        MessageBody::CompactionSummary { summary } | MessageBody::BranchSummary { summary } => vec![summary],
    }
}

fn part_texts(part: &MessagePart) -> Vec<&str> {
    match part {
        MessagePart::Text { text } => vec![text],
        MessagePart::ToolCall(call) => {
            call.result.iter().flat_map(|result| &result.content).flat_map(part_texts).collect()
        }
        MessagePart::Sources { sources } => sources.iter().flat_map(|it| [&*it.title, &*it.url]).collect(),
        MessagePart::Image(_) | MessagePart::Reasoning { .. } | MessagePart::ProviderBlock(_) => Vec::new(),
    }
}

/// Collapses white space and cuts the text to `limit` characters, with `…` where something was cut.
pub(crate) fn truncate_to_line(text: &str, limit: usize) -> String {
    let words = text.split_whitespace();
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // A character has at most 4 bytes, so this is enough for the cut below.
        if line.len() > limit * 4 {
            break;
        }
    }
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::{AgentMessage, Json, ToolCall};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_gist_is_one_line_of_what_is_said_or_called() {
        let arguments = Json::new(&json!({"path": "a.rs"}));
        let call = ToolCall { id: "c".into(), name: "read".into(), arguments, result: None };
        let body =
            |content| MessageBody::Assistant { content, provider: None, model: None, stop_reason: None };
        let preview = |body| {
            let preview = Entry::message(None, AgentMessage::new("m", body)).preview(20);
            preview.map(|preview| (preview.role, preview.text))
        };
        let said = |text: &str| Some(("assistant", text.to_owned()));
        assert_eq!(preview(body(vec![MessagePart::text(" a\n\n b ")])), said("a b"));
        assert_eq!(preview(body(vec![MessagePart::ToolCall(call)])), said("read({\"path\":\"a.rs\"}…"));
        assert_eq!(preview(body(vec![MessagePart::text("é".repeat(21))])), said(&("é".repeat(20) + "…")));
        let name = Entry::new("n", None, None, Record::Name { name: "x".into() });
        assert_eq!(name.preview(20), None);
    }
}

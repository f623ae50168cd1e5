//! What a message says, for readers: who speaks, and the texts.

use hardpan_prompt::{Body, Part};

use crate::entry::Entry;
use crate::record::Record;

/// An entry in one line, for lists and trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gist {
    /// Who speaks, or what happened.
    pub role: &'static str,
    /// What is said; of an answer without text, its calls.
    pub text: String,
}

impl Entry {
    /// The entry in one line of at most so many characters of text; none for what only the program needs.
    pub fn gist(&self, limit: usize) -> Option<Gist> {
        let (role, text) = match &self.record {
            Record::Message(message) => (role(&message.body), says(&message.body)),
            Record::Compaction { summary, .. } => ("compaction", summary.to_string()),
            Record::ModelChange { provider, model } => ("model", format!("{provider}/{model}")),
            Record::ThinkingChange { level } => ("thinking", level.to_string()),
            _ => return None,
        };
        Some(Gist { role, text: in_one_line(&text, limit) })
    }
}

fn says(body: &Body) -> String {
    let text = texts(body).join(" ");
    match body {
        Body::Assistant { content, .. } if text.trim().is_empty() => {
            let calls = content.iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some(format!("{}({})", call.name, call.arguments.as_str())),
                _ => None,
            });
            calls.collect::<Vec<_>>().join(" ")
        }
        _ => text,
    }
}

/// The role, as the file has it.
pub(crate) fn role(body: &Body) -> &'static str {
    match body {
        Body::User { .. } => "user",
        Body::Assistant { .. } => "assistant",
        Body::ToolResult { .. } => "tool_result",
        Body::Custom { .. } => "custom",
        Body::BashExecution { .. } => "bash_execution",
        Body::CompactionSummary { .. } => "compaction_summary",
        Body::BranchSummary { .. } => "branch_summary",
    }
}

/// The texts, without reasoning and without the arguments of calls.
pub(crate) fn texts(body: &Body) -> Vec<&str> {
    match body {
        Body::User { content }
        | Body::Assistant { content, .. }
        | Body::ToolResult { content, .. }
        | Body::Custom { content, .. } => content.iter().flat_map(part_texts).collect(),
        Body::BashExecution { command, output, .. } => vec![command, output],
        Body::CompactionSummary { summary } | Body::BranchSummary { summary } => vec![summary],
    }
}

fn part_texts(part: &Part) -> Vec<&str> {
    match part {
        Part::Text { text } => vec![text],
        Part::ToolCall(call) => {
            call.result.iter().flat_map(|result| &result.content).flat_map(part_texts).collect()
        }
        Part::Image(_) | Part::Reasoning { .. } => Vec::new(),
    }
}

/// The text in one line of at most so many characters.
pub(crate) fn in_one_line(text: &str, limit: usize) -> String {
    let words = text.split_whitespace();
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // Far enough that the cut below is not at the end.
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
        let body = |content| Body::Assistant { content, provider: None, model: None, stop_reason: None };
        let gist = |body| {
            let gist = Entry::message(None, AgentMessage::new("m", body)).gist(20);
            gist.map(|gist| (gist.role, gist.text))
        };
        let said = |text: &str| Some(("assistant", text.to_owned()));
        assert_eq!(gist(body(vec![Part::text(" a\n\n b ")])), said("a b"));
        assert_eq!(gist(body(vec![Part::ToolCall(call)])), said("read({\"path\":\"a.rs\"}…"));
        assert_eq!(gist(body(vec![Part::text("é".repeat(21))])), said(&("é".repeat(20) + "…")));
        let name = Entry::new("n", None, None, Record::Name { name: "x".into() });
        assert_eq!(name.gist(20), None);
    }
}

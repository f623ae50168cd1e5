//! [`plan_detachment`]: when old messages leave the conversation for a frozen history panel, and
//! how many.

use hardpan_prompt::{AgentMessage, Hash, MessageBody, MessagePart, MessageState, Text, TokenCounter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When old messages leave the conversation for a frozen history panel: when a chunk and what stays
/// have at least this much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DetachLimits {
    /// Messages of a chunk.
    pub chunk_messages: usize,
    /// Tokens of a chunk.
    pub chunk_tokens: usize,
    /// Messages that stay in the conversation.
    pub keep_messages: usize,
    /// Tokens that stay in the conversation.
    pub keep_tokens: usize,
}

impl Default for DetachLimits {
    fn default() -> Self {
        DetachLimits { chunk_messages: 25, chunk_tokens: 5_000, keep_messages: 25, keep_tokens: 7_500 }
    }
}

/// How many of the oldest messages to detach; none if it is too early. The chunk is the smallest
/// that ends after a complete answer of the assistant and meets all four limits.
pub fn plan_detachment(
    messages: &[AgentMessage],
    limits: &DetachLimits,
    tokens: impl Fn(&AgentMessage) -> usize,
) -> Option<usize> {
    let sizes: Vec<(usize, usize)> = messages
        .iter()
        .map(|message| if is_active(message) { (1, tokens(message)) } else { (0, 0) })
        .collect();
    let total = sizes.iter().fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
    let mut chunk = (0, 0);
    for (index, size) in sizes.iter().enumerate() {
        chunk = (chunk.0 + size.0, chunk.1 + size.1);
        let keep = (total.0 - chunk.0, total.1 - chunk.1);
        if keep.0 < limits.keep_messages || keep.1 < limits.keep_tokens {
            return None;
        }
        let large_enough = chunk.0 >= limits.chunk_messages.max(1) && chunk.1 >= limits.chunk_tokens;
        if large_enough && ends_a_turn(messages, index) {
            return Some(index + 1);
        }
    }
    None
}

/// Limits with which the next request freezes the messages up to the end of the turn that `last` is in or
/// before: those that are sent now. None if there is no whole turn.
pub fn limits_up_to(live: &[AgentMessage], last: usize) -> Option<DetachLimits> {
    // The prompt that comes next ends the last turn.
    let ends = |at: usize| ends_a_turn(live, at) || (at + 1 == live.len() && !live[at].is_user());
    let end = (0..live.len().min(last + 1)).rev().find(|&at| ends(at))?;
    let count = |messages: &[AgentMessage]| messages.iter().filter(|message| is_active(message)).count();
    let (chunk_messages, keep_messages) = (count(&live[..=end]), count(&live[end + 1..]));
    (chunk_messages > 0).then_some(DetachLimits {
        chunk_messages,
        chunk_tokens: 0,
        keep_messages,
        keep_tokens: 0,
    })
}

/// Whether the message is sent: neither deleted nor detached.
pub fn is_active(message: &AgentMessage) -> bool {
    matches!(message.state, MessageState::Whole | MessageState::TlDr)
}

/// Whether the assistant's answer is complete here: the next sent message is the user's, and this
/// one is not.
fn ends_a_turn(messages: &[AgentMessage], index: usize) -> bool {
    let next = messages[index + 1..].iter().find(|message| is_active(message));
    !messages[index].is_user() && next.is_some_and(AgentMessage::is_user)
}

/// Counts the tokens of a message: its text, its tool calls (name and arguments) and its results.
pub fn estimate_tokens(message: &AgentMessage, counter: &TokenCounter) -> usize {
    let sum = history_lines(message).into_iter().map(|(_, line)| match line {
        HistoryLine::Text(text) => counter.count(text),
        HistoryLine::ToolCall(name, arguments) => {
            let text = format!("{name} {arguments}");
            counter.count_hashed(Hash::of(text.as_bytes()), &text)
        }
    });
    sum.sum()
}

/// One entry of a frozen history.
pub enum HistoryLine<'a> {
    /// Text of a message or of a result.
    Text(&'a Text),
    /// A tool call: name and arguments.
    ToolCall(&'a str, &'a str),
}

/// The entries of a message in a frozen history, each with the role that is shown for it.
pub fn history_lines(message: &AgentMessage) -> Vec<(&'static str, HistoryLine<'_>)> {
    let role = role_name(message);
    if let (MessageState::TlDr, Some(summary)) = (message.state, &message.tl_dr) {
        return vec![(role, HistoryLine::Text(summary))];
    }
    let of_parts = |parts| lines_of_parts(role, parts);
    match &*message.body {
        MessageBody::User { content }
        | MessageBody::Custom { content, .. }
        | MessageBody::Assistant { content, .. } => of_parts(content),
        MessageBody::ToolResult { content, .. } => of_parts(content),
        MessageBody::BashExecution { exclude_from_context: true, .. } => Vec::new(),
        MessageBody::BashExecution { command, output, .. } => {
            vec![(role, HistoryLine::ToolCall("bash", command)), (role, HistoryLine::Text(output))]
        }
        MessageBody::CompactionSummary { summary } | MessageBody::BranchSummary { summary } => {
            vec![(role, HistoryLine::Text(summary))]
        }
    }
}

fn lines_of_parts<'a>(role: &'static str, parts: &'a [MessagePart]) -> Vec<(&'static str, HistoryLine<'a>)> {
    let mut lines = Vec::new();
    for part in parts {
        match part {
            MessagePart::Text { text } => lines.push((role, HistoryLine::Text(text))),
            MessagePart::ToolCall(call) => {
                lines.push((role, HistoryLine::ToolCall(&call.name, call.arguments.as_str())));
                let stored = call.result.iter().flat_map(|result| lines_of_parts("tool", &result.content));
                lines.extend(stored);
            }
            MessagePart::Image(_)
            | MessagePart::Reasoning { .. }
            | MessagePart::ProviderBlock(_)
            | MessagePart::Sources { .. } => {}
        }
    }
    lines
}

/// The role of a message as shown in a frozen history: user, assistant, tool or summary.
pub fn role_name(message: &AgentMessage) -> &'static str {
    match &*message.body {
        MessageBody::User { .. } | MessageBody::Custom { .. } | MessageBody::BashExecution { .. } => "user",
        MessageBody::Assistant { .. } => "assistant",
        MessageBody::ToolResult { .. } => "tool",
        MessageBody::CompactionSummary { .. } | MessageBody::BranchSummary { .. } => "summary",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(exchanges: usize) -> Vec<AgentMessage> {
        (0..exchanges * 2)
            .map(|index| {
                let content = vec![MessagePart::text("x")];
                let body = if index % 2 == 0 {
                    MessageBody::User { content }
                } else {
                    MessageBody::Assistant { content, provider: None, model: None, stop_reason: None }
                };
                AgentMessage::new(format!("m{index}").as_str(), body)
            })
            .collect()
    }

    #[test]
    fn all_four_constants_must_be_met() {
        // 60 messages of 300 tokens: 26 (the first turn boundary from 25 on) leave, 34 stay.
        assert_eq!(plan_detachment(&conversation(30), &DetachLimits::default(), |_| 300), Some(26));
        // Too few messages would stay.
        assert_eq!(plan_detachment(&conversation(25), &DetachLimits::default(), |_| 300), None);
        // Too few tokens would stay: 34 × 220 = 7480.
        assert_eq!(plan_detachment(&conversation(30), &DetachLimits::default(), |_| 220), None);
        // The limits are settings.
        let early = DetachLimits { chunk_messages: 4, chunk_tokens: 0, keep_messages: 2, keep_tokens: 0 };
        assert_eq!(plan_detachment(&conversation(3), &early, |_| 1), Some(4));
        // The chunk grows until it holds enough tokens: 100 tokens each, so 50 messages.
        assert_eq!(plan_detachment(&conversation(70), &DetachLimits::default(), |_| 100), Some(50));
    }

    #[test]
    fn a_chunk_ends_after_a_complete_assistant_turn() {
        let mut messages = conversation(40);
        // A long tool round: messages 20 to 40 belong to one turn.
        for index in (22..40).step_by(2) {
            let result = MessageBody::ToolResult {
                call_id: "c".into(),
                tool_name: None,
                content: vec![],
                is_error: false,
                not_run: None,
            };
            messages[index].body = result.into();
        }
        assert_eq!(plan_detachment(&messages, &DetachLimits::default(), |_| 300), Some(40));
    }

    #[test]
    fn deleted_messages_count_for_nothing() {
        let mut messages = conversation(30);
        messages[0].state = MessageState::Deleted;
        messages[1].state = MessageState::Detached;
        assert_eq!(plan_detachment(&messages, &DetachLimits::default(), |_| 300), Some(28));
    }
}

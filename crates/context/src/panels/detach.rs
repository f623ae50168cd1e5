//! What leaves the conversation for a frozen history panel (seed a, step 2).

use hardpan_prompt::{AgentMessage, Body, Counter, Hash, Part, State, Text};

/// The least messages in a chunk to detach.
pub const CHUNK_MIN_MESSAGES: usize = 25;
/// The least tokens in a chunk to detach.
pub const CHUNK_MIN_TOKENS: usize = 5_000;
/// The least messages that stay.
pub const KEEP_MIN_MESSAGES: usize = 25;
/// The least tokens that stay.
pub const KEEP_MIN_TOKENS: usize = 7_500;

/// How many of the oldest messages to detach, or none. The chunk is the smallest that ends at a turn boundary (after a
/// complete assistant turn), and all four constants must be met.
pub fn plan(messages: &[AgentMessage], tokens: impl Fn(&AgentMessage) -> usize) -> Option<usize> {
    let sizes: Vec<(usize, usize)> = messages
        .iter()
        .map(|message| if is_active(message) { (1, tokens(message)) } else { (0, 0) })
        .collect();
    let total = sizes.iter().fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
    let mut chunk = (0, 0);
    for (index, size) in sizes.iter().enumerate() {
        chunk = (chunk.0 + size.0, chunk.1 + size.1);
        let keep = (total.0 - chunk.0, total.1 - chunk.1);
        if keep.0 < KEEP_MIN_MESSAGES || keep.1 < KEEP_MIN_TOKENS {
            return None;
        }
        let large_enough = chunk.0 >= CHUNK_MIN_MESSAGES && chunk.1 >= CHUNK_MIN_TOKENS;
        if large_enough && ends_a_turn(messages, index) {
            return Some(index + 1);
        }
    }
    None
}

/// Whether the message is part of the live conversation.
pub fn is_active(message: &AgentMessage) -> bool {
    matches!(message.state, State::Whole | State::TlDr)
}

/// A turn ends where the next live message is the user's and this one is not.
fn ends_a_turn(messages: &[AgentMessage], index: usize) -> bool {
    let next = messages[index + 1..].iter().find(|message| is_active(message));
    !messages[index].is_user() && next.is_some_and(AgentMessage::is_user)
}

/// Tokens of a message: its text, its tool calls (name and arguments) and its results.
pub fn estimate_tokens(message: &AgentMessage, counter: &Counter) -> usize {
    let sum = lines(message).into_iter().map(|(_, line)| match line {
        Line::Said(text) => counter.count(text),
        Line::Called(name, arguments) => {
            let text = format!("{name} {arguments}");
            counter.count_hashed(Hash::of(text.as_bytes()), &text)
        }
    });
    sum.sum()
}

/// The conversation's own token count: what seed a shows in its sidebar.
pub fn conversation_tokens<'a>(live: impl Iterator<Item = &'a AgentMessage>, counter: &Counter) -> usize {
    live.filter(|message| is_active(message)).map(|message| estimate_tokens(message, counter)).sum()
}

/// A line of a frozen history.
pub enum Line<'a> {
    /// Text that was said.
    Said(&'a Text),
    /// A tool that was called: name and arguments.
    Called(&'a str, &'a str),
}

/// What a message says, line by line, each with who says it.
pub fn lines(message: &AgentMessage) -> Vec<(&'static str, Line<'_>)> {
    let role = role(message);
    if let (State::TlDr, Some(summary)) = (message.state, &message.tl_dr) {
        return vec![(role, Line::Said(summary))];
    }
    let of_parts = |parts| lines_of_parts(role, parts);
    match &*message.body {
        Body::User { content } | Body::Custom { content, .. } | Body::Assistant { content, .. } => {
            of_parts(content)
        }
        Body::ToolResult { content, .. } => of_parts(content),
        Body::BashExecution { exclude_from_context: true, .. } => Vec::new(),
        Body::BashExecution { command, output, .. } => {
            vec![(role, Line::Called("bash", command)), (role, Line::Said(output))]
        }
        Body::CompactionSummary { summary } | Body::BranchSummary { summary } => {
            vec![(role, Line::Said(summary))]
        }
    }
}

fn lines_of_parts<'a>(role: &'static str, parts: &'a [Part]) -> Vec<(&'static str, Line<'a>)> {
    let mut lines = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => lines.push((role, Line::Said(text))),
            Part::ToolCall(call) => {
                lines.push((role, Line::Called(&call.name, call.arguments.as_str())));
                let stored = call.result.iter().flat_map(|result| lines_of_parts("tool", &result.content));
                lines.extend(stored);
            }
            Part::Image(_) | Part::Reasoning { .. } => {}
        }
    }
    lines
}

/// Who speaks, in one word.
pub fn role(message: &AgentMessage) -> &'static str {
    match &*message.body {
        Body::User { .. } | Body::Custom { .. } | Body::BashExecution { .. } => "user",
        Body::Assistant { .. } => "assistant",
        Body::ToolResult { .. } => "tool",
        Body::CompactionSummary { .. } | Body::BranchSummary { .. } => "summary",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(exchanges: usize) -> Vec<AgentMessage> {
        (0..exchanges * 2)
            .map(|index| {
                let content = vec![Part::text("x")];
                let body = if index % 2 == 0 {
                    Body::User { content }
                } else {
                    Body::Assistant { content, provider: None, model: None, stop_reason: None }
                };
                AgentMessage::new(format!("m{index}").as_str(), body)
            })
            .collect()
    }

    #[test]
    fn all_four_constants_must_be_met() {
        // 60 messages of 300 tokens: 26 (the first turn boundary from 25 on) leave, 34 stay.
        assert_eq!(plan(&conversation(30), |_| 300), Some(26));
        // Too few messages would stay.
        assert_eq!(plan(&conversation(25), |_| 300), None);
        // Too few tokens would stay: 34 × 220 = 7480.
        assert_eq!(plan(&conversation(30), |_| 220), None);
        // The chunk grows until it holds enough tokens: 100 tokens each, so 50 messages.
        assert_eq!(plan(&conversation(70), |_| 100), Some(50));
    }

    #[test]
    fn a_chunk_ends_after_a_complete_assistant_turn() {
        let mut messages = conversation(40);
        // A long tool round: messages 20 to 40 belong to one turn.
        for index in (22..40).step_by(2) {
            let result =
                Body::ToolResult { call_id: "c".into(), tool_name: None, content: vec![], is_error: false };
            messages[index].body = result.into();
        }
        assert_eq!(plan(&messages, |_| 300), Some(40));
    }

    #[test]
    fn deleted_messages_count_for_nothing() {
        let mut messages = conversation(30);
        messages[0].state = State::Deleted;
        messages[1].state = State::Detached;
        assert_eq!(plan(&messages, |_| 300), Some(28));
    }
}

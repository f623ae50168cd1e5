//! Truncating every text of a conversation that is too long to be summarised whole.

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, Text};

/// Characters kept of each text, attempt by attempt: providers say that a request is too long, but
/// not by how much.
pub const MAX_CHARS_PER_TEXT: [usize; 4] = [4000, 1000, 250, 60];

/// The messages with at most `max_chars` characters of each text, without images and reasoning.
pub fn truncate_messages(messages: &[AgentMessage], max_chars: usize) -> Vec<AgentMessage> {
    messages
        .iter()
        .map(|message| AgentMessage {
            body: truncate_body(&message.body, max_chars).into(),
            ..message.clone()
        })
        .collect()
}

fn truncate_body(body: &MessageBody, max_chars: usize) -> MessageBody {
    let mut body = body.clone();
    match &mut body {
        MessageBody::User { content }
        | MessageBody::Assistant { content, .. }
        | MessageBody::ToolResult { content, .. }
        | MessageBody::Custom { content, .. } => {
            *content = content.iter().filter_map(|part| truncate_part(part, max_chars)).collect();
        }
        MessageBody::BashExecution { output: text, .. } => *text = truncate_text(text, max_chars),
        // Earlier summaries are short already, and replace many messages.
        MessageBody::CompactionSummary { .. } | MessageBody::BranchSummary { .. } => {}
    }
    body
}

fn truncate_part(part: &MessagePart, max_chars: usize) -> Option<MessagePart> {
    match part {
        MessagePart::Text { text } => Some(MessagePart::Text { text: truncate_text(text, max_chars) }),
        MessagePart::ToolCall(call) if call.arguments.as_str().len() <= max_chars => Some(part.clone()),
        MessagePart::ToolCall(call) => {
            let path =
                call.arguments.value()["path"].as_str().map_or_else(String::new, |path| format!(" {path}"));
            Some(MessagePart::text(format!("[{}{path}]", call.name)))
        }
        MessagePart::Image(_)
        | MessagePart::Reasoning { .. }
        | MessagePart::ProviderBlock(_)
        | MessagePart::Sources { .. } => None,
    }
}

/// Keeps the beginning, where the request is, and the end, where errors are.
fn truncate_text(text: &Text, max_chars: usize) -> Text {
    let count = text.as_str().chars().count();
    if count <= max_chars {
        return text.clone();
    }
    let head: String = text.as_str().chars().take(max_chars / 2).collect();
    let tail: String = text.as_str().chars().skip(count - max_chars / 2).collect();
    Text::new(format!("{head}\n[… {} characters …]\n{tail}", count - max_chars / 2 * 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "é".repeat(1000));
        let message = AgentMessage::new(
            "u",
            MessageBody::User { content: vec![MessagePart::text(long), MessagePart::text("short")] },
        );
        let [short] = &truncate_messages(&[message], 20)[..] else { panic!("one message") };
        let expected = [
            MessagePart::text(format!("begin{}\n[… 988 characters …]\n{}end", "é".repeat(5), "é".repeat(7))),
            MessagePart::text("short"),
        ];
        assert_eq!(*short.body, MessageBody::User { content: expected.to_vec() });
    }
}

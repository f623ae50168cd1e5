//! A conversation that is too long to be summarised whole: every text of it, cut.

use hardpan_prompt::{AgentMessage, Body, Part, Text};

/// How many characters of each text are kept, from try to try: a provider says only that it is too much.
pub const SHORT: [usize; 4] = [4000, 1000, 250, 60];

/// The messages with at most so many characters of each text, and without images and reasoning.
pub fn shortened(messages: &[AgentMessage], most: usize) -> Vec<AgentMessage> {
    messages
        .iter()
        .map(|message| AgentMessage { body: body(&message.body, most).into(), ..message.clone() })
        .collect()
}

fn body(body: &Body, most: usize) -> Body {
    let mut body = body.clone();
    match &mut body {
        Body::User { content }
        | Body::Assistant { content, .. }
        | Body::ToolResult { content, .. }
        | Body::Custom { content, .. } => {
            *content = content.iter().filter_map(|part| short_part(part, most)).collect();
        }
        Body::BashExecution { output: text, .. } => *text = cut(text, most),
        // What stands for many messages already is short, and worth more than they.
        Body::CompactionSummary { .. } | Body::BranchSummary { .. } => {}
    }
    body
}

fn short_part(part: &Part, most: usize) -> Option<Part> {
    match part {
        Part::Text { text } => Some(Part::Text { text: cut(text, most) }),
        Part::ToolCall(call) if call.arguments.as_str().len() <= most => Some(part.clone()),
        Part::ToolCall(call) => {
            let path =
                call.arguments.value()["path"].as_str().map_or_else(String::new, |path| format!(" {path}"));
            Some(Part::text(format!("[{}{path}]", call.name)))
        }
        Part::Image(_) | Part::Reasoning { .. } => None,
    }
}

/// The beginning and the end: errors stand last, and what was asked stands first.
fn cut(text: &Text, most: usize) -> Text {
    let count = text.as_str().chars().count();
    if count <= most {
        return text.clone();
    }
    let head: String = text.as_str().chars().take(most / 2).collect();
    let tail: String = text.as_str().chars().skip(count - most / 2).collect();
    Text::new(format!("{head}\n[… {} characters …]\n{tail}", count - most / 2 * 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let long = format!("begin{}end", "é".repeat(1000));
        let message =
            AgentMessage::new("u", Body::User { content: vec![Part::text(long), Part::text("short")] });
        let [short] = &shortened(&[message], 20)[..] else { panic!("one message") };
        let expected = [
            Part::text(format!("begin{}\n[… 988 characters …]\n{}end", "é".repeat(5), "é".repeat(7))),
            Part::text("short"),
        ];
        assert_eq!(*short.body, Body::User { content: expected.to_vec() });
    }
}

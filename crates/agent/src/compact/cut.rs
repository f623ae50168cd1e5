//! Where a conversation is cut: the messages before the cut are summarised, the rest is kept.

use std::collections::BTreeSet;

use hardpan_context::Target;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, begins_exchange};

/// Roughly how many tokens of recent messages are kept unchanged.
const KEPT_TOKENS: usize = 20_000;

/// The same for a model, whose window may be small.
pub fn kept_tokens(target: &Target) -> usize {
    KEPT_TOKENS.min(target.max_input_tokens() as usize / 10)
}

/// Index of the first message to keep; `None` if next to nothing would be summarised.
///
/// It is the first message of a turn: a user message, or an answer with the results of its calls
/// after it. Among user messages that leave about the wanted size, the one where the subject
/// changes most is preferred.
pub fn first_kept(messages: &[AgentMessage], sizes: &[usize], wanted: usize) -> Option<usize> {
    // Tokens from each message to the end.
    let mut after = vec![0; messages.len() + 1];
    for index in (0..messages.len()).rev() {
        after[index] = after[index + 1] + sizes[index];
    }
    let begins_turn = |index: &usize| !matches!(*messages[*index].body, MessageBody::ToolResult { .. });
    let near = |index: &usize| (wanted / 2..=wanted * 2).contains(&after[*index]);
    let by_topic = (1..messages.len())
        .filter(near)
        .filter(|index| begins_exchange(messages, *index))
        .min_by_key(|index| (topic_overlap(messages, *index), after[*index].abs_diff(wanted)));
    let by_size =
        || (1..messages.len()).filter(begins_turn).min_by_key(|index| after[*index].abs_diff(wanted));
    let cut = by_topic.or_else(by_size)?;
    // Summarising a few messages costs more than it saves.
    (after[0] - after[cut] > wanted / 10).then_some(cut)
}

/// How many words the messages before and after a cut share, in percent of the side with fewer
/// words.
fn topic_overlap(messages: &[AgentMessage], index: usize) -> usize {
    /// Messages on each side that are compared.
    const SPAN: usize = 4;
    let before = words(&messages[index.saturating_sub(SPAN)..index]);
    let after = words(&messages[index..messages.len().min(index + SPAN)]);
    let shared = before.intersection(&after).count();
    shared * 100 / before.len().min(after.len()).max(1)
}

/// Longer words in what the user and the model say; tool output says little about the subject.
fn words(messages: &[AgentMessage]) -> BTreeSet<String> {
    let parts = messages.iter().flat_map(|message| match &*message.body {
        MessageBody::User { content } | MessageBody::Assistant { content, .. } => content.as_slice(),
        _ => &[],
    });
    let texts = parts
        .filter_map(|part| if let MessagePart::Text { text } = part { Some(text.as_str()) } else { None });
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    texts
        .flat_map(|text| text.split(move |c| !is_letter(c)))
        .filter(|word| word.chars().count() > 4)
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> AgentMessage {
        AgentMessage::new("u", MessageBody::User { content: vec![MessagePart::text(text)] })
    }

    fn model(text: &str) -> AgentMessage {
        let content = vec![MessagePart::text(text)];
        AgentMessage::new(
            "a",
            MessageBody::Assistant { content, provider: None, model: None, stop_reason: None },
        )
    }

    fn result() -> AgentMessage {
        let content = vec![MessagePart::text("output")];
        AgentMessage::new(
            "r",
            MessageBody::ToolResult {
                call_id: "c".into(),
                tool_name: None,
                content,
                is_error: false,
                not_run: None,
            },
        )
    }

    #[test]
    fn the_recent_part_begins_with_a_turn_and_has_about_the_wanted_size() {
        let messages = [user("start"), model("x"), result(), model("y"), result(), model("z"), result()];
        let sizes = [100; 7];
        assert_eq!(first_kept(&messages, &sizes, 210), Some(5));
        assert_eq!(first_kept(&messages, &sizes, 390), Some(3));
    }

    #[test]
    fn the_cut_moves_to_where_the_subject_changes() {
        let messages = [
            user("parser grammar tokens"),
            model("parser grammar tokens"),
            user("parser tokens again"),
            model("grammar parser"),
            user("deploy server certificates"),
            model("server deploy"),
            user("server certificates expire"),
            model("certificates deploy"),
        ];
        assert_eq!(first_kept(&messages, &[100; 8], 300), Some(4));
    }

    #[test]
    fn a_sliver_is_not_worth_a_summary() {
        assert_eq!(first_kept(&[user("a"), model("b"), user("c")], &[1, 1, 5000], 5000), None);
        assert_eq!(first_kept(&[user("a")], &[10], 5000), None);
        assert_eq!(first_kept(&[], &[], 5000), None);
    }
}

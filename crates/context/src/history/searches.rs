//! The blocks of a provider's own web search, on their way back to it.

use hardpan_prompt::{
    AgentMessage, Content, MessageBody, MessagePart, MessageState, Origin, ProviderBlock, ProviderBlockKind,
    ProviderContent, Text,
};

use super::conversion::text_content;

/// The cited pieces of a text, which are the parts right after it.
pub fn cited_pieces(after: &[MessagePart]) -> Vec<&ProviderBlock> {
    let blocks = after.iter().map_while(|part| match part {
        MessagePart::ProviderBlock(block) => Some(block),
        _ => None,
    });
    blocks.take_while(|block| matches!(block.kind, ProviderBlockKind::CitedText { .. })).collect()
}

/// Whether a block of a search can be sent: a search with its result, a result with its search. They
/// stand in one answer, or in two if the provider paused between them; then the search goes back alone
/// to get its result.
pub fn is_complete(block: &ProviderBlock, messages: &[AgentMessage], index: usize) -> bool {
    let wanted = match block.kind {
        ProviderBlockKind::Call => ProviderBlockKind::Result,
        ProviderBlockKind::Result => ProviderBlockKind::Call,
        ProviderBlockKind::Search | ProviderBlockKind::CitedText { .. } => return true,
    };
    let near = &messages[index.saturating_sub(1)..messages.len().min(index + 2)];
    let parts = near.iter().filter(|message| message.state == MessageState::Whole).flat_map(answer_parts);
    let has_partner = parts.into_iter().any(|part| match part {
        MessagePart::ProviderBlock(other) => other.kind == wanted && other.id == block.id,
        _ => false,
    });
    let is_paused = || match &*messages[index].body {
        MessageBody::Assistant { stop_reason, .. } => stop_reason.as_deref() == Some("pause"),
        _ => false,
    };
    let is_waiting = block.kind == ProviderBlockKind::Call && index + 1 == messages.len() && is_paused();
    has_partner || is_waiting
}

fn answer_parts(message: &AgentMessage) -> &[MessagePart] {
    match &*message.body {
        MessageBody::Assistant { content, .. } => content,
        _ => &[],
    }
}

/// Adds a text, with its cited pieces as the provider sent them. Pieces that are not of this text, as
/// in a session file that someone changed, are sent as text.
pub fn push_cited_text(
    text: &Text,
    cited: &[&ProviderBlock],
    message: &AgentMessage,
    contents: &mut Vec<Content>,
) {
    let mut sent = 0;
    let push_plain = |piece: &str, contents: &mut Vec<Content>| {
        if !piece.trim().is_empty() {
            contents.push(text_content(Text::new(piece), message));
        }
    };
    for block in cited {
        let ProviderBlockKind::CitedText { bytes, after } = block.kind else { continue };
        let end = text.len().checked_sub(after);
        let begin = end.and_then(|end| end.checked_sub(bytes)).filter(|begin| *begin >= sent);
        let Some((begin, end)) = begin.zip(end) else { continue };
        let (Some(plain), Some(piece)) = (text.get(sent..begin), text.get(begin..end)) else { continue };
        push_plain(plain, contents);
        contents.push(provider_content(block, Some(Text::new(piece)), message));
        sent = end;
    }
    match sent {
        0 => contents.push(text_content(text.clone(), message)),
        _ => push_plain(text.get(sent..).unwrap_or_default(), contents),
    }
}

/// A block as it is sent; `text` is what it says.
pub fn provider_content(block: &ProviderBlock, text: Option<Text>, message: &AgentMessage) -> Content {
    let (json, origin) = (block.json.clone(), Origin::message(&message.id));
    Content::Provider(ProviderContent { json, text, origin })
}

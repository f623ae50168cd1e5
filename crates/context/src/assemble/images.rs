//! Not more images than a request takes.

use hardpan_prompt::{
    Block, Content, ItemKind, Omission, OmissionReason, Origin, Prompt, PromptMessage, ResultPart, Role,
    Segment, ToolResult,
};

use crate::PromptTexts;

/// The most images in one request (Anthropic, windows of 200k tokens).
const MAX_IMAGES: usize = 100;

/// Leaves out the oldest images where there are too many. Returns how many were left out.
pub fn limit_images(prompt: &mut Prompt, texts: &PromptTexts) -> usize {
    let total: usize = prompt.blocks().map(|block| count_images(&block.content)).sum();
    let excess = total.saturating_sub(MAX_IMAGES);
    if excess == 0 {
        return 0;
    }
    let reason = OmissionReason::TooManyImages { excess, limit: MAX_IMAGES };
    let mut remaining = excess;
    let mut left_out = Vec::new();
    for message in &mut prompt.messages {
        message.blocks.retain_mut(|block| {
            let wanted = count_images(&block.content).min(remaining);
            if wanted == 0 {
                return true;
            }
            remaining -= wanted;
            let name = block.origin().map_or_else(String::new, |origin| format!("image of {origin}"));
            left_out.extend((0..wanted).map(|_| Omission::of_attachment(name.clone(), reason.clone())));
            match block.content.edit() {
                Content::Result(result) => drop_first_images(result, wanted, texts),
                _ => return false,
            }
            true
        });
    }
    prompt.messages.retain(|message| !message.blocks.is_empty());
    begin_with_user(prompt, texts);
    prompt.left_out.append(&mut left_out);
    excess
}

fn count_images(content: &Content) -> usize {
    match content {
        Content::Image(..) => 1,
        Content::Result(result) => {
            result.parts.iter().filter(|part| matches!(part, ResultPart::Image(_))).count()
        }
        Content::Text(_)
        | Content::Reasoning(_)
        | Content::Call(_)
        | Content::ToolChange(_)
        | Content::Provider(_) => 0,
    }
}

/// Removes the first images of a result. One that held nothing else says so.
fn drop_first_images(result: &mut ToolResult, mut count: usize, texts: &PromptTexts) {
    result.parts.retain(|part| {
        let drop = count > 0 && matches!(part, ResultPart::Image(_));
        count -= usize::from(drop);
        !drop
    });
    if result.parts.is_empty() {
        let nothing = Segment::new(texts.phrases.history.no_output.clone(), result.origin.clone());
        result.parts.push(ResultPart::Text(vec![nothing]));
    }
}

/// Puts a short message first where the conversation began with nothing but images.
fn begin_with_user(prompt: &mut Prompt, texts: &PromptTexts) {
    let first = prompt.messages.first().filter(|message| message.role == Role::Assistant);
    if let Some(region) = first.and_then(|message| message.blocks.first()).map(|block| block.region) {
        let origin = Origin::rule(ItemKind::History, "opening");
        let opening = Block::text(region, texts.phrases.history.opening.clone(), origin);
        prompt.messages.insert(0, PromptMessage::new(Role::User, vec![opening]));
    }
}

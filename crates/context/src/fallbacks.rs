//! [`without_tools`], [`without_images`] and [`without_newer_fields`]: a finished prompt, rewritten
//! for models that lack tools or vision, and for servers that do not know newer fields.
//!
//! They work on prompts and not in the codecs, because they change what the model reads, and that
//! text belongs to `prompts/`.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::{
    Block, Content, Image, ItemKind, Origin, Prompt, PromptMessage, ProviderContent, Region, ResultPart,
    Role, Segment, Thinking, Tool, ToolBlock, ToolOutcome, ToolResult,
};

use crate::PromptTexts;
use crate::texts::fill_template;

/// The same prompt without tools: calls and results become text. The layouts' own calls, which only
/// carry context, become a user message with an "Ok." reply, as in `tiers`.
pub fn without_tools(prompt: &Prompt, texts: &PromptTexts) -> Prompt {
    let mut plain = Prompt {
        tools: Vec::new(),
        thinking: Thinking::Unspecified,
        messages: Vec::new(),
        web_search: None,
        ..prompt.clone()
    };
    let mut names: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
    for message in &prompt.messages {
        let mut message = message.clone();
        let mut replies = None;
        let blocks = std::mem::take(&mut message.blocks);
        for block in blocks {
            let content = match block.content.into_content() {
                // A layout's own call says nothing by itself.
                Content::Call(call) if call.origin.is_rule() => continue,
                // Reasoning belongs to the calls it led to; without tools, none come or go.
                Content::Reasoning(_) | Content::ToolChange(_) => continue,
                // Neither is there a search.
                Content::Provider(ProviderContent { json: _, text, origin }) => match text {
                    Some(text) => Content::Text(vec![Segment { text, origin }]),
                    None => continue,
                },
                Content::Call(call) => {
                    names.insert(call.id.clone(), call.name.clone());
                    let values = [("name", &*call.name), ("arguments", call.arguments.as_str())];
                    let text = fill_template(&texts.phrases.history.call_as_text, &values);
                    Content::Text(vec![Segment::new(text, call.origin)])
                }
                Content::Result(result) => {
                    let name = names.get(&result.call_id);
                    if name.is_none() {
                        replies = Some(block.region);
                    }
                    let (text, images) = result_as_text(&result, name.map(|name| &**name), texts);
                    let image =
                        |image| Block::new(block.region, Content::Image(image, result.origin.clone()));
                    message.blocks.push(Block {
                        region: block.region,
                        content: text.into(),
                        breakpoint: block.breakpoint,
                    });
                    message.blocks.extend(images.into_iter().map(image));
                    continue;
                }
                content @ (Content::Text(_) | Content::Image(..)) => content,
            };
            message.blocks.push(Block {
                region: block.region,
                content: content.into(),
                breakpoint: block.breakpoint,
            });
        }
        if !message.blocks.is_empty() {
            plain.messages.push(message);
        }
        plain.messages.extend(replies.map(|region| context_reply(region, texts)));
    }
    merge_replies(&mut plain);
    plain
}

fn context_reply(region: Region, texts: &PromptTexts) -> PromptMessage {
    let origin = Origin::rule(ItemKind::Panel, "context reply");
    PromptMessage::new(
        Role::Assistant,
        vec![Block::text(region, texts.phrases.history.context_ack.clone(), origin)],
    )
}

/// Removes an added "Ok." where the model's own reply follows, or where it would end the prompt.
fn merge_replies(prompt: &mut Prompt) {
    let is_ack = |message: &PromptMessage| {
        let origin = message.blocks.first().and_then(Block::origin);
        origin.is_some_and(|origin| *origin == Origin::rule(ItemKind::Panel, "context reply"))
    };
    let mut index = 0;
    while index + 1 < prompt.messages.len() {
        if is_ack(&prompt.messages[index]) && prompt.messages[index + 1].role == Role::Assistant {
            prompt.messages.remove(index);
        } else {
            index += 1;
        }
    }
    prompt.messages.pop_if(|last| is_ack(last));
}

fn result_as_text(result: &ToolResult, name: Option<&str>, texts: &PromptTexts) -> (Content, Vec<Image>) {
    let mut segments: Vec<Segment> = Vec::new();
    let mut images = Vec::new();
    for part in &result.parts {
        match part {
            ResultPart::Text(parts) => segments.extend(parts.iter().cloned()),
            ResultPart::Image(image) => images.push(image.clone()),
        }
    }
    if let Some(name) = name {
        let template = match result.outcome {
            ToolOutcome::Done => &texts.phrases.history.result_as_text,
            ToolOutcome::Failed => &texts.phrases.history.failure_as_text,
        };
        let (before, after) = template.split_once("{content}").unwrap_or((template, ""));
        let rule = |text: &str| Segment::new(fill_template(text, &[("name", name)]), result.origin.clone());
        segments.insert(0, rule(before));
        segments.extend((!after.is_empty()).then(|| rule(after)));
    }
    if segments.iter().all(|segment| segment.text.trim().is_empty()) {
        segments = vec![Segment::new(texts.phrases.history.no_output.clone(), result.origin.clone())];
    }
    (Content::Text(segments), images)
}

/// The same prompt without images: a line of text says that there was one.
pub fn without_images(prompt: &Prompt, texts: &PromptTexts) -> Prompt {
    let mut plain = prompt.clone();
    let line = |image: &Image| {
        fill_template(&texts.phrases.history.image_left_out, &[("media_type", image.media_type.name())])
    };
    for block in plain.messages.iter_mut().flat_map(|message| &mut message.blocks) {
        if !block.has_image() {
            continue;
        }
        match block.content.edit() {
            Content::Result(result) => {
                for part in &mut result.parts {
                    if let ResultPart::Image(image) = part {
                        *part = ResultPart::Text(vec![Segment::new(line(image), result.origin.clone())]);
                    }
                }
            }
            content => {
                if let Content::Image(image, origin) = content {
                    *content = Content::Text(vec![Segment::new(line(image), origin.clone())]);
                }
            }
        }
    }
    plain
}

/// The same prompt without what only newer servers know: system messages inside the conversation
/// become text of the user message before them, the tools are declared as they are in the end, and
/// reasoning is not asked to be dropped.
pub fn without_newer_fields(prompt: &Prompt) -> Prompt {
    let mut plain = Prompt { drop_stale_reasoning: false, messages: Vec::new(), ..prompt.clone() };
    plain.tools = available_tools(prompt);
    for message in &prompt.messages {
        if message.role != Role::System {
            plain.messages.push(message.clone());
            continue;
        }
        let is_text = |block: &&Block| !matches!(*block.content, Content::ToolChange(_));
        let blocks: Vec<Block> = message.blocks.iter().filter(is_text).cloned().collect();
        match plain.messages.last_mut() {
            Some(last) if last.role == Role::User => last.blocks.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => plain.messages.push(PromptMessage::new(Role::User, blocks)),
        }
    }
    plain
}

/// The tools that the model may call, declared. Those that stay keep their breakpoints.
fn available_tools(prompt: &Prompt) -> Vec<ToolBlock> {
    let Some(first) = prompt.tools.first() else { return Vec::new() };
    let declaration = |tool: &Tool| {
        let declared = prompt.tools.iter().find(|block| block.tool == *tool);
        let added = || ToolBlock { region: first.region, tool: tool.clone(), breakpoint: None };
        declared.cloned().unwrap_or_else(added)
    };
    prompt.available_tools().iter().map(declaration).collect()
}

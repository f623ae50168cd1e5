//! [`SentResult`]: the tool results of a prompt, each with its call.

use hardpan_prompt::{
    Call, Content, Hash, MessageId, Prompt, PromptTokens, ResultPart, Role, Source, ToolResult,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// A tool result of the prompt, with its call.
pub struct SentResult<'a> {
    pub block: usize,
    pub tokens: usize,
    pub message: &'a MessageId,
    pub call: Option<&'a Call>,
    pub call_tokens: usize,
    pub result: &'a ToolResult,
}

/// The tool results of the conversation with their calls, in order. BASE's are not among them.
pub fn sent_results<'a>(prompt: &'a Prompt, measured: &PromptTokens) -> Vec<SentResult<'a>> {
    let mut calls: FxHashMap<&str, (&Call, usize)> = FxHashMap::default();
    let mut results = Vec::new();
    let mut block = prompt.tools.len() + prompt.system.len();
    for message in &prompt.messages {
        for content in message.blocks.iter().map(|block| &*block.content) {
            match content {
                Content::Call(call) => drop(calls.insert(&call.id, (call, block))),
                Content::Result(result) => {
                    if let Source::Message(message) = &result.origin.source {
                        let call = calls.remove(&*result.call_id);
                        results.push(SentResult {
                            block,
                            tokens: measured.tokens(block),
                            message,
                            call: call.map(|(call, _)| call),
                            call_tokens: call.map_or(0, |(_, block)| measured.tokens(block)),
                            result,
                        });
                    }
                }
                _ => {}
            }
            block += 1;
        }
    }
    results
}

/// The first block that the model has not answered yet.
pub fn first_block_in_flight(prompt: &Prompt) -> usize {
    let answered = prompt.messages.iter().rposition(|message| message.role == Role::Assistant);
    let blocks = |messages: usize| -> usize {
        prompt.messages[..messages].iter().map(|message| message.blocks.len()).sum()
    };
    prompt.tools.len() + prompt.system.len() + blocks(answered.map_or(0, |last| last + 1))
}

/// Whether the result holds images and nothing else, all of which later results hold as well.
pub fn shows_images_again(result: &ToolResult, later: &mut FxHashSet<Hash>) -> bool {
    let mut is_again = !result.parts.is_empty();
    for part in &result.parts {
        match part {
            ResultPart::Image(image) => is_again &= !later.insert(image.hash()),
            ResultPart::Text(segments) => {
                is_again &= segments.iter().all(|segment| segment.text.trim().is_empty());
            }
        }
    }
    is_again && result.parts.iter().any(|part| matches!(part, ResultPart::Image(_)))
}

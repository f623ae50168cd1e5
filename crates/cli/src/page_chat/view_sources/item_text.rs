//! The text of something in the context, as requests send it.

use hardpan_app::ConversationApp;
use hardpan_context::AssembledPrompt;
use hardpan_prompt::{Content, ResultPart, Source};

use crate::views::stored_content;

/// The text behind a key of the breakdown: as the next request sends it, else as the session has it.
pub async fn item_text(app: &ConversationApp, key: &str) -> String {
    if let Some(id) = key.strip_prefix("message:") {
        return match app.agent.recall(id).await {
            Ok(stored) => stored_content(&stored),
            Err(error) => error.to_string(),
        };
    }
    match app.preview_request("").await {
        Ok(preview) => sent_text(&preview.assembled, key),
        Err(error) => error.to_string(),
    }
}

/// Everything that a request sends for a key.
fn sent_text(assembled: &AssembledPrompt, key: &str) -> String {
    let prompt = &assembled.prompt;
    let is_named = |source: &Source| source.to_string() == key;
    let mut parts: Vec<String> = Vec::new();
    for block in &prompt.tools {
        if is_named(&Source::Tool(block.tool.name.clone())) {
            parts.push(format!("{}\n{}", block.tool.description, block.tool.parameters.as_str()));
        }
    }
    for block in prompt.blocks() {
        let segments = match &*block.content {
            Content::Text(segments) => segments.iter().collect(),
            Content::Result(result) => {
                let texts = result.parts.iter().filter_map(|part| match part {
                    ResultPart::Text(segments) => Some(segments),
                    ResultPart::Image(_) => None,
                });
                texts.flatten().collect()
            }
            _ => Vec::new(),
        };
        let named = segments.into_iter().filter(|segment| is_named(&segment.origin.source));
        parts.extend(named.map(|segment| segment.text.to_string()));
    }
    if parts.is_empty() { "the next request does not send it".to_owned() } else { parts.join("\n") }
}

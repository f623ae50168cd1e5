//! The server's own search of the web: what it finds, and what of it may come back.

use std::collections::BTreeSet;

use hardpan_prompt::{Content, Role};
use hardpan_providers::decode::{DecodedRequest, SpecialBlock};
use serde_json::{Value, json};

use crate::found_page::FoundPage;

/// A search, and its result. Its contents are sealed, and must come back as they were.
pub fn blocks(query: &str, id: &str) -> [Value; 2] {
    let page = FoundPage::new(query);
    let found = json!({
        "type": "web_search_result", "url": page.url, "title": page.title,
        "encrypted_content": page.seal("content"), "page_age": null,
    });
    [
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": query}}),
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [found]}),
    ]
}

/// The citation of a text.
pub fn citation(page: &FoundPage, text: &str) -> Value {
    json!({
        "type": "web_search_result_location", "url": page.url, "title": page.title,
        "encrypted_index": page.seal("index"), "cited_text": text,
    })
}

/// What is wrong with the blocks of searches, and where; `None` if nothing is.
pub fn find_problem(decoded: &DecodedRequest) -> Option<(String, String)> {
    let messages = decoded.prompt.messages.iter().enumerate();
    let answers = messages.filter(|(_, message)| message.role == Role::Assistant);
    let unpaired = answers.map(|(message, _)| message).find_map(|message| find_unpaired(decoded, message));
    unpaired.or_else(|| find_changed_result(decoded)).or_else(|| find_changed_citation(decoded))
}

/// The blocks of the server's tools in a message, as JSON, with their place.
fn server_blocks(
    decoded: &DecodedRequest,
    message: usize,
) -> impl Iterator<Item = (usize, SpecialBlock, Value)> {
    let blocks = decoded.prompt.messages[message].blocks.iter().enumerate();
    blocks.filter_map(move |(block, content)| {
        let special = decoded.anthropic.special_blocks.get(&(message, block))?;
        let Content::Text(segments) = &*content.content else { return None };
        let json: String = segments.iter().map(|segment| segment.text.as_str()).collect();
        Some((block, *special, serde_json::from_str(&json).ok()?))
    })
}

/// A search without its result, or a result without its search, in one message. The last message may
/// wait for the result while the client's own tools run.
fn find_unpaired(decoded: &DecodedRequest, message: usize) -> Option<(String, String)> {
    let is_search =
        |block: &Value| block["name"] == "web_search" || block["type"] == "web_search_tool_result";
    let blocks: Vec<_> = server_blocks(decoded, message).filter(|(.., block)| is_search(block)).collect();
    let ids = |wanted: SpecialBlock, field: &str| -> BTreeSet<String> {
        let of_kind = blocks.iter().filter(|(_, special, _)| *special == wanted);
        of_kind.filter_map(|(.., block)| Some(block[field].as_str()?.to_owned())).collect()
    };
    let calls = ids(SpecialBlock::ServerToolUse, "id");
    let results = ids(SpecialBlock::ServerToolResult, "tool_use_id");
    let has_later_answer =
        decoded.prompt.messages[message + 1..].iter().any(|message| message.role == Role::Assistant);
    let is_waiting = !has_later_answer
        && decoded.prompt.messages[message]
            .blocks
            .iter()
            .any(|block| matches!(*block.content, Content::Call(_)));
    if let Some(id) = calls.difference(&results).next().filter(|_| !is_waiting) {
        let words = format!(
            "`web_search` tool use with id `{id}` was found without a corresponding `web_search_tool_result` block"
        );
        return Some((format!("messages.{message}"), words));
    }
    let id = results.difference(&calls).next()?;
    let words = format!(
        "unexpected `tool_use_id` found in `web_search_tool_result` blocks: {id}. Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it."
    );
    Some((format!("messages.{message}"), words))
}

/// A result that is not as the server made it. A failed search holds an object instead of pages.
fn find_changed_result(decoded: &DecodedRequest) -> Option<(String, String)> {
    let messages = 0..decoded.prompt.messages.len();
    let mut blocks = messages.flat_map(|message| {
        server_blocks(decoded, message).map(move |(index, _, block)| (message, index, block))
    });
    let changed = blocks.find(|(.., block)| {
        let pages = block["content"].as_array().filter(|_| block["type"] == "web_search_tool_result");
        pages.is_some_and(|pages| pages.iter().any(|page| !is_sealed(page, "encrypted_content", "content")))
    });
    let (message, block, _) = changed?;
    let words = "Invalid `encrypted_content` in `web_search_result` block".to_owned();
    Some((format!("messages.{message}.content.{block}.content"), words))
}

fn find_changed_citation(decoded: &DecodedRequest) -> Option<(String, String)> {
    let mut texts = decoded.anthropic.sources.iter();
    let changed = texts.find(|text| {
        let citations = text.citations.as_ref().map(hardpan_prompt::Json::value).unwrap_or_default();
        let mut citations = citations.as_array().into_iter().flatten();
        citations.any(|citation| {
            citation["type"] == "web_search_result_location"
                && !is_sealed(citation, "encrypted_index", "index")
        })
    });
    let words = "Invalid `encrypted_index` in `web_search_result_location`".to_owned();
    Some((format!("{}.citations", changed?.path), words))
}

fn is_sealed(page: &Value, field: &str, place: &str) -> bool {
    let text = |name: &str| page[name].as_str().unwrap_or_default().to_owned();
    let found = FoundPage { url: text("url"), title: text("title") };
    text(field) == found.seal(place)
}

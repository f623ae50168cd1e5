//! Parses the items of `input`.

use std::collections::BTreeSet;

use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, Hash, ItemKind, Json, PromptMessage, Reasoning, Region, ResultPart,
    Role, Text, ToolOutcome, ToolResult,
};
use serde_json::Value;

use super::{EFFORTS, input_error, json_text, lifetime, limited_text, text_up_to, tools};
use crate::decode::node::{ExpectedType, Node, join_quoted};
use crate::decode::{
    DecodeError, DecodeErrorKind, DecodedRequest, RAW_ARGUMENTS, image, origin, segments, text_block,
};

/// Fields that any item may have. The last is none of OpenAI's API: Codex sends it.
const COMMON: [&str; 4] = ["type", "id", "status", "internal_chat_message_metadata_passthrough"];

/// Items that are passed on as they are: those of the user's side, then those of the model's.
const OPAQUE_INPUT: [&str; 7] = [
    "tool_search_output",
    "apply_patch_call_output",
    "shell_call_output",
    "local_shell_call_output",
    "computer_call_output",
    "mcp_approval_response",
    "program_output",
];
const OPAQUE_OUTPUT: [&str; 13] = [
    "tool_search_call",
    "web_search_call",
    "apply_patch_call",
    "shell_call",
    "local_shell_call",
    "program",
    "file_search_call",
    "code_interpreter_call",
    "computer_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
    "mcp_approval_request",
];
const KNOWN: [&str; 12] = [
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "additional_tools",
    "configuration_update",
    "compaction",
    "compaction_summary",
    "compaction_trigger",
    "item_reference",
];

/// Reads `input`: a text, or a list of items.
pub fn read_input(
    body: &Node<'_>,
    cache_lifetime: CacheLifetime,
    decoded: &mut DecodedRequest,
) -> Result<(), DecodeError> {
    let refers =
        ["prompt", "previous_response_id", "conversation"].iter().any(|key| body.non_null(key).is_some());
    let input = match body.non_null("input") {
        None if refers => return Ok(()),
        input => input.map_or_else(|| body.required("input"), Ok)?,
    };
    if input.value.is_string() {
        let text = limited_text(&input)?;
        let item = serde_json::json!({"type": "message", "role": "user", "content": text});
        decoded.items.push(Json::new(&item));
        let blocks = vec![text_block(text, ItemKind::History)];
        decoded.prompt.messages.push(PromptMessage::new(Role::User, blocks));
        return Ok(());
    }
    let items = input.list(ExpectedType::TextOrRecords)?;
    check_order(body, &items)?;
    let outputs = |item: &Node<'_>| Some(item.value.get("call_id")?.as_str()?.to_owned());
    let is_output = |item: &&Node<'_>| item_type(item).ends_with("_output");
    let reader =
        ItemReader { cache_lifetime, answered: items.iter().filter(is_output).filter_map(outputs).collect() };
    let mut ids = BTreeSet::new();
    for item in &items {
        let known: Vec<&str> = KNOWN.into_iter().chain(OPAQUE_INPUT).chain(OPAQUE_OUTPUT).collect();
        let kind = item_type(item.record()?);
        if !known.contains(&kind) {
            let kind = item.required("type")?;
            kind.one_of(&known)?;
        }
        if let Some(id) = item.non_null("id")
            && kind != "item_reference"
        {
            check_id(&id, kind)?;
            if !ids.insert(id.text()?) {
                let id = id.text()?;
                let words = format!(
                    "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
                );
                return Err(input_error(body, words));
            }
        }
        reader.read_item(item, kind, decoded)?;
        decoded.items.push(Json::new(item.value));
    }
    Ok(())
}

/// The type of an item. Messages and references may leave it out.
fn item_type<'a>(item: &Node<'a>) -> &'a str {
    match item.value.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Null) | None if item.value.get("role").is_some() => "message",
        Some(Value::Null) | None if item.value.get("id").is_some() => "item_reference",
        _ => "",
    }
}

/// Checks items that depend on their neighbours.
fn check_order(body: &Node<'_>, items: &[Node<'_>]) -> Result<(), DecodeError> {
    let at = items.iter().position(|item| item_type(item) == "compaction_trigger");
    if at.is_some_and(|at| at + 1 < items.len()) {
        let words = "The 'compaction_trigger' item must be the final input item.";
        return Err(body.reject(DecodeErrorKind::Unsupported, words));
    }
    let updates = |pair: &[Node<'_>]| pair.iter().all(|item| item_type(item) == "configuration_update");
    if items.windows(2).any(updates) {
        return Err(input_error(body, "Consecutive 'configuration_update' items are not allowed."));
    }
    Ok(())
}

/// Checks an item's id: its length, its characters, the prefix of its type.
fn check_id(id: &Node<'_>, kind: &str) -> Result<(), DecodeError> {
    let text = text_up_to(id, 64)?;
    let prefix = match kind {
        "message" => "msg",
        "reasoning" => "rs",
        "function_call" => "fc",
        "custom_tool_call" => "ctc",
        "compaction" | "compaction_summary" => "cmp",
        _ => "",
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let wanted = match () {
        () if !is_plain => "contains letters, numbers, underscores, or dashes, but this value contained additional characters".to_owned(),
        () if !text.starts_with(prefix) => format!("begins with '{prefix}'"),
        () => return Ok(()),
    };
    let message = format!("Invalid '{}': '{text}'. Expected an ID that {wanted}.", id.param());
    Err(id.reject(DecodeErrorKind::Unsupported, message).with_code("invalid_value"))
}

struct ItemReader {
    /// The lifetime of markers that name none.
    cache_lifetime: CacheLifetime,
    /// The calls that have an output.
    answered: BTreeSet<String>,
}

impl ItemReader {
    fn read_item(
        &self,
        item: &Node<'_>,
        kind: &str,
        decoded: &mut DecodedRequest,
    ) -> Result<(), DecodeError> {
        match kind {
            "message" => self.read_message(item, decoded),
            "reasoning" => {
                push(Role::Assistant, Content::Reasoning(reasoning(item)?), decoded);
                Ok(())
            }
            "function_call" | "custom_tool_call" => self.read_call(item, kind, decoded),
            "function_call_output" | "custom_tool_call_output" => self.read_output(item, decoded),
            "additional_tools" => read_additional_tools(item, decoded),
            "configuration_update" => {
                item.non_null("text").map(|text| text.object()).transpose()?;
                reject_unknown(item, &["reasoning", "text"])?;
                let Some(reasoning) = item.non_null("reasoning") else { return Ok(()) };
                let effort = reasoning.record()?.required("effort")?.one_of(&EFFORTS)?;
                reasoning.reject_unknown_fields(&["effort"])?;
                let message = PromptMessage::new(Role::System, Vec::new());
                decoded.prompt.messages.push(PromptMessage { effort: effort.parse().ok(), ..message });
                Ok(())
            }
            "compaction" | "compaction_summary" => {
                let content = item.required("encrypted_content")?;
                push(Role::User, text_content(limited_text(&content)?), decoded);
                reject_unknown(item, &["encrypted_content", "created_by"])
            }
            "compaction_trigger" => reject_unknown(item, &[]),
            "item_reference" => {
                item.required("id")?.text()?;
                reject_unknown(item, &[])
            }
            "web_search_call" => {
                let action = item.required("action")?; // a search need not say what for
                action.record()?.required("type")?.one_of(&["search", "open_page", "find_in_page"])?;
                item.required("status")?.one_of(&["in_progress", "searching", "completed", "failed"])?;
                reject_unknown(item, &["action", "results"])?;
                push(Role::Assistant, text_content(&json_text(item.value)), decoded);
                Ok(())
            }
            kind => {
                let role = if OPAQUE_INPUT.contains(&kind) { Role::User } else { Role::Assistant };
                push(role, text_content(&json_text(item.value)), decoded);
                Ok(())
            }
        }
    }

    fn read_message(&self, item: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
        let role = item.required("role")?.one_of(&["user", "assistant", "system", "developer"])?;
        let content = item.required("content")?;
        item.non_null("phase").map(|phase| phase.one_of(&["commentary", "final_answer"])).transpose()?;
        reject_unknown(item, &["role", "content", "phase"])?;
        if role == "assistant" {
            for content in self.read_content(&content, ItemKind::History, true)? {
                push_block(Role::Assistant, content, decoded);
            }
            return Ok(());
        }
        let is_system = role != "user";
        let kind = if is_system { ItemKind::System } else { ItemKind::History };
        let blocks = self.read_content(&content, kind, false)?;
        let prompt = &mut decoded.prompt;
        if is_system && prompt.messages.is_empty() {
            prompt.system.extend(blocks);
        } else {
            let role = if is_system { Role::System } else { Role::User };
            prompt.messages.push(PromptMessage::new(role, blocks));
        }
        Ok(())
    }

    fn read_content(
        &self,
        content: &Node<'_>,
        kind: ItemKind,
        is_said: bool,
    ) -> Result<Vec<Block>, DecodeError> {
        match content.value {
            Value::String(_) => Ok(vec![text_block(limited_text(content)?, kind)]),
            Value::Array(_) => {
                let parts = content.list(ExpectedType::TextOrRecords)?;
                parts.iter().map(|part| self.read_part(part, kind, is_said)).collect()
            }
            _ => Err(content.wrong_type(ExpectedType::TextOrRecords)),
        }
    }

    fn read_part(&self, part: &Node<'_>, kind: ItemKind, is_said: bool) -> Result<Block, DecodeError> {
        let place = if kind == ItemKind::System { Region::Base } else { Region::Log };
        if is_said {
            let content = match part_type(part, &["output_text", "refusal"])? {
                "refusal" => limited_text(&part.required("refusal")?)?,
                _ => limited_text(&part.required("text")?)?,
            };
            part.reject_unknown_fields(&["type", "text", "refusal", "annotations", "logprobs"])?;
            return Ok(Block::new(place, Content::Text(segments(content, kind))));
        }
        let content = match part_type(part, &["input_text", "input_image", "input_file"])? {
            "input_text" => {
                part.reject_unknown_fields(&["type", "text", "prompt_cache_breakpoint"])?;
                Content::Text(segments(limited_text(&part.required("text")?)?, kind))
            }
            "input_image" => {
                let details = ["low", "high", "auto", "original"];
                part.non_null("detail").map(|detail| detail.one_of(&details)).transpose()?;
                let known = ["type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"];
                part.reject_unknown_fields(&known)?;
                Content::Image(read_image(part)?, origin(kind))
            }
            _ => Content::Text(segments(&read_file(part)?, kind)),
        };
        Ok(Block { breakpoint: self.breakpoint(part)?, ..Block::new(place, content) })
    }

    fn breakpoint(&self, part: &Node<'_>) -> Result<Option<CacheLifetime>, DecodeError> {
        let Some(marker) = part.non_null("prompt_cache_breakpoint") else { return Ok(None) };
        marker.record()?.required("mode")?.one_of(&["explicit"])?;
        marker.reject_unknown_fields(&["mode", "ttl"])?;
        Ok(Some(lifetime(&marker)?.unwrap_or(self.cache_lifetime)))
    }

    fn read_call(
        &self,
        item: &Node<'_>,
        kind: &str,
        decoded: &mut DecodedRequest,
    ) -> Result<(), DecodeError> {
        let id = text_up_to(&item.required("call_id")?, 64)?;
        let name = text_up_to(&item.required("name")?, 64)?;
        let is_async = item.non_null("async").map_or(Ok(false), |flag| flag.flag())?;
        let arguments = if kind == "custom_tool_call" {
            Json::new(&serde_json::json!({"input": limited_text(&item.required("input")?)?}))
        } else {
            arguments(limited_text(&item.required("arguments")?)?)
        };
        reject_unknown(item, &["call_id", "name", "namespace", "arguments", "input", "async", "caller"])?;
        if is_async && !self.answered.contains(id) {
            // Its result may come in a later request.
            push(Role::Assistant, text_content(&json_text(item.value)), decoded);
            return Ok(());
        }
        let (id, name) = (id.into(), name.into());
        let call = Call { id, name, arguments, origin: origin(ItemKind::History) };
        push(Role::Assistant, Content::Call(call), decoded);
        Ok(())
    }

    fn read_output(&self, item: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
        let call_id = text_up_to(&item.required("call_id")?, 64)?.into();
        let output = item.required("output")?;
        reject_unknown(item, &["call_id", "output", "name", "namespace", "caller"])?;
        let is_nothing = output.value == "";
        let blocks =
            if is_nothing { Vec::new() } else { self.read_content(&output, ItemKind::History, false)? };
        let breakpoint = blocks.iter().rev().find_map(|block| block.breakpoint);
        let parts = blocks.into_iter().filter_map(|block| match block.content.into_content() {
            Content::Text(segments) => Some(ResultPart::Text(segments)),
            Content::Image(image, _) => Some(ResultPart::Image(image)),
            // No part is one.
            Content::Reasoning(_)
            | Content::Call(_)
            | Content::Result(_)
            | Content::ToolChange(_)
            | Content::Provider(_) => None,
        });
        let (parts, outcome) = (parts.collect(), ToolOutcome::Done);
        let result = ToolResult { call_id, parts, outcome, origin: origin(ItemKind::History) };
        push_block(
            Role::User,
            Block { breakpoint, ..Block::new(Region::Log, Content::Result(result)) },
            decoded,
        );
        Ok(())
    }
}

/// Adds a block. The items of one answer become one message; those of the user stay apart.
fn push_block(role: Role, block: Block, decoded: &mut DecodedRequest) {
    let messages = &mut decoded.prompt.messages;
    match messages.last_mut().filter(|last| role == Role::Assistant && last.role == role) {
        Some(last) => last.blocks.push(block),
        None => messages.push(PromptMessage::new(role, vec![block])),
    }
}

fn push(role: Role, content: Content, decoded: &mut DecodedRequest) {
    push_block(role, Block::new(Region::Log, content), decoded);
}

/// Reads a file: its name and a hash stand for it, since nobody here looks into it.
fn read_file(part: &Node<'_>) -> Result<String, DecodeError> {
    let known = ["type", "file_id", "file_url", "file_data", "filename", "detail", "prompt_cache_breakpoint"];
    part.reject_unknown_fields(&known)?;
    part.non_null("detail").map(|detail| detail.one_of(&["low", "high", "auto"])).transpose()?;
    let name = part.non_null("filename").map_or(Ok("file"), |name| name.text())?;
    let sources = ["file_id", "file_url", "file_data"];
    let Some(source) = sources.iter().find_map(|source| part.non_null(source)) else {
        return Err(part.required("file_data").err().unwrap_or_else(|| part.invalid_value("an empty file")));
    };
    Ok(format!("[{name} {}]", Hash::of(limited_text(&source)?.as_bytes())))
}

fn text_content(text: &str) -> Content {
    Content::Text(segments(text, ItemKind::History))
}

fn reject_unknown(item: &Node<'_>, own: &[&str]) -> Result<(), DecodeError> {
    item.reject_unknown_fields(&[&COMMON, own].concat())
}

/// The type of a part. The server names the part, not its field `type`, when it refuses one.
fn part_type<'a>(part: &Node<'a>, known: &[&str]) -> Result<&'a str, DecodeError> {
    let kind = part.record()?.required("type")?.text()?;
    if known.contains(&kind) {
        return Ok(kind);
    }
    let words = join_quoted(known, if known.len() > 2 { ", and " } else { " and " });
    let message = format!("Invalid value: '{kind}'. Supported values are: {words}.");
    Err(part.reject(DecodeErrorKind::Unsupported, message).with_code("invalid_value"))
}

fn read_image(part: &Node<'_>) -> Result<hardpan_prompt::Image, DecodeError> {
    if let Some(id) = part.non_null("file_id") {
        return Ok(image::from_address(id.text()?)); // an uploaded file: not fetched here either
    }
    let address = part.required("image_url")?;
    let url = address.text()?;
    let is_remote = url.starts_with("http://") || url.starts_with("https://");
    let image = if is_remote { Some(image::from_address(url)) } else { image::from_data_url(url) };
    image.ok_or_else(|| {
        address
            .invalid_value("expected an http(s) address or a base64-encoded data URL with an image MIME type")
    })
}

fn reasoning(item: &Node<'_>) -> Result<Reasoning, DecodeError> {
    let mut summaries = Vec::new();
    for part in item.required("summary")?.list(ExpectedType::Records)? {
        part_type(&part, &["summary_text"])?;
        summaries.push(limited_text(&part.required("text")?)?);
        part.reject_unknown_fields(&["type", "text"])?;
    }
    if let Some(content) = item.non_null("content") {
        let length = content.list(ExpectedType::Records)?.len();
        if length > 0 {
            let message = format!(
                "Invalid '{}': array too long. Expected an array with maximum length 0, but got an array with length {length} instead.",
                content.param()
            );
            let error = content.reject(DecodeErrorKind::Unsupported, message);
            return Err(error.with_code("array_above_max_length"));
        }
    }
    let encrypted = item.non_null("encrypted_content").map(|text| limited_text(&text)).transpose()?;
    reject_unknown(item, &["summary", "content", "encrypted_content"])?;
    let (text, origin) = (Text::new(summaries.join("\n\n")), origin(ItemKind::History));
    Ok(Reasoning { text, signature: encrypted.map(Into::into), redacted: None, origin })
}

/// The server accepts any text here, because a model may have written any.
fn arguments(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Json::new(&object),
        _ => Json::new(&serde_json::json!({RAW_ARGUMENTS: text})),
    }
}

/// Tools that are added here. At the beginning they are like those of the field `tools`; later ones
/// stand where they were added, so that what comes before them stays as it was.
fn read_additional_tools(item: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    item.required("role")?.one_of(&["developer"])?;
    reject_unknown(item, &["role", "tools"])?;
    let tools = item.required("tools")?;
    if decoded.prompt.messages.is_empty() {
        return tools::read_tools(&tools, decoded);
    }
    let mut later = DecodedRequest::default();
    tools::read_tools(&tools, &mut later)?;
    let block = text_block(&json_text(tools.value), ItemKind::System);
    decoded.prompt.messages.push(PromptMessage::new(Role::System, vec![block]));
    Ok(())
}

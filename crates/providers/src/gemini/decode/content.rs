//! Messages of a body and their parts.

use std::sync::Arc;

use hardpan_prompt::{
    Block, Call, Content, Image, ItemKind, Json, PromptMessage, Reasoning, Region, ResultPart, Role, Text,
    ToolOutcome, ToolResult,
};
use serde_json::Value;

use super::call_ids::CallIds;
use crate::decode::node::{ExpectedType, Node};
use crate::decode::{DecodeError, DecodeErrorKind, image, origin, segments, text_block};

/// The kinds of parts: exactly one of these fields is set.
const KINDS: [&str; 9] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];
/// Fields that may stand beside any kind.
const BESIDE: [&str; 5] = ["thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution"];

/// The parts of the system prompt, which are texts.
pub fn system(node: &Node<'_>) -> Result<Vec<Block>, DecodeError> {
    let parts = node.record()?.required("parts")?;
    node.reject_unknown_fields(&["role", "parts"])?;
    let block = |part: &Node<'_>| match kind(part.record()?)? {
        "text" => Ok(text_block(part.required("text")?.text()?, ItemKind::System)),
        _ => Err(part.invalid_value("the system instruction must be text")),
    };
    parts.list(ExpectedType::Records)?.iter().map(block).collect()
}

/// One message. `index`: its number in the body.
pub fn message(node: &Node<'_>, index: usize, ids: &mut CallIds) -> Result<PromptMessage, DecodeError> {
    let node = node.record()?;
    let role = match node.non_null("role").map_or(Ok("user"), |role| role.text())? {
        "user" => Role::User,
        "model" => Role::Assistant,
        _ => {
            let words = "Please use a valid role: user, model.";
            return Err(node.reject(DecodeErrorKind::Unsupported, words));
        }
    };
    node.reject_unknown_fields(&["role", "parts"])?;
    let parts = node.non_null("parts").map_or(Ok(Vec::new()), |parts| parts.list(ExpectedType::Records))?;
    if parts.is_empty() {
        let words =
            format!("* GenerateContentRequest.{}.parts: contents.parts must not be empty.\n", node.param());
        return Err(node.reject(DecodeErrorKind::Missing, words));
    }
    if role == Role::Assistant {
        ids.begin_step();
    }
    let mut blocks = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        read_part(part, (index, number), ids, &mut blocks)?;
    }
    Ok(PromptMessage::new(role, blocks))
}

/// The kind of a part.
fn kind(node: &Node<'_>) -> Result<&'static str, DecodeError> {
    let mut given = KINDS.into_iter().filter(|kind| node.non_null(kind).is_some());
    let param = node.param();
    match (given.next(), given.next()) {
        (Some(kind), None) => {
            node.reject_unknown_fields(&[&[kind], &BESIDE[..]].concat())?;
            Ok(kind)
        }
        (Some(_), Some(second)) => {
            let words = format!(
                "Invalid value at '{param}' (oneof), oneof field 'data' is already set. Cannot set '{second}'"
            );
            Err(node.reject(DecodeErrorKind::Unsupported, words))
        }
        (None, _) => {
            node.reject_unknown_fields(&[&KINDS[..], &BESIDE].concat())?;
            let words = format!(
                "* GenerateContentRequest.{param}.data: required oneof field 'data' must have one initialized field\n"
            );
            Err(node.reject(DecodeErrorKind::Missing, words))
        }
    }
}

/// A part, with its signature before it as reasoning without text. An empty text that carries a
/// signature is nothing but the signature.
fn read_part(
    node: &Node<'_>,
    place: (usize, usize),
    ids: &mut CallIds,
    blocks: &mut Vec<Block>,
) -> Result<(), DecodeError> {
    let kind = kind(node.record()?)?;
    let signature = signature(node)?;
    let data = node.required(kind)?;
    if node.non_null("thought").map_or(Ok(false), |flag| flag.flag())? && kind == "text" {
        blocks.push(reasoning(data.text()?, signature));
        return Ok(());
    }
    let is_signed = signature.is_some();
    blocks.extend(signature.map(|signature| reasoning("", Some(signature))));
    let content = match kind {
        "text" => match data.text()? {
            "" if is_signed => return Ok(()),
            text => Content::Text(segments(text, ItemKind::History)),
        },
        "inlineData" | "fileData" => Content::Image(read_image(&data, kind)?, origin(ItemKind::History)),
        "functionCall" => Content::Call(call(&data, place, ids)?),
        "functionResponse" if ids.is_repeated(data.value) => return Ok(()),
        "functionResponse" => Content::Result(response(&data, ids)?),
        _ => Content::Text(segments(Json::new(data.object()?).as_str(), ItemKind::History)),
    };
    blocks.push(Block::new(Region::Log, content));
    Ok(())
}

fn signature(node: &Node<'_>) -> Result<Option<Arc<str>>, DecodeError> {
    let Some(node) = node.non_null("thoughtSignature") else { return Ok(None) };
    let text = node.text()?;
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    if !text.trim_end_matches('=').bytes().all(is_digit) {
        let words = format!(
            "Invalid value at '{}' (TYPE_BYTES), Base64 decoding failed for \"{text}\"",
            node.param().replace("thoughtSignature", "thought_signature")
        );
        return Err(node.reject(DecodeErrorKind::Unsupported, words));
    }
    Ok(Some(text.into()).filter(|text: &Arc<str>| !text.is_empty()))
}

fn reasoning(text: &str, signature: Option<Arc<str>>) -> Block {
    let (text, origin) = (Text::new(text), origin(ItemKind::History));
    Block::new(Region::Log, Content::Reasoning(Reasoning { text, signature, redacted: None, origin }))
}

fn read_image(node: &Node<'_>, kind: &str) -> Result<Image, DecodeError> {
    let node = node.record()?;
    if kind == "fileData" {
        node.reject_unknown_fields(&["mimeType", "fileUri", "displayName"])?;
        return Ok(image::from_address(node.required("fileUri")?.text()?));
    }
    node.reject_unknown_fields(&["mimeType", "data", "displayName"])?;
    let mime_type = node.required("mimeType")?;
    let unreadable = || mime_type.invalid_value("only images can be read here; send text or images");
    let known = image::media_type(mime_type.text()?).ok_or_else(unreadable)?;
    let data = node.required("data")?;
    let standard = data.text()?.replace('-', "+").replace('_', "/"); // the server takes both alphabets
    image::from_base64(known, &standard).ok_or_else(|| data.invalid_value("Base64 decoding failed"))
}

fn call(node: &Node<'_>, place: (usize, usize), ids: &mut CallIds) -> Result<Call, DecodeError> {
    let node = node.record()?;
    let name = node.required("name")?.text()?;
    let id = ids.add_call(node.non_null("id").map_or(Ok(""), |id| id.text())?, name, place);
    let arguments = node.non_null("args").map(|args| args.object().map(Json::new)).transpose()?;
    node.reject_unknown_fields(&["id", "name", "args", "partialArgs", "willContinue"])?;
    let arguments = arguments.unwrap_or_else(|| Json::new(&serde_json::json!({})));
    Ok(Call { id, name: name.into(), arguments, origin: origin(ItemKind::History) })
}

fn response(node: &Node<'_>, ids: &mut CallIds) -> Result<ToolResult, DecodeError> {
    let node = node.record()?;
    let name = node.required("name")?.text()?;
    let call_id = ids.answer(node.non_null("id").map_or(Ok(""), |id| id.text())?, name);
    let response = node.required("response")?.object()?;
    let (outcome, text) = match (response.get("output"), response.get("error")) {
        (Some(output), _) => (ToolOutcome::Done, value_text(output)),
        (None, Some(error)) => (ToolOutcome::Failed, value_text(error)),
        (None, None) => (ToolOutcome::Done, value_text(response)),
    };
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(ResultPart::Text(segments(&text, ItemKind::History)));
    }
    let nested = node.non_null("parts").map_or(Ok(Vec::new()), |list| list.list(ExpectedType::Records))?;
    for part in &nested {
        let kind = kind(part.record()?)?;
        if !matches!(kind, "inlineData" | "fileData") {
            return Err(part.invalid_value("a function response holds data and files only"));
        }
        parts.push(ResultPart::Image(read_image(&part.required(kind)?, kind)?));
    }
    node.reject_unknown_fields(&["id", "name", "response", "parts", "willContinue", "scheduling"])?;
    Ok(ToolResult { call_id, parts, outcome, origin: origin(ItemKind::History) })
}

/// A string as it is, anything else as JSON.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| Json::new(value).as_str().to_owned(), str::to_owned)
}

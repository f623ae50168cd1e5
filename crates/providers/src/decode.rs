//! [`decode_request`] parses a request body, as any client may send it, back into a [`Prompt`].
//!
//! The simulator uses it to read requests, so it is as strict about JSON shapes as the real servers
//! and reports errors in their words where these are known. Rules about content (empty text, calls
//! without results) are checked by [`hardpan_prompt::validate`].
//!
//! ```
//! use hardpan_models::Protocol;
//! use hardpan_providers::decode::decode_request;
//!
//! let body = r#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello!"}]}"#;
//! let decoded = decode_request(Protocol::Anthropic, body.as_bytes())?;
//! assert_eq!((decoded.prompt.max_tokens, decoded.prompt.messages.len(), decoded.stream), (9, 1, false));
//!
//! let refusal = decode_request(Protocol::Anthropic, b"{\"model\": \"m\"}").unwrap_err();
//! assert_eq!(refusal.to_string(), "messages: Field required");
//! # Ok::<(), hardpan_providers::decode::DecodeError>(())
//! ```

mod anthropic; // bodies of Anthropic Messages
mod image; // images: base64, URLs, dimensions
mod node; // Node: a JSON value with its path, and the server's error messages
mod openai; // bodies of OpenAI Chat Completions
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_models::Protocol;
use hardpan_prompt::{
    Block, CacheLifetime, Content, ItemKind, Json, Origin, Prompt, Region, Segment, Text, Tool, ToolBlock,
};
use serde_json::Value;
use thiserror::Error;

use node::Node;

/// The key under which call arguments are kept if they are not a JSON object: OpenAI accepts any
/// text there, a [`Prompt`] only objects.
pub const RAW_ARGUMENTS: &str = "raw_arguments";

/// A parsed request: the prompt, and the fields that are not part of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecodedRequest {
    /// What the model sees. Its `max_tokens` is [`u32::MAX`] if the request sets no limit.
    pub prompt: Prompt,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether a streamed answer ends with a usage chunk (OpenAI; Anthropic always reports usage).
    pub include_usage: bool,
    /// The JSON of `tool_choice`, in the form of its protocol.
    pub tool_choice: Option<Json>,
    /// Whether the model may call several tools at once; `None` if the request does not say.
    pub parallel_tools: Option<bool>,
    /// Names of declared tools that the server runs itself: their calls need no result from a
    /// client.
    pub server_tools: Vec<Arc<str>>,
    /// `cache_control` on the request itself: the last block that can carry a breakpoint gets one.
    /// It counts towards the limit of breakpoints.
    pub automatic_cache: Option<CacheLifetime>,
    /// Whether only marked blocks are cached (`prompt_cache_options.mode = "explicit"` of OpenAI).
    pub explicit_only: bool,
    /// The answer ends before the first of these texts.
    pub stop_sequences: Vec<String>,
    /// The reasoning effort in the provider's word, such as `high`.
    pub effort: Option<String>,
    /// Whether the model decides itself how long to think. The prompt's `thinking` is then off:
    /// there is no budget to check, and no message has to begin with reasoning.
    pub adaptive_thinking: bool,
    /// Whether citations are switched on for a document.
    pub citations: bool,
    /// How many of the first messages became the system prompt (OpenAI). Add it to the index of a
    /// prompt message to get its index in the body.
    pub system_messages: usize,
    /// Known fields that affect neither prompt nor bill: `temperature`, `metadata`, `user`.
    pub other: BTreeMap<String, Json>,
}

/// The class of a [`DecodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeErrorKind {
    /// The body is not valid JSON.
    InvalidJson,
    /// A required field is missing.
    Missing,
    /// A value has another JSON type than the server expects.
    WrongType,
    /// The server does not know the field and rejects it.
    Unknown,
    /// A value has the right type but is not one that the server accepts.
    Unsupported,
}

/// Why a body cannot be parsed. Both servers answer with status 400 and `invalid_request_error`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct DecodeError {
    /// The class of the error, the same for both protocols.
    pub kind: DecodeErrorKind,
    /// Where, in Anthropic's notation: `messages.0.content.1.text.text`. Empty for the whole body.
    pub path: String,
    /// Where, in OpenAI's notation (`param`): `messages[0].content[1].text`.
    pub param: Option<String>,
    /// The `code` of OpenAI's error, such as `invalid_type`.
    pub code: Option<&'static str>,
    /// The message that the protocol's real server would send.
    pub message: String,
}

/// Parses the body of a request for an answer.
pub fn decode_request(protocol: Protocol, body: &[u8]) -> Result<DecodedRequest, DecodeError> {
    let value = parse(protocol, body)?;
    let body = Node::root(protocol, &value);
    match protocol {
        Protocol::Anthropic => anthropic::decode_body(&body, anthropic::Purpose::Answer),
        Protocol::Openai => openai::decode_body(&body),
    }
}

/// Parses the body of a request to Anthropic's `count_tokens`, which has no `max_tokens`.
pub fn decode_count_request(body: &[u8]) -> Result<DecodedRequest, DecodeError> {
    let value = parse(Protocol::Anthropic, body)?;
    anthropic::decode_body(&Node::root(Protocol::Anthropic, &value), anthropic::Purpose::Count)
}

fn parse(protocol: Protocol, body: &[u8]) -> Result<Value, DecodeError> {
    serde_json::from_slice(body).map_err(|error| {
        let message = match protocol {
            Protocol::Anthropic => {
                let all = error.to_string();
                let reason = all.split(" at line ").next().unwrap_or_default();
                let (line, column) = (error.line(), error.column());
                let before: usize = body
                    .split_inclusive(|byte| *byte == b'\n')
                    .take(line.saturating_sub(1))
                    .map(<[u8]>::len)
                    .sum();
                let char = (before + column).saturating_sub(1);
                format!(
                    "The request body is not valid JSON: {reason}: line {line} column {column} (char {char})"
                )
            }
            Protocol::Openai => format!("We could not parse the JSON body of your request. ({error})"),
        };
        DecodeError {
            kind: DecodeErrorKind::InvalidJson,
            path: String::new(),
            param: None,
            code: None,
            message,
        }
    })
}

/// The marker `{"type": "ephemeral", "ttl": …}`.
fn lifetime(marker: &Node<'_>) -> Result<CacheLifetime, DecodeError> {
    let tag = marker.tag(&["ephemeral"])?;
    let marker = marker.as_variant(tag);
    let lifetime = match marker.optional("ttl") {
        None => CacheLifetime::FiveMinutes,
        Some(ttl) if ttl.one_of(&["5m", "1h"])? == "1h" => CacheLifetime::OneHour,
        Some(_) => CacheLifetime::FiveMinutes,
    };
    marker.reject_unknown_fields(&["type", "ttl"])?;
    Ok(lifetime)
}

/// The lifetime in the field `cache_control`; `None` without the field.
fn cache_control(node: &Node<'_>) -> Result<Option<CacheLifetime>, DecodeError> {
    node.non_null("cache_control").map(|marker| lifetime(&marker)).transpose()
}

/// Those of the fields `names` that the body has, unchanged.
fn passthrough_fields(body: &Node<'_>, names: &[&'static str]) -> BTreeMap<String, Json> {
    let sent =
        |name: &&'static str| body.optional(name).map(|node| (name.to_string(), Json::new(node.value)));
    names.iter().filter_map(sent).collect()
}

fn origin(kind: ItemKind) -> Origin {
    Origin::rule(kind, "request")
}

fn segments(text: &str, kind: ItemKind) -> Vec<Segment> {
    vec![Segment::new(Text::new(text), origin(kind))]
}

fn text_block(text: &str, kind: ItemKind) -> Block {
    let place = if kind == ItemKind::System { Region::Base } else { Region::Log };
    Block::new(place, Content::Text(segments(text, kind)))
}

fn tool_block(
    name: &str,
    description: &str,
    parameters: Option<&Value>,
    breakpoint: Option<CacheLifetime>,
) -> ToolBlock {
    let none = serde_json::json!({"type": "object", "properties": {}});
    let parameters = Json::new(parameters.unwrap_or(&none));
    let tool = Tool {
        name: name.into(),
        description: description.into(),
        parameters,
        snippet: None,
        guidelines: Vec::new(),
    };
    ToolBlock { region: Region::Base, tool, breakpoint }
}

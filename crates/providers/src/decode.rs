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

pub(crate) mod image; // images: base64, URLs, dimensions
pub(crate) mod node; // Node: a JSON value with its path, and how its server rejects it
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_models::{MarkerFormat, MaxTokensField, Protocol};
use hardpan_prompt::{
    Block, CacheLifetime, Content, ItemKind, Json, Origin, Prompt, Region, Segment, Text, Tool, ToolBlock,
};
use serde_json::Value;
use thiserror::Error;

use crate::anthropic::known_fields::CACHE_CONTROL;

pub use crate::anthropic::betas;
pub use crate::anthropic::fields::{
    AnthropicFields, ApiVersion, DiagnosticsRequest, GatedField, MismatchBehavior, SourceBlock, SpecialBlock,
    ThinkingDisplay,
};
use crate::codec;
use node::{DecodeDialect, Node};

/// The key under which call arguments are kept if they are not a JSON object: OpenAI accepts any
/// text there, a [`Prompt`] only objects.
pub const RAW_ARGUMENTS: &str = "raw_arguments";

/// A parsed request: the prompt, and the fields that are not part of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecodedRequest {
    /// What the model sees. Its `max_tokens` is [`u32::MAX`] if the request sets no limit.
    pub prompt: Prompt,
    /// The field that limits the answer, for protocols that have two names for it.
    pub max_tokens_field: Option<MaxTokensField>,
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
    /// Whether citations are switched on for a document.
    pub citations: bool,
    /// How many of the first messages became the system prompt (OpenAI Chat). Add it to the index of a
    /// prompt message to get its index in the body.
    pub system_messages: usize,
    /// Whether the answer shows summaries of its reasoning (Gemini; other servers always do).
    pub include_thoughts: bool,
    /// Whether a streamed answer is one JSON array in place of server-sent events (Gemini).
    pub json_array: bool,
    /// The name of stored content that goes before the request's own (Gemini's `cachedContent`).
    pub cached_content: Option<String>,
    /// What only requests of Anthropic Messages have.
    pub anthropic: AnthropicFields,
    /// The items of a Responses request, as they came.
    pub items: Vec<Json>,
    /// Known fields that affect neither prompt nor bill: `temperature`, `metadata`, `user`. For the
    /// Responses API, all fields but `input`: its server repeats them in the answer.
    pub other: BTreeMap<String, Json>,
}

impl DecodedRequest {
    /// Whether the model may call a tool of this name, deferred ones included.
    pub fn has_tool(&self, name: &str) -> bool {
        self.prompt.available_tools().contains(name) || self.anthropic.is_deferred(name)
    }
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

/// Why a body cannot be parsed. Servers answer with status 400 and `invalid_request_error`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct DecodeError {
    /// The class of the error, the same for all protocols.
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

/// Names the records of a request, each with the fields that it may have. `ALL` is the list of them.
macro_rules! record_fields {
    ($($(#[$doc:meta])* $name:ident($record:literal) = [$($field:literal),* $(,)?];)*) => {
        $($(#[$doc])* pub const $name: &[&str] = &[$($field),*];)*
        /// All records by name; a record may be in several pieces.
        pub const ALL: &[(&str, &[&str])] = &[$(($record, $name)),*];
    };
}
pub(crate) use record_fields;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// An answer of the model.
    Answer,
    /// The number of its tokens, without an answer (Anthropic's `count_tokens`).
    Count,
    /// To store its content, which later requests begin with (Gemini's `cachedContents`).
    Store,
}

/// Parses the body of a request for an answer, in a protocol that has everything in the body.
pub fn decode_request(protocol: Protocol, body: &[u8]) -> Result<DecodedRequest, DecodeError> {
    codec(protocol).decode_request(RequestKind::Answer, "", body)
}

/// Parses a body as JSON.
pub(crate) fn parse_json(dialect: &dyn DecodeDialect, body: &[u8]) -> Result<Value, DecodeError> {
    serde_json::from_slice(body).map_err(|error| DecodeError {
        kind: DecodeErrorKind::InvalidJson,
        path: String::new(),
        param: None,
        code: None,
        message: dialect.invalid_json(body, &error),
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
    marker.reject_unknown_fields(CACHE_CONTROL)?;
    Ok(lifetime)
}

/// The lifetime in the field `cache_control`; `None` without the field.
pub(crate) fn cache_control(node: &Node<'_>) -> Result<Option<CacheLifetime>, DecodeError> {
    node.non_null("cache_control").map(|marker| lifetime(&marker)).transpose()
}

/// A value without its cache marker, so that moving the marker changes nothing else.
pub(crate) fn without_marker(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(object) = value.as_object_mut() {
        MarkerFormat::FIELDS.iter().for_each(|field| drop(object.shift_remove(*field)));
    }
    value
}

/// Those of the fields `names` that the body has, unchanged.
pub(crate) fn passthrough_fields(body: &Node<'_>, names: &[&'static str]) -> BTreeMap<String, Json> {
    let sent =
        |name: &&'static str| body.optional(name).map(|node| (name.to_string(), Json::new(node.value)));
    names.iter().filter_map(sent).collect()
}

pub(crate) fn origin(kind: ItemKind) -> Origin {
    Origin::rule(kind, "request")
}

pub(crate) fn segments(text: &str, kind: ItemKind) -> Vec<Segment> {
    vec![Segment::new(Text::new(text), origin(kind))]
}

pub(crate) fn text_block(text: &str, kind: ItemKind) -> Block {
    let place = if kind == ItemKind::System { Region::Base } else { Region::Log };
    Block::new(place, Content::Text(segments(text, kind)))
}

pub(crate) fn tool_block(
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

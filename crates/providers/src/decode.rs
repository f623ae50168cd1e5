//! From the body of a request, as any client may send it, back to a [`Prompt`].
//!
//! The simulator reads with it what it is sent, so it is as strict about shapes as the real servers and refuses in
//! their words where these are known. Rules about what is said (empty text, calls without results) are for
//! [`hardpan_prompt::validate`].
//!
//! ```
//! use hardpan_models::Protocol;
//! use hardpan_providers::decode::decode;
//!
//! let body = r#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello!"}]}"#;
//! let decoded = decode(Protocol::Anthropic, body.as_bytes())?;
//! assert_eq!((decoded.prompt.max_tokens, decoded.prompt.turns.len(), decoded.stream), (9, 1, false));
//!
//! let refusal = decode(Protocol::Anthropic, b"{\"model\": \"m\"}").unwrap_err();
//! assert_eq!(refusal.to_string(), "messages: Field required");
//! # Ok::<(), hardpan_providers::decode::DecodeError>(())
//! ```

mod anthropic; // Anthropic Messages
mod image; // images: base64, addresses, how large they are
mod node; // Node: a value, where it is, and the server's words for what is wrong with it
mod openai; // OpenAI Chat Completions and those that speak it
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_models::Protocol;
use hardpan_prompt::{
    Block, Content, Json, Kind, Lifetime, Origin, Place, Prompt, Segment, Text, Tool, ToolBlock,
};
use serde_json::Value;
use thiserror::Error;

use node::Node;

/// The key under which a call's arguments are kept where they are not the text of a JSON object: OpenAI takes
/// any text, a [`Prompt`] only objects.
pub const RAW_ARGUMENTS: &str = "raw_arguments";

/// A request, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// What the model is to see. Its `max_tokens` is [`u32::MAX`] where the request sets no limit.
    pub prompt: Prompt,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether a streamed answer is to end with its usage (OpenAI; Anthropic always tells).
    pub include_usage: bool,
    /// `tool_choice` as it was sent.
    pub tool_choice: Option<Json>,
    /// Whether several tools may be called at once, where the request says so.
    pub parallel_tools: Option<bool>,
    /// Names of declared tools that the server runs by itself: no client answers a call of theirs.
    pub server_tools: Vec<Arc<str>>,
    /// `cache_control` on the request itself: the last block that can be marked is to be. It counts as a marker.
    pub automatic_cache: Option<Lifetime>,
    /// Whether only marked blocks are to be cached (OpenAI's `prompt_cache_options`).
    pub explicit_only: bool,
    /// Texts that end the answer.
    pub stop_sequences: Vec<String>,
    /// How hard the model is to try, in the provider's word.
    pub effort: Option<String>,
    /// Whether the model decides by itself how far to think. The prompt's thinking is then off: it has no budget to
    /// check, and no message has to begin with reasoning.
    pub adaptive_thinking: bool,
    /// Whether citations are switched on for a document.
    pub citations: bool,
    /// How many of the body's first messages became the system prompt (OpenAI): what to add to the index of a turn to
    /// get that of its message.
    pub system_messages: usize,
    /// Fields that the server understands and that change neither prompt nor bill: `temperature`, `metadata`, `user`.
    pub other: BTreeMap<String, Json>,
}

/// What is wrong with a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It is not JSON.
    InvalidJson,
    /// A field that must be there is not.
    Missing,
    /// A value is of another type than the server takes.
    WrongType,
    /// A field that the server does not know.
    Unknown,
    /// A value of the right type that the server does not take.
    Unsupported,
}

/// A body that cannot be read. Either server answers with status 400 and `invalid_request_error`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct DecodeError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where, as Anthropic writes it: `messages.0.content.1.text.text`. Empty for the body as a whole.
    pub path: String,
    /// Where, as OpenAI's error has it in `param`: `messages[0].content[1].text`.
    pub param: Option<String>,
    /// What OpenAI's error has in `code`.
    pub code: Option<&'static str>,
    /// What is wrong, in the words of the protocol's server.
    pub message: String,
}

/// Reads the body of a request for an answer.
pub fn decode(protocol: Protocol, body: &[u8]) -> Result<Decoded, DecodeError> {
    let value = parse(protocol, body)?;
    let body = Node::root(protocol, &value);
    match protocol {
        Protocol::Anthropic => anthropic::read(&body, anthropic::Purpose::Answer),
        Protocol::Openai => openai::read(&body),
    }
}

/// Reads the body of a request to Anthropic's `count_tokens`, which has no `max_tokens`.
pub fn decode_count(body: &[u8]) -> Result<Decoded, DecodeError> {
    let value = parse(Protocol::Anthropic, body)?;
    anthropic::read(&Node::root(Protocol::Anthropic, &value), anthropic::Purpose::Count)
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
        DecodeError { kind: ErrorKind::InvalidJson, path: String::new(), param: None, code: None, message }
    })
}

/// The marker `{"type": "ephemeral", "ttl": …}`.
fn lifetime(marker: &Node<'_>) -> Result<Lifetime, DecodeError> {
    let tag = marker.tag(&["ephemeral"])?;
    let marker = marker.tagged(tag);
    let lifetime = match marker.optional("ttl") {
        None => Lifetime::FiveMinutes,
        Some(ttl) if ttl.one_of(&["5m", "1h"])? == "1h" => Lifetime::OneHour,
        Some(_) => Lifetime::FiveMinutes,
    };
    marker.close(&["type", "ttl"])?;
    Ok(lifetime)
}

/// The field `cache_control`, if it is there.
fn cache_control(node: &Node<'_>) -> Result<Option<Lifetime>, DecodeError> {
    node.maybe("cache_control").map(|marker| lifetime(&marker)).transpose()
}

/// The fields of `names` that are there, as they were sent.
fn others(body: &Node<'_>, names: &[&'static str]) -> BTreeMap<String, Json> {
    let sent =
        |name: &&'static str| body.optional(name).map(|node| (name.to_string(), Json::new(node.value)));
    names.iter().filter_map(sent).collect()
}

fn origin(kind: Kind) -> Origin {
    Origin::rule(kind, "request")
}

fn segments(text: &str, kind: Kind) -> Vec<Segment> {
    vec![Segment::new(Text::new(text), origin(kind))]
}

fn text_block(text: &str, kind: Kind) -> Block {
    let place = if kind == Kind::System { Place::Base } else { Place::Log };
    Block::new(place, Content::Text(segments(text, kind)))
}

fn tool_block(
    name: &str,
    description: &str,
    parameters: Option<&Value>,
    breakpoint: Option<Lifetime>,
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
    ToolBlock { place: Place::Base, tool, breakpoint }
}

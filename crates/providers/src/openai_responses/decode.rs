//! Parses bodies of the Responses API, as strictly as its server.

mod items; // the items of `input`
mod schema; // strict schemas
mod tools; // `tools` and `tool_choice`

use hardpan_prompt::{CacheLifetime, ItemKind, Json, Prompt};
use serde_json::Value;

use super::known_fields;
use crate::decode::node::{ExpectedType, Node, join_quoted};
use crate::decode::{
    DecodeError, DecodeErrorKind, DecodedRequest, RequestKind, parse_json, passthrough_fields, text_block,
};
use crate::openai_chat::dialect::OpenaiDialect;

const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const INCLUDES: [&str; 8] = [
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
    "message.input_image.image_url",
    "web_search_call.action.sources",
    "web_search_call.results",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
];
const TIERS: [&str; 7] = ["auto", "default", "fast", "flex", "priority", "scale", "ultrafast"];
/// Those of the tiers that the server names when it refuses another.
const NAMED_TIERS: [&str; 5] = ["auto", "default", "fast", "flex", "priority"];
/// The longest string anywhere in a request, in characters.
const MAX_STRING: usize = 10_485_760;

/// Parses the body of a request to `responses` or one of its relatives.
pub fn decode_request(kind: RequestKind, body: &[u8]) -> Result<DecodedRequest, DecodeError> {
    let value = parse_json(&OpenaiDialect, body)?;
    let body = Node::root(&OpenaiDialect, &value);
    let body = body.record()?;
    body.reject_unknown_fields(known_fields::REQUEST)?;
    let model = body.required("model")?.text()?;
    let mut decoded = DecodedRequest {
        prompt: Prompt { model: model.into(), max_tokens: u32::MAX, ..Prompt::default() },
        ..DecodedRequest::default()
    };
    read_references(body)?;
    let cache_lifetime = read_cache_options(body, &mut decoded)?;
    if let Some(instructions) = body.non_null("instructions") {
        decoded.prompt.system.push(text_block(limited_text(&instructions)?, ItemKind::System));
    }
    if let Some(tools) = body.non_null("tools") {
        tools::read_tools(&tools, &mut decoded)?;
    }
    items::read_input(body, cache_lifetime, &mut decoded)?;
    tools::read_tool_choice(body, &mut decoded)?;
    read_reasoning(body, &mut decoded)?;
    read_text_options(body, &decoded)?;
    read_stream(body, &mut decoded)?;
    read_limits(body, &mut decoded)?;
    read_labels(body)?;
    if kind == RequestKind::Count {
        decoded.stream = false;
    }
    decoded.other = passthrough_fields(body, known_fields::REQUEST);
    decoded.other.remove("input");
    Ok(decoded)
}

/// A string of at most 10 MiB.
fn limited_text<'a>(node: &Node<'a>) -> Result<&'a str, DecodeError> {
    text_up_to(node, MAX_STRING)
}

/// A string of at most `most` characters.
fn text_up_to<'a>(node: &Node<'a>, most: usize) -> Result<&'a str, DecodeError> {
    let text = node.text()?;
    if text.len() <= most {
        return Ok(text);
    }
    let length = text.chars().count();
    if length <= most {
        return Ok(text);
    }
    let message = format!(
        "Invalid '{}': string too long. Expected a string with maximum length {most}, but got a string with length {length} instead.",
        node.param()
    );
    Err(node.reject(DecodeErrorKind::Unsupported, message).with_code("string_above_max_length"))
}

/// An error about the input as a whole, which has the param `input` and no code.
fn input_error(body: &Node<'_>, message: impl Into<String>) -> DecodeError {
    let error = body.reject(DecodeErrorKind::Unsupported, message);
    DecodeError { path: "input".into(), param: Some("input".into()), ..error }
}

fn read_references(body: &Node<'_>) -> Result<(), DecodeError> {
    body.non_null("store").map(|store| store.flag()).transpose()?;
    body.non_null("background").map(|background| background.flag()).transpose()?;
    let previous = body.non_null("previous_response_id");
    previous.as_ref().map(Node::text).transpose()?;
    if let (Some(node), Some(_)) = (&previous, body.non_null("conversation")) {
        let message = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only providing one of these.";
        return Err(node
            .reject(DecodeErrorKind::Unsupported, message)
            .with_code("mutually_exclusive_parameters"));
    }
    Ok(())
}

/// Reads `prompt_cache_options`; returns the lifetime of markers that name none.
fn read_cache_options(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<CacheLifetime, DecodeError> {
    body.non_null("prompt_cache_key").map(|key| text_up_to(&key, 64)).transpose()?;
    body.non_null("prompt_cache_retention").map(|word| word.one_of(&["in_memory", "24h"])).transpose()?;
    let Some(options) = body.non_null("prompt_cache_options") else { return Ok(CacheLifetime::FiveMinutes) };
    let options = options.record()?;
    let mode = options.non_null("mode").map(|mode| mode.one_of(&["implicit", "explicit"])).transpose()?;
    decoded.explicit_only = mode == Some("explicit");
    options.non_null("prewarm").map(|prewarm| prewarm.flag()).transpose()?;
    options.non_null("comparison_response_id").map(|id| id.text()).transpose()?;
    options.reject_unknown_fields(known_fields::CACHE_OPTIONS)?;
    lifetime(options).map(|lifetime| lifetime.unwrap_or(CacheLifetime::FiveMinutes))
}

/// The lifetime in the field `ttl`: the longer of the two is 12 hours.
fn lifetime(node: &Node<'_>) -> Result<Option<CacheLifetime>, DecodeError> {
    let ttl = node.non_null("ttl").map(|ttl| ttl.one_of(&["30m", "12h"])).transpose()?;
    Ok(ttl.map(|ttl| if ttl == "12h" { CacheLifetime::OneHour } else { CacheLifetime::FiveMinutes }))
}

fn read_reasoning(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    if let Some(includes) = body.non_null("include") {
        for include in includes.list(ExpectedType::Texts)? {
            include.one_of(&INCLUDES)?;
        }
    }
    let Some(reasoning) = body.non_null("reasoning") else { return Ok(()) };
    let reasoning = reasoning.record()?;
    let effort = reasoning.non_null("effort").map(|effort| effort.one_of(&EFFORTS)).transpose()?;
    decoded.prompt.effort = effort.and_then(|effort| effort.parse().ok());
    let summaries = ["auto", "concise", "detailed"];
    reasoning.non_null("summary").map(|word| word.one_of(&summaries)).transpose()?;
    reasoning.non_null("generate_summary").map(|word| word.one_of(&summaries)).transpose()?;
    reasoning
        .non_null("context")
        .map(|word| word.one_of(&["auto", "current_turn", "all_turns"]))
        .transpose()?;
    reasoning.non_null("mode").map(|word| word.one_of(&["standard", "pro"])).transpose()?;
    reasoning.reject_unknown_fields(known_fields::REASONING)
}

fn read_text_options(body: &Node<'_>, decoded: &DecodedRequest) -> Result<(), DecodeError> {
    let Some(text) = body.non_null("text") else { return Ok(()) };
    let text = text.record()?;
    text.non_null("verbosity").map(|word| word.one_of(&["low", "medium", "high"])).transpose()?;
    text.reject_unknown_fields(known_fields::TEXT)?;
    let Some(format) = text.non_null("format") else { return Ok(()) };
    match format.tag(&["text", "json_object", "json_schema"])? {
        "json_schema" => {
            let name = text_up_to(&format.required("name")?, 64)?;
            let schema = format.required("schema")?;
            schema.object()?;
            let strict = format.non_null("strict").map_or(Ok(false), |strict| strict.flag())?;
            format.reject_unknown_fields(known_fields::JSON_SCHEMA)?;
            if strict {
                schema::check_strict(&schema, &format!("response_format '{name}'"), "invalid_json_schema")?;
            }
            Ok(())
        }
        "json_object" if !mentions_json(decoded) => Err(input_error(
            body,
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
        )),
        _ => format.reject_unknown_fields(known_fields::PLAIN_FORMAT),
    }
}

/// Whether a message says "json"; the instructions do not count.
fn mentions_json(decoded: &DecodedRequest) -> bool {
    decoded.items.iter().any(|item| item.as_str().to_lowercase().contains("json"))
}

fn read_stream(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    decoded.stream = body.non_null("stream").map_or(Ok(false), |stream| stream.flag())?;
    let Some(options) = body.non_null("stream_options") else { return Ok(()) };
    if !decoded.stream {
        let words = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(options.reject(DecodeErrorKind::Unsupported, words));
    }
    options.record()?.non_null("include_obfuscation").map(|flag| flag.flag()).transpose()?;
    options.reject_unknown_fields(known_fields::STREAM_OPTIONS)
}

fn read_limits(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    if let Some(most) = body.non_null("max_output_tokens") {
        decoded.prompt.max_tokens = most.integer(16)?;
    }
    body.non_null("max_tool_calls").map(|most| most.integer(1)).transpose()?;
    body.non_null("temperature").map(|number| number.number_up_to(2.0)).transpose()?;
    body.non_null("top_p").map(|number| number.number_up_to(1.0)).transpose()?;
    body.non_null("top_logprobs").map(|number| number.integer_between(0, 20)).transpose()?;
    body.non_null("truncation").map(|word| word.one_of(&["auto", "disabled"])).transpose()?;
    let edits = body.non_null("context_management");
    for edit in edits.map_or(Ok(Vec::new()), |edits| edits.list(ExpectedType::Records))? {
        edit.tag(&["compaction"])?;
        edit.non_null("compact_threshold").map(|tokens| tokens.integer(1000)).transpose()?;
        edit.reject_unknown_fields(known_fields::CONTEXT_MANAGEMENT)?;
    }
    Ok(())
}

/// Fields that only label the request.
fn read_labels(body: &Node<'_>) -> Result<(), DecodeError> {
    if let Some(tier) = body.non_null("service_tier")
        && !TIERS.contains(&tier.text()?)
    {
        let (word, words) = (tier.text()?, join_quoted(&NAMED_TIERS, ", and "));
        let message = format!("Invalid value: '{word}'. Supported values are: {words}.");
        return Err(tier.reject(DecodeErrorKind::Unsupported, message).with_code("invalid_value"));
    }
    body.non_null("user").map(|user| text_up_to(&user, 64)).transpose()?;
    body.non_null("safety_identifier").map(|id| text_up_to(&id, 128)).transpose()?;
    let Some(metadata) = body.non_null("metadata") else { return Ok(()) };
    let Some(pairs) = metadata.object()?.as_object() else { return Ok(()) };
    if pairs.len() > 16 {
        let message = format!(
            "Invalid 'metadata': too many properties. Expected an object with at most 16 properties, but got an object with {} properties instead.",
            pairs.len()
        );
        return Err(metadata
            .reject(DecodeErrorKind::Unsupported, message)
            .with_code("object_above_max_properties"));
    }
    pairs
        .keys()
        .filter_map(|key| metadata.optional(key))
        .try_for_each(|value| text_up_to(&value, 512).map(drop))
}

/// An item as JSON text, for those that are only passed on.
fn json_text(value: &Value) -> String {
    Json::new(value).as_str().to_owned()
}

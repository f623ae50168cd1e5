//! Parses bodies of OpenAI Chat Completions, including the fields that our codec sends to
//! compatible servers.

use hardpan_models::{MarkerFormat, MaxTokensField};
use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, ItemKind, Json, PromptMessage, Reasoning, Region, ResultPart, Role,
    Text, ToolBlock, ToolOutcome, ToolResult, WebSearch,
};
use serde_json::Value;

use super::dialect::OpenaiDialect;
use crate::decode::node::{ExpectedType, Node};
use crate::decode::{
    DecodeError, DecodeErrorKind, DecodedRequest, RAW_ARGUMENTS, cache_control, image, origin, parse_json,
    passthrough_fields, segments, text_block, tool_block,
};

/// Fields that this module parses. The last two are not OpenAI's: gateways accept them.
const READ: [&str; 17] = [
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "parallel_tool_calls",
    "stop",
    "reasoning_effort",
    "web_search_options",
    "prompt_cache_options",
    "plugins",
    "cache_control",
];
/// Fields that change neither prompt nor bill. The last two are accepted by gateways.
const OTHER: [&str; 24] = [
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "store",
    "temperature",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "include_reasoning",
    "reasoning",
];

const ROLES: [&str; 6] = ["system", "assistant", "user", "function", "tool", "developer"];
const PARTS: [&str; 6] = ["text", "image_url", "input_audio", "refusal", "audio", "file"];
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// How many results OpenRouter's web plugin includes by default.
const PLUGIN_RESULTS: u32 = 5;

/// Parses the body of a request to `chat/completions`.
pub fn decode_request(body: &[u8]) -> Result<DecodedRequest, DecodeError> {
    let value = parse_json(&OpenaiDialect, body)?;
    let body = Node::root(&OpenaiDialect, &value);
    let body = body.record()?;
    check_arguments(body)?;
    let mut decoded = DecodedRequest::default();
    let model = body
        .non_null("model")
        .ok_or_else(|| body.reject(DecodeErrorKind::Missing, "you must provide a model parameter"))?;
    decoded.prompt.model = model.text()?.into();
    for message in non_empty_list(&body.required("messages")?)? {
        read_message(&message, &mut decoded)?;
    }
    if let Some(tools) = body.non_null("tools") {
        decoded.prompt.tools = non_empty_list(&tools)?.iter().map(tool).collect::<Result<_, _>>()?;
    }
    // The ancestor of `tools`, which the server still takes.
    if let Some(functions) = body.non_null("functions") {
        let functions = non_empty_list(&functions)?;
        decoded.prompt.tools.extend(functions.iter().map(function).collect::<Result<Vec<_>, _>>()?);
    }
    read_max_tokens(body, &mut decoded)?;
    read_tool_choice(body, &mut decoded)?;
    read_stream(body, &mut decoded)?;
    read_search(body, &mut decoded)?;
    decoded.stop_sequences = stop_sequences(body)?;
    let effort = body.non_null("reasoning_effort").map(|effort| effort.one_of(&EFFORTS)).transpose()?;
    decoded.prompt.effort = effort.and_then(|effort| effort.parse().ok());
    if let Some(options) = body.non_null("prompt_cache_options") {
        let mode = options
            .record()?
            .non_null("mode")
            .map(|mode| mode.one_of(&["implicit", "explicit"]))
            .transpose()?;
        decoded.explicit_only = mode == Some("explicit");
        options.non_null("ttl").map(|ttl| ttl.one_of(&["30m"])).transpose()?;
        options.reject_unknown_fields(&["mode", "ttl"])?;
    }
    decoded.automatic_cache = cache_control(body)?;
    body.non_null("temperature").map(|number| number.number_up_to(2.0)).transpose()?;
    body.non_null("top_p").map(|number| number.number_up_to(1.0)).transpose()?;
    body.non_null("metadata").map(|metadata| metadata.object()).transpose()?;
    body.non_null("user").map(|user| user.text()).transpose()?;
    decoded.other = passthrough_fields(body, &OTHER);
    Ok(decoded)
}

fn check_arguments(body: &Node<'_>) -> Result<(), DecodeError> {
    let keys = body.value.as_object().into_iter().flat_map(serde_json::Map::keys);
    let mut unknown: Vec<&str> =
        keys.map(String::as_str).filter(|key| !READ.contains(key) && !OTHER.contains(key)).collect();
    unknown.sort_unstable();
    let (Some(first), many) = (unknown.first(), unknown.len() > 1) else { return Ok(()) };
    let noun = if many { "arguments" } else { "argument" };
    let message = format!("Unrecognized request {noun} supplied: {}", unknown.join(", "));
    Err(DecodeError { path: first.to_string(), ..body.reject(DecodeErrorKind::Unknown, message) })
}

/// The elements of a list; an empty list is an error.
fn non_empty_list<'a>(node: &Node<'a>) -> Result<Vec<Node<'a>>, DecodeError> {
    let list = node.list(ExpectedType::Records)?;
    if list.is_empty() {
        let message = format!(
            "Invalid '{}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            node.param()
        );
        return Err(node.reject(DecodeErrorKind::Unsupported, message).with_code("empty_array"));
    }
    Ok(list)
}

fn read_message(node: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let node = node.record()?;
    let role = node.required("role")?;
    let prompt = &mut decoded.prompt;
    let id = node.non_null("message_id").map(|id| id.text().map(Into::into)).transpose()?;
    let turn = match role.one_of(&ROLES)? {
        "system" | "developer" => {
            let blocks = content(node, ItemKind::System)?;
            node.reject_unknown_fields(&["role", "content", "name", "message_id"])?;
            if prompt.messages.is_empty() {
                prompt.system.extend(blocks);
                prompt.system_id = prompt.system_id.take().or(id);
                decoded.system_messages += 1;
                return Ok(());
            }
            PromptMessage::new(Role::System, blocks)
        }
        "user" => {
            let blocks = content(node, ItemKind::History)?;
            node.reject_unknown_fields(&["role", "content", "name", "message_id", "documentContext"])?;
            PromptMessage { documents: documents(node)?, ..PromptMessage::new(Role::User, blocks) }
        }
        "assistant" => PromptMessage::new(Role::Assistant, assistant_blocks(node)?),
        "tool" => PromptMessage::new(Role::User, vec![tool_result(node)?]),
        word => {
            let message =
                format!("Unsupported value: '{}' does not support '{word}' with this model.", role.param());
            return Err(role.reject(DecodeErrorKind::Unsupported, message).with_code("unsupported_value"));
        }
    };
    prompt.messages.push(PromptMessage { id, ..turn });
    Ok(())
}

/// The ids in `documentContext`, for servers that store documents.
fn documents(node: &Node<'_>) -> Result<Vec<std::sync::Arc<str>>, DecodeError> {
    let Some(context) = node.non_null("documentContext") else { return Ok(Vec::new()) };
    let ids = context.record()?.required("documentIds")?.texts()?;
    Ok(ids.into_iter().map(Into::into).collect())
}

fn content(node: &Node<'_>, kind: ItemKind) -> Result<Vec<Block>, DecodeError> {
    let content = node.required("content")?;
    match content.value {
        Value::Null => {
            let words = "Invalid value for 'content': expected a string, got null.";
            Err(content.reject(DecodeErrorKind::WrongType, words))
        }
        Value::String(text) => Ok(vec![text_block(text, kind)]),
        Value::Array(_) => non_empty_list(&content)?.iter().map(|node| content_part(node, kind)).collect(),
        _ => Err(content.wrong_type(ExpectedType::TextOrRecords)),
    }
}

fn content_part(node: &Node<'_>, kind: ItemKind) -> Result<Block, DecodeError> {
    let tag = node.tag(&PARTS)?;
    let content = match tag {
        "text" | "refusal" => Content::Text(segments(node.required(tag)?.text()?, kind)),
        "image_url" => {
            let picture = node.required(tag)?;
            let address = picture.record()?.required("url")?;
            picture.non_null("detail").map(|detail| detail.one_of(&["auto", "low", "high"])).transpose()?;
            picture.reject_unknown_fields(&["url", "detail"])?;
            let url = address.text()?;
            let is_remote = url.starts_with("http://") || url.starts_with("https://");
            let image = if is_remote { Some(image::from_address(url)) } else { image::from_data_url(url) };
            let refused = || {
                address.invalid_value(
                    "expected an http(s) address or a base64-encoded data URL with an image MIME type",
                )
            };
            Content::Image(image.ok_or_else(refused)?, origin(kind))
        }
        _ => return Err(node.invalid_value("audio and files cannot be read here; send text or images")),
    };
    let breakpoint = read_breakpoint(node)?;
    node.reject_unknown_fields(&[&["type", tag], &MarkerFormat::FIELDS[..]].concat())?;
    let place = if kind == ItemKind::System { Region::Base } else { Region::Log };
    Ok(Block { breakpoint, ..Block::new(place, content) })
}

/// The breakpoint of a part. OpenAI's marker has no lifetime: it becomes the short one.
fn read_breakpoint(node: &Node<'_>) -> Result<Option<CacheLifetime>, DecodeError> {
    let Some(marker) = node.non_null("prompt_cache_breakpoint") else { return cache_control(node) };
    marker.record()?.required("mode")?.one_of(&["explicit"])?;
    marker.reject_unknown_fields(&["mode"])?;
    Ok(Some(CacheLifetime::FiveMinutes))
}

/// The blocks of an assistant message: reasoning, then text, then calls.
fn assistant_blocks(node: &Node<'_>) -> Result<Vec<Block>, DecodeError> {
    let mut blocks = Vec::new();
    if let Some(reasoning) = node.non_null("reasoning_content").or_else(|| node.non_null("reasoning")) {
        let (text, origin) = (Text::new(reasoning.text()?), origin(ItemKind::History));
        let reasoning = Reasoning { text, signature: None, redacted: None, origin };
        blocks.push(Block::new(Region::Log, Content::Reasoning(reasoning)));
    }
    let calls = node.optional("tool_calls").map_or(Ok(Vec::new()), |calls| non_empty_list(&calls))?;
    let refusal = node.non_null("refusal");
    // Content may be left out where something else is said.
    if node.non_null("content").is_some() || (calls.is_empty() && refusal.is_none()) {
        blocks.extend(content(node, ItemKind::History)?);
    }
    if let Some(refusal) = refusal {
        blocks.push(text_block(refusal.text()?, ItemKind::History));
    }
    for call in &calls {
        blocks.push(Block::new(Region::Log, Content::Call(tool_call(call)?)));
    }
    for gone in ["function_call", "audio"] {
        node.non_null(gone).map_or(Ok(()), |node| {
            Err(node.invalid_value("it cannot be read here; use 'tool_calls' and text"))
        })?;
    }
    let own = ["role", "content", "name", "message_id", "refusal", "tool_calls", "function_call", "audio"];
    let echoed = ["annotations", "reasoning_content", "reasoning", "reasoning_details"];
    node.reject_unknown_fields(&[&own[..], &echoed].concat())?;
    Ok(blocks)
}

fn tool_call(node: &Node<'_>) -> Result<Call, DecodeError> {
    let node = node.record()?;
    let id = node.required("id")?.text()?.into();
    let tag = node.tag(&["function", "custom"])?;
    let function = node.required(tag)?;
    let name = function.record()?.required("name")?.text()?.into();
    let arguments = if tag == "custom" {
        Json::new(&serde_json::json!({"input": function.required("input")?.text()?}))
    } else {
        arguments(function.required("arguments")?.text()?)
    };
    function.reject_unknown_fields(&["name", if tag == "custom" { "input" } else { "arguments" }])?;
    // Clients that put a call together from a stream leave its index in.
    node.reject_unknown_fields(&["id", "type", tag, "index"])?;
    Ok(Call { id, name, arguments, origin: origin(ItemKind::History) })
}

/// The server accepts any text here, because a model may have written any.
fn arguments(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Json::new(&object),
        _ => Json::new(&serde_json::json!({RAW_ARGUMENTS: text})),
    }
}

fn tool_result(node: &Node<'_>) -> Result<Block, DecodeError> {
    let call_id = node.required("tool_call_id")?.text()?.into();
    let is_nothing = node.non_null("content").is_some_and(|content| content.value == "");
    let blocks = if is_nothing { Vec::new() } else { content(node, ItemKind::History)? };
    node.reject_unknown_fields(&["role", "content", "tool_call_id", "name", "message_id"])?;
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
    Ok(Block { breakpoint, ..Block::new(Region::Log, Content::Result(result)) })
}

fn tool(node: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    let tag = node.tag(&["function", "custom"])?;
    let inner = node.required(tag)?;
    let tool = if tag == "custom" { custom_tool(&inner) } else { function(&inner) }?;
    node.reject_unknown_fields(&["type", tag, "cache_control"])?;
    Ok(ToolBlock { breakpoint: cache_control(node)?, ..tool })
}

/// A tool that takes a text in place of arguments.
fn custom_tool(custom: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    let name = custom.record()?.required("name")?.text()?;
    let description = custom.non_null("description").map_or(Ok(""), |text| text.text())?;
    custom.non_null("format").map(|format| format.tag(&["text", "grammar"]).map(drop)).transpose()?;
    custom.reject_unknown_fields(&["name", "description", "format"])?;
    let schema = serde_json::json!({"type": "object", "properties": {"input": {"type": "string"}}});
    Ok(tool_block(name, description, Some(&schema), None))
}

fn function(function: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    let name = function.record()?.required("name")?.text()?;
    let description = function.non_null("description").map_or(Ok(""), |text| text.text())?;
    let parameters = function.non_null("parameters").map(|parameters| parameters.object()).transpose()?;
    function.non_null("strict").map(|strict| strict.flag()).transpose()?;
    function.reject_unknown_fields(&["name", "description", "parameters", "strict"])?;
    Ok(tool_block(name, description, parameters, None))
}

fn read_max_tokens(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let fields = [MaxTokensField::MaxTokens, MaxTokensField::MaxCompletionTokens];
    let mut given = fields.iter().filter_map(|field| Some((*field, body.non_null(field.name())?)));
    decoded.prompt.max_tokens = u32::MAX;
    let Some((field, tokens)) = given.next() else { return Ok(()) };
    if given.next().is_some() {
        let words = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return Err(tokens
            .reject(DecodeErrorKind::Unsupported, words)
            .with_code("invalid_parameter_combination"));
    }
    decoded.prompt.max_tokens = tokens.integer(1)?;
    decoded.max_tokens_field = Some(field);
    Ok(())
}

fn read_tool_choice(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let choice = body.non_null("tool_choice").or_else(|| body.non_null("function_call"));
    let parallel = body.non_null("parallel_tool_calls");
    if let (Some(node), true) = (choice.as_ref().or(parallel.as_ref()), decoded.prompt.tools.is_empty()) {
        let name = node.param();
        let message =
            format!("Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.");
        return Err(node.reject(DecodeErrorKind::Unsupported, message));
    }
    if let Some(choice) = choice {
        if choice.value.is_string() {
            choice.one_of(&["none", "auto", "required"])?;
        } else {
            // The ancestor `function_call` names a function without a type.
            let is_named = choice.param() == "function_call";
            if is_named {
                choice.record()?.required("name")?;
            } else {
                choice.tag(&["function", "custom", "allowed_tools"])?;
            }
        }
        decoded.tool_choice = Some(Json::new(choice.value));
    }
    decoded.parallel_tools = parallel.map(|parallel| parallel.flag()).transpose()?;
    Ok(())
}

fn read_stream(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    decoded.stream = body.non_null("stream").map_or(Ok(false), |stream| stream.flag())?;
    let Some(options) = body.non_null("stream_options") else { return Ok(()) };
    if !decoded.stream {
        let words = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(options.reject(DecodeErrorKind::Unsupported, words));
    }
    let usage = options.record()?.non_null("include_usage");
    decoded.include_usage = usage.map_or(Ok(false), |usage| usage.flag())?;
    options.reject_unknown_fields(&["include_usage", "include_obfuscation"])
}

/// Web search: OpenAI's own option, or a gateway's plugin.
fn read_search(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    if let Some(options) = body.non_null("web_search_options") {
        options.object()?;
        decoded.prompt.web_search = Some(WebSearch { max_results: u32::MAX });
    }
    let plugins =
        body.non_null("plugins").map_or(Ok(Vec::new()), |plugins| plugins.list(ExpectedType::Records))?;
    for plugin in plugins {
        if plugin.record()?.required("id")?.text()? == "web" {
            let results =
                plugin.non_null("max_results").map_or(Ok(PLUGIN_RESULTS), |results| results.integer(1))?;
            decoded.prompt.web_search = Some(WebSearch { max_results: results });
        }
    }
    Ok(())
}

fn stop_sequences(body: &Node<'_>) -> Result<Vec<String>, DecodeError> {
    const MOST: usize = 4;
    let Some(stop) = body.non_null("stop") else { return Ok(Vec::new()) };
    if let Some(text) = stop.value.as_str() {
        return Ok(vec![text.to_owned()]);
    }
    let stops = stop.texts()?;
    if stops.len() > MOST {
        let message = format!(
            "Invalid 'stop': array too long. Expected an array with maximum length {MOST}, but got an array with length {} instead.",
            stops.len()
        );
        return Err(stop.reject(DecodeErrorKind::Unsupported, message).with_code("array_above_max_length"));
    }
    Ok(stops)
}

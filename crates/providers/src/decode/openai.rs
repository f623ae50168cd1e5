//! OpenAI Chat Completions, with what our codec says to the servers that speak it too.

use hardpan_prompt::{
    Block, Call, Content, Json, Kind, Lifetime, Outcome, Place, Reasoning, ResultPart, Role, Text, ToolBlock,
    ToolResult, Turn, WebSearch,
};
use serde_json::Value;

use super::node::{Node, Want};
use super::{
    DecodeError, Decoded, ErrorKind, RAW_ARGUMENTS, cache_control, image, origin, others, segments,
    text_block, tool_block,
};

/// Fields that are read here. The last ones are not OpenAI's: gateways take them.
const READ: [&str; 15] = [
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "stop",
    "reasoning_effort",
    "web_search_options",
    "prompt_cache_options",
    "plugins",
    "cache_control",
];
/// Fields that change neither prompt nor bill. The last ones are gateways'.
const OTHER: [&str; 23] = [
    "audio",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "metadata",
    "modalities",
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
const EFFORTS: [&str; 6] = ["none", "minimal", "low", "medium", "high", "xhigh"];
/// How many results the plugin of OpenRouter takes in when it is not told.
const PLUGIN_RESULTS: u32 = 5;

/// Reads the whole body.
pub fn read(body: &Node<'_>) -> Result<Decoded, DecodeError> {
    let body = body.record()?;
    check_arguments(body)?;
    let mut decoded = Decoded::default();
    let model = body
        .maybe("model")
        .ok_or_else(|| body.fail(ErrorKind::Missing, "", "you must provide a model parameter").coded(None))?;
    decoded.prompt.model = model.text()?.into();
    for message in filled(&body.need("messages")?)? {
        read_message(&message, &mut decoded)?;
    }
    if let Some(tools) = body.maybe("tools") {
        decoded.prompt.tools = filled(&tools)?.iter().map(tool).collect::<Result<_, _>>()?;
    }
    decoded.prompt.max_tokens = max_tokens(body)?;
    read_choice(body, &mut decoded)?;
    read_stream(body, &mut decoded)?;
    read_search(body, &mut decoded)?;
    decoded.stop_sequences = stop(body)?;
    let effort = body.maybe("reasoning_effort").map(|effort| effort.one_of(&EFFORTS)).transpose()?;
    decoded.effort = effort.map(str::to_owned);
    if let Some(options) = body.maybe("prompt_cache_options") {
        let mode =
            options.record()?.maybe("mode").map(|mode| mode.one_of(&["implicit", "explicit"])).transpose()?;
        decoded.explicit_only = mode == Some("explicit");
        options.maybe("ttl").map(|ttl| ttl.one_of(&["30m"])).transpose()?;
        options.close(&["mode", "ttl"])?;
    }
    decoded.automatic_cache = cache_control(body)?;
    body.maybe("temperature").map(|number| number.share(2.0)).transpose()?;
    body.maybe("top_p").map(|number| number.share(1.0)).transpose()?;
    body.maybe("metadata").map(|metadata| metadata.object()).transpose()?;
    body.maybe("user").map(|user| user.text()).transpose()?;
    decoded.other = others(body, &OTHER);
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
    let error = body.fail(ErrorKind::Unknown, "", message).coded(None);
    Err(DecodeError { path: first.to_string(), ..error })
}

/// The elements of a list that may not be empty.
fn filled<'a>(node: &Node<'a>) -> Result<Vec<Node<'a>>, DecodeError> {
    let list = node.list(Want::Records)?;
    if list.is_empty() {
        let message = format!(
            "Invalid '{}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            node.param()
        );
        return Err(node.fail(ErrorKind::Unsupported, "", message).coded("empty_array"));
    }
    Ok(list)
}

fn read_message(node: &Node<'_>, decoded: &mut Decoded) -> Result<(), DecodeError> {
    let node = node.record()?;
    let role = node.need("role")?;
    let prompt = &mut decoded.prompt;
    let id = node.maybe("message_id").map(|id| id.text().map(Into::into)).transpose()?;
    let turn = match role.one_of(&ROLES)? {
        "system" | "developer" => {
            let blocks = content(node, Kind::System)?;
            node.close(&["role", "content", "name", "message_id"])?;
            if prompt.turns.is_empty() {
                prompt.system.extend(blocks);
                prompt.system_id = prompt.system_id.take().or(id);
                decoded.system_messages += 1;
                return Ok(());
            }
            // A prompt has one system prompt, at its beginning; later ones keep their place and their kind.
            Turn::new(Role::User, blocks)
        }
        "user" => {
            let blocks = content(node, Kind::History)?;
            node.close(&["role", "content", "name", "message_id", "documentContext"])?;
            Turn { documents: documents(node)?, ..Turn::new(Role::User, blocks) }
        }
        "assistant" => Turn::new(Role::Assistant, assistant(node)?),
        "tool" => Turn::new(Role::User, vec![result(node)?]),
        word => {
            let message =
                format!("Unsupported value: '{}' does not support '{word}' with this model.", role.param());
            return Err(role.fail(ErrorKind::Unsupported, "", message).coded("unsupported_value"));
        }
    };
    prompt.turns.push(Turn { id, ..turn });
    Ok(())
}

/// Documents by id, for the servers that know them.
fn documents(node: &Node<'_>) -> Result<Vec<std::sync::Arc<str>>, DecodeError> {
    let Some(context) = node.maybe("documentContext") else { return Ok(Vec::new()) };
    let ids = context.record()?.need("documentIds")?.texts()?;
    Ok(ids.into_iter().map(Into::into).collect())
}

fn content(node: &Node<'_>, kind: Kind) -> Result<Vec<Block>, DecodeError> {
    let content = node.need("content")?;
    match content.value {
        Value::Null => {
            let words = "Invalid value for 'content': expected a string, got null.";
            Err(content.fail(ErrorKind::WrongType, "", words).coded(None))
        }
        Value::String(text) => Ok(vec![text_block(text, kind)]),
        Value::Array(_) => filled(&content)?.iter().map(|node| part(node, kind)).collect(),
        _ => Err(content.wrong_type(Want::TextOrRecords)),
    }
}

fn part(node: &Node<'_>, kind: Kind) -> Result<Block, DecodeError> {
    let tag = node.tag(&PARTS)?;
    let content = match tag {
        "text" | "refusal" => Content::Text(segments(node.need(tag)?.text()?, kind)),
        "image_url" => {
            let picture = node.need(tag)?;
            let address = picture.record()?.need("url")?;
            picture.maybe("detail").map(|detail| detail.one_of(&["auto", "low", "high"])).transpose()?;
            picture.close(&["url", "detail"])?;
            let url = address.text()?;
            let is_remote = url.starts_with("http://") || url.starts_with("https://");
            let image = if is_remote { Some(image::from_address(url)) } else { image::from_data_url(url) };
            let refused = || {
                address.refuse(
                    "expected an http(s) address or a base64-encoded data URL with an image MIME type",
                )
            };
            Content::Image(image.ok_or_else(refused)?, origin(kind))
        }
        _ => return Err(node.refuse("audio and files cannot be read here; send text or images")),
    };
    let breakpoint = marker(node)?;
    node.close(&["type", tag, "cache_control", "prompt_cache_breakpoint"])?;
    let place = if kind == Kind::System { Place::Base } else { Place::Log };
    Ok(Block { breakpoint, ..Block::new(place, content) })
}

/// OpenAI's marker has no lifetime of its own; the short one stands for it.
fn marker(node: &Node<'_>) -> Result<Option<Lifetime>, DecodeError> {
    let Some(marker) = node.maybe("prompt_cache_breakpoint") else { return cache_control(node) };
    marker.record()?.need("mode")?.one_of(&["explicit"])?;
    marker.close(&["mode"])?;
    Ok(Some(Lifetime::FiveMinutes))
}

/// Reasoning, then what was said, then calls.
fn assistant(node: &Node<'_>) -> Result<Vec<Block>, DecodeError> {
    let mut blocks = Vec::new();
    if let Some(reasoning) = node.maybe("reasoning_content").or_else(|| node.maybe("reasoning")) {
        let (text, origin) = (Text::new(reasoning.text()?), origin(Kind::History));
        let reasoning = Reasoning { text, signature: None, redacted: None, origin };
        blocks.push(Block::new(Place::Log, Content::Reasoning(reasoning)));
    }
    let calls = node.optional("tool_calls").map_or(Ok(Vec::new()), |calls| filled(&calls))?;
    let refusal = node.maybe("refusal");
    // Content may be left out where something else is said.
    if node.maybe("content").is_some() || (calls.is_empty() && refusal.is_none()) {
        blocks.extend(content(node, Kind::History)?);
    }
    if let Some(refusal) = refusal {
        blocks.push(text_block(refusal.text()?, Kind::History));
    }
    for call in &calls {
        blocks.push(Block::new(Place::Log, Content::Call(self::call(call)?)));
    }
    for gone in ["function_call", "audio"] {
        node.maybe(gone)
            .map_or(Ok(()), |node| Err(node.refuse("it cannot be read here; use 'tool_calls' and text")))?;
    }
    let own = ["role", "content", "name", "message_id", "refusal", "tool_calls", "function_call", "audio"];
    let echoed = ["annotations", "reasoning_content", "reasoning", "reasoning_details"];
    node.close(&[&own[..], &echoed].concat())?;
    Ok(blocks)
}

fn call(node: &Node<'_>) -> Result<Call, DecodeError> {
    let node = node.record()?;
    let id = node.need("id")?.text()?.into();
    node.tag(&["function"])?;
    let function = node.need("function")?;
    let name = function.record()?.need("name")?.text()?.into();
    let arguments = arguments(function.need("arguments")?.text()?);
    function.close(&["name", "arguments"])?;
    // Clients that put a call together from a stream leave its index in.
    node.close(&["id", "type", "function", "index"])?;
    Ok(Call { id, name, arguments, origin: origin(Kind::History) })
}

/// The server takes any text here, as the model may have written any.
fn arguments(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Json::new(&object),
        _ => Json::new(&serde_json::json!({RAW_ARGUMENTS: text})),
    }
}

fn result(node: &Node<'_>) -> Result<Block, DecodeError> {
    let call_id = node.need("tool_call_id")?.text()?.into();
    let is_nothing = node.maybe("content").is_some_and(|content| content.value == "");
    let blocks = if is_nothing { Vec::new() } else { content(node, Kind::History)? };
    node.close(&["role", "content", "tool_call_id", "name", "message_id"])?;
    let breakpoint = blocks.iter().rev().find_map(|block| block.breakpoint);
    let parts = blocks.into_iter().filter_map(|block| match block.content.into_content() {
        Content::Text(segments) => Some(ResultPart::Text(segments)),
        Content::Image(image, _) => Some(ResultPart::Image(image)),
        Content::Reasoning(_) | Content::Call(_) | Content::Result(_) => None, // no part is one
    });
    let (parts, outcome) = (parts.collect(), Outcome::Done);
    let result = ToolResult { call_id, parts, outcome, origin: origin(Kind::History) };
    Ok(Block { breakpoint, ..Block::new(Place::Log, Content::Result(result)) })
}

fn tool(node: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    node.tag(&["function"])?;
    let function = node.need("function")?;
    let name = function.record()?.need("name")?.text()?;
    let description = function.maybe("description").map_or(Ok(""), |text| text.text())?;
    let parameters = function.maybe("parameters").map(|parameters| parameters.object()).transpose()?;
    function.maybe("strict").map(|strict| strict.flag()).transpose()?;
    function.close(&["name", "description", "parameters", "strict"])?;
    let tool = tool_block(name, description, parameters, cache_control(node)?);
    node.close(&["type", "function", "cache_control"])?;
    Ok(tool)
}

fn max_tokens(body: &Node<'_>) -> Result<u32, DecodeError> {
    match (body.maybe("max_tokens"), body.maybe("max_completion_tokens")) {
        (Some(both), Some(_)) => {
            let words = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
            Err(both.fail(ErrorKind::Unsupported, "", words).coded("invalid_parameter_combination"))
        }
        (Some(tokens), None) | (None, Some(tokens)) => tokens.integer(1),
        (None, None) => Ok(u32::MAX),
    }
}

fn read_choice(body: &Node<'_>, decoded: &mut Decoded) -> Result<(), DecodeError> {
    let choice = body.maybe("tool_choice");
    let parallel = body.maybe("parallel_tool_calls");
    if let (Some(node), true) = (choice.as_ref().or(parallel.as_ref()), decoded.prompt.tools.is_empty()) {
        let name = node.param();
        let refusal = node.refuse(&format!("'{name}' is only allowed when 'tools' are specified."));
        return Err(refusal.coded(None));
    }
    if let Some(choice) = choice {
        if choice.value.is_string() {
            choice.one_of(&["none", "auto", "required"])?;
        } else {
            choice.tag(&["function", "allowed_tools"])?;
        }
        decoded.tool_choice = Some(Json::new(choice.value));
    }
    decoded.parallel_tools = parallel.map(|parallel| parallel.flag()).transpose()?;
    Ok(())
}

fn read_stream(body: &Node<'_>, decoded: &mut Decoded) -> Result<(), DecodeError> {
    decoded.stream = body.maybe("stream").map_or(Ok(false), |stream| stream.flag())?;
    let Some(options) = body.maybe("stream_options") else { return Ok(()) };
    if !decoded.stream {
        let words = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(options.fail(ErrorKind::Unsupported, "", words).coded(None));
    }
    let usage = options.record()?.maybe("include_usage");
    decoded.include_usage = usage.map_or(Ok(false), |usage| usage.flag())?;
    options.close(&["include_usage", "include_obfuscation"])
}

/// OpenAI's own search, or a gateway's plugin.
fn read_search(body: &Node<'_>, decoded: &mut Decoded) -> Result<(), DecodeError> {
    if let Some(options) = body.maybe("web_search_options") {
        options.object()?;
        decoded.prompt.web_search = Some(WebSearch { max_results: u32::MAX });
    }
    let plugins = body.maybe("plugins").map_or(Ok(Vec::new()), |plugins| plugins.list(Want::Records))?;
    for plugin in plugins {
        if plugin.record()?.need("id")?.text()? == "web" {
            let results =
                plugin.maybe("max_results").map_or(Ok(PLUGIN_RESULTS), |results| results.integer(1))?;
            decoded.prompt.web_search = Some(WebSearch { max_results: results });
        }
    }
    Ok(())
}

fn stop(body: &Node<'_>) -> Result<Vec<String>, DecodeError> {
    const MOST: usize = 4;
    let Some(stop) = body.maybe("stop") else { return Ok(Vec::new()) };
    if let Some(text) = stop.value.as_str() {
        return Ok(vec![text.to_owned()]);
    }
    let stops = stop.texts()?;
    if stops.len() > MOST {
        let message = format!(
            "Invalid 'stop': array too long. Expected an array with maximum length {MOST}, but got an array with length {} instead.",
            stops.len()
        );
        return Err(stop.fail(ErrorKind::Unsupported, "", message).coded("array_above_max_length"));
    }
    Ok(stops)
}

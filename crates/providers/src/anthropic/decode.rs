//! Parses bodies of Anthropic Messages.

use hardpan_prompt::{
    Block, CacheLifetime, Call, Content, Effort, Image, ItemKind, Json, Prompt, PromptMessage, Reasoning,
    Region, ResultPart, Role, Text, Thinking, ToolBlock, ToolOutcome, ToolResult, WebSearch,
};
use serde_json::Value;

use super::dialect::AnthropicDialect;
use crate::decode::node::{ExpectedType, Node, Problem};
use crate::decode::{
    DecodeError, DecodeErrorKind, DecodedRequest, RequestKind, cache_control, image, origin, parse_json,
    passthrough_fields, segments, text_block, tool_block, without_marker,
};

/// Fields of every request that this module parses.
const READ: [&str; 8] =
    ["model", "messages", "system", "tools", "tool_choice", "thinking", "cache_control", "output_config"];
/// Further parsed fields of a request for an answer.
const READ_FOR_ANSWER: [&str; 3] = ["max_tokens", "stream", "stop_sequences"];
/// Fields of every request that change neither prompt nor bill.
const OTHER: [&str; 3] = ["context_management", "mcp_servers", "output_format"];
/// Further such fields of a request for an answer.
const OTHER_FOR_ANSWER: [&str; 8] =
    ["temperature", "top_p", "top_k", "metadata", "service_tier", "container", "inference_geo", "speed"];

/// The types of blocks that a message may contain.
const BLOCKS: [&str; 17] = [
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "container_upload",
    "document",
    "image",
    "mcp_tool_result",
    "mcp_tool_use",
    "redacted_thinking",
    "search_result",
    "server_tool_use",
    "text",
    "text_editor_code_execution_tool_result",
    "thinking",
    "tool_result",
    "tool_use",
    "web_fetch_tool_result",
    "web_search_tool_result",
];
/// The types of blocks that a tool result may contain.
const PARTS: [&str; 5] = ["document", "image", "search_result", "text", "tool_reference"];
/// Anthropic's own tools: the type without its date suffix. The first [`SERVER_TOOLS`] run on the
/// server.
const TYPED_TOOLS: [&str; 8] = [
    "code_execution",
    "tool_search_tool",
    "web_fetch",
    "web_search",
    "bash",
    "computer",
    "memory",
    "text_editor",
];
const SERVER_TOOLS: usize = 4;

const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Parses the body of a request to `messages` or `messages/count_tokens`.
pub fn decode_request(kind: RequestKind, body: &[u8]) -> Result<DecodedRequest, DecodeError> {
    let value = parse_json(&AnthropicDialect, body)?;
    let body = Node::root(&AnthropicDialect, &value);
    let body = body.record()?;
    let mut decoded = DecodedRequest::default();
    let prompt = &mut decoded.prompt;
    prompt.model = body.required("model")?.text()?.into();
    let messages = body.required("messages")?;
    prompt.messages = messages.list(ExpectedType::Records)?.iter().map(message).collect::<Result<_, _>>()?;
    if let Some(system) = body.optional("system") {
        prompt.system = self::system(&system)?;
    }
    prompt.max_tokens = u32::MAX;
    if let Some(tools) = body.optional("tools") {
        read_tools(&tools, &mut decoded)?;
    }
    if let Some(thinking) = body.optional("thinking") {
        read_thinking(&thinking, &mut decoded)?;
    }
    if let Some(choice) = body.optional("tool_choice") {
        read_tool_choice(&choice, &mut decoded)?;
    }
    if let Some(config) = body.non_null("output_config") {
        decoded.prompt.effort = effort(&config, &["format", "task_budget"])?;
    }
    decoded.automatic_cache = cache_control(body)?;
    decoded.citations = has_citations(messages.value);
    decoded.other = passthrough_fields(body, &OTHER);
    if kind == RequestKind::Count {
        body.reject_unknown_fields(&[&READ[..], &OTHER].concat())?;
        return Ok(decoded);
    }
    decoded.prompt.max_tokens = body.required("max_tokens")?.integer(0)?;
    decoded.stream = body.optional("stream").map_or(Ok(false), |stream| stream.flag())?;
    decoded.stop_sequences = body.optional("stop_sequences").map_or(Ok(Vec::new()), |stop| stop.texts())?;
    body.optional("temperature").map(|number| number.number_up_to(1.0)).transpose()?;
    body.optional("top_p").map(|number| number.number_up_to(1.0)).transpose()?;
    body.optional("top_k").map(|number| number.integer(0)).transpose()?;
    body.non_null("metadata").map(|metadata| metadata.object()).transpose()?;
    body.reject_unknown_fields(&[&READ[..], &READ_FOR_ANSWER, &OTHER, &OTHER_FOR_ANSWER].concat())?;
    decoded.other.extend(passthrough_fields(body, &OTHER_FOR_ANSWER));
    Ok(decoded)
}

fn system(node: &Node<'_>) -> Result<Vec<Block>, DecodeError> {
    if let Some(text) = node.value.as_str() {
        return Ok(string_content(text, ItemKind::System));
    }
    let block = |node: &Node<'_>| {
        node.record()?.required("type")?.one_of(&["text"])?;
        text(node, ItemKind::System)
    };
    node.list(ExpectedType::TextOrRecords)?.iter().map(block).collect()
}

/// String content is short for one text block; the empty string is none.
fn string_content(text: &str, kind: ItemKind) -> Vec<Block> {
    if text.is_empty() { Vec::new() } else { vec![text_block(text, kind)] }
}

fn message(message: &Node<'_>) -> Result<PromptMessage, DecodeError> {
    let role = match message.record()?.required("role")?.one_of(&["user", "assistant", "system"])? {
        "system" => return system_message(message),
        "assistant" => Role::Assistant,
        _ => Role::User,
    };
    let content = message.required("content")?;
    let blocks = match content.value.as_str() {
        Some(text) => string_content(text, ItemKind::History),
        None => content.list(ExpectedType::TextOrRecords)?.iter().map(block).collect::<Result<_, _>>()?,
    };
    message.reject_unknown_fields(&["role", "content"])?;
    Ok(PromptMessage::new(role, blocks))
}

/// A system message inside the conversation: text, the effort from the next user message on, or
/// both.
fn system_message(message: &Node<'_>) -> Result<PromptMessage, DecodeError> {
    let blocks = system(&message.required("content")?)?;
    let turn_scoped = match message.non_null("clear_at") {
        Some(moment) => moment.one_of(&["next_user_message"]).map(|_| true)?,
        None => false,
    };
    let effort = message.non_null("output_config").map(|config| effort(&config, &[])).transpose()?.flatten();
    message.reject_unknown_fields(&["role", "content", "clear_at", "output_config"])?;
    Ok(PromptMessage { turn_scoped, effort, ..PromptMessage::new(Role::System, blocks) })
}

/// The effort in `output_config`, which may have the fields `others` besides.
fn effort(config: &Node<'_>, others: &[&str]) -> Result<Option<Effort>, DecodeError> {
    let effort = config.record()?.non_null("effort").map(|effort| effort.one_of(&EFFORTS)).transpose()?;
    config.reject_unknown_fields(&[&["effort"], others].concat())?;
    Ok(effort.and_then(|effort| effort.parse().ok()))
}

fn block(node: &Node<'_>) -> Result<Block, DecodeError> {
    let tag = node.tag(&BLOCKS)?;
    let node = &node.as_variant(tag);
    let (content, known): (Content, &[&str]) = match tag {
        "text" => return text(node, ItemKind::History),
        "image" => (Content::Image(image_from_source(node)?, origin(ItemKind::History)), &["source"]),
        "thinking" | "redacted_thinking" => return reasoning(node, tag),
        "tool_use" => (Content::Call(tool_call(node)?), &["id", "name", "input", "caller"]),
        "tool_result" => return tool_result(node),
        _ => return json_as_text(node, tag),
    };
    let breakpoint = cache_control(node)?;
    node.reject_unknown_fields(&[&["type", "cache_control"], known].concat())?;
    Ok(Block { breakpoint, ..Block::new(Region::Log, content) })
}

fn text(node: &Node<'_>, kind: ItemKind) -> Result<Block, DecodeError> {
    let block = text_block(node.required("text")?.text()?, kind);
    let breakpoint = cache_control(node)?;
    node.reject_unknown_fields(&["type", "text", "cache_control", "citations"])?;
    Ok(Block { breakpoint, ..block })
}

fn reasoning(node: &Node<'_>, tag: &str) -> Result<Block, DecodeError> {
    let origin = origin(ItemKind::History);
    let reasoning = if tag == "thinking" {
        let (text, signature) = (node.required("thinking")?.text()?, node.required("signature")?.text()?);
        node.reject_unknown_fields(&["type", "thinking", "signature"])?;
        Reasoning { text: Text::new(text), signature: Some(signature.into()), redacted: None, origin }
    } else {
        let data = node.required("data")?.text()?;
        node.reject_unknown_fields(&["type", "data"])?;
        Reasoning { text: Text::default(), signature: None, redacted: Some(data.into()), origin }
    };
    Ok(Block::new(Region::Log, Content::Reasoning(reasoning)))
}

fn tool_call(node: &Node<'_>) -> Result<Call, DecodeError> {
    let (id, name) = (node.required("id")?.text()?.into(), node.required("name")?.text()?.into());
    let arguments = Json::new(node.required("input")?.object()?);
    Ok(Call { id, name, arguments, origin: origin(ItemKind::History) })
}

/// A tool result. A marker on one of its parts counts for the whole block, which is what is cached.
fn tool_result(node: &Node<'_>) -> Result<Block, DecodeError> {
    let call_id = node.required("tool_use_id")?.text()?.into();
    let mut breakpoint = cache_control(node)?;
    let mut parts = Vec::new();
    match node.optional("content") {
        Some(Node { value: Value::String(text), .. }) if text.is_empty() => {}
        Some(Node { value: Value::String(text), .. }) => {
            parts.push(ResultPart::Text(segments(text, ItemKind::History)));
        }
        Some(content) => {
            for node in content.list(ExpectedType::TextOrRecords)? {
                let (part, marker) = result_part(&node)?;
                parts.push(part);
                breakpoint = breakpoint.or(marker);
            }
        }
        None => {}
    }
    let failed = node.optional("is_error").map_or(Ok(false), |flag| flag.flag())?;
    node.reject_unknown_fields(&["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    let outcome = if failed { ToolOutcome::Failed } else { ToolOutcome::Done };
    let result = ToolResult { call_id, parts, outcome, origin: origin(ItemKind::History) };
    Ok(Block { breakpoint, ..Block::new(Region::Log, Content::Result(result)) })
}

fn result_part(node: &Node<'_>) -> Result<(ResultPart, Option<CacheLifetime>), DecodeError> {
    let tag = node.tag(&PARTS)?;
    let node = &node.as_variant(tag);
    if tag == "image" {
        let (image, breakpoint) = (image_from_source(node)?, cache_control(node)?);
        node.reject_unknown_fields(&["type", "source", "cache_control"])?;
        return Ok((ResultPart::Image(image), breakpoint));
    }
    let block = if tag == "text" { text(node, ItemKind::History)? } else { json_as_text(node, tag)? };
    let Content::Text(segments) = block.content.into_content() else {
        return Err(node.invalid_value("this is no text"));
    };
    Ok((ResultPart::Text(segments), block.breakpoint))
}

fn image_from_source(node: &Node<'_>) -> Result<Image, DecodeError> {
    let source = node.required("source")?;
    let tag = source.tag(&["base64", "file", "url"])?;
    let source = source.as_variant(tag);
    match tag {
        "url" => {
            let address = source.required("url")?.text()?;
            source.reject_unknown_fields(&["type", "url"])?;
            Ok(image::from_address(address))
        }
        "file" => Err(source.invalid_value("files cannot be referred to here; send the image as base64")),
        _ => {
            let media_type = source.required("media_type")?;
            let known = image::media_type(media_type.one_of(&image::MEDIA_TYPES)?);
            let data = source.required("data")?;
            let image =
                known.zip(Some(data.text()?)).and_then(|(known, data)| image::from_base64(known, data));
            source.reject_unknown_fields(&["type", "media_type", "data"])?;
            image.ok_or_else(|| data.invalid_value("Invalid base64 data"))
        }
    }
}

/// A block type that a [`Prompt`] cannot represent becomes a text block with the block's JSON.
fn json_as_text(node: &Node<'_>, tag: &str) -> Result<Block, DecodeError> {
    if tag == "document" {
        let source = node.required("source")?;
        if !matches!(source.tag(&["base64", "content", "file", "text", "url"])?, "content" | "text") {
            return Err(source.invalid_value("only documents of plain text can be read here; send the text"));
        }
    }
    let breakpoint = cache_control(node)?;
    Ok(Block { breakpoint, ..text_block(Json::new(&without_marker(node.value)).as_str(), ItemKind::History) })
}

/// Whether citations are enabled for any block.
fn has_citations(messages: &Value) -> bool {
    let contents =
        messages.as_array().into_iter().flatten().filter_map(|message| message["content"].as_array());
    contents.flatten().any(|block| block["citations"]["enabled"] == true)
}

fn read_tools(tools: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    for node in tools.list(ExpectedType::Records)? {
        let tag = node.record()?.non_null("type").map_or(Ok("custom"), |tag| tag.text())?;
        if tag == "custom" {
            decoded.prompt.tools.push(custom_tool(&node.as_variant(tag))?);
            continue;
        }
        let is_date =
            |rest: &str| rest.starts_with('_') && rest.ends_with(|last: char| last.is_ascii_digit());
        let is_of = |name: &&str| tag.strip_prefix(*name).is_some_and(is_date);
        let Some(family) = TYPED_TOOLS.iter().position(is_of) else {
            let known = [&["custom"], &TYPED_TOOLS[..]].concat();
            return Err(node.problem(Problem::UnknownTag { tag, known: &known }));
        };
        let node = node.as_variant(tag);
        // Anthropic defines the tool; the request's JSON stands in for its description.
        let definition = Json::new(&without_marker(node.value));
        let tool =
            tool_block(node.required("name")?.text()?, definition.as_str(), None, cache_control(&node)?);
        if family < SERVER_TOOLS {
            decoded.server_tools.push(tool.tool.name.clone());
        }
        if TYPED_TOOLS[family] == "web_search" {
            let uses = node.non_null("max_uses").map_or(Ok(u32::MAX), |uses| uses.integer(1))?;
            decoded.prompt.web_search = Some(WebSearch { max_results: uses });
        }
        decoded.prompt.tools.push(tool);
    }
    Ok(())
}

fn custom_tool(node: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    let name = node.required("name")?.text()?;
    let description = node.optional("description").map_or(Ok(""), |text| text.text())?;
    let schema = node.required("input_schema")?;
    schema.object()?;
    schema.required("type")?.one_of(&["object"])?;
    let tool = tool_block(name, description, Some(schema.value), cache_control(node)?);
    let known = ["type", "name", "description", "input_schema", "cache_control", "strict", "allowed_callers"];
    node.reject_unknown_fields(
        &[&known[..], &["defer_loading", "eager_input_streaming", "input_examples"]].concat(),
    )?;
    Ok(tool)
}

fn read_thinking(node: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let tag = node.tag(&["adaptive", "between_tools", "disabled", "enabled"])?;
    let node = node.as_variant(tag);
    match tag {
        "enabled" => {
            decoded.prompt.thinking = Thinking::Budget(node.required("budget_tokens")?.integer(0)?);
            node.reject_unknown_fields(&["type", "budget_tokens", "display"])
        }
        "adaptive" => {
            decoded.prompt.thinking = Thinking::Adaptive;
            node.reject_unknown_fields(&["type", "display"])
        }
        "between_tools" => {
            decoded.prompt.thinking = Thinking::BetweenTools;
            node.reject_unknown_fields(&["type"])
        }
        _ => {
            decoded.prompt.thinking = Thinking::Disabled;
            node.reject_unknown_fields(&["type"])
        }
    }
}

fn read_tool_choice(choice: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let Prompt { tools, .. } = &decoded.prompt;
    let tag = choice.tag(&["any", "auto", "none", "tool"])?;
    let node = choice.as_variant(tag);
    if tools.is_empty() {
        return Err(choice.invalid_value("tool_choice may only be specified while providing tools."));
    }
    let flag = node.optional("disable_parallel_tool_use").map(|flag| flag.flag()).transpose()?;
    if tag == "tool" {
        let name = node.required("name")?;
        let wanted = name.text()?;
        if tools.iter().all(|block| &*block.tool.name != wanted) {
            let message = format!("Tool '{wanted}' not found in provided tools");
            return Err(name.reject(DecodeErrorKind::Unsupported, message));
        }
        node.reject_unknown_fields(&["type", "name", "disable_parallel_tool_use"])?;
    } else {
        node.reject_unknown_fields(&["type", "disable_parallel_tool_use"])?;
    }
    decoded.parallel_tools = flag.map(|off| !off);
    decoded.tool_choice = Some(Json::new(choice.value));
    Ok(())
}

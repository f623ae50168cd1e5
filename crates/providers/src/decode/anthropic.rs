//! Anthropic Messages.

use hardpan_prompt::{
    Block, Call, Content, Image, Json, Kind, Lifetime, Outcome, Place, Prompt, Reasoning, ResultPart, Role,
    Text, Thinking, ToolBlock, ToolResult, Turn, WebSearch,
};
use serde_json::Value;

use super::node::{Node, Want};
use super::{
    DecodeError, Decoded, ErrorKind, cache_control, image, origin, others, segments, text_block, tool_block,
};

/// What the request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    Answer,
    Count,
}

/// Fields of every request that are read here.
const READ: [&str; 8] =
    ["model", "messages", "system", "tools", "tool_choice", "thinking", "cache_control", "output_config"];
/// Those of a request for an answer.
const READ_FOR_ANSWER: [&str; 3] = ["max_tokens", "stream", "stop_sequences"];
/// Fields of every request that change neither prompt nor bill.
const OTHER: [&str; 3] = ["context_management", "mcp_servers", "output_format"];
/// Those of a request for an answer.
const OTHER_FOR_ANSWER: [&str; 8] =
    ["temperature", "top_p", "top_k", "metadata", "service_tier", "container", "inference_geo", "speed"];

/// Every block that may stand in a message.
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
/// Every block that may stand in a tool's answer.
const PARTS: [&str; 5] = ["document", "image", "search_result", "text", "tool_reference"];
/// Tools with a type of their own: its name without the date. The first ones run on the server.
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

/// Reads the whole body.
pub fn read(body: &Node<'_>, purpose: Purpose) -> Result<Decoded, DecodeError> {
    let body = body.record()?;
    let mut decoded = Decoded::default();
    let prompt = &mut decoded.prompt;
    prompt.model = body.need("model")?.text()?.into();
    let messages = body.need("messages")?;
    prompt.turns = messages.list(Want::Records)?.iter().map(turn).collect::<Result<_, _>>()?;
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
        read_choice(&choice, &mut decoded)?;
    }
    if let Some(config) = body.maybe("output_config") {
        let effort = config.record()?.maybe("effort").map(|effort| effort.one_of(&EFFORTS)).transpose()?;
        decoded.effort = effort.map(str::to_owned);
        config.close(&["effort", "format", "task_budget"])?;
    }
    decoded.automatic_cache = cache_control(body)?;
    decoded.citations = cites(messages.value);
    decoded.other = others(body, &OTHER);
    if purpose == Purpose::Count {
        body.close(&[&READ[..], &OTHER].concat())?;
        return Ok(decoded);
    }
    decoded.prompt.max_tokens = body.need("max_tokens")?.integer(0)?;
    decoded.stream = body.optional("stream").map_or(Ok(false), |stream| stream.flag())?;
    decoded.stop_sequences = body.optional("stop_sequences").map_or(Ok(Vec::new()), |stop| stop.texts())?;
    body.optional("temperature").map(|number| number.share(1.0)).transpose()?;
    body.optional("top_p").map(|number| number.share(1.0)).transpose()?;
    body.optional("top_k").map(|number| number.integer(0)).transpose()?;
    body.maybe("metadata").map(|metadata| metadata.object()).transpose()?;
    body.close(&[&READ[..], &READ_FOR_ANSWER, &OTHER, &OTHER_FOR_ANSWER].concat())?;
    decoded.other.extend(others(body, &OTHER_FOR_ANSWER));
    Ok(decoded)
}

fn system(node: &Node<'_>) -> Result<Vec<Block>, DecodeError> {
    if let Some(text) = node.value.as_str() {
        return Ok(string(text, Kind::System));
    }
    let block = |node: &Node<'_>| {
        node.record()?.need("type")?.one_of(&["text"])?;
        text(node, Kind::System)
    };
    node.list(Want::TextOrRecords)?.iter().map(block).collect()
}

/// A string stands for one block of text, the empty one for none.
fn string(text: &str, kind: Kind) -> Vec<Block> {
    if text.is_empty() { Vec::new() } else { vec![text_block(text, kind)] }
}

fn turn(message: &Node<'_>) -> Result<Turn, DecodeError> {
    let role = message.record()?.need("role")?;
    if role.value == "system" {
        let words = "Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, \
                     not \"system\" as an input message role.";
        let error = role.fail(ErrorKind::Unsupported, words, "");
        return Err(DecodeError { message: format!("messages: {words}"), ..error });
    }
    let role = if role.one_of(&["user", "assistant"])? == "user" { Role::User } else { Role::Assistant };
    let content = message.need("content")?;
    let blocks = match content.value.as_str() {
        Some(text) => string(text, Kind::History),
        None => content.list(Want::TextOrRecords)?.iter().map(block).collect::<Result<_, _>>()?,
    };
    message.close(&["role", "content"])?;
    Ok(Turn::new(role, blocks))
}

fn block(node: &Node<'_>) -> Result<Block, DecodeError> {
    let tag = node.tag(&BLOCKS)?;
    let node = &node.tagged(tag);
    let (content, known): (Content, &[&str]) = match tag {
        "text" => return text(node, Kind::History),
        "image" => (Content::Image(picture(node)?, origin(Kind::History)), &["source"]),
        "thinking" | "redacted_thinking" => return reasoning(node, tag),
        "tool_use" => (Content::Call(call(node)?), &["id", "name", "input", "caller"]),
        "tool_result" => return result(node),
        _ => return foreign(node, tag),
    };
    let breakpoint = cache_control(node)?;
    node.close(&[&["type", "cache_control"], known].concat())?;
    Ok(Block { breakpoint, ..Block::new(Place::Log, content) })
}

fn text(node: &Node<'_>, kind: Kind) -> Result<Block, DecodeError> {
    let block = text_block(node.need("text")?.text()?, kind);
    let breakpoint = cache_control(node)?;
    node.close(&["type", "text", "cache_control", "citations"])?;
    Ok(Block { breakpoint, ..block })
}

fn reasoning(node: &Node<'_>, tag: &str) -> Result<Block, DecodeError> {
    let origin = origin(Kind::History);
    let reasoning = if tag == "thinking" {
        let (text, signature) = (node.need("thinking")?.text()?, node.need("signature")?.text()?);
        node.close(&["type", "thinking", "signature"])?;
        Reasoning { text: Text::new(text), signature: Some(signature.into()), redacted: None, origin }
    } else {
        let data = node.need("data")?.text()?;
        node.close(&["type", "data"])?;
        Reasoning { text: Text::default(), signature: None, redacted: Some(data.into()), origin }
    };
    Ok(Block::new(Place::Log, Content::Reasoning(reasoning)))
}

fn call(node: &Node<'_>) -> Result<Call, DecodeError> {
    let (id, name) = (node.need("id")?.text()?.into(), node.need("name")?.text()?.into());
    let arguments = Json::new(node.need("input")?.object()?);
    Ok(Call { id, name, arguments, origin: origin(Kind::History) })
}

/// A tool's answer. A marker within it counts for the whole: the block is what is cached.
fn result(node: &Node<'_>) -> Result<Block, DecodeError> {
    let call_id = node.need("tool_use_id")?.text()?.into();
    let mut breakpoint = cache_control(node)?;
    let mut parts = Vec::new();
    match node.optional("content") {
        Some(Node { value: Value::String(text), .. }) if text.is_empty() => {}
        Some(Node { value: Value::String(text), .. }) => {
            parts.push(ResultPart::Text(segments(text, Kind::History)));
        }
        Some(content) => {
            for node in content.list(Want::TextOrRecords)? {
                let (part, marker) = part(&node)?;
                parts.push(part);
                breakpoint = breakpoint.or(marker);
            }
        }
        None => {}
    }
    let failed = node.optional("is_error").map_or(Ok(false), |flag| flag.flag())?;
    node.close(&["type", "tool_use_id", "content", "is_error", "cache_control"])?;
    let outcome = if failed { Outcome::Failed } else { Outcome::Done };
    let result = ToolResult { call_id, parts, outcome, origin: origin(Kind::History) };
    Ok(Block { breakpoint, ..Block::new(Place::Log, Content::Result(result)) })
}

fn part(node: &Node<'_>) -> Result<(ResultPart, Option<Lifetime>), DecodeError> {
    let tag = node.tag(&PARTS)?;
    let node = &node.tagged(tag);
    if tag == "image" {
        let (image, breakpoint) = (picture(node)?, cache_control(node)?);
        node.close(&["type", "source", "cache_control"])?;
        return Ok((ResultPart::Image(image), breakpoint));
    }
    let block = if tag == "text" { text(node, Kind::History)? } else { foreign(node, tag)? };
    let Content::Text(segments) = block.content.into_content() else {
        return Err(node.refuse("this is no text"));
    };
    Ok((ResultPart::Text(segments), block.breakpoint))
}

fn picture(node: &Node<'_>) -> Result<Image, DecodeError> {
    let source = node.need("source")?;
    let tag = source.tag(&["base64", "file", "url"])?;
    let source = source.tagged(tag);
    match tag {
        "url" => {
            let address = source.need("url")?.text()?;
            source.close(&["type", "url"])?;
            Ok(image::from_address(address))
        }
        "file" => Err(source.refuse("files cannot be referred to here; send the image as base64")),
        _ => {
            let media_type = source.need("media_type")?;
            let known = image::media_type(media_type.one_of(&image::MEDIA_TYPES)?);
            let data = source.need("data")?;
            let image =
                known.zip(Some(data.text()?)).and_then(|(known, data)| image::from_base64(known, data));
            source.close(&["type", "media_type", "data"])?;
            image.ok_or_else(|| data.refuse("Invalid base64 data"))
        }
    }
}

/// A block that a prompt has no form for: its JSON stands for it as text.
fn foreign(node: &Node<'_>, tag: &str) -> Result<Block, DecodeError> {
    if tag == "document" {
        let source = node.need("source")?;
        if !matches!(source.tag(&["base64", "content", "file", "text", "url"])?, "content" | "text") {
            return Err(source.refuse("only documents of plain text can be read here; send the text"));
        }
    }
    let breakpoint = cache_control(node)?;
    Ok(Block { breakpoint, ..text_block(Json::new(&unmarked(node.value)).as_str(), Kind::History) })
}

/// A value without its marker: one that moves changes nothing else.
fn unmarked(value: &Value) -> Value {
    let mut value = value.clone();
    value.as_object_mut().map(|object| object.shift_remove("cache_control"));
    value
}

/// Whether citations are switched on for any block.
fn cites(messages: &Value) -> bool {
    let contents =
        messages.as_array().into_iter().flatten().filter_map(|message| message["content"].as_array());
    contents.flatten().any(|block| block["citations"]["enabled"] == true)
}

fn read_tools(tools: &Node<'_>, decoded: &mut Decoded) -> Result<(), DecodeError> {
    for node in tools.list(Want::Records)? {
        let tag = node.record()?.maybe("type").map_or(Ok("custom"), |tag| tag.text())?;
        if tag == "custom" {
            decoded.prompt.tools.push(custom_tool(&node.tagged(tag))?);
            continue;
        }
        let is_date =
            |rest: &str| rest.starts_with('_') && rest.ends_with(|last: char| last.is_ascii_digit());
        let is_of = |name: &&str| tag.strip_prefix(*name).is_some_and(is_date);
        let Some(family) = TYPED_TOOLS.iter().position(is_of) else {
            return Err(node.unknown_tag(tag, &[&["custom"], &TYPED_TOOLS[..]].concat()));
        };
        let node = node.tagged(tag);
        // The definition is Anthropic's own; what the request says of it stands for it.
        let definition = Json::new(&unmarked(node.value));
        let tool = tool_block(node.need("name")?.text()?, definition.as_str(), None, cache_control(&node)?);
        if family < SERVER_TOOLS {
            decoded.server_tools.push(tool.tool.name.clone());
        }
        if TYPED_TOOLS[family] == "web_search" {
            let uses = node.maybe("max_uses").map_or(Ok(u32::MAX), |uses| uses.integer(1))?;
            decoded.prompt.web_search = Some(WebSearch { max_results: uses });
        }
        decoded.prompt.tools.push(tool);
    }
    Ok(())
}

fn custom_tool(node: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    let name = node.need("name")?.text()?;
    let description = node.optional("description").map_or(Ok(""), |text| text.text())?;
    let schema = node.need("input_schema")?;
    schema.object()?;
    schema.need("type")?.one_of(&["object"])?;
    let tool = tool_block(name, description, Some(schema.value), cache_control(node)?);
    let known = ["type", "name", "description", "input_schema", "cache_control", "strict", "allowed_callers"];
    node.close(&[&known[..], &["defer_loading", "eager_input_streaming", "input_examples"]].concat())?;
    Ok(tool)
}

fn read_thinking(node: &Node<'_>, decoded: &mut Decoded) -> Result<(), DecodeError> {
    let tag = node.tag(&["adaptive", "disabled", "enabled"])?;
    let node = node.tagged(tag);
    match tag {
        "enabled" => {
            decoded.prompt.thinking = Thinking::Budget(node.need("budget_tokens")?.integer(0)?);
            node.close(&["type", "budget_tokens", "display"])
        }
        "adaptive" => {
            decoded.adaptive_thinking = true;
            node.close(&["type", "display"])
        }
        _ => node.close(&["type"]),
    }
}

fn read_choice(choice: &Node<'_>, decoded: &mut Decoded) -> Result<(), DecodeError> {
    let Prompt { tools, .. } = &decoded.prompt;
    let tag = choice.tag(&["any", "auto", "none", "tool"])?;
    let node = choice.tagged(tag);
    if tools.is_empty() {
        return Err(choice.refuse("tool_choice may only be specified while providing tools."));
    }
    let flag = node.optional("disable_parallel_tool_use").map(|flag| flag.flag()).transpose()?;
    if tag == "tool" {
        let name = node.need("name")?;
        let wanted = name.text()?;
        if tools.iter().all(|block| &*block.tool.name != wanted) {
            let message = format!("Tool '{wanted}' not found in provided tools");
            return Err(DecodeError { message, ..name.refuse("") });
        }
        node.close(&["type", "name", "disable_parallel_tool_use"])?;
    } else {
        node.close(&["type", "disable_parallel_tool_use"])?;
    }
    decoded.parallel_tools = flag.map(|off| !off);
    decoded.tool_choice = Some(Json::new(choice.value));
    Ok(())
}

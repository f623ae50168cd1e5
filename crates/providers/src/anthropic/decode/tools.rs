//! Declared tools, and which of them the model may call.

use hardpan_prompt::{Json, ToolBlock, WebSearch};

use crate::anthropic::known_fields;
use crate::decode::node::{ExpectedType, Node, Problem};
use crate::decode::{
    DecodeError, DecodeErrorKind, DecodedRequest, cache_control, tool_block, without_marker,
};

/// Anthropic's own tools: the type without its date suffix. The first [`SERVER_TOOLS`] run on the
/// server.
const TYPED_TOOLS: [&str; 9] = [
    "code_execution",
    "tool_search_tool_bm25",
    "tool_search_tool_regex",
    "web_fetch",
    "web_search",
    "bash",
    "computer",
    "memory",
    "text_editor",
];
const SERVER_TOOLS: usize = 5;
/// The most tools that may be outside of the prompt.
const MAX_DEFERRED_TOOLS: usize = 10_000;

pub fn read_tools(tools: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    for node in tools.list(ExpectedType::Records)? {
        let tag = node.record()?.non_null("type").map_or(Ok("custom"), |tag| tag.text())?;
        if tag == "custom" {
            let node = node.as_variant(tag);
            let tool = custom_tool(&node)?;
            if node.non_null("defer_loading").map_or(Ok(false), |flag| flag.flag())? {
                decoded.anthropic.deferred_tools.insert(tool.tool.name.clone(), tool.tool);
            } else {
                decoded.prompt.tools.push(tool);
            }
            continue;
        }
        let is_date =
            |rest: &str| rest.starts_with('_') && rest.ends_with(|last: char| last.is_ascii_digit());
        let is_of = |name: &&str| tag == *name || tag.strip_prefix(*name).is_some_and(is_date);
        let Some(family) = TYPED_TOOLS.iter().position(is_of) else {
            let known = [&["custom"], &TYPED_TOOLS[..]].concat();
            return Err(node.problem(Problem::UnknownTag { tag, known: &known }));
        };
        let node = node.as_variant(tag);
        let tool = typed_tool(&node)?;
        decoded.anthropic.typed_tools.insert(tool.tool.name.clone());
        if family < SERVER_TOOLS {
            decoded.server_tools.push(tool.tool.name.clone());
        }
        if TYPED_TOOLS[family] == "web_search" {
            let uses = node.non_null("max_uses").map_or(Ok(u32::MAX), |uses| uses.integer(1))?;
            decoded.prompt.web_search = Some(WebSearch { max_results: uses });
        }
        decoded.prompt.tools.push(tool);
    }
    decoded.anthropic.declared_tools =
        decoded.prompt.tools.iter().map(|block| block.tool.name.clone()).collect();
    let deferred = decoded.anthropic.deferred_tools.len();
    if deferred > 0 && decoded.prompt.tools.is_empty() {
        let message = "At least one tool must have defer_loading=false. Every tool is deferred, so that the \
                       model could call none.";
        return Err(tools.reject(DecodeErrorKind::Unsupported, message));
    }
    if deferred > MAX_DEFERRED_TOOLS {
        return Err(tools.invalid_value("at most 10000 tools may be deferred"));
    }
    Ok(())
}

/// Anthropic defines the tool; the request's JSON stands in for its description.
fn typed_tool(node: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    let definition = Json::new(&without_marker(node.value));
    Ok(tool_block(node.required("name")?.text()?, definition.as_str(), None, cache_control(node)?))
}

/// The tool that a system message defines.
pub fn inline_tool(node: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    match node.record()?.non_null("type").map_or(Ok("custom"), |tag| tag.text())? {
        "custom" => custom_tool(node),
        _ => typed_tool(node),
    }
}

fn custom_tool(node: &Node<'_>) -> Result<ToolBlock, DecodeError> {
    let name = node.required("name")?.text()?;
    let description = node.optional("description").map_or(Ok(""), |text| text.text())?;
    let schema = node.required("input_schema")?;
    schema.object()?;
    schema.required("type")?.one_of(&["object"])?;
    let tool = tool_block(name, description, Some(schema.value), cache_control(node)?);
    node.reject_unknown_fields(known_fields::TOOL)?;
    Ok(tool)
}

pub fn read_tool_choice(choice: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let tag = choice.tag(&["any", "auto", "none", "tool"])?;
    let node = choice.as_variant(tag);
    if decoded.prompt.tools.is_empty() {
        return Err(choice.invalid_value("tool_choice may only be specified while providing tools."));
    }
    let flag = node.optional("disable_parallel_tool_use").map(|flag| flag.flag()).transpose()?;
    if tag == "tool" {
        let name = node.required("name")?;
        let wanted = name.text()?;
        if !decoded.has_tool(wanted) {
            let message = format!("Tool '{wanted}' not found in provided tools");
            return Err(name.reject(DecodeErrorKind::Unsupported, message));
        }
        node.reject_unknown_fields(known_fields::TOOL_CHOICE_TOOL)?;
    } else if tag == "none" {
        node.reject_unknown_fields(known_fields::TOOL_CHOICE_NONE)?;
    } else {
        node.reject_unknown_fields(known_fields::TOOL_CHOICE)?;
    }
    decoded.parallel_tools = flag.map(|off| !off);
    decoded.tool_choice = Some(Json::new(choice.value));
    Ok(())
}

//! Parses `tools` and `tool_choice`.

use hardpan_prompt::{Json, WebSearch};
use serde_json::Value;

use super::{limited_text, schema, text_up_to};
use crate::decode::node::{ExpectedType, Node};
use crate::decode::{DecodeError, DecodeErrorKind, DecodedRequest, tool_block};
use crate::openai_responses::known_fields;

/// Tools that the server runs itself, and the search for deferred tools.
const HOSTED: [&str; 14] = [
    "tool_search",
    "web_search",
    "web_search_preview",
    "file_search",
    "code_interpreter",
    "image_generation",
    "computer",
    "computer_use_preview",
    "mcp",
    "shell",
    "local_shell",
    "apply_patch",
    "programmatic_tool_calling",
    "web_search_2025_08_26",
];

/// Reads the declared tools.
pub fn read_tools(tools: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let tools = tools.list(ExpectedType::Records)?;
    let is_deferred = |tool: &Node<'_>| tool.value.get("defer_loading") == Some(&Value::Bool(true));
    let searches = |tool: &Node<'_>| tool.value.get("type").is_some_and(|kind| kind == "tool_search");
    if let Some(tool) = tools.iter().find(|tool| is_deferred(tool)).filter(|_| !tools.iter().any(searches)) {
        let message = "Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.";
        let error = tool.reject(DecodeErrorKind::Unsupported, message);
        return Err(DecodeError { param: Some("tools.defer_loading".into()), ..error });
    }
    tools.iter().try_for_each(|tool| read_tool(tool, decoded))
}

fn read_tool(tool: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let known: Vec<&str> = ["function", "custom", "namespace"].into_iter().chain(HOSTED).collect();
    match tool.tag(&known)? {
        "function" => read_function(tool, decoded),
        "custom" => read_custom(tool, decoded),
        "namespace" => {
            text_up_to(&tool.required("name")?, 64)?;
            tool.non_null("description").map(|text| text.text()).transpose()?;
            tool.reject_unknown_fields(known_fields::NAMESPACE)?;
            for tool in tool.required("tools")?.list(ExpectedType::Records)? {
                match tool.tag(&["function", "custom"])? {
                    "function" => read_function(&tool, decoded)?,
                    _ => read_custom(&tool, decoded)?,
                }
            }
            Ok(())
        }
        hosted => {
            if hosted.starts_with("web_search") {
                decoded.prompt.web_search = Some(WebSearch { max_results: u32::MAX });
            }
            decoded.server_tools.push(hosted.into());
            Ok(())
        }
    }
}

fn read_function(tool: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let name = text_up_to(&tool.required("name")?, 64)?;
    let description = tool.non_null("description").map_or(Ok(""), |text| limited_text(&text))?;
    let parameters = tool.non_null("parameters");
    parameters.as_ref().map(Node::object).transpose()?;
    let strict = tool.non_null("strict").map_or(Ok(false), |strict| strict.flag())?;
    tool.non_null("async").map(|flag| flag.flag()).transpose()?;
    tool.reject_unknown_fields(known_fields::FUNCTION)?;
    if let (true, Some(parameters)) = (strict, &parameters) {
        schema::check_strict(parameters, &format!("function '{name}'"), "invalid_function_parameters")?;
    }
    declare(name, description, parameters.map(|parameters| parameters.value), decoded);
    Ok(())
}

fn read_custom(tool: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    let name = text_up_to(&tool.required("name")?, 64)?;
    let description = tool.non_null("description").map_or(Ok(""), |text| limited_text(&text))?;
    tool.reject_unknown_fields(known_fields::CUSTOM)?;
    if let Some(format) = tool.non_null("format") {
        if format.tag(&["text", "grammar"])? == "grammar" {
            format.required("syntax")?.one_of(&["lark", "regex"])?;
            format.required("definition")?.text()?;
        }
        format.reject_unknown_fields(known_fields::GRAMMAR)?;
    }
    // What the model sees of it: a text, in the place of arguments.
    let schema = serde_json::json!({"type": "object", "properties": {"input": {"type": "string"}}});
    declare(name, description, Some(&schema), decoded);
    Ok(())
}

/// Adds a tool to the prompt. Namespaces may have tools of the same name; one stands for all.
fn declare(name: &str, description: &str, parameters: Option<&Value>, decoded: &mut DecodedRequest) {
    let tools = &mut decoded.prompt.tools;
    if tools.iter().all(|known| &*known.tool.name != name) {
        tools.push(tool_block(name, description, parameters, None));
    }
}

/// Reads `tool_choice` and `parallel_tool_calls`.
pub fn read_tool_choice(body: &Node<'_>, decoded: &mut DecodedRequest) -> Result<(), DecodeError> {
    decoded.parallel_tools = body.non_null("parallel_tool_calls").map(|flag| flag.flag()).transpose()?;
    let Some(choice) = body.non_null("tool_choice") else { return Ok(()) };
    if choice.value.is_string() {
        choice.one_of(&["none", "auto", "required"])?;
    } else {
        let kinds: Vec<&str> = ["function", "custom", "allowed_tools"].into_iter().chain(HOSTED).collect();
        let kind = choice.tag(&kinds)?;
        choice.reject_unknown_fields(known_fields::TOOL_CHOICE)?;
        let declared = |name: &str| decoded.prompt.tools.iter().any(|tool| &*tool.tool.name == name);
        let missing = match kind {
            "function" | "custom" => {
                let name = choice.required("name")?.text()?;
                (!declared(name)).then_some(name)
            }
            "allowed_tools" => {
                choice.required("mode")?.one_of(&["auto", "required"])?;
                let tools = choice.required("tools")?.list(ExpectedType::Records)?;
                let names = tools.iter().filter_map(|tool| tool.value.get("name")?.as_str());
                names.into_iter().find(|name| !declared(name))
            }
            hosted => (!decoded.server_tools.iter().any(|tool| &**tool == hosted)).then_some(hosted),
        };
        if let Some(name) = missing {
            let message = format!("Tool choice '{name}' not found in 'tools' parameter.");
            return Err(choice.reject(DecodeErrorKind::Unsupported, message));
        }
    }
    decoded.tool_choice = Some(Json::new(choice.value));
    Ok(())
}

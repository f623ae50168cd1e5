//! What OpenAI's servers refuse in the tools of a request, on both of their paths.

use hardpan_models::Protocol;
use hardpan_prompt::ToolBlock;
use serde_json::Value;

use crate::error_reply::ErrorReply;

/// Keywords whose value is a schema.
const SCHEMAS: [&str; 8] =
    ["items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"];

/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// Keywords whose value names schemas.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Checks how many tools there are, and the schema of each, which is in this field of it: one that is
/// refused costs the whole request.
pub fn check_tools(tools: &[ToolBlock], field: &str) -> Result<(), ErrorReply> {
    if let Some(max) = Protocol::Openai.traits().max_tools.filter(|max| tools.len() > *max) {
        let message = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {max}, but got an array with length {} instead.",
            tools.len()
        );
        return Err(ErrorReply::invalid(message).with_param("tools").with_code("array_above_max_length"));
    }
    for (index, block) in tools.iter().enumerate() {
        if let Some(place) = array_without_items(&block.tool.parameters.value(), &mut Vec::new()) {
            let message = format!(
                "Invalid schema for function '{}': In context=({place}), array schema missing items.",
                block.tool.name
            );
            return Err(ErrorReply::invalid(message)
                .with_param(format!("tools[{index}].{field}"))
                .with_code("invalid_function_parameters"));
        }
    }
    Ok(())
}

/// Where a schema allows a list and does not say of what, in the words of the server.
fn array_without_items(schema: &Value, place: &mut Vec<String>) -> Option<String> {
    let kind = &schema["type"];
    let is_array =
        kind == "array" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"));
    if is_array && !schema["items"].is_object() && !schema["items"].is_boolean() {
        let comma = if place.len() == 1 { "," } else { "" };
        return Some(place.join(", ") + comma);
    }
    let mut look = |step: Vec<String>, inner: &Value| {
        let length = place.len();
        place.extend(step);
        let found = array_without_items(inner, place);
        place.truncate(length);
        found
    };
    let quoted = |name: &str| format!("'{name}'");
    for (keyword, value) in schema.as_object().into_iter().flatten() {
        let found = match keyword.as_str() {
            name if SCHEMAS.contains(&name) => look(vec![quoted(name)], value),
            name if LISTS.contains(&name) => {
                let listed = value.as_array().into_iter().flatten().enumerate();
                listed
                    .into_iter()
                    .find_map(|(at, inner)| look(vec![quoted(name), quoted(&at.to_string())], inner))
            }
            name if NAMED.contains(&name) => {
                let named = value.as_object().into_iter().flatten();
                named.into_iter().find_map(|(key, inner)| look(vec![quoted(name), quoted(key)], inner))
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

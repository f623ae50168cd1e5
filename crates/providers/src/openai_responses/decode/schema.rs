//! Strict schemas: what the server requires of them.

use serde_json::Value;

use crate::decode::node::Node;
use crate::decode::{DecodeError, DecodeErrorKind};

/// Checks a schema that is to be followed strictly: every object lists its properties, requires all
/// of them, and allows no others. `owner` names the function or the format.
pub fn check_strict(schema: &Node<'_>, owner: &str, code: &'static str) -> Result<(), DecodeError> {
    let refuse = |problem: String| {
        let message = format!("Invalid schema for {owner}: {problem}");
        Err(schema.reject(DecodeErrorKind::Unsupported, message).with_code(code))
    };
    if schema.value.get("type").is_none_or(|kind| kind != "object") {
        let kind = schema.value.get("type").and_then(Value::as_str).unwrap_or("None");
        return refuse(format!(
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
        ));
    }
    find_problem(schema.value, &mut Vec::new()).map_or(Ok(()), refuse)
}

/// The first thing that is wrong with a schema. `context`: the keys on the way to it.
fn find_problem(schema: &Value, context: &mut Vec<String>) -> Option<String> {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let place = place(context);
        if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Some(format!(
                "In context={place}, 'additionalProperties' is required to be supplied and to be false."
            ));
        }
        let required: Vec<&Value> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
        let is_required = |key: &&String| required.iter().any(|known| *known == key.as_str());
        if let Some(missing) = properties.keys().find(|key| !is_required(key)) {
            return Some(format!(
                "In context={place}, 'required' is required to be supplied and to be an array including every key in properties. Missing '{missing}'."
            ));
        }
    }
    let mut inner = |key: &str, value: &Value| {
        context.push(key.to_owned());
        let problem = match value {
            Value::Object(_) if matches!(key, "properties" | "$defs" | "definitions") => {
                let members = value.as_object().into_iter().flatten();
                let mut members = members.map(|(name, schema)| {
                    context.push(name.clone());
                    let problem = find_problem(schema, context);
                    context.pop();
                    problem
                });
                members.find_map(|problem| problem)
            }
            Value::Object(_) => find_problem(value, context),
            Value::Array(list) => {
                let mut list = list.iter().enumerate().map(|(index, schema)| {
                    context.push(index.to_string());
                    let problem = find_problem(schema, context);
                    context.pop();
                    problem
                });
                list.find_map(|problem| problem)
            }
            _ => None,
        };
        context.pop();
        problem
    };
    ["properties", "items", "anyOf", "$defs", "definitions"]
        .into_iter()
        .find_map(|key| schema.get(key).and_then(|value| inner(key, value)))
}

/// A place as Python writes a tuple: `()`, `('properties', 'a')`.
fn place(context: &[String]) -> String {
    let keys: Vec<String> = context.iter().map(|key| format!("'{key}'")).collect();
    match &keys[..] {
        [only] => format!("({only},)"),
        keys => format!("({})", keys.join(", ")),
    }
}

//! [`check_arguments`]: whether arguments fit the schema of a tool, as far as its common words say.
//!
//! A word of JSON Schema that is not known here refuses nothing: the server decides about it.

use serde_json::{Map, Value};
use thiserror::Error;

/// How deep arguments are compared.
const MAX_DEPTH: usize = 24;

/// Why arguments do not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArgumentProblem {
    /// The schema requires an argument that is not there.
    #[error("{path} is missing")]
    Missing {
        /// Where it is expected, such as `filter.state`.
        path: String,
    },
    /// The schema knows no such argument and allows no others.
    #[error("{path} is unknown")]
    Unknown {
        /// Where it is.
        path: String,
    },
    /// A value is of another type.
    #[error("{path} must be {expected}")]
    WrongType {
        /// Where it is.
        path: String,
        /// What the schema allows.
        expected: String,
    },
    /// A value is not among those that the schema lists.
    #[error("{path} must be one of {allowed}")]
    NotListed {
        /// Where it is.
        path: String,
        /// The values, as JSON.
        allowed: String,
    },
}

/// Checks the arguments of a call against the schema of its tool.
pub fn check_arguments(schema: &Value, arguments: &Map<String, Value>) -> Result<(), ArgumentProblem> {
    check_object(schema, arguments, "", 0)
}

/// The arguments without what is null, not required, and not allowed to be null: models write null for an
/// argument that they leave out.
pub fn without_nulls(schema: &Value, mut arguments: Map<String, Value>) -> Map<String, Value> {
    let required = |name: &str| list(schema, "required").iter().any(|other| other.as_str() == Some(name));
    let takes_null = |name: &str| check(&schema["properties"][name], &Value::Null, name, 0).is_ok();
    arguments.retain(|name, value| !value.is_null() || required(name) || takes_null(name));
    arguments
}

fn list<'a>(schema: &'a Value, word: &str) -> &'a [Value] {
    schema[word].as_array().map_or(&[], Vec::as_slice)
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn check_object(
    schema: &Value,
    object: &Map<String, Value>,
    path: &str,
    depth: usize,
) -> Result<(), ArgumentProblem> {
    for required in list(schema, "required").iter().filter_map(Value::as_str) {
        if !object.contains_key(required) {
            return Err(ArgumentProblem::Missing { path: below(path, required) });
        }
    }
    let is_closed =
        schema["additionalProperties"] == Value::Bool(false) && schema["patternProperties"].is_null();
    for (name, value) in object {
        match schema["properties"].get(name) {
            Some(property) => check(property, value, &below(path, name), depth + 1)?,
            None if is_closed => return Err(ArgumentProblem::Unknown { path: below(path, name) }),
            None => {}
        }
    }
    Ok(())
}

fn check(schema: &Value, value: &Value, path: &str, depth: usize) -> Result<(), ArgumentProblem> {
    if depth > MAX_DEPTH || !schema.is_object() {
        return Ok(());
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| is_of_type(value, name)) {
        return Err(ArgumentProblem::WrongType { path: path.to_owned(), expected: types.join(" or ") });
    }
    let allowed = list(schema, "enum");
    if !allowed.is_empty() && !allowed.contains(value) {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return Err(ArgumentProblem::NotListed { path: path.to_owned(), allowed: allowed.join(", ") });
    }
    for word in ["anyOf", "oneOf"] {
        let mut problem = None;
        let mut alternatives = list(schema, word).iter();
        let fits = alternatives.any(|alternative| match check(alternative, value, path, depth + 1) {
            Ok(()) => true,
            Err(found) => {
                problem.get_or_insert(found);
                false
            }
        });
        if let Some(problem) = problem.filter(|_| !fits) {
            return Err(problem);
        }
    }
    match value {
        Value::Object(object) => check_object(schema, object, path, depth),
        Value::Array(values) => values.iter().enumerate().try_for_each(|(index, value)| {
            check(&schema["items"], value, &format!("{path}[{index}]"), depth + 1)
        }),
        _ => Ok(()),
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problem(arguments: Value) -> Option<String> {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "count": {"type": ["integer", "null"]},
                "state": {"enum": ["open", "closed"]},
                "labels": {"type": "array", "items": {"type": "string"}},
                "filter": {"type": "object", "properties": {"by": {"type": "string"}}, "required": ["by"]},
                "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "free": {}
            },
            "required": ["title"],
            "additionalProperties": false
        });
        let Value::Object(arguments) = arguments else { panic!("an object") };
        check_arguments(&schema, &arguments).err().map(|problem| problem.to_string())
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        for (arguments, expected) in [
            (json!({}), "title is missing"),
            (json!({"title": 5}), "title must be string"),
            (json!({"title": "a", "count": 1.5}), "count must be integer or null"),
            (json!({"title": "a", "state": "new"}), "state must be one of \"open\", \"closed\""),
            (json!({"title": "a", "labels": ["b", 1]}), "labels[1] must be string"),
            (json!({"title": "a", "filter": {}}), "filter.by is missing"),
            (json!({"title": "a", "id": true}), "id must be string"),
            (json!({"title": "a", "more": 1}), "more is unknown"),
        ] {
            assert_eq!(problem(arguments).as_deref(), Some(expected));
        }
        let fitting = json!({"title": "a", "count": 2.0, "state": "open", "labels": [], "filter": {"by": "x"},
            "id": 7, "free": [1, {"a": null}]});
        assert_eq!(problem(fitting), None);
    }

    #[test]
    fn a_schema_that_is_none_refuses_nothing() {
        let Value::Object(arguments) = json!({"a": [{"b": 1}]}) else { panic!("an object") };
        for schema in
            [json!(true), json!({}), json!({"type": 7, "properties": 5, "required": "a", "enum": {}})]
        {
            assert_eq!(check_arguments(&schema, &arguments), Ok(()), "{schema}");
        }
    }

    #[test]
    fn nulls_that_stand_for_nothing_go() {
        let schema = json!({"properties": {
            "a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"type": "string"}
        }, "required": ["c"]});
        let Value::Object(arguments) = json!({"a": null, "b": null, "c": null, "d": 1}) else { panic!() };
        let kept = without_nulls(&schema, arguments);
        assert_eq!(Value::Object(kept), json!({"b": null, "c": null, "d": 1}));
    }
}

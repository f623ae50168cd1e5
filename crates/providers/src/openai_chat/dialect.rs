//! The words in which OpenAI's server rejects a body.

use crate::decode::node::{Bound, DecodeDialect, ExpectedType, Node, Problem, join_quoted, type_name};

#[derive(Debug)]
pub struct OpenaiDialect;

impl DecodeDialect for OpenaiDialect {
    fn invalid_json(&self, _body: &[u8], error: &serde_json::Error) -> String {
        format!("We could not parse the JSON body of your request. ({error})")
    }

    fn message(&self, node: &Node<'_>, problem: Problem<'_>) -> String {
        let (param, value) = (node.param(), node.value);
        match problem {
            Problem::Missing | Problem::NoTag => format!("Missing required parameter: '{param}'."),
            Problem::WrongType(expected) => {
                let (expected, actual) = (expected_type(expected), type_name(value));
                format!("Invalid type for '{param}': expected {expected}, but got {actual} instead.")
            }
            Problem::OutOfRange { bound, limit, number } => {
                let number = if matches!(number, ExpectedType::Integer) { "integer" } else { "decimal" };
                let (place, sign) = match bound {
                    Bound::AtLeast => ("below minimum", ">="),
                    Bound::AtMost => ("above maximum", "<="),
                };
                format!(
                    "Invalid '{param}': {number} {place} value. Expected a value {sign} {limit}, but got {value} instead."
                )
            }
            Problem::NotOneOf(words) | Problem::UnknownTag { tag: _, known: words } => {
                let last = if words.len() > 2 { ", and " } else { " and " };
                let (word, words) = (value.as_str().unwrap_or_default(), join_quoted(words, last));
                format!("Invalid value: '{word}'. Supported values are: {words}.")
            }
            Problem::UnknownField => format!("Unknown parameter: '{param}'."),
            Problem::Unacceptable(words) => format!("Invalid value for '{param}': {words}"),
        }
    }

    fn code(&self, problem: Problem<'_>) -> Option<&'static str> {
        Some(match problem {
            Problem::Missing | Problem::NoTag => "missing_required_parameter",
            Problem::WrongType(_) => "invalid_type",
            Problem::OutOfRange { bound, number, .. } => match (number, bound) {
                (ExpectedType::Integer, Bound::AtLeast) => "integer_below_min_value",
                (ExpectedType::Integer, Bound::AtMost) => "integer_above_max_value",
                (_, Bound::AtLeast) => "decimal_below_min_value",
                (_, Bound::AtMost) => "decimal_above_max_value",
            },
            Problem::UnknownField => "unknown_parameter",
            Problem::NotOneOf(_) | Problem::UnknownTag { .. } | Problem::Unacceptable(_) => "invalid_value",
        })
    }
}

fn expected_type(expected: ExpectedType) -> &'static str {
    match expected {
        ExpectedType::Text => "a string",
        ExpectedType::Integer => "an integer",
        ExpectedType::Number => "a decimal",
        ExpectedType::Flag => "a boolean",
        ExpectedType::Texts => "an array of strings",
        ExpectedType::Records => "an array of objects",
        ExpectedType::TextOrRecords => "one of a string or array of objects",
        ExpectedType::Record | ExpectedType::Object => "an object",
    }
}

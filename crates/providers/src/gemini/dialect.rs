//! The words in which Gemini's server rejects a body.

use crate::decode::node::{Bound, DecodeDialect, ExpectedType, Node, Problem};

#[derive(Debug)]
pub struct GeminiDialect;

impl DecodeDialect for GeminiDialect {
    fn invalid_json(&self, _body: &[u8], error: &serde_json::Error) -> String {
        format!("Invalid JSON payload received. {error}")
    }

    fn message(&self, node: &Node<'_>, problem: Problem<'_>) -> String {
        let (path, value) = (snake_case(&node.param()), node.value);
        match problem {
            Problem::Missing | Problem::NoTag => {
                let field = path.rsplit('.').next().unwrap_or_default();
                format!("* GenerateContentRequest.{path}: {field} is not specified\n")
            }
            Problem::WrongType(expected) => {
                format!("Invalid value at '{path}' ({}), {value}", expected_type(expected))
            }
            Problem::OutOfRange { bound, limit, number: _ } => {
                let sign = if bound == Bound::AtLeast { "greater than or equal to" } else { "at most" };
                format!("* GenerateContentRequest.{path}: {value} must be {sign} {limit}\n")
            }
            Problem::NotOneOf(_) => format!("Invalid value at '{path}' (TYPE_ENUM), {value}"),
            Problem::UnknownTag { tag, .. } => format!("Invalid value at '{path}' (oneof), \"{tag}\""),
            Problem::UnknownField => {
                let param = node.param();
                let name = param.rsplit('.').next().unwrap_or_default();
                let parent = path.rsplit_once('.').map(|(parent, _)| format!(" at '{parent}'"));
                let place = parent.unwrap_or_default();
                format!("Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field.")
            }
            Problem::Unacceptable(words) => format!("* GenerateContentRequest.{path}: {words}\n"),
        }
    }

    fn accepts_whole_floats(&self) -> bool {
        true
    }
}

/// `systemInstruction.parts[0]` as `system_instruction.parts[0]`: the server names fields so.
fn snake_case(path: &str) -> String {
    let mut snake = String::with_capacity(path.len() + 4);
    for letter in path.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn expected_type(expected: ExpectedType) -> &'static str {
    match expected {
        ExpectedType::Text | ExpectedType::Texts => "TYPE_STRING",
        ExpectedType::Integer => "TYPE_INT32",
        ExpectedType::Number => "TYPE_FLOAT",
        ExpectedType::Flag => "TYPE_BOOL",
        ExpectedType::Records | ExpectedType::TextOrRecords | ExpectedType::Record | ExpectedType::Object => {
            "TYPE_MESSAGE"
        }
    }
}

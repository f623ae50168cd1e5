//! The words in which Anthropic's server rejects a body.

use crate::decode::DecodeError;
use crate::decode::node::{Bound, DecodeDialect, ExpectedType, Node, Problem, join_quoted};

#[derive(Debug)]
pub struct AnthropicDialect;

impl DecodeDialect for AnthropicDialect {
    fn invalid_json(&self, body: &[u8], error: &serde_json::Error) -> String {
        let all = error.to_string();
        let reason = all.split(" at line ").next().unwrap_or_default();
        let (line, column) = (error.line(), error.column());
        let lines_before = body.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1));
        let before: usize = lines_before.map(<[u8]>::len).sum();
        let char = (before + column).saturating_sub(1);
        format!("The request body is not valid JSON: {reason}: line {line} column {column} (char {char})")
    }

    /// The path of the value, then what is wrong with it.
    fn message(&self, node: &Node<'_>, problem: Problem<'_>) -> String {
        let words = words(problem);
        match node.path() {
            path if path.is_empty() => words,
            path => format!("{path}: {words}"),
        }
    }

    fn accepts_whole_floats(&self) -> bool {
        true
    }

    fn read_tag<'a>(&self, node: &Node<'a>, tags: &[&str]) -> Result<&'a str, DecodeError> {
        let tag = node.optional("type").ok_or_else(|| node.problem(Problem::NoTag))?;
        let tag = tag.value.as_str().unwrap_or_default();
        if tags.contains(&tag) {
            Ok(tag)
        } else {
            Err(node.problem(Problem::UnknownTag { tag, known: tags }))
        }
    }

    fn no_word<'p>(&self, words: &'p [&'p str]) -> Problem<'p> {
        Problem::NotOneOf(words)
    }
}

fn words(problem: Problem<'_>) -> String {
    match problem {
        Problem::Missing => "Field required".to_owned(),
        Problem::WrongType(expected) => expected_type(expected).to_owned(),
        Problem::OutOfRange { bound, limit, number: _ } => {
            let bound = if bound == Bound::AtLeast { "greater" } else { "less" };
            format!("Input should be {bound} than or equal to {limit}")
        }
        Problem::NotOneOf(words) => format!("Input should be {}", join_quoted(words, " or ")),
        Problem::NoTag => "Unable to extract tag using discriminator 'type'".to_owned(),
        Problem::UnknownTag { tag, known } => {
            let known = join_quoted(known, ", ");
            format!("Input tag '{tag}' found using 'type' does not match any of the expected tags: {known}")
        }
        Problem::UnknownField => "Extra inputs are not permitted".to_owned(),
        Problem::Unacceptable(words) => words.to_owned(),
    }
}

fn expected_type(expected: ExpectedType) -> &'static str {
    match expected {
        ExpectedType::Text => "Input should be a valid string",
        ExpectedType::Integer => "Input should be a valid integer",
        ExpectedType::Number => "Input should be a valid number",
        ExpectedType::Flag => "Input should be a valid boolean",
        ExpectedType::Texts | ExpectedType::Records | ExpectedType::TextOrRecords => {
            "Input should be a valid list"
        }
        ExpectedType::Record => "Input should be a valid dictionary or object to extract fields from",
        ExpectedType::Object => "Input should be a valid dictionary",
    }
}

//! [`Node`]: a JSON value of a request body with its path. Its accessors fail with the message that
//! the real server sends when a value is missing or wrong.

use std::fmt::{self, Write};

use hardpan_models::Protocol;
use serde_json::Value;

use super::{DecodeError, DecodeErrorKind};

/// One step of the path from the body to a value.
#[derive(Clone, Copy, Debug)]
enum PathStep<'a> {
    Field(&'a str),
    Index(usize),
    /// The variant chosen by the value's `type`: part of Anthropic's paths, not of OpenAI's.
    Tag(&'a str),
}

/// The JSON type that a server expects, for its error messages.
#[derive(Clone, Copy, Debug)]
pub enum ExpectedType {
    /// A JSON string.
    Text,
    /// A number without a fraction.
    Integer,
    /// Any JSON number.
    Number,
    /// `true` or `false`.
    Flag,
    /// A list of strings.
    Texts,
    /// A list of objects with known fields.
    Records,
    /// A string, or a list of objects with known fields.
    TextOrRecords,
    /// An object with known fields.
    Record,
    /// An object with any fields.
    Object,
}

impl ExpectedType {
    fn anthropic(self) -> &'static str {
        match self {
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

    fn openai(self) -> &'static str {
        match self {
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
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A JSON value and its path in the body.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    pub value: &'a Value,
    protocol: Protocol,
    steps: Vec<PathStep<'a>>,
}

impl<'a> Node<'a> {
    pub fn root(protocol: Protocol, value: &'a Value) -> Self {
        Node { value, protocol, steps: Vec::new() }
    }

    fn step(&self, step: PathStep<'a>, value: &'a Value) -> Self {
        let steps = self.steps.iter().copied().chain([step]).collect();
        Node { value, protocol: self.protocol, steps }
    }

    /// A field, if present. `null` counts as present, and is mostly of the wrong type.
    pub fn optional(&self, key: &'a str) -> Option<Self> {
        self.value.get(key).map(|value| self.step(PathStep::Field(key), value))
    }

    /// A field, if present and not `null`.
    pub fn non_null(&self, key: &'a str) -> Option<Self> {
        self.optional(key).filter(|node| !node.value.is_null())
    }

    pub fn required(&self, key: &'a str) -> Result<Self, DecodeError> {
        let missing = || {
            let field = self.step(PathStep::Field(key), &Value::Null);
            let openai = format!("Missing required parameter: '{}'.", field.param());
            field.error(DecodeErrorKind::Missing, "Field required", openai)
        };
        self.optional(key).ok_or_else(missing)
    }

    /// The same value, with the variant that its `type` chose in the path.
    pub fn as_variant(&self, tag: &'a str) -> Self {
        self.step(PathStep::Tag(tag), self.value)
    }

    pub fn record(&self) -> Result<&Self, DecodeError> {
        if self.value.is_object() { Ok(self) } else { Err(self.wrong_type(ExpectedType::Record)) }
    }

    pub fn object(&self) -> Result<&'a Value, DecodeError> {
        if self.value.is_object() { Ok(self.value) } else { Err(self.wrong_type(ExpectedType::Object)) }
    }

    pub fn text(&self) -> Result<&'a str, DecodeError> {
        self.value.as_str().ok_or_else(|| self.wrong_type(ExpectedType::Text))
    }

    pub fn flag(&self) -> Result<bool, DecodeError> {
        self.value.as_bool().ok_or_else(|| self.wrong_type(ExpectedType::Flag))
    }

    /// The elements of a list; `expected` names the expected type in the error.
    pub fn list(&self, expected: ExpectedType) -> Result<Vec<Self>, DecodeError> {
        let list = self.value.as_array().ok_or_else(|| self.wrong_type(expected))?;
        Ok(list.iter().enumerate().map(|(index, value)| self.step(PathStep::Index(index), value)).collect())
    }

    pub fn texts(&self) -> Result<Vec<String>, DecodeError> {
        self.list(ExpectedType::Texts)?.iter().map(|text| text.text().map(str::to_owned)).collect()
    }

    /// An integer of at least `least`; saturates at [`u32::MAX`].
    pub fn integer(&self, least: u32) -> Result<u32, DecodeError> {
        let Value::Number(number) = self.value else { return Err(self.wrong_type(ExpectedType::Integer)) };
        let whole = match number.as_f64() {
            _ if !number.is_f64() => number.as_i64().or(number.as_u64().map(|_| i64::MAX)),
            // Anthropic takes 10.0 for 10.
            Some(float) if self.protocol == Protocol::Anthropic && float.fract() == 0.0 => Some(float as i64),
            _ => None,
        };
        match whole {
            None => Err(self.wrong_type(ExpectedType::Integer)),
            Some(whole) if whole < i64::from(least) => {
                let (anthropic, openai) = self.out_of_range(Bound::AtLeast, least, "integer");
                Err(self
                    .error(DecodeErrorKind::Unsupported, anthropic, openai)
                    .with_code("integer_below_min_value"))
            }
            Some(whole) => Ok(u32::try_from(whole).unwrap_or(u32::MAX)),
        }
    }

    /// A number from 0 to `most`, inclusive.
    pub fn number_up_to(&self, most: f64) -> Result<f64, DecodeError> {
        let number = self.value.as_f64().ok_or_else(|| self.wrong_type(ExpectedType::Number))?;
        let (bound, limit, code) = if number < 0.0 {
            (Bound::AtLeast, 0.0, "decimal_below_min_value")
        } else if number > most {
            (Bound::AtMost, most, "decimal_above_max_value")
        } else {
            return Ok(number);
        };
        let (anthropic, openai) = self.out_of_range(bound, limit, "decimal");
        Err(self.error(DecodeErrorKind::Unsupported, anthropic, openai).with_code(code))
    }

    fn out_of_range(&self, bound: Bound, limit: impl fmt::Display, what: &str) -> (String, String) {
        let (words, place, sign) = match bound {
            Bound::AtLeast => ("greater", "below minimum", ">="),
            Bound::AtMost => ("less", "above maximum", "<="),
        };
        let (param, value) = (self.param(), self.value);
        let openai = format!(
            "Invalid '{param}': {what} {place} value. Expected a value {sign} {limit}, but got {value} instead."
        );
        (format!("Input should be {words} than or equal to {limit}"), openai)
    }

    /// A string that is one of `words`.
    pub fn one_of(&self, words: &[&str]) -> Result<&'a str, DecodeError> {
        let anthropic = || format!("Input should be {}", join_quoted(words, " or "));
        match self.value.as_str() {
            Some(word) if words.contains(&word) => Ok(word),
            Some(word) => {
                Err(self.error(DecodeErrorKind::Unsupported, anthropic(), unsupported_word(word, words)))
            }
            None if self.protocol == Protocol::Openai => Err(self.wrong_type(ExpectedType::Text)),
            None => Err(self.error(DecodeErrorKind::WrongType, anthropic(), "")),
        }
    }

    /// The value of `type`, which chooses a variant; must be one of `tags`.
    pub fn tag(&self, tags: &[&str]) -> Result<&'a str, DecodeError> {
        let tag = match (self.record()?.optional("type"), self.protocol) {
            (Some(tag), Protocol::Anthropic) => tag.value.as_str().unwrap_or_default(),
            (None, Protocol::Anthropic) => {
                let words = "Unable to extract tag using discriminator 'type'";
                return Err(self.error(DecodeErrorKind::Missing, words, ""));
            }
            (_, Protocol::Openai) => return self.required("type")?.one_of(tags),
        };
        if tags.contains(&tag) { Ok(tag) } else { Err(self.unknown_tag(tag, tags)) }
    }

    pub fn unknown_tag(&self, tag: &str, tags: &[&str]) -> DecodeError {
        let tags = tags.iter().map(|tag| format!("'{tag}'")).collect::<Vec<_>>().join(", ");
        let words =
            format!("Input tag '{tag}' found using 'type' does not match any of the expected tags: {tags}");
        self.error(DecodeErrorKind::Unsupported, words, "")
    }

    /// Fails if the object has fields that are not in `known`.
    pub fn reject_unknown_fields(&self, known: &[&str]) -> Result<(), DecodeError> {
        let mut keys = self.value.as_object().into_iter().flat_map(serde_json::Map::keys);
        keys.find(|key| !known.contains(&key.as_str())).map_or(Ok(()), |key| {
            let field = self.step(PathStep::Field(key), self.value);
            let openai = format!("Unknown parameter: '{}'.", field.param());
            Err(field.error(DecodeErrorKind::Unknown, "Extra inputs are not permitted", openai))
        })
    }

    pub fn wrong_type(&self, expected: ExpectedType) -> DecodeError {
        let (param, want_openai, actual) = (self.param(), expected.openai(), type_name(self.value));
        let openai = format!("Invalid type for '{param}': expected {want_openai}, but got {actual} instead.");
        self.error(DecodeErrorKind::WrongType, expected.anthropic(), openai)
    }

    /// An error about a value that the server, or this decoder, does not accept.
    pub fn invalid_value(&self, words: &str) -> DecodeError {
        self.error(
            DecodeErrorKind::Unsupported,
            words,
            format!("Invalid value for '{}': {words}", self.param()),
        )
    }

    /// An error at this path, in the words of the protocol's server. Anthropic prefixes the path.
    pub fn error(
        &self,
        kind: DecodeErrorKind,
        anthropic: impl fmt::Display,
        openai: impl fmt::Display,
    ) -> DecodeError {
        let (path, param) = (self.path(), self.param());
        let message = match self.protocol {
            Protocol::Anthropic if path.is_empty() => anthropic.to_string(),
            Protocol::Anthropic => format!("{path}: {anthropic}"),
            Protocol::Openai => openai.to_string(),
        };
        let code = match kind {
            DecodeErrorKind::InvalidJson => None,
            DecodeErrorKind::Missing => Some("missing_required_parameter"),
            DecodeErrorKind::WrongType => Some("invalid_type"),
            DecodeErrorKind::Unknown => Some("unknown_parameter"),
            DecodeErrorKind::Unsupported => Some("invalid_value"),
        };
        DecodeError { kind, path, param: Some(param).filter(|param| !param.is_empty()), code, message }
    }

    fn path(&self) -> String {
        let steps = self.steps.iter().map(|step| match step {
            PathStep::Field(name) | PathStep::Tag(name) => name.to_string(),
            PathStep::Index(index) => index.to_string(),
        });
        steps.collect::<Vec<_>>().join(".")
    }

    pub fn param(&self) -> String {
        self.steps.iter().fold(String::new(), |mut param, step| {
            // Writing to a string cannot fail.
            let _ = match step {
                PathStep::Field(name) if param.is_empty() => write!(param, "{name}"),
                PathStep::Field(name) => write!(param, ".{name}"),
                PathStep::Index(index) => write!(param, "[{index}]"),
                PathStep::Tag(_) => Ok(()),
            };
            param
        })
    }
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast,
    AtMost,
}

impl DecodeError {
    /// Replaces OpenAI's `code`.
    pub(super) fn with_code(self, code: impl Into<Option<&'static str>>) -> Self {
        DecodeError { code: code.into(), ..self }
    }
}

/// OpenAI's message for a word that is not one of the supported values.
fn unsupported_word(word: &str, words: &[&str]) -> String {
    let comma = if words.len() > 2 { ", and " } else { " and " };
    format!("Invalid value: '{word}'. Supported values are: {}.", join_quoted(words, comma))
}

/// Joins quoted words: `'a', 'b' or 'c'`, with `last` before the last one.
fn join_quoted(words: &[&str], last: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match &quoted[..] {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., end] => format!("{}{last}{end}", most.join(", ")),
    }
}

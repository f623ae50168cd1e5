//! A value of a body, where it is, and what its server says when it is not what it should be.

use std::fmt::{self, Write};

use hardpan_models::Protocol;
use serde_json::Value;

use super::{DecodeError, ErrorKind};

/// One step of the way to a value.
#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    /// The variant that the value's `type` chose: Anthropic's paths name it, OpenAI's do not.
    Tag(&'a str),
}

/// A type that a server asks for.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    /// A string.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Flag,
    /// Strings.
    Texts,
    /// Objects of a known form.
    Records,
    /// A string, or objects of a known form.
    TextOrRecords,
    /// An object of a known form.
    Record,
    /// Any object.
    Object,
}

impl Want {
    fn anthropic(self) -> &'static str {
        match self {
            Want::Text => "Input should be a valid string",
            Want::Integer => "Input should be a valid integer",
            Want::Number => "Input should be a valid number",
            Want::Flag => "Input should be a valid boolean",
            Want::Texts | Want::Records | Want::TextOrRecords => "Input should be a valid list",
            Want::Record => "Input should be a valid dictionary or object to extract fields from",
            Want::Object => "Input should be a valid dictionary",
        }
    }

    fn openai(self) -> &'static str {
        match self {
            Want::Text => "a string",
            Want::Integer => "an integer",
            Want::Number => "a decimal",
            Want::Flag => "a boolean",
            Want::Texts => "an array of strings",
            Want::Records => "an array of objects",
            Want::TextOrRecords => "one of a string or array of objects",
            Want::Record | Want::Object => "an object",
        }
    }
}

fn got(value: &Value) -> &'static str {
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

/// A value and the way to it.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    pub value: &'a Value,
    protocol: Protocol,
    steps: Vec<Step<'a>>,
}

impl<'a> Node<'a> {
    pub fn root(protocol: Protocol, value: &'a Value) -> Self {
        Node { value, protocol, steps: Vec::new() }
    }

    fn step(&self, step: Step<'a>, value: &'a Value) -> Self {
        let steps = self.steps.iter().copied().chain([step]).collect();
        Node { value, protocol: self.protocol, steps }
    }

    /// A field; null is a value like any other, and mostly a wrong one.
    pub fn optional(&self, key: &'a str) -> Option<Self> {
        self.value.get(key).map(|value| self.step(Step::Field(key), value))
    }

    /// A field that may as well be null as not be there.
    pub fn maybe(&self, key: &'a str) -> Option<Self> {
        self.optional(key).filter(|node| !node.value.is_null())
    }

    pub fn need(&self, key: &'a str) -> Result<Self, DecodeError> {
        let missing = || {
            let field = self.step(Step::Field(key), &Value::Null);
            let openai = format!("Missing required parameter: '{}'.", field.param());
            field.fail(ErrorKind::Missing, "Field required", openai)
        };
        self.optional(key).ok_or_else(missing)
    }

    /// The same value, as the variant that its `type` chose.
    pub fn tagged(&self, tag: &'a str) -> Self {
        self.step(Step::Tag(tag), self.value)
    }

    pub fn record(&self) -> Result<&Self, DecodeError> {
        if self.value.is_object() { Ok(self) } else { Err(self.wrong_type(Want::Record)) }
    }

    pub fn object(&self) -> Result<&'a Value, DecodeError> {
        if self.value.is_object() { Ok(self.value) } else { Err(self.wrong_type(Want::Object)) }
    }

    pub fn text(&self) -> Result<&'a str, DecodeError> {
        self.value.as_str().ok_or_else(|| self.wrong_type(Want::Text))
    }

    pub fn flag(&self) -> Result<bool, DecodeError> {
        self.value.as_bool().ok_or_else(|| self.wrong_type(Want::Flag))
    }

    /// The elements of a list; `want` says of what.
    pub fn list(&self, want: Want) -> Result<Vec<Self>, DecodeError> {
        let list = self.value.as_array().ok_or_else(|| self.wrong_type(want))?;
        Ok(list.iter().enumerate().map(|(index, value)| self.step(Step::Index(index), value)).collect())
    }

    pub fn texts(&self) -> Result<Vec<String>, DecodeError> {
        self.list(Want::Texts)?.iter().map(|text| text.text().map(str::to_owned)).collect()
    }

    /// A whole number from `least` on; one that is too large for us is as large as can be.
    pub fn integer(&self, least: u32) -> Result<u32, DecodeError> {
        let Value::Number(number) = self.value else { return Err(self.wrong_type(Want::Integer)) };
        let whole = match number.as_f64() {
            _ if !number.is_f64() => number.as_i64().or(number.as_u64().map(|_| i64::MAX)),
            // Anthropic takes 10.0 for 10.
            Some(float) if self.protocol == Protocol::Anthropic && float.fract() == 0.0 => Some(float as i64),
            _ => None,
        };
        match whole {
            None => Err(self.wrong_type(Want::Integer)),
            Some(whole) if whole < i64::from(least) => {
                let (anthropic, openai) = self.out_of_range(Bound::AtLeast, least, "integer");
                Err(self.fail(ErrorKind::Unsupported, anthropic, openai).coded("integer_below_min_value"))
            }
            Some(whole) => Ok(u32::try_from(whole).unwrap_or(u32::MAX)),
        }
    }

    /// A number from 0 to `most`.
    pub fn share(&self, most: f64) -> Result<f64, DecodeError> {
        let number = self.value.as_f64().ok_or_else(|| self.wrong_type(Want::Number))?;
        let (bound, limit, code) = if number < 0.0 {
            (Bound::AtLeast, 0.0, "decimal_below_min_value")
        } else if number > most {
            (Bound::AtMost, most, "decimal_above_max_value")
        } else {
            return Ok(number);
        };
        let (anthropic, openai) = self.out_of_range(bound, limit, "decimal");
        Err(self.fail(ErrorKind::Unsupported, anthropic, openai).coded(code))
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

    /// One of some words.
    pub fn one_of(&self, words: &[&str]) -> Result<&'a str, DecodeError> {
        let anthropic = || format!("Input should be {}", listed(words, " or "));
        match self.value.as_str() {
            Some(word) if words.contains(&word) => Ok(word),
            Some(word) => Err(self.fail(ErrorKind::Unsupported, anthropic(), not_among(word, words))),
            None if self.protocol == Protocol::Openai => Err(self.wrong_type(Want::Text)),
            None => Err(self.fail(ErrorKind::WrongType, anthropic(), "")),
        }
    }

    /// The word in `type` that chooses a variant.
    pub fn tag(&self, tags: &[&str]) -> Result<&'a str, DecodeError> {
        let tag = match (self.record()?.optional("type"), self.protocol) {
            (Some(tag), Protocol::Anthropic) => tag.value.as_str().unwrap_or_default(),
            (None, Protocol::Anthropic) => {
                let words = "Unable to extract tag using discriminator 'type'";
                return Err(self.fail(ErrorKind::Missing, words, ""));
            }
            (_, Protocol::Openai) => return self.need("type")?.one_of(tags),
        };
        if tags.contains(&tag) { Ok(tag) } else { Err(self.unknown_tag(tag, tags)) }
    }

    pub fn unknown_tag(&self, tag: &str, tags: &[&str]) -> DecodeError {
        let tags = tags.iter().map(|tag| format!("'{tag}'")).collect::<Vec<_>>().join(", ");
        let words =
            format!("Input tag '{tag}' found using 'type' does not match any of the expected tags: {tags}");
        self.fail(ErrorKind::Unsupported, words, "")
    }

    /// Refuses fields that are not among `known`.
    pub fn close(&self, known: &[&str]) -> Result<(), DecodeError> {
        let mut keys = self.value.as_object().into_iter().flat_map(serde_json::Map::keys);
        keys.find(|key| !known.contains(&key.as_str())).map_or(Ok(()), |key| {
            let field = self.step(Step::Field(key), self.value);
            let openai = format!("Unknown parameter: '{}'.", field.param());
            Err(field.fail(ErrorKind::Unknown, "Extra inputs are not permitted", openai))
        })
    }

    pub fn wrong_type(&self, want: Want) -> DecodeError {
        let (param, want_openai, got) = (self.param(), want.openai(), got(self.value));
        let openai = format!("Invalid type for '{param}': expected {want_openai}, but got {got} instead.");
        self.fail(ErrorKind::WrongType, want.anthropic(), openai)
    }

    /// Refuses what a server may take and we do not, or what only this field can have wrong.
    pub fn refuse(&self, words: &str) -> DecodeError {
        self.fail(ErrorKind::Unsupported, words, format!("Invalid value for '{}': {words}", self.param()))
    }

    /// An error here, in the words of either server. Anthropic's go after the path.
    pub fn fail(
        &self,
        kind: ErrorKind,
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
            ErrorKind::InvalidJson => None,
            ErrorKind::Missing => Some("missing_required_parameter"),
            ErrorKind::WrongType => Some("invalid_type"),
            ErrorKind::Unknown => Some("unknown_parameter"),
            ErrorKind::Unsupported => Some("invalid_value"),
        };
        DecodeError { kind, path, param: Some(param).filter(|param| !param.is_empty()), code, message }
    }

    fn path(&self) -> String {
        let steps = self.steps.iter().map(|step| match step {
            Step::Field(name) | Step::Tag(name) => name.to_string(),
            Step::Index(index) => index.to_string(),
        });
        steps.collect::<Vec<_>>().join(".")
    }

    pub fn param(&self) -> String {
        self.steps.iter().fold(String::new(), |mut param, step| {
            // Writing to a string cannot fail.
            let _ = match step {
                Step::Field(name) if param.is_empty() => write!(param, "{name}"),
                Step::Field(name) => write!(param, ".{name}"),
                Step::Index(index) => write!(param, "[{index}]"),
                Step::Tag(_) => Ok(()),
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
    /// The same with another `code`.
    pub(super) fn coded(self, code: impl Into<Option<&'static str>>) -> Self {
        DecodeError { code: code.into(), ..self }
    }
}

/// OpenAI's words for a word that is not one of some.
fn not_among(word: &str, words: &[&str]) -> String {
    let comma = if words.len() > 2 { ", and " } else { " and " };
    format!("Invalid value: '{word}'. Supported values are: {}.", listed(words, comma))
}

/// `'a', 'b' or 'c'`.
fn listed(words: &[&str], last: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match &quoted[..] {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., end] => format!("{}{last}{end}", most.join(", ")),
    }
}

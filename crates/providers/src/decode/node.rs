//! [`Node`]: a JSON value of a request body with its path. Its accessors fail with the message that
//! the real server sends when a value is missing or wrong; a [`DecodeDialect`] has the words.

use std::fmt::{self, Write};

use serde_json::Value;

use super::{DecodeError, DecodeErrorKind};

/// One step of the path from the body to a value.
#[derive(Clone, Copy, Debug)]
enum PathStep<'a> {
    Field(&'a str),
    Index(usize),
    /// The variant chosen by the value's `type`: part of Anthropic's paths, not of `param`.
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

/// What is wrong with a value, for the words of a [`DecodeDialect`].
#[derive(Clone, Copy, Debug)]
pub enum Problem<'p> {
    /// A required field does not exist.
    Missing,
    /// The value is of another JSON type.
    WrongType(ExpectedType),
    /// A number is below its minimum or above its maximum.
    OutOfRange {
        bound: Bound,
        limit: f64,
        /// Whether only whole numbers are allowed.
        number: ExpectedType,
    },
    /// A string is not one of the allowed words.
    NotOneOf(&'p [&'p str]),
    /// The field `type`, which chooses a variant, does not exist.
    NoTag,
    /// The field `type` names no known variant.
    UnknownTag { tag: &'p str, known: &'p [&'p str] },
    /// The server does not know the field.
    UnknownField,
    /// The value is not acceptable for the given reason.
    Unacceptable(&'p str),
}

impl Problem<'_> {
    fn kind(self, value: &Value) -> DecodeErrorKind {
        match self {
            Problem::NotOneOf(_) if !value.is_string() => DecodeErrorKind::WrongType,
            Problem::Missing | Problem::NoTag => DecodeErrorKind::Missing,
            Problem::WrongType(_) => DecodeErrorKind::WrongType,
            Problem::UnknownField => DecodeErrorKind::Unknown,
            Problem::OutOfRange { .. }
            | Problem::NotOneOf(_)
            | Problem::UnknownTag { .. }
            | Problem::Unacceptable(_) => DecodeErrorKind::Unsupported,
        }
    }
}

/// Which end of a range a number exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    AtLeast,
    AtMost,
}

/// The words and habits of a protocol's server when it rejects a body.
pub trait DecodeDialect: fmt::Debug + Sync {
    /// The message for a body that is not valid JSON.
    fn invalid_json(&self, body: &[u8], error: &serde_json::Error) -> String;

    /// The message for a problem with a value.
    fn message(&self, node: &Node<'_>, problem: Problem<'_>) -> String;

    /// The error's `code`, for protocols that have one.
    fn code(&self, _problem: Problem<'_>) -> Option<&'static str> {
        None
    }

    /// Whether 10.0 is taken for the integer 10.
    fn accepts_whole_floats(&self) -> bool {
        false
    }

    /// The value of the field `type`, which must be one of `tags`.
    fn read_tag<'a>(&self, node: &Node<'a>, tags: &[&str]) -> Result<&'a str, DecodeError> {
        node.required("type")?.one_of(tags)
    }

    /// The problem with a value that should be one of `words` and is not even a string.
    fn no_word<'p>(&self, _words: &'p [&'p str]) -> Problem<'p> {
        Problem::WrongType(ExpectedType::Text)
    }
}

/// The name of a value's JSON type, with its article.
pub fn type_name(value: &Value) -> &'static str {
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
    dialect: &'static dyn DecodeDialect,
    steps: Vec<PathStep<'a>>,
}

impl<'a> Node<'a> {
    pub fn root(dialect: &'static dyn DecodeDialect, value: &'a Value) -> Self {
        Node { value, dialect, steps: Vec::new() }
    }

    fn step(&self, step: PathStep<'a>, value: &'a Value) -> Self {
        let steps = self.steps.iter().copied().chain([step]).collect();
        Node { value, dialect: self.dialect, steps }
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
        let missing = || self.step(PathStep::Field(key), &Value::Null).problem(Problem::Missing);
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
            Some(float) if self.dialect.accepts_whole_floats() && float.fract() == 0.0 => Some(float as i64),
            _ => None,
        };
        match whole {
            None => Err(self.wrong_type(ExpectedType::Integer)),
            Some(whole) if whole < i64::from(least) => {
                let (limit, number) = (f64::from(least), ExpectedType::Integer);
                Err(self.problem(Problem::OutOfRange { bound: Bound::AtLeast, limit, number }))
            }
            Some(whole) => Ok(u32::try_from(whole).unwrap_or(u32::MAX)),
        }
    }

    /// An integer from `least` to `most`, inclusive.
    pub fn integer_between(&self, least: u32, most: u32) -> Result<u32, DecodeError> {
        let number = self.integer(least)?;
        if number > most {
            let (limit, number) = (f64::from(most), ExpectedType::Integer);
            return Err(self.problem(Problem::OutOfRange { bound: Bound::AtMost, limit, number }));
        }
        Ok(number)
    }

    /// A number from 0 to `most`, inclusive.
    pub fn number_up_to(&self, most: f64) -> Result<f64, DecodeError> {
        let number = self.value.as_f64().ok_or_else(|| self.wrong_type(ExpectedType::Number))?;
        let (bound, limit) = match number {
            _ if number < 0.0 => (Bound::AtLeast, 0.0),
            _ if number > most => (Bound::AtMost, most),
            _ => return Ok(number),
        };
        Err(self.problem(Problem::OutOfRange { bound, limit, number: ExpectedType::Number }))
    }

    /// A string that is one of `words`.
    pub fn one_of(&self, words: &[&str]) -> Result<&'a str, DecodeError> {
        match self.value.as_str() {
            Some(word) if words.contains(&word) => Ok(word),
            Some(_) => Err(self.problem(Problem::NotOneOf(words))),
            None => Err(self.problem(self.dialect.no_word(words))),
        }
    }

    /// The value of `type`, which chooses a variant; must be one of `tags`.
    pub fn tag(&self, tags: &[&str]) -> Result<&'a str, DecodeError> {
        self.dialect.read_tag(self.record()?, tags)
    }

    /// Fails if the object has fields that are not in `known`.
    pub fn reject_unknown_fields(&self, known: &[&str]) -> Result<(), DecodeError> {
        let mut keys = self.value.as_object().into_iter().flat_map(serde_json::Map::keys);
        keys.find(|key| !known.contains(&key.as_str())).map_or(Ok(()), |key| {
            Err(self.step(PathStep::Field(key), self.value).problem(Problem::UnknownField))
        })
    }

    pub fn wrong_type(&self, want: ExpectedType) -> DecodeError {
        self.problem(Problem::WrongType(want))
    }

    /// An error about a value that the server, or this decoder, does not accept.
    pub fn invalid_value(&self, words: &str) -> DecodeError {
        self.problem(Problem::Unacceptable(words))
    }

    /// An error at this path, in the words of the protocol's server.
    pub fn problem(&self, problem: Problem<'_>) -> DecodeError {
        let message = self.dialect.message(self, problem);
        DecodeError { code: self.dialect.code(problem), ..self.reject(problem.kind(self.value), message) }
    }

    /// An error at this path that only this protocol has, with the server's own message.
    pub fn reject(&self, kind: DecodeErrorKind, message: impl Into<String>) -> DecodeError {
        let param = Some(self.param()).filter(|param| !param.is_empty());
        DecodeError { kind, path: self.path(), param, code: None, message: message.into() }
    }

    /// The path with dots: `messages.0.content.1.text`.
    pub fn path(&self) -> String {
        let steps = self.steps.iter().map(|step| match step {
            PathStep::Field(name) | PathStep::Tag(name) => name.to_string(),
            PathStep::Index(index) => index.to_string(),
        });
        steps.collect::<Vec<_>>().join(".")
    }

    /// The path with brackets: `messages[0].content[1].text`.
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

impl DecodeError {
    /// Sets OpenAI's `code`.
    pub(crate) fn with_code(self, code: &'static str) -> Self {
        DecodeError { code: Some(code), ..self }
    }
}

/// Joins quoted words: `'a', 'b' or 'c'`, with `last` before the last one.
pub fn join_quoted(words: &[&str], last: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    match &quoted[..] {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., end] => format!("{}{last}{end}", most.join(", ")),
    }
}

//! [`ServerForm`]: what a server asks a person for, field by field, and what an answer means.

use serde_json::{Map, Value};
use thiserror::Error;

use crate::plain_text::plain_text;

/// The most fields of one form.
const MAX_FIELDS: usize = 30;

/// The most choices of one field.
const MAX_CHOICES: usize = 200;

/// The longest message of a server to a person, in bytes.
const MAX_MESSAGE: usize = 2000;

/// The longest title or name, in bytes.
const MAX_TITLE: usize = 200;

/// A form that a server wants to be filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerForm {
    /// What the server says about it.
    pub message: String,
    /// What it wants to know.
    pub fields: Vec<FormField>,
}

/// An address that a server wants the person to visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVisit {
    /// What the server says about it.
    pub message: String,
    /// The address, of the web.
    pub url: String,
    /// Its host, which the person has to know.
    pub host: String,
}

/// A form or an address that nobody can be asked about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FormError {
    /// It has too many fields or choices.
    #[error("a form has at most {MAX_FIELDS} fields and {MAX_CHOICES} choices in each")]
    TooLong,
    /// A field has a type that forms do not have.
    #[error("the field {0} has a type that forms do not have")]
    UnknownType(String),
    /// The address is none of the web.
    #[error("only addresses that begin with https:// or http:// can be visited")]
    NoAddress,
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    /// The name that the server knows it by.
    pub name: String,
    /// What a person reads.
    pub title: String,
    /// More about it.
    pub description: Option<String>,
    /// Whether the form is nothing without it.
    pub is_required: bool,
    /// What it holds if the person says nothing.
    pub default: Option<Value>,
    /// What it can hold.
    pub kind: FieldKind,
}

/// What a field can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// A text.
    Text {
        /// The fewest and the most characters.
        length: (Option<u64>, Option<u64>),
        /// `email`, `uri`, `date` or `date-time`.
        format: Option<String>,
    },
    /// A number.
    Number {
        /// Whether it has no fraction.
        is_integer: bool,
        /// The smallest and the largest.
        range: (Option<f64>, Option<f64>),
    },
    /// Yes or no.
    Boolean,
    /// One of these: the value, and what a person reads.
    Choice(Vec<(String, String)>),
    /// Any of these.
    Choices {
        /// The values, and what a person reads.
        choices: Vec<(String, String)>,
        /// The fewest and the most of them.
        count: (Option<u64>, Option<u64>),
    },
}

/// What became of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// The person filled it in.
    Accepted(Map<String, Value>),
    /// The person does not want to.
    Declined,
    /// Nobody decided.
    Cancelled,
}

/// Why an answer does not fit a field. The text completes "… does not fit: ".
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// Nothing was given.
    #[error("it is required")]
    Missing,
    /// It is no number.
    #[error("expected a number")]
    NoNumber,
    /// It has a fraction.
    #[error("expected a whole number")]
    NoInteger,
    /// It is too small or too large.
    #[error("expected a number {0}")]
    OutOfRange(String),
    /// It is too short or too long.
    #[error("expected {0} characters")]
    WrongLength(String),
    /// It is neither yes nor no.
    #[error("expected yes or no")]
    NoBoolean,
    /// It has another form.
    #[error("expected {0}")]
    WrongFormat(&'static str),
    /// It is none of the choices.
    #[error("it is none of the choices")]
    NoChoice,
    /// There are too few or too many.
    #[error("expected {0} choices")]
    WrongCount(String),
}

impl ServerVisit {
    /// What a server asks for.
    pub fn new(message: &str, url: &str) -> Result<Self, FormError> {
        let parsed = url::Url::parse(url).map_err(|_| FormError::NoAddress)?;
        let host = parsed.host_str().filter(|_| matches!(parsed.scheme(), "http" | "https"));
        let host = host.ok_or(FormError::NoAddress)?.to_owned();
        Ok(ServerVisit { message: plain_text(message, MAX_MESSAGE), url: parsed.into(), host })
    }
}

impl ServerForm {
    /// The form of a schema, as the protocol describes it: an object whose properties are no objects.
    pub fn new(message: &str, schema: &Value) -> Result<Self, FormError> {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object();
        if properties.is_some_and(|properties| properties.len() > MAX_FIELDS) {
            return Err(FormError::TooLong);
        }
        let fields = properties.into_iter().flatten();
        let fields = fields.map(|(name, field)| FormField::new(name, field, required.contains(&&**name)));
        Ok(ServerForm {
            message: plain_text(message, MAX_MESSAGE),
            fields: fields.collect::<Result<_, _>>()?,
        })
    }
}

impl FormField {
    fn new(name: &str, schema: &Value, is_required: bool) -> Result<Self, FormError> {
        let text = |key: &str| {
            let text = schema[key].as_str().map(|text| plain_text(text, MAX_MESSAGE));
            text.filter(|text| !text.is_empty())
        };
        let kind = match schema["type"].as_str() {
            Some("boolean") => FieldKind::Boolean,
            Some(kind @ ("number" | "integer")) => FieldKind::Number {
                is_integer: kind == "integer",
                range: (schema["minimum"].as_f64(), schema["maximum"].as_f64()),
            },
            Some("array") => FieldKind::Choices {
                choices: choices_of(&schema["items"])?,
                count: (schema["minItems"].as_u64(), schema["maxItems"].as_u64()),
            },
            Some("string") if schema.get("enum").is_some() || schema.get("oneOf").is_some() => {
                FieldKind::Choice(choices_of(schema)?)
            }
            Some("string") => FieldKind::Text {
                length: (schema["minLength"].as_u64(), schema["maxLength"].as_u64()),
                format: schema["format"].as_str().map(str::to_owned),
            },
            _ => return Err(FormError::UnknownType(plain_text(name, MAX_TITLE))),
        };
        let title = text("title").unwrap_or_else(|| name.to_owned());
        Ok(FormField {
            name: name.to_owned(),
            title: plain_text(&title, MAX_TITLE),
            description: text("description"),
            is_required,
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            kind,
        })
    }

    /// The default as a person would type it.
    pub fn default_text(&self) -> Option<String> {
        Some(match self.default.as_ref()? {
            Value::String(text) => text.clone(),
            Value::Bool(value) => if *value { "yes" } else { "no" }.to_owned(),
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            other => other.to_string(),
        })
    }

    /// What is expected, in a few words.
    pub fn expectation(&self) -> Option<String> {
        match &self.kind {
            FieldKind::Text { format: Some(format), .. } => format_name(format).map(str::to_owned),
            FieldKind::Text { length, .. } => bounds(*length).map(|bounds| format!("{bounds} characters")),
            FieldKind::Number { is_integer, range } => {
                let kind = if *is_integer { "a whole number" } else { "a number" };
                Some(bounds(*range).map_or(kind.to_owned(), |bounds| format!("{kind}, {bounds}")))
            }
            FieldKind::Boolean => Some("yes or no".to_owned()),
            FieldKind::Choice(_) => None,
            FieldKind::Choices { choices, .. } => {
                let names: Vec<&str> = choices.iter().map(|(_, title)| title.as_str()).collect();
                Some(format!("any of {}, with commas between them", names.join(", ")))
            }
        }
    }

    /// The value that a typed line means; none if it is left out.
    pub fn parse(&self, typed: &str) -> Result<Option<Value>, FieldError> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match (&self.default, self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err(FieldError::Missing),
            };
        }
        match &self.kind {
            FieldKind::Text { length, format } => {
                let count = typed.chars().count() as u64;
                if !is_within(count, *length) {
                    return Err(FieldError::WrongLength(bounds(*length).unwrap_or_default()));
                }
                check_format(typed, format.as_deref())?;
                Ok(Some(typed.into()))
            }
            FieldKind::Number { is_integer, range } => {
                let number: f64 = typed.parse().map_err(|_| FieldError::NoNumber)?;
                if !number.is_finite() {
                    return Err(FieldError::NoNumber);
                }
                if !is_within(number, *range) {
                    return Err(FieldError::OutOfRange(bounds(*range).unwrap_or_default()));
                }
                match (is_integer, typed.parse::<i64>()) {
                    (_, Ok(whole)) => Ok(Some(whole.into())),
                    (true, Err(_)) => Err(FieldError::NoInteger),
                    (false, Err(_)) => Ok(Some(number.into())),
                }
            }
            FieldKind::Boolean => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Some(true.into())),
                "n" | "no" | "false" => Ok(Some(false.into())),
                _ => Err(FieldError::NoBoolean),
            },
            FieldKind::Choice(choices) => {
                Ok(Some(chosen(choices, typed).ok_or(FieldError::NoChoice)?.into()))
            }
            FieldKind::Choices { choices, count } => {
                let names = typed.split(',').map(str::trim).filter(|name| !name.is_empty());
                let mut values: Vec<&str> = names
                    .map(|name| chosen(choices, name).ok_or(FieldError::NoChoice))
                    .collect::<Result<_, _>>()?;
                values.sort_unstable();
                values.dedup();
                match is_within(values.len() as u64, *count) {
                    true => Ok(Some(values.into_iter().map(Value::from).collect())),
                    false => Err(FieldError::WrongCount(bounds(*count).unwrap_or_default())),
                }
            }
        }
    }
}

/// The choices of a schema: `enum`, with or without names, or a list of constants with titles.
fn choices_of(schema: &Value) -> Result<Vec<(String, String)>, FormError> {
    let list = |key: &str| schema[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let titled = list("oneOf").iter().chain(list("anyOf"));
    let titled = titled.filter_map(|entry| {
        let value = entry["const"].as_str()?;
        Some((value.to_owned(), entry["title"].as_str().unwrap_or(value)))
    });
    let names = list("enumNames");
    let plain = list("enum").iter().enumerate().filter_map(|(at, value)| {
        let value = value.as_str()?;
        Some((value.to_owned(), names.get(at).and_then(Value::as_str).unwrap_or(value)))
    });
    let choices: Vec<(String, String)> =
        titled.chain(plain).map(|(value, title)| (value, plain_text(title, MAX_TITLE))).collect();
    if choices.len() > MAX_CHOICES { Err(FormError::TooLong) } else { Ok(choices) }
}

fn chosen<'a>(choices: &'a [(String, String)], typed: &str) -> Option<&'a str> {
    let found = choices.iter().find(|(_, title)| title == typed);
    found.or_else(|| choices.iter().find(|(value, _)| value == typed)).map(|(value, _)| value.as_str())
}

fn is_within<T: PartialOrd + Copy>(value: T, (min, max): (Option<T>, Option<T>)) -> bool {
    min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

fn bounds<T: std::fmt::Display>((min, max): (Option<T>, Option<T>)) -> Option<String> {
    match (min, max) {
        (Some(min), Some(max)) => Some(format!("from {min} to {max}")),
        (Some(min), None) => Some(format!("at least {min}")),
        (None, Some(max)) => Some(format!("at most {max}")),
        (None, None) => None,
    }
}

fn format_name(format: &str) -> Option<&'static str> {
    match format {
        "email" => Some("an e-mail address"),
        "uri" => Some("an address such as https://host/path"),
        "date" => Some("a date such as 2026-01-31"),
        "date-time" => Some("a time such as 2026-01-31T12:00:00Z"),
        _ => None,
    }
}

fn check_format(typed: &str, format: Option<&str>) -> Result<(), FieldError> {
    let is_date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        let sizes: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        let number = |at: usize| parts[at].parse::<u32>().unwrap_or(0);
        sizes == [4, 2, 2]
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
            && (1..=12).contains(&number(1))
            && (1..=31).contains(&number(2))
    };
    let is_right = match format {
        Some("email") => typed.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && !host.is_empty() && !typed.contains(char::is_whitespace)
        }),
        Some("uri") => url::Url::parse(typed).is_ok(),
        Some("date") => is_date(typed),
        Some("date-time") => typed.split_once(['T', 't']).is_some_and(|(date, time)| {
            is_date(date) && time.len() >= 6 && time.starts_with(|c: char| c.is_ascii_digit())
        }),
        _ => true,
    };
    match (is_right, format.and_then(format_name)) {
        (false, Some(name)) => Err(FieldError::WrongFormat(name)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(schema: &Value, is_required: bool) -> FormField {
        FormField::new("it", schema, is_required).expect("a field")
    }

    #[test]
    fn answers_become_values_of_the_fields_type() {
        for (schema, typed, expected) in [
            (json!({"type": "string"}), " Ada ", Ok(Some(json!("Ada")))),
            (json!({"type": "string", "minLength": 5}), "Ada", Err("expected at least 5 characters")),
            (json!({"type": "string", "format": "email"}), "a@b.c", Ok(Some(json!("a@b.c")))),
            (json!({"type": "string", "format": "email"}), "ab.c", Err("expected an e-mail address")),
            (
                json!({"type": "string", "format": "date"}),
                "2026-13-01",
                Err("expected a date such as 2026-01-31"),
            ),
            (
                json!({"type": "string", "format": "date-time"}),
                "2026-12-01T10:00:00Z",
                Ok(Some(json!("2026-12-01T10:00:00Z"))),
            ),
            (
                json!({"type": "string", "format": "uri"}),
                "nowhere",
                Err("expected an address such as https://host/path"),
            ),
            (json!({"type": "integer"}), "3", Ok(Some(json!(3)))),
            (json!({"type": "integer"}), "3.5", Err("expected a whole number")),
            (json!({"type": "integer", "minimum": 4}), "3", Err("expected a number at least 4")),
            (json!({"type": "number", "maximum": 4}), "3.5", Ok(Some(json!(3.5)))),
            (json!({"type": "number"}), "many", Err("expected a number")),
            (json!({"type": "number"}), "NaN", Err("expected a number")),
            (json!({"type": "boolean"}), "Yes", Ok(Some(json!(true)))),
            (json!({"type": "boolean"}), "perhaps", Err("expected yes or no")),
            (
                json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}),
                "Green",
                Ok(Some(json!("g"))),
            ),
            (json!({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}), "r", Ok(Some(json!("r")))),
            (json!({"type": "string", "enum": ["r"]}), "blue", Err("it is none of the choices")),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}),
                "c, a, c",
                Ok(Some(json!(["a", "c"]))),
            ),
            (
                json!({"type": "array", "minItems": 2, "items": {"anyOf": [{"const": "a", "title": "A"}]}}),
                "A",
                Err("expected at least 2 choices"),
            ),
        ] {
            let parsed = field(&schema, true).parse(typed).map_err(|error| error.to_string());
            assert_eq!(parsed, expected.map_err(str::to_owned), "{schema} {typed}");
        }
    }

    #[test]
    fn nothing_means_the_default_or_that_the_field_is_left_out() {
        let schema = json!({"type": "integer", "default": 7});
        assert_eq!(field(&schema, true).parse(" "), Ok(Some(json!(7))));
        assert_eq!(field(&schema, true).default_text().as_deref(), Some("7"));
        assert_eq!(field(&json!({"type": "string"}), false).parse(""), Ok(None));
        assert_eq!(field(&json!({"type": "string"}), true).parse(""), Err(FieldError::Missing));
    }

    #[test]
    fn forms_are_bounded_and_plain() {
        let many: Map<String, Value> =
            (0..31).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
        assert_eq!(ServerForm::new("x", &json!({"properties": many})), Err(FormError::TooLong));
        let nested = json!({"properties": {"a": {"type": "object"}}});
        assert_eq!(ServerForm::new("x", &nested), Err(FormError::UnknownType("a".into())));
        let form = ServerForm::new("a\u{1b}[31mb", &json!({"properties": {"n": {"type": "boolean"}}}));
        let form = form.expect("a form");
        assert_eq!((form.message.as_str(), form.fields.len()), ("ab", 1));
        assert_eq!(ServerVisit::new("x", "file:///etc/passwd"), Err(FormError::NoAddress));
        let visit = ServerVisit::new("x", "https://user@example.com/a").expect("a visit");
        assert_eq!(visit.host, "example.com");
    }
}

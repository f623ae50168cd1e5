//! JSON values that both protocols have in common: strings, call arguments, errors.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::limits::{MAX_ERROR_BYTES, MAX_MESSAGE_CHARS, short_message};
use crate::{StreamError, StreamErrorKind};

/// A string, borrowed from the input if it has no escapes. A number is taken as its digits: some
/// servers use numbers as call ids.
#[derive(Debug, Default)]
pub struct Str<'a>(Cow<'a, str>);

impl<'a> Str<'a> {
    pub fn borrowed(text: &'a str) -> Self {
        Str(Cow::Borrowed(text))
    }

    pub fn owned(text: impl Into<String>) -> Self {
        Str(Cow::Owned(text.into()))
    }
}

impl Deref for Str<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<Str<'_>> for String {
    fn from(text: Str<'_>) -> String {
        text.0.into_owned()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StrVisitor;
        impl<'de> Visitor<'de> for StrVisitor {
            type Value = Str<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Str<'de>, E> {
                Ok(Str::borrowed(text))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Str<'de>, E> {
                Ok(Str::owned(text))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Str<'de>, E> {
                Ok(Str::owned(number.to_string()))
            }
        }
        deserializer.deserialize_any(StrVisitor)
    }
}

/// The string, or `""` for `None`.
pub fn or_empty<'t>(text: &'t Option<Str<'_>>) -> &'t str {
    text.as_deref().unwrap_or_default()
}

/// A call's arguments: either a string that contains JSON, or the JSON itself.
pub fn parse_arguments(raw: &RawValue) -> Result<Cow<'_, str>, StreamError> {
    match raw.get() {
        "null" => Ok(Cow::Borrowed("")),
        text if text.starts_with('"') => serde_json::from_str::<Str<'_>>(text)
            .map(|text| text.0)
            .map_err(|error| StreamError::malformed(error, text)),
        text => Ok(Cow::Borrowed(text)),
    }
}

/// Whether the value of an `error` field is an actual error: some servers send `null` or `{}`.
pub fn is_error(raw: &&RawValue) -> bool {
    !matches!(raw.get(), "null" | "false" | "\"\"" | "{}")
}

/// Parses the value of an `error` field, or a whole event that is an error.
pub fn parse_error(raw: &str) -> StreamError {
    let word = |value: Option<&Value>| match value {
        Some(Value::String(word)) => Some(short_message(word.clone())),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    // A value of many small ones takes thirty times its bytes.
    if raw.len() > MAX_ERROR_BYTES {
        return StreamError::from_provider("error", raw.chars().take(MAX_MESSAGE_CHARS).collect::<String>());
    }
    match serde_json::from_str(raw) {
        Ok(Value::String(message)) => StreamError::from_provider("error", message),
        Ok(Value::Object(fields)) => {
            if let Some(inner @ (Value::Object(_) | Value::String(_))) = fields.get("error") {
                return parse_error(&inner.to_string());
            }
            let code = word(fields.get("code"));
            let kind = word(fields.get("type")).or_else(|| code.clone()).unwrap_or_else(|| "error".into());
            let kind = StreamErrorKind::Provider(kind);
            let message = word(fields.get("message")).unwrap_or_else(|| raw.to_owned());
            StreamError { code, ..StreamError::new(kind, message) }
        }
        _ => StreamError::from_provider("error", raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_found_in_every_shape() {
        let full = |kind: &str, code: Option<&str>| StreamError {
            kind: StreamErrorKind::Provider(kind.into()),
            code: code.map(Into::into),
            message: "no".into(),
        };
        assert_eq!(
            parse_error(r#"{"type":"overloaded_error","message":"no"}"#),
            full("overloaded_error", None)
        );
        assert_eq!(
            parse_error(r#"{"type":"error","error":{"type":"api_error","message":"no"}}"#),
            full("api_error", None)
        );
        assert_eq!(parse_error(r#"{"message":"no","type":null,"code":429}"#), full("429", Some("429")));
        assert_eq!(parse_error(r#"{"error":"no"}"#), full("error", None));
        assert_eq!(parse_error(r#""no""#), full("error", None));
        assert_eq!(parse_error("no"), full("error", None));
    }
}

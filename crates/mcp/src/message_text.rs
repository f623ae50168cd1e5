//! [`read_messages`]: messages of the protocol, also from servers that do not quite write JSON.
//!
//! Python writes `NaN`, JavaScript halves of characters, and some servers nest deeper than a reader goes. An
//! answer that is skipped would be waited for until its time is over. So here such values are replaced, and
//! what cannot be read at all becomes an error for the request that it answers.

use std::borrow::Cow;

use rmcp::RoleClient;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Map, Value, json};

/// How deep values may be; what is deeper becomes null. The reader of JSON goes to 128.
const MAX_DEPTH: usize = 100;

/// The longest number that is kept, in characters.
const MAX_NUMBER: usize = 300;

type Message = RxJsonRpcMessage<RoleClient>;

/// The messages of a text: one, or several in a list. None if it holds no message.
pub(crate) fn read_messages(text: &[u8]) -> Option<Vec<Message>> {
    if let Ok(message) = serde_json::from_slice(text) {
        return Some(vec![message]);
    }
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(_) => serde_json::from_str(&repair(&String::from_utf8_lossy(text))).ok()?,
    };
    let listed = match value {
        Value::Array(listed) => listed,
        value => vec![value],
    };
    let messages: Vec<Message> = listed.into_iter().filter_map(read_message).collect();
    (!messages.is_empty()).then_some(messages)
}

/// A message that may be of odd form.
fn read_message(value: Value) -> Option<Message> {
    let Value::Object(mut fields) = value else { return None };
    fields.insert("jsonrpc".into(), "2.0".into());
    if fields.contains_key("method") {
        return serde_json::from_value(Value::Object(fields)).ok();
    }
    let id: RequestId = serde_json::from_value(fields.get("id")?.clone()).ok()?;
    if let Some(error) = fields.remove("error").filter(|error| !error.is_null()) {
        fields.remove("result");
        fields.insert("error".into(), plain_error(&error));
    } else {
        fields.remove("error");
        fields.get("result")?;
    }
    let read = serde_json::from_value(Value::Object(fields));
    Some(read.unwrap_or_else(|error| {
        let words = format!("an answer that cannot be read ({error})");
        JsonRpcMessage::error(ErrorData::internal_error(words, None), Some(id))
    }))
}

/// An error as the protocol has it: a number and a text.
fn plain_error(error: &Value) -> Value {
    let code = error["code"].as_i64().or_else(|| whole_number(error["code"].as_f64()?));
    let code = code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-32603);
    let text = error.as_str().or_else(|| error["message"].as_str());
    let mut plain = Map::new();
    plain.insert("code".into(), code.into());
    plain.insert("message".into(), text.map_or_else(|| error.to_string(), str::to_owned).into());
    if let Some(data) = error.get("data") {
        plain.insert("data".into(), data.clone());
    }
    json!(plain)
}

#[expect(clippy::cast_possible_truncation, reason = "it is checked that nothing is lost")]
fn whole_number(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 1e15).then_some(number as i64)
}

/// The text as JSON, if all that keeps it from being JSON are values that JSON does not have.
fn repair(text: &str) -> String {
    let mut rest = text.trim_start_matches('\u{feff}');
    let (mut json, mut depth) = (String::with_capacity(rest.len()), 0_usize);
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '"' => {
                let length = string_length(rest);
                if depth <= MAX_DEPTH {
                    json.push_str(&without_halves(&rest[..length]));
                }
                length
            }
            '[' | '{' => {
                depth += 1;
                if depth <= MAX_DEPTH {
                    json.push(next);
                } else if depth == MAX_DEPTH + 1 {
                    json.push_str("null");
                }
                1
            }
            ']' | '}' => {
                if depth <= MAX_DEPTH {
                    json.push(next);
                }
                depth = depth.saturating_sub(1);
                1
            }
            c if is_word(c) => {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                if depth <= MAX_DEPTH {
                    json.push_str(known_word(&rest[..length]));
                }
                length
            }
            c => {
                if depth <= MAX_DEPTH {
                    json.push(c);
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    json
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')
}

/// The word, if JSON has it, and null otherwise.
fn known_word(word: &str) -> &str {
    let is_number = || {
        word.len() <= MAX_NUMBER
            && word.starts_with(|c: char| c.is_ascii_digit() || c == '-')
            && word.parse().is_ok_and(f64::is_finite)
    };
    if matches!(word, "true" | "false" | "null") || is_number() { word } else { "null" }
}

/// The bytes of the string that a text begins with, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A string of JSON without escapes that stand for half a character, and without raw control characters.
fn without_halves(string: &str) -> Cow<'_, str> {
    if !string.contains("\\u") && !string.contains(|c: char| c < ' ') {
        return Cow::Borrowed(string);
    }
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut kept, mut rest) = (String::with_capacity(string.len()), string);
    while let Some(next) = rest.chars().next() {
        let length = match (next, unit(rest)) {
            ('\\', Some(0xD800..=0xDBFF)) => match rest.get(6..).and_then(unit) {
                Some(0xDC00..=0xDFFF) => 12,
                _ => 0,
            },
            ('\\', Some(0xDC00..=0xDFFF)) => 0,
            ('\\', Some(_)) => 6,
            ('\\', None) => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (c, _) if c < ' ' => {
                kept.push(' ');
                rest = &rest[1..];
                continue;
            }
            (c, _) => c.len_utf8(),
        };
        if length == 0 {
            kept.push('\u{fffd}');
            rest = &rest[6..];
        } else {
            kept.push_str(&rest[..length]);
            rest = &rest[length..];
        }
    }
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages, as JSON.
    fn read(text: &[u8]) -> Value {
        json!(read_messages(text).unwrap_or_default())
    }

    /// The answer to request 1 with this text as a part of it.
    fn answer(part: &str) -> Value {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{part},"b":"c"}}}}"#);
        read(text.as_bytes())[0]["result"]["a"].clone()
    }

    #[test]
    fn values_that_json_does_not_have_cost_no_others() {
        assert_eq!(
            answer("[NaN, Infinity, -Infinity, 1e400, undefined, 1.5]"),
            json!([null, null, null, null, null, 1.5])
        );
        assert_eq!(
            answer(r#""a\ud83d b\ude00 \ud83d\ude00 \u00fc \\ud83d""#),
            "a\u{fffd} b\u{fffd} 😀 ü \\ud83d"
        );
        assert_eq!(answer("\"one\ntwo\u{1}\", \"d\": NaN"), "one two ");
        let nines = "9".repeat(400);
        assert_eq!(answer(&format!("[{nines}]")), json!([null]));
        assert_eq!(
            read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}")[0]["result"]["a"],
            "\u{fffd}"
        );
        assert_eq!(
            read("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":2}}".as_bytes())[0]["result"]["a"],
            2
        );
    }

    #[test]
    fn what_is_too_deep_is_nothing() {
        let deep = |depth: usize| "[".repeat(depth) + "\"]\\\"\"" + &"]".repeat(depth);
        let mut value = answer(&deep(100_000));
        let mut depth = 0;
        while let Some(inner) = value.get(0) {
            value = inner.clone();
            depth += 1;
        }
        assert_eq!((value, depth), (Value::Null, MAX_DEPTH - 2));
        // What comes after it is there.
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"a":{},"b":"c"}}}}"#, deep(1000));
        assert_eq!(read(text.as_bytes())[0]["result"]["b"], "c");
    }

    #[test]
    fn an_answer_of_odd_form_is_an_answer_to_its_request() {
        let error = |text: &str| read(text.as_bytes())[0]["error"]["message"].clone();
        assert_eq!(error(r#"{"id":1,"error":"no"}"#), "no");
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":1,"error":{"code":"E1","message":"no"}}"#), "no");
        assert_eq!(
            error(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-3e0,"message":"no"},"result":{}}"#),
            "no"
        );
        assert_eq!(error(r#"{"jsonrpc":"2.0","id":1,"error":{"text":"no"}}"#), r#"{"text":"no"}"#);
        let two = r#"[{"jsonrpc":"2.0","id":1,"result":{"a":1}},{"jsonrpc":"2.0","id":2,"result":{"a":2}}]"#;
        assert_eq!(read(two.as_bytes()).as_array().map(Vec::len), Some(2));
        assert_eq!(read(br#"{"id":1,"result":{"a":1},"error":null}"#)[0]["result"]["a"], 1);
    }

    #[test]
    fn other_texts_are_no_messages() {
        for text in [
            "",
            "Hello!",
            "{}",
            "[]",
            "3",
            r#"{"id":1}"#,
            r#"{"id":{},"result":{}}"#,
            "{\"id\":1,\"result\":",
            "\"",
            "[[[[",
        ] {
            assert_eq!(read(text.as_bytes()), json!([]), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_stops_the_reader(text in r#"([\[\]{}",:0-9NaN\\ud83 -]|\\u[d8][0-9a-f]{3}|ü){0,60}"#) {
            let _ = read_messages(text.as_bytes());
            let _ = without_halves(&text);
        }
    }
}

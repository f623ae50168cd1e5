//! [`parse_jsonc`]: JSON with comments and commas at the end of lists, as editors write their settings.

use serde_json::Value;

/// The value of a text in JSON that may have comments and trailing commas. A text without any value, as
/// of an empty file, is null.
pub(super) fn parse_jsonc(text: &str) -> serde_json::Result<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let plain = plain_json(text);
    if plain.trim().is_empty() { Ok(Value::Null) } else { serde_json::from_str(&plain) }
}

/// The text without comments, and without commas that nothing follows. Strings stay as they are.
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // Where the last comma is, if only blanks and comments have followed it.
    let mut comma = None;
    // The last character that is neither blank nor of a comment.
    let mut last = '[';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                let length = rest[2..].find("*/").map_or(rest.len(), |end| end + 4);
                // The number of a line in an error stays right.
                let lines = rest[..length].chars().filter(|c| *c == '\n');
                plain.push(' ');
                plain.extend(lines);
                rest = &rest[length..];
                continue;
            }
            _ => c.len_utf8(),
        };
        if matches!(c, '}' | ']')
            && let Some(comma) = comma
        {
            plain.replace_range(comma..=comma, " ");
        }
        comma = match c {
            // A comma that no value stands before is a mistake.
            ',' if !matches!(last, '[' | '{' | ',') => Some(plain.len()),
            c if c.is_whitespace() => comma,
            _ => None,
        };
        if !c.is_whitespace() {
            last = c;
        }
        plain.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    plain
}

/// The bytes of a string at the start of a text, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_are_left_out() {
        let text =
            "\u{feff}// servers\n{ /* all */ \"a\": [1, 2, /* x */ ], \"b\": {\"c\": 3, // last\n }, }\n";
        assert_eq!(parse_jsonc(text).ok(), Some(json!({"a": [1, 2], "b": {"c": 3}})));
    }

    #[test]
    fn strings_stay_as_they_are() {
        let text = r#"{"url": "https://a.b/*c*/", "quote": "\" // , ]", "path": "C:\\", /**/ }"#;
        let expected = json!({"url": "https://a.b/*c*/", "quote": "\" // , ]", "path": "C:\\"});
        assert_eq!(parse_jsonc(text).ok(), Some(expected));
    }

    #[test]
    fn what_is_no_json_is_an_error_with_its_line() {
        for text in ["", "// only", " /* all */ "] {
            assert_eq!(parse_jsonc(text).ok(), Some(Value::Null), "{text}");
        }
        let error = parse_jsonc("{ // one\n/* two\nthree */ \"a\" 1}").expect_err("no colon");
        assert_eq!(error.to_string(), "expected `:` at line 3 column 6");
        for text in ["{", "\"open", "{,}", "[,]", "[1,,]", "{\"a\" /* open", "/", "{\"a\": 1 2}"] {
            assert!(parse_jsonc(text).is_err(), "{text}");
        }
    }
}

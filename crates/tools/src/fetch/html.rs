//! [`tokens`]: HTML as a series of tags and texts.
//!
//! Every byte is looked at a fixed number of times, whatever the page holds, and no tree is built,
//! so a hostile page can neither take long nor nest too deep.

use std::borrow::Cow;

/// A tag or a text of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text, with entities such as `&amp;` still in it.
    Text(&'a str),
    /// A start tag: the element's name in lower case, and its attributes.
    Open(String, Attributes<'a>),
    /// An end tag: the element's name in lower case.
    Close(String),
}

/// The attributes of a start tag, not parsed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attributes<'a>(&'a str);

/// Elements whose content is not HTML.
const RAW_ELEMENTS: [&str; 8] =
    ["script", "style", "title", "textarea", "iframe", "noembed", "noframes", "xmp"];

/// Iterates over the tags and texts of a page.
pub(super) struct Tokens<'a> {
    rest: &'a str,
    /// The name of a raw element that was just opened: all up to its end tag is text.
    raw: Option<String>,
}

pub(super) fn tokens(html: &str) -> Tokens<'_> {
    Tokens { rest: html, raw: None }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(name) = self.raw.take() {
            let text = self.take(find_raw_end(self.rest, &name));
            if !text.is_empty() {
                return Some(Token::Text(text));
            }
        }
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let text = self.take(find_tag_start(self.rest));
            if !text.is_empty() {
                return Some(Token::Text(text));
            }
            if let Some(token) = self.take_tag() {
                return Some(token);
            }
        }
    }
}

impl<'a> Tokens<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Takes the tag that begins here. Comments and declarations are skipped, as `None`.
    fn take_tag(&mut self) -> Option<Token<'a>> {
        if self.rest.starts_with("<!--") {
            let end = self.rest[4..].find("-->").map_or(self.rest.len(), |end| 4 + end + 3);
            self.take(end);
            return None;
        }
        let tag = self.take(find_tag_end(self.rest));
        let inner = tag.trim_start_matches('<').trim_end_matches('>');
        if inner.starts_with(['!', '?']) {
            return None;
        }
        let (name, closes) = match inner.strip_prefix('/') {
            Some(name) => (name, true),
            None => (inner, false),
        };
        let end = name.find(|char: char| char.is_ascii_whitespace() || char == '/').unwrap_or(name.len());
        let (name, attributes) = name.split_at(end);
        let name = name.to_ascii_lowercase();
        if closes {
            return Some(Token::Close(name));
        }
        if RAW_ELEMENTS.contains(&&*name) {
            self.raw = Some(name.clone());
        }
        Some(Token::Open(name, Attributes(attributes)))
    }
}

/// The offset of the first tag: `<` before a letter, `/`, `!` or `?`.
fn find_tag_start(text: &str) -> usize {
    let begins = |(at, _): &(usize, &str)| match text.as_bytes().get(at + 1) {
        Some(b'/') => text.as_bytes().get(at + 2).is_some_and(u8::is_ascii_alphabetic),
        Some(byte) => byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'?'),
        None => false,
    };
    text.match_indices('<').find(begins).map_or(text.len(), |(at, _)| at)
}

/// The offset after the first `>` outside of quotes.
fn find_tag_end(tag: &str) -> usize {
    let mut quote = None;
    let mut before = b' ';
    for (at, &byte) in tag.as_bytes().iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            // A quote counts only where a value begins.
            (None, b'"' | b'\'') if before == b'=' => quote = Some(byte),
            (Some(open), byte) if byte == open => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    tag.len()
}

/// The offset of the end tag of a raw element.
fn find_raw_end(text: &str, name: &str) -> usize {
    let ends = |at: usize| {
        let after = &text.as_bytes()[at + 2..];
        after.len() >= name.len() && after[..name.len()].eq_ignore_ascii_case(name.as_bytes())
    };
    text.match_indices("</").map(|(at, _)| at).find(|&at| ends(at)).unwrap_or(text.len())
}

impl<'a> Attributes<'a> {
    /// The value of an attribute, entities decoded. `None` where the tag does not have it.
    pub fn get(&self, wanted: &str) -> Option<Cow<'a, str>> {
        let mut rest = self.0;
        loop {
            rest = rest.trim_start_matches(|char: char| char.is_ascii_whitespace() || char == '/');
            if rest.is_empty() {
                return None;
            }
            let end = rest[1..].find(|char: char| char.is_ascii_whitespace() || "=/".contains(char));
            let (name, after) = rest.split_at(end.map_or(rest.len(), |end| end + 1));
            let (value, after) = match after.trim_start().strip_prefix('=') {
                Some(after) => split_value(after.trim_start()),
                None => ("", after),
            };
            if name.eq_ignore_ascii_case(wanted) {
                // `?a=1&copy=2` is an address, not a sign.
                return Some(htmlize::unescape_attribute(value));
            }
            rest = after;
        }
    }
}

/// Splits an attribute's value, quoted or not, from what follows it.
fn split_value(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split_once(quote).unwrap_or((inner, ""));
        }
    }
    text.split_at(text.find(|char: char| char.is_ascii_whitespace()).unwrap_or(text.len()))
}

/// Replaces entities by the characters they stand for; unknown ones stay as they are.
pub(super) fn decode_entities(text: &str) -> Cow<'_, str> {
    htmlize::unescape(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_and_texts_are_told_apart() {
        let page = "<!DOCTYPE html><P CLASS='a>b' id=x>1 < 2<br/><!-- <b> --><script>if (a</b) x</SCRIPT></p> &amp; a</";
        let shown: Vec<String> = tokens(page)
            .map(|token| match token {
                Token::Text(text) => text.to_owned(),
                Token::Open(name, attributes) => format!("+{name} {:?}", attributes.get("class")),
                Token::Close(name) => format!("-{name}"),
            })
            .collect();
        let expected = [
            "+p Some(\"a>b\")",
            "1 < 2",
            "+br None",
            "+script None",
            "if (a</b) x",
            "-script",
            "-p",
            " &amp; a</",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn entities_are_decoded_and_what_is_none_stays() {
        assert_eq!(
            decode_entities("a &lt;b&gt; &auml;&yuml;&nbsp;&#228;&#xE4; &hellip; &Ropf;&NotEqualTilde;"),
            "a <b> äÿ\u{a0}ää … ℝ≂\u{338}"
        );
        assert_eq!(decode_entities("R&D &unknown; &; &copy 2026"), "R&D &unknown; &; © 2026");
        assert_eq!(decode_entities("&#99999999;"), "\u{fffd}", "as the standard demands");
    }

    #[test]
    fn attributes_are_found_whatever_their_quotes() {
        let page = "<a data-x href = \"a&amp;b&copy=c\" title='t' rel=nofollow checked>";
        let Some(Token::Open(_, attributes)) = tokens(page).next() else { panic!() };
        let get = |name| attributes.get(name).map(Cow::into_owned);
        assert_eq!(get("href").as_deref(), Some("a&b&copy=c"));
        assert_eq!(get("title").as_deref(), Some("t"));
        assert_eq!(get("REL").as_deref(), Some("nofollow"));
        assert_eq!(get("checked").as_deref(), Some(""));
        assert_eq!(get("x"), None);
    }

    proptest! {
        #[test]
        fn any_text_comes_to_an_end(page in "[a-b<>/!?='\"& ;-]{0,80}") {
            let mut read = 0;
            for token in tokens(&page) {
                read += match &token {
                    Token::Text(text) => text.len(),
                    Token::Open(name, attributes) => {
                        prop_assert!(attributes.get("b").is_none_or(|value| value.len() <= page.len()));
                        name.len()
                    }
                    Token::Close(name) => name.len(),
                };
                prop_assert!(!matches!(token, Token::Text("")), "nothing is read twice or for nothing");
            }
            prop_assert!(read <= page.len(), "{} bytes of {:?}", read, page);
        }
    }
}

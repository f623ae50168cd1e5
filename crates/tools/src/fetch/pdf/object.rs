//! The objects of a PDF file, and a parser that survives whatever it is given.

use std::collections::BTreeMap;

/// How deep arrays and dictionaries may be nested.
const MAX_DEPTH: usize = 50;

pub type Dictionary = BTreeMap<String, Object>;

#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    Null,
    Number(f64),
    Name(String),
    Text(Vec<u8>),
    Array(Vec<Object>),
    Dictionary(Dictionary),
    /// The number of another object.
    Reference(u32),
    /// A word of a content stream, such as `Tj`; in files also `true`, `endobj` and the like.
    Operator(String),
}

impl Object {
    pub fn number(&self) -> Option<f64> {
        if let Object::Number(number) = self { Some(*number) } else { None }
    }

    pub fn name(&self) -> Option<&str> {
        if let Object::Name(name) = self { Some(name) } else { None }
    }
}

/// Reads objects one after the other.
pub struct Parser<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Parser<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Parser { bytes, at }
    }

    /// The next object; none at the end.
    pub fn next_object(&mut self) -> Option<Object> {
        self.object(0)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }

    pub fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'%' => {
                    let rest = self.rest();
                    self.at += rest.iter().position(|&byte| is_line_end(byte)).unwrap_or(rest.len());
                }
                byte if is_space(byte) => self.at += 1,
                _ => return,
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Object> {
        self.skip_space();
        let first = self.peek()?;
        self.at += 1;
        Some(match first {
            b'/' => Object::Name(self.name()),
            b'(' => Object::Text(self.literal()),
            b'<' if self.peek() == Some(b'<') => {
                self.at += 1;
                self.dictionary(depth)?
            }
            b'<' => Object::Text(self.hexadecimal()),
            b'[' => {
                let mut items = Vec::new();
                if depth >= MAX_DEPTH {
                    return Some(Object::Null);
                }
                loop {
                    self.skip_space();
                    if self.peek()? == b']' {
                        self.at += 1;
                        break;
                    }
                    items.push(self.object(depth + 1)?);
                }
                Object::Array(items)
            }
            // What closes nothing is passed over.
            b']' | b'>' | b')' | b'{' | b'}' => Object::Null,
            _ => {
                self.at -= 1;
                self.word_or_number()
            }
        })
    }

    fn dictionary(&mut self, depth: usize) -> Option<Object> {
        let mut entries = Dictionary::new();
        if depth >= MAX_DEPTH {
            return Some(Object::Null);
        }
        loop {
            self.skip_space();
            if self.rest().starts_with(b">>") {
                self.at += 2;
                break;
            }
            match self.object(depth + 1)? {
                Object::Name(name) => {
                    let value = self.object(depth + 1)?;
                    entries.insert(name, value);
                }
                // `endobj` in the middle: the dictionary is broken off.
                Object::Operator(_) => break,
                _ => {}
            }
        }
        Some(Object::Dictionary(entries))
    }

    fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| is_space(byte) || is_delimiter(byte)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn name(&mut self) -> String {
        let word = self.word();
        let mut name = Vec::with_capacity(word.len());
        let mut at = 0;
        while at < word.len() {
            let digits = word.get(at + 1..at + 3).filter(|_| word[at] == b'#');
            match digits.and_then(|digits| Some(hex_digit(digits[0])? * 16 + hex_digit(digits[1])?)) {
                Some(byte) => {
                    name.push(byte);
                    at += 3;
                }
                None => {
                    name.push(word[at]);
                    at += 1;
                }
            }
        }
        String::from_utf8_lossy(&name).into_owned()
    }

    fn literal(&mut self) -> Vec<u8> {
        let (mut text, mut open) = (Vec::new(), 1);
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => open += 1,
                b')' => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                b'\\' => {
                    self.escape(&mut text);
                    continue;
                }
                _ => {}
            }
            text.push(byte);
        }
        text
    }

    fn escape(&mut self, text: &mut Vec<u8>) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        match byte {
            b'n' => text.push(b'\n'),
            b'r' => text.push(b'\r'),
            b't' => text.push(b'\t'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'\r' if self.peek() == Some(b'\n') => self.at += 1,
            b'\r' | b'\n' => {}
            b'0'..=b'7' => {
                let mut code = u32::from(byte - b'0');
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = self.peek() else { break };
                    code = code * 8 + u32::from(digit - b'0');
                    self.at += 1;
                }
                text.push((code & 0xFF) as u8);
            }
            byte => text.push(byte),
        }
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        let rest = self.rest();
        let end = memchr::memchr(b'>', rest).unwrap_or(rest.len());
        self.at = (self.at + end + 1).min(self.bytes.len());
        let digits: Vec<u8> = rest[..end].iter().filter_map(|&byte| hex_digit(byte)).collect();
        digits.chunks(2).map(|pair| pair[0] * 16 + pair.get(1).copied().unwrap_or(0)).collect()
    }

    fn word_or_number(&mut self) -> Object {
        let word = self.word();
        if word.is_empty() {
            self.at += 1;
            return Object::Null;
        }
        let text = String::from_utf8_lossy(word);
        let Ok(number) = text.parse::<f64>() else { return Object::Operator(text.into_owned()) };
        if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            return Object::Operator(text.into_owned());
        }
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
        match is_whole.then(|| self.reference_after(&text)).flatten() {
            Some(reference) => reference,
            None => Object::Number(number),
        }
    }

    /// `12 0 R`, of which the 12 was read.
    fn reference_after(&mut self, number: &str) -> Option<Object> {
        let number: u32 = number.parse().ok()?;
        let mut ahead = Parser::new(self.bytes, self.at);
        ahead.skip_space();
        let generation = ahead.word();
        if generation.is_empty() || generation.len() > 5 || !generation.iter().all(u8::is_ascii_digit) {
            return None;
        }
        ahead.skip_space();
        if ahead.word() != b"R" {
            return None;
        }
        self.at = ahead.at;
        Some(Object::Reference(number))
    }
}

pub fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | 9 | 10 | 12 | 13 | 32)
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn is_delimiter(byte: u8) -> bool {
    b"()<>[]{}/%".contains(&byte)
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Object {
        Parser::new(text.as_bytes(), 0).next_object().unwrap()
    }

    #[test]
    fn objects_of_all_kinds_are_read() {
        let object = parse("<< /A#20B [1 -2.5 12 0 R (a\\(b\\)\\101) <48 6> true] % note\n /C << >> >>");
        let text = |text: &str| Object::Text(text.as_bytes().to_vec());
        let items = vec![
            Object::Number(1.0),
            Object::Number(-2.5),
            Object::Reference(12),
            text("a(b)A"),
            text("H`"),
            Object::Operator("true".into()),
        ];
        let expected = [
            ("A B".to_owned(), Object::Array(items)),
            ("C".to_owned(), Object::Dictionary(Dictionary::new())),
        ];
        assert_eq!(object, Object::Dictionary(expected.into()));
    }

    #[test]
    fn what_is_broken_off_or_nested_without_end_ends() {
        for text in ["<< /A", "[1 2", "(never", "<41", "/", "12 0", ">>", "]", "<< /A endobj"] {
            let mut parser = Parser::new(text.as_bytes(), 0);
            while parser.next_object().is_some() {}
        }
        let deep = "[".repeat(100_000);
        let mut parser = Parser::new(deep.as_bytes(), 0);
        while parser.next_object().is_some() {}
    }
}

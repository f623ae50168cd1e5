//! Reads a line of code into tokens.

use super::Highlighter;
use super::languages::{Form, StringRule};
use crate::theme::CodeRole;

/// A part of a line, and what it is.
pub(super) type Token<'a> = (&'a str, CodeRole);

/// What a line begins in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LexerState {
    /// Code.
    Code,
    /// A comment that goes on until these characters.
    Comment(&'static str),
    /// A string of several lines.
    String(&'static StringRule),
    /// Between `<` and `>`.
    Tag,
}

/// The tokens of a line; the state goes on behind it.
pub(super) fn read_line<'a>(highlighter: &mut Highlighter, line: &'a str) -> Vec<Token<'a>> {
    if highlighter.language.form == Form::Diff {
        return vec![(line, diff_role(line))];
    }
    let mut reader = LineReader { line, at: 0, tokens: Vec::new(), highlighter };
    reader.read();
    reader.tokens
}

fn diff_role(line: &str) -> CodeRole {
    match line {
        _ if ["+++", "---", "@@", "diff ", "index "].iter().any(|head| line.starts_with(head)) => {
            CodeRole::Key
        }
        _ if line.starts_with('+') => CodeRole::Added,
        _ if line.starts_with('-') => CodeRole::Removed,
        _ => CodeRole::Plain,
    }
}

struct LineReader<'a, 'h> {
    line: &'a str,
    at: usize,
    tokens: Vec<Token<'a>>,
    highlighter: &'h mut Highlighter,
}

impl<'a> LineReader<'a, '_> {
    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    /// Adds the next `length` bytes, to the last token if it has the same role.
    fn take(&mut self, length: usize, role: CodeRole) {
        if length == 0 {
            return;
        }
        let start = self.at;
        self.at += length;
        let is_same = self.tokens.last().is_some_and(|(_, last)| *last == role);
        let from = if is_same { start - self.tokens.pop().map_or(0, |(text, _)| text.len()) } else { start };
        self.tokens.push((&self.line[from..self.at], role));
    }

    fn read(&mut self) {
        self.read_line_start();
        while self.at < self.line.len() {
            match self.highlighter.state {
                LexerState::Comment(close) => self.read_comment(close, 0),
                LexerState::String(rule) => self.read_string(rule, 0),
                LexerState::Tag => self.read_tag(),
                LexerState::Code => self.read_code(),
            }
        }
        if let LexerState::String(rule) = self.highlighter.state
            && !rule.is_multiline
        {
            self.highlighter.state = LexerState::Code;
        }
    }

    /// What only the beginning of a line can hold: keys, sections, preprocessor lines.
    fn read_line_start(&mut self) {
        if self.highlighter.state != LexerState::Code {
            return;
        }
        let indent = self.line.len() - self.line.trim_start().len();
        let text = &self.line[indent..];
        match self.highlighter.language.form {
            Form::Preprocessor if text.starts_with('#') => {
                self.take(self.line.len(), CodeRole::Key);
            }
            Form::Yaml => {
                let dash = text.len() - text.trim_start_matches(['-', ' ']).len();
                let key = &text[dash..];
                let end = key.find(": ").or_else(|| key.ends_with(':').then(|| key.len() - 1));
                if let Some(end) = end.filter(|end| !key[..*end].contains(['"', '\'', '#', '{'])) {
                    self.take(indent + dash, CodeRole::Plain);
                    self.take(end, CodeRole::Key);
                }
            }
            Form::Ini if text.starts_with('[') => {
                let end = text.rfind(']').map_or(text.len(), |end| end + 1);
                self.take(indent, CodeRole::Plain);
                self.take(end, CodeRole::Keyword);
            }
            Form::Ini => {
                let end = text.find('=').map(|end| text[..end].trim_end().len());
                if let Some(end) = end.filter(|end| !text[..*end].contains(['#', '"'])) {
                    self.take(indent, CodeRole::Plain);
                    self.take(end, CodeRole::Key);
                }
            }
            _ => {}
        }
    }

    fn read_comment(&mut self, close: &'static str, opened: usize) {
        match self.rest()[opened..].find(close) {
            Some(end) => {
                self.highlighter.state = LexerState::Code;
                self.take(opened + end + close.len(), CodeRole::Comment);
            }
            None => {
                self.highlighter.state = LexerState::Comment(close);
                self.take(self.rest().len(), CodeRole::Comment);
            }
        }
    }

    fn read_string(&mut self, rule: &'static StringRule, opened: usize) {
        let text = self.rest();
        let mut at = opened;
        while at < text.len() {
            if rule.has_escapes && text[at..].starts_with('\\') {
                at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8);
            } else if text[at..].starts_with(rule.close) {
                at += rule.close.len();
                self.highlighter.state = LexerState::Code;
                let role = self.string_role(&text[at..]);
                self.take(at, role);
                return;
            } else {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        self.highlighter.state = LexerState::String(rule);
        self.take(text.len(), CodeRole::String);
    }

    /// In JSON, a string before a colon is a key.
    fn string_role(&self, after: &str) -> CodeRole {
        let is_key = self.highlighter.language.form == Form::Json && after.trim_start().starts_with(':');
        if is_key { CodeRole::Key } else { CodeRole::String }
    }

    fn read_code(&mut self) {
        let text = self.rest();
        let language = self.highlighter.language;
        let before = self.line[..self.at].chars().next_back();
        let opens = |open: &&str| text.starts_with(*open);
        let is_comment = language.line_comments.iter().any(|open| {
            // In shells and YAML, `#` within a word is not a comment.
            text.starts_with(open) && (*open != "#" || before.is_none_or(|c| c.is_whitespace() || c == ';'))
        });
        if is_comment {
            return self.take(text.len(), CodeRole::Comment);
        }
        if let Some((open, close)) = language.block_comments.iter().find(|(open, _)| opens(open)) {
            return self.read_comment(close, open.len());
        }
        let is_word_before = before.is_some_and(is_word_char);
        let is_string = |rule: &&StringRule| {
            opens(&rule.open) && (!is_word_before || !rule.open.starts_with(char::is_alphabetic))
        };
        if let Some(rule) = language.strings.iter().find(is_string) {
            return self.read_string(rule, rule.open.len());
        }
        let first = text.chars().next().unwrap_or(' ');
        match first {
            '\'' if language.has_char_literals => {
                let length = char_literal(text);
                self.take(length.unwrap_or(1), length.map_or(CodeRole::Plain, |_| CodeRole::String));
            }
            '<' if language.form == Form::Markup => {
                self.take(1, CodeRole::Plain);
                let slash = usize::from(self.rest().starts_with('/'));
                self.take(slash, CodeRole::Plain);
                self.take(
                    word_length(self.rest(), |c| is_word_char(c) || matches!(c, '-' | ':' | '!' | '?')),
                    CodeRole::Keyword,
                );
                self.highlighter.state = LexerState::Tag;
            }
            '$' | '@' if language.sigils.contains(first) => {
                let length = variable_length(text);
                self.take(length.max(1), if length > 1 { CodeRole::Key } else { CodeRole::Plain });
            }
            c if c.is_ascii_digit() && !is_word_before && language.form != Form::Markup => {
                let length = number_length(text);
                self.take(length, CodeRole::Constant);
            }
            c if is_word_char(c) => {
                let length =
                    word_length(text, |c| is_word_char(c) || (language.form == Form::Css && c == '-'));
                let role = self.word_role(&text[..length], &text[length..]);
                self.take(length, role);
            }
            c => self.take(c.len_utf8(), CodeRole::Plain),
        }
    }

    fn word_role(&self, word: &str, after: &str) -> CodeRole {
        let Highlighter { language, keywords, constants, .. } = &*self.highlighter;
        let folded;
        let word = if language.ignores_case {
            folded = word.to_ascii_lowercase();
            folded.as_str()
        } else {
            word
        };
        match language.form {
            Form::Markup => CodeRole::Plain,
            Form::Css if after.starts_with(": ") || after == ":" => CodeRole::Key,
            _ if keywords.contains(word) => CodeRole::Keyword,
            _ if constants.contains(word) => CodeRole::Constant,
            _ => CodeRole::Plain,
        }
    }

    /// Attributes and their values, up to `>`.
    fn read_tag(&mut self) {
        let text = self.rest();
        let first = text.chars().next().unwrap_or(' ');
        match first {
            '>' => {
                self.highlighter.state = LexerState::Code;
                self.take(1, CodeRole::Plain);
            }
            '"' | '\'' => {
                let end = text[1..].find(first).map_or(text.len(), |end| end + 2);
                self.take(end, CodeRole::String);
            }
            c if is_word_char(c) => {
                let length = word_length(text, |c| is_word_char(c) || matches!(c, '-' | ':' | '.'));
                let is_value = self.line[..self.at].ends_with('=');
                self.take(length, if is_value { CodeRole::Plain } else { CodeRole::Key });
            }
            c => self.take(c.len_utf8(), CodeRole::Plain),
        }
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_length(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// `1_000`, `0xff`, `1.5e-3`: digits, letters, and a point before a digit.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let next = bytes.get(at + 1).copied().unwrap_or(b' ');
        match bytes[at] {
            b'.' if next.is_ascii_digit() => at += 1,
            b'e' | b'E' if matches!(next, b'+' | b'-') && !text.starts_with("0x") => at += 2,
            b'_' => at += 1,
            byte if byte.is_ascii_alphanumeric() => at += 1,
            _ => break,
        }
    }
    at
}

/// `$name`, `${name…}`, `@name.part`.
fn variable_length(text: &str) -> usize {
    if text.starts_with("${") {
        return text.find('}').map_or(text.len(), |end| end + 1);
    }
    let is_part = |c: char| is_word_char(c) || (text.starts_with('@') && c == '.');
    1 + word_length(&text[1..], is_part)
}

/// `'x'` or `'\n'`, but not the lifetime `'a`.
fn char_literal(text: &str) -> Option<usize> {
    let inner = &text[1..];
    if let Some(escaped) = inner.strip_prefix('\\') {
        let skip = escaped.chars().next()?.len_utf8();
        return escaped[skip..].find('\'').filter(|end| *end <= 9).map(|end| 2 + skip + end + 1);
    }
    let c = inner.chars().next().filter(|c| *c != '\'')?;
    inner[c.len_utf8()..].starts_with('\'').then(|| 2 + c.len_utf8())
}

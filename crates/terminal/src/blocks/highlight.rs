//! [`Highlighter`]: the parts of source code, line by line.
//!
//! It reads words, strings, numbers and comments by a table of languages (`languages`), not by a
//! grammar: five styles need no more, a fragment of a file is read as well as the whole, and the
//! state between two lines is small. Its cost is linear in the text, so that no time limit is needed.

mod languages;
mod lexer;

use std::collections::BTreeSet;

use ratatui::text::Span;

use crate::theme::{CodeRole, Theme};
use languages::Language;
use lexer::{LexerState, Token};

/// After so many lines code is shown plain.
pub const MAX_LINES: usize = 2_000;
/// After so many bytes code is shown plain.
pub const MAX_BYTES: usize = 64 * 1024;
/// A line of more bytes is shown plain.
pub const MAX_LINE_BYTES: usize = 1024;

/// Reads the lines of one piece of code, in order.
#[derive(Clone, Debug)]
pub struct Highlighter {
    language: &'static Language,
    keywords: BTreeSet<&'static str>,
    constants: BTreeSet<&'static str>,
    state: LexerState,
    lines: usize,
    bytes: usize,
}

impl Highlighter {
    /// For the language of this name, as it stands after the marks of a fence: `rust`, `ts`, `sh`.
    pub fn for_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        languages::ALL.iter().find(|language| language.names.contains(&name.as_str())).map(Self::new)
    }

    /// For the language of a file, by the end of its name.
    pub fn for_path(path: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
        let extension = name.rsplit_once('.').map_or(name.as_str(), |(_, extension)| extension);
        Self::for_name(extension)
    }

    fn new(language: &'static Language) -> Self {
        Highlighter {
            language,
            keywords: language.keywords.split(' ').collect(),
            constants: language.constants.split(' ').collect(),
            state: LexerState::Code,
            lines: 0,
            bytes: 0,
        }
    }

    /// The parts of the next line. `line` has no line end, and went through
    /// [`escape`](crate::text::escape).
    pub fn spans(&mut self, line: &str, theme: &Theme) -> Vec<Span<'static>> {
        let tokens = self.tokens(line);
        tokens.iter().map(|(text, role)| Span::styled((*text).to_owned(), theme.code(*role))).collect()
    }

    /// The parts of the next line, without neighbours of the same role.
    fn tokens<'a>(&mut self, line: &'a str) -> Vec<Token<'a>> {
        self.lines += 1;
        self.bytes += line.len() + 1;
        let is_over = self.lines > MAX_LINES || self.bytes > MAX_BYTES;
        if is_over || line.len() > MAX_LINE_BYTES {
            self.state = LexerState::Code;
            return vec![(line, CodeRole::Plain)];
        }
        lexer::read_line(self, line)
    }
}

/// A line of code, highlighted if its language is known.
pub fn code_spans(highlighter: Option<&mut Highlighter>, line: &str, theme: &Theme) -> Vec<Span<'static>> {
    match highlighter {
        Some(highlighter) => highlighter.spans(line, theme),
        None => vec![Span::raw(line.to_owned())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts with a style, as `role(text)`.
    fn read(name: &str, code: &str) -> String {
        let mut highlighter = Highlighter::for_name(name).expect("the language is known");
        let mut out = Vec::new();
        for line in code.lines() {
            let tokens = highlighter.tokens(line);
            assert_eq!(tokens.iter().map(|(text, _)| *text).collect::<String>(), line);
            let styled = tokens.iter().filter(|(_, role)| *role != CodeRole::Plain);
            let parts: Vec<String> = styled.map(|(text, role)| format!("{role:?}({text})")).collect();
            out.push(parts.join(" "));
        }
        out.join("\n")
    }

    #[test]
    fn code_of_many_languages() {
        insta::assert_snapshot!(read("rust", "fn f<'a>(x: &'a str) -> char { 'x' } // done\nlet s = r#\"a \"b\" c\"#; /* open\n still */ let n = 0xff_u8;\nlet m = \"two\n lines\"; true"), @r##"
        Keyword(fn) Keyword(str) Keyword(char) String('x') Comment(// done)
        Keyword(let) String(r#"a "b" c"#) Comment(/* open)
        Comment( still */) Keyword(let) Constant(0xff_u8)
        Keyword(let) String("two)
        String( lines") Constant(true)
        "##);
        insta::assert_snapshot!(read("python", "@cache\ndef f(x: int = 3):\n    \"\"\"Doc\n    more\"\"\"\n    return None  # why"), @r#"
        Key(@cache)
        Keyword(def) Constant(3)
        String("""Doc)
        String(    more""")
        Keyword(return) Constant(None) Comment(# why)
        "#);
        insta::assert_snapshot!(read("json", "{\"a\": \"b\", \"n\": [1.5e3, null]}"), @r#"Key("a") String("b") Key("n") Constant(1.5e3) Constant(null)"#);
        insta::assert_snapshot!(read("yaml", "- name: \"x: y\" # c\n  url: http://a#b\n  on: true"), @r#"
        Key(name) String("x: y") Comment(# c)
        Key(url)
        Key(on) Constant(true)
        "#);
        insta::assert_snapshot!(read("toml", "[package]\nname = \"x\" # c\nversion.workspace = true"), @r#"
        Keyword([package])
        Key(name) String("x") Comment(# c)
        Key(version.workspace) Constant(true)
        "#);
        insta::assert_snapshot!(read("sh", "if [ \"$x\" = '1' ]; then echo ${y#a}; fi # c"), @r##"Keyword(if) String("$x") String('1') Keyword(then) Keyword(echo) Key(${y#a}) Keyword(fi) Comment(# c)"##);
        insta::assert_snapshot!(read("html", "<!-- a\nb --><a href=\"x\" id=y>text if</a>"), @r#"
        Comment(<!-- a)
        Comment(b -->) Keyword(a) Key(href) String("x") Key(id) Keyword(a)
        "#);
        insta::assert_snapshot!(read("diff", "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n z"), @r"
        Key(--- a)
        Key(+++ b)
        Key(@@ -1 +1 @@)
        Removed(-x)
        Added(+y)
        ");
        insta::assert_snapshot!(read("sql", "SELECT a FROM t WHERE b = 'it''s' -- c"), @"Keyword(SELECT) Keyword(FROM) Keyword(WHERE) String('it''s') Comment(-- c)");
        insta::assert_snapshot!(read("css", "a:hover { color: #fff; } /* c */"), @"Key(color) Comment(/* c */)");
        insta::assert_snapshot!(read("c", "#include <x.h>\nint f(void) { return 'a'; }"), @"
        Key(#include <x.h>)
        Keyword(int) Keyword(void) Keyword(return) String('a')
        ");
        insta::assert_snapshot!(read("ts", "const s = `a ${b}\nc`; // d"), @"
        Keyword(const) String(`a ${b})
        String(c`) Comment(// d)
        ");
    }

    #[test]
    fn languages_are_found_by_fence_and_by_file() {
        for name in ["Rust", "rs", "py", "tsx", "bash", "c++", "yml", "dockerfile"] {
            assert!(Highlighter::for_name(name).is_some(), "{name}");
        }
        for path in ["src/a.rs", "Makefile", "a/Dockerfile", "x.test.ts", "C:\\a.PY"] {
            assert!(Highlighter::for_path(path).is_some(), "{path}");
        }
        assert!(Highlighter::for_name("").is_none());
        assert!(Highlighter::for_path("notes").is_none());
    }

    #[test]
    fn beyond_the_limits_code_is_plain() {
        let mut highlighter = Highlighter::for_name("rust").expect("known");
        let long = format!("let x = \"{}\";", "a".repeat(MAX_LINE_BYTES));
        assert_eq!(highlighter.tokens(&long), [(long.as_str(), CodeRole::Plain)]);
        assert_eq!(highlighter.tokens("let")[0].1, CodeRole::Keyword);
        for _ in 0..MAX_LINES {
            highlighter.tokens("let");
        }
        assert_eq!(highlighter.tokens("let")[0].1, CodeRole::Plain);
    }

    #[test]
    fn no_name_stands_for_two_languages() {
        let mut seen = BTreeSet::new();
        for name in languages::ALL.iter().flat_map(|language| language.names) {
            assert!(seen.insert(name), "{name}");
        }
    }
}

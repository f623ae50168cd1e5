//! Splitting a call's arguments into words, and filling them into a template.

use std::collections::BTreeSet;

/// The arguments after a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentWords {
    /// The words, with quotes and backslashes resolved.
    pub list: Vec<String>,
    /// The quote that was opened and never closed.
    pub unclosed: Option<char>,
}

/// Splits as a shell splits words: at blanks and line ends, but not within quotes. A backslash
/// takes the next character as it is; between double quotes only before `"` and `\`, between single
/// quotes never. A quote that is not closed takes the rest. Nothing is expanded: no variables, no
/// patterns, no comments.
pub fn split(line: &str) -> ArgumentWords {
    let mut words = ArgumentWords::default();
    let mut word: Option<String> = None; // none between words; '' is a word, too
    let mut quote: Option<char> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.list.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '\\') => word.get_or_insert_default().push(chars.next().unwrap_or('\\')),
            (Some('"'), '\\') => {
                let taken = chars.next_if(|next| matches!(next, '"' | '\\'));
                word.get_or_insert_default().push(taken.unwrap_or('\\'));
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.list.extend(word);
    words.unclosed = quote;
    words
}

/// A template's text with its arguments filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledTemplate {
    /// The text that goes to the model.
    pub text: String,
    /// Arguments that no placeholder used.
    pub unused: Vec<String>,
    /// Numbers of the placeholders that had no argument.
    pub missing: BTreeSet<usize>,
}

/// Fills in the arguments: `$1` to `$9`, `${10}`, `$@` and `$ARGUMENTS` (all, joined by one space),
/// `${@:2}` (from the second), `${@:2:3}` (three from the second). It makes one pass over the body,
/// so arguments are never expanded. Everything else stays as it is, `$$` too.
pub fn fill(body: &str, arguments: &[String]) -> FilledTemplate {
    let mut text = String::with_capacity(body.len());
    let mut used = BTreeSet::new();
    let mut missing = BTreeSet::new();
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let (place, length) = Placeholder::at_start(from);
        match place {
            Placeholder::None => text.push_str(&from[..length]),
            Placeholder::One(index) => {
                if let Some(argument) = index.checked_sub(1).and_then(|index| arguments.get(index)) {
                    text.push_str(argument);
                    used.insert(index - 1);
                } else {
                    missing.insert(index);
                }
            }
            Placeholder::Slice { from, count } => {
                // Counted from 1; 0 is taken as 1.
                let start = from.saturating_sub(1).min(arguments.len());
                let end = start.saturating_add(count).min(arguments.len());
                text.push_str(&arguments[start..end].join(" "));
                used.extend(start..end);
            }
        }
        rest = &from[length..];
    }
    text.push_str(rest);
    let unused = arguments.iter().enumerate().filter(|(index, _)| !used.contains(index));
    FilledTemplate { text, unused: unused.map(|(_, argument)| argument.clone()).collect(), missing }
}

/// What a `$` in a template stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    /// Nothing: it stays in the text.
    None,
    /// The argument of this number, from 1.
    One(usize),
    /// `count` arguments from this one on, from 1.
    Slice { from: usize, count: usize },
}

const ALL: Placeholder = Placeholder::Slice { from: 1, count: usize::MAX };

impl Placeholder {
    /// What the `$` at the start of `text` stands for, and its length in bytes.
    fn at_start(text: &str) -> (Placeholder, usize) {
        let after = &text[1..];
        match after.as_bytes() {
            // Both are consumed: the second does not begin a placeholder.
            [b'$', ..] => (Placeholder::None, 2),
            [b'@', ..] => (ALL, 2),
            [digit @ b'1'..=b'9', ..] => (Placeholder::One(usize::from(digit - b'0')), 2),
            [b'{', ..] => match after.find('}') {
                Some(end) => Placeholder::braced(&after[1..end])
                    .map_or((Placeholder::None, 1), |place| (place, end + 2)),
                None => (Placeholder::None, 1),
            },
            _ => match after.strip_prefix("ARGUMENTS") {
                Some(next) if !next.starts_with(is_word_char) => (ALL, 1 + "ARGUMENTS".len()),
                _ => (Placeholder::None, 1),
            },
        }
    }

    /// The placeholder between `${` and `}`; `None` if there is none of that form.
    fn braced(inside: &str) -> Option<Placeholder> {
        if inside == "@" || inside == "ARGUMENTS" {
            return Some(ALL);
        }
        let Some(slice) = inside.strip_prefix("@:") else {
            return number(inside).filter(|&index| index > 0).map(Placeholder::One);
        };
        let (from, count) = slice.split_once(':').map_or((slice, None), |(from, count)| (from, Some(count)));
        let count = count.map_or(Some(usize::MAX), number)?;
        Some(Placeholder::Slice { from: number(from)?, count })
    }
}

fn is_word_char(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Digits as a number. One that is too large is as good as the largest: nobody types so many
/// arguments.
fn number(digits: &str) -> Option<usize> {
    let all = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    all.then(|| digits.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        split(line).list
    }

    fn filled(body: &str, arguments: &[&str]) -> String {
        fill(body, &arguments.iter().map(ToString::to_string).collect::<Vec<_>>()).text
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        assert_eq!(words("  a\tb\n c  "), ["a", "b", "c"]);
        assert_eq!(words(r#"'a b' "c d" e" f"g"#), ["a b", "c d", "e fg"]);
        assert_eq!(words(r#"'' "" x"#), ["", "", "x"]);
        assert_eq!(words(r#"a\ b \'c \"d \\ "#), ["a b", "'c", "\"d", "\\"]);
        assert_eq!(words(r#""a\"b\\c\n" 'a\'"#), [r#"a"b\c\n"#, r"a\"]);
        assert_eq!(words("über\u{3000}straße"), ["über", "straße"]);
        assert_eq!(words("a\\"), ["a\\"]);
        assert_eq!(words(""), [""; 0]);
    }

    #[test]
    fn an_unclosed_quote_takes_the_rest() {
        let expected = ArgumentWords { list: vec!["a".into(), "b  c 'd".into()], unclosed: Some('"') };
        assert_eq!(split("a \"b  c 'd"), expected);
        assert_eq!(split("'a' b").unclosed, None);
    }

    #[test]
    fn arguments_go_where_the_body_says() {
        let abc = ["a", "b c", "d"];
        assert_eq!(filled("$1|$2|$3|$4|", &abc), "a|b c|d||");
        assert_eq!(filled("$@|$ARGUMENTS|${@}|${ARGUMENTS}", &abc), "a b c d|a b c d|a b c d|a b c d");
        assert_eq!(filled("${@:2}|${@:0}|${@:1}|${@:4}", &abc), "b c d|a b c d|a b c d|");
        assert_eq!(filled("${@:2:1}|${@:1:2}|${@:2:9}|${@:2:0}|${@:0:1}", &abc), "b c|a b c|b c d||a");
        assert_eq!(filled("${1}0|$10|$1st", &abc), "a0|a0|ast");
    }

    #[test]
    fn the_tenth_needs_braces() {
        let ten: Vec<String> = (1..=10).map(|n| format!("<{n}>")).collect();
        assert_eq!(fill("${10} $10", &ten).text, "<10> <1>0");
    }

    #[test]
    fn a_dollar_that_is_no_place_stays() {
        for body in
            ["$", "$$", "$$1", "a$", "$x", "$0", "${0}", "${", "${}", "${x}", "${@:}", "${@:-1}", "${@:1:}"]
        {
            assert_eq!(filled(body, &["A", "B"]), body);
        }
        for body in ["$ARGUMENTSX", "$ARGUMENTS_", "$ARG", "${@:1:2:3}", "${ 1}", "${1", "$é", "${é}", "$ 1"]
        {
            assert_eq!(filled(body, &["A", "B"]), body);
        }
        assert_eq!(filled("$$$1 $$$$ $x$1 ${$1}", &["A"]), "$$A $$$$ $xA ${A}");
    }

    #[test]
    fn a_number_may_be_of_any_length() {
        let huge = "9".repeat(40);
        let body = format!("[${{{huge}}}${{@:{huge}}}${{@:2:{huge}}}${{@:{huge}:{huge}}}]");
        assert_eq!(filled(&body, &["a", "b"]), "[b]");
    }
}

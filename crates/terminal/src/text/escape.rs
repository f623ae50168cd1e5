//! Text that others wrote (files, names, models, servers) in forms that steer no terminal and no
//! reader: [`escape`] for a line of a block, [`safe`] and [`safe_lines`] for a line of a command's
//! output, [`strip_lines`] for a pipe, [`escape_json`] for JSON, [`visible`] where a person decides
//! about every character.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

/// Columns from one tab stop to the next.
pub const TAB_STOP: usize = 4;

/// The text of one line with control characters as `^[`, characters that change the direction of
/// writing as `<U+202E>`, and tabs as spaces up to the next stop.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for c in text.chars() {
        let start = out.len();
        match c {
            '\t' => out.extend(std::iter::repeat_n(' ', TAB_STOP - column % TAB_STOP)),
            // `^@` to `^_`, and `^?` for DEL, as terminals echo them.
            '\0'..='\u{1f}' | '\u{7f}' => out.extend(['^', char::from(c as u8 ^ 0x40)]),
            c if is_unsafe(c) => out.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => {
                out.push(c);
                column += c.width().unwrap_or(0);
                continue;
            }
        }
        column += out.len() - start;
    }
    Cow::Owned(out)
}

/// Replaces control characters, line ends included, so that foreign text never steers the terminal.
pub fn safe(text: &str) -> String {
    text.chars().map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }).collect()
}

/// Like [`safe`], but keeps line ends and tabs, which code has.
pub fn safe_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let safe = |c| if is_unsafe(c) && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(safe).collect()
}

/// The text without control sequences and control characters, but with its line ends and tabs: for
/// pipes and files, which may end on a terminal later.
pub fn strip_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push('\n'),
            '\n' | '\t' => out.push(c),
            '\u{1b}' => skip_sequence(&mut chars),
            // The same introducers as one character: CSI, and the strings DCS, SOS, OSC, PM, APC.
            '\u{9b}' => skip_parameters(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            c if is_unsafe(c) => {}
            c => out.push(c),
        }
    }
    out
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Skips the rest of a sequence that began with ESC.
fn skip_sequence(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_parameters(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        Some(' '..='/') => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|c| matches!(c, '0'..='~'));
        }
        Some('0'..='~') => drop(chars.next()),
        _ => {}
    }
}

/// Skips the parameters and the last character of a control sequence.
fn skip_parameters(chars: &mut Chars<'_>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// Skips a string up to its terminator. One without a terminator ends with its line, so that it hides
/// no more than that.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if(|c| *c == '\\');
                return;
            }
            _ => {}
        }
    }
}

/// JSON with escapes for the characters that are valid in it but steer terminals and readers. It is
/// the same value. They occur within strings alone, so the text need not be parsed.
pub fn escape_json(json: String) -> String {
    // The first bytes of DEL, C1, the Arabic letter mark, the general punctuation, and U+FEFF.
    if !json.bytes().any(|byte| matches!(byte, 0x7f | 0xc2 | 0xd8 | 0xe2)) {
        return json;
    }
    let is_escaped = |c: char| is_unsafe(c) && c > ' ';
    if !json.contains(is_escaped) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        // JSON writes control characters below U+0020 as escapes already; line ends are its own.
        if is_escaped(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// The text of one line with everything that one does not see written out: control characters,
/// direction marks, characters without width, unusual and long white space.
pub fn visible(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let mut marks = 0;
    while let Some(c) = chars.next() {
        let has_no_width = c.width() == Some(0);
        marks = if has_no_width { marks + 1 } else { 0 };
        match c {
            ' ' => {
                let mut count = 1;
                while chars.next_if_eq(&' ').is_some() {
                    count += 1;
                }
                let is_hidden = count >= LONG_SPACE || chars.peek().is_none();
                out.push_str(&if is_hidden { format!("‹{count} spaces›") } else { " ".repeat(count) });
            }
            '\t' => out.push_str("⇥   "),
            '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => out.push('␡'),
            c if is_unsafe(c) || is_hidden(c) || (has_no_width && marks > 2) => {
                out.push_str(&format!("‹U+{:04X}›", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// So many spaces in a row are counted, not printed: they would push the rest out of sight.
const LONG_SPACE: usize = 24;

/// Control characters, separators of lines that not everything takes for such, and characters that
/// change the direction of writing.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters that show nothing, or look like a space without being one.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{a0}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{1680}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200d}'
            | '\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3000}'
            | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_as_escapes() {
        for (text, expected) in [
            ("plain, 世界", "plain, 世界"),
            ("a\tb\t\tc", "a   b       c"),
            ("\u{1b}[31mred\u{7}\0\u{7f}", "^[[31mred^G^@^?"),
            ("a\u{202e}b\u{9b}c\u{2028}", "a<U+202E>b<U+009B>c<U+2028>"),
        ] {
            assert_eq!(escape(text), expected, "{text:?}");
        }
    }

    #[test]
    fn sequences_are_removed_whole_and_text_is_kept() {
        for (text, expected) in [
            ("a\u{1b}[31mb\u{1b}[0m", "ab"),
            ("a\u{1b}]52;c;aGk=\u{7}b", "ab"),
            ("a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\b", "alinkb"),
            ("a\u{9d}0;title\u{9c}b\u{9b}2Jc", "abc"),
            ("a\u{1b}]0;no end\nb", "a\nb"),
            ("a\u{1b}(Bb\u{1b}Mc\u{1b}", "abc"),
            ("1\r\n2\r3\t4\u{2028}5\u{202e}6\u{0}7\u{7f}", "1\n2\n3\t4\n567"),
            ("Grüße, 世界 👩\u{200d}💻", "Grüße, 世界 👩\u{200d}💻"),
        ] {
            assert_eq!(strip_lines(text), expected, "{text:?}");
        }
    }

    #[test]
    fn no_unsafe_character_is_left_whatever_the_text_is() {
        let pieces = [
            "a", "\u{1b}", "[", "]", "m", "\u{9b}", "\u{9d}", "\u{7}", "\u{9c}", "\u{202e}", "\n", "\r",
            "\u{2028}", "é",
        ];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    for d in pieces {
                        let text = [a, b, c, d].concat();
                        let keeps =
                            |text: &str| text.chars().all(|c| !is_unsafe(c) || matches!(c, '\n' | '\t'));
                        assert!(keeps(&strip_lines(&text)) && keeps(&safe_lines(&text)), "{text:?}");
                        assert!(!safe(&text).contains(is_unsafe), "{text:?}");
                        assert!(!visible(&text).contains(is_unsafe), "{text:?}");
                        let json = serde_json::to_string(&text).unwrap();
                        let escaped = escape_json(json);
                        assert!(!escaped.contains(is_unsafe), "{escaped:?}");
                        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_hidden_is_written_out() {
        assert_eq!(visible("rm\u{200b} a\u{a0}b\tc\u{1b}[2K"), "rm‹U+200B› a‹U+00A0›b⇥   c␛[2K");
        assert_eq!(visible("a  "), "a‹2 spaces›");
        assert_eq!(visible(&format!("a{}b", " ".repeat(500))), "a‹500 spaces›b");
        assert_eq!(visible("e\u{301}\u{301}\u{301}\u{301}"), "e\u{301}\u{301}‹U+0301›‹U+0301›");
    }
}

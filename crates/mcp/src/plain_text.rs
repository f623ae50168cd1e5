//! [`plain_text`]: texts of servers without what a person does not see, or what steers a terminal.

use std::iter::Peekable;
use std::str::Chars;

/// Whether a character is read by a model, but not seen by a person, or changes the order of those that are.
fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\t');
    is_control
        || matches!(
            c,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{feff}'
        )
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}')
}

/// A text without hidden characters and sequences for terminals, and of at most `max` bytes.
pub(crate) fn plain_text(text: &str, max: usize) -> String {
    let (mut plain, mut chars) = (String::with_capacity(text.len()), text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\u{9b}' => skip_parameters(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            c if is_hidden(c) => {}
            c => plain.push(c),
        }
    }
    let text = plain.trim();
    match text.len() <= max {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(max)]),
    }
}

/// Skips the rest of a sequence that began with ESC.
fn skip_sequence(chars: &mut Peekable<Chars<'_>>) {
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

/// Skips the parameters of a control sequence, and its last character.
fn skip_parameters(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// Skips a string up to its end. A line end is one, too: a string without an end would take all the rest.
fn skip_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if chars.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_does_not_see_the_model_does_not_read() {
        let hidden =
            "Adds\u{200b} two\u{e0041}\u{e007f} numbers\u{202e}.\u{2066}\u{1b}[2J\u{feff}\n👩‍👩‍👧 می‌خواهم";
        assert_eq!(plain_text(hidden, 1000), "Adds two numbers.\n👩‍👩‍👧 می‌خواهم");
    }

    #[test]
    fn sequences_for_terminals_are_left_out_as_a_whole() {
        for (text, expected) in [
            ("\u{1b}[31mYour \u{1b}[1;4mname?\u{1b}[0m", "Your name?"),
            ("a\u{9b}31mb\u{1b}(Bc\u{1b}7d\u{1b}", "abcd"),
            ("to\u{1b}]0;a title\u{7}pic \u{1b}]8;;http://x\u{1b}\\link\u{9d}8;;\u{9c}", "topic link"),
            ("one\u{1b}]0;without an end\ntwo\u{1b}[3", "one\ntwo"),
            ("[31m stays, and \u{1b}[ü too", "[31m stays, and ü too"),
        ] {
            assert_eq!(plain_text(text, 1000), expected, "{text:?}");
        }
    }
}

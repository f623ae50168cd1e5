//! Formatting of numbers and names for people.

use std::sync::Arc;

pub use hardpan_prompt::figures::{format_dollars, format_number, format_paid, format_short_number};

/// Formats a duration: `1 minute`, `12 minutes`.
pub fn format_minutes(minutes: u64) -> String {
    if minutes == 1 { "1 minute".into() } else { format!("{} minutes", format_number(minutes)) }
}

/// Lists up to three names: `a`, `a and b`, `a, b, c and 4 more`.
pub fn format_list(names: &[Arc<str>]) -> String {
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        [first, second] => format!("{first} and {second}"),
        [first, second, third] => format!("{first}, {second} and {third}"),
        [first, second, third, rest @ ..] => format!("{first}, {second}, {third} and {} more", rest.len()),
    }
}

/// Replaces control characters by U+FFFD. Names come from files and people and must not control the
/// terminal.
pub fn replace_control_characters(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_well() {
        let names: Vec<Arc<str>> = ["a", "b", "c", "d", "e"].map(Arc::from).to_vec();
        assert_eq!(
            (format_list(&names[..2]), format_list(&names)),
            ("a and b".into(), "a, b, c and 2 more".into())
        );
        assert_eq!(replace_control_characters("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}

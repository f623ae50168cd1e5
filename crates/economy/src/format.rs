//! Formatting of numbers and names for people.

use std::sync::Arc;

/// Formats a number with separators: `49,120`.
pub fn format_number(number: u64) -> String {
    let digits = number.to_string();
    let mut written = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// Formats dollars: `$0.15`, with four decimals where two would show nothing.
pub fn format_dollars(dollars: f64) -> String {
    if dollars.abs() < 0.01 && dollars != 0.0 { format!("${dollars:.4}") } else { format!("${dollars:.2}") }
}

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
    fn numbers_and_names_read_well() {
        assert_eq!(
            [0, 999, 1000, 49_120, 1_234_567].map(format_number),
            ["0", "999", "1,000", "49,120", "1,234,567"]
        );
        assert_eq!([0.0, 0.15, 0.0012, 12.3].map(format_dollars), ["$0.00", "$0.15", "$0.0012", "$12.30"]);
        let names: Vec<Arc<str>> = ["a", "b", "c", "d", "e"].map(Arc::from).to_vec();
        assert_eq!(
            (format_list(&names[..2]), format_list(&names)),
            ("a and b".into(), "a, b, c and 2 more".into())
        );
        assert_eq!(replace_control_characters("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
    }
}

//! Numbers, amounts and errors for people, and [`safe`] for text that must not steer a terminal.

use std::error::Error;

/// Replaces control characters, line ends included, so that foreign text never steers the terminal.
pub fn safe(text: &str) -> String {
    text.chars().map(|c| if is_unsafe(c) { '\u{fffd}' } else { c }).collect()
}

/// Like [`safe`], but keeps line ends and tabs, which code has.
pub fn safe_lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.chars().map(|c| if is_unsafe(c) && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

/// Control characters, and those that change the direction of writing.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A number with separators: `1,234,567`.
pub fn thousands(n: usize) -> String {
    hardpan_economy::format::format_number(n as u64)
}

/// An amount of money: `$0.0123`, with six digits after the point below one cent.
pub fn dollars(amount: f64) -> String {
    if amount == 0.0 || amount >= 0.01 { format!("${amount:.4}") } else { format!("${amount:.6}") }
}

/// The error as a person reads it: its text, and every cause that the text does not tell already.
/// Errors of Hardpan's own crates tell their cause themselves, because a remedy follows it.
pub fn error_text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let told = cause.to_string();
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_each_of_its_causes_once() {
        let cause = anyhow::anyhow!("no such file").context("cannot read a.toml: no such file; create it");
        assert_eq!(
            error_text(cause.context("your settings").as_ref()),
            "your settings: cannot read a.toml: no such file; create it"
        );
    }

    #[test]
    fn foreign_text_cannot_steer_the_terminal() {
        assert_eq!(safe("a\x1b[2Jb\u{202e}c\n"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}");
        assert_eq!(safe_lines("\tif\r\n\x1b]0;x\x07\rok\n"), "\tif\n\u{fffd}]0;x\u{fffd}\u{fffd}ok\n");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            ["0", "999", "1,000", "1,234,567"],
            [0, 999, 1000, 1_234_567].map(thousands).each_ref().map(|s| &**s)
        );
    }
}

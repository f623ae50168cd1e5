//! [`ErrorOutput`]: what a program printed besides messages, which may explain why it ended.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much of a line is kept, in bytes.
pub(crate) const MAX_LINE_BYTES: usize = 500;

/// How many lines are kept: a runtime prints where an error happened after what it is.
const KEPT_LINES: usize = 40;

/// How many lines tell of an error, from the first one that names it.
const TOLD_LINES: usize = 3;

/// The longest explanation, in bytes.
const MAX_TEXT: usize = 700;

/// The last lines that a program printed and that were no messages.
#[derive(Clone, Default)]
pub(crate) struct ErrorOutput(Arc<Mutex<Lines>>);

/// How often it is looked whether everything was read, and how often at most.
const END_CHECKS: (Duration, u32) = (Duration::from_millis(10), 50);

/// A stream of the program that is being read; dropping it says that its end was reached.
pub(crate) struct StreamReader(ErrorOutput);

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.0.lines().readers -= 1;
    }
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<String>,
    /// Why nothing more is read: no line explains it better.
    reason: Option<String>,
    /// How many streams of the program are being read.
    readers: usize,
}

impl ErrorOutput {
    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a stream of the program is being read, until the value is dropped.
    pub fn add_reader(&self) -> StreamReader {
        self.lines().readers += 1;
        StreamReader(self.clone())
    }

    /// Waits until everything was read that a program printed which has ended; not long, because another
    /// process may hold its streams open.
    pub async fn wait_for_end(&self) {
        for _ in 0..END_CHECKS.1 {
            if self.lines().readers == 0 {
                return;
            }
            tokio::time::sleep(END_CHECKS.0).await;
        }
    }

    /// Keeps a line.
    pub fn add(&self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let kept = &mut self.lines().kept;
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line.trim().to_owned());
    }

    /// The reason why nothing more is read.
    pub fn set_reason(&self, reason: &str) {
        self.lines().reason = Some(reason.to_owned());
    }

    /// What explains the end: the lines from the first that names an error, and the last one. The last
    /// one alone if none does.
    pub fn explain(&self) -> Option<String> {
        let lines = self.lines();
        if lines.reason.is_some() {
            return lines.reason.clone();
        }
        let last = lines.kept.back()?;
        let first = lines.kept.iter().position(|line| names_error(line));
        let mut told: Vec<&str> = match first {
            Some(first) => lines.kept.range(first..).take(TOLD_LINES).map(String::as_str).collect(),
            None => vec![last],
        };
        if first.is_some_and(|first| first + TOLD_LINES < lines.kept.len()) {
            told.extend(["…", last]);
        }
        let mut text = told.join(" / ");
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
        }
        Some(text)
    }
}

fn names_error(line: &str) -> bool {
    let line = line.to_lowercase();
    ["error", "fatal", "panicked", "exception"].iter().any(|word| line.contains(word))
}

/// A line as text without what a terminal would obey, and of bounded length.
pub(crate) fn readable_line(line: &[u8]) -> String {
    let line = &line[..line.len().min(MAX_LINE_BYTES)];
    let text = String::from_utf8_lossy(line);
    let mut readable = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            // A sequence such as that of a colour, up to its last character.
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            c if c.is_control() => readable.push(' '),
            c => readable.push(c),
        }
    }
    readable.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(text: &str) -> Option<String> {
        let words = ErrorOutput::default();
        text.lines().for_each(|line| words.add(&readable_line(line.as_bytes())));
        words.explain()
    }

    #[test]
    fn the_error_is_told_and_not_only_the_last_line() {
        assert_eq!(explained(""), None);
        assert_eq!(explained("Loading.\nno licence found\n\n"), Some("no licence found".into()));
        let npm = "npm warn x\nnpm error code E404\nnpm error 404 Not Found\nnpm error 404\nnpm error A complete log is in /l";
        assert_eq!(
            explained(npm).as_deref(),
            Some(
                "npm error code E404 / npm error 404 Not Found / npm error 404 / … / npm error A complete log is in /l"
            )
        );
        let node = "x.js:1\nthrow e\n^\n\n\u{1b}[31mError: no licence\u{1b}[39m\n    at x.js:1:7\n\nNode.js v20.20.2";
        assert_eq!(explained(node).as_deref(), Some("Error: no licence / at x.js:1:7 / Node.js v20.20.2"));
        let long = format!("Error: {}", "ü".repeat(5000));
        assert!(explained(&long).is_some_and(|text| text.len() <= MAX_LINE_BYTES + 3));
        let many = "line\n".repeat(1000) + "the last";
        assert_eq!(explained(&many).as_deref(), Some("the last"));
    }

    #[test]
    fn a_reason_goes_before_all_lines() {
        let words = ErrorOutput::default();
        words.add("Error: a");
        words.set_reason("too long");
        words.add("Error: b");
        assert_eq!(words.explain().as_deref(), Some("too long"));
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(readable_line(b"\x1b[2J\x1b]0;t\x07a\tb\x1b[31"), "]0;t a b");
    }
}

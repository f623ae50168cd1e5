//! [`Screen`]: the last lines that a program printed.

use std::collections::VecDeque;

use crate::bash::sanitize::TextSanitizer;

/// How much is kept: more than a panel shows, so that text that is waited for is still there.
const MAX_LINES: usize = 2000;
const MAX_BYTES: usize = 512 * 1024;
/// A longer line is cut: whoever prints one line for ever must not fill the memory.
const MAX_LINE_BYTES: usize = 4096;
/// The most lines that one read adds: a terminal passes on at most 4096 bytes.
const MAX_READ_LINES: usize = 4096;

/// The end of an output, in lines. A line that is printed over, as progress bars are, is kept as it
/// was last.
#[derive(Debug, Default)]
pub struct Screen {
    sanitizer: TextSanitizer,
    lines: VecDeque<String>,
    bytes: usize,
    /// How many lines are no longer kept.
    dropped: u64,
    current: String,
    /// After a carriage return: the next character begins the line anew.
    prints_over: bool,
    watches: Vec<TextWatch>,
    last_watch: u64,
}

/// A text that somebody waits for.
#[derive(Debug)]
struct TextWatch {
    number: u64,
    text: String,
    is_found: bool,
}

impl TextWatch {
    fn look_at(&mut self, line: &str) {
        self.is_found |= line.contains(&self.text);
    }
}

impl Screen {
    pub fn push(&mut self, bytes: &[u8]) {
        let text = self.sanitizer.feed(bytes);
        self.add(&text);
        self.look_at_open_line();
    }

    /// Begins to look for a text in this line and in all after it, however many come at once. Returns the
    /// number to ask for.
    pub fn watch(&mut self, line: u64, text: &str) -> u64 {
        self.last_watch += 1;
        let is_found = self.contains_since(line, text);
        self.watches.push(TextWatch { number: self.last_watch, text: text.to_owned(), is_found });
        self.last_watch
    }

    pub fn is_found(&self, watch: u64) -> bool {
        self.watches.iter().any(|known| known.number == watch && known.is_found)
    }

    pub fn unwatch(&mut self, watch: u64) {
        self.watches.retain(|known| known.number != watch);
    }

    /// A text of several lines is looked for in what is kept, any other in the line that is printed.
    fn look_at_open_line(&mut self) {
        let mut watches = std::mem::take(&mut self.watches);
        for watch in watches.iter_mut().filter(|watch| !watch.is_found) {
            if watch.text.contains('\n') {
                let lines = watch.text.matches('\n').count() + MAX_READ_LINES;
                watch.is_found =
                    self.contains_since(self.line_number().saturating_sub(lines as u64), &watch.text);
            } else {
                watch.look_at(&self.current);
            }
        }
        self.watches = watches;
    }

    /// Adds what is still held back. Call it when no more bytes come.
    pub fn end(&mut self) {
        let text = self.sanitizer.end();
        self.add(&text);
        self.look_at_open_line();
    }

    /// The number of the line that is being printed.
    pub fn line_number(&self) -> u64 {
        self.dropped + self.lines.len() as u64
    }

    /// Whether a text stands in a line from this one on, as far as it is kept. A text of several
    /// lines is looked for across them.
    pub fn contains_since(&self, line: u64, text: &str) -> bool {
        let from = usize::try_from(line.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        let lines = self.lines.iter().skip(from).map(String::as_str).chain([self.current.as_str()]);
        if !text.contains('\n') {
            return lines.into_iter().any(|line| line.contains(text));
        }
        lines.collect::<Vec<_>>().join("\n").contains(text)
    }

    /// At most so many last lines, and how many come before them.
    pub fn last_lines(&self, count: usize) -> (Vec<String>, u64) {
        let open = (!self.current.is_empty()).then(|| self.current.clone());
        let count = count.saturating_sub(open.iter().len());
        let skipped = self.lines.len().saturating_sub(count);
        let lines = self.lines.iter().skip(skipped).cloned().chain(open).collect();
        (lines, self.dropped + skipped as u64)
    }

    fn add(&mut self, text: &str) {
        for part in text.split_inclusive(['\n', '\r']) {
            let (line, end) = match part.strip_suffix('\n') {
                Some(line) => (line, Some('\n')),
                None => part.strip_suffix('\r').map_or((part, None), |line| (line, Some('\r'))),
            };
            if !line.is_empty() {
                if std::mem::take(&mut self.prints_over) {
                    self.current.clear();
                }
                let room = MAX_LINE_BYTES.saturating_sub(self.current.len());
                self.current.push_str(&line[..line.floor_char_boundary(room)]);
            }
            match end {
                Some('\n') => self.finish_line(),
                Some(_) => self.prints_over = true,
                None => {}
            }
        }
    }

    fn finish_line(&mut self) {
        self.prints_over = false;
        self.watches.iter_mut().for_each(|watch| watch.look_at(&self.current));
        self.bytes += self.current.len();
        self.lines.push_back(std::mem::take(&mut self.current));
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let Some(first) = self.lines.pop_front() else { break };
            self.bytes -= first.len();
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(output: &[u8]) -> Screen {
        let mut screen = Screen::default();
        screen.push(output);
        screen
    }

    #[test]
    fn lines_come_without_escapes_and_the_last_print_counts() {
        let screen = screen(b"\x1b[31mred\x1b[0m\r\n10%\r20%\r100%\r\nopen");
        assert_eq!(screen.last_lines(10), (vec!["red".into(), "100%".into(), "open".into()], 0));
        assert_eq!(screen.last_lines(2), (vec!["100%".into(), "open".into()], 1));
        assert!(screen.contains_since(0, "red") && !screen.contains_since(1, "red"));
        assert!(screen.contains_since(2, "pen") && screen.contains_since(0, "red\n100%"));
    }

    #[test]
    fn a_text_that_is_waited_for_is_found_however_much_follows_it() {
        let mut screen = screen(b"before\n$ ");
        let (old, new, both) =
            (screen.watch(1, "before"), screen.watch(1, "needle"), screen.watch(1, "one\ntwo"));
        assert!(!screen.is_found(old) && !screen.is_found(new));
        screen.push(b"nee");
        screen.push(&[b"dle\none\ntwo\n".as_slice(), &b"x\n".repeat(10_000)].concat());
        assert!(!screen.is_found(old) && screen.is_found(new));
        assert!(!screen.is_found(both), "more lines at once than are kept");
        screen.push(b"one\ntwo");
        assert!(screen.is_found(both));
        screen.unwatch(new);
        assert!(!screen.is_found(new));
    }

    #[test]
    fn whatever_is_printed_little_is_kept() {
        let mut screen = Screen::default();
        for _ in 0..200 {
            screen.push(&[b'x'; 64 * 1024]);
        }
        assert_eq!(screen.last_lines(10).0[0].len(), MAX_LINE_BYTES);
        for _ in 0..200 {
            screen.push(&b"0123456789\n".repeat(5000));
        }
        let (lines, earlier) = screen.last_lines(usize::MAX);
        assert_eq!((lines.len(), earlier), (MAX_LINES, 1_000_000 - MAX_LINES as u64));
        for _ in 0..200 {
            screen.push(&[[b'y'; 4000].as_slice(), b"\n"].concat().repeat(10));
        }
        assert!(screen.bytes <= MAX_BYTES);
    }
}

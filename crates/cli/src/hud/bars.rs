//! Shares drawn as bars, and lines within a frame.

use unicode_width::UnicodeWidthStr;

use crate::output::cut;

/// Parts of a cell, in eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar as long as `part` is of `whole`, where the whole has `room` columns. Anything shows at least a sliver.
pub fn bar(part: usize, whole: usize, room: usize) -> String {
    if part == 0 || whole == 0 {
        return String::new();
    }
    let filled = part.min(whole) as f64 / whole as f64;
    let eighths = ((filled * room as f64 * 8.0).round() as usize).max(1);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// The text and blanks, so many columns in all.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Begins a frame with a title.
pub fn frame(width: usize, title: &str) -> Frame {
    let mut frame = Frame { width, text: String::new() };
    frame.edge("┌", title, "┐");
    frame
}

/// Lines within a frame.
pub struct Frame {
    width: usize,
    text: String,
}

impl Frame {
    /// A line: the cells, and words that go on in lines of their own where there is no room. The words are cut at commas.
    pub fn row(&mut self, cells: &str, words: &str) {
        let inner = self.width.saturating_sub(4);
        let room = inner.saturating_sub(cells.width() + 2);
        for (index, words) in wrapped(words, room).iter().enumerate() {
            let cells = if index == 0 { cells } else { "" };
            let indent = inner.saturating_sub(room + 2);
            let line = format!("{}  {words}", padded(cells, indent));
            self.text.push_str(&format!("│ {} │\n", padded(&cut(&line, inner), inner)));
        }
    }

    /// A line across.
    pub fn rule(&mut self) {
        self.edge("├", "", "┤");
    }

    /// Ends the frame, with words in its last line.
    pub fn close(mut self, words: &str) -> String {
        self.edge("└", words, "┘");
        self.text
    }

    fn edge(&mut self, left: &str, words: &str, right: &str) {
        let words = if words.is_empty() { String::new() } else { format!("─ {words} ") };
        let words = cut(&words, self.width.saturating_sub(2));
        let line = "─".repeat(self.width.saturating_sub(words.width() + 2));
        self.text.push_str(&format!("{left}{words}{line}{right}\n"));
    }
}

/// The words in lines of at most `room` columns, as far as commas allow; at least one line.
fn wrapped(words: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for part in words.split_inclusive(", ") {
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty() && line.width() + part.trim_end().width() > room {
            lines.push(part.to_owned());
        } else {
            line.push_str(part);
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(1, 1, 4), "████");
        assert_eq!(bar(9, 1, 4), "████");
        assert_eq!(bar(1, 2, 4), "██");
        assert_eq!(bar(1, 16, 4), "▎");
        assert_eq!(bar(1, 1_000_000, 4), "▏");
        assert_eq!(bar(0, 10, 4), "");
        assert_eq!(bar(10, 0, 4), "");
    }

    #[test]
    fn words_go_on_in_the_next_line() {
        let mut frame = frame(24, "t");
        frame.row("name  1", "one file, two, three");
        frame.rule();
        let expected = "\
┌─ t ──────────────────┐
│ name  1  one file,   │
│          two, three  │
├──────────────────────┤
└─ end ────────────────┘
";
        assert_eq!(frame.close("end"), expected);
    }
}

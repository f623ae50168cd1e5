//! [`bar`] draws a share as a bar, and [`Frame`] draws a box around lines.

use unicode_width::UnicodeWidthStr;

use super::wrap::split_line;

/// A cell filled by 0 to 7 eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar for `part` of `whole`, where the whole takes `room` columns. Anything above 0 shows at
/// least an eighth of a cell.
pub fn bar(part: usize, whole: usize, room: usize) -> String {
    if part == 0 || whole == 0 {
        return String::new();
    }
    let filled = part.min(whole) as f64 / whole as f64;
    let eighths = ((filled * room as f64 * 8.0).round() as usize).max(1);
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// The text, padded with blanks to `width` columns.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Starts a frame with a title in its top edge.
pub fn frame(width: usize, title: &str) -> Frame {
    let mut frame = Frame { width, text: String::new() };
    frame.edge("┌", title, "┐");
    frame
}

/// A box around lines, drawn line by line.
pub struct Frame {
    width: usize,
    text: String,
}

impl Frame {
    /// Adds the cells with the words beside them. Words that do not fit continue on further lines,
    /// split at commas.
    pub fn row(&mut self, cells: &str, words: &str) {
        let indent = cells.width() + 2;
        for (index, words) in split_line(words, ", ", self.inner().saturating_sub(indent)).iter().enumerate()
        {
            let cells = if index == 0 { cells } else { "" };
            self.line(&format!("{}{words}", padded(cells, indent)));
        }
    }

    /// Adds the cells with the words indented below them, for narrow frames.
    pub fn rows(&mut self, cells: &str, words: &str) {
        const INDENT: &str = "  ";
        split_line(cells, " ", self.inner()).iter().for_each(|cells| self.line(cells));
        let words = split_line(words, ", ", self.inner().saturating_sub(INDENT.len()));
        for words in words.iter().filter(|words| !words.is_empty()) {
            self.line(&format!("{INDENT}{words}"));
        }
    }

    fn line(&mut self, line: &str) {
        let inner = self.inner();
        self.text.push_str(&format!("│ {} │\n", padded(line, inner)));
    }

    /// The number of columns between the edges.
    fn inner(&self) -> usize {
        self.width.saturating_sub(4)
    }

    /// Adds a horizontal line.
    pub fn rule(&mut self) {
        self.edge("├", "", "┤");
    }

    /// Ends the frame, with the words in its bottom edge, or above it if they do not fit.
    pub fn close(mut self, words: &str) -> String {
        if words.width() <= self.inner().saturating_sub(1) {
            self.edge("└", words, "┘");
        } else {
            self.rule();
            split_line(words, ", ", self.inner()).iter().for_each(|words| self.line(words));
            self.edge("└", "", "┘");
        }
        self.text
    }

    fn edge(&mut self, left: &str, words: &str, right: &str) {
        let words = if words.is_empty() { String::new() } else { format!("─ {words} ") };
        let line = "─".repeat(self.width.saturating_sub(words.width() + 2));
        self.text.push_str(&format!("{left}{words}{line}{right}\n"));
    }
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

    #[test]
    fn where_it_is_narrow_the_words_stand_below() {
        let mut frame = frame(16, "t");
        frame.rows("name  1", "one file, two");
        let expected = "\
┌─ t ──────────┐
│ name  1      │
│   one file,  │
│   two        │
├──────────────┤
│ words,       │
│ too many     │
└──────────────┘
";
        assert_eq!(frame.close("words, too many"), expected);
    }
}

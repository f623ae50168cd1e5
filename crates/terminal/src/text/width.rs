//! Columns of text, counted by grapheme clusters: what a reader takes for one character is measured
//! and cut as one.

use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The grapheme clusters of the text, each with its columns.
pub fn clusters(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.graphemes(true).map(|cluster| (cluster, cluster.width()))
}

/// The columns that the text takes.
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { clusters(text).map(|(_, width)| width).sum() }
}

/// The columns that a line takes.
pub fn line_width(line: &Line<'_>) -> usize {
    line.spans.iter().map(|span| width(&span.content)).sum()
}

/// The text with spaces after it, up to `columns`.
pub fn pad_right(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text with spaces before it, up to `columns`.
pub fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_measured_as_one() {
        for (text, columns) in
            [("", 0), ("abc", 3), ("世界", 4), ("e\u{301}", 1), ("👩\u{200d}💻", 2), ("🇩🇪", 2), ("…·−", 3)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
        assert_eq!((pad_left("世", 4), pad_right("世", 4)), ("  世".to_owned(), "世  ".to_owned()));
    }
}

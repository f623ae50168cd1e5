//! [`EncodedRow`]: a styled line as the bytes that show it.

use std::fmt::Write;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::text::link_address;

/// A line as bytes for the terminal, with the columns that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRow {
    /// Text and style sequences; the style is the default again at its end.
    pub bytes: String,
    /// Columns of the text.
    pub width: usize,
}

impl EncodedRow {
    /// The whole line, however long: the terminal, `columns` wide, wraps it.
    pub fn whole(line: &Line<'_>, columns: usize) -> Self {
        encode(line, columns, usize::MAX)
    }

    /// The first `columns` columns of the line.
    pub fn clipped(line: &Line<'_>, columns: usize) -> Self {
        encode(line, columns, columns)
    }

    /// Rows that the line takes on a terminal that wraps it at `columns`.
    pub fn rows_at(&self, columns: usize) -> usize {
        self.width.div_ceil(columns.max(1)).max(1)
    }
}

fn encode(line: &Line<'_>, columns: usize, limit: usize) -> EncodedRow {
    let mut row = EncodedRow { bytes: String::new(), width: 0 };
    let mut current = Style::new();
    'spans: for span in &line.spans {
        let style = line.style.patch(span.style);
        // Only what is printed: a link that is cut or redrawn opens nothing.
        let link = if limit == usize::MAX { link_address(span) } else { None };
        if let Some(address) = link {
            let _ = write!(row.bytes, "\x1b]8;;{address}\x1b\\");
        }
        for cluster in span.content.graphemes(true) {
            let width = cluster.width();
            if row.width + width > limit {
                break 'spans;
            }
            if style != current {
                row.bytes.push_str(&style_sequence(style));
                current = style;
            }
            push_printable(&mut row.bytes, cluster);
            row.width += width;
            // Terminals disagree about the width of these. A column can only be set in the line's
            // first row: further down we do not know where a disagreeing terminal has wrapped it.
            if is_disputed(cluster) && row.width < columns {
                let _ = write!(row.bytes, "\x1b[{}G", row.width + 1);
            }
        }
        row.bytes.push_str(if link.is_some() { "\x1b]8;;\x1b\\" } else { "" });
    }
    if current != Style::new() {
        row.bytes.push_str("\x1b[0m");
    }
    row
}

/// Adds text without what would steer the terminal. Renderers have made foreign text visible before;
/// this holds for everything, whoever wrote it.
fn push_printable(out: &mut String, cluster: &str) {
    out.extend(cluster.chars().map(|c| if steers_terminal(c) { '\u{fffd}' } else { c }));
}

/// Whether a character moves, colours or reorders instead of showing something.
fn steers_terminal(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{200e}' | '\u{200f}' | '\u{61c}'
        )
}

/// Whether terminals differ in how many columns they give a cluster: joined emoji, emoji by
/// selector, flags.
fn is_disputed(cluster: &str) -> bool {
    cluster.chars().any(|c| matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{1f1e6}'..='\u{1f1ff}'))
}

/// The sequence that switches from any style to this one.
fn style_sequence(style: Style) -> String {
    let mut out = "\x1b[0".to_owned();
    let modifiers = [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ];
    let set = style.add_modifier - style.sub_modifier;
    for (modifier, code) in modifiers {
        if set.contains(modifier) {
            let _ = write!(out, ";{code}");
        }
    }
    push_color(&mut out, style.fg, 30);
    push_color(&mut out, style.bg, 40);
    out.push('m');
    out
}

/// Adds a colour's parameters; `base` is 30 for the foreground and 40 for the background.
fn push_color(out: &mut String, color: Option<Color>, base: u16) {
    let plain = match color {
        None | Some(Color::Reset) => return,
        Some(Color::Black) => base,
        Some(Color::Red) => base + 1,
        Some(Color::Green) => base + 2,
        Some(Color::Yellow) => base + 3,
        Some(Color::Blue) => base + 4,
        Some(Color::Magenta) => base + 5,
        Some(Color::Cyan) => base + 6,
        Some(Color::Gray) => base + 7,
        Some(Color::DarkGray) => base + 60,
        Some(Color::LightRed) => base + 61,
        Some(Color::LightGreen) => base + 62,
        Some(Color::LightYellow) => base + 63,
        Some(Color::LightBlue) => base + 64,
        Some(Color::LightMagenta) => base + 65,
        Some(Color::LightCyan) => base + 66,
        Some(Color::White) => base + 67,
        Some(Color::Indexed(index)) => {
            let _ = write!(out, ";{};5;{index}", base + 8);
            return;
        }
        Some(Color::Rgb(red, green, blue)) => {
            let _ = write!(out, ";{};2;{red};{green};{blue}", base + 8);
            return;
        }
    };
    let _ = write!(out, ";{plain}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Stylize;

    #[test]
    fn styles_change_only_where_they_differ_and_end_with_the_line() {
        let line = Line::from(vec!["a".cyan(), "b".cyan(), "c".into(), "d".red().bold()]);
        let row = EncodedRow::whole(&line, 80);
        assert_eq!((row.bytes.as_str(), row.width), ("\x1b[0;36mab\x1b[0mc\x1b[0;1;31md\x1b[0m", 4));
    }

    #[test]
    fn a_printed_address_is_a_link_to_itself() {
        let line = Line::from(vec!["see ".into(), "https://a.example/b".underlined(), " and more".into()]);
        let link =
            "see \x1b]8;;https://a.example/b\x1b\\\x1b[0;4mhttps://a.example/b\x1b]8;;\x1b\\\x1b[0m and more";
        assert_eq!(EncodedRow::whole(&line, 80).bytes, link);
        assert!(!EncodedRow::clipped(&line, 80).bytes.contains("]8;"));
    }

    #[test]
    fn a_clipped_row_never_exceeds_its_columns_and_cuts_no_cluster() {
        let row = EncodedRow::clipped(&Line::from("ab漢字"), 5);
        assert_eq!((row.bytes.as_str(), row.width), ("ab漢", 4));
    }

    #[test]
    fn no_character_steers_the_terminal() {
        let row = EncodedRow::whole(&Line::from("a\x1b[2Jb\u{9b}c\u{202e}d\re\n\x07"), 80);
        assert!(row.bytes.chars().all(|c| !steers_terminal(c)), "{:?}", row.bytes);
    }

    #[test]
    fn after_a_disputed_cluster_the_column_is_set() {
        assert_eq!(EncodedRow::whole(&Line::from("x👩‍💻y"), 80).bytes, "x👩‍💻\x1b[4Gy");
    }
}

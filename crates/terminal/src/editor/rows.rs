//! [`EditorRows`]: the text of the input line as rows of the screen.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::buffer::EditBuffer;

/// A row of the input line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorRow {
    /// What the row shows: control characters in caret notation, pastes as their labels.
    pub text: String,
    /// The part of the buffer's text that it shows.
    pub range: Range<usize>,
}

/// All rows, and where the cursor is among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorRows {
    /// At least one.
    pub rows: Vec<EditorRow>,
    /// Row of the cursor, from 0.
    pub row: usize,
    /// Column of the cursor, from 0.
    pub column: usize,
}

impl EditorRows {
    /// The buffer's rows where `columns` columns are free. Text wraps between clusters.
    pub fn new(buffer: &EditBuffer, columns: usize) -> Self {
        // The cursor needs a column behind the last character.
        let columns = columns.max(4) - 1;
        let mut rows = vec![EditorRow { text: String::new(), range: 0..0 }];
        let (mut used, mut cursor) = (0, (0, 0));
        for (at, cluster) in buffer.text().grapheme_indices(true) {
            let last = rows.len() - 1;
            if at == buffer.cursor() {
                cursor = (last, used);
            }
            if cluster == "\n" {
                rows.push(EditorRow { text: String::new(), range: at + 1..at + 1 });
                used = 0;
                continue;
            }
            let mut shown = visible(buffer, cluster);
            if shown.width() > columns {
                shown = shown.chars().take(columns).collect();
            }
            let width = shown.width();
            if used + width > columns {
                rows.push(EditorRow { text: String::new(), range: at..at });
                if at == buffer.cursor() {
                    cursor = (rows.len() - 1, 0);
                }
                used = 0;
            }
            let last = rows.len() - 1;
            rows[last].text.push_str(&shown);
            rows[last].range.end = at + cluster.len();
            used += width;
        }
        if buffer.cursor() == buffer.text().len() {
            cursor = (rows.len() - 1, used);
        }
        EditorRows { rows, row: cursor.0, column: cursor.1 }
    }

    /// The offset in the text at a row and a column, or the nearest one before.
    pub fn offset_at(&self, buffer: &EditBuffer, row: usize, column: usize) -> usize {
        let Some(found) = self.rows.get(row) else { return buffer.text().len() };
        let mut used = 0;
        for (at, cluster) in buffer.text()[found.range.clone()].grapheme_indices(true) {
            let width = visible(buffer, cluster).width();
            if used + width > column {
                return found.range.start + at;
            }
            used += width;
        }
        found.range.end
    }
}

/// What a cluster looks like in the line.
fn visible(buffer: &EditBuffer, cluster: &str) -> String {
    let mut out = String::new();
    for c in cluster.chars() {
        match c {
            '\t' => out.push_str("  "),
            '\0'..='\x1f' => {
                out.push('^');
                out.extend(char::from_u32(u32::from(c) + 0x40));
            }
            '\x7f' => out.push_str("^?"),
            '\u{80}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{61c}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => out.push_str(&format!("‹U+{:04X}›", u32::from(c))),
            c => match buffer.paste(c) {
                Some(paste) => {
                    out.push('[');
                    out.push_str(&paste.label);
                    out.push(']');
                }
                None => out.push(c),
            },
        }
    }
    out
}

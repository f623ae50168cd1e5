//! [`diff_texts`]: a unified diff of bounded length.

use std::time::Duration;

use hardpan_context::knowledge::LineRanges;
use similar::{Algorithm, TextDiff};

/// How one text became another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextChange {
    /// Unified hunks without file headers, cut after a number of bytes.
    pub diff: String,
    /// Whether `diff` is complete.
    pub extent: DiffExtent,
    /// The lines of the new text that `diff` shows.
    pub shown: LineRanges,
    /// The first line that differs, in the new text, from 1.
    pub first_line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiffExtent {
    Whole,
    Cut,
}

/// After this time the algorithm gives up looking for the shortest diff.
const PATIENCE: Duration = Duration::from_millis(500);

/// Compares two texts. The diff has three lines of context and at most `limit` bytes, plus a line
/// that counts what was cut.
pub(crate) fn diff_texts(old: &str, new: &str, limit: usize) -> TextChange {
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).timeout(PATIENCE).diff_lines(old, new);
    let mut text = String::new();
    let mut left_out = 0;
    let mut shown = LineRanges::default();
    for hunk in diff.unified_diff().context_radius(3).missing_newline_hint(true).iter_hunks() {
        let first = hunk.ops().first().map_or(0, |op| op.new_range().start) as u64 + 1;
        let mut next = first;
        for (at, line) in hunk.to_string().split_inclusive('\n').enumerate() {
            if left_out == 0 && text.len() + line.len() <= limit {
                text.push_str(line);
                // The first line is the header.
                next += u64::from(at > 0 && line.starts_with([' ', '+']));
            } else {
                left_out += 1;
            }
        }
        shown.add(&LineRanges::span(first, next - 1));
    }
    let extent = if left_out == 0 { DiffExtent::Whole } else { DiffExtent::Cut };
    if left_out > 0 {
        text.push_str(&format!("… ({left_out} more lines of the diff)\n"));
    }
    TextChange { diff: text, extent, shown, first_line: first_line(old, new) }
}

fn first_line(old: &str, new: &str) -> usize {
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    same + 1
}

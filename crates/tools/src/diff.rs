//! What changed, in few lines.

use std::time::Duration;

use similar::{Algorithm, TextDiff};

/// A change as a unified diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The hunks.
    pub diff: String,
    /// Whether all of it is there.
    pub extent: Extent,
    /// The first line that differs, in the new text, from 1.
    pub first_line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    Cut,
}

/// After this long, a diff need no longer be the shortest one.
const PATIENCE: Duration = Duration::from_millis(500);

/// How two texts differ: hunks with three lines of context, at most `limit` bytes of them.
pub(crate) fn change(old: &str, new: &str, limit: usize) -> Change {
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).timeout(PATIENCE).diff_lines(old, new);
    let mut text = String::new();
    let mut left_out = 0;
    for hunk in diff.unified_diff().context_radius(3).missing_newline_hint(true).iter_hunks() {
        for line in hunk.to_string().split_inclusive('\n') {
            if left_out == 0 && text.len() + line.len() <= limit {
                text.push_str(line);
            } else {
                left_out += 1;
            }
        }
    }
    let extent = if left_out == 0 { Extent::Whole } else { Extent::Cut };
    if left_out > 0 {
        text.push_str(&format!("… ({left_out} more lines of the diff)\n"));
    }
    Change { diff: text, extent, first_line: first_line(old, new) }
}

fn first_line(old: &str, new: &str) -> usize {
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    same + 1
}

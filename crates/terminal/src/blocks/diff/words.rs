//! Which words of a line changed.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::Span;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Longer lines are marked as a whole: words in them are hardly read.
const MAX_LINE_BYTES: usize = 1024;

/// The bytes that differ between two lines, by words: removed ones in the first, added ones in the
/// second. Nothing is marked if little is the same: then the whole line changed.
pub(super) fn changed_words(before: &str, after: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if before.len().max(after.len()) > MAX_LINE_BYTES {
        return (Vec::new(), Vec::new());
    }
    let (old, new) = (words(before), words(after));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let same = |words: &[&str]| -> usize { words.iter().map(|word| word.trim().len()).sum() };
    let kept: usize =
        ops.iter().filter(|op| matches!(op, DiffOp::Equal { .. })).map(|op| same(&old[op.old_range()])).sum();
    if 3 * kept < same(&old).max(same(&new)) {
        return (Vec::new(), Vec::new());
    }
    let changed = ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let mut ranges = (Vec::new(), Vec::new());
    for op in changed {
        push_range(&mut ranges.0, before, &old, op.old_range());
        push_range(&mut ranges.1, after, &new, op.new_range());
    }
    (ranges.0, ranges.1)
}

/// Adds the bytes of some words, joined to the last range if only white space is between them.
fn push_range(ranges: &mut Vec<Range<usize>>, text: &str, words: &[&str], range: Range<usize>) {
    let length = |words: &[&str]| words.iter().map(|word| word.len()).sum::<usize>();
    let start = length(&words[..range.start]);
    let end = start + length(&words[range]);
    if start == end {
        return;
    }
    match ranges.last_mut() {
        Some(last) if text[last.end..start].trim().is_empty() => last.end = end,
        _ => ranges.push(start..end),
    }
}

/// Runs of letters and digits, runs of white space, and single signs.
fn words(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 1,
        c if c.is_whitespace() => 2,
        _ => 0,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut last = 0;
    for (at, c) in text.char_indices() {
        let class = class(c);
        if at > 0 && (class != last || class == 0) {
            words.push(&text[start..at]);
            start = at;
        }
        last = class;
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

/// The spans with another style on top of these bytes of their text.
pub(super) fn restyle(
    spans: Vec<Span<'static>>,
    ranges: &[Range<usize>],
    style: Style,
) -> Vec<Span<'static>> {
    let mut out = Vec::new();
    let mut start = 0;
    for span in spans {
        let end = start + span.content.len();
        let mut at = start;
        for range in ranges.iter().filter(|range| range.start < end && range.end > start) {
            let (from, to) = (range.start.max(start), range.end.min(end));
            push_piece(&mut out, &span, at - start..from - start, span.style);
            push_piece(&mut out, &span, from - start..to - start, span.style.patch(style));
            at = to;
        }
        push_piece(&mut out, &span, at - start..end - start, span.style);
        start = end;
    }
    out
}

fn push_piece(out: &mut Vec<Span<'static>>, span: &Span<'static>, range: Range<usize>, style: Style) {
    if !range.is_empty() {
        out.push(Span::styled(span.content[range].to_owned(), style));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
        let (old, new) = changed_words(before, after);
        let pick = |text: &str, ranges: Vec<Range<usize>>| -> Vec<String> {
            ranges.into_iter().map(|range| text[range].to_owned()).collect()
        };
        (pick(before, old), pick(after, new))
    }

    #[test]
    fn words_that_differ() {
        let (old, new) = marks("score += (i - last) * 2;", "score += min(i - last, MAX) * 2;");
        assert_eq!((old, new), (vec![], vec!["min".to_owned(), ", MAX".to_owned()]));
        assert_eq!(marks("let a = 1;", "return foo(bar)"), (vec![], vec![]));
        assert_eq!(marks("größe = 1", "größe = 2"), (vec!["1".to_owned()], vec!["2".to_owned()]));
    }
}

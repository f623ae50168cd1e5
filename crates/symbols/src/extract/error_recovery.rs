//! Recovers what a syntax error swallowed: one open bracket can turn the rest of a file into one
//! error node. Each such range is parsed again from the next line that looks like the start of a
//! definition, until nothing is left.

use std::ops::Range;

use tree_sitter::{Node, Parser, Point, Tree};

/// How many ranges of a file are reparsed. A file with more errors than this is not code.
const MAX_PIECES: usize = 24;
/// All reparsed ranges together are at most this many times as long as the file, which bounds the
/// cost.
const MAX_LENGTH_FACTOR: usize = 2;

/// The syntax trees of the reparsed ranges; their order does not matter. Empty for a file without
/// errors.
pub(super) fn reparse_errors(parser: &mut Parser, tree: &Tree, text: &str) -> Vec<Tree> {
    let mut pieces = Vec::new();
    if !tree.root_node().has_error() {
        return pieces;
    }
    let mut error_ranges = multiline_errors(tree.root_node());
    let mut left = MAX_LENGTH_FACTOR * text.len();
    while let Some(stretch) = error_ranges.pop().filter(|_| pieces.len() < MAX_PIECES) {
        let Some(start) = next_restart(text, &stretch) else { continue };
        let Some(less) = left.checked_sub(stretch.end - start) else { continue };
        left = less;
        let range = tree_sitter::Range {
            start_byte: start,
            end_byte: stretch.end,
            start_point: point_at(text, start),
            end_point: point_at(text, stretch.end),
        };
        // The positions stay those of the whole text.
        if parser.set_included_ranges(&[range]).is_ok()
            && let Some(piece) = parser.parse(text, None)
        {
            error_ranges
                .extend(multiline_errors(piece.root_node()).into_iter().filter(|error| error.start >= start));
            pieces.push(piece);
        }
    }
    // Reset to the whole text, for the next file.
    if parser.set_included_ranges(&[]).is_err() {
        parser.reset();
    }
    pieces
}

/// Ranges of the outermost errors that span several lines.
fn multiline_errors(root: Node<'_>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(node) = next.pop() {
        if node.is_error() && node.start_position().row < node.end_position().row {
            found.push(node.byte_range());
        } else if node.has_error() {
            next.extend(node.children(&mut node.walk()));
        }
    }
    found
}

/// Start of the first line after the beginning of the error that is not indented and begins with a
/// word, or with an attribute or decorator (`#[…]`, `@…`).
fn next_restart(text: &str, stretch: &Range<usize>) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_start = |at: &usize| {
        bytes
            .get(*at)
            .is_some_and(|byte| byte.is_ascii_alphabetic() || b"_#@".contains(byte) || *byte >= 0x80)
    };
    let end = stretch.end.min(bytes.len());
    let lines =
        memchr::memchr_iter(b'\n', &bytes[stretch.start.min(end)..end]).map(|at| stretch.start + at + 1);
    lines.filter(|at| *at < stretch.end).find(is_start)
}

fn point_at(text: &str, at: usize) -> Point {
    let before = &text.as_bytes()[..at];
    let row = memchr::memchr_iter(b'\n', before).count();
    let column = at - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    Point { row, column }
}

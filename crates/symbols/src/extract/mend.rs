//! What a syntax error swallowed: one open bracket can make the rest of a file one error. Each such stretch is parsed
//! again from the next line that looks like the start of something, until nothing is left.

use std::ops::Range;

use tree_sitter::{Node, Parser, Point, Tree};

/// How many pieces of a file are tried. A file with more breaks than this is not code.
const PIECES: usize = 24;
/// All pieces together are at most this many times as long as the file, so that no file costs more than that.
const LONGEST: usize = 2;

/// The trees of the pieces, in no order that matters. Empty for a file without errors.
pub(super) fn mend(parser: &mut Parser, tree: &Tree, text: &str) -> Vec<Tree> {
    let mut pieces = Vec::new();
    if !tree.root_node().has_error() {
        return pieces;
    }
    let mut broken = errors(tree.root_node());
    let mut left = LONGEST * text.len();
    while let Some(stretch) = broken.pop().filter(|_| pieces.len() < PIECES) {
        let Some(start) = next_start(text, &stretch) else { continue };
        let Some(less) = left.checked_sub(stretch.end - start) else { continue };
        left = less;
        let range = tree_sitter::Range {
            start_byte: start,
            end_byte: stretch.end,
            start_point: point(text, start),
            end_point: point(text, stretch.end),
        };
        // The positions stay those of the whole text.
        if parser.set_included_ranges(&[range]).is_ok()
            && let Some(piece) = parser.parse(text, None)
        {
            broken.extend(errors(piece.root_node()).into_iter().filter(|error| error.start >= start));
            pieces.push(piece);
        }
    }
    // No ranges: the whole text, for the next file.
    if parser.set_included_ranges(&[]).is_err() {
        parser.reset();
    }
    pieces
}

/// The outermost errors that go over several lines.
fn errors(root: Node<'_>) -> Vec<Range<usize>> {
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

/// The first line after the one where the error begins that is not indented and begins with a word or a mark in front of
/// one (`#[…]`, `@…`).
fn next_start(text: &str, stretch: &Range<usize>) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_start = |at: &usize| {
        bytes
            .get(*at)
            .is_some_and(|byte| byte.is_ascii_alphabetic() || b"_#@".contains(byte) || *byte >= 0x80)
    };
    let lines = (stretch.start..stretch.end).filter(|at| bytes.get(*at) == Some(&b'\n')).map(|at| at + 1);
    lines.filter(|at| *at < stretch.end).find(is_start)
}

fn point(text: &str, at: usize) -> Point {
    let before = &text.as_bytes()[..at];
    let row = before.iter().filter(|byte| **byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    Point { row, column }
}

//! [`EditBlockParser`]: edits that a model writes into its answer instead of calling a tool.
//!
//! ```text
//! src/clock.py
//! <<<<<<< EDIT
//! the lines as they are
//! ======= REPLACE
//! the lines as they should be
//! >>>>>>> END
//! ```
//!
//! The parser also takes the markers that models know from elsewhere: `SEARCH` for `EDIT`, a bare
//! `=======`, and `>>>>>>> REPLACE` at the end. It takes text in pieces, as it streams, and returns a
//! block when its last line is complete.

use serde::{Deserialize, Serialize};
use thiserror::Error;

mod apply; // EditBlockStatus: carrying out a block
#[cfg(test)]
mod tests;

pub use apply::{EditBlockStatus, edit_block_tool};

/// How many signs a marker has at least. Models now and then write one or two less than seven.
const MARKER_SIGNS: usize = 5;

/// One edit, as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditBlock {
    /// The file, as named on the line before the block.
    pub path: String,
    /// The lines to be replaced. Empty for a new file.
    pub old_text: String,
    /// The lines to be put there. Empty to delete the old ones.
    pub new_text: String,
}

/// Why a block cannot be carried out, whatever the file contains.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MalformedBlock {
    /// No line before the block names a file.
    #[error(
        "line {line}: no path stands on the line before the block (put one that has spaces in backticks)"
    )]
    NoPath {
        /// The line of the answer on which the block begins, from 1.
        line: usize,
    },
    /// The line between old and new text is missing.
    #[error("line {line}: the block has no line `======= REPLACE`")]
    NoSeparator {
        /// The line of the answer on which the block begins, from 1.
        line: usize,
    },
    /// Several lines could be the one between old and new text.
    #[error(
        "line {line}: several lines of the block are `=======`; write `======= REPLACE` between old and new text"
    )]
    SeveralSeparators {
        /// The line of the answer on which the block begins, from 1.
        line: usize,
    },
    /// The answer ends, or another block begins, before the block does.
    #[error("line {line}: the block has no end (`>>>>>>> END`)")]
    NoEnd {
        /// The line of the answer on which the block begins, from 1.
        line: usize,
    },
}

/// Finds the edit blocks of an answer as it streams.
#[derive(Debug, Default)]
pub struct EditBlockParser {
    /// The line that is not complete yet.
    partial: String,
    /// How many complete lines there were.
    lines: usize,
    /// The last line that could name a file.
    path: Option<String>,
    open: Option<OpenBlock>,
}

#[derive(Debug)]
struct OpenBlock {
    path: Option<String>,
    /// The line on which it begins.
    line: usize,
    body: Vec<String>,
}

/// What a line of an answer may be, besides text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    Begin,
    /// `======= REPLACE`.
    LabelledSeparator,
    /// `=======`, which may also be a part of the file.
    BareSeparator,
    End,
}

impl EditBlockParser {
    /// Takes the next piece of the answer. Returns the blocks that it completes.
    pub fn push(&mut self, piece: &str) -> Vec<Result<EditBlock, MalformedBlock>> {
        let mut found = Vec::new();
        self.partial.push_str(piece);
        while let Some(end) = self.partial.find('\n') {
            let rest = self.partial.split_off(end + 1);
            let line = std::mem::replace(&mut self.partial, rest);
            self.take_line(line.trim_end_matches(['\n', '\r']), &mut found);
        }
        found
    }

    /// Ends the answer. Returns what its last line completes, or the block that has no end.
    pub fn finish(mut self) -> Vec<Result<EditBlock, MalformedBlock>> {
        let mut found = Vec::new();
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            self.take_line(last.trim_end_matches('\r'), &mut found);
        }
        if let Some(open) = self.open {
            found.push(Err(MalformedBlock::NoEnd { line: open.line }));
        }
        found
    }

    /// Whether a block has begun and not ended.
    pub fn is_in_block(&self) -> bool {
        self.open.is_some()
    }

    fn take_line(&mut self, line: &str, found: &mut Vec<Result<EditBlock, MalformedBlock>>) {
        self.lines += 1;
        let marker = marker_of(line);
        match (&mut self.open, marker) {
            (None, Some(Marker::Begin)) => {
                self.open = Some(OpenBlock { path: self.path.take(), line: self.lines, body: Vec::new() });
            }
            (None, _) => match path_of(line) {
                Some(path) if path.is_empty() => {}
                path => self.path = path,
            },
            (Some(open), Some(Marker::Begin)) => {
                found.push(Err(MalformedBlock::NoEnd { line: open.line }));
                // The path stands on the last line of what was taken for the block's text.
                let path =
                    open.body.iter().rev().find_map(|line| path_of(line).filter(|path| !path.is_empty()));
                self.open = Some(OpenBlock { path, line: self.lines, body: Vec::new() });
            }
            (Some(_), Some(Marker::End)) => {
                let open = self.open.take();
                found.extend(open.map(OpenBlock::close));
            }
            (Some(open), _) => open.body.push(line.to_owned()),
        }
    }
}

impl OpenBlock {
    fn close(self) -> Result<EditBlock, MalformedBlock> {
        let line = self.line;
        let path = self.path.ok_or(MalformedBlock::NoPath { line })?;
        let at =
            |wanted| self.body.iter().enumerate().filter(move |(_, text)| marker_of(text) == Some(wanted));
        let mut labelled = at(Marker::LabelledSeparator);
        let mut bare = at(Marker::BareSeparator);
        let separator = match (labelled.next(), labelled.next(), bare.next(), bare.next()) {
            (Some((separator, _)), None, ..) | (None, _, Some((separator, _)), None) => separator,
            (None, _, None, _) => return Err(MalformedBlock::NoSeparator { line }),
            _ => return Err(MalformedBlock::SeveralSeparators { line }),
        };
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        Ok(EditBlock {
            path,
            old_text: text(&self.body[..separator]),
            new_text: text(&self.body[separator + 1..]),
        })
    }
}

fn marker_of(line: &str) -> Option<Marker> {
    let sign = line.chars().next().filter(|sign| "<=>".contains(*sign))?;
    let label = line.trim_start_matches(sign);
    // Every sign is one byte.
    if line.len() - label.len() < MARKER_SIGNS {
        return None;
    }
    match (sign, label.trim()) {
        ('<', "EDIT" | "SEARCH") => Some(Marker::Begin),
        ('=', "REPLACE") => Some(Marker::LabelledSeparator),
        ('=', "") => Some(Marker::BareSeparator),
        ('>', "END" | "REPLACE") => Some(Marker::End),
        _ => None,
    }
}

/// The path on a line of its own, without the decoration that models put around it. Empty for lines
/// that may stand between a path and its block: blank lines and the fences of code. `None` for text:
/// words with spaces between them are a path only in backticks.
fn path_of(line: &str) -> Option<String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with("```") || line.starts_with("~~~") {
        return Some(String::new());
    }
    let bare = line.trim_start_matches(['#', '*', '-', ' ']).trim_end_matches(['*', ':', ' ']);
    let is_quoted = bare.starts_with('`');
    let bare = bare.trim_matches('`').trim_end_matches([':', '*']).trim_matches('`');
    let is_text = bare.is_empty()
        || bare.ends_with(['.', '!', '?', ','])
        || (!is_quoted && bare.contains(char::is_whitespace));
    (!is_text).then(|| bare.to_owned())
}

//! [`LineEndings`] and [`NormalizedText`]: edits match regardless of line endings, and keep those
//! of the file.

use std::ops::Range;

/// The byte order mark that some Windows programs put at the beginning of UTF-8 files.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// How most lines of a text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineEndings {
    /// A line feed. Also for a text of one line.
    Lf,
    /// A carriage return and a line feed.
    CrLf,
}

impl LineEndings {
    /// The line ending of most lines of a text.
    pub fn detect(text: &str) -> Self {
        let all = text.matches('\n').count();
        let pairs = text.matches("\r\n").count();
        if pairs * 2 > all { LineEndings::CrLf } else { LineEndings::Lf }
    }

    /// The text with these line endings.
    pub fn apply_to(self, text: &str) -> String {
        match self {
            LineEndings::Lf => text.to_owned(),
            LineEndings::CrLf => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        }
    }
}

/// A text with all line endings turned into line feeds, and the way back to the original offsets.
pub(super) struct NormalizedText {
    pub text: String,
    /// Offsets in `text` of the line feeds that had a carriage return before them, ascending.
    pairs: Vec<usize>,
    endings: LineEndings,
}

impl NormalizedText {
    pub fn new(raw: &str) -> Self {
        let mut text = String::with_capacity(raw.len());
        let mut pairs = Vec::new();
        for (index, piece) in raw.split("\r\n").enumerate() {
            if index > 0 {
                pairs.push(text.len());
                text.push('\n');
            }
            text.push_str(piece);
        }
        NormalizedText { text, pairs, endings: LineEndings::detect(raw) }
    }

    /// Translates an offset in `text` into one in the original.
    pub fn raw_offset(&self, offset: usize) -> usize {
        offset + self.pairs.partition_point(|&pair| pair < offset)
    }

    /// The line ending of most lines in a part of `text`; that of the whole text where the part has
    /// none.
    pub fn endings_at(&self, part: Range<usize>) -> LineEndings {
        let ends = self.text[part.clone()].matches('\n').count();
        let pairs = self.pairs.iter().filter(|pair| part.contains(pair)).count();
        match ends {
            0 => self.endings,
            ends if pairs * 2 > ends => LineEndings::CrLf,
            _ => LineEndings::Lf,
        }
    }
}

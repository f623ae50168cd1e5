//! Line endings: texts are matched without regard to them, and keep them.

use std::ops::Range;

/// The byte order mark, as a character.
pub(crate) const MARK: char = '\u{feff}';

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endings {
    /// With a line feed, or there is only one line.
    Lf,
    /// Mostly with a carriage return and a line feed.
    CrLf,
}

impl Endings {
    /// How most lines of a text end.
    pub fn of(text: &str) -> Self {
        let all = text.matches('\n').count();
        let pairs = text.matches("\r\n").count();
        if pairs * 2 > all { Endings::CrLf } else { Endings::Lf }
    }

    /// The text (whose lines end in a line feed) with these endings.
    pub fn applied(self, text: &str) -> String {
        match self {
            Endings::Lf => text.to_owned(),
            Endings::CrLf => text.replace("\r\n", "\n").replace('\n', "\r\n"),
        }
    }
}

/// A text whose lines all end in a line feed, and the way back to the text it was.
pub(super) struct Document {
    pub text: String,
    /// Where, in `text`, the line feeds are that had a carriage return before them.
    pairs: Vec<usize>,
    endings: Endings,
}

impl Document {
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
        Document { text, pairs, endings: Endings::of(raw) }
    }

    /// Where an offset of `text` lies in the raw text.
    pub fn raw(&self, offset: usize) -> usize {
        offset + self.pairs.partition_point(|&pair| pair < offset)
    }

    /// How the lines of a part end; where it holds no line end, how those of the whole do.
    pub fn endings_at(&self, part: Range<usize>) -> Endings {
        let ends = self.text[part.clone()].matches('\n').count();
        let pairs = self.pairs.iter().filter(|pair| part.contains(pair)).count();
        match ends {
            0 => self.endings,
            ends if pairs * 2 > ends => Endings::CrLf,
            _ => Endings::Lf,
        }
    }
}

//! A text's prefix sums.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::cuts::{is_cut, last_cut, next_cut};
use super::vocabulary::{Tokenizer, Vocabulary};
use crate::Text;

/// Bytes between two remembered cuts: the most that a range counts afresh at each end, as a rule. At 8 bytes a
/// cut, the sums take about 2% of the text's size.
const STEP: usize = 512;

/// A place where counts add up, and the tokens before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) at: u32,
    pub(super) tokens: u32,
}

/// Token counts up to some of a text's cuts: the first, the last, and some between. Holds no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    cuts: Vec<Cut>,
    /// One number: all tokens. Shared, because a block of one segment is measured as just this.
    total: Arc<[u32]>,
}

impl Sums {
    pub(super) fn of(text: &str, tokenizer: &Tokenizer) -> Self {
        let mut sums = Sums { cuts: Vec::new(), total: Arc::new([0]) };
        sums.extend(text, tokenizer);
        sums
    }

    /// Counts what `text` has after the last cut known. What comes before must be what was counted then.
    fn extend(&mut self, text: &str, tokenizer: &Tokenizer) {
        tokenizer.begin_text();
        let count_to = |from: Cut, at: usize| Cut {
            at: at as u32,
            tokens: from.tokens + tokenizer.count_piece(&text[from.at as usize..at]) as u32,
        };
        let mut here = self.cuts.last().copied().unwrap_or(Cut { at: 0, tokens: 0 });
        if self.cuts.is_empty()
            && let Some(at) = next_cut(text, 1)
        {
            here = count_to(here, at);
            self.push(here);
        }
        while let Some(at) = next_cut(text, here.at as usize + STEP) {
            here = count_to(here, at);
            self.push(here);
        }
        if let Some(at) = last_cut(text, here.at as usize) {
            here = count_to(here, at);
            self.push(here);
        }
        self.total = Arc::new([count_to(here, text.len()).tokens]);
    }

    /// Adds a cut; the one before it is forgotten where its neighbours are near (many small appends would
    /// otherwise leave many), but never the first.
    fn push(&mut self, cut: Cut) {
        match self.cuts.as_mut_slice() {
            [.., before, last] if ((cut.at - before.at) as usize) < STEP => *last = cut,
            _ => self.cuts.push(cut),
        }
    }

    pub(super) fn total(&self) -> usize {
        self.total[0] as usize
    }

    pub(super) fn as_segment(&self) -> Arc<[u32]> {
        self.total.clone()
    }

    /// The first and the last cut, if there is one at all.
    pub(super) fn ends(&self) -> Option<(Cut, Cut)> {
        Some((*self.cuts.first()?, *self.cuts.last()?))
    }
}

/// A text and its prefix sums: what any part of it counts is known without counting all of it. Cheap to clone.
#[derive(Clone)]
pub struct Counted {
    text: Text,
    sums: Arc<Sums>,
    tokenizer: Tokenizer,
}

impl Counted {
    pub(super) fn new(text: Text, sums: Arc<Sums>, tokenizer: Tokenizer) -> Self {
        Counted { text, sums, tokenizer }
    }

    pub(super) fn sums(&self) -> &Arc<Sums> {
        &self.sums
    }

    pub(super) fn vocabulary(&self) -> Vocabulary {
        self.tokenizer.vocabulary()
    }

    /// The text.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The tokens of the whole text.
    pub fn total(&self) -> usize {
        self.sums.total()
    }

    /// The tokens that the bytes of `range` have as a text of their own: only its ragged ends are counted afresh.
    ///
    /// # Panics
    /// Like slicing: if the range is not within the text, or does not lie on character boundaries.
    pub fn range(&self, range: Range<usize>) -> usize {
        let (part, upto) = (&self.text[range.clone()], &self.text[..range.end]);
        let cuts = &self.sums.cuts;
        let first = cuts.partition_point(|cut| (cut.at as usize) < range.start);
        let mut end = cuts.partition_point(|cut| cut.at as usize <= range.end);
        // A cut after a newline looks ahead: it may not look beyond the range.
        let holds = |cut: Cut| cut.at as usize == range.end || is_cut(upto, cut.at as usize);
        while end > first && !holds(cuts[end - 1]) {
            end -= 1;
        }
        let Some((head, tail)) = cuts.get(first..end).and_then(|cuts| Some((*cuts.first()?, *cuts.last()?)))
        else {
            return self.tokenizer.count(part);
        };
        let before = match range.start {
            0 => head.tokens as usize,
            start => self.tokenizer.count(&self.text[start..head.at as usize]),
        };
        let after = match range.end {
            end if end == self.text.len() => self.total() - tail.tokens as usize,
            end => self.tokenizer.count(&self.text[tail.at as usize..end]),
        };
        before + (tail.tokens - head.tokens) as usize + after
    }

    /// The count of this text with `more` after it: the work is that of `more` and a few bytes before it. Give the
    /// result to [`Counter::keep`](crate::Counter::keep), and the longer text is known wherever it is measured.
    pub fn append(&self, more: &str) -> Counted {
        let text = Text::new([self.text.as_str(), more].concat());
        let mut sums = (*self.sums).clone();
        sums.extend(&text, &self.tokenizer);
        Counted { text, sums: Arc::new(sums), tokenizer: self.tokenizer.clone() }
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted")
            .field("text", &self.text)
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}

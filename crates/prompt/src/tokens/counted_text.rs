//! [`CountedText`]: a text with prefix sums of its tokens.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::cut_points::{is_cut_point, last_cut_point, next_cut_point};
use super::vocabulary::{Tokenizer, Vocabulary};
use crate::Text;

/// Bytes between two remembered cut points: as a rule, the most that a range has to count anew at
/// each end. At 8 bytes each, the sums take about 2% of the text's size.
const STEP: usize = 512;

/// A position where counts add up (see [`cut_points`](super::cut_points)), and the tokens before
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CutPoint {
    pub(super) at: u32,
    pub(super) tokens: u32,
}

/// Token counts up to some of a text's cut points: the first, the last, and some between. Holds no
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrefixSums {
    cuts: Vec<CutPoint>,
    /// A single number, the tokens of the whole text. Shared, because a block of one segment is
    /// measured as just this.
    total: Arc<[u32]>,
}

impl PrefixSums {
    pub(super) fn new(text: &str, tokenizer: &Tokenizer) -> Self {
        let mut sums = PrefixSums { cuts: Vec::new(), total: Arc::new([0]) };
        sums.extend(text, tokenizer);
        sums
    }

    /// The sums of a text of which only the total is known.
    pub(super) fn of_total(tokens: u32) -> Self {
        PrefixSums { cuts: Vec::new(), total: Arc::new([tokens]) }
    }

    /// Counts what `text` has after the last known cut point. The text before it must be the one
    /// that was counted then.
    fn extend(&mut self, text: &str, tokenizer: &Tokenizer) {
        tokenizer.begin_text();
        let count_to = |from: CutPoint, at: usize| CutPoint {
            at: at as u32,
            tokens: from.tokens + tokenizer.count_piece(&text[from.at as usize..at]) as u32,
        };
        let mut here = self.cuts.last().copied().unwrap_or(CutPoint { at: 0, tokens: 0 });
        if self.cuts.is_empty()
            && let Some(at) = next_cut_point(text, 1)
        {
            here = count_to(here, at);
            self.push(here);
        }
        while let Some(at) = next_cut_point(text, here.at as usize + STEP) {
            here = count_to(here, at);
            self.push(here);
        }
        if let Some(at) = last_cut_point(text, here.at as usize) {
            here = count_to(here, at);
            self.push(here);
        }
        self.total = Arc::new([count_to(here, text.len()).tokens]);
    }

    /// Adds a cut point. The one before it is dropped if its neighbours are near, since many small
    /// appends would otherwise leave many; the first one always stays.
    fn push(&mut self, cut: CutPoint) {
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

    /// The first and the last cut point. `None`: the text has none.
    pub(super) fn ends(&self) -> Option<(CutPoint, CutPoint)> {
        Some((*self.cuts.first()?, *self.cuts.last()?))
    }
}

/// A text and its prefix sums: any part of it can be counted without counting all of it. Cheap to
/// clone.
#[derive(Clone)]
pub struct CountedText {
    text: Text,
    sums: Arc<PrefixSums>,
    tokenizer: Tokenizer,
}

impl CountedText {
    pub(super) fn new(text: Text, sums: Arc<PrefixSums>, tokenizer: Tokenizer) -> Self {
        CountedText { text, sums, tokenizer }
    }

    pub(super) fn sums(&self) -> &Arc<PrefixSums> {
        &self.sums
    }

    pub(super) fn vocabulary(&self) -> Vocabulary {
        self.tokenizer.vocabulary()
    }

    /// The counted text, shared.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The tokens of the whole text.
    pub fn total(&self) -> usize {
        self.sums.total()
    }

    /// Tokens that the bytes of `range` would have as a text of their own; only its ragged ends are
    /// counted anew.
    ///
    /// # Panics
    /// Like slicing: if the range is not within the text, or does not lie on character boundaries.
    pub fn range(&self, range: Range<usize>) -> usize {
        let (part, upto) = (&self.text[range.clone()], &self.text[..range.end]);
        let cuts = &self.sums.cuts;
        let first = cuts.partition_point(|cut| (cut.at as usize) < range.start);
        let mut end = cuts.partition_point(|cut| cut.at as usize <= range.end);
        // A cut after a newline looks ahead: it may not look beyond the range.
        let holds = |cut: CutPoint| cut.at as usize == range.end || is_cut_point(upto, cut.at as usize);
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

    /// Counts this text with `more` appended, at the cost of `more` and a few bytes before it. Pass
    /// the result to [`TokenCounter::remember`](crate::TokenCounter::remember), and the longer text
    /// is known wherever it is measured.
    pub fn append(&self, more: &str) -> CountedText {
        let text = Text::new([self.text.as_str(), more].concat());
        let mut sums = (*self.sums).clone();
        sums.extend(&text, &self.tokenizer);
        CountedText { text, sums: Arc::new(sums), tokenizer: self.tokenizer.clone() }
    }
}

impl fmt::Debug for CountedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted")
            .field("text", &self.text)
            .field("total", &self.total())
            .finish_non_exhaustive()
    }
}

//! Exact token counts that are made once.
//!
//! A [`Counter`] knows every text by its hash, so a prompt is counted in proportion to what changed in it. A
//! [`Counted`] text knows what each part of it counts. A [`Factor`] is for models whose vocabulary is not public.

mod counted; // Counted: a text's prefix sums
mod cuts; // where counts add up
mod factor; // Factor: learned from what the provider billed
mod memory; // what has been counted, and for how long
mod vocabulary; // Vocabulary, Work, and the one place that tokenises

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use counted::Counted;
pub use factor::Factor;
pub use vocabulary::{UnknownVocabulary, Vocabulary, Work};

use crate::{Call, Hash, Measured, Prompt, Segment, Text, Tool};
use counted::Sums;
use cuts::last_cut;
use memory::{Memory, Named, Sequence};
use vocabulary::Tokenizer;

/// Counts tokens, each text once. Shared by reference between threads; where two count the same new text at the
/// same moment, both do the work.
///
/// What it remembers is bounded: [`measure`](Counter::measure) forgets what the last eight measured prompts did
/// not use, and of each sort at most 65,536 entries are kept. Of a text it keeps the sums (about 2% of its
/// size), never the text.
pub struct Counter {
    tokenizer: Tokenizer,
    memory: Mutex<Memory>,
}

impl Counter {
    /// A counter that knows nothing yet.
    pub fn new(vocabulary: Vocabulary) -> Self {
        Counter { tokenizer: Tokenizer::new(vocabulary), memory: Mutex::default() }
    }

    /// The vocabulary it counts by.
    pub fn vocabulary(&self) -> Vocabulary {
        self.tokenizer.vocabulary()
    }

    /// What it has really tokenised since it was made.
    pub fn work(&self) -> Work {
        self.tokenizer.work()
    }

    /// How many counts it remembers.
    pub fn remembered(&self) -> usize {
        self.memory().len()
    }

    /// The tokens of a text.
    pub fn count(&self, text: &Text) -> usize {
        self.count_hashed(text.hash(), text)
    }

    /// The tokens of a text whose hash is known.
    pub fn count_hashed(&self, hash: Hash, text: &str) -> usize {
        self.sums(hash, text).total()
    }

    /// The text with its prefix sums.
    pub fn counted(&self, text: &Text) -> Counted {
        Counted::new(text.clone(), self.sums(text.hash(), text), self.tokenizer.clone())
    }

    /// Remembers a count that was made by [`Counted::append`].
    pub fn keep(&self, counted: &Counted) {
        if counted.vocabulary() == self.vocabulary() {
            self.memory().keep_text(counted.text().hash(), counted.sums().clone());
        }
    }

    /// The tokens that each segment adds to those before it: together exactly those of the joined text.
    ///
    /// A segment can take tokens away, as when it completes a word; then those before it count less.
    pub fn segments(&self, segments: &[Segment]) -> Arc<[u32]> {
        match segments {
            [] => Arc::new([]),
            [only] => self.sums(only.text.hash(), &only.text).as_segment(),
            many => {
                let hash = Hash::chain(many.iter().map(|segment| segment.text.hash()));
                if let Some(known) = self.memory().sequence(hash) {
                    return known;
                }
                let sequence = self.join(many);
                let counts = sequence.counts.clone();
                self.memory().keep_sequence(hash, sequence);
                counts
            }
        }
    }

    /// The tokens of every block of a prompt. Forgets what has not been used for a while.
    pub fn measure(&self, prompt: &Prompt) -> Measured {
        let measured = Measured::of(prompt, self);
        self.memory().age();
        measured
    }

    /// A call counts as one text: its name, a newline, its arguments.
    pub(crate) fn call(&self, call: &Call) -> Arc<[u32]> {
        let key = Named { name: call.name.clone(), description: None, json: call.arguments.hash() };
        self.named(key, || [&call.name, "\n", call.arguments.as_str()].concat())
    }

    /// A tool counts as one text: its name, its description and its schema, a newline between.
    pub(crate) fn tool(&self, tool: &Tool) -> Arc<[u32]> {
        let (name, description) = (tool.name.clone(), Some(tool.description.clone()));
        let key = Named { name, description, json: tool.parameters.hash() };
        self.named(key, || [&tool.name, "\n", &tool.description, "\n", tool.parameters.as_str()].concat())
    }

    fn named(&self, key: Named, text: impl Fn() -> String) -> Arc<[u32]> {
        if let Some(known) = self.memory().named(&key) {
            return known;
        }
        let counts: Arc<[u32]> = Arc::new([self.tokenizer.count(&text()) as u32]);
        self.memory().keep_named(key, counts.clone());
        counts
    }

    fn sums(&self, hash: Hash, text: &str) -> Arc<Sums> {
        if let Some(known) = self.memory().text(hash) {
            return known;
        }
        let sums = Arc::new(Sums::of(text, &self.tokenizer));
        self.memory().keep_text(hash, sums.clone());
        sums
    }

    /// Walks the segments with the text since the last cut in hand. Within a segment its own sums hold; only what
    /// lies between the last cut before a seam and the first after it is counted for the seam.
    fn join(&self, segments: &[Segment]) -> Sequence {
        let mut used = Vec::with_capacity(2 * segments.len());
        let mut sums_of = |hash, text: &str| {
            let sums = self.sums(hash, text);
            used.push(sums.clone());
            sums
        };
        let (mut closed, mut open) = (0, String::new());
        let mut totals = Vec::with_capacity(segments.len());
        for Segment { text, .. } in segments {
            let sums = sums_of(text.hash(), text);
            let Some((first, last)) = sums.ends() else {
                open.push_str(text);
                let cut = last_cut(&open, 0).unwrap_or(0);
                closed += self.seam(&open[..cut], &mut sums_of);
                open.drain(..cut);
                totals.push(closed + self.seam(&open, &mut sums_of));
                continue;
            };
            open.push_str(&text[..first.at as usize]);
            closed += self.seam(&open, &mut sums_of) + (last.tokens - first.tokens) as usize;
            open.clear();
            open.push_str(&text[last.at as usize..]);
            totals.push(closed + sums.total() - last.tokens as usize);
        }
        Sequence { counts: steps(totals), _made_of: used.into() }
    }

    fn seam(&self, text: &str, sums_of: &mut impl FnMut(Hash, &str) -> Arc<Sums>) -> usize {
        if text.is_empty() { 0 } else { sums_of(Hash::of(text.as_bytes()), text).total() }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Every entry is true by itself, so a panic elsewhere leaves nothing half done.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("vocabulary", &self.vocabulary()).finish_non_exhaustive()
    }
}

/// The differences of running totals; where a total is smaller than one before it, that one gives way.
fn steps(mut totals: Vec<usize>) -> Arc<[u32]> {
    for index in (1..totals.len()).rev() {
        totals[index - 1] = totals[index - 1].min(totals[index]);
    }
    let before = [0].into_iter().chain(totals.iter().copied());
    totals.iter().zip(before).map(|(total, before)| (total - before) as u32).collect()
}

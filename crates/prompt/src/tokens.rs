//! Exact token counts, each computed once.
//!
//! The principal type is [`TokenCounter`]. It identifies texts by their hash, so that counting a
//! prompt costs as much as what changed in it. A [`CountedText`] also knows the count of each part
//! of a text. A [`TokenFactor`] scales counts for models whose vocabulary is not public.

mod count_cache; // CountCache: what was counted, and for how long it is kept
mod counted_text; // CountedText: a text with its prefix sums
mod cut_points; // positions at which counts add up
mod factor; // TokenFactor: learned from what the provider billed
mod given_sizes; // GivenSizes: sizes known from elsewhere, in place of counts
mod vocabulary; // Vocabulary, TokenizerWork, and the only code that tokenizes

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use counted_text::CountedText;
pub use factor::TokenFactor;
pub use given_sizes::GivenSizes;
pub use vocabulary::{TokenizerWork, UnknownVocabulary, Vocabulary};

use crate::{Call, Hash, Prompt, PromptTokens, Segment, Text, Tool};
use count_cache::{CountCache, NamedTextKey, SegmentCounts};
use counted_text::PrefixSums;
use cut_points::last_cut_point;
use vocabulary::Tokenizer;

/// Counts tokens, each text once. Share it by reference between threads; if two threads count the
/// same new text at the same moment, both do the work.
///
/// Its memory is bounded: [`measure`](TokenCounter::measure) forgets what the last eight measured
/// prompts did not use, and at most 65,536 entries of each sort are kept. Of a text it keeps the
/// prefix sums (about 2% of its size), never the text itself.
pub struct TokenCounter {
    tokenizer: Tokenizer,
    cache: Mutex<CountCache>,
    given: Option<GivenSizes>,
}

impl TokenCounter {
    /// Makes a counter that has counted nothing yet.
    pub fn new(vocabulary: Vocabulary) -> Self {
        TokenCounter { tokenizer: Tokenizer::new(vocabulary), cache: Mutex::default(), given: None }
    }

    /// Makes a counter that takes the sizes of some texts as given. The segments of a text are then
    /// counted one by one.
    pub fn with_sizes(vocabulary: Vocabulary, given: GivenSizes) -> Self {
        TokenCounter { given: Some(given), ..TokenCounter::new(vocabulary) }
    }

    /// The vocabulary that texts are counted with.
    pub fn vocabulary(&self) -> Vocabulary {
        self.tokenizer.vocabulary()
    }

    /// What was really tokenized since the counter was made; known texts do not add to it.
    pub fn work(&self) -> TokenizerWork {
        self.tokenizer.work()
    }

    /// Number of counts in memory, for tests of its bounds.
    pub fn remembered_counts(&self) -> usize {
        self.cache().len()
    }

    /// Counts the tokens of a text.
    pub fn count(&self, text: &Text) -> usize {
        self.count_hashed(text.hash(), text)
    }

    /// Counts a text whose hash is known already.
    pub fn count_hashed(&self, hash: Hash, text: &str) -> usize {
        self.sums(hash, text).total()
    }

    /// Counts a text and keeps its prefix sums at hand, so that ranges of it can be counted
    /// cheaply.
    pub fn counted_text(&self, text: &Text) -> CountedText {
        CountedText::new(text.clone(), self.sums(text.hash(), text), self.tokenizer.clone())
    }

    /// Puts a count that [`CountedText::append`] made into the counter's memory. Ignored if it was
    /// made with another vocabulary.
    pub fn remember(&self, counted: &CountedText) {
        if counted.vocabulary() == self.vocabulary() {
            self.cache().insert_text(counted.text().hash(), counted.sums().clone());
        }
    }

    /// The tokens that each segment adds to those before it. Together they are exactly the tokens
    /// of the joined text.
    ///
    /// A segment can take tokens away, as when it completes a word; then the segments before it
    /// count less.
    pub fn count_segments(&self, segments: &[Segment]) -> Arc<[u32]> {
        match segments {
            [] => Arc::new([]),
            [only] => self.sums(only.text.hash(), &only.text).as_segment(),
            many => {
                let hash = Hash::chain(many.iter().map(|segment| segment.text.hash()));
                if let Some(known) = self.cache().get_segments(hash) {
                    return known;
                }
                let sequence = match &self.given {
                    None => self.join(many),
                    Some(_) => self.count_each(many),
                };
                let counts = sequence.counts.clone();
                self.cache().insert_segments(hash, sequence);
                counts
            }
        }
    }

    /// Counts every block of a prompt, and forgets counts that recent prompts did not use.
    pub fn measure(&self, prompt: &Prompt) -> PromptTokens {
        let measured = PromptTokens::measure(prompt, self);
        self.cache().start_next_measure();
        measured
    }

    /// A call counts as one text: name, newline, arguments.
    pub(crate) fn count_call(&self, call: &Call) -> Arc<[u32]> {
        let key = NamedTextKey { name: call.name.clone(), description: None, json: call.arguments.hash() };
        self.count_named(key, || [&call.name, "\n", call.arguments.as_str()].concat())
    }

    /// A tool counts as one text: name, description and schema, separated by newlines.
    pub(crate) fn count_tool(&self, tool: &Tool) -> Arc<[u32]> {
        let (name, description) = (tool.name.clone(), Some(tool.description.clone()));
        let key = NamedTextKey { name, description, json: tool.parameters.hash() };
        self.count_named(key, || {
            [&tool.name, "\n", &tool.description, "\n", tool.parameters.as_str()].concat()
        })
    }

    fn count_named(&self, key: NamedTextKey, text: impl Fn() -> String) -> Arc<[u32]> {
        if let Some(known) = self.cache().get_named(&key) {
            return known;
        }
        let count = || self.tokenizer.count(&text());
        let tokens = match &self.given {
            None => count() as u32,
            Some(given) => {
                let call = key.description.is_none().then(|| given.call(&key.name, key.json));
                call.flatten().unwrap_or_else(|| given.scale(count()))
            }
        };
        let counts: Arc<[u32]> = Arc::new([tokens]);
        self.cache().insert_named(key, counts.clone());
        counts
    }

    fn sums(&self, hash: Hash, text: &str) -> Arc<PrefixSums> {
        if let Some(known) = self.cache().get_text(hash) {
            return known;
        }
        let count = || PrefixSums::new(text, &self.tokenizer);
        let sums = Arc::new(match &self.given {
            None => count(),
            Some(given) => {
                PrefixSums::of_total(given.text(hash).unwrap_or_else(|| given.scale(count().total())))
            }
        });
        self.cache().insert_text(hash, sums.clone());
        sums
    }

    fn count_each(&self, segments: &[Segment]) -> SegmentCounts {
        let sums: Vec<Arc<PrefixSums>> =
            segments.iter().map(|segment| self.sums(segment.text.hash(), &segment.text)).collect();
        let counts = sums.iter().map(|sums| sums.total() as u32).collect();
        SegmentCounts { counts, _keeps_alive: sums.into() }
    }

    /// Joins the segments while keeping the text since the last cut point. Within a segment its own
    /// sums hold; only the text between the last cut point before a seam and the first one after it
    /// is counted anew.
    fn join(&self, segments: &[Segment]) -> SegmentCounts {
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
                let cut = last_cut_point(&open, 0).unwrap_or(0);
                closed += self.count_seam(&open[..cut], &mut sums_of);
                open.drain(..cut);
                totals.push(closed + self.count_seam(&open, &mut sums_of));
                continue;
            };
            open.push_str(&text[..first.at as usize]);
            closed += self.count_seam(&open, &mut sums_of) + (last.tokens - first.tokens) as usize;
            open.clear();
            open.push_str(&text[last.at as usize..]);
            totals.push(closed + sums.total() - last.tokens as usize);
        }
        SegmentCounts { counts: differences(totals), _keeps_alive: used.into() }
    }

    fn count_seam(&self, text: &str, sums_of: &mut impl FnMut(Hash, &str) -> Arc<PrefixSums>) -> usize {
        if text.is_empty() { 0 } else { sums_of(Hash::of(text.as_bytes()), text).total() }
    }

    fn cache(&self) -> MutexGuard<'_, CountCache> {
        // Every entry is true by itself, so a panic elsewhere leaves nothing half done.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("vocabulary", &self.vocabulary()).finish_non_exhaustive()
    }
}

/// The differences between running totals. Where a total is smaller than the one before it, the
/// earlier one is lowered.
fn differences(mut totals: Vec<usize>) -> Arc<[u32]> {
    for index in (1..totals.len()).rev() {
        totals[index - 1] = totals[index - 1].min(totals[index]);
    }
    let before = [0].into_iter().chain(totals.iter().copied());
    totals.iter().zip(before).map(|(total, before)| (total - before) as u32).collect()
}

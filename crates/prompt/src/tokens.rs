//! Exact token counts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::{Hash, Measured, Prompt, Segment, Text};

/// A public vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vocabulary {
    /// OpenAI's from GPT-4o on; the stand-in for models whose own is not public.
    O200k,
    /// OpenAI's for GPT-4 and GPT-3.5.
    Cl100k,
}
/// Work
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Texts
    pub texts: u64,
    /// Bytes
    pub bytes: u64,
}
/// Counted
#[derive(Debug)]
pub struct Counted {}
/// Factor
#[derive(Debug)]
pub struct Factor {}
/// Counter
pub struct Counter {
    vocabulary: Vocabulary,
    counts: Mutex<HashMap<Hash, usize>>,
}
impl Counter {
    /// new
    pub fn new(vocabulary: Vocabulary) -> Self {
        Counter { vocabulary, counts: Mutex::default() }
    }
    /// count
    pub fn count(&self, text: &Text) -> usize {
        self.count_hashed(text.hash(), text)
    }
    /// count_hashed
    pub fn count_hashed(&self, hash: Hash, text: &str) -> usize {
        let name = if self.vocabulary == Vocabulary::O200k { "o200k_base" } else { "cl100k_base" };
        let mut counts = self.counts.lock().unwrap_or_else(|e| e.into_inner());
        *counts.entry(hash).or_insert_with(|| tiktoken::get_encoding(name).map_or(0, |e| e.count(text)))
    }
    /// segments
    pub fn segments(&self, segments: &[Segment]) -> Arc<[u32]> {
        segments.iter().map(|s| self.count(&s.text) as u32).collect()
    }
    /// measure
    pub fn measure(&self, prompt: &Prompt) -> Measured {
        Measured::of(prompt, self)
    }
}

//! The public vocabularies, and the one place that tokenises.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use thiserror::Error;
use tiktoken::CoreBpe;

/// A public vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vocabulary {
    /// OpenAI's from GPT-4o on; the stand-in for models whose own is not public.
    O200k,
    /// OpenAI's for GPT-4 and GPT-3.5.
    Cl100k,
}

impl Vocabulary {
    /// The name its makers gave it.
    pub fn name(self) -> &'static str {
        match self {
            Vocabulary::O200k => "o200k_base",
            Vocabulary::Cl100k => "cl100k_base",
        }
    }
}

impl fmt::Display for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no vocabulary's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no vocabulary is called `{0}`: use `o200k_base` or `cl100k_base`")]
pub struct UnknownVocabulary(pub String);

impl FromStr for Vocabulary {
    type Err = UnknownVocabulary;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Vocabulary::O200k, Vocabulary::Cl100k]
            .into_iter()
            .find(|vocabulary| vocabulary.name() == name)
            .ok_or_else(|| UnknownVocabulary(name.to_owned()))
    }
}

/// What has really been tokenised: the rest was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// How many texts: whole ones, seams between segments, and the ragged ends of ranges.
    pub texts: u64,
    /// How many bytes they had together.
    pub bytes: u64,
}

#[derive(Default)]
struct Tally {
    texts: AtomicU64,
    bytes: AtomicU64,
}

/// Counts a piece of text, and remembers that it did.
#[derive(Clone)]
pub(super) struct Tokenizer {
    vocabulary: Vocabulary,
    tally: Arc<Tally>,
}

impl Tokenizer {
    pub(super) fn new(vocabulary: Vocabulary) -> Self {
        Tokenizer { vocabulary, tally: Arc::default() }
    }

    pub(super) fn vocabulary(&self) -> Vocabulary {
        self.vocabulary
    }

    pub(super) fn work(&self) -> Work {
        Work { texts: self.tally.texts.load(Relaxed), bytes: self.tally.bytes.load(Relaxed) }
    }

    /// The tokens of one text on its own. Names of special tokens in it are ordinary text.
    pub(super) fn count(&self, text: &str) -> usize {
        if text.is_empty() {
            return 0;
        }
        self.begin_text();
        self.count_piece(text)
    }

    /// Notes that a text is about to be counted in pieces.
    pub(super) fn begin_text(&self) {
        self.tally.texts.fetch_add(1, Relaxed);
    }

    /// The tokens of a piece of a text that has been begun.
    pub(super) fn count_piece(&self, piece: &str) -> usize {
        self.tally.bytes.fetch_add(piece.len() as u64, Relaxed);
        self.encoding().count(piece)
    }

    fn encoding(&self) -> &'static CoreBpe {
        tiktoken::get_encoding(self.vocabulary.name())
            .unwrap_or_else(|| unreachable!("Cargo.toml turns on both vocabularies"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_is_found_by_its_name() {
        for vocabulary in [Vocabulary::O200k, Vocabulary::Cl100k] {
            assert_eq!(vocabulary.name().parse(), Ok(vocabulary));
        }
        let error = "p50k_base".parse::<Vocabulary>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no vocabulary is called `p50k_base`: use `o200k_base` or `cl100k_base`"
        );
    }

    #[test]
    fn special_tokens_are_ordinary_text() {
        let tokenizer = Tokenizer::new(Vocabulary::O200k);
        assert!(tokenizer.count("<|endoftext|>") > 1);
        assert_eq!(tokenizer.work(), Work { texts: 1, bytes: 13 });
    }
}

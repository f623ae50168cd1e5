//! The public vocabularies, and the only code that tokenizes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use thiserror::Error;
use tiktoken::CoreBpe;

/// A public vocabulary (an encoding of `tiktoken`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vocabulary {
    /// `o200k_base`, OpenAI's since GPT-4o; it also stands in for models whose vocabulary is not
    /// public.
    O200k,
    /// `cl100k_base`, OpenAI's for GPT-4 and GPT-3.5.
    Cl100k,
}

impl Vocabulary {
    /// The name of the encoding, as `tiktoken` knows it.
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

/// A name that does not belong to a public vocabulary.
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

/// How much text was really tokenized; everything else was known already. Tests use it to prove
/// that nothing is counted twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenizerWork {
    /// Number of texts: whole ones, seams between segments, and the ragged ends of ranges.
    pub texts: u64,
    /// Bytes of these texts together.
    pub bytes: u64,
}

#[derive(Default)]
struct Tally {
    texts: AtomicU64,
    bytes: AtomicU64,
}

/// Counts pieces of text, and records that it did.
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

    pub(super) fn work(&self) -> TokenizerWork {
        TokenizerWork { texts: self.tally.texts.load(Relaxed), bytes: self.tally.bytes.load(Relaxed) }
    }

    /// Counts one text on its own. Names of special tokens in it are ordinary text.
    pub(super) fn count(&self, text: &str) -> usize {
        if text.is_empty() {
            return 0;
        }
        self.begin_text();
        self.count_piece(text)
    }

    /// Records that a text is about to be counted in pieces.
    pub(super) fn begin_text(&self) {
        self.tally.texts.fetch_add(1, Relaxed);
    }

    /// Counts one piece of a text that [`begin_text`](Self::begin_text) announced.
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
        assert_eq!(tokenizer.work(), TokenizerWork { texts: 1, bytes: 13 });
    }
}

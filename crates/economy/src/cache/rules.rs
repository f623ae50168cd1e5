//! How a provider caches for one model.

use std::borrow::Cow;

use hardpan_models::{Cache, CacheKind, Markers, Model, Wire};
use hardpan_prompt::Lifetime;

use crate::cache::chain::Chain;
use crate::cache::{Outcome, Request, Salts};

/// Whether neighbouring blocks are positions of their own when a read walks back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Each block is one.
    Each,
    /// All of them together are one.
    Together,
}

/// Whether a change of [`Salts`] loses what is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// As Anthropic's table says, by section.
    BySection,
    /// Only the blocks and the model count.
    None,
}

/// Whether the provider marks a block by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implicit {
    /// It does not.
    None,
    /// The last one that can be marked.
    Last,
}

/// How a provider caches for one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The catalogue's row.
    ///
    /// A `look_back` of 1 lets a read end at marked blocks only.
    pub cache: Cache,
    /// Whether settings count.
    pub invalidation: Invalidation,
    /// Whether there is a marker that nobody set.
    pub implicit: Implicit,
    /// Tool definitions, on the way back. No document says.
    pub tools: Counted,
    /// Runs of tool calls, and runs of results, on the way back. No document says.
    pub tool_runs: Counted,
    /// How many prompts a server keeps that keeps only the last of each slot, as llama.cpp does. `None`: all of them.
    pub slots: Option<usize>,
}

/// A marker that has an effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    pub block: usize,
    /// The tokens up to and including the block.
    pub tokens: usize,
    pub lifetime: Lifetime,
}

/// A marker of a request.
pub(super) enum Marked {
    Usable(Mark),
    /// The block, and why its marker has no effect.
    Not(usize, Outcome),
}

impl Rules {
    /// What the catalogue says of `model` at this provider.
    pub fn of(model: &Model, wire: &Wire) -> Self {
        let mut cache = wire.cache;
        if cache.kind == CacheKind::Automatic && !model.caching {
            cache.kind = CacheKind::None;
        }
        Rules {
            cache,
            // The table of what a change loses is documented for `cache_control` only.
            invalidation: match wire.markers {
                Markers::CacheControl => Invalidation::BySection,
                Markers::PromptCacheBreakpoint | Markers::None => Invalidation::None,
            },
            // OpenAI from 5.6 on: unless the request's `prompt_cache_options` say `explicit`, one of the four
            // writes ends at the newest message.
            implicit: match wire.markers {
                Markers::PromptCacheBreakpoint => Implicit::Last,
                Markers::CacheControl | Markers::None => Implicit::None,
            },
            tools: Counted::Each,
            tool_runs: Counted::Each,
            slots: None,
        }
    }

    /// The same for a server that keeps only the last prompt of each of its slots.
    pub fn with_slots(self, count: usize) -> Self {
        Rules { slots: Some(count), ..self }
    }

    /// The smallest prefix that is kept, in tokens.
    pub fn minimum(&self) -> usize {
        self.cache.min_tokens.max(1) as usize
    }

    pub(super) fn slots(&self) -> Option<usize> {
        self.slots.filter(|_| self.cache.kind == CacheKind::Automatic).map(|count| count.max(1))
    }

    pub(super) fn salts<'a>(&self, request: &'a Request) -> Cow<'a, Salts> {
        match self.invalidation {
            Invalidation::BySection => Cow::Borrowed(&request.salts),
            Invalidation::None => Cow::Owned(Salts::default()),
        }
    }

    pub(super) fn lifetime_ms(&self, lifetime: Lifetime) -> Option<i64> {
        let long = self.cache.long_lifetime.filter(|_| lifetime == Lifetime::OneHour);
        long.or(self.cache.lifetime).map(|seconds| i64::from(seconds) * 1000)
    }

    /// Whether a write for this lifetime is billed as a long one: only where there are two.
    pub(super) fn is_long(&self, lifetime: Lifetime) -> bool {
        lifetime == Lifetime::OneHour && self.cache.long_lifetime.is_some()
    }

    /// The largest prefix of `tokens` that an automatic cache keeps.
    pub(super) fn whole_steps(&self, tokens: usize) -> usize {
        let step = self.cache.step.max(1) as usize;
        Some(tokens / step * step).filter(|kept| *kept >= self.minimum()).unwrap_or(0)
    }

    /// The markers of a request, in order.
    pub(super) fn marked(&self, request: &Request, chain: &Chain) -> Vec<Marked> {
        let implicit = match self.implicit {
            Implicit::Last => request.blocks.iter().rposition(|block| block.markable),
            Implicit::None => None,
        };
        let markers = request.blocks.iter().enumerate().filter_map(|(index, block)| {
            let unasked = Some(Lifetime::FiveMinutes).filter(|_| implicit == Some(index));
            block.marker.or(unasked).map(|lifetime| (index, block, lifetime))
        });
        let minimum = self.minimum();
        let judged = markers.map(|(index, block, lifetime)| match chain.through[index] {
            _ if !block.markable => Marked::Not(index, Outcome::Unmarkable),
            tokens if tokens < minimum => Marked::Not(index, Outcome::BelowMinimum { tokens, minimum }),
            tokens => Marked::Usable(Mark { block: index, tokens, lifetime }),
        });
        judged.collect()
    }

    /// The markers at which entries are written: the last few, where there are more than the provider takes.
    pub(super) fn written(&self, marked: &[Marked]) -> Vec<Mark> {
        let usable = marked.iter().filter_map(|mark| match mark {
            Marked::Usable(mark) => Some(*mark),
            Marked::Not(..) => None,
        });
        let mut written: Vec<Mark> = usable.collect();
        written.drain(..written.len().saturating_sub(self.cache.max_markers as usize));
        written
    }
}

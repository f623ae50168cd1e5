//! [`CacheRules`]: how a provider caches for one model.

use std::borrow::Cow;

use hardpan_models::{CacheKind, CachePolicy, MarkerFormat, Model, ProviderProfile};
use hardpan_prompt::CacheLifetime;

use crate::cache::prefix_chain::PrefixChain;
use crate::cache::{CacheRequest, CacheSettings, LookupOutcome, Section};

/// How neighbouring blocks are counted when a read walks back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionCounting {
    /// Each block is a position of its own.
    Each,
    /// A run of neighbours is a single position.
    Together,
}

/// Whether a change of [`CacheSettings`] invalidates cache entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// Entries are lost by section, as Anthropic's table says.
    BySection,
    /// Settings do not matter; only the blocks and the model do.
    None,
}

/// Whether the provider marks a block by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImplicitMarker {
    /// Only explicit markers count.
    None,
    /// The provider marks the last block that can carry a marker.
    Last,
}

/// How a provider caches for one model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheRules {
    /// The provider's policy as the catalogue has it.
    ///
    /// A `look_back` of 1 lets a read end at marked blocks only.
    pub cache: CachePolicy,
    /// Whether a change of settings invalidates entries.
    pub invalidation: Invalidation,
    /// Whether the provider adds a marker of its own.
    pub implicit: ImplicitMarker,
    /// How declared tools are counted on the way back. Not documented.
    pub tools: PositionCounting,
    /// How runs of tool calls, and runs of results, are counted on the way back. For Anthropic each
    /// run is one position, as documented since October 2026.
    pub tool_runs: PositionCounting,
    /// The first section that a change of thinking or effort loses: the messages. Some of Anthropic's
    /// models lose the tools, too; the documentation does not say which.
    pub thinking: Section,
    /// For a server that keeps only the last prompt of each slot, as llama.cpp does: its number of
    /// slots. `None`: all prompts are kept.
    pub slots: Option<usize>,
}

/// A marker that has an effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UsableMarker {
    pub block: usize,
    /// Tokens up to and including the block.
    pub tokens: usize,
    pub lifetime: CacheLifetime,
}

/// A marker of a request, and whether it has an effect.
pub(super) enum MarkerStatus {
    Usable(UsableMarker),
    /// Index of the block, and why its marker has no effect.
    Not(usize, LookupOutcome),
}

impl CacheRules {
    /// Derives the rules for `model` at this provider from the catalogue's data.
    pub fn for_model(model: &Model, profile: &ProviderProfile) -> Self {
        let mut cache = profile.cache;
        if cache.kind == CacheKind::Automatic && !model.caching {
            cache.kind = CacheKind::None;
        }
        CacheRules {
            cache,
            // The table of what a change loses is documented for `cache_control` only.
            invalidation: match profile.markers {
                MarkerFormat::CacheControl => Invalidation::BySection,
                MarkerFormat::PromptCacheBreakpoint | MarkerFormat::None => Invalidation::None,
            },
            // OpenAI from 5.6 on: unless the request's `prompt_cache_options` say `explicit`, one
            // of the four writes ends at the newest message.
            implicit: match profile.markers {
                MarkerFormat::PromptCacheBreakpoint => ImplicitMarker::Last,
                MarkerFormat::CacheControl | MarkerFormat::None => ImplicitMarker::None,
            },
            tools: PositionCounting::Each,
            tool_runs: match profile.markers {
                MarkerFormat::CacheControl => PositionCounting::Together,
                MarkerFormat::PromptCacheBreakpoint | MarkerFormat::None => PositionCounting::Each,
            },
            thinking: Section::Messages,
            slots: None,
        }
    }

    /// The same rules for a server that keeps only the last prompt of each of its slots.
    pub fn with_slots(self, count: usize) -> Self {
        CacheRules { slots: Some(count), ..self }
    }

    /// The smallest prefix that is kept, in tokens; at least 1.
    pub fn minimum(&self) -> usize {
        self.cache.min_tokens.max(1) as usize
    }

    pub(super) fn slots(&self) -> Option<usize> {
        self.slots.filter(|_| self.cache.kind == CacheKind::Automatic).map(|count| count.max(1))
    }

    pub(super) fn effective_settings<'a>(&self, request: &'a CacheRequest) -> Cow<'a, CacheSettings> {
        match self.invalidation {
            Invalidation::BySection => Cow::Borrowed(&request.settings),
            Invalidation::None => Cow::Owned(CacheSettings::default()),
        }
    }

    pub(super) fn lifetime_ms(&self, lifetime: CacheLifetime) -> Option<i64> {
        let long = self.cache.long_lifetime.filter(|_| lifetime == CacheLifetime::OneHour);
        long.or(self.cache.lifetime).map(|seconds| i64::from(seconds) * 1000)
    }

    /// Whether a write for this lifetime is billed as a long one: only where there are two
    /// lifetimes.
    pub(super) fn is_long(&self, lifetime: CacheLifetime) -> bool {
        lifetime == CacheLifetime::OneHour && self.cache.long_lifetime.is_some()
    }

    /// Rounds down to the largest prefix that an automatic cache keeps; 0 below the minimum.
    pub(super) fn round_down_to_step(&self, tokens: usize) -> usize {
        let step = self.cache.step.max(1) as usize;
        Some(tokens / step * step).filter(|kept| *kept >= self.minimum()).unwrap_or(0)
    }

    /// The request's markers in order, explicit and implicit, each with whether it has an effect.
    pub(super) fn classify_markers(&self, request: &CacheRequest, chain: &PrefixChain) -> Vec<MarkerStatus> {
        let implicit = match self.implicit {
            ImplicitMarker::Last => request.blocks.iter().rposition(|block| block.markable),
            ImplicitMarker::None => None,
        };
        let markers = request.blocks.iter().enumerate().filter_map(|(index, block)| {
            let unasked = Some(CacheLifetime::FiveMinutes).filter(|_| implicit == Some(index));
            block.marker.or(unasked).map(|lifetime| (index, block, lifetime))
        });
        let minimum = self.minimum();
        let judged = markers.map(|(index, block, lifetime)| match chain.through[index] {
            _ if !block.markable => MarkerStatus::Not(index, LookupOutcome::Unmarkable),
            tokens if tokens < minimum => {
                MarkerStatus::Not(index, LookupOutcome::BelowMinimum { tokens, minimum })
            }
            tokens => MarkerStatus::Usable(UsableMarker { block: index, tokens, lifetime }),
        });
        judged.collect()
    }

    /// The markers that write entries: the last few, if there are more than the provider accepts.
    pub(super) fn written_markers(&self, marked: &[MarkerStatus]) -> Vec<UsableMarker> {
        let usable = marked.iter().filter_map(|mark| match mark {
            MarkerStatus::Usable(mark) => Some(*mark),
            MarkerStatus::Not(..) => None,
        });
        let mut written: Vec<UsableMarker> = usable.collect();
        written.drain(..written.len().saturating_sub(self.cache.max_markers as usize));
        written
    }
}

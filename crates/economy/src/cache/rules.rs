//! [`CacheRules`]: how a provider caches for one model.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hardpan_models::{CacheKind, CachePolicy, ImplicitEnds, MarkerFormat, Model, ProviderProfile};
use hardpan_prompt::CacheLifetime;

use crate::cache::prefix_chain::PrefixChain;
use crate::cache::{CacheBlock, CacheRequest, CacheSettings, LookupOutcome, Section};

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
    /// Everything is lost, whatever the setting, as with OpenAI from 5.6 on.
    Everything,
    /// Settings do not matter; only the blocks and the model do.
    None,
}

/// Whether the provider marks a block by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImplicitMarker {
    /// Only explicit markers count.
    None,
    /// The ends of messages count, too, unless the request says otherwise.
    MessageEnds(ImplicitEnds),
}

/// Of all the markers of a request, OpenAI reads at so many of the first and of the latest.
const FIRST_READ_MARKERS: usize = 2;
const LATEST_READ_MARKERS: usize = 50;

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
    pub source: MarkerSource,
}

/// Why a block counts as marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerSource {
    /// The request marks it.
    Explicit,
    /// The latest message ends here.
    LatestEnd,
    /// An earlier message ends here: it is only read.
    EarlierEnd,
    /// The system prompt ends here.
    SystemEnd,
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
                MarkerFormat::PromptCacheBreakpoint => Invalidation::Everything,
                MarkerFormat::None => Invalidation::None,
            },
            implicit: cache.implicit.map_or(ImplicitMarker::None, ImplicitMarker::MessageEnds),
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
            Invalidation::Everything | Invalidation::None => Cow::Owned(CacheSettings::default()),
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

    /// The request's markers in order, explicit and implicit, each with whether it has an effect.
    pub(super) fn classify_markers(&self, request: &CacheRequest, chain: &PrefixChain) -> Vec<MarkerStatus> {
        let minimum = self.minimum();
        let judge = |(index, source): (usize, MarkerSource)| {
            let block = &request.blocks[index];
            let lifetime = block.marker.unwrap_or(CacheLifetime::FiveMinutes);
            match chain.through[index] {
                _ if !block.markable => MarkerStatus::Not(index, LookupOutcome::Unmarkable),
                tokens if tokens < minimum => {
                    MarkerStatus::Not(index, LookupOutcome::BelowMinimum { tokens, minimum })
                }
                tokens => MarkerStatus::Usable(UsableMarker { block: index, tokens, lifetime, source }),
            }
        };
        self.marked_blocks(request).into_iter().map(judge).collect()
    }

    /// The blocks that count as marked, in order, each with the reason that matters most.
    fn marked_blocks(&self, request: &CacheRequest) -> BTreeMap<usize, MarkerSource> {
        let blocks = || request.blocks.iter().enumerate();
        let mut marked = BTreeMap::new();
        if let (ImplicitMarker::MessageEnds(ends), false) = (self.implicit, request.explicit_only) {
            let is_end =
                |section| move |(_, block): &(usize, &CacheBlock)| block.is_end && block.section == section;
            let system = blocks().rfind(is_end(Section::System)).filter(|_| ends.system);
            marked.extend(system.map(|(index, _)| (index, MarkerSource::SystemEnd)));
            let latest = blocks().filter(is_end(Section::Messages)).map(|(index, _)| index).rev();
            for (age, index) in latest.take(ends.earlier as usize + 1).enumerate() {
                let source = if age == 0 { MarkerSource::LatestEnd } else { MarkerSource::EarlierEnd };
                marked.insert(index, source);
            }
        }
        let explicit: Vec<usize> =
            blocks().filter(|(_, block)| block.marker.is_some()).map(|(index, _)| index).collect();
        let is_read = |(number, _): &(usize, &usize)| {
            self.cache.implicit.is_none()
                || *number < FIRST_READ_MARKERS
                || number + LATEST_READ_MARKERS >= explicit.len()
        };
        for (_, index) in explicit.iter().enumerate().filter(is_read) {
            // The latest end is written in any case; a marker adds nothing to it.
            marked
                .entry(*index)
                .and_modify(|source| {
                    if *source != MarkerSource::LatestEnd {
                        *source = MarkerSource::Explicit;
                    }
                })
                .or_insert(MarkerSource::Explicit);
        }
        marked
    }

    /// The markers that write entries. Of explicit ones these are the last few, if there are more
    /// than the provider accepts; the latest message counts as one of them.
    pub(super) fn written_markers(&self, marked: &[MarkerStatus]) -> Vec<UsableMarker> {
        let usable = marked.iter().filter_map(|mark| match mark {
            MarkerStatus::Usable(mark) if mark.source != MarkerSource::EarlierEnd => Some(*mark),
            MarkerStatus::Usable(_) | MarkerStatus::Not(..) => None,
        });
        let mut written: Vec<UsableMarker> = usable.collect();
        let count = |source| written.iter().filter(|mark| mark.source == source).count();
        let room = (self.cache.max_markers as usize).saturating_sub(count(MarkerSource::LatestEnd));
        let mut excess = count(MarkerSource::Explicit).saturating_sub(room);
        written.retain(|mark| {
            let drops = mark.source == MarkerSource::Explicit && excess > 0;
            excess -= usize::from(drops);
            !drops
        });
        written
    }
}

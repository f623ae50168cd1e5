//! [`ProviderModel`]: a model of a recording, and how its provider caches.

use hardpan_prompt::TokenUsage;
use std::sync::Arc;

use hardpan_models::{Catalogue, MarkerFormat};

use crate::BilledRequest;
use crate::model_facts::{InputPrices, ModelFacts};

/// The lifetime assumed for automatic caches. OpenAI keeps idle prefixes for minutes, an hour or,
/// with extended retention, up to a day: before that no loss is certain.
const AUTOMATIC_LIFETIME_MS: i64 = 24 * 3_600_000;

/// A model at a provider, as a recording names them, with what the catalogue and the bills tell
/// about it.
pub(super) struct ProviderModel {
    pub provider: Option<Arc<str>>,
    pub model: Arc<str>,
    facts: ModelFacts,
    pub reporting: CacheReporting,
    /// The longest time, in milliseconds, after which an idle prefix was still read although its
    /// documented lifetime was over. 0 if that never happened.
    pub longest_idle_hit_ms: i64,
}

/// What a provider reports about its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheReporting {
    /// Tokens read and written; their sum is where the cached prefix ends.
    ReadsAndWrites,
    /// Only tokens read; the whole prompt may be cached.
    ReadsOnly,
    /// Nothing, so that nothing can be said about losses.
    Nothing,
}

impl ProviderModel {
    pub fn look_up(catalogue: &Catalogue, request: &BilledRequest) -> Self {
        let (provider, model) = (request.provider.clone(), request.model.clone());
        let facts = ModelFacts::look_up(catalogue, provider.as_deref(), &model);
        // A provider that is not in the catalogue may report less than the model's maker.
        let reporting = if facts.is_provider_known && facts.profile.markers == MarkerFormat::CacheControl {
            CacheReporting::ReadsAndWrites
        } else {
            CacheReporting::Nothing
        };
        ProviderModel { provider, model, facts, reporting, longest_idle_hit_ms: 0 }
    }

    pub fn matches_request(&self, request: &BilledRequest) -> bool {
        self.model == request.model && self.provider == request.provider
    }

    /// Infers from the usage of all requests what the provider reports. Call it before auditing any
    /// of them.
    pub fn infer_reporting(&mut self, reported: &[&TokenUsage]) {
        let any = |amount: fn(&TokenUsage) -> u64| reported.iter().any(|tokens| amount(tokens) > 0);
        self.reporting = match (
            any(|tokens| tokens.cache_write_5m.max(tokens.cache_write_1h)),
            any(|tokens| tokens.cache_read),
        ) {
            (true, _) => CacheReporting::ReadsAndWrites,
            (false, true) => CacheReporting::ReadsOnly,
            (false, false) => self.reporting,
        };
    }

    /// The prices for a prompt of so many tokens: some models cost more above a size.
    pub fn prices_for(&self, prompt: u64) -> InputPrices {
        self.facts.prices_for(prompt)
    }

    /// What an answer costs, in dollars. `None` where no price is known.
    pub fn answer_dollars(&self, usage: &TokenUsage) -> Option<f64> {
        self.facts.answer_dollars(usage)
    }

    /// How long the entries that a request wrote live unused, in milliseconds, judged by what it
    /// paid for. `None` where they have no end.
    pub fn lifetime_ms(&self, used: &TokenUsage) -> Option<i64> {
        let seconds = |seconds: u32| i64::from(seconds) * 1000;
        let cache = self.facts.profile.cache;
        if !self.has_markers() {
            return cache.lifetime.map(|_| AUTOMATIC_LIFETIME_MS);
        }
        let long = cache.long_lifetime.filter(|_| used.cache_write_1h > used.cache_write_5m);
        long.or(cache.lifetime).map(seconds)
    }

    /// The documented default lifetime, in milliseconds. `None` where there is none.
    pub fn usual_lifetime_ms(&self) -> Option<i64> {
        self.facts.profile.cache.lifetime.map(|seconds| i64::from(seconds) * 1000)
    }

    /// Records that a prefix was read after it had been idle for so long.
    pub fn record_idle_hit(&mut self, idle_ms: i64) {
        self.longest_idle_hit_ms = self.longest_idle_hit_ms.max(idle_ms);
    }

    /// The smallest prefix that the provider caches, in tokens.
    pub fn minimum(&self) -> u64 {
        u64::from(self.facts.profile.cache.min_tokens.max(1))
    }

    /// How many blocks before a breakpoint the provider looks for a cached prefix. `None` without a
    /// limit.
    pub fn look_back(&self) -> Option<u32> {
        self.facts.profile.cache.look_back
    }

    /// Cached prefixes are multiples of so many tokens.
    pub fn step(&self) -> u64 {
        u64::from(self.facts.profile.cache.step.max(1))
    }

    /// Whether the provider caches only what the agent marks, and settings are part of its cache
    /// key.
    pub fn has_markers(&self) -> bool {
        self.facts.profile.markers == MarkerFormat::CacheControl
    }

    /// Whether the model can think. Unknown models count as able to.
    pub fn can_think(&self) -> bool {
        self.facts.entry.as_ref().is_none_or(|model| model.reasoning)
    }
}

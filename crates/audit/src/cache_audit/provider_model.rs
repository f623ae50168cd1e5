//! [`ProviderModel`]: prices of a model, and how its provider caches.

use hardpan_prompt::TokenUsage;
use std::sync::Arc;

use hardpan_economy::Rates;
use hardpan_models::{Catalogue, MarkerFormat, Model, ProviderProfile};

use crate::BilledRequest;

/// The price of reading a cached token, relative to input, where the catalogue has none: that of
/// most providers.
const DEFAULT_READ_FACTOR: f64 = 0.1;
/// The lifetime assumed for automatic caches. OpenAI keeps idle prefixes for minutes, an hour or,
/// with extended retention, up to a day: before that no loss is certain.
const AUTOMATIC_LIFETIME_MS: i64 = 24 * 3_600_000;
/// The provider whose rules apply to models of this family, whoever sells them.
const FAMILY: (&str, &str) = ("claude", "anthropic");

/// A model at a provider, as a recording names them, with what the catalogue and the bills tell
/// about it.
pub(super) struct ProviderModel {
    pub provider: Option<Arc<str>>,
    pub model: Arc<str>,
    /// `None` where the catalogue does not have the model.
    catalogue_entry: Option<Model>,
    wire: ProviderProfile,
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

/// Prices of input tokens, in units of one uncached input token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct InputPrices {
    pub read: f64,
    pub write: f64,
    pub write_1h: f64,
    /// The dollars that one unit costs. `None` where no price is known.
    pub dollars_per_unit: Option<f64>,
}

impl ProviderModel {
    pub fn look_up(catalogue: &Catalogue, request: &BilledRequest) -> Self {
        let (provider, model) = (request.provider.clone(), request.model.clone());
        let seller = provider.as_deref().filter(|provider| catalogue.provider(provider).is_ok());
        let catalogue_entry = spellings(&model).iter().find_map(|id| {
            let there = seller.and_then(|seller| catalogue.model(Some(seller), id).ok());
            there.or_else(|| catalogue.model(None, id).ok())
        });
        let row = catalogue_entry.as_ref().map(|model| model.provider.as_str()).or(seller);
        let row = row.or_else(|| model.contains(FAMILY.0).then_some(FAMILY.1));
        let row = row.and_then(|row| catalogue.provider(row).ok());
        let wire = row.map_or_else(ProviderProfile::default, |row| match &catalogue_entry {
            Some(model) => row.profile_for_model(model),
            None => row.profile.clone(),
        });
        // A provider that is not in the catalogue may report less than the model's maker.
        let reporting = if seller.is_some() && wire.markers == MarkerFormat::CacheControl {
            CacheReporting::ReadsAndWrites
        } else {
            CacheReporting::Nothing
        };
        ProviderModel { provider, model, catalogue_entry, wire, reporting, longest_idle_hit_ms: 0 }
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
        let cache = self.wire.cache;
        let factors = InputPrices {
            read: cache.read_factor.unwrap_or(DEFAULT_READ_FACTOR),
            write: cache.write_factor.unwrap_or(1.0),
            write_1h: cache.write_1h_factor.or(cache.write_factor).unwrap_or(1.0),
            dollars_per_unit: None,
        };
        let Some(model) = self.catalogue_entry.as_ref().filter(|model| model.price.input > 0.0) else {
            return factors;
        };
        let rates = Rates::for_model(model, &self.wire, prompt);
        let million = |usage: TokenUsage| rates.input_dollars(&usage);
        const M: u64 = 1_000_000;
        let input = million(TokenUsage { input: M, ..TokenUsage::default() });
        InputPrices {
            read: million(TokenUsage { cache_read: M, ..TokenUsage::default() }) / input,
            write: million(TokenUsage { cache_write_5m: M, ..TokenUsage::default() }) / input,
            write_1h: million(TokenUsage { cache_write_1h: M, ..TokenUsage::default() }) / input,
            dollars_per_unit: Some(input / 1e6),
        }
    }

    /// How long the entries that a request wrote live unused, in milliseconds, judged by what it
    /// paid for. `None` where they have no end.
    pub fn lifetime_ms(&self, used: &TokenUsage) -> Option<i64> {
        let seconds = |seconds: u32| i64::from(seconds) * 1000;
        let cache = self.wire.cache;
        if !self.has_markers() {
            return cache.lifetime.map(|_| AUTOMATIC_LIFETIME_MS);
        }
        let long = cache.long_lifetime.filter(|_| used.cache_write_1h > used.cache_write_5m);
        long.or(cache.lifetime).map(seconds)
    }

    /// The documented default lifetime, in milliseconds. `None` where there is none.
    pub fn usual_lifetime_ms(&self) -> Option<i64> {
        self.wire.cache.lifetime.map(|seconds| i64::from(seconds) * 1000)
    }

    /// Records that a prefix was read after it had been idle for so long.
    pub fn record_idle_hit(&mut self, idle_ms: i64) {
        self.longest_idle_hit_ms = self.longest_idle_hit_ms.max(idle_ms);
    }

    /// The smallest prefix that the provider caches, in tokens.
    pub fn minimum(&self) -> u64 {
        u64::from(self.wire.cache.min_tokens.max(1))
    }

    /// How many blocks before a breakpoint the provider looks for a cached prefix. `None` without a
    /// limit.
    pub fn look_back(&self) -> Option<u32> {
        self.wire.cache.look_back
    }

    /// Cached prefixes are multiples of so many tokens.
    pub fn step(&self) -> u64 {
        u64::from(self.wire.cache.step.max(1))
    }

    /// Whether the provider caches only what the agent marks, and settings are part of its cache
    /// key.
    pub fn has_markers(&self) -> bool {
        self.wire.markers == MarkerFormat::CacheControl
    }

    /// Whether the model can think. Unknown models count as able to.
    pub fn can_think(&self) -> bool {
        self.catalogue_entry.as_ref().is_none_or(|model| model.reasoning)
    }
}

impl InputPrices {
    /// What a prompt cost, in units.
    pub fn cost(&self, used: &TokenUsage) -> f64 {
        let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output: _, reasoning: _ } = *used;
        input as f64
            + cache_read as f64 * self.read
            + cache_write_5m as f64 * self.write
            + cache_write_1h as f64 * self.write_1h
    }

    /// What each token cost that this request did not read from the cache, in units.
    pub fn price_of_unread(&self, used: &TokenUsage) -> f64 {
        match *used {
            TokenUsage { cache_write_1h: write_1h, cache_write_5m: write, .. } if write_1h > write => {
                self.write_1h
            }
            TokenUsage { cache_write_5m: 0, .. } => 1.0,
            _ => self.write,
        }
    }
}

/// The ids under which the catalogue may list a model: as it is, then without what sellers and
/// agents add.
fn spellings(id: &str) -> Vec<String> {
    let mut names = vec![id.to_owned()];
    let mut add = |name: String| {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    };
    let plain = id.split('[').next().unwrap_or(id).trim(); // `claude-opus-4-6[1m]`
    add(plain.to_owned());
    let bare = plain.rsplit('/').next().unwrap_or(plain);
    let bare = bare.rsplit_once("anthropic.").map_or(bare, |(_, name)| name); // `us.anthropic.claude-…-v1:0`
    let bare =
        bare.split_once(':').map_or(bare, |(name, _)| name.trim_end_matches("-v1").trim_end_matches("-v2"));
    let bare = bare.split_once('@').map_or(bare, |(name, _)| name); // `claude-…@20250929`
    add(bare.to_owned());
    let undated =
        bare.rsplit_once('-').filter(|(_, day)| day.len() == 8 && day.bytes().all(|b| b.is_ascii_digit()));
    let undated = undated.map_or(bare, |(name, _)| name);
    add(undated.to_owned());
    if undated.starts_with(FAMILY.0) {
        add(undated.replace('.', "-"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_however_it_is_spelled() {
        let named = [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-5-20301231",
            "claude-sonnet-4-5[1m]",
            "anthropic/claude-sonnet-4.5",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
        ];
        for id in named {
            let catalogue_entry =
                spellings(id).iter().find_map(|id| Catalogue::builtin().model(Some("anthropic"), id).ok());
            assert!(catalogue_entry.is_some_and(|model| model.price.input == 3.0), "{id}");
        }
    }

    #[test]
    fn ids_that_say_nothing_are_no_trouble() {
        for id in ["", "/", "[", "-", ":", "@", "anthropic.", "ä-12345678"] {
            assert!(!spellings(id).is_empty());
        }
    }
}

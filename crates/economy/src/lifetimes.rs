//! Whether a part of a prompt is better written to the cache for the long lifetime (an hour at
//! Anthropic) than for the short one (five minutes). The principal type is [`LifetimePrices`].
//!
//! A write for the long lifetime costs more, once. It saves a second write each time that a pause
//! outlasts the short lifetime and not the long one, less what a free fold would have been worth.
//! How many such pauses are to come is estimated from those that the conversation had:
//! [`PauseCounts`].

use hardpan_models::{CachePolicy, Model, ProviderProfile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Rates;
use crate::cache_pings::saving_of_live_cache;

/// How many pauses of a conversation outlasted the lifetimes of its provider's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PauseCounts {
    /// Pauses that only entries of the long lifetime outlive.
    pub bridged: u32,
    /// Pauses that no entry outlives.
    pub ended: u32,
}

impl PauseCounts {
    /// Counts the pauses between requests, given in seconds.
    pub fn new(pauses: impl IntoIterator<Item = u32>, cache: &CachePolicy) -> Self {
        let mut counts = PauseCounts::default();
        let Some(short) = cache.lifetime else { return counts };
        let long = cache.long_lifetime.unwrap_or(short);
        for pause in pauses {
            counts.bridged += u32::from((short..long).contains(&pause));
            counts.ended += u32::from(pause >= long.max(short));
        }
        counts
    }

    /// True before the first pause that matters.
    pub fn is_empty(&self) -> bool {
        *self == PauseCounts::default()
    }

    /// How many more pauses an entry of the long lifetime is expected to bridge before it is lost.
    ///
    /// It is the mean over the stretches between losses so far. The present stretch counts as one
    /// that ends now, since nobody knows whether the conversation goes on. One imaginary stretch
    /// with half a pause is the prior: without a pause the estimate is ¼, below what any known price
    /// asks for, because a conversation without pauses must not cost more than it does with the
    /// short lifetime. A single pause brings it to ¾, beyond the 0.65 that Anthropic's prices ask for.
    pub fn expected_bridges(&self) -> f64 {
        (f64::from(self.bridged) + 0.5) / (f64::from(self.ended) + 2.0)
    }
}

/// The prices of a cache with two lifetimes, in units of one token of plain input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LifetimePrices {
    /// Price of a token read from the cache.
    pub read: f64,
    /// Price of a token written for the short lifetime.
    pub write: f64,
    /// Price of a token written for the long lifetime.
    pub write_long: f64,
}

impl LifetimePrices {
    /// The prices of a model for a request with this many tokens. `None`: the provider has only one
    /// lifetime, or it is not known what the long one costs.
    pub fn for_model(model: &Model, profile: &ProviderProfile, tokens: u64) -> Option<Self> {
        profile.cache.lifetime.zip(profile.long_lifetime())?;
        let rates = Rates::for_model(model, profile, tokens);
        let ((read, write), write_long) = (rates.ratios(), rates.long_write_ratio());
        Some(LifetimePrices { read, write, write_long }).filter(|prices| write_long > prices.write)
    }

    /// What writing a part of a prompt for the long lifetime is expected to save, beyond what it
    /// costs more. `garbage` of its `tokens` would be dropped for nothing if the part expired.
    pub fn expected_saving(&self, tokens: usize, garbage: usize, pauses: &PauseCounts) -> f64 {
        let saved = saving_of_live_cache((self.read, self.write), tokens, garbage);
        pauses.expected_bridges() * saved - (self.write_long - self.write) * tokens as f64
    }

    /// What each expected pause must be worth: an hour pays for content without garbage once this
    /// many pauses are expected.
    pub fn break_even_pauses(&self) -> f64 {
        (self.write_long - self.write) / (self.write - self.read)
    }
}

#[cfg(test)]
mod tests {
    use hardpan_models::Catalogue;

    use super::*;

    fn prices(model: &str) -> LifetimePrices {
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some("anthropic"), model).unwrap();
        let profile = catalogue.provider("anthropic").unwrap().profile_for_model(&model);
        LifetimePrices::for_model(&model, &profile, 10_000).unwrap()
    }

    fn pauses(minutes: &[u32]) -> PauseCounts {
        let cache = CachePolicy { lifetime: Some(300), long_lifetime: Some(3600), ..CachePolicy::default() };
        PauseCounts::new(minutes.iter().map(|minutes| minutes * 60), &cache)
    }

    #[test]
    fn pauses_count_by_the_lifetimes_that_they_outlast() {
        assert_eq!(pauses(&[0, 4, 5, 10, 59, 60, 600]), PauseCounts { bridged: 3, ended: 2 });
        let only_short = CachePolicy { lifetime: Some(300), ..CachePolicy::default() };
        assert_eq!(PauseCounts::new([299, 300, 9000], &only_short), PauseCounts { bridged: 0, ended: 2 });
        assert_eq!(PauseCounts::new([9000], &CachePolicy::default()), PauseCounts::default());
    }

    #[test]
    fn an_hour_pays_after_the_first_pause_that_it_bridges() {
        let prices = prices("claude-sonnet-5");
        assert!((prices.break_even_pauses() - 0.652).abs() < 0.001, "{}", prices.break_even_pauses());
        let pays = |minutes: &[u32]| prices.expected_saving(10_000, 0, &pauses(minutes)) > 0.0;
        assert!(!pays(&[]) && !pays(&[1, 2, 4]), "without a pause it never does");
        assert!(pays(&[10]) && pays(&[10, 1, 1, 1]));
        assert!(!pays(&[10, 90]), "what is lost after an hour and a half is written again anyway");
        assert!(pays(&[10, 90, 10]));
        assert!(!pays(&[90, 200, 600]), "a person who comes back twice a day");
    }

    #[test]
    fn garbage_speaks_against_it() {
        let (prices, pauses) = (prices("claude-sonnet-5"), pauses(&[10]));
        assert!(prices.expected_saving(10_000, 0, &pauses) > 0.0);
        assert!(prices.expected_saving(10_000, 2000, &pauses) < 0.0);
    }

    #[test]
    fn only_two_lifetimes_with_known_prices_are_weighed() {
        let catalogue = Catalogue::builtin();
        for (provider, model) in [("openai", "gpt-6.1-sol"), ("gemini", "gemini-3.8-flash")] {
            let model = catalogue.model(Some(provider), model).unwrap();
            let profile = catalogue.provider(provider).unwrap().profile_for_model(&model);
            assert_eq!(LifetimePrices::for_model(&model, &profile, 10_000), None, "{provider}");
        }
        let mut model = catalogue.model(Some("anthropic"), "claude-sonnet-5").unwrap();
        let mut profile = catalogue.provider("anthropic").unwrap().profile_for_model(&model);
        (model.price.cache_write_1h, profile.cache.write_1h_factor) = (None, None);
        assert_eq!(LifetimePrices::for_model(&model, &profile, 10_000), None, "the price is not known");
    }
}

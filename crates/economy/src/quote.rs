//! The price of a request before it is sent.
//!
//! The principal function is [`quote`].

use hardpan_models::{CacheKind, Model, ProviderProfile};
use hardpan_prompt::{Breakpoint, CacheLifetime};
use serde::Serialize;

/// Input tokens by how they are billed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InputTokens {
    /// Plain input: neither read from the cache nor written to it.
    pub input: usize,
    /// Read from the cache, at a discount.
    pub read: usize,
    /// Written to the cache for the usual lifetime.
    pub write: usize,
    /// Written to the cache for an hour.
    pub write_1h: usize,
}

/// Prices of input, in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    input: f64,
    read: f64,
    write: f64,
    write_1h: f64,
}

impl Rates {
    /// The prices of `model` at this provider, for a request with this many input tokens.
    pub fn for_model(model: &Model, profile: &ProviderProfile, input_tokens: usize) -> Self {
        let price = model.prices_at(input_tokens as u64);
        let or_factor = |price_given: Option<f64>, factor: Option<f64>, fallback: f64| {
            price_given.or(factor.map(|factor| factor * price.input)).unwrap_or(fallback)
        };
        let write = or_factor(price.cache_write, profile.cache.write_factor, price.input).max(price.input);
        Rates {
            input: price.input,
            read: or_factor(
                price.cache_read.filter(|read| *read > 0.0),
                profile.cache.read_factor,
                price.input,
            ),
            write,
            write_1h: or_factor(price.cache_write_1h, profile.cache.write_1h_factor, write),
        }
    }

    /// What reading from the cache and writing to it cost, in units of plain input. For a model
    /// without a price, reading is free.
    pub fn ratios(&self) -> (f64, f64) {
        if self.input > 0.0 { (self.read / self.input, self.write / self.input) } else { (0.0, 1.0) }
    }

    /// What the tokens cost together, in dollars.
    pub fn dollars(&self, amounts: InputTokens) -> f64 {
        let InputTokens { input, read, write, write_1h } = amounts;
        (input as f64 * self.input
            + read as f64 * self.read
            + write as f64 * self.write
            + write_1h as f64 * self.write_1h)
            / 1e6
    }
}

/// The price of a request, in dollars and in tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quote {
    /// Dollars if nothing of the request is cached.
    pub cold: f64,
    /// Dollars if the same request was sent a moment ago.
    pub warm: f64,
    /// The billed tokens behind `cold`.
    pub cold_amounts: InputTokens,
    /// The billed tokens behind `warm`.
    pub warm_amounts: InputTokens,
}

/// Quotes a request of `total` tokens. `through` returns the tokens up to and including a block.
/// Only input counts, since the answer is not known yet.
pub fn quote(
    model: &Model,
    profile: &ProviderProfile,
    total: usize,
    breakpoints: &[Breakpoint],
    through: impl Fn(usize) -> usize,
) -> Quote {
    let minimum = profile.cache.min_tokens as usize;
    let (cold_amounts, warm_amounts) = match profile.cache.kind {
        _ if !model.caching && profile.cache.kind != CacheKind::Markers => (plain(total), plain(total)),
        CacheKind::None => (plain(total), plain(total)),
        CacheKind::Markers => {
            let end_of = |wanted: &dyn Fn(&&Breakpoint) -> bool| {
                let ends = breakpoints.iter().filter(wanted).map(|breakpoint| through(breakpoint.block));
                ends.filter(|end| *end >= minimum).max().unwrap_or(0)
            };
            let hour = end_of(&|breakpoint| breakpoint.lifetime == CacheLifetime::OneHour);
            let end = end_of(&|_| true);
            let cold = InputTokens { input: total - end, read: 0, write: end - hour, write_1h: hour };
            (cold, InputTokens { input: total - end, read: end, ..InputTokens::default() })
        }
        CacheKind::Automatic => {
            let step = profile.cache.step.max(1) as usize;
            // The last token is always computed afresh, so that there is something to answer from.
            let end = Some(total.saturating_sub(1) / step * step).filter(|end| *end >= minimum).unwrap_or(0);
            let cold = InputTokens { input: total - end, write: end, ..InputTokens::default() };
            (cold, InputTokens { input: total - end, read: end, ..InputTokens::default() })
        }
    };
    let rates = Rates::for_model(model, profile, total);
    Quote { cold: rates.dollars(cold_amounts), warm: rates.dollars(warm_amounts), cold_amounts, warm_amounts }
}

fn plain(total: usize) -> InputTokens {
    InputTokens { input: total, ..InputTokens::default() }
}

#[cfg(test)]
mod tests {
    use hardpan_models::Catalogue;

    use super::*;

    fn of(provider: &str, model: &str, total: usize, breakpoints: &[Breakpoint]) -> Quote {
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some(provider), model).unwrap();
        let profile = catalogue.provider(provider).unwrap().profile_for_model(&model);
        quote(&model, &profile, total, breakpoints, |block| (block + 1) * 1000)
    }

    fn marker(block: usize, lifetime: CacheLifetime) -> Breakpoint {
        Breakpoint { block, lifetime }
    }

    #[test]
    fn what_follows_the_last_breakpoint_is_plain_input() {
        let quote = of("anthropic", "claude-sonnet-5", 10_000, &[marker(3, CacheLifetime::FiveMinutes)]);
        assert_eq!(quote.cold_amounts, InputTokens { input: 6000, write: 4000, ..InputTokens::default() });
        assert_eq!(quote.warm_amounts, InputTokens { input: 6000, read: 4000, ..InputTokens::default() });
        assert!((quote.cold - (6000.0 * 2.0 + 4000.0 * 2.5) / 1e6).abs() < 1e-12);
        assert!((quote.warm - (6000.0 * 2.0 + 4000.0 * 0.2) / 1e6).abs() < 1e-12);
    }

    #[test]
    fn hour_writes_end_at_the_last_hour_breakpoint() {
        let marks = [marker(1, CacheLifetime::OneHour), marker(4, CacheLifetime::FiveMinutes)];
        let quote = of("anthropic", "claude-sonnet-5", 10_000, &marks);
        assert_eq!(quote.cold_amounts, InputTokens { input: 5000, read: 0, write: 3000, write_1h: 2000 });
    }

    #[test]
    fn a_breakpoint_under_the_minimum_caches_nothing() {
        let quote = of("anthropic", "claude-haiku-4-5", 10_000, &[marker(2, CacheLifetime::FiveMinutes)]);
        assert_eq!(quote.cold_amounts, InputTokens { input: 10_000, ..InputTokens::default() });
        assert_eq!(quote.warm_amounts, quote.cold_amounts);
    }

    #[test]
    fn automatic_caches_read_in_steps_and_write_for_nothing() {
        let quote = of("openai", "gpt-5.5", 10_000, &[]);
        assert_eq!(quote.warm_amounts, InputTokens { input: 16, read: 9984, ..InputTokens::default() });
        assert!((quote.cold - 10_000.0 * 5.0 / 1e6).abs() < 1e-12);
        assert_eq!(of("openai", "gpt-5.5", 1000, &[]).warm_amounts.read, 0);
    }
}

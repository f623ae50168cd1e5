//! The price of a request before it is sent.
//!
//! The principal function is [`quote`].

use hardpan_models::{CacheKind, Model, ProviderProfile};
use hardpan_prompt::{Breakpoint, CacheLifetime, TokenUsage};

/// A prompt of `total` tokens by how it is billed: the first `read` tokens are read from the cache,
/// those up to `hour` are written for an hour, those up to `end` for the usual lifetime.
pub(crate) fn split_prompt(total: usize, read: usize, hour: usize, end: usize) -> TokenUsage {
    let [input, cache_read, cache_write_5m, cache_write_1h] =
        [total - end, read, end - hour, hour - read].map(|tokens| tokens as u64);
    TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, ..TokenUsage::default() }
}

/// Prices of tokens, in dollars per million.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    input: f64,
    read: f64,
    write: f64,
    write_1h: f64,
    output: f64,
}

impl Rates {
    /// The prices of `model` at this provider, for a request with this many input tokens.
    pub fn for_model(model: &Model, profile: &ProviderProfile, input_tokens: u64) -> Self {
        let price = model.prices_at(input_tokens);
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
            output: price.output,
        }
    }

    /// What reading from the cache and writing to it cost, in units of plain input. For a model
    /// without a price, reading is free.
    pub fn ratios(&self) -> (f64, f64) {
        if self.input > 0.0 { (self.read / self.input, self.write / self.input) } else { (0.0, 1.0) }
    }

    /// What writing to the cache for the long lifetime costs, in units of plain input.
    pub fn long_write_ratio(&self) -> f64 {
        if self.input > 0.0 { self.write_1h / self.input } else { 1.0 }
    }

    /// What a token of output costs, in units of plain input; 0 for a model without a price.
    pub fn output_ratio(&self) -> f64 {
        if self.input > 0.0 { self.output / self.input } else { 0.0 }
    }

    /// What the tokens of the prompt cost together, in dollars. The answer is not counted.
    pub fn input_dollars(&self, usage: &TokenUsage) -> f64 {
        let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output: _, reasoning: _ } =
            *usage;
        (input as f64 * self.input
            + cache_read as f64 * self.read
            + cache_write_5m as f64 * self.write
            + cache_write_1h as f64 * self.write_1h)
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
    pub cold_amounts: TokenUsage,
    /// The billed tokens behind `warm`.
    pub warm_amounts: TokenUsage,
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
    let uncached = split_prompt(total, 0, 0, 0);
    let (cold_amounts, warm_amounts) = match profile.cache.kind {
        _ if !model.caching && profile.cache.kind != CacheKind::Markers => (uncached, uncached),
        CacheKind::None => (uncached, uncached),
        CacheKind::Markers => {
            let end_of = |wanted: &dyn Fn(&&Breakpoint) -> bool| {
                let ends = breakpoints.iter().filter(wanted).map(|breakpoint| through(breakpoint.block));
                ends.filter(|end| *end >= minimum).max().unwrap_or(0)
            };
            let hour = end_of(&|breakpoint| breakpoint.lifetime == CacheLifetime::OneHour);
            let end = end_of(&|_| true);
            (split_prompt(total, 0, hour, end), split_prompt(total, end, end, end))
        }
        CacheKind::Automatic => {
            // The last token is always computed afresh, so that there is something to answer from.
            let end = profile.cache.prefix_in_steps(total.saturating_sub(1));
            (split_prompt(total, 0, 0, end), split_prompt(total, end, end, end))
        }
    };
    let rates = Rates::for_model(model, profile, total as u64);
    Quote {
        cold: rates.input_dollars(&cold_amounts),
        warm: rates.input_dollars(&warm_amounts),
        cold_amounts,
        warm_amounts,
    }
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
        assert_eq!(
            quote.cold_amounts,
            TokenUsage { input: 6000, cache_write_5m: 4000, ..TokenUsage::default() }
        );
        assert_eq!(quote.warm_amounts, TokenUsage { input: 6000, cache_read: 4000, ..TokenUsage::default() });
        assert!((quote.cold - (6000.0 * 2.0 + 4000.0 * 2.5) / 1e6).abs() < 1e-12);
        assert!((quote.warm - (6000.0 * 2.0 + 4000.0 * 0.2) / 1e6).abs() < 1e-12);
    }

    #[test]
    fn hour_writes_end_at_the_last_hour_breakpoint() {
        let marks = [marker(1, CacheLifetime::OneHour), marker(4, CacheLifetime::FiveMinutes)];
        let quote = of("anthropic", "claude-sonnet-5", 10_000, &marks);
        assert_eq!(
            quote.cold_amounts,
            TokenUsage {
                input: 5000,
                cache_read: 0,
                cache_write_5m: 3000,
                cache_write_1h: 2000,
                ..TokenUsage::default()
            }
        );
    }

    #[test]
    fn a_long_prompt_to_haiku_costs_five_times_as_much_whatever_the_kind_of_token() {
        let catalogue = Catalogue::builtin();
        let model = catalogue.model(Some("anthropic"), "claude-haiku-5-5").unwrap();
        let profile = catalogue.provider("anthropic").unwrap().profile_for_model(&model);
        let rates = |tokens| Rates::for_model(&model, &profile, tokens);
        let (short, long) = (rates(100_000), rates(100_001));
        for (usual, dear) in [
            (short.input, long.input),
            (short.read, long.read),
            (short.write, long.write),
            (short.write_1h, long.write_1h),
            (model.prices_at(100_000).output, model.prices_at(100_001).output),
        ] {
            assert!((dear - 5.0 * usual).abs() < 1e-12, "{usual} {dear}");
        }
        let cold = of("anthropic", "claude-haiku-5-5", 100_001, &[]).cold;
        assert!((cold - 100_001.0 * 0.5 / 1e6).abs() < 1e-12);
    }

    #[test]
    fn reads_cost_what_the_model_charges_for_them() {
        for (model, share) in [
            ("claude-fable-5-2", 0.025),
            ("claude-fable-5-1", 0.025),
            ("claude-opus-5-5", 0.05),
            ("claude-sonnet-5-5", 0.05),
            ("claude-opus-5", 0.1),
            ("claude-haiku-5-5", 0.1),
        ] {
            let quote = of("anthropic", model, 4000, &[marker(3, CacheLifetime::FiveMinutes)]);
            assert!((quote.warm / (quote.cold / 1.25) - share).abs() < 1e-9, "{model}");
        }
    }

    #[test]
    fn a_breakpoint_under_the_minimum_caches_nothing() {
        let quote = of("anthropic", "claude-haiku-4-5", 10_000, &[marker(2, CacheLifetime::FiveMinutes)]);
        assert_eq!(quote.cold_amounts, TokenUsage { input: 10_000, ..TokenUsage::default() });
        assert_eq!(quote.warm_amounts, quote.cold_amounts);
    }

    #[test]
    fn automatic_caches_read_in_steps_and_write_for_nothing() {
        let quote = of("openai", "gpt-5.4", 10_000, &[]);
        assert_eq!(quote.warm_amounts, TokenUsage { input: 16, cache_read: 9984, ..TokenUsage::default() });
        assert!((quote.cold - 10_000.0 * 2.5 / 1e6).abs() < 1e-12);
        assert_eq!(of("openai", "gpt-5.4", 1000, &[]).warm_amounts.cache_read, 0);
        // Measured: 1.3k tokens are never read, of 3.7k it is 3,328.
        let read = |tokens| of("openai", "gpt-5.5", tokens, &[]).warm_amounts.cache_read;
        assert_eq!((read(1300), read(3700)), (0, 3328));
    }
}

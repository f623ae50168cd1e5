//! [`Spending`]: tokens by how they were billed, and their price.

use hardpan_context::Target;
use hardpan_economy::{InputTokens, Rates};
use hardpan_providers::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens by how they were billed, and their price in dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// Input tokens that were neither read from the cache nor written to it.
    pub input: u64,
    /// Input tokens read from the cache.
    pub read: u64,
    /// Input tokens written to the cache, whatever their lifetime.
    pub written: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Price of all of them in dollars, at the prices of their time.
    pub dollars: f64,
}

impl Spending {
    /// The spending of one answer at the target's prices.
    pub fn from_usage(usage: &Usage, target: &Target) -> Self {
        Spending {
            input: usage.input,
            read: usage.cache_read,
            written: usage.cache_write_5m + usage.cache_write_1h,
            output: usage.output,
            dollars: usage_dollars(usage, target),
        }
    }

    /// All input tokens: uncached, read and written.
    pub fn prompt_tokens(&self) -> u64 {
        self.input + self.read + self.written
    }
}

impl std::ops::AddAssign for Spending {
    fn add_assign(&mut self, other: Spending) {
        self.input += other.input;
        self.read += other.read;
        self.written += other.written;
        self.output += other.output;
        self.dollars += other.dollars;
    }
}

/// What an answer costs at the target's prices, in dollars.
pub fn usage_dollars(usage: &Usage, target: &Target) -> f64 {
    let tokens = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let amounts = InputTokens {
        input: tokens(usage.input),
        read: tokens(usage.cache_read),
        write: tokens(usage.cache_write_5m),
        write_1h: tokens(usage.cache_write_1h),
    };
    let rates = Rates::for_model(&target.model, &target.profile, tokens(usage.prompt_tokens()));
    rates.dollars(amounts) + usage.output as f64 * target.model.prices_at(usage.prompt_tokens()).output / 1e6
}

/// The usage report of the `agent_end` event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TokenUsage {
    /// The last request; null if the provider reported no usage.
    pub last_request: Option<Spending>,
    /// The whole session, with compactions, pings and other helper requests.
    pub session: Spending,
    /// Number of requests that `session` sums up.
    pub requests: u64,
    /// The breakdown of the last request as JSON: regions, kinds, tiers. Null before the first one.
    pub tiers: Value,
}

//! What was used, and what it cost.

use hardpan_context::Target;
use hardpan_economy::{Amounts, Rates};
use hardpan_providers::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens by how they were billed, and their price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Input that was neither read from a cache nor written to one.
    pub input: u64,
    /// Input read from a cache.
    pub read: u64,
    /// Input written to a cache.
    pub written: u64,
    /// Output.
    pub output: u64,
    /// All of it, in dollars, at the price of its time.
    pub dollars: f64,
}

impl Spent {
    /// What an answer used.
    pub fn of(usage: &Usage, target: &Target) -> Self {
        Spent {
            input: usage.input,
            read: usage.cache_read,
            written: usage.cache_write_5m + usage.cache_write_1h,
            output: usage.output,
            dollars: dollars(usage, target),
        }
    }

    /// All tokens of input.
    pub fn prompt(&self) -> u64 {
        self.input + self.read + self.written
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.input += other.input;
        self.read += other.read;
        self.written += other.written;
        self.output += other.output;
        self.dollars += other.dollars;
    }
}

/// What an answer costs at a model's prices.
pub fn dollars(usage: &Usage, target: &Target) -> f64 {
    let tokens = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let amounts = Amounts {
        input: tokens(usage.input),
        read: tokens(usage.cache_read),
        write: tokens(usage.cache_write_5m),
        write_1h: tokens(usage.cache_write_1h),
    };
    let rates = Rates::of(&target.model, &target.wire, tokens(usage.prompt()));
    rates.dollars(amounts) + usage.output as f64 * target.model.prices_at(usage.prompt()).output / 1e6
}

/// What the end of a run tells: seed c's `token_usage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TokenUsage {
    /// The last request; none where no usage was reported.
    pub last_request: Option<Spent>,
    /// The whole session, helper calls included.
    pub session: Spent,
    /// How many requests that was.
    pub requests: u64,
    /// What the last request held: regions, kinds, tiers.
    pub tiers: Value,
}

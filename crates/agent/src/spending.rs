//! [`Spending`]: tokens by how they were billed, and their price.

use std::sync::Arc;

use hardpan_context::{Breakdown, Target};
use hardpan_economy::Rates;
use hardpan_prompt::TokenUsage;
use schemars::JsonSchema;
use serde::Serialize;

use crate::events::TaskUsage;

/// Tokens by how they were billed, and their price in dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(into = "SpendingJson")]
pub struct Spending {
    /// The tokens of all requests and their answers.
    pub tokens: TokenUsage,
    /// Price of all of them in dollars, at the prices of their time.
    pub dollars: f64,
    /// What the answers of a simulator would have cost; nobody paid that.
    pub would_cost: f64,
}

impl Spending {
    /// The spending of one answer at the target's prices.
    pub fn from_usage(usage: &TokenUsage, target: &Target) -> Self {
        Spending { tokens: *usage, dollars: usage_dollars(usage, target), would_cost: 0.0 }
    }

    /// The same tokens, if a simulator answered: nothing is paid.
    pub fn simulated_if(self, is_simulated: bool) -> Self {
        if is_simulated {
            Spending { dollars: 0.0, would_cost: self.dollars + self.would_cost, ..self }
        } else {
            self
        }
    }
}

impl std::ops::AddAssign for Spending {
    fn add_assign(&mut self, other: Spending) {
        self.tokens += other.tokens;
        self.dollars += other.dollars;
        self.would_cost += other.would_cost;
    }
}

/// Tokens by how they were billed, and their price in dollars.
// The form of a `Spending` in events: all cache writes are one count.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Spending")]
struct SpendingJson {
    /// Input tokens that were neither read from the cache nor written to it.
    input: u64,
    /// Input tokens read from the cache.
    read: u64,
    /// Input tokens written to the cache, whatever their lifetime.
    written: u64,
    /// Output tokens, reasoning included.
    output: u64,
    /// Price of all of them in dollars, at the prices of their time.
    dollars: f64,
    /// What the answers of a simulator would have cost in dollars; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_cost: Option<f64>,
}

impl From<Spending> for SpendingJson {
    fn from(Spending { tokens, dollars, would_cost }: Spending) -> Self {
        SpendingJson {
            input: tokens.input,
            read: tokens.cache_read,
            written: tokens.cache_written(),
            output: tokens.output,
            dollars,
            would_cost: Some(would_cost).filter(|would_cost| *would_cost > 0.0),
        }
    }
}

/// What an answer costs at the target's prices, in dollars.
pub fn usage_dollars(usage: &TokenUsage, target: &Target) -> f64 {
    let rates = Rates::for_model(&target.model, &target.profile, usage.prompt());
    rates.input_dollars(usage) + usage.output as f64 * target.model.prices_at(usage.prompt()).output / 1e6
}

/// The usage report of the `agent_end` event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TokenUsage")]
pub struct UsageReport {
    /// The last request; null if the provider reported no usage.
    #[schemars(with = "Option<SpendingJson>")]
    pub last_request: Option<Spending>,
    /// The whole session, with compactions, pings and other helper requests.
    #[schemars(with = "SpendingJson")]
    pub session: Spending,
    /// Number of requests that `session` sums up.
    pub requests: u64,
    /// What of `session` sub-agents have used; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskUsage>,
    /// The breakdown of the last request: regions, kinds, tiers. Null before the first one.
    #[serde(rename = "tiers")]
    pub breakdown: Option<Arc<Breakdown>>,
}

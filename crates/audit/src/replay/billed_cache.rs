//! [`BilledCache`]: a simulated provider cache that adds up what its requests cost.

use hardpan_economy::CacheModel;
use hardpan_economy::cache::CacheRequest;

use super::threads::RequestStep;
use super::{ReplayCost, ThinkingSwitches};

/// The longest time until an answer is assumed to begin, in milliseconds: recordings only have its
/// end.
pub(super) const FIRST_TOKEN_MS: i64 = 1500;

/// The cache of one thread's requests, and their bill.
#[derive(Default)]
pub(super) struct BilledCache {
    cache: CacheModel,
    pub cost: ReplayCost,
}

impl BilledCache {
    /// Sends a recorded request.
    pub fn send(&mut self, step: &RequestStep, mut request: CacheRequest) {
        request.model = step.pricing.model.clone();
        request.settings.effort =
            step.thinking.clone().filter(|_| step.thinking_switches == ThinkingSwitches::Recorded);
        let began = step.ended.min(step.at.plus(FIRST_TOKEN_MS));
        let tokens = self.cache.send(&step.pricing.rules, &request, began).amounts;
        self.cost.cost += step.pricing.cost(&tokens);
        self.cost.read += tokens.cache_read;
        self.cost.write += tokens.cache_written();
        self.cost.input += tokens.input;
    }
}

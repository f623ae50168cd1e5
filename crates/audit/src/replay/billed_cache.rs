//! [`BilledCache`]: a simulated provider cache that adds up what its requests cost.

use hardpan_economy::CacheModel;
use hardpan_economy::cache::{Billing, CacheBlock, CacheRequest, CacheSettings, Moment};
use hardpan_prompt::TokenUsage;

use super::threads::RequestStep;
use super::{ReplayCost, ThinkingSwitches};

/// The longest time until an answer is assumed to begin, in milliseconds: recordings only have its
/// end.
const FIRST_TOKEN_MS: i64 = 1500;

/// The cache of one thread's requests, and their bill.
#[derive(Default)]
pub(super) struct BilledCache {
    cache: CacheModel,
    pub cost: ReplayCost,
}

impl BilledCache {
    pub fn build_request(step: &RequestStep, blocks: Vec<CacheBlock>) -> CacheRequest {
        let effort = step.thinking.clone().filter(|_| step.thinking_switches == ThinkingSwitches::Recorded);
        CacheRequest {
            at: step.at,
            model: step.pricing.model.clone(),
            blocks,
            settings: CacheSettings { effort, ..CacheSettings::default() },
            explicit_only: false,
        }
    }

    /// What would be billed for a request, without sending it.
    pub fn plan(&self, step: &RequestStep, request: &CacheRequest) -> Billing {
        self.cache.plan(&step.pricing.rules, request)
    }

    /// Sends a recorded request.
    pub fn send(&mut self, step: &RequestStep, request: &CacheRequest) {
        let began = step.ended.min(step.at.plus(FIRST_TOKEN_MS));
        let billing = self.cache.send(&step.pricing.rules, request, began);
        self.charge(step, &billing.amounts);
    }

    /// Sends the same request again at another time, to keep the cache warm.
    pub fn ping(&mut self, step: &RequestStep, request: &mut CacheRequest, at: Moment) {
        request.at = at;
        let billing = self.cache.send(&step.pricing.rules, request, at.plus(FIRST_TOKEN_MS));
        self.cost.pings += 1;
        self.charge(step, &billing.amounts);
    }

    fn charge(&mut self, step: &RequestStep, tokens: &TokenUsage) {
        self.cost.cost += step.pricing.cost(tokens);
        self.cost.read += tokens.cache_read;
        self.cost.write += tokens.cache_written();
        self.cost.input += tokens.input;
    }
}

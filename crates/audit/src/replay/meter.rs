//! A cache, and what it bills.

use hardpan_economy::cache::{Billing, CacheBlock, Moment, Request, Salts};
use hardpan_economy::{Amounts, CacheModel};

use super::work::Step;
use super::{Replayed, Settings};

/// How long an answer takes to begin, at most, in milliseconds: recordings have only its end.
const FIRST_TOKEN_MS: i64 = 1500;

/// The cache of one thread's requests, and their bill.
#[derive(Default)]
pub(super) struct Meter {
    cache: CacheModel,
    pub replayed: Replayed,
}

impl Meter {
    pub fn request(step: &Step, blocks: Vec<CacheBlock>) -> Request {
        let effort = step.thinking.clone().filter(|_| step.settings == Settings::Recorded);
        Request {
            at: step.at,
            model: step.terms.model.clone(),
            blocks,
            salts: Salts { effort, ..Salts::default() },
        }
    }

    /// What would be billed.
    pub fn plan(&self, step: &Step, request: &Request) -> Billing {
        self.cache.plan(&step.terms.rules, request)
    }

    /// Sends a request of the recording.
    pub fn send(&mut self, step: &Step, request: &Request) {
        let began = step.ended.min(step.at.plus(FIRST_TOKEN_MS));
        let billing = self.cache.send(&step.terms.rules, request, began);
        self.charge(step, billing.amounts);
    }

    /// Sends the same request again at another time, only to keep the cache warm.
    pub fn ping(&mut self, step: &Step, request: &mut Request, at: Moment) {
        request.at = at;
        let billing = self.cache.send(&step.terms.rules, request, at.plus(FIRST_TOKEN_MS));
        self.replayed.pings += 1;
        self.charge(step, billing.amounts);
    }

    fn charge(&mut self, step: &Step, amounts: Amounts) {
        let tokens = amounts.into();
        self.replayed.cost += step.terms.cost(&tokens);
        self.replayed.read += tokens.read;
        self.replayed.write += tokens.write + tokens.write_1h;
        self.replayed.input += tokens.input;
    }
}

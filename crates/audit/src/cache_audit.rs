//! [`Audit`]: explains the bill of a recorded session: what was paid, what a stable prefix would
//! have paid, and why.
//!
//! An audit goes through a recording once, in order of time. For every request it predicts the
//! cache from what is recorded: the place in the conversation, the times, the model, compactions,
//! settings, images, and what earlier requests left in the cache according to their bills. Where
//! the bill shows that much less was read than the previous request had left, that is a [`Loss`]
//! with its most likely cause; where nothing recorded explains it, the audit says so.
//!
//! A prediction is cautious: a request that may have hit is predicted to hit.

mod auditor; // Auditor: goes through a recording request by request
mod frontiers; // Frontiers: how far each request is cached
mod loss_cause; // LossCause: why cached tokens were paid again
mod provider_model; // ProviderModel: prices, and how a provider caches
mod side_requests; // SideBill: requests of which only the sum is recorded
#[cfg(test)]
mod tests;

use hardpan_prompt::TokenUsage;
use std::sync::Arc;

use hardpan_economy::cache::Moment;
use hardpan_models::Catalogue;

use crate::{Recording, SourceAgent};
use auditor::Auditor;
pub use loss_cause::{AvoidableBy, CauseCategory, CauseSource, LossCause, RequestTrigger, UnexplainedLoss};
pub use side_requests::SideBill;

use crate::model_facts::InputPrices;

/// What a session cost, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// The name of the recording, usually a path.
    pub file: String,
    /// The agent that recorded it.
    pub agent: SourceAgent,
    /// The session's own id, where the recording has one.
    pub session: Option<Arc<str>>,
    /// Every billed request, in order of time.
    pub requests: Vec<AuditedRequest>,
    /// What was billed for all requests, side requests included.
    pub billed: Bill,
    /// The part of `billed` that is for side requests: of these, only the sum is recorded. They
    /// count as they are in `predicted` and `stable_prefix_cost`.
    pub side_requests: Vec<SideBill>,
    /// What all prompts and answers cost in dollars at list prices, side requests included. `None`
    /// where the price of a model is not known.
    pub total_dollars: Option<f64>,
    /// The total that the recording itself gives, in dollars. `None` where it gives none.
    pub recorded_dollars: Option<f64>,
    /// What the predictions would have cost.
    pub predicted: Bill,
    /// The losses, in order of time.
    pub losses: Vec<Loss>,
    /// What the session would have cost if every request had only added to the previous one, with a
    /// moving marker and the default lifetime, in units of one uncached input token. Pauses, other
    /// models and compactions still lose the cache.
    pub stable_prefix_cost: f64,
    /// Models without a known price: their requests count in tokens and units, not in dollars.
    pub unpriced: Vec<Arc<str>>,
    /// How many lines could not be read, or only in part.
    pub problems: usize,
}

/// Tokens of prompts, and what they cost; answers are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bill {
    /// The tokens. `output` is that of the same requests, and not part of the costs.
    pub tokens: TokenUsage,
    /// The cost in units of one uncached input token.
    pub cost: f64,
    /// The cost in dollars at list prices. `None` where no price is known.
    pub dollars: Option<f64>,
}

/// Whether a request read what the previous one had left in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheOutcome {
    /// It did, or there was nothing to read.
    Hit,
    /// It read much less, so that cached tokens were paid again.
    Loss,
}

/// A billed request, compared with its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditedRequest {
    /// When it was sent.
    pub at: Moment,
    /// The model's id as it is recorded.
    pub model: Arc<str>,
    /// What it was sent for.
    pub trigger: RequestTrigger,
    /// What was billed for it.
    pub bill: Bill,
    /// What it would have cost with a stable prefix, in units of one uncached input token.
    pub stable_cost: f64,
    /// The tokens that the previous request had left to read.
    pub expected: u64,
    /// The outcome that was predicted from the requests before.
    pub predicted: CacheOutcome,
    /// The outcome according to its bill.
    pub actual: CacheOutcome,
}

/// Tokens that had been cached and were paid again.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Index of the request in [`Audit::requests`].
    pub request: usize,
    /// When it was sent.
    pub at: Moment,
    /// How many tokens were paid again.
    pub tokens: u64,
    /// What they cost beyond the price of reading them, in units of one uncached input token.
    pub cost: f64,
    /// The same in dollars. `None` where no price is known.
    pub dollars: Option<f64>,
    /// The most likely cause.
    pub cause: LossCause,
    /// Where the cause is known from.
    pub source: CauseSource,
    /// Whether the agent could have avoided it.
    pub is_avoidable: bool,
}

impl Loss {
    /// Who could have avoided it.
    pub fn avoidable_by(&self) -> AvoidableBy {
        self.cause.avoidable_by(self.is_avoidable)
    }
}

impl Audit {
    /// Audits a recording at the prices of a catalogue.
    pub fn from_recording(recording: &Recording, catalogue: &Catalogue) -> Self {
        Auditor::audit(recording, catalogue)
    }

    /// How many requests were predicted correctly, hit or loss.
    pub fn correct_predictions(&self) -> usize {
        self.requests.iter().filter(|request| request.predicted == request.actual).count()
    }

    /// The losses, the most expensive first.
    pub fn losses_by_cost(&self) -> Vec<&Loss> {
        let mut losses: Vec<&Loss> = self.losses.iter().collect();
        losses.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(a.request.cmp(&b.request)));
        losses
    }
}

impl Bill {
    fn add_request(&mut self, tokens: &TokenUsage, prices: &InputPrices) -> Bill {
        let cost = prices.cost(tokens);
        let one = Bill { tokens: *tokens, cost, dollars: prices.dollars_per_unit.map(|unit| cost * unit) };
        self.add(&one);
        one
    }

    fn add(&mut self, other: &Bill) {
        self.tokens += other.tokens;
        self.cost += other.cost;
        self.dollars = match (self.dollars, other.dollars) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        };
    }

    fn subtract(&mut self, part: &Bill) {
        self.tokens = self.tokens.saturating_sub(&part.tokens);
        self.cost -= part.cost;
        self.dollars = self.dollars.map(|dollars| dollars - part.dollars.unwrap_or(0.0));
    }
}

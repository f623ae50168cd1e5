//! The bill explained: what was paid, what should have been, and why it was not.
//!
//! A recording is gone through once, in order of time. For every request the cache is foretold from what is recorded: the
//! place in the conversation, the times, the model, compactions, settings, images, and what earlier requests left in the cache by
//! their own bills. Where the bill then shows that much less was read than the request before had left, that is a [`Loss`], and it
//! gets the likeliest cause; where nothing recorded explains it, it says so.
//!
//! Nothing is foretold that is not certain: a request that may have hit is foretold to hit.

mod auditor; // the way through a recording, request by request
mod cause; // Why, Lost: why something was paid again
mod frontiers; // what requests left in the cache, on the tree of the conversation
#[cfg(test)]
mod tests;
mod whom; // prices, and how a provider caches

use std::sync::Arc;

use hardpan_economy::cache::Moment;
use hardpan_economy::ledger::Tokens;
use hardpan_models::Catalogue;

use crate::{Agent, Recording};
use auditor::Auditor;
pub use cause::{Lost, Turn, Why};
use whom::Tariff;

/// What a session cost, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// The file.
    pub file: String,
    /// Who recorded it.
    pub agent: Agent,
    /// Every billed request, in order of time.
    pub requests: Vec<Judged>,
    /// What was billed.
    pub billed: Bill,
    /// What was foretold.
    pub predicted: Bill,
    /// What was paid again, in order of time.
    pub losses: Vec<Loss>,
    /// What would have been paid had every request only added to the one before, with a marker that moves along and the usual
    /// lifetime: in units of one uncached input token. Time, another model and compaction still lose.
    pub stable_prefix_cost: f64,
    /// Models whose prices are not known: their requests are in the tokens and the costs, not in the dollars.
    pub unpriced: Vec<Arc<str>>,
    /// How many lines could not be read, or not in full.
    pub problems: usize,
}

/// Tokens of prompts, and what they cost; answers are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bill {
    /// The tokens; `output` is that of the same requests, and not in the costs.
    pub tokens: Tokens,
    /// In units of one uncached input token.
    pub cost: f64,
    /// In dollars, at list prices; none where no price is known.
    pub dollars: Option<f64>,
}

/// Whether a request read what the one before had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did, or there was nothing to read.
    Hit,
    /// It read much less.
    Loss,
}

/// A billed request.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// When it was sent.
    pub at: Moment,
    /// What it answers.
    pub turn: Turn,
    /// What was billed.
    pub bill: Bill,
    /// What it would have cost with a stable prefix, in units.
    pub stable_cost: f64,
    /// What the request before had left to read, in tokens.
    pub expected: u64,
    /// What was foretold.
    pub predicted: Outcome,
    /// What happened.
    pub actual: Outcome,
}

/// Something that had been cached and was paid again.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The request, from 0.
    pub request: usize,
    /// When it was sent.
    pub at: Moment,
    /// The tokens that were paid again.
    pub tokens: u64,
    /// What they cost beyond the price of reading them, in units.
    pub cost: f64,
    /// The same in dollars; none where no price is known.
    pub dollars: Option<f64>,
    /// Why.
    pub why: Why,
    /// Whether the program that laid out the prompt could have avoided it.
    pub ours: bool,
}

impl Audit {
    /// The audit of a recording, at the prices of this catalogue.
    pub fn of(recording: &Recording, catalogue: &Catalogue) -> Self {
        Auditor::audit(recording, catalogue)
    }

    /// How many requests were foretold rightly, hit or loss.
    pub fn right(&self) -> usize {
        self.requests.iter().filter(|request| request.predicted == request.actual).count()
    }

    /// The losses, the dearest first.
    pub fn ranked(&self) -> Vec<&Loss> {
        let mut losses: Vec<&Loss> = self.losses.iter().collect();
        losses.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(a.request.cmp(&b.request)));
        losses
    }
}

impl Bill {
    fn add(&mut self, tokens: &Tokens, tariff: &Tariff) -> Bill {
        let cost = tariff.cost(tokens);
        let one = Bill { tokens: *tokens, cost, dollars: tariff.unit.map(|unit| cost * unit) };
        self.tokens.add(tokens);
        self.cost += cost;
        self.dollars = match (self.dollars, one.dollars) {
            (Some(sum), Some(more)) => Some(sum + more),
            (sum, more) => sum.or(more),
        };
        one
    }
}

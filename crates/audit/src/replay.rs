//! [`Replay`]: what recorded work would have cost with another layout, on the cache model and at
//! the recorded times.
//!
//! Every request has the size that was billed: answers as billed, the rest scaled to fit. Policies
//! differ in what they send, in which order, and where they set breakpoints;
//! [`hardpan_economy::CacheModel`] tells what is then read and written. All sessions use the same
//! constants.

mod append; // the policy append
mod billed_cache; // BilledCache: a simulated cache that adds up costs
mod clairvoyant; // the best schedule of full folds
mod floor; // what no arrangement can cost less than
mod layout_models; // `panels`, `tiers` and `inline` as cost models
mod model_pricing; // ModelPricing: cache rules and prices of a model
mod prompt_log; // PromptLog: the prompt as a log, and its garbage
mod sizes; // sizes that add up to what was billed
mod strata; // the layout strata: the log with folds
#[cfg(test)]
mod tests;
mod threads; // ReplayThread: requests as units of the conversation

use std::sync::Arc;

use hardpan_models::Catalogue;
use hardpan_prompt::TokenUsage;
use serde::Serialize;

use crate::import::Recording;
use model_pricing::PricingTable;
use threads::ReplayThread;

/// How prompts are laid out and kept in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayPolicy {
    /// Append-only with a moving marker and a lifetime of five minutes, as most agents do.
    Append,
    /// The layout `strata`: a stable prefix with folds, and pings where they pay.
    Strata,
    /// The layout `panels`: items as panels before the conversation.
    Panels,
    /// The layout `tiers`: items and exchanges sorted by stability.
    Tiers,
    /// The layout `inline`: items before the last prompt.
    Inline,
}

impl ReplayPolicy {
    /// All of them, in the order of the reports.
    pub const ALL: [ReplayPolicy; 5] = [
        ReplayPolicy::Strata,
        ReplayPolicy::Panels,
        ReplayPolicy::Tiers,
        ReplayPolicy::Inline,
        ReplayPolicy::Append,
    ];

    /// The policy's name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ReplayPolicy::Append => "append",
            ReplayPolicy::Strata => "strata",
            ReplayPolicy::Panels => "panels",
            ReplayPolicy::Tiers => "tiers",
            ReplayPolicy::Inline => "inline",
        }
    }

    /// The policy of this name. `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        ReplayPolicy::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// Whether a replay loses the cache where the user switched the thinking level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingSwitches {
    /// The level stays as it was at first. A switch loses the cache of the messages whatever the
    /// policy, and would only blur the comparison.
    Ignored,
    /// Every recorded switch loses the cache, as it did.
    Recorded,
}

/// What a replayed session costs. Serialized in `hardpan replay --json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ReplayCost {
    /// The cost in units of one uncached input token; output is not counted.
    pub cost: f64,
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache.
    pub write: u64,
    /// Tokens neither read nor written.
    pub input: u64,
    /// How many folds dropped garbage.
    pub folds: usize,
    /// How many requests only kept the cache warm; `cost` includes them.
    pub pings: usize,
}

impl ReplayCost {
    fn add(&mut self, other: &ReplayCost) {
        let ReplayCost { cost, read, write, input, folds, pings } = other;
        self.cost += cost;
        self.read += read;
        self.write += write;
        self.input += input;
        self.folds += folds;
        self.pings += pings;
    }
}

/// A recording prepared for replay: sizes are fitted to the bills, and touches of files are known.
pub struct Replay {
    threads: Vec<ReplayThread>,
    billed: BilledTotals,
    unpriced: Vec<Arc<str>>,
    side_tokens: u64,
}

/// What was billed for a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BilledTotals {
    /// How many requests were billed.
    pub requests: usize,
    /// The tokens of all requests.
    pub tokens: TokenUsage,
    /// What their input cost, in units of one uncached input token of each request's model.
    pub cost: f64,
    /// The same in dollars, at the catalogue's prices. `None` where the price of a model is not
    /// known: there are only tokens and ratios then.
    pub dollars: Option<f64>,
}

impl Replay {
    /// Prepares a recording at the prices of a catalogue, ignoring switches of the thinking level.
    pub fn new(recording: &Recording, catalogue: &Catalogue) -> Self {
        Replay::with_thinking_switches(recording, catalogue, ThinkingSwitches::Ignored)
    }

    /// Like [`Replay::new`], with a choice about switches of the thinking level.
    pub fn with_thinking_switches(
        recording: &Recording,
        catalogue: &Catalogue,
        thinking_switches: ThinkingSwitches,
    ) -> Self {
        let pricing = PricingTable::new(catalogue, recording);
        Replay {
            threads: threads::build_threads(recording, &pricing, thinking_switches),
            billed: bill(recording, &pricing),
            unpriced: pricing.unpriced(),
            side_tokens: recording.side_usage.iter().map(|side| side.usage.prompt()).sum(),
        }
    }

    /// The models without a known price.
    pub fn unpriced(&self) -> &[Arc<str>] {
        &self.unpriced
    }

    /// The tokens of side requests, of which only the sum is recorded: they are not replayed.
    pub fn side_tokens(&self) -> u64 {
        self.side_tokens
    }

    /// How many requests have another thinking level than the previous one.
    pub fn thinking_switch_count(&self) -> usize {
        let pairs = self.threads.iter().flat_map(|thread| thread.steps.windows(2));
        pairs.filter(|pair| pair[0].thinking != pair[1].thinking).count()
    }

    /// What was billed for the recording.
    pub fn billed(&self) -> BilledTotals {
        self.billed
    }

    /// Replays the recording with a policy.
    pub fn run(&self, policy: ReplayPolicy) -> ReplayCost {
        let mut replayed = ReplayCost::default();
        for thread in &self.threads {
            replayed.add(&match policy {
                ReplayPolicy::Append => append::run(thread),
                ReplayPolicy::Strata => strata::run(thread, strata::FoldSites::Frontiers),
                ReplayPolicy::Panels => layout_models::replay_panels(thread),
                ReplayPolicy::Tiers => layout_models::replay_tiers(thread),
                ReplayPolicy::Inline => layout_models::replay_inline(thread),
            });
        }
        replayed
    }

    /// The cost of the best schedule of full folds, chosen with knowledge of the future.
    pub fn clairvoyant(&self) -> f64 {
        self.threads.iter().map(|thread| clairvoyant::best(thread).0).sum()
    }

    /// What no arrangement of the same work can cost less than, the billed one included: every
    /// request reads what is still true, and what is new is paid in full once.
    pub fn floor(&self) -> f64 {
        self.threads.iter().map(floor::floor).sum()
    }
}

/// Replays a recording with a policy at the built-in prices.
pub fn replay(recording: &Recording, policy: ReplayPolicy) -> ReplayCost {
    Replay::new(recording, Catalogue::builtin()).run(policy)
}

fn bill(recording: &Recording, pricing: &PricingTable) -> BilledTotals {
    let mut bill = BilledTotals { requests: recording.requests.len(), ..BilledTotals::default() };
    let mut dollars = Some(0.0);
    for request in &recording.requests {
        let pricing = pricing.look_up(request);
        bill.tokens += request.usage;
        bill.cost += pricing.cost(&request.usage);
        dollars = dollars.zip(pricing.dollars(&request.usage)).map(|(sum, more)| sum + more);
    }
    BilledTotals { dollars, ..bill }
}

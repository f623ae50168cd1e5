//! [`Replay`]: what recorded work would have cost with another layout, on the cache model and at
//! the recorded times.
//!
//! Every request has the size that was billed: answers as billed, the rest scaled to fit. Policies
//! differ in what they send, in which order, and where they set breakpoints;
//! [`hardpan_economy::CacheModel`] tells what is then read and written. All sessions use the same
//! constants.

mod billed_cache; // BilledCache: a simulated cache that adds up costs
mod clairvoyant; // the best schedule of full folds
mod engine; // EngineRun: requests as the live agent would have sent them
mod floor; // what no arrangement can cost less than
mod measured; // MeasuredThread: the sizes that floor and clairvoyant go by
mod messages; // recorded entries as messages of our own agent
mod model_pricing; // ModelPricing: cache rules and prices of a model
mod sizes; // sizes that add up to what was billed
#[cfg(test)]
mod tests;
mod threads; // ReplayThread: requests as series of messages with sizes

use std::sync::Arc;

use hardpan_context::{AssembleError, KeepLevel, LayoutName, LifetimeSetting, PromptTextsError};
use hardpan_models::{Catalogue, UnknownName};
use hardpan_prompt::TokenUsage;
use serde::Serialize;
use thiserror::Error;

use crate::import::Recording;
use measured::MeasuredThread;
use model_pricing::PricingTable;
use threads::ReplayThread;

/// Why a recording cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A layout cannot build one of its requests.
    #[error(transparent)]
    Assemble(#[from] AssembleError),
    /// The texts of requests cannot be read.
    #[error(transparent)]
    Texts(#[from] PromptTextsError),
    /// The catalogue has no row for a model of the recording.
    #[error(transparent)]
    Model(#[from] UnknownName),
}

/// How prompts are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayPolicy {
    layout: LayoutName,
    keep: KeepLevel,
    lifetime: LifetimeSetting,
}

impl ReplayPolicy {
    /// `strata` without folds: requests only grow, as those of most agents do.
    pub const APPEND: ReplayPolicy = ReplayPolicy::strata(KeepLevel::All);

    /// All of them, in the order of the reports.
    pub const ALL: [ReplayPolicy; 7] = [
        ReplayPolicy::strata(KeepLevel::Current),
        ReplayPolicy::strata(KeepLevel::History),
        ReplayPolicy::strata(KeepLevel::Lean),
        ReplayPolicy::of_layout(LayoutName::Panels),
        ReplayPolicy::of_layout(LayoutName::Tiers),
        ReplayPolicy::of_layout(LayoutName::Inline),
        ReplayPolicy::APPEND,
    ];

    /// The layout `strata`, whose folds take out what `keep` lets go.
    pub const fn strata(keep: KeepLevel) -> Self {
        ReplayPolicy { layout: LayoutName::Strata, keep, lifetime: LifetimeSetting::Auto }
    }

    /// The same with another lifetime of cache entries.
    pub fn with_lifetime(self, lifetime: LifetimeSetting) -> Self {
        ReplayPolicy { lifetime, ..self }
    }

    const fn of_layout(layout: LayoutName) -> Self {
        ReplayPolicy { layout, keep: KeepLevel::Current, lifetime: LifetimeSetting::Auto }
    }

    /// How much folds take out. `None` for layouts that do not fold.
    pub fn keep(self) -> Option<KeepLevel> {
        Some(self.keep).filter(|_| self.layout == LayoutName::Strata)
    }

    /// The policy's name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match (self.layout, self.keep) {
            (LayoutName::Strata, KeepLevel::All) => "append",
            (LayoutName::Strata, KeepLevel::History) => "strata-history",
            (LayoutName::Strata, KeepLevel::Lean) => "strata-lean",
            (layout, _) => layout.as_str(),
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
    /// How often the work went on with something that a fold had taken out, so that the model had to
    /// recall it; `cost` includes that.
    pub recalls: usize,
}

impl ReplayCost {
    fn add(&mut self, other: &ReplayCost) {
        let ReplayCost { cost, read, write, input, folds, recalls } = other;
        self.cost += cost;
        self.read += read;
        self.write += write;
        self.input += input;
        self.folds += folds;
        self.recalls += recalls;
    }
}

/// A recording prepared for replay: sizes are fitted to the bills, and touches of files are known.
pub struct Replay {
    threads: Vec<ReplayThread>,
    measured: Vec<MeasuredThread>,
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
    pub fn new(recording: &Recording, catalogue: &Catalogue) -> Result<Self, ReplayError> {
        Replay::with_thinking_switches(recording, catalogue, ThinkingSwitches::Ignored)
    }

    /// Like [`Replay::new`], with a choice about switches of the thinking level.
    pub fn with_thinking_switches(
        recording: &Recording,
        catalogue: &Catalogue,
        thinking_switches: ThinkingSwitches,
    ) -> Result<Self, ReplayError> {
        let pricing = PricingTable::new(catalogue, recording)?;
        let threads = threads::build_threads(recording, &pricing, thinking_switches);
        let measured = threads.iter().map(|thread| MeasuredThread::new(thread, KeepLevel::default()));
        Ok(Replay {
            measured: measured.collect::<Result<_, _>>()?,
            threads,
            billed: bill(recording, &pricing),
            unpriced: pricing.unpriced(),
            side_tokens: recording.side_usage.iter().map(|side| side.usage.prompt()).sum(),
        })
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
    pub fn run(&self, policy: ReplayPolicy) -> Result<ReplayCost, ReplayError> {
        let mut replayed = ReplayCost::default();
        for thread in &self.threads {
            replayed.add(&engine::run(thread, policy)?);
        }
        Ok(replayed)
    }

    /// The cost of the best schedule of full folds, chosen with knowledge of the future.
    pub fn clairvoyant(&self) -> f64 {
        self.measured_threads().map(|(thread, measured)| clairvoyant::best(thread, measured).0).sum()
    }

    /// What no arrangement of the same work can cost less than, the billed one included: every
    /// request reads what is still true, and what is new is paid in full once.
    pub fn floor(&self) -> f64 {
        self.measured_threads().map(|(thread, measured)| floor::floor(thread, measured)).sum()
    }

    fn measured_threads(&self) -> impl Iterator<Item = (&ReplayThread, &MeasuredThread)> {
        self.threads.iter().zip(&self.measured)
    }
}

/// Replays a recording with a policy at the built-in prices.
pub fn replay(recording: &Recording, policy: ReplayPolicy) -> Result<ReplayCost, ReplayError> {
    Replay::new(recording, Catalogue::builtin())?.run(policy)
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

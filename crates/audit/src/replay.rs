//! Recorded work through other policies, at the recorded times, on the cache model.
//!
//! Every request has the size that was billed: answers as billed, the rest scaled to fit. What differs between policies is what
//! is sent along, in which order, and where breakpoints are; [`hardpan_economy::CacheModel`] tells what is then read and
//! written. Constants are the same for all sessions.

mod append; // plain append-only
mod clairvoyant; // the best schedule of full folds, and the floor
mod log; // the prompt as a log, and its garbage
mod meter; // a cache, and what it bills
mod others; // `panels`, `tiers` and `inline` as cost models
mod sizes; // sizes that add up to what was billed
mod strata; // the log with folds
mod terms; // rules and prices of a model
#[cfg(test)]
mod tests;
mod work; // requests as units of the conversation

use hardpan_economy::ledger::Tokens;
use hardpan_models::Catalogue;
use serde::Serialize;

use crate::import::Recording;
use terms::AllTerms;
use work::Thread;

/// How prompts are laid and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Append-only with a moving marker, five minutes: as most agents do.
    Append,
    /// A stable prefix with folds, and pings where they pay.
    Strata,
    /// Items as panels before the conversation.
    Panels,
    /// Stability tiers.
    Tiers,
    /// Items before the last prompt.
    Inline,
}

impl Policy {
    /// All of them, in the order of the reports.
    pub const ALL: [Policy; 5] =
        [Policy::Strata, Policy::Panels, Policy::Tiers, Policy::Inline, Policy::Append];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Append => "append",
            Policy::Strata => "strata",
            Policy::Panels => "panels",
            Policy::Tiers => "tiers",
            Policy::Inline => "inline",
        }
    }

    /// The policy of this name.
    pub fn named(name: &str) -> Option<Self> {
        Policy::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// Whether what a person switches on the way is part of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settings {
    /// The model thinks as far as it did at first: a switch loses the cache of the messages whatever the policy, and
    /// would only blur what the policy is worth.
    Steady,
    /// Every switch loses what it loses.
    Recorded,
}

/// What a policy would have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Replayed {
    /// In units of one token of plain input, output left out.
    pub cost: f64,
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to it.
    pub write: u64,
    /// Tokens of plain input.
    pub input: u64,
    /// How often garbage was dropped.
    pub folds: usize,
    /// Requests that only kept the cache warm; their cost is in it.
    pub pings: usize,
}

impl Replayed {
    fn add(&mut self, other: &Replayed) {
        let Replayed { cost, read, write, input, folds, pings } = other;
        self.cost += cost;
        self.read += read;
        self.write += write;
        self.input += input;
        self.folds += folds;
        self.pings += pings;
    }
}

/// A recording made ready to be replayed: sizes fitted, files followed.
pub struct Replay {
    threads: Vec<Thread>,
    billed: Billed,
}

/// What was billed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Billed {
    /// How many requests.
    pub requests: usize,
    /// Their tokens.
    pub tokens: Tokens,
    /// What their input cost, in units of one token of plain input of each one's model.
    pub cost: f64,
    /// The same in dollars, by the prices known now.
    pub dollars: f64,
}

impl Replay {
    /// Prepares a recording, with the prices of a catalogue and steady settings.
    pub fn new(recording: &Recording, catalogue: &Catalogue) -> Self {
        Replay::with(recording, catalogue, Settings::Steady)
    }

    /// The same with the settings as told.
    pub fn with(recording: &Recording, catalogue: &Catalogue, settings: Settings) -> Self {
        Replay { threads: work::work(recording, catalogue, settings), billed: bill(recording, catalogue) }
    }

    /// How many requests came after a switch of how far the model thinks.
    pub fn switches(&self) -> usize {
        let pairs = self.threads.iter().flat_map(|thread| thread.steps.windows(2));
        pairs.filter(|pair| pair[0].thinking != pair[1].thinking).count()
    }

    /// What was billed.
    pub fn billed(&self) -> Billed {
        self.billed
    }

    /// What a policy would have cost.
    pub fn run(&self, policy: Policy) -> Replayed {
        let mut replayed = Replayed::default();
        for thread in &self.threads {
            replayed.add(&match policy {
                Policy::Append => append::run(thread),
                Policy::Strata => strata::run(thread, strata::Sites::Frontiers),
                Policy::Panels => others::panels(thread),
                Policy::Tiers => others::tiers(thread),
                Policy::Inline => others::inline(thread),
            });
        }
        replayed
    }

    /// What the best schedule of folds that drop all garbage would have cost, known beforehand.
    pub fn clairvoyant(&self) -> f64 {
        self.threads.iter().map(|thread| clairvoyant::best(thread).0).sum()
    }

    /// What would have been paid if only what is true had been read, and everything written once.
    pub fn floor(&self) -> f64 {
        self.threads.iter().map(clairvoyant::floor).sum()
    }
}

/// What a policy would have cost for a recording, by the built-in prices.
pub fn replay(recording: &Recording, policy: Policy) -> Replayed {
    Replay::new(recording, Catalogue::builtin()).run(policy)
}

fn bill(recording: &Recording, catalogue: &Catalogue) -> Billed {
    let mut terms = AllTerms::new(catalogue, recording.agent);
    let mut bill = Billed { requests: recording.requests.len(), ..Billed::default() };
    for request in &recording.requests {
        bill.tokens.add(&request.usage);
        if let Some(terms) = terms.of(request) {
            let cost = terms.cost(&request.usage);
            bill.cost += cost;
            bill.dollars += cost * terms.input_dollars / 1e6;
        }
    }
    bill
}

//! A request that was answered: what the ledger and the verdicts are told of it.

use hardpan_models::{Model, Wire};
use hardpan_prompt::{Measured, Prompt};
use serde::{Deserialize, Serialize};

use crate::cache::{Moment, Rules, Salts};
use crate::{Amounts, Rates};

/// Tokens as the provider reported them, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Input that was neither read from a cache nor written to one.
    pub input: u64,
    /// Input read from a cache.
    pub read: u64,
    /// Input written for the usual lifetime.
    pub write: u64,
    /// Input written for an hour.
    pub write_1h: u64,
    /// What the model answered, reasoning included.
    pub output: u64,
}

impl Tokens {
    /// All tokens of the prompt, however they were billed.
    pub fn prompt(&self) -> u64 {
        self.cached().saturating_add(self.input)
    }

    /// What was in the cache once the answer had begun, read or written.
    pub fn cached(&self) -> u64 {
        self.read.saturating_add(self.write).saturating_add(self.write_1h)
    }

    /// All tokens, the answer's included.
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// Adds those of another request.
    pub fn add(&mut self, other: &Tokens) {
        let Tokens { input, read, write, write_1h, output } = other;
        self.input = self.input.saturating_add(*input);
        self.read = self.read.saturating_add(*read);
        self.write = self.write.saturating_add(*write);
        self.write_1h = self.write_1h.saturating_add(*write_1h);
        self.output = self.output.saturating_add(*output);
    }
}

impl From<Amounts> for Tokens {
    fn from(Amounts { input, read, write, write_1h }: Amounts) -> Self {
        let [input, read, write, write_1h] = [input, read, write, write_1h].map(|tokens| tokens as u64);
        Tokens { input, read, write, write_1h, output: 0 }
    }
}

/// Dollars per million tokens, as they were when a request was answered. A later change of model or of prices does not
/// touch them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prices {
    /// Plain input.
    pub input: f64,
    /// Reading from the cache.
    pub read: f64,
    /// Writing to it for the usual lifetime.
    pub write: f64,
    /// Writing to it for an hour.
    pub write_1h: f64,
    /// The answer.
    pub output: f64,
}

impl Prices {
    /// What `model` costs at this provider for a request of so many input tokens.
    pub fn of(model: &Model, wire: &Wire, input_tokens: u64) -> Self {
        const MILLION: usize = 1_000_000;
        let rates = Rates::of(model, wire, input_tokens as usize);
        let none = Amounts::default();
        Prices {
            input: rates.dollars(Amounts { input: MILLION, ..none }),
            read: rates.dollars(Amounts { read: MILLION, ..none }),
            write: rates.dollars(Amounts { write: MILLION, ..none }),
            write_1h: rates.dollars(Amounts { write_1h: MILLION, ..none }),
            output: model.prices_at(input_tokens).output,
        }
    }

    /// What the tokens cost, in dollars.
    pub fn dollars(&self, tokens: &Tokens) -> f64 {
        let Tokens { input, read, write, write_1h, output } = *tokens;
        (input as f64 * self.input
            + read as f64 * self.read
            + write as f64 * self.write
            + write_1h as f64 * self.write_1h
            + output as f64 * self.output)
            / 1e6
    }
}

/// What a request was for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The conversation itself.
    #[default]
    Turn,
    /// A summary of the conversation, on top of its prefix.
    Compaction,
    /// A commit message: a prompt of its own.
    Commit,
    /// Keeping the cache warm.
    Ping,
}

/// Whether the process that sends a request also sent the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// It did, or there was none.
    #[default]
    Continued,
    /// It did not: this is the first request after a session was resumed.
    Resumed,
}

/// A request that was answered, with what the provider reported.
#[derive(Clone, Debug)]
pub struct Answered<'a> {
    /// What was sent, to the block.
    pub prompt: &'a Prompt,
    /// Its tokens by our count, in the model's tokens (scaled by the learned factor).
    pub measured: &'a Measured,
    /// The model that answered.
    pub model: &'a Model,
    /// How its provider is spoken to.
    pub wire: &'a Wire,
    /// The settings that a prompt does not hold: effort, tool choice, citations. The other fields are read off the
    /// prompt, whatever is given here.
    pub settings: Salts,
    /// What the provider reported. `None`: it did not say.
    pub used: Option<Tokens>,
    /// When the attempt that was answered was sent.
    pub sent: Moment,
    /// When its answer began.
    pub began: Moment,
    /// The person's day, such as `2026-08-14`: what the ledger sums by.
    pub day: &'a str,
    /// What it was for.
    pub purpose: Purpose,
    /// Whether this process sent the request before.
    pub start: Start,
}

impl Answered<'_> {
    /// What was billed; all of it as plain input where the provider did not say.
    pub fn billed(&self) -> Tokens {
        let counted = Tokens { input: self.measured.total() as u64, ..Tokens::default() };
        self.used.unwrap_or(counted)
    }

    /// The prices of this request.
    pub fn prices(&self) -> Prices {
        Prices::of(self.model, self.wire, self.billed().prompt())
    }

    /// How the provider caches for this model.
    pub fn rules(&self) -> Rules {
        Rules::of(self.model, self.wire)
    }
}

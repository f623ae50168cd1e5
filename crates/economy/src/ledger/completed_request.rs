//! A request that was request: what the ledger and the verdicts are told of it.

use hardpan_models::{Model, ProviderProfile};
use hardpan_prompt::{PromptTokens, Prompt};
use serde::{Deserialize, Serialize};

use crate::cache::{Moment, CacheRules, CacheSettings};
use crate::{InputTokens, Rates};

/// Tokens as the provider reported them, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Input that was neither read from a cache nor written to one.
    pub input: u64,
    /// Input read from a cache.
    pub read: u64,
    /// Input written for the usual lifetime.
    pub write: u64,
    /// Input written for an hour.
    pub write_1h: u64,
    /// What the model request, reasoning included.
    pub output: u64,
}

impl TokenUsage {
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
    pub fn add(&mut self, other: &TokenUsage) {
        let TokenUsage { input, read, write, write_1h, output } = other;
        self.input = self.input.saturating_add(*input);
        self.read = self.read.saturating_add(*read);
        self.write = self.write.saturating_add(*write);
        self.write_1h = self.write_1h.saturating_add(*write_1h);
        self.output = self.output.saturating_add(*output);
    }
}

impl From<InputTokens> for TokenUsage {
    fn from(InputTokens { input, read, write, write_1h }: InputTokens) -> Self {
        let [input, read, write, write_1h] = [input, read, write, write_1h].map(|tokens| tokens as u64);
        TokenUsage { input, read, write, write_1h, output: 0 }
    }
}

/// Dollars per million tokens, as they were when a request was request. A later change of model or of prices does not
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
    pub fn for_model(model: &Model, profile: &ProviderProfile, input_tokens: u64) -> Self {
        const MILLION: usize = 1_000_000;
        let rates = Rates::for_model(model, profile, input_tokens as usize);
        let none = InputTokens::default();
        Prices {
            input: rates.dollars(InputTokens { input: MILLION, ..none }),
            read: rates.dollars(InputTokens { read: MILLION, ..none }),
            write: rates.dollars(InputTokens { write: MILLION, ..none }),
            write_1h: rates.dollars(InputTokens { write_1h: MILLION, ..none }),
            output: model.prices_at(input_tokens).output,
        }
    }

    /// What the tokens cost, in dollars.
    pub fn dollars(&self, tokens: &TokenUsage) -> f64 {
        let TokenUsage { input, read, write, write_1h, output } = *tokens;
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
pub enum RequestPurpose {
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
pub enum Continuity {
    /// It did, or there was none.
    #[default]
    Continued,
    /// It did not: this is the first request after a session was resumed.
    Resumed,
}

/// A request that was request, with what the provider reported.
#[derive(Clone, Debug)]
pub struct CompletedRequest<'a> {
    /// What was sent, to the block.
    pub prompt: &'a Prompt,
    /// Its tokens by our count, in the model's tokens (scaled by the learned factor).
    pub prompt_tokens: &'a PromptTokens,
    /// The model that request.
    pub model: &'a Model,
    /// How its provider is spoken to.
    pub profile: &'a ProviderProfile,
    /// The settings that a prompt does not hold: effort, tool choice, citations. The other fields are read off the
    /// prompt, whatever is given here.
    pub settings: CacheSettings,
    /// What the provider reported. `None`: it did not say.
    pub reported_usage: Option<TokenUsage>,
    /// When the attempt that was request was sent.
    pub sent_at: Moment,
    /// When its answer began.
    pub answer_began_at: Moment,
    /// The person's day, such as `2026-08-14`: what the ledger sums by.
    pub day: &'a str,
    /// What it was for.
    pub purpose: RequestPurpose,
    /// Whether this process sent the request before.
    pub continuity: Continuity,
}

impl CompletedRequest<'_> {
    /// What was billed; all of it as plain input where the provider did not say.
    pub fn billed(&self) -> TokenUsage {
        let counted = TokenUsage { input: self.prompt_tokens.total() as u64, ..TokenUsage::default() };
        self.reported_usage.unwrap_or(counted)
    }

    /// The prices of this request.
    pub fn prices(&self) -> Prices {
        Prices::for_model(self.model, self.profile, self.billed().prompt())
    }

    /// How the provider caches for this model.
    pub fn rules(&self) -> CacheRules {
        CacheRules::for_model(self.model, self.profile)
    }
}

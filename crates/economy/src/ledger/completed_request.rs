//! [`CompletedRequest`]: an answered request, as ledger and cache monitor see it.

use hardpan_models::{Model, ProviderProfile};
use hardpan_prompt::{CacheDiagnosis, Prompt, PromptTokens, TokenUsage};
use serde::{Deserialize, Serialize};

use crate::Rates;
use crate::cache::{CacheRules, CacheSettings, Moment};

/// Dollars per million tokens at the time a request was answered. Later changes of model or prices
/// do not affect them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prices {
    /// Price of plain input.
    pub input: f64,
    /// Price of reading from the cache.
    pub read: f64,
    /// Price of writing to the cache for the usual lifetime.
    pub write: f64,
    /// Price of writing to the cache for an hour.
    pub write_1h: f64,
    /// Price of the answer, reasoning included.
    pub output: f64,
}

impl Prices {
    /// The prices of `model` at this provider, for a request with this many input tokens.
    pub fn for_model(model: &Model, profile: &ProviderProfile, input_tokens: u64) -> Self {
        const MILLION: u64 = 1_000_000;
        let rates = Rates::for_model(model, profile, input_tokens);
        let none = TokenUsage::default();
        Prices {
            input: rates.input_dollars(&TokenUsage { input: MILLION, ..none }),
            read: rates.input_dollars(&TokenUsage { cache_read: MILLION, ..none }),
            write: rates.input_dollars(&TokenUsage { cache_write_5m: MILLION, ..none }),
            write_1h: rates.input_dollars(&TokenUsage { cache_write_1h: MILLION, ..none }),
            output: model.prices_at(input_tokens).output,
        }
    }

    /// What the tokens cost together, in dollars.
    pub fn dollars(&self, tokens: &TokenUsage) -> f64 {
        let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output, reasoning: _ } = *tokens;
        (input as f64 * self.input
            + cache_read as f64 * self.read
            + cache_write_5m as f64 * self.write
            + cache_write_1h as f64 * self.write_1h
            + output as f64 * self.output)
            / 1e6
    }
}

/// What a request was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestPurpose {
    /// A turn of the conversation itself.
    #[default]
    Turn,
    /// A summary of the conversation, on top of its cached prefix.
    Compaction,
    /// A commit message, which has a prompt of its own.
    Commit,
    /// Keeping the cache warm during a pause.
    Ping,
    /// Work of a sub-agent, which has a conversation of its own.
    Task,
}

/// Whether the process that sends a request also sent the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Continuity {
    /// The same process sent the previous request, or there was none.
    #[default]
    Continued,
    /// This is the first request after a session was resumed by another process.
    Resumed,
}

/// An answered request, with everything the provider reported about it.
#[derive(Clone, Debug)]
pub struct CompletedRequest<'a> {
    /// The prompt exactly as it was sent.
    pub prompt: &'a Prompt,
    /// Its token counts, scaled to the model's tokens by the learned factor.
    pub prompt_tokens: &'a PromptTokens,
    /// The model that answered.
    pub model: &'a Model,
    /// The profile of its provider for this model.
    pub profile: &'a ProviderProfile,
    /// The settings that a prompt does not contain: effort, tool choice, citations. The other
    /// fields are taken from the prompt, whatever is given here.
    pub settings: CacheSettings,
    /// What the provider reported. `None`: it reported nothing.
    pub reported_usage: Option<TokenUsage>,
    /// Whether it also reported how many tokens were read from a cache. If not, there is no verdict.
    pub reports_cache: bool,
    /// What the provider says about a cache loss. `None`: it was not asked, or did not answer.
    pub diagnosis: Option<CacheDiagnosis>,
    /// When the attempt that was answered was sent.
    pub sent_at: Moment,
    /// When the answer began; cache entries are readable from then on.
    pub answer_began_at: Moment,
    /// The day in the person's time zone, such as `2026-08-14`, by which the ledger sums.
    pub day: &'a str,
    /// What the request was made for.
    pub purpose: RequestPurpose,
    /// Whether this process also sent the previous request.
    pub continuity: Continuity,
}

impl CompletedRequest<'_> {
    /// The billed tokens; all plain input, by our own count, if the provider reported nothing.
    pub fn billed(&self) -> TokenUsage {
        let counted = TokenUsage { input: self.prompt_tokens.total() as u64, ..TokenUsage::default() };
        self.reported_usage.unwrap_or(counted)
    }

    /// The prices that applied to this request.
    pub fn prices(&self) -> Prices {
        Prices::for_model(self.model, self.profile, self.billed().prompt())
    }

    /// How the provider caches for this model.
    pub fn rules(&self) -> CacheRules {
        CacheRules::for_model(self.model, self.profile)
    }
}

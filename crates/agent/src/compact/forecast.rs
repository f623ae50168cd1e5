//! [`CompactionForecast`]: what a compaction costs, and what it saves.

use hardpan_prompt::{AgentMessage, TokenCounter, TokenUsage};

use super::{cut, estimate_tokens};
use crate::agent::Agent;
use crate::spending::usage_dollars;

/// Tokens of a summary, about.
const SUMMARY_TOKENS: u64 = 1_500;

/// What a compaction would do now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionForecast {
    /// Messages that the summary would replace.
    pub messages: usize,
    /// Tokens of a request before it.
    pub tokens_before: u64,
    /// Tokens of a request after it, about.
    pub tokens_after: u64,
    /// Its price; none if the model's is not known.
    pub price: Option<CompactionPrice>,
}

/// Amounts in dollars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompactionPrice {
    /// Of the request for the summary: it reads everything, or writes it if the cache has expired.
    pub summary: f64,
    /// Of writing what the next request has of other tokens than before: the summary, and what
    /// follows it.
    pub next_request: f64,
    /// What each later request costs less, as long as the cache is warm.
    pub saved_each: f64,
}

impl Agent {
    /// What a compaction would cost now; none if there is too little to compact.
    pub fn forecast_compaction(&self) -> Option<CompactionForecast> {
        let (messages, target) = (self.messages(), self.target());
        let counter = TokenCounter::new(target.vocabulary());
        let count = |message: &AgentMessage| estimate_tokens(message, &counter);
        let sizes: Vec<usize> = messages.iter().map(count).collect();
        let cut = cut::first_kept(&messages, &sizes, cut::kept_tokens(&target))?;
        let [dropped, kept] = [&sizes[..cut], &sizes[cut..]].map(|part| part.iter().sum::<usize>() as u64);
        let sent = self.breakdown().map_or(0, |breakdown| breakdown.total_tokens as u64);
        let tokens_before = sent.max(dropped + kept);
        let tokens_after = tokens_before.saturating_sub(dropped) + SUMMARY_TOKENS;
        let is_warm = self.cache_warmth().is_some_and(|warmth| warmth.expires_in > 0);
        let none = TokenUsage::default();
        let dollars = |usage: TokenUsage| usage_dollars(&usage, &target);
        let asked = match is_warm {
            true => TokenUsage { cache_read: tokens_before, ..none },
            false => TokenUsage { cache_write_5m: tokens_before, ..none },
        };
        let price = target.model.price.is_known().then(|| CompactionPrice {
            summary: dollars(TokenUsage { output: SUMMARY_TOKENS, ..asked }),
            next_request: dollars(TokenUsage { cache_write_5m: kept + SUMMARY_TOKENS, ..none }),
            saved_each: dollars(TokenUsage {
                cache_read: tokens_before.saturating_sub(tokens_after),
                ..none
            }),
        });
        Some(CompactionForecast { messages: cut, tokens_before, tokens_after, price })
    }
}

//! [`TokenUsage`]: the tokens of a request and its answer, by how they are billed.

use std::iter::Sum;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens by how they are billed. Each token is counted once: the prompt is `input` + `cache_read`
/// + both cache writes, the answer is `output`.
///
/// Sums saturate, because some servers report impossible counts.
///
/// ```
/// use hardpan_prompt::TokenUsage;
///
/// let first = TokenUsage { input: 20, cache_write_5m: 2_000, output: 5, ..TokenUsage::default() };
/// let second = TokenUsage { input: 30, cache_read: 2_000, output: 7, ..TokenUsage::default() };
/// let session: TokenUsage = [first, second].into_iter().sum();
/// assert_eq!((session.prompt(), session.cached(), session.total()), (4_050, 4_000, 4_062));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Prompt tokens that were neither read from a cache nor written to one.
    pub input: u64,
    /// Prompt tokens read from a cache, at a discount.
    pub cache_read: u64,
    /// Prompt tokens written to a cache for the short lifetime (5 minutes with Anthropic), or for
    /// the provider's only lifetime.
    pub cache_write_5m: u64,
    /// Prompt tokens written to a cache for an hour.
    pub cache_write_1h: u64,
    /// Tokens of the answer, including reasoning.
    pub output: u64,
    /// The tokens of `output` that were reasoning. `None`: there were none, or the provider does
    /// not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl TokenUsage {
    /// All tokens of the prompt, however they were billed.
    pub fn prompt(&self) -> u64 {
        self.cached().saturating_add(self.input)
    }

    /// The tokens written to a cache, for whatever lifetime.
    pub fn cache_written(&self) -> u64 {
        self.cache_write_5m.saturating_add(self.cache_write_1h)
    }

    /// The tokens that were in the cache once the answer had begun: read or written.
    pub fn cached(&self) -> u64 {
        self.cache_read.saturating_add(self.cache_written())
    }

    /// All tokens, the answer's included.
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// What is left without the tokens of `part`; never less than 0.
    #[must_use]
    pub fn saturating_sub(&self, part: &TokenUsage) -> Self {
        self.combine(part, u64::saturating_sub)
    }

    fn combine(&self, other: &TokenUsage, operation: fn(u64, u64) -> u64) -> Self {
        // Every field is named, so that a new one forces a decision here.
        let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output, reasoning } = *other;
        let thought = operation(self.reasoning.unwrap_or_default(), reasoning.unwrap_or_default());
        TokenUsage {
            input: operation(self.input, input),
            cache_read: operation(self.cache_read, cache_read),
            cache_write_5m: operation(self.cache_write_5m, cache_write_5m),
            cache_write_1h: operation(self.cache_write_1h, cache_write_1h),
            output: operation(self.output, output),
            reasoning: Some(thought).filter(|tokens| *tokens > 0),
        }
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: TokenUsage) {
        *self = self.combine(&other, u64::saturating_add);
    }
}

impl Sum for TokenUsage {
    fn sum<I: Iterator<Item = TokenUsage>>(all: I) -> Self {
        all.fold(TokenUsage::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: TokenUsage = TokenUsage {
        input: 1,
        cache_read: 20,
        cache_write_5m: 300,
        cache_write_1h: 4_000,
        output: 50_000,
        reasoning: Some(600),
    };

    #[test]
    fn totals_count_every_token_once() {
        assert_eq!((USAGE.cache_written(), USAGE.cached()), (4_300, 4_320));
        assert_eq!((USAGE.prompt(), USAGE.total()), (4_321, 54_321));
    }

    #[test]
    fn a_sum_minus_its_part_is_the_rest_and_impossible_counts_saturate() {
        let rest = TokenUsage { output: 7, ..TokenUsage::default() };
        let sum: TokenUsage = [USAGE, rest].into_iter().sum();
        assert_eq!(sum.saturating_sub(&USAGE), rest);
        let mut most = TokenUsage { input: u64::MAX, ..USAGE };
        most += USAGE;
        assert_eq!((most.input, most.prompt(), rest.saturating_sub(&most).output), (u64::MAX, u64::MAX, 0));
    }

    #[test]
    fn the_stored_form_has_every_count_and_reads_without_any() {
        let json = r#"{"input":1,"cache_read":20,"cache_write_5m":300,"cache_write_1h":4000,"output":50000,"reasoning":600}"#;
        assert_eq!(serde_json::to_string(&USAGE).unwrap(), json);
        assert_eq!(serde_json::from_str::<TokenUsage>(json).unwrap(), USAGE);
        assert_eq!(serde_json::from_str::<TokenUsage>("{}").unwrap(), TokenUsage::default());
    }
}

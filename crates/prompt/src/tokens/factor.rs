//! [`TokenFactor`]: the ratio between our token count and the provider's.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// How far one request moves the factor towards its own ratio. Tried on a recorded session of 439
/// billed requests: on average the next total was missed by 0.27% at 0.1, 0.11% at 0.3 and 0.08% at
/// 0.5. A smaller rate is slower to leave a wrong prior, a greater one follows every outlier.
const RATE: f64 = 0.3;

/// Request size in tokens at which a request has half its weight: small requests consist mostly of
/// what the provider adds around them.
const HALF_WEIGHT: f64 = 2000.0;

/// How far a request's ratio may be from the factor, as a share of it. Ratios beyond it are
/// clamped.
const MAX_SURPRISE: f64 = 0.3;

/// Factors outside this range mean that something else is wrong.
const SENSIBLE_FACTORS: RangeInclusive<f64> = 0.01..=100.0;

/// Billed tokens per token that we count, for models whose vocabulary is not public.
///
/// Starts from a prior and learns from whole requests. What a provider adds around each block goes
/// into the factor, too: it grows with the conversation, so the factor follows it closely. (A
/// regression with a constant overhead predicted the next request less well.)
///
/// ```
/// use hardpan_prompt::TokenFactor;
///
/// let mut factor = TokenFactor::new(1.2);
/// for _ in 0..20 {
///     factor.learn(10_000, 13_000);
/// }
/// assert!((factor.value() - 1.3).abs() < 0.01);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "f64", into = "f64")]
pub struct TokenFactor(f64);

impl TokenFactor {
    /// Starts from `prior`, rounded to six places; from 1 if `prior` is not a sensible factor.
    pub fn new(prior: f64) -> Self {
        // Six places are read back from JSON exactly, and a resumed session must count as it did
        // before.
        TokenFactor(if SENSIBLE_FACTORS.contains(&prior) { (prior * 1e6).round() / 1e6 } else { 1.0 })
    }

    /// Billed tokens per counted token.
    pub fn value(&self) -> f64 {
        self.0
    }

    /// Learns from one request: the tokens we counted, and all input that was billed, cached or
    /// not. Nothing is learned where either is 0, because the provider did not report it.
    pub fn learn(&mut self, counted: u64, billed: u64) {
        if counted == 0 || billed == 0 {
            return;
        }
        let (counted, billed) = (counted as f64, billed as f64);
        let surprise = (billed / (counted * self.0) - 1.0).clamp(-MAX_SURPRISE, MAX_SURPRISE);
        let weight = RATE * counted / (counted + HALF_WEIGHT);
        *self = TokenFactor::new(
            (self.0 * (1.0 + weight * surprise)).clamp(*SENSIBLE_FACTORS.start(), *SENSIBLE_FACTORS.end()),
        );
    }

    /// Scales a single count to billed tokens.
    pub fn scale(&self, count: usize) -> usize {
        (count as f64 * self.0).round() as usize
    }

    /// Scales the counts of parts so that they add up to the scaled total: the running totals are
    /// scaled, not the parts.
    pub fn apply(&self, counts: &mut [u32]) {
        let (mut counted, mut scaled) = (0, 0);
        for count in counts {
            counted += *count as usize;
            let before = std::mem::replace(&mut scaled, self.scale(counted));
            *count = (scaled - before) as u32;
        }
    }
}

impl Default for TokenFactor {
    fn default() -> Self {
        TokenFactor(1.0)
    }
}

impl From<f64> for TokenFactor {
    fn from(prior: f64) -> Self {
        TokenFactor::new(prior)
    }
}

impl From<TokenFactor> for f64 {
    fn from(factor: TokenFactor) -> Self {
        factor.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_ignored() {
        for prior in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            assert_eq!(TokenFactor::new(prior), TokenFactor::default());
        }
        let mut factor = TokenFactor::new(1.2);
        factor.learn(0, 5000);
        factor.learn(5000, 0);
        assert_eq!(factor.value(), 1.2);
        for _ in 0..1000 {
            factor.learn(u64::MAX, 1);
        }
        assert!(SENSIBLE_FACTORS.contains(&factor.value()));
    }

    #[test]
    fn one_outlier_does_little() {
        let mut factor = TokenFactor::new(1.2);
        factor.learn(50_000, 5_000_000);
        assert!(factor.value() < 1.2 * 1.1);
    }

    #[test]
    fn a_request_of_a_few_tokens_teaches_little() {
        let mut factor = TokenFactor::new(1.2);
        factor.learn(48, 1687);
        assert!((factor.value() - 1.2).abs() < 0.01);
    }

    #[test]
    fn scaled_parts_add_up_to_the_scaled_total() {
        let factor = TokenFactor::new(1.37);
        let counts: Vec<u32> = (0..500).map(|n| n * n % 7).collect();
        let sum = |counts: &[u32]| counts.iter().map(|&count| count as usize).sum::<usize>();
        let mut scaled = counts.clone();
        factor.apply(&mut scaled);
        assert_eq!(sum(&scaled), factor.scale(sum(&counts)));
        let mut same = counts.clone();
        TokenFactor::new(1.0).apply(&mut same);
        assert_eq!(same, counts);
    }

    #[test]
    fn what_was_learned_is_stored_as_a_number() {
        let mut factor = TokenFactor::new(1.2);
        factor.learn(10_000, 13_000);
        let stored = serde_json::to_string(&factor).unwrap();
        assert_eq!(serde_json::from_str::<TokenFactor>(&stored).unwrap(), factor);
        assert_eq!(serde_json::from_str::<TokenFactor>("-3.0").unwrap(), TokenFactor::default());
    }
}

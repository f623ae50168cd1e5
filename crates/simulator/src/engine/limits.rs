//! [`RateLimits`] per minute, and what is left of them.

use hardpan_economy::cache::Moment;

use crate::error_reply::ErrorReply;

const MINUTE_MS: i64 = 60_000;

/// The limits per minute, for all keys together. The defaults are more than one machine can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests per minute.
    pub requests: u64,
    /// Prompt tokens per minute, including cached ones.
    pub input_tokens: u64,
    /// Answer tokens per minute: reported, but never a reason to reject a request.
    pub output_tokens: u64,
}

impl Default for RateLimits {
    fn default() -> Self {
        RateLimits { requests: 1_000_000, input_tokens: 1_000_000_000, output_tokens: 1_000_000_000 }
    }
}

/// Counts what was used in the current minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateMeter {
    minute: i64,
    used: MinuteUsage,
}

#[derive(Clone, Copy, Debug, Default)]
struct MinuteUsage {
    requests: u64,
    input: u64,
    output: u64,
}

impl RateMeter {
    /// Counts a request, or rejects it with status 429.
    pub fn count_request(
        &mut self,
        limits: &RateLimits,
        tokens: usize,
        now: Moment,
    ) -> Result<(), ErrorReply> {
        let minute = now.0.div_euclid(MINUTE_MS);
        if self.minute != minute {
            *self = RateMeter { minute, used: MinuteUsage::default() };
        }
        let requests = self.used.requests + 1;
        let input = self.used.input.saturating_add(tokens as u64);
        if requests > limits.requests || input > limits.input_tokens {
            let what = if requests > limits.requests { "requests" } else { "input tokens" };
            let refusal =
                ErrorReply::new(429, format!("the limit of {what} per minute is reached; try again later"));
            let seconds = reset_ms(now).div_euclid(1000) + 1;
            return Err(ErrorReply { retry_after: u32::try_from(seconds).ok(), ..refusal });
        }
        (self.used.requests, self.used.input) = (requests, input);
        Ok(())
    }

    /// Counts the tokens of an answer.
    pub fn count_output(&mut self, tokens: u64) {
        self.used.output = self.used.output.saturating_add(tokens);
    }

    /// What is left of the limits.
    pub fn status(&self, limits: &RateLimits, now: Moment) -> RateStatus {
        let used =
            if self.minute == now.0.div_euclid(MINUTE_MS) { self.used } else { MinuteUsage::default() };
        let share = |limit: u64, used: u64| RateShare { limit, left: limit.saturating_sub(used) };
        let RateLimits { requests, input_tokens, output_tokens } = *limits;
        RateStatus {
            requests: share(requests, used.requests),
            input_tokens: share(input_tokens, used.input),
            output_tokens: share(output_tokens, used.output),
            tokens: share(input_tokens.saturating_add(output_tokens), used.input.saturating_add(used.output)),
            resets_at: now.plus(reset_ms(now)),
            resets_in_ms: reset_ms(now),
        }
    }
}

/// The limits, and what is left of each, as response headers report them.
#[derive(Clone, Copy, Debug)]
pub struct RateStatus {
    pub requests: RateShare,
    pub input_tokens: RateShare,
    pub output_tokens: RateShare,
    /// Input and output together.
    pub tokens: RateShare,
    /// When the current minute ends.
    pub resets_at: Moment,
    pub resets_in_ms: i64,
}

/// One limit, and what is left of it in the current minute.
#[derive(Clone, Copy, Debug)]
pub struct RateShare {
    pub limit: u64,
    pub left: u64,
}

/// Milliseconds until the next minute begins.
fn reset_ms(now: Moment) -> i64 {
    MINUTE_MS - now.0.rem_euclid(MINUTE_MS)
}

//! [`RateLimits`] per minute, and the headers that report them.

use hardpan_economy::cache::Moment;
use hardpan_models::Protocol;

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

    /// The rate-limit headers of a response.
    pub fn headers(
        &self,
        protocol: Protocol,
        limits: &RateLimits,
        now: Moment,
    ) -> Vec<(&'static str, String)> {
        let used =
            if self.minute == now.0.div_euclid(MINUTE_MS) { self.used } else { MinuteUsage::default() };
        let left = |limit: u64, used: u64| limit.saturating_sub(used).to_string();
        let RateLimits { requests, input_tokens, output_tokens } = *limits;
        let tokens = input_tokens.saturating_add(output_tokens);
        let all = used.input.saturating_add(used.output);
        match protocol {
            Protocol::Anthropic => {
                let at = now.plus(reset_ms(now));
                let reset = jiff::Timestamp::from_second(at.0.div_euclid(1000))
                    .map_or_else(|_| String::new(), |time| time.to_string());
                vec![
                    ("anthropic-ratelimit-requests-limit", requests.to_string()),
                    ("anthropic-ratelimit-requests-remaining", left(requests, used.requests)),
                    ("anthropic-ratelimit-requests-reset", reset.clone()),
                    ("anthropic-ratelimit-tokens-limit", tokens.to_string()),
                    ("anthropic-ratelimit-tokens-remaining", left(tokens, all)),
                    ("anthropic-ratelimit-tokens-reset", reset.clone()),
                    ("anthropic-ratelimit-input-tokens-limit", input_tokens.to_string()),
                    ("anthropic-ratelimit-input-tokens-remaining", left(input_tokens, used.input)),
                    ("anthropic-ratelimit-input-tokens-reset", reset.clone()),
                    ("anthropic-ratelimit-output-tokens-limit", output_tokens.to_string()),
                    ("anthropic-ratelimit-output-tokens-remaining", left(output_tokens, used.output)),
                    ("anthropic-ratelimit-output-tokens-reset", reset),
                ]
            }
            Protocol::Openai => {
                let reset = format!("{}ms", reset_ms(now));
                vec![
                    ("x-ratelimit-limit-requests", requests.to_string()),
                    ("x-ratelimit-remaining-requests", left(requests, used.requests)),
                    ("x-ratelimit-reset-requests", reset.clone()),
                    ("x-ratelimit-limit-tokens", tokens.to_string()),
                    ("x-ratelimit-remaining-tokens", left(tokens, all)),
                    ("x-ratelimit-reset-tokens", reset),
                ]
            }
        }
    }
}

/// Milliseconds until the next minute begins.
fn reset_ms(now: Moment) -> i64 {
    MINUTE_MS - now.0.rem_euclid(MINUTE_MS)
}

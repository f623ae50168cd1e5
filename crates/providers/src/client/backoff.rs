//! Exponential backoff with deterministic jitter.

use std::time::Duration;

use hardpan_prompt::{Block, Hash, Prompt};

use super::RetryPolicy;

/// The wait before attempt `attempt + 1`. It doubles each time; a hash of the request picks a point
/// in its upper half, so that agents that failed together do not retry together.
pub fn delay_before_retry(retry: &RetryPolicy, attempt: u32, prompt: &Prompt) -> Duration {
    let doubled = retry.first_wait.saturating_mul(1 << (attempt - 1).min(16));
    let full = doubled.min(retry.longest_wait);
    let byte = request_hash(prompt).bytes()[(attempt as usize) % 16];
    full / 2 + full.mul_f64(f64::from(byte) / 512.0)
}

/// A hash of the model and the last message: it differs between requests, but not between runs.
fn request_hash(prompt: &Prompt) -> Hash {
    let model = Hash::of(prompt.model.as_bytes());
    let last_blocks = prompt.messages.last().into_iter().flat_map(|message| &message.blocks);
    Hash::chain([model].into_iter().chain(last_blocks.map(Block::hash)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let retry = RetryPolicy::default();
        let prompt = Prompt::default();
        for attempt in 1..40 {
            let full = Duration::from_secs(1 << (attempt - 1).min(6)).min(retry.longest_wait);
            let wait = delay_before_retry(&retry, attempt, &prompt);
            assert!(wait >= full / 2 && wait <= full, "attempt {attempt}: {wait:?}");
        }
    }
}

//! How long to wait before another try.

use std::time::Duration;

use hardpan_prompt::Prompt;

use super::{Patience, identity};

/// The wait before try `attempt + 1`: it doubles each time, and is spread over its upper half by the request itself, so
/// that many agents that failed together do not come back together.
pub fn wait(patience: &Patience, attempt: u32, prompt: &Prompt) -> Duration {
    let doubled = patience.first_wait.saturating_mul(1 << (attempt - 1).min(16));
    let full = doubled.min(patience.longest_wait);
    let byte = identity(prompt).bytes()[(attempt as usize) % 16];
    full / 2 + full.mul_f64(f64::from(byte) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_end() {
        let patience = Patience::default();
        let prompt = Prompt::default();
        for attempt in 1..40 {
            let full = Duration::from_secs(1 << (attempt - 1).min(6)).min(patience.longest_wait);
            let wait = wait(&patience, attempt, &prompt);
            assert!(wait >= full / 2 && wait <= full, "attempt {attempt}: {wait:?}");
        }
    }
}

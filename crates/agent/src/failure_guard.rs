//! [`FailureGuard`]: notices a model that repeats the same failing tool call.

use std::collections::BTreeMap;

use hardpan_prompt::Hash;

/// A call that failed this often in a row with the same arguments is not run again.
pub const MAX_FAILURES: u32 = 3;

/// Counts the failures of each call since it last succeeded.
#[derive(Debug, Default)]
pub struct FailureGuard {
    failures: BTreeMap<Hash, u32>,
}

/// What to do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardAdvice {
    /// Run the call.
    Run,
    /// Do not run it; answer with a warning.
    Warn,
    /// The call came again after the warning: end the run.
    EndRun,
}

impl FailureGuard {
    /// What to do with a call of this tool with these arguments (raw JSON).
    pub fn advice(&self, name: &str, arguments: &str) -> GuardAdvice {
        match self.failures.get(&key(name, arguments)) {
            Some(n) if *n > MAX_FAILURES => GuardAdvice::EndRun,
            Some(n) if *n == MAX_FAILURES => GuardAdvice::Warn,
            _ => GuardAdvice::Run,
        }
    }

    /// Records the outcome of a call; a warning counts as a failure.
    pub fn record_outcome(&mut self, name: &str, arguments: &str, failed: bool) {
        let key = key(name, arguments);
        if failed {
            *self.failures.entry(key).or_default() += 1;
        } else {
            self.failures.remove(&key);
        }
    }

    /// Forgets all failures: after a user message, or a change to a file, everything may be tried again.
    pub fn reset(&mut self) {
        self.failures.clear();
    }
}

fn key(name: &str, arguments: &str) -> Hash {
    Hash::chain([Hash::of(name.as_bytes()), Hash::of(arguments.as_bytes())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_failing_call_is_warned_about_after_three_times_and_then_ends_the_run() {
        let mut guard = FailureGuard::default();
        for _ in 0..MAX_FAILURES {
            assert_eq!(guard.advice("read", "{}"), GuardAdvice::Run);
            guard.record_outcome("read", "{}", true);
        }
        assert_eq!(guard.advice("read", "{}"), GuardAdvice::Warn);
        assert_eq!(guard.advice("read", "{\"a\":1}"), GuardAdvice::Run);
        guard.record_outcome("read", "{}", true);
        assert_eq!(guard.advice("read", "{}"), GuardAdvice::EndRun);
        guard.reset();
        assert_eq!(guard.advice("read", "{}"), GuardAdvice::Run);
    }

    #[test]
    fn a_call_that_goes_well_once_may_fail_again() {
        let mut guard = FailureGuard::default();
        (0..2).for_each(|_| guard.record_outcome("read", "{}", true));
        guard.record_outcome("read", "{}", false);
        (0..2).for_each(|_| guard.record_outcome("read", "{}", true));
        assert_eq!(guard.advice("read", "{}"), GuardAdvice::Run);
    }
}

//! The same call that fails again and again.

use std::collections::BTreeMap;

use hardpan_prompt::Hash;

/// A call that failed this often with the same arguments is not run again.
pub const MOST_FAILURES: u32 = 3;

/// How often each call has failed since it last went well.
#[derive(Debug, Default)]
pub struct Guard {
    failures: BTreeMap<Hash, u32>,
}

/// What is to be done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Run it.
    Run,
    /// Answer it with a warning instead.
    Warn,
    /// It was warned about and comes again: end the run.
    Stop,
}

impl Guard {
    /// What is to be done with a call of this name and these arguments.
    pub fn advice(&self, name: &str, arguments: &str) -> Advice {
        match self.failures.get(&key(name, arguments)) {
            Some(n) if *n > MOST_FAILURES => Advice::Stop,
            Some(n) if *n == MOST_FAILURES => Advice::Warn,
            _ => Advice::Run,
        }
    }

    /// Takes note of how it went; a warning counts as a failure.
    pub fn note(&mut self, name: &str, arguments: &str, failed: bool) {
        let key = key(name, arguments);
        if failed {
            *self.failures.entry(key).or_default() += 1;
        } else {
            self.failures.remove(&key);
        }
    }

    /// A person said something: everything may be tried again.
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
        let mut guard = Guard::default();
        for _ in 0..MOST_FAILURES {
            assert_eq!(guard.advice("read", "{}"), Advice::Run);
            guard.note("read", "{}", true);
        }
        assert_eq!(guard.advice("read", "{}"), Advice::Warn);
        assert_eq!(guard.advice("read", "{\"a\":1}"), Advice::Run);
        guard.note("read", "{}", true);
        assert_eq!(guard.advice("read", "{}"), Advice::Stop);
        guard.reset();
        assert_eq!(guard.advice("read", "{}"), Advice::Run);
    }

    #[test]
    fn a_call_that_goes_well_once_may_fail_again() {
        let mut guard = Guard::default();
        (0..2).for_each(|_| guard.note("read", "{}", true));
        guard.note("read", "{}", false);
        (0..2).for_each(|_| guard.note("read", "{}", true));
        assert_eq!(guard.advice("read", "{}"), Advice::Run);
    }
}

//! [`Faults`]: errors to inject, and into which requests.
//!
//! A fault is written `kind=value,option=value`; several are separated by `;`. In YAML it is a map
//! of the same names, with `_` instead of `-`. See `docs/simulator.md`.

mod apply; // applies faults to the bytes of an answer
mod parse; // parses faults

use std::fmt;
use std::time::Duration;

pub(crate) use parse::DurationText;
pub use parse::{FaultError, FaultRuleError};

/// An error to inject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error response instead of an answer.
    Status {
        /// The HTTP status, 400 to 599.
        status: u16,
        /// The header `retry-after`, in seconds.
        retry_after: Option<u32>,
    },
    /// The response's headers come late by this time.
    Delay(Duration),
    /// After some bytes nothing more comes, while the connection stays open.
    Stall {
        /// How many bytes of the body come first.
        after: usize,
        /// How long nothing comes; then the connection is closed.
        lasts: Duration,
    },
    /// The connection is closed after this many bytes of the body.
    Cut(usize),
    /// Meaningless bytes are inserted after this many bytes of the body.
    Garbage(usize),
    /// The body comes in small pieces.
    Drip {
        /// The bytes of each piece.
        bytes: usize,
        /// The time between two pieces.
        interval: Duration,
    },
    /// Every event that is not a piece of content is sent twice.
    Duplicate,
    /// The end marker of the stream is missing.
    NoEnd,
    /// An error event replaces the first event after this many bytes, and ends the stream. An
    /// answer that is not streamed becomes an error with status 200.
    Error(usize),
}

impl Fault {
    /// Whether the client does not get the complete answer, so that it is likely to repeat the
    /// request.
    fn breaks_answer(&self) -> bool {
        match self {
            Fault::Status { .. }
            | Fault::Stall { .. }
            | Fault::Cut(_)
            | Fault::Garbage(_)
            | Fault::Error(_) => true,
            Fault::Delay(_) | Fault::Drip { .. } | Fault::Duplicate | Fault::NoEnd => false,
        }
    }
}

/// Which requests a fault strikes: those that meet all conditions.
#[derive(Clone, Debug, PartialEq)]
struct FaultSchedule {
    /// Skips this many requests first.
    after: u64,
    /// Of the rest, only every n-th.
    every: u64,
    /// Of these, only this fraction, chosen pseudo-randomly by `seed`.
    probability: f64,
    seed: u64,
    /// Of these, only the first n.
    times: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
struct FaultRule {
    fault: Fault,
    schedule: FaultSchedule,
    times_struck: u64,
}

/// The faults of a simulator, and how often each has struck.
///
/// ```
/// use hardpan_simulator::Faults;
///
/// let faults: Faults = "status=529,retry-after=1,times=2; cut=400,every=3".parse()?;
/// assert_eq!(faults.len(), 2);
/// let error = "status=529,time=2".parse::<Faults>().unwrap_err().to_string();
/// assert!(error.contains("unknown field `time`"), "{error}");
/// # Ok::<(), hardpan_simulator::FaultError>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Faults {
    rules: Vec<FaultRule>,
    requests: u64,
}

impl Faults {
    /// The number of faults.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no faults.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Appends the faults of another list.
    pub fn extend(&mut self, other: Faults) {
        self.rules.extend(other.rules);
    }

    /// Counts a request and returns the faults that strike it.
    pub(crate) fn next_request(&mut self) -> ActiveFaults {
        self.requests += 1;
        let number = self.requests;
        let mut strikes = Vec::new();
        for (index, rule) in self.rules.iter_mut().enumerate() {
            if rule.schedule.applies_to(number, index, rule.times_struck) {
                rule.times_struck += 1;
                strikes.push(rule.fault.clone());
            }
        }
        ActiveFaults(strikes)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| &rule.fault)).finish()
    }
}

impl FaultSchedule {
    fn applies_to(&self, number: u64, rule: usize, strikes: u64) -> bool {
        let Some(counted) = number.checked_sub(self.after).filter(|counted| *counted > 0) else {
            return false;
        };
        counted % self.every.max(1) == 0
            && self.times.is_none_or(|times| strikes < times)
            && pseudo_random_fraction(self.seed ^ ((rule as u64) << 32), number) < self.probability
    }
}

/// A reproducible pseudo-random number from 0 to 1 (splitmix64).
fn pseudo_random_fraction(seed: u64, number: u64) -> f64 {
    let mut bits = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The faults that strike one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveFaults(Vec<Fault>);

impl ActiveFaults {
    /// The status and `retry-after` of the injected error response, if there is one.
    pub fn status(&self) -> Option<(u16, Option<u32>)> {
        self.0.iter().find_map(|fault| match fault {
            Fault::Status { status, retry_after } => Some((*status, *retry_after)),
            _ => None,
        })
    }

    /// How long the response's headers are delayed.
    pub fn delay(&self) -> Duration {
        self.0.iter().map(|fault| if let Fault::Delay(delay) = fault { *delay } else { Duration::ZERO }).sum()
    }

    /// Whether the client does not get the complete answer.
    pub fn breaks_answer(&self) -> bool {
        self.0.iter().any(Fault::breaks_answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strike_pattern(spec: &str, requests: usize) -> String {
        let mut faults: Faults = spec.parse().unwrap();
        (0..requests).map(|_| if faults.next_request().0.is_empty() { '.' } else { 'x' }).collect()
    }

    #[test]
    fn a_fault_befalls_the_requests_it_is_ordered_for() {
        assert_eq!(strike_pattern("cut=1", 4), "xxxx");
        assert_eq!(strike_pattern("cut=1,times=2", 4), "xx..");
        assert_eq!(strike_pattern("cut=1,every=3", 7), "..x..x.");
        assert_eq!(strike_pattern("cut=1,after=2,times=1", 4), "..x.");
        assert_eq!(strike_pattern("cut=1,every=2,times=2", 7), ".x.x...");
    }

    #[test]
    fn chance_is_repeatable_and_about_right() {
        let once = strike_pattern("cut=1,probability=0.25,seed=7", 400);
        assert_eq!(once, strike_pattern("cut=1,probability=0.25,seed=7", 400));
        assert_ne!(once, strike_pattern("cut=1,probability=0.25,seed=8", 400));
        let hits = once.matches('x').count();
        assert!((70..130).contains(&hits), "{hits}");
    }

    #[test]
    fn both_written_forms_say_the_same() {
        let spec: Faults = "status=429,retry-after=2,times=1; stall=10,for=2s; drip=3,interval=5ms; duplicate; no-end; error=50; delay=1s; garbage=7".parse().unwrap();
        let yaml = "- {status: 429, retry_after: 2, times: 1}\n- stall: 10\n  for: 2s\n- {drip: 3, interval: 5ms}\n- duplicate: true\n- no_end: true\n- error: 50\n- delay: 1000\n- garbage: 7\n";
        assert_eq!(Faults::from_yaml("faults.yaml", yaml).unwrap(), spec);
    }

    #[test]
    fn a_mistake_is_named() {
        let error = |spec: &str| spec.parse::<Faults>().unwrap_err().to_string();
        assert!(error("times=2").contains("names no fault"), "{}", error("times=2"));
        assert!(error("cut=1,stall=2").contains("two"), "{}", error("cut=1,stall=2"));
        assert!(error("status=200").contains("400 to 599"), "{}", error("status=200"));
        assert!(error("delay=soon").contains("soon"), "{}", error("delay=soon"));
        assert!(error("cut=1,interval=2ms").contains("interval"), "{}", error("cut=1,interval=2ms"));
        let error = Faults::from_yaml("f.yaml", "- cut: 1\n- status: 7\n").unwrap_err().to_string();
        assert!(error.contains("f.yaml") && error.contains("line 2"), "{error}");
    }
}

//! Faults on order: what goes wrong, and with which requests.
//!
//! A fault is written `kind=value,option=value`; several are parted by `;`. In YAML it is a map of the same words with
//! `_` for `-`. See `docs/simulator.md`.

mod apply; // what a fault does to an answer's bytes
mod row; // the written form

use std::fmt;
use std::time::Duration;

pub use row::FaultError;
pub(crate) use row::Span;

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error in place of an answer.
    Status {
        /// The HTTP status.
        status: u16,
        /// `retry-after`, in seconds.
        retry_after: Option<u32>,
    },
    /// The head comes late.
    Delay(Duration),
    /// After so many bytes nothing more comes, and the connection stays open.
    Stall {
        /// Bytes of the body.
        after: usize,
        /// How long: then the connection is closed after all.
        lasts: Duration,
    },
    /// After so many bytes of the body the connection is closed.
    Cut(usize),
    /// After so many bytes of the body come some that mean nothing.
    Garbage(usize),
    /// The body comes so many bytes at a time.
    Drip {
        /// Bytes at a time.
        bytes: usize,
        /// The time between.
        interval: Duration,
    },
    /// Every event that holds no piece of the answer's content comes twice.
    Duplicate,
    /// The marker that ends the stream is missing.
    NoEnd,
    /// The first event that begins after so many bytes is an error, and the last. An answer that is not streamed is
    /// an error with status 200.
    Error(usize),
}

impl Fault {
    /// Whether the answer does not arrive whole, so that the same request is likely to come again.
    fn ruins(&self) -> bool {
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

/// Which requests a fault befalls: those that pass all of these.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    /// Not the first so many.
    after: u64,
    /// Of those, every so many.
    every: u64,
    /// Of those, this share, drawn by the seed.
    probability: f64,
    seed: u64,
    /// Of those, the first so many.
    times: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    fault: Fault,
    choice: Choice,
    struck: u64,
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
    rules: Vec<Rule>,
    requests: u64,
}

impl Faults {
    /// How many faults there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Adds those of another list.
    pub fn extend(&mut self, other: Faults) {
        self.rules.extend(other.rules);
    }

    /// What befalls the next request.
    pub(crate) fn draw(&mut self) -> Struck {
        self.requests += 1;
        let number = self.requests;
        let mut struck = Vec::new();
        for (index, rule) in self.rules.iter_mut().enumerate() {
            if rule.choice.chooses(number, index, rule.struck) {
                rule.struck += 1;
                struck.push(rule.fault.clone());
            }
        }
        Struck(struck)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.rules.iter().map(|rule| &rule.fault)).finish()
    }
}

impl Choice {
    fn chooses(&self, number: u64, rule: usize, struck: u64) -> bool {
        let Some(counted) = number.checked_sub(self.after).filter(|counted| *counted > 0) else {
            return false;
        };
        counted % self.every.max(1) == 0
            && self.times.is_none_or(|times| struck < times)
            && share(self.seed ^ ((rule as u64) << 32), number) < self.probability
    }
}

/// A number from 0 to 1 that looks drawn and is always the same (splitmix64).
fn share(seed: u64, number: u64) -> f64 {
    let mut bits = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// The faults that befall one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Struck(Vec<Fault>);

impl Struck {
    /// The error in place of an answer, if there is to be one.
    pub fn status(&self) -> Option<(u16, Option<u32>)> {
        self.0.iter().find_map(|fault| match fault {
            Fault::Status { status, retry_after } => Some((*status, *retry_after)),
            _ => None,
        })
    }

    /// How late the head comes.
    pub fn delay(&self) -> Duration {
        self.0.iter().map(|fault| if let Fault::Delay(delay) = fault { *delay } else { Duration::ZERO }).sum()
    }

    /// Whether the answer does not arrive whole.
    pub fn ruins(&self) -> bool {
        self.0.iter().any(Fault::ruins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(spec: &str, requests: usize) -> String {
        let mut faults: Faults = spec.parse().unwrap();
        (0..requests).map(|_| if faults.draw().0.is_empty() { '.' } else { 'x' }).collect()
    }

    #[test]
    fn a_fault_befalls_the_requests_it_is_ordered_for() {
        assert_eq!(struck("cut=1", 4), "xxxx");
        assert_eq!(struck("cut=1,times=2", 4), "xx..");
        assert_eq!(struck("cut=1,every=3", 7), "..x..x.");
        assert_eq!(struck("cut=1,after=2,times=1", 4), "..x.");
        assert_eq!(struck("cut=1,every=2,times=2", 7), ".x.x...");
    }

    #[test]
    fn chance_is_repeatable_and_about_right() {
        let once = struck("cut=1,probability=0.25,seed=7", 400);
        assert_eq!(once, struck("cut=1,probability=0.25,seed=7", 400));
        assert_ne!(once, struck("cut=1,probability=0.25,seed=8", 400));
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

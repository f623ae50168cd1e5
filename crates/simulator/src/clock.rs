//! [`Clock`]: the simulator's source of time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hardpan_economy::cache::Moment;

/// A source of time. Clones share it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl Clock {
    /// A clock that calls `now` for the time.
    pub fn new(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Clock(Arc::new(now))
    }

    /// The system clock.
    #[expect(clippy::disallowed_methods, reason = "a server is an edge: here its requests get their time")]
    pub fn system() -> Self {
        Clock::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
        })
    }

    /// The current time of this clock.
    pub fn now(&self) -> Moment {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// A clock that stands still until a test advances it. Clones share the time.
///
/// ```
/// use hardpan_economy::cache::Moment;
/// use hardpan_simulator::ManualClock;
///
/// let manual = ManualClock::at(Moment(1_000));
/// let clock = manual.clock();
/// manual.advance(300_000);
/// assert_eq!(clock.now(), Moment(301_000));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows `moment`.
    pub fn at(moment: Moment) -> Self {
        ManualClock(Arc::new(AtomicI64::new(moment.0)))
    }

    /// Advances the clock by `ms` milliseconds.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }

    /// A [`Clock`] that shows the time of this one.
    pub fn clock(&self) -> Clock {
        let shared = self.0.clone();
        Clock::new(move || Moment(shared.load(Ordering::Relaxed)))
    }
}

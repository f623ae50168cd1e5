//! Where the time comes from.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hardpan_economy::cache::Moment;

/// A source of time. Clones share it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl Clock {
    /// A clock made of a function.
    pub fn new(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Clock(Arc::new(now))
    }

    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "a server is an edge: here its requests get their time")]
    pub fn system() -> Self {
        Clock::new(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Moment(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
        })
    }

    /// The time by this clock.
    pub fn now(&self) -> Moment {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// A clock that stands still until it is moved: five minutes pass in no time. Clones share it.
///
/// ```
/// use hardpan_economy::cache::Moment;
/// use hardpan_simulator::SetClock;
///
/// let hand = SetClock::at(Moment(1_000));
/// let clock = hand.clock();
/// hand.advance(300_000);
/// assert_eq!(clock.now(), Moment(301_000));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SetClock(Arc<AtomicI64>);

impl SetClock {
    /// A clock that shows `moment`.
    pub fn at(moment: Moment) -> Self {
        SetClock(Arc::new(AtomicI64::new(moment.0)))
    }

    /// Moves it on by so many milliseconds.
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }

    /// What others look at.
    pub fn clock(&self) -> Clock {
        let shared = self.0.clone();
        Clock::new(move || Moment(shared.load(Ordering::Relaxed)))
    }
}

use std::fmt;

/// A trait with everything in it.
pub trait Clock: Send + Sync + fmt::Debug {
    type Instant: Copy;
    const RESOLUTION: u32;
    fn now(&self) -> Self::Instant;
    fn later(&self, seconds: u64) -> Self::Instant {
        shift_instant(self.now(), seconds)
    }
    async fn wait(&mut self, seconds: u64);
}

#[derive(Debug, Default, Copy, Clone, PartialEq)]
pub struct SystemClock;

impl Clock for SystemClock {
    type Instant = u64;
    const RESOLUTION: u32 = 1;
    fn now(&self) -> u64 {
        0
    }
    async fn wait(&mut self, seconds: u64) {}
}

impl<'a> From<&'a str> for SystemClock {
    fn from(_: &'a str) -> Self {
        SystemClock
    }
}

impl fmt::Display for crate::Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("error")
    }
}

pub(crate) fn shift_instant<T>(start: T, (seconds): u64) -> T
where
    T: Copy,
{
    fn inner_helper() {}
    inner_helper();
    start
}

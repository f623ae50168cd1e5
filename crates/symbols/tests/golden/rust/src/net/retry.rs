use crate::clock::{shift_instant, Clock};
use super::wire::Frame;
use tokio::time::sleep;

#[derive(Clone)]
pub struct RetryPolicy<C: Clock, F = fn(u32) -> u32>
where
    F: Fn(u32) -> u32,
{
    pub max_attempts: u32,
    clock: C,
    backoff: F,
}

impl<C: Clock> RetryPolicy<C> {
    pub fn next_delay(&self, attempt: u32) -> Option<std::time::Duration> {
        let closure = |inner: u32| shift_instant(inner, 1);
        closure(attempt);
        None
    }
}

impl<C: Clock> Iterator for RetryPolicy<C> {
    type Item = u32;
    fn next(&mut self) -> Option<u32> { self.next_delay(1); None }
}

pub async fn send_with_retry<C: Clock>(mut policy: RetryPolicy<C>, frame: Frame<'_, 4>) -> crate::Result<impl Iterator<Item = u32>> {
    crate::retry_all!(sleep(1));
    Ok(policy.next_delay(0).into_iter())
}

pub(crate) unsafe extern "C" fn raw_entry(pointer: *const u8) {}

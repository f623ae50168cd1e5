//! [`HandlerClock`]: how long an event handler may take. The clock stands still while the handler waits
//! for a person: a permission handler may ask, and people think for minutes.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

tokio::task_local! {
    static CURRENT: HandlerClock;
}

/// The clock of one call of a handler. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct HandlerClock {
    /// How many pauses there are.
    pauses: Arc<watch::Sender<usize>>,
}

impl Default for HandlerClock {
    fn default() -> Self {
        HandlerClock { pauses: Arc::new(watch::Sender::new(0)) }
    }
}

/// As long as it lives, the handler's clock stands still.
#[derive(Debug)]
pub struct ClockPause(HandlerClock);

impl Drop for ClockPause {
    fn drop(&mut self) {
        self.0.pauses.send_modify(|pauses| *pauses -= 1);
    }
}

impl HandlerClock {
    /// The clock of the handler that is running in this task; `None` outside of handlers.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Whether both are the clock of the same call.
    pub fn is(&self, other: &HandlerClock) -> bool {
        Arc::ptr_eq(&self.pauses, &other.pauses)
    }

    /// Stops the clock until the pause is dropped.
    pub fn pause(&self) -> ClockPause {
        self.pauses.send_modify(|pauses| *pauses += 1);
        ClockPause(self.clone())
    }

    /// Runs a handler with this clock.
    pub(super) fn scope<F: Future>(self, handler: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, handler)
    }

    /// Waits for `work`; `None` if it takes longer than `limit`. A pause begins the limit anew: what
    /// counts is how long the handler works without asking anybody.
    pub(super) async fn timeout<F: Future + Unpin>(&self, limit: Duration, mut work: F) -> Option<F::Output> {
        let mut pauses = self.pauses.subscribe();
        loop {
            let is_paused = *pauses.borrow_and_update() > 0;
            tokio::select! {
                // A pause that began in time counts, also if this task is late.
                biased;
                output = &mut work => return Some(output),
                // The sender is held by this clock.
                _ = pauses.changed() => {}
                () = tokio::time::sleep(limit), if !is_paused => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_clock_that_is_paused_never_runs_out() {
        let clock = HandlerClock::default();
        let limit = Duration::from_millis(30);
        let asking = clock.clone().scope(async {
            let pause = HandlerClock::current().map(|clock| clock.pause());
            tokio::time::sleep(limit * 5).await;
            drop(pause);
            "answered"
        });
        assert_eq!(clock.timeout(limit, Box::pin(asking)).await, Some("answered"));
        let hanging = clock.clone().scope(async {
            drop(HandlerClock::current().map(|clock| clock.pause()));
            std::future::pending::<()>().await;
        });
        assert_eq!(clock.timeout(limit, Box::pin(hanging)).await, None);
        assert!(HandlerClock::current().is_none());
    }
}

//! Requests to a model that servers and extensions ask for: how many there may be, and how large.

use std::collections::VecDeque;

use jiff::Timestamp;

/// How often one of them may ask in a minute.
pub(crate) const MAX_PER_MINUTE: usize = 10;

/// The most tokens of an answer.
pub(crate) const MAX_ANSWER_TOKENS: u32 = 8192;

/// How much of the request the person sees, in bytes.
pub(crate) const SHOWN_BYTES: usize = 2000;

/// When requests of one server or extension were sent within the last minute.
#[derive(Default)]
pub(crate) struct RequestTimes(VecDeque<Timestamp>);

impl RequestTimes {
    /// Counts a request; false if there were too many in the minute before it.
    pub(crate) fn count(&mut self, now: Timestamp) -> bool {
        let is_old = |time: &Timestamp| now.as_second() - time.as_second() >= 60;
        while self.0.front().is_some_and(is_old) {
            self.0.pop_front();
        }
        let is_allowed = self.0.len() < MAX_PER_MINUTE;
        if is_allowed {
            self.0.push_back(now);
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_so_many_requests() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut times = RequestTimes::default();
        assert!((0..10).all(|second| times.count(at(second))));
        assert!(!times.count(at(59)));
        assert!(times.count(at(60)));
        assert!(!times.count(at(60)));
    }
}

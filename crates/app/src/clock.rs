//! [`now`]: where the clock enters.

use std::time::SystemTime;

use jiff::Timestamp;

/// Times before and after these are the mistake of a clock. They leave room to add and subtract.
const EARLIEST: Timestamp = Timestamp::constant(-62_135_596_800, 0); // the year 1
const LATEST: Timestamp = Timestamp::constant(253_370_764_800, 0); // the year 9999

/// The current time. A clock that is off by thousands of years stands still at the end of what can
/// be written as a date.
#[allow(clippy::disallowed_methods, reason = "this is the edge where the clock enters")]
pub fn now() -> Timestamp {
    timestamp_of(SystemTime::now())
}

fn timestamp_of(time: SystemTime) -> Timestamp {
    let is_early = time < SystemTime::UNIX_EPOCH;
    let known = Timestamp::try_from(time).unwrap_or(if is_early { EARLIEST } else { LATEST });
    known.clamp(EARLIEST, LATEST)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_absurd_clock_stands_still() {
        let day = Duration::from_secs(86_400);
        let after = |days: u32| SystemTime::UNIX_EPOCH.checked_add(day * days).unwrap();
        let before = |days: u32| SystemTime::UNIX_EPOCH.checked_sub(day * days).unwrap();
        assert_eq!(timestamp_of(after(1)).to_string(), "1970-01-02T00:00:00Z");
        assert_eq!(timestamp_of(before(1)).to_string(), "1969-12-31T00:00:00Z");
        for years in [9000, 30_000, 1_000_000] {
            assert_eq!(timestamp_of(after(years * 365)), LATEST, "{years}");
            assert_eq!(timestamp_of(before(years * 365)), EARLIEST, "{years}");
        }
        assert_eq!(LATEST.to_string(), "9999-01-01T00:00:00Z");
        assert_eq!(EARLIEST.to_string(), "0001-01-01T00:00:00Z");
    }
}

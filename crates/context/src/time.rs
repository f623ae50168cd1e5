//! Times as the model sees them: UTC, whole seconds.

use jiff::Timestamp;

/// `2026-02-19T14:00:00Z`.
pub fn iso(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The same, for milliseconds since 1970.
pub fn iso_ms(ms: i64) -> String {
    iso(Timestamp::from_second(ms.div_euclid(1000)).unwrap_or(Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_in_whole_seconds() {
        assert_eq!(iso_ms(1_771_509_600_999), "2026-02-19T14:00:00Z");
        assert_eq!(iso("2026-02-19T15:00:00.5+01:00".parse().unwrap()), "2026-02-19T14:00:00Z");
        assert_eq!(iso_ms(i64::MIN), "1970-01-01T00:00:00Z");
    }
}

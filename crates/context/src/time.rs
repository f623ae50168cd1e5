//! Timestamps as the model reads them: UTC, in whole seconds.

use jiff::Timestamp;

/// Formats a time as `2026-02-19T14:00:00Z`.
pub fn format_utc(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// Formats milliseconds since 1970 in the same way; what is out of range becomes 1970.
pub fn format_utc_ms(ms: i64) -> String {
    format_utc(Timestamp::from_second(ms.div_euclid(1000)).unwrap_or(Timestamp::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_in_whole_seconds() {
        assert_eq!(format_utc_ms(1_771_509_600_999), "2026-02-19T14:00:00Z");
        assert_eq!(format_utc("2026-02-19T15:00:00.5+01:00".parse().unwrap()), "2026-02-19T14:00:00Z");
        assert_eq!(format_utc_ms(i64::MIN), "1970-01-01T00:00:00Z");
    }
}

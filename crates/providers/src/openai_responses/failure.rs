//! What the error codes of the Responses API mean.

use std::time::Duration;

use crate::failure::classify;
use crate::{FailureKind, FailureReport};

/// Codes for which sending the same request again does not help, whatever the status.
const ACCOUNT: [&str; 4] =
    ["insufficient_quota", "credit_balance_exhausted", "usage_not_included", "invalid_api_key"];
const REFUSED: [&str; 6] = [
    "invalid_prompt",
    "invalid_encrypted_content",
    "cyber_policy",
    "bio_policy",
    "misalignment_policy_violation",
    "data_residency_mismatch",
];
const OVERLOAD: [&str; 4] = ["server_is_overloaded", "slow_down", "server_error", "resource_unavailable"];

/// Classifies a failure by its code; by status and message only if the code does not decide.
pub fn classify_failure(status: Option<u16>, report: &FailureReport) -> FailureKind {
    match () {
        () if report.has_word(&ACCOUNT) => FailureKind::Auth,
        () if report.has_word(&REFUSED) => FailureKind::BadRequest,
        () if report.has_word(&OVERLOAD) => FailureKind::Overload,
        () if report.has_word(&["rate_limit_exceeded"]) => FailureKind::RateLimit,
        () => classify(status, report),
    }
}

/// The wait that a rate limit's message names: "Please try again in 1.982s." or "in 20ms". The
/// server says it nowhere else when the error comes within a stream.
pub fn retry_delay(report: &FailureReport) -> Option<Duration> {
    if !report.has_word(&["rate_limit_exceeded"]) {
        return None;
    }
    let (_, rest) = report.message.split_once("try again in ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = rest.split_at(end);
    let seconds = match unit {
        unit if unit.starts_with("ms") => number.parse::<f64>().ok()? / 1000.0,
        unit if unit.starts_with('s') => number.parse().ok()?,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(words: &[&str], message: &str) -> FailureReport {
        let words = words.iter().map(ToString::to_string).collect();
        FailureReport { words, message: message.into(), retry_after: None }
    }

    #[test]
    fn a_code_decides_whatever_the_status() {
        let table = [
            (Some(429), "insufficient_quota", FailureKind::Auth),
            (None, "insufficient_quota", FailureKind::Auth),
            (Some(429), "rate_limit_exceeded", FailureKind::RateLimit),
            (None, "rate_limit_exceeded", FailureKind::RateLimit),
            (Some(503), "server_is_overloaded", FailureKind::Overload),
            (None, "slow_down", FailureKind::Overload),
            (None, "server_error", FailureKind::Overload),
            (Some(400), "context_length_exceeded", FailureKind::ContextTooLong),
            (None, "context_length_exceeded", FailureKind::ContextTooLong),
            (Some(400), "invalid_encrypted_content", FailureKind::BadRequest),
            (Some(403), "cyber_policy", FailureKind::BadRequest),
            (Some(401), "invalid_api_key", FailureKind::Auth),
        ];
        for (status, code, kind) in table {
            assert_eq!(classify_failure(status, &report(&["error", code], "")), kind, "{status:?} {code}");
        }
    }

    #[test]
    fn the_wait_of_a_rate_limit_is_read_from_its_message() {
        let wait = |message| retry_delay(&report(&["rate_limit_exceeded"], message));
        assert_eq!(wait("Please try again in 1.982s. Visit"), Some(Duration::from_millis(1982)));
        assert_eq!(wait("Please try again in 20ms."), Some(Duration::from_millis(20)));
        assert_eq!(wait("Please try again in a while."), None);
        assert_eq!(wait("Please try again in 6m0s."), None);
        assert_eq!(retry_delay(&report(&["server_error"], "try again in 1s.")), None);
    }
}

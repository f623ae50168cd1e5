//! Errors of Gemini's server: `{"error": {"code", "message", "status", "details"}}`.

use std::time::Duration;

use serde_json::Value;

use crate::failure::{self, FailureReport};
use crate::{FailureKind, StreamError, StreamErrorKind};

/// The word that we add to a report about a quota that is not renewed within minutes.
const QUOTA_EXHAUSTED: &str = "QUOTA_EXHAUSTED";

/// Reads an error body. A stream that is one JSON array wraps its error in a list.
pub fn parse_error_body(body: &Value) -> FailureReport {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let error = &body["error"];
    let details = error["details"].as_array().map_or(&[][..], Vec::as_slice);
    let status = error["status"].as_str().into_iter();
    let reasons = details.iter().filter_map(|detail| detail["reason"].as_str());
    let mut words: Vec<String> = status.chain(reasons).map(str::to_owned).collect();
    let mut violations = details.iter().filter_map(|detail| detail["violations"].as_array()).flatten();
    if violations.any(|violation| violation["quotaId"].as_str().is_some_and(|id| id.contains("PerDay"))) {
        words.push(QUOTA_EXHAUSTED.to_owned());
    }
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str());
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let retry_after = delay.and_then(parse_seconds).or_else(|| delay_in_message(&message));
    FailureReport { words, message, retry_after }
}

/// Reads an error within a stream.
pub fn parse_stream_error(raw: &str) -> StreamError {
    let error: Value = serde_json::from_str(raw).unwrap_or_default();
    let word = error["status"].as_str().unwrap_or("error").to_owned();
    let message = error["message"].as_str().unwrap_or(raw).to_owned();
    let code = error["code"].as_u64().map(|code| code.to_string());
    StreamError { kind: StreamErrorKind::Provider(word), code, message }
}

/// Classifies a failure by the status word, which stands for an HTTP status.
pub fn classify(status: Option<u16>, report: &FailureReport) -> FailureKind {
    let status = status.or_else(|| report.words.first().map(|word| http_status(word)));
    match status {
        Some(404) if report.has_word(&["NOT_FOUND"]) => FailureKind::ModelUnavailable,
        Some(429) if report.has_word(&[QUOTA_EXHAUSTED]) => FailureKind::Auth,
        Some(400) if report.has_word(&["API_KEY_INVALID"]) => FailureKind::Auth,
        Some(400) if report.mentions(&["exceeds the maximum number of tokens allowed"]) => {
            FailureKind::ContextTooLong
        }
        status => failure::classify(status, report),
    }
}

/// The HTTP status that goes with a status word.
fn http_status(word: &str) -> u16 {
    match word {
        "UNAUTHENTICATED" => 401,
        "PERMISSION_DENIED" => 403,
        "NOT_FOUND" => 404,
        "ABORTED" => 409,
        "RESOURCE_EXHAUSTED" => 429,
        "CANCELLED" | "INTERNAL" | "UNKNOWN" | "DATA_LOSS" => 500,
        "UNAVAILABLE" => 503,
        "DEADLINE_EXCEEDED" => 504,
        _ => 400,
    }
}

/// A duration in the form `34s` or `3.5s`.
fn parse_seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The waiting time in `Please retry in 3.5s.`, which comes without details at times.
fn delay_in_message(message: &str) -> Option<Duration> {
    let (_, rest) = message.split_once("Please retry in ")?;
    parse_seconds(rest.split_whitespace().next()?.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(status: &str, message: &str, details: Value) -> FailureReport {
        let mut body = json!({"error": {"status": status, "message": message}});
        body["error"]["details"] = details;
        parse_error_body(&body)
    }

    #[test]
    fn every_refusal_has_its_class() {
        let day = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]);
        let minute = json!([{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]}, {"reason": "RATE_LIMIT_EXCEEDED"}]);
        let table = [
            (400, report("INVALID_ARGUMENT", "no", json!([])), FailureKind::BadRequest),
            (
                400,
                report(
                    "INVALID_ARGUMENT",
                    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048576).",
                    json!([]),
                ),
                FailureKind::ContextTooLong,
            ),
            (
                400,
                report("INVALID_ARGUMENT", "API key not valid.", json!([{"reason": "API_KEY_INVALID"}])),
                FailureKind::Auth,
            ),
            (403, report("PERMISSION_DENIED", "no", json!([])), FailureKind::Auth),
            (404, report("NOT_FOUND", "models/x is not found", json!([])), FailureKind::ModelUnavailable),
            (429, report("RESOURCE_EXHAUSTED", "slow down", minute), FailureKind::RateLimit),
            (429, report("RESOURCE_EXHAUSTED", "done for today", day), FailureKind::Auth),
            (
                429,
                report("RESOURCE_EXHAUSTED", "no", json!([{"reason": "QUOTA_EXHAUSTED"}])),
                FailureKind::Auth,
            ),
            (500, report("INTERNAL", "oops", json!([])), FailureKind::ServerError),
            (503, report("UNAVAILABLE", "The model is overloaded.", json!([])), FailureKind::Overload),
        ];
        for (status, report, expected) in table {
            assert_eq!(classify(Some(status), &report), expected, "{report:?}");
            assert_eq!(classify(None, &report), expected, "within a stream: {report:?}");
        }
        assert_eq!(classify(Some(404), &FailureReport::default()), FailureKind::NotFound);
    }

    #[test]
    fn waiting_times_are_read_from_the_details_or_the_message() {
        let told = report("RESOURCE_EXHAUSTED", "", json!([{"retryDelay": "34s"}]));
        assert_eq!(told.retry_after, Some(Duration::from_secs(34)));
        let said = report("RESOURCE_EXHAUSTED", "Quota exceeded. Please retry in 3.5s.", Value::Null);
        assert_eq!(said.retry_after, Some(Duration::from_millis(3500)));
        assert_eq!(report("RESOURCE_EXHAUSTED", "Please retry in -1s", Value::Null).retry_after, None);
    }

    #[test]
    fn an_error_in_a_list_is_found() {
        let body = json!([{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}]);
        assert_eq!(parse_error_body(&body).message, "no");
    }
}

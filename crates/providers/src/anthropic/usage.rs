//! What Anthropic's server reports about tokens.

use hardpan_prompt::TokenUsage;

use crate::usage::{ReportedUsage, UsageFields};

/// The usage of an Anthropic report: input excludes cached tokens, writes are split by
/// lifetime.
pub fn from_fields(fields: &UsageFields) -> ReportedUsage {
    const INPUT: &[&str] = &["input_tokens"];
    const READ: &[&str] = &["cache_read_input_tokens"];
    const WRITE: &[&str] = &["cache_creation_input_tokens"];
    const WRITE_5M: &[&str] = &["cache_creation.ephemeral_5m_input_tokens"];
    const WRITE_1H: &[&str] = &["cache_creation.ephemeral_1h_input_tokens"];
    const OUTPUT: &[&str] = &["output_tokens"];
    const REASONING: &[&str] =
        &["output_tokens_details.thinking_tokens", "output_tokens_details.reasoning_tokens"];
    const SEARCHES: &[&str] = &["server_tool_use.web_search_requests"];
    let count = |paths| fields.first_count(paths).unwrap_or_default();
    let hour = count(WRITE_1H);
    // Older servers report only the sum, which is then of the short lifetime.
    let short = count(WRITE_5M).max(count(WRITE).saturating_sub(hour));
    let tokens = TokenUsage {
        input: count(INPUT),
        cache_read: count(READ),
        cache_write_5m: short,
        cache_write_1h: hour,
        output: count(OUTPUT),
        reasoning: fields.first_count(REASONING).filter(|tokens| *tokens > 0),
    };
    ReportedUsage {
        tokens,
        searches: fields.first_count(SEARCHES),
        reports_cache: fields.first_count(READ).is_some(),
        other: fields.fields_except(&[INPUT, READ, WRITE, WRITE_5M, WRITE_1H, OUTPUT, REASONING]),
    }
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::Json;

    use super::*;

    #[test]
    fn anthropic_writes_are_kept_apart_and_later_counts_win() {
        let mut report = UsageFields::default();
        report.merge(r#"{"input_tokens":3,"cache_creation_input_tokens":30,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":1,"service_tier":"standard"}"#);
        report.merge(r#"{"output_tokens":42,"cache_read_input_tokens":null,"server_tool_use":{"web_search_requests":2}}"#);
        let other = [
            ("service_tier", serde_json::json!("standard")),
            ("server_tool_use.web_search_requests", 2.into()),
        ];
        let tokens = TokenUsage {
            input: 3,
            cache_read: 100,
            cache_write_5m: 10,
            cache_write_1h: 20,
            output: 42,
            reasoning: None,
        };
        let usage = ReportedUsage {
            tokens,
            searches: Some(2),
            reports_cache: true,
            other: other.iter().map(|(name, value)| (name.to_string(), Json::new(value))).collect(),
        };
        assert_eq!(from_fields(&report), usage);
        assert_eq!(tokens.prompt(), 133);
    }

    #[test]
    fn anthropic_writes_without_lifetimes_are_short() {
        let mut report = UsageFields::default();
        report.merge(r#"{"input_tokens":1,"cache_creation_input_tokens":9}"#);
        assert_eq!(
            (from_fields(&report).tokens.cache_write_5m, from_fields(&report).tokens.cache_write_1h),
            (9, 0)
        );
    }
}

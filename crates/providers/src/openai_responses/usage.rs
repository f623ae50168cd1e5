//! What the Responses API reports about tokens.

use hardpan_prompt::TokenUsage;

use crate::usage::{ReportedUsage, UsageFields};

/// The usage of a report: `input_tokens` includes what was read from the cache and what was written
/// to it, so both are subtracted.
pub fn from_fields(fields: &UsageFields) -> ReportedUsage {
    const INPUT: &[&str] = &["input_tokens"];
    const READ: &[&str] = &["input_tokens_details.cached_tokens"];
    const WRITE: &[&str] = &["input_tokens_details.cache_write_tokens"];
    const OUTPUT: &[&str] = &["output_tokens"];
    const REASONING: &[&str] = &["output_tokens_details.reasoning_tokens"];
    const TOTAL: &[&str] = &["total_tokens"];

    let count = |paths| fields.first_count(paths).unwrap_or_default();
    let (read, write) = (count(READ), count(WRITE));
    let tokens = TokenUsage {
        input: count(INPUT).saturating_sub(read.saturating_add(write)),
        cache_read: read,
        cache_write_5m: write,
        cache_write_1h: 0,
        output: count(OUTPUT),
        reasoning: fields.first_count(REASONING).filter(|tokens| *tokens > 0),
    };
    ReportedUsage {
        tokens,
        searches: None,
        reports_cache: fields.first_count(READ).is_some(),
        other: fields.fields_except(&[INPUT, READ, WRITE, OUTPUT, REASONING, TOTAL]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(report: &str) -> TokenUsage {
        let mut usage = UsageFields::default();
        usage.merge(report);
        from_fields(&usage).tokens
    }

    #[test]
    fn what_was_cached_is_part_of_the_input() {
        let report = r#"{"input_tokens":2600,"input_tokens_details":{"cached_tokens":2000,"cache_write_tokens":400},"output_tokens":90,"output_tokens_details":{"reasoning_tokens":40},"total_tokens":2690}"#;
        let expected = TokenUsage {
            input: 200,
            cache_read: 2000,
            cache_write_5m: 400,
            cache_write_1h: 0,
            output: 90,
            reasoning: Some(40),
        };
        assert_eq!(usage(report), expected);
    }

    #[test]
    fn missing_details_do_no_harm() {
        for report in [
            r#"{"input_tokens":10,"output_tokens":5,"total_tokens":15}"#,
            r#"{"input_tokens":10,"input_tokens_details":null,"output_tokens":5,"output_tokens_details":null}"#,
        ] {
            assert_eq!(
                usage(report),
                TokenUsage { input: 10, output: 5, ..TokenUsage::default() },
                "{report}"
            );
        }
        assert_eq!(usage(r#"{"input_tokens":1,"input_tokens_details":{"cached_tokens":5}}"#).input, 0);
    }
}

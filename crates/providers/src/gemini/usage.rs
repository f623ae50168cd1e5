//! What Gemini's server reports about tokens.

use hardpan_prompt::TokenUsage;

use crate::usage::{ReportedUsage, UsageFields};

/// The usage of a `usageMetadata`: the prompt includes cached tokens, the candidates do not include
/// thoughts.
pub fn from_fields(fields: &UsageFields) -> ReportedUsage {
    const PROMPT: &[&str] = &["promptTokenCount"];
    const CACHED: &[&str] = &["cachedContentTokenCount"];
    const TOOL_USE: &[&str] = &["toolUsePromptTokenCount"];
    const CANDIDATES: &[&str] = &["candidatesTokenCount"];
    const THOUGHTS: &[&str] = &["thoughtsTokenCount"];
    const TOTAL: &[&str] = &["totalTokenCount"];
    let count = |paths| fields.first_count(paths).unwrap_or_default();
    let prompt = count(PROMPT).saturating_add(count(TOOL_USE));
    let (candidates, thoughts) = (count(CANDIDATES), count(THOUGHTS));
    // Some answers of Vertex AI count the thoughts among the candidates: the total tells.
    let are_inside = prompt.saturating_add(candidates) == count(TOTAL) && thoughts <= candidates;
    let read = count(CACHED).min(prompt);
    let tokens = TokenUsage {
        input: prompt - read,
        cache_read: read,
        output: if are_inside { candidates } else { candidates.saturating_add(thoughts) },
        reasoning: Some(thoughts).filter(|tokens| *tokens > 0),
        ..TokenUsage::default()
    };
    ReportedUsage {
        tokens,
        searches: None,
        reports_cache: true, // a count of 0 is left out
        other: fields.fields_except(&[PROMPT, CACHED, TOOL_USE, CANDIDATES, THOUGHTS, TOTAL]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(report: &str) -> TokenUsage {
        let mut fields = UsageFields::default();
        fields.merge(report);
        from_fields(&fields).tokens
    }

    #[test]
    fn cached_tokens_are_part_of_the_prompt_and_thoughts_are_part_of_the_output() {
        let usage = TokenUsage {
            input: 1000,
            cache_read: 4000,
            output: 50,
            reasoning: Some(20),
            ..TokenUsage::default()
        };
        for report in [
            r#"{"promptTokenCount":5000,"cachedContentTokenCount":4000,"candidatesTokenCount":30,"thoughtsTokenCount":20,"totalTokenCount":5050}"#,
            r#"{"promptTokenCount":5000,"cachedContentTokenCount":4000,"candidatesTokenCount":50,"thoughtsTokenCount":20,"totalTokenCount":5050}"#,
            r#"{"promptTokenCount":4900,"toolUsePromptTokenCount":100,"cachedContentTokenCount":4000,"candidatesTokenCount":30,"thoughtsTokenCount":20,"totalTokenCount":5050}"#,
        ] {
            assert_eq!(tokens(report), usage, "{report}");
        }
    }

    #[test]
    fn counts_that_are_absent_or_impossible_do_no_harm() {
        let thinking = tokens(r#"{"promptTokenCount":10,"thoughtsTokenCount":5,"totalTokenCount":15}"#);
        assert_eq!((thinking.input, thinking.output, thinking.reasoning), (10, 5, Some(5)));
        let odd = tokens(
            r#"{"promptTokenCount":1,"cachedContentTokenCount":18446744073709551615,"candidatesTokenCount":"x"}"#,
        );
        assert_eq!((odd.input, odd.cache_read, odd.output), (0, 1, 0));
    }
}

//! What OpenAI's server and compatible ones report about tokens, in all their dialects.

use hardpan_prompt::TokenUsage;

use crate::usage::{ReportedUsage, UsageFields};

/// The usage of an OpenAI-style report: `prompt_tokens` includes cached tokens, so they are
/// subtracted.
pub fn from_fields(fields: &UsageFields) -> ReportedUsage {
    const PROMPT: &[&str] = &["prompt_tokens"];
    const READ: &[&str] = &[
        "prompt_tokens_details.cached_tokens", // OpenAI, xAI, Groq, OpenRouter, vLLM
        "prompt_cache_hit_tokens",             // DeepSeek
        "cached_tokens",                       // Moonshot
        "cache_read_input_tokens",             // gateways to Anthropic
        "timings.cache_n",                     // llama.cpp
    ];
    const MISS: &[&str] = &["prompt_cache_miss_tokens", "timings.prompt_n"];
    const WRITE: &[&str] = &[
        "prompt_tokens_details.cache_write_tokens", // OpenAI from 5.6, OpenRouter
        "prompt_tokens_details.cache_creation_tokens",
        "cache_write_tokens",
        "cache_creation_input_tokens",
    ];
    const WRITE_1H: &[&str] = &["cache_creation.ephemeral_1h_input_tokens"];
    const OUTPUT: &[&str] = &["completion_tokens", "timings.predicted_n"];
    const REASONING: &[&str] = &["completion_tokens_details.reasoning_tokens", "reasoning_tokens"];
    const TOTAL: &[&str] = &["total_tokens"];

    let count = |paths| fields.first_count(paths).unwrap_or_default();
    let (read, write) = (count(READ), count(WRITE));
    let hour = count(WRITE_1H).min(write);
    let cached = read.saturating_add(write);
    let prompt = fields.first_count(PROMPT).unwrap_or_else(|| cached.saturating_add(count(MISS)));
    let (mut output, reasoning) = (count(OUTPUT), fields.first_count(REASONING));
    // xAI and Gemini leave reasoning out of the completion, and Gemini does not say how much:
    // the total does.
    let unnamed = count(TOTAL).saturating_sub(prompt).saturating_sub(output);
    let hidden = reasoning.map_or(unnamed != cached, |reasoning| unnamed == reasoning);
    if hidden {
        output = output.saturating_add(unnamed);
    }
    let tokens = TokenUsage {
        input: prompt.saturating_sub(cached),
        cache_read: read,
        cache_write_5m: write - hour,
        cache_write_1h: hour,
        output,
        reasoning: reasoning.or(hidden.then_some(unnamed)).filter(|tokens| *tokens > 0),
    };
    ReportedUsage {
        tokens,
        searches: None,
        reports_cache: fields.first_count(READ).is_some(),
        other: fields.fields_except(&[PROMPT, READ, MISS, WRITE, WRITE_1H, OUTPUT, REASONING, TOTAL]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(report: &str) -> TokenUsage {
        let mut usage = UsageFields::default();
        usage.merge(report);
        from_fields(&usage).tokens
    }

    #[test]
    fn every_dialect_gives_input_without_what_was_cached() {
        let cached = TokenUsage { input: 10, cache_read: 90, output: 5, ..TokenUsage::default() };
        for report in [
            r#"{"prompt_tokens":100,"completion_tokens":5,"total_tokens":105,"prompt_tokens_details":{"cached_tokens":90}}"#,
            r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":90,"prompt_cache_miss_tokens":10}"#,
            r#"{"prompt_tokens":100.0,"completion_tokens":5,"cached_tokens":90,"prompt_tokens_details":null}"#,
            r#"{"prompt_tokens":100,"completion_tokens":5,"timings":{"cache_n":90,"prompt_n":10}}"#,
            r#"{"timings":{"cache_n":90,"prompt_n":10,"predicted_n":5}}"#,
        ] {
            assert_eq!(openai(report), cached, "{report}");
        }
        let written = r#"{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30}}"#;
        let usage =
            TokenUsage { input: 10, cache_read: 60, cache_write_5m: 30, output: 5, ..TokenUsage::default() };
        assert_eq!(openai(written), usage);
    }

    #[test]
    fn reasoning_is_part_of_the_output_whether_the_provider_counts_it_there_or_not() {
        let usage = TokenUsage { input: 10, output: 50, reasoning: Some(40), ..TokenUsage::default() };
        for report in [
            r#"{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":40}}"#,
            r#"{"prompt_tokens":10,"completion_tokens":10,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":40}}"#,
            r#"{"prompt_tokens":10,"completion_tokens":10,"total_tokens":60}"#,
        ] {
            assert_eq!(openai(report), usage, "{report}");
        }
    }

    #[test]
    fn impossible_counts_do_no_harm() {
        for report in [
            r#"{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":18446744073709551615,"cache_write_tokens":1e300}}"#,
            r#"{"prompt_tokens":-5,"completion_tokens":"many","prompt_tokens_details":[1]}"#,
            "[]",
            "{",
        ] {
            assert_eq!(openai(report).input, 0, "{report}");
        }
    }
}

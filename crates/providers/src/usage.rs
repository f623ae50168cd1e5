//! [`ReportedUsage`]: the tokens that an answer used, in one form for all providers.

use std::collections::BTreeMap;

use hardpan_prompt::{Json, TokenUsage};
use serde_json::{Map, Value};

/// What a provider reports about an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedUsage {
    /// The tokens of the request and its answer.
    pub tokens: TokenUsage,
    /// Everything else the provider reported, by its own names, such as
    /// `server_tool_use.web_search_requests`; only displayed.
    pub other: BTreeMap<String, Json>,
}

impl From<TokenUsage> for ReportedUsage {
    fn from(tokens: TokenUsage) -> Self {
        ReportedUsage { tokens, other: BTreeMap::new() }
    }
}

/// The provider's own report, merged from all the places in which a stream sends parts of it.
#[derive(Debug, Default)]
pub(crate) struct UsageFields {
    fields: Map<String, Value>,
}

impl UsageFields {
    /// Merges a cumulative report: its fields replace earlier ones.
    pub(crate) fn merge(&mut self, report: &str) {
        let Ok(Value::Object(fields)) = serde_json::from_str(report) else { return };
        self.fields.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    }

    /// The count at a path such as `prompt_tokens_details.cached_tokens`.
    fn count(&self, path: &str) -> Option<u64> {
        let (first, second) =
            path.split_once('.').map_or((path, None), |(first, second)| (first, Some(second)));
        let value = self.fields.get(first)?;
        let value = second.map_or(Some(value), |second| value.get(second))?;
        // Some servers count in floating point; the cast saturates.
        value.as_u64().or_else(|| value.as_f64().map(|count| count as u64))
    }

    fn first_count(&self, paths: &[&str]) -> Option<u64> {
        paths.iter().find_map(|path| self.count(path))
    }

    /// All fields that are not in `known`, by their path.
    fn fields_except(&self, known: &[&[&str]]) -> BTreeMap<String, Json> {
        let mut other = BTreeMap::new();
        let mut keep = |path: String, value: &Value| {
            if !value.is_null() && !known.iter().any(|paths| paths.contains(&path.as_str())) {
                other.insert(path, Json::new(value));
            }
        };
        for (name, value) in &self.fields {
            match value {
                Value::Object(inner) => {
                    inner.iter().for_each(|(key, value)| keep(format!("{name}.{key}"), value));
                }
                value => keep(name.clone(), value),
            }
        }
        other
    }

    /// The usage of an Anthropic report: input excludes cached tokens, writes are split by
    /// lifetime.
    pub(crate) fn anthropic_usage(&self) -> ReportedUsage {
        const INPUT: &[&str] = &["input_tokens"];
        const READ: &[&str] = &["cache_read_input_tokens"];
        const WRITE: &[&str] = &["cache_creation_input_tokens"];
        const WRITE_5M: &[&str] = &["cache_creation.ephemeral_5m_input_tokens"];
        const WRITE_1H: &[&str] = &["cache_creation.ephemeral_1h_input_tokens"];
        const OUTPUT: &[&str] = &["output_tokens"];
        const REASONING: &[&str] =
            &["output_tokens_details.thinking_tokens", "output_tokens_details.reasoning_tokens"];
        let count = |paths| self.first_count(paths).unwrap_or_default();
        let hour = count(WRITE_1H);
        // Older servers report only the sum, which is then of the short lifetime.
        let short = count(WRITE_5M).max(count(WRITE).saturating_sub(hour));
        let tokens = TokenUsage {
            input: count(INPUT),
            cache_read: count(READ),
            cache_write_5m: short,
            cache_write_1h: hour,
            output: count(OUTPUT),
            reasoning: self.first_count(REASONING).filter(|tokens| *tokens > 0),
        };
        ReportedUsage {
            tokens,
            other: self.fields_except(&[INPUT, READ, WRITE, WRITE_5M, WRITE_1H, OUTPUT, REASONING]),
        }
    }

    /// The usage of an OpenAI-style report: `prompt_tokens` includes cached tokens, so they are
    /// subtracted.
    pub(crate) fn openai_usage(&self) -> ReportedUsage {
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

        let count = |paths| self.first_count(paths).unwrap_or_default();
        let (read, write) = (count(READ), count(WRITE));
        let hour = count(WRITE_1H).min(write);
        let cached = read.saturating_add(write);
        let prompt = self.first_count(PROMPT).unwrap_or_else(|| cached.saturating_add(count(MISS)));
        let (mut output, reasoning) = (count(OUTPUT), self.first_count(REASONING));
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
            other: self.fields_except(&[PROMPT, READ, MISS, WRITE, WRITE_1H, OUTPUT, REASONING, TOTAL]),
        }
    }

    /// Merges llama.cpp's own report, which is next to `usage`, as the field `timings`.
    pub(crate) fn merge_timings(&mut self, timings: &str) {
        let Ok(timings @ Value::Object(_)) = serde_json::from_str(timings) else { return };
        self.fields.insert("timings".into(), timings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(report: &str) -> TokenUsage {
        let mut usage = UsageFields::default();
        usage.merge(report);
        usage.openai_usage().tokens
    }

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
            other: other.iter().map(|(name, value)| (name.to_string(), Json::new(value))).collect(),
        };
        assert_eq!(report.anthropic_usage(), usage);
        assert_eq!(tokens.prompt(), 133);
    }

    #[test]
    fn anthropic_writes_without_lifetimes_are_short() {
        let mut report = UsageFields::default();
        report.merge(r#"{"input_tokens":1,"cache_creation_input_tokens":9}"#);
        assert_eq!(
            (report.anthropic_usage().tokens.cache_write_5m, report.anthropic_usage().tokens.cache_write_1h),
            (9, 0)
        );
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

//! [`ReportedUsage`]: the tokens that an answer used, in one form for all providers.

use std::collections::BTreeMap;

use hardpan_prompt::{Json, TokenUsage};
use serde_json::{Map, Value};

use crate::limits::MAX_USAGE_BYTES;

/// The most fields that are kept of all reports of one answer.
const MAX_FIELDS: usize = 256;

/// What a provider reports about an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedUsage {
    /// The tokens of the request and its answer.
    pub tokens: TokenUsage,
    /// Whether the report says how many tokens were read from a cache, 0 included. If it does not,
    /// nothing is known about the cache.
    pub reports_cache: bool,
    /// How often the provider's own tool searched the web, if the report says.
    pub searches: Option<u64>,
    /// Everything else the provider reported, by its own names, such as
    /// `service_tier`; only displayed.
    pub other: BTreeMap<String, Json>,
}

impl From<TokenUsage> for ReportedUsage {
    fn from(tokens: TokenUsage) -> Self {
        ReportedUsage { tokens, reports_cache: true, searches: None, other: BTreeMap::new() }
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
        let Some(fields) = parse_report(report) else { return };
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_null()) {
            if self.fields.len() < MAX_FIELDS || self.fields.contains_key(&name) {
                self.fields.insert(name, value);
            }
        }
    }

    /// The count at a path such as `prompt_tokens_details.cached_tokens`.
    pub(crate) fn count(&self, path: &str) -> Option<u64> {
        let (first, second) =
            path.split_once('.').map_or((path, None), |(first, second)| (first, Some(second)));
        let value = self.fields.get(first)?;
        let value = second.map_or(Some(value), |second| value.get(second))?;
        // Some servers count in floating point; the cast saturates.
        value.as_u64().or_else(|| value.as_f64().map(|count| count as u64))
    }

    pub(crate) fn first_count(&self, paths: &[&str]) -> Option<u64> {
        paths.iter().find_map(|path| self.count(path))
    }

    /// All fields that are not in `known`, by their path.
    pub(crate) fn fields_except(&self, known: &[&[&str]]) -> BTreeMap<String, Json> {
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

    /// Merges a report that stands beside `usage`, as a field of this name.
    pub(crate) fn merge_as(&mut self, name: &str, report: &str) {
        let Some(report) = parse_report(report) else { return };
        self.fields.insert(name.to_owned(), report.into());
    }
}

/// The fields of a report; `None` if it is no object, or longer than any provider's.
fn parse_report(report: &str) -> Option<Map<String, Value>> {
    if report.len() > MAX_USAGE_BYTES {
        return None;
    }
    serde_json::from_str(report).ok()
}

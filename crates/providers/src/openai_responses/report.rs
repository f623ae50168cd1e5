//! What the server says about its cache besides the answer.

use hardpan_prompt::{CacheDiagnosis, ChangedPart};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Diagnostics {
    r#type: String,
    reason: Option<String>,
    cache_missed_tokens: Option<u64>,
}

/// Parses the field `prompt_cache_diagnostics` of a response. `None`: nothing was compared, or the
/// field has a form that is not known.
pub fn parse_diagnosis(field: &RawValue) -> Option<CacheDiagnosis> {
    let diagnostics = serde_json::from_str::<Option<Diagnostics>>(field.get()).ok()??;
    let part = diagnostics.reason.as_deref().and_then(changed_part);
    Some(match (diagnostics.r#type.as_str(), part) {
        ("cache_hit", _) => CacheDiagnosis::NoDifference,
        ("cache_miss", Some(part)) => {
            CacheDiagnosis::Changed { part, missed_tokens: diagnostics.cache_missed_tokens }
        }
        ("comparison_response_not_found", _) => CacheDiagnosis::PreviousNotFound,
        // `unavailable` (also while the comparison is not ready), and what did not exist when this was
        // written.
        _ => CacheDiagnosis::Unavailable,
    })
}

/// The part of the request that a reason of the server means. `None`: the reason is not known.
fn changed_part(reason: &str) -> Option<ChangedPart> {
    Some(match reason {
        "model_changed" => ChangedPart::Model,
        "prompt_cache_key_changed" => ChangedPart::CacheKey,
        "tools_changed" => ChangedPart::Tools,
        "text_format_changed" | "verbosity_changed" => ChangedPart::OutputFormat,
        "reasoning_effort_changed" => ChangedPart::Effort,
        // The system prompt is an item of the input, too.
        "context_compacted" | "input_changed" => ChangedPart::Input,
        "service_tier_changed" => ChangedPart::ServiceTier,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis(json: &str) -> Option<CacheDiagnosis> {
        parse_diagnosis(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn every_documented_value_has_its_meaning() {
        assert_eq!(diagnosis("null"), None);
        assert_eq!(diagnosis(r#"{"type":"cache_hit"}"#), Some(CacheDiagnosis::NoDifference));
        let missed = r#"{"type":"cache_miss","reason":"tools_changed","cache_missed_tokens":5629,"comparison_reusable_tokens":5629}"#;
        let tools = CacheDiagnosis::Changed { part: ChangedPart::Tools, missed_tokens: Some(5629) };
        assert_eq!(diagnosis(missed), Some(tools));
        let gone = r#"{"type":"comparison_response_not_found"}"#;
        assert_eq!(diagnosis(gone), Some(CacheDiagnosis::PreviousNotFound));
        assert_eq!(diagnosis(r#"{"type":"unavailable"}"#), Some(CacheDiagnosis::Unavailable));
        let later = r#"{"type":"cache_miss","reason":"something_new","cache_missed_tokens":1}"#;
        assert_eq!(diagnosis(later), Some(CacheDiagnosis::Unavailable));
        assert_eq!(diagnosis("17"), None);
    }
}

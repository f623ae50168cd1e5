//! What Anthropic's server says besides the answer.

use hardpan_prompt::{CacheDiagnosis, ChangedPart, DroppedReasoning};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Diagnostics {
    cache_miss_reason: Option<MissReason>,
}

#[derive(Deserialize)]
struct MissReason {
    r#type: String,
    cache_missed_input_tokens: Option<u64>,
}

/// Parses the field `diagnostics` of a message. `None`: it has a form that is not known.
pub fn parse_diagnosis(field: &RawValue) -> Option<CacheDiagnosis> {
    let Some(diagnostics) = serde_json::from_str::<Option<Diagnostics>>(field.get()).ok()? else {
        return Some(CacheDiagnosis::NoDifference);
    };
    let Some(reason) = diagnostics.cache_miss_reason else { return Some(CacheDiagnosis::Pending) };
    let changed = |part| CacheDiagnosis::Changed { part, missed_tokens: reason.cache_missed_input_tokens };
    match reason.r#type.as_str() {
        "model_changed" => Some(changed(ChangedPart::Model)),
        "system_changed" => Some(changed(ChangedPart::System)),
        "tools_changed" => Some(changed(ChangedPart::Tools)),
        "messages_changed" => Some(changed(ChangedPart::Messages)),
        "previous_message_not_found" => Some(CacheDiagnosis::PreviousNotFound),
        // Reasons that did not exist when this was written cannot be told from no reason.
        _ => Some(CacheDiagnosis::Unavailable),
    }
}

#[derive(Deserialize)]
struct Transformation {
    r#type: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    reason: String,
}

/// Parses the field `input_transformations` of a message: the reasoning that was dropped.
pub fn parse_transformations(field: &RawValue) -> Vec<DroppedReasoning> {
    let all: Vec<Transformation> = serde_json::from_str(field.get()).unwrap_or_default();
    all.into_iter()
        .filter(|one| matches!(one.r#type.as_str(), "thinking_dropped" | "thinking_mismatch_allowed"))
        .map(|one| DroppedReasoning { path: one.path, reason: one.reason })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis(json: &str) -> Option<CacheDiagnosis> {
        parse_diagnosis(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn every_documented_value_has_its_meaning() {
        assert_eq!(diagnosis("null"), Some(CacheDiagnosis::NoDifference));
        assert_eq!(diagnosis(r#"{"cache_miss_reason":null}"#), Some(CacheDiagnosis::Pending));
        let changed = r#"{"cache_miss_reason":{"type":"tools_changed","cache_missed_input_tokens":41850}}"#;
        let tools = CacheDiagnosis::Changed { part: ChangedPart::Tools, missed_tokens: Some(41_850) };
        assert_eq!(diagnosis(changed), Some(tools));
        let gone = r#"{"cache_miss_reason":{"type":"previous_message_not_found"}}"#;
        assert_eq!(diagnosis(gone), Some(CacheDiagnosis::PreviousNotFound));
        let later = r#"{"cache_miss_reason":{"type":"something_new"}}"#;
        assert_eq!(diagnosis(later), Some(CacheDiagnosis::Unavailable));
        assert_eq!(diagnosis("17"), None);
    }

    #[test]
    fn dropped_reasoning_is_listed() {
        let json = r#"[{"type":"thinking_dropped","path":"messages.3.content.0","reason":"prefix_binding_mismatch"},{"type":"other"}]"#;
        let dropped = parse_transformations(serde_json::from_str(json).unwrap());
        assert_eq!(dropped.len(), 1);
        assert!(dropped[0].is_our_fault());
    }
}

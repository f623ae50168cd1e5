//! What the `models` endpoint says about a model.

use hardpan_models::{Model, ThinkingOff};
use hardpan_prompt::Effort;
use serde_json::{Value, json};

/// One model of the list. Creation dates are not known: they are 1970.
pub fn model_entry(model: &Model) -> Value {
    let thinking = &model.thinking;
    let (has_thinking, has_effort) = (model.reasoning, !thinking.efforts.is_empty());
    let disabled = has_thinking && matches!(thinking.off, ThinkingOff::Unspecified | ThinkingOff::Disabled);
    let between_tools = thinking.off == ThinkingOff::BetweenTools;
    let effort = |effort: Effort| supported(thinking.efforts.contains(&effort));
    // The second word of an id is the model's line: `claude-opus-5-5`.
    let line = model.id.split('-').nth(1).unwrap_or_default();
    json!({
        "type": "model",
        "id": model.id,
        "display_name": model.id,
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": lifecycle(model),
        "line": line,
        "max_input_tokens": model.context,
        "max_tokens": model.max_output,
        "deprecated_at": null,
        "retires_at": model.deprecated.as_ref().map(|day| format!("{day}T00:00:00Z")),
        "capabilities": {
            "thinking": {
                "supported": has_thinking,
                "types": {
                    "adaptive": supported(thinking.adaptive),
                    "enabled": supported(thinking.budget),
                    "disabled": supported(disabled),
                    "between_tools": supported(between_tools),
                },
            },
            "effort": {
                "supported": has_effort,
                "low": effort(Effort::Low),
                "medium": effort(Effort::Medium),
                "high": effort(Effort::High),
                "xhigh": effort(Effort::XHigh),
                "max": effort(Effort::Max),
            },
            "context_management": {
                "supported": true,
                "clear_tool_uses_20250919": supported(true),
                "clear_thinking_20251015": supported(has_thinking),
                "compact_20260112": supported(true),
            },
            "structured_outputs": supported(true),
            "image_input": supported(model.vision),
            "pdf_input": supported(model.vision),
            "citations": supported(true),
            "batch": supported(false),
            "code_execution": supported(false),
            "server_tools": {
                "supported": false,
                "code_execution": supported(false),
                "web_search": supported(false),
            },
        },
    })
}

fn supported(supported: bool) -> Value {
    json!({"supported": supported})
}

fn lifecycle(model: &Model) -> &'static str {
    match model {
        Model { gone: true, .. } => "retired",
        Model { deprecated: Some(_), .. } => "deprecated",
        _ => "active",
    }
}

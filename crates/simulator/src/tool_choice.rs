//! [`ToolChoice`]: which tools a model may or must call.

use hardpan_providers::decode::DecodedRequest;
use serde_json::Value;

/// The request's `tool_choice`, in one form for all protocols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides whether to call tools.
    #[default]
    Auto,
    /// The model must not call tools.
    None,
    /// The model must call at least one tool.
    Any,
    /// The model must call the tool of this name.
    Tool(String),
}

impl ToolChoice {
    /// Reads the choice of a request; [`Auto`](Self::Auto) if it has none.
    pub fn from_request(decoded: &DecodedRequest) -> Self {
        let Some(choice) = &decoded.tool_choice else { return ToolChoice::Auto };
        let choice = choice.value();
        if let Some(mode) = choice["mode"].as_str() {
            return ToolChoice::from_mode(mode, &choice["allowedFunctionNames"]); // Gemini
        }
        let word = choice.as_str().or_else(|| choice["type"].as_str()).unwrap_or_default();
        let name = [&choice["name"], &choice["function"]["name"]].into_iter().find_map(Value::as_str);
        match (word, name) {
            ("none", _) => ToolChoice::None,
            ("any" | "required", _) => ToolChoice::Any,
            (_, Some(name)) => ToolChoice::Tool(name.to_owned()),
            _ => ToolChoice::Auto,
        }
    }

    /// Reads Gemini's mode. One allowed name is the tool that must be called.
    fn from_mode(mode: &str, allowed: &Value) -> Self {
        match (mode, allowed.as_array().map(Vec::as_slice)) {
            ("NONE", _) => ToolChoice::None,
            ("ANY", Some([Value::String(only)])) => ToolChoice::Tool(only.clone()),
            ("ANY", _) => ToolChoice::Any,
            _ => ToolChoice::Auto,
        }
    }

    /// Whether the model must call a tool.
    pub fn is_forced(&self) -> bool {
        matches!(self, ToolChoice::Any | ToolChoice::Tool(_))
    }
}

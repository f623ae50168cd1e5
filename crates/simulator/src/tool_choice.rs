//! [`ToolChoice`]: which tools a model may or must call.

use hardpan_providers::decode::DecodedRequest;
use serde_json::Value;

/// The request's `tool_choice`, in one form for both protocols.
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
        let word = choice.as_str().or_else(|| choice["type"].as_str()).unwrap_or_default();
        let name = [&choice["name"], &choice["function"]["name"]].into_iter().find_map(Value::as_str);
        match (word, name) {
            ("none", _) => ToolChoice::None,
            ("any" | "required", _) => ToolChoice::Any,
            (_, Some(name)) => ToolChoice::Tool(name.to_owned()),
            _ => ToolChoice::Auto,
        }
    }

    /// Whether the model must call a tool.
    pub fn is_forced(&self) -> bool {
        matches!(self, ToolChoice::Any | ToolChoice::Tool(_))
    }
}

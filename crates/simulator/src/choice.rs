//! Which tools a model may or must call.

use hardpan_providers::decode::Decoded;
use serde_json::Value;

/// `tool_choice`, in one form for both protocols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// As the model likes.
    #[default]
    Auto,
    /// None.
    None,
    /// At least one.
    Any,
    /// This one.
    Tool(String),
}

impl Choice {
    /// What a request says.
    pub fn of(decoded: &Decoded) -> Self {
        let Some(choice) = &decoded.tool_choice else { return Choice::Auto };
        let choice = choice.value();
        let word = choice.as_str().or_else(|| choice["type"].as_str()).unwrap_or_default();
        let name = [&choice["name"], &choice["function"]["name"]].into_iter().find_map(Value::as_str);
        match (word, name) {
            ("none", _) => Choice::None,
            ("any" | "required", _) => Choice::Any,
            (_, Some(name)) => Choice::Tool(name.to_owned()),
            _ => Choice::Auto,
        }
    }

    /// Whether the model must call a tool.
    pub fn is_forced(&self) -> bool {
        matches!(self, Choice::Any | Choice::Tool(_))
    }
}

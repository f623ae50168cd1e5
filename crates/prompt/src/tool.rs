//! The declaration of a tool.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Json;

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The name the model calls it by: letters, digits, `_` and `-`, at most 64.
    pub name: Arc<str>,
    /// Tells the model what the tool does and when to use it.
    #[serde(default)]
    pub description: Arc<str>,
    /// The JSON schema of its arguments.
    #[serde(default = "no_parameters")]
    pub parameters: Json,
    /// One line for the system prompt's list of tools, in place of the description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Arc<str>>,
    /// Lines for the system prompt's guidelines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidelines: Vec<Arc<str>>,
}

fn no_parameters() -> Json {
    Json::new(&serde_json::json!({"type": "object", "properties": {}}))
}

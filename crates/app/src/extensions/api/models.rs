//! Models, tools and commands, as extensions read them.

use std::borrow::Cow;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model that requests can go to.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    pub provider: String,
    pub id: String,
    pub name: String,
    /// The protocol that its provider speaks.
    pub api: Cow<'static, str>,
    pub base_url: String,
    pub reasoning: bool,
    pub input: Vec<InputKind>,
    pub cost: ModelCost,
    pub context_window: u32,
    pub max_tokens: u32,
}

/// What a model reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum InputKind {
    Text,
    Image,
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelCost {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// A tool, as `pi.getAllTools()` lists it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    pub name: String,
    pub description: String,
    /// The JSON schema of its arguments.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub parameters: Value,
    pub prompt_guidelines: Vec<String>,
    /// Whether the model may call it.
    pub active: bool,
    pub source_info: SourceInfo,
}

/// Where a tool or a command comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceInfo {
    /// Its file; `<builtin:NAME>` for what Hardpan brings, `<extension:NAME>` and the like where no file is known.
    pub path: String,
    /// `builtin`, `extension:NAME`, `mcp:NAME`, `skill` or `prompt`.
    pub source: String,
    pub scope: SourceScope,
    pub origin: SourceOrigin,
}

impl SourceInfo {
    /// What is known by its name and who brought it.
    pub fn of(name: &str, source: &str, path: Option<&Path>) -> Self {
        let source = if source == "built-in" { "builtin" } else { source };
        let named = || match source {
            "builtin" => format!("<builtin:{name}>"),
            _ => format!("<{source}>"),
        };
        SourceInfo {
            path: path.map_or_else(named, |path| path.to_string_lossy().into_owned()),
            source: source.to_owned(),
            scope: SourceScope::default(),
            origin: SourceOrigin::default(),
        }
    }
}

literals! {
    SourceScope = "temporary",
    SourceOrigin = "top-level",
}

/// A command, as `pi.getCommands()` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandInfo {
    pub name: String,
    pub description: String,
    pub source: CommandSource,
    pub source_info: SourceInfo,
    /// The file of a skill or a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum CommandSource {
    Extension,
    Skill,
    Prompt,
}

/// What `ctx.getContextUsage()` gives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Null until the first answer.
    pub tokens: Option<u64>,
    pub context_window: u32,
    pub percent: Option<f64>,
}

//! Models, tools and commands, as extensions read them.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolInfo {
    pub name: String,
    pub description: String,
    /// Whether the model may call it.
    pub active: bool,
}

/// A command, as `pi.getCommands()` lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CommandInfo {
    pub name: String,
    pub description: String,
    pub source: CommandSource,
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

//! The JSON form of a snapshot. Every field but `version` and `now` may be left out.

use std::fmt;
use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Kind, MediaType, MessageId, Text, Tier, Tool, Volatility};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{AgentMode, PromptType, Skill};
use crate::Memory;

/// A snapshot as it is written to a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFile {
    /// The version of the format: 1.
    pub version: u32,
    /// The time of the request: the only clock that assembly knows.
    #[schemars(with = "String")]
    pub now: Timestamp,
    /// Where the agent works. In `strata` it is told in the tail, elsewhere in the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Arc<str>>,
    /// The pieces of the system prompt.
    #[serde(default)]
    pub system: SystemEntry,
    /// Whether tools are in use.
    #[serde(default)]
    pub agent_mode: AgentMode,
    /// Panels, and any other items given whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemEntry>,
    /// Files, in the order the person named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileEntry>,
    /// The symbol map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<SymbolsEntry>,
    /// The list of the repository's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeEntry>,
    /// Fetched pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<PageEntry>,
    /// `tiers`: whether the symbol map and the tree are sent.
    #[serde(default = "yes")]
    pub use_repo_map: bool,
    /// `inline`: whether the directory map is sent.
    #[serde(default = "yes")]
    pub directory_map: bool,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<AgentMessage>,
    /// Declared tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Images for the prompt; one with a `path` is a context file in `inline`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageEntry>,
    /// Documents attached by id, for servers that take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Arc<str>>,
    /// The provider's web search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearchEntry>,
    /// Whether the model thinks first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingEntry>,
    /// What the person just typed; left out when the agent goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptEntry>,
    /// The first of the messages that no request has carried yet: from it on, they are what was just typed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<MessageId>,
    /// `strata`: fold with this request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fold: bool,
    /// What the layouts remember of earlier requests, as `hardpan request --next-memory` wrote it.
    #[serde(default, skip_serializing_if = "Memory::is_empty")]
    #[schemars(with = "serde_json::Value")]
    pub memory: Memory,
    /// What was asked for but could not be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Unavailable>,
}

/// Something that was asked for but could not be had.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unavailable {
    /// Its key.
    pub key: String,
    /// Why.
    pub reason: String,
}

fn yes() -> bool {
    true
}

/// The pieces of the system prompt.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SystemEntry {
    /// The whole system prompt, in place of everything below: an extension's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<Text>,
    /// The active agent's text; left out for the default agent (`system.md`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Text>,
    /// Project-specific instructions, in place of `system_extra.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Text>,
    /// Text from settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append: Option<Text>,
    /// AGENTS.md and its kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub project_files: Vec<ProjectFile>,
    /// Skills.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// Which prompt `inline` starts from.
    pub prompt_type: PromptType,
    /// The path of a custom prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_path: Option<Arc<str>>,
    /// The custom prompt's text; left out when the path could not be resolved: then a minimal prompt is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<Text>,
    /// Whether changes are made by edit blocks.
    pub edit_blocks: bool,
}

/// A file of project instructions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectFile {
    /// Its path as shown.
    pub path: Arc<str>,
    /// Its content.
    pub content: Text,
}

/// An item given whole.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemEntry {
    /// The name the model sees in `panels`: `P1`. `chat` stands for the conversation and is never sent as an item.
    pub id: Arc<str>,
    /// Its key; `panel:ID` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// What sort of thing it is: panel (default), file, symbols, legend, tree or page.
    #[serde(default = "panel")]
    pub kind: Kind,
    /// Its name for a reader.
    pub header: Arc<str>,
    /// Its content.
    pub content: Text,
    /// When the content last changed, in milliseconds since 1970.
    #[serde(default)]
    pub last_refresh_ms: i64,
    /// Its tier in `tiers`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// For how many responses it has been unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// How often it changes; by its kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volatility: Option<Volatility>,
    /// The message that already shows this content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_by: Option<MessageId>,
}

fn panel() -> Kind {
    Kind::Panel
}

/// A file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its path, as the model is to see it.
    pub path: String,
    /// Its content; null if it could not be read.
    pub content: Option<Text>,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its panel in `panels`; P10, P11, … in order if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// When it last changed, in milliseconds since 1970.
    #[serde(default)]
    pub last_refresh_ms: i64,
    /// Its tier in `tiers`; active if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// For how many responses it has been unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
    /// How often it changes; lively if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volatility: Option<Volatility>,
    /// The message that already shows this content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_by: Option<MessageId>,
}

/// The symbol map.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymbolsEntry {
    /// Abbreviations and path aliases.
    #[serde(default)]
    pub legend: Option<Text>,
    /// One entry per file.
    #[serde(default)]
    pub entries: Vec<SymbolEntry>,
}

/// What one file defines.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymbolEntry {
    /// The file.
    pub path: String,
    /// The entry.
    pub content: Text,
    /// Its tier in `tiers`; L3 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// For how many responses it has been unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u32>,
}

/// The list of the repository's files.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TreeEntry {
    /// Paths; they are sorted, and shown with forward slashes.
    pub files: Vec<String>,
    /// When the list last changed, in milliseconds since 1970.
    #[serde(default)]
    pub last_refresh_ms: i64,
}

/// A fetched page.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageEntry {
    /// Its address.
    pub url: String,
    /// Its title; the address if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its content as text.
    pub content: String,
    /// A symbol map of what it holds, for a repository's page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol_map: Option<String>,
    /// When it was fetched, in milliseconds since 1970.
    #[serde(default)]
    pub last_refresh_ms: i64,
}

/// An image.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageEntry {
    /// The file it was read from, if it stands for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Arc<str>>,
    /// Its type.
    pub media_type: MediaType,
    /// The base64 of its bytes.
    pub data: Arc<str>,
    /// Width in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
}

/// The provider's web search.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchEntry {
    /// The most results to take in.
    #[serde(default = "five")]
    pub max_results: u32,
}

fn five() -> u32 {
    5
}

/// Whether the model thinks first.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThinkingEntry {
    /// The most tokens it may think.
    pub budget_tokens: u32,
}

/// What the person just typed: a string, or text with the id it will have as a message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PromptEntry {
    /// The text; its id is `prompt`.
    Text(Text),
    /// The text and its id.
    WithId {
        /// The id it will have as a message.
        id: MessageId,
        /// The text.
        text: Text,
    },
}

impl<'de> Deserialize<'de> for PromptEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct WithId {
            id: MessageId,
            text: Text,
        }
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = PromptEntry;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the prompt's text, or an object of its `id` and `text`")
            }
            fn visit_str<E>(self, text: &str) -> Result<PromptEntry, E> {
                Ok(PromptEntry::Text(Text::new(text)))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<PromptEntry, A::Error> {
                let WithId { id, text } =
                    WithId::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(PromptEntry::WithId { id, text })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// The JSON schema of the format.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(SnapshotFile).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "Hardpan snapshot, version 1".into());
    }
    schema
}

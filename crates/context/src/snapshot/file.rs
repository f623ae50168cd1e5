//! [`SnapshotFile`]: the JSON form of a snapshot (`docs/snapshot.md`). Every field but `version`
//! and `now` may be left out. The doc comments here are the descriptions in the JSON schema.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use hardpan_economy::PauseCounts;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{
    AgentMessage, Effort, Hash, ItemKind, MediaType, MessageId, Text, Tier, Tool, UnavailableCode, Volatility,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{AgentMode, EphemeralText, PromptType, Skill};
use crate::knowledge::FileObservation;
use crate::{DetachLimits, KeepLevel, LayoutState, LifetimeSetting};

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
    /// What the system prompt is made of.
    #[serde(default)]
    pub system: SystemEntry,
    /// Whether the model may call tools.
    #[serde(default)]
    pub agent_mode: AgentMode,
    /// Panels, and any other items given whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ItemEntry>,
    /// Files, in the order the person named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileEntry>,
    /// The symbol map: what the files of the repository define.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<SymbolsEntry>,
    /// The list of the repository's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeEntry>,
    /// A short description of the repository, in place of the list of its files and the map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overview: Option<Text>,
    /// Overview and map as they would be chosen now, for a request that folds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_fold: Option<FoldDescriptionEntry>,
    /// Web pages that were fetched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<PageEntry>,
    /// `tiers`: whether the symbol map and the tree are sent.
    #[serde(default = "default_true")]
    pub use_repo_map: bool,
    /// `inline`: whether the directory map is sent.
    #[serde(default = "default_true")]
    pub directory_map: bool,
    /// The conversation so far, oldest message first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<AgentMessage>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Images for the prompt; one with a `path` is a context file in `inline`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageEntry>,
    /// Documents attached by id, for servers that take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Arc<str>>,
    /// The provider's own web search, where it is to be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web_search: Option<WebSearchEntry>,
    /// How much the model thinks before it answers; as much as it does by itself if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingEntry>,
    /// The user's new prompt; left out when the agent continues by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptEntry>,
    /// The id of the first message that no request has carried yet: from it on, the messages are
    /// new input.
    #[serde(rename = "fresh", default, skip_serializing_if = "Option::is_none")]
    pub first_unsent: Option<MessageId>,
    /// What the messages told the model about files, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_observations: Vec<ObservationEntry>,
    /// Texts that are for this request alone, after everything that is cached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ephemeral: Vec<EphemeralText>,
    /// How much of the conversation a fold may take out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep: KeepLevel,
    /// `panels`: when old messages leave the conversation for a frozen history panel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub detach: DetachLimits,
    /// For how long the provider is asked to keep what the request caches: `auto`, `5m` or `1h`.
    #[serde(default, skip_serializing_if = "LifetimeSetting::is_auto")]
    pub cache_lifetime: LifetimeSetting,
    /// How many pauses of the conversation outlasted the lifetimes of the provider's cache.
    #[serde(default, skip_serializing_if = "PauseCounts::is_empty")]
    pub pauses: PauseCounts,
    /// `strata`: fold with this request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fold: bool,
    /// `strata`: how much of what earlier requests cached has expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_cache: Option<LostCache>,
    /// What the layouts carry over from earlier requests, as `hardpan request --next-memory` writes
    /// it.
    #[serde(rename = "memory", default, skip_serializing_if = "LayoutState::is_empty")]
    #[schemars(with = "serde_json::Value")]
    pub layout_state: LayoutState,
    /// What each answer of the model came after, as a hash, by the id of its message; for models whose
    /// reasoning is bound to that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub answer_prefixes: BTreeMap<MessageId, Hash>,
    /// The messages whose reasoning is not sent any more, since something before it has changed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(with = "BTreeSet<String>")]
    pub stale_reasoning: BTreeSet<MessageId>,
    /// What was asked for but is not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<UnavailableEntry>,
}

/// Something that was asked for but is not available.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnavailableEntry {
    /// The key it would have as an item.
    pub key: String,
    /// Why it is not available, as a phrase.
    pub reason: String,
    /// The kind of reason, for programs; `unavailable` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<UnavailableCode>,
}

/// How much of what earlier requests cached has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LostCache {
    /// What was cached for the short lifetime.
    Short,
    /// Everything.
    All,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a message told the model about a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObservationEntry {
    /// The id of the message, a tool result.
    #[schemars(with = "String")]
    pub message: MessageId,
    /// What it told, as sessions store it: path, kind, hash, lines and the lines shown.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub observation: FileObservation,
}

fn default_true() -> bool {
    true
}

/// What the system prompt is made of.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SystemEntry {
    /// A complete system prompt from an extension; it replaces everything below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<Text>,
    /// The active agent's text; left out for the default agent (`system.md`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Text>,
    /// Project-specific instructions, in place of `system_extra.md`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra: Option<Text>,
    /// Text from the user's settings; it follows the tools' guidelines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append: Option<Text>,
    /// Instruction files such as AGENTS.md.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub project_files: Vec<ProjectFile>,
    /// Skills that the model is told about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Skill>,
    /// Which system prompt `inline` starts from.
    pub prompt_type: PromptType,
    /// The path of a custom prompt, for `"prompt_type": "custom"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_path: Option<Arc<str>>,
    /// The custom prompt's text; left out when the path could not be resolved: then a minimal
    /// prompt is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom: Option<Text>,
    /// Whether the model edits files by edit blocks in its text instead of by tools.
    pub edit_blocks: bool,
}

/// A file of project instructions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectFile {
    /// The path as the model is to see it.
    pub path: Arc<str>,
    /// The text of the file.
    pub content: Text,
}

/// An item with all its fields: a panel, or anything else that has no list of its own.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemEntry {
    /// The name the model sees in `panels`: `P1`. `chat` stands for the conversation and is never
    /// sent as an item.
    pub id: Arc<str>,
    /// Its unique key; `panel:ID` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Arc<str>>,
    /// What sort of thing it is: panel (default), file, symbols, legend, tree or page.
    #[serde(default = "default_item_kind")]
    pub kind: ItemKind,
    /// The title that is shown above the content.
    pub header: Arc<str>,
    /// What the model is to see.
    pub content: Text,
    /// When the content last changed, in milliseconds since 1970.
    #[serde(default)]
    pub last_refresh_ms: i64,
    /// Its tier in `tiers`; by its kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// For how many responses it has been unchanged.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub unchanged_responses: Option<u32>,
    /// How often it changes; by its kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volatility: Option<Volatility>,
    /// The message that already shows this content.
    #[serde(rename = "said_by", default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<MessageId>,
}

fn default_item_kind() -> ItemKind {
    ItemKind::Panel
}

/// A file that the model is to see whole.
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
    /// The kind of reason, for programs; `unreadable` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<UnavailableCode>,
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
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub unchanged_responses: Option<u32>,
    /// How often it changes; lively if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volatility: Option<Volatility>,
    /// The message that already shows this content.
    #[serde(rename = "said_by", default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<MessageId>,
}

/// The symbol map: what the files of the repository define.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymbolsEntry {
    /// The explanation of the map's abbreviations and path aliases.
    #[serde(default)]
    pub legend: Option<Text>,
    /// One entry per file.
    #[serde(default)]
    pub entries: Vec<SymbolEntry>,
}

/// How the repository is described from the next fold on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FoldDescriptionEntry {
    /// How often the layout had laid BASE anew when this was observed.
    pub bases: u32,
    /// The overview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overview: Option<Text>,
    /// The symbol map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<SymbolsEntry>,
}

/// One entry of the symbol map: what a file defines.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymbolEntry {
    /// The path of the file.
    pub path: String,
    /// The entry's text.
    pub content: Text,
    /// Its tier in `tiers`; L3 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// For how many responses it has been unchanged.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub unchanged_responses: Option<u32>,
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

/// A web page that was fetched.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageEntry {
    /// The address it was fetched from.
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

/// An image that goes with the prompt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageEntry {
    /// The file it was read from, if it is a context file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Arc<str>>,
    /// Its media type: `image/png`.
    pub media_type: MediaType,
    /// Its bytes in base64.
    pub data: Arc<str>,
    /// Width in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Height in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
}

/// The settings of the provider's own web search.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchEntry {
    /// How many results the model sees at most.
    #[serde(default = "default_max_results")]
    pub max_results: u32,
}

fn default_max_results() -> u32 {
    5
}

/// How much the model thinks before it answers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum ThinkingEntry {
    /// A budget.
    Budget {
        /// How many tokens it may think at most.
        budget_tokens: u32,
    },
    /// Off, or a level of effort.
    Level {
        /// `none` turns thinking off, as far as the model allows.
        effort: Effort,
    },
}

impl ThinkingEntry {
    /// The entry of a setting. `None` for what the model does by itself.
    pub fn new(setting: ThinkingSetting) -> Option<Self> {
        match setting {
            ThinkingSetting::Default => None,
            ThinkingSetting::Off => Some(ThinkingEntry::Level { effort: Effort::None }),
            ThinkingSetting::Level(effort) => Some(ThinkingEntry::Level { effort }),
            ThinkingSetting::Budget(budget_tokens) => Some(ThinkingEntry::Budget { budget_tokens }),
        }
    }

    /// The setting that the entry stands for.
    pub fn setting(self) -> ThinkingSetting {
        match self {
            ThinkingEntry::Budget { budget_tokens } => ThinkingSetting::Budget(budget_tokens),
            ThinkingEntry::Level { effort: Effort::None } => ThinkingSetting::Off,
            ThinkingEntry::Level { effort } => ThinkingSetting::Level(effort),
        }
    }
}

/// The user's new prompt: a string, or text with the id it will have as a message.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PromptEntry {
    /// The text; its id is `prompt`.
    Text(Text),
    /// The text with an id of its own.
    WithId {
        /// The id it will have as a message.
        id: MessageId,
        /// The text as typed.
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

/// The JSON schema of [`SnapshotFile`], as in `docs/snapshot.schema.json`.
pub fn snapshot_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(SnapshotFile).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "Hardpan snapshot, version 1".into());
    }
    schema
}

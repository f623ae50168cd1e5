//! The JSON form of a snapshot. Every field but `version` and `now` may be left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, Image, Item, Kind, LeftOut, MediaType, MessageId, Text, Thinking, Tier, Tool, Volatility,
    WebSearch,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{AgentMode, ContextImage, PromptType, Skill, Snapshot, SnapshotError, SystemParts, UserPrompt};
use crate::Memory;

/// The version this program reads and writes.
const VERSION: u32 = 1;
/// The first panel number given to a file that has none (seed a: P1 to P9 are the fixed panels).
const FIRST_FILE_PANEL: usize = 10;

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

impl SnapshotFile {
    /// A snapshot file of nothing at all.
    pub fn empty(now: Timestamp) -> Self {
        SnapshotFile {
            version: VERSION,
            now,
            working_directory: None,
            system: SystemEntry::default(),
            agent_mode: AgentMode::On,
            items: Vec::new(),
            files: Vec::new(),
            symbols: None,
            tree: None,
            pages: Vec::new(),
            use_repo_map: true,
            directory_map: true,
            messages: Vec::new(),
            tools: Vec::new(),
            images: Vec::new(),
            documents: Vec::new(),
            web_search: None,
            thinking: None,
            prompt: None,
            fold: false,
            memory: Memory::default(),
            unavailable: Vec::new(),
        }
    }

    /// Reads the JSON form; `source_name` is the file's name for error messages.
    pub fn parse(source_name: &str, json: &str) -> Result<Self, SnapshotError> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let malformed = |error: &serde_json::Error, path: String| {
            // serde_json appends the position, which stands at the front already.
            let message = error.to_string();
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(text, _)| text);
            SnapshotError::Malformed {
                source_name: source_name.to_owned(),
                line: error.line(),
                column: error.column(),
                message: message.to_owned(),
                path: if path == "." || path.is_empty() { String::new() } else { format!(" (at {path})") },
            }
        };
        let file: SnapshotFile = serde_path_to_error::deserialize(&mut deserializer)
            .map_err(|error| malformed(error.inner(), error.path().to_string()))?;
        deserializer.end().map_err(|error| malformed(&error, String::new()))?;
        if let Some((at, field, role)) = unknown_message_field(json) {
            let line = json[..at].matches('\n').count() + 1;
            let column = at - json[..at].rfind('\n').map_or(0, |newline| newline + 1) + 1;
            let message = format!("unknown field `{field}` in a message of the role `{role}`");
            let source_name = source_name.to_owned();
            return Err(SnapshotError::Malformed { source_name, line, column, message, path: String::new() });
        }
        if file.version != VERSION {
            let source_name = source_name.to_owned();
            return Err(SnapshotError::Version { source_name, found: file.version, known: VERSION });
        }
        Ok(file)
    }

    /// The snapshot it describes.
    pub fn into_snapshot(self, source_name: &str) -> Result<Snapshot, SnapshotError> {
        let mut unavailable: Vec<LeftOut> =
            self.unavailable.into_iter().map(|entry| LeftOut::new(entry.key, entry.reason)).collect();
        let mut items: Vec<Item> = self.items.into_iter().map(ItemEntry::into_item).collect();
        if let Some(tree) = self.tree {
            items.push(tree.into_item());
        }
        if let Some(symbols) = self.symbols {
            let legend = symbols.legend.filter(|legend| !legend.trim().is_empty());
            items.extend(legend.map(legend_item));
            items.extend(symbols.entries.into_iter().map(SymbolEntry::into_item));
        }
        let given = self.files.iter().filter_map(|file| file.id.clone());
        let taken: BTreeSet<Arc<str>> = items.iter().map(|item| item.id.clone()).chain(given).collect();
        let mut numbers =
            (FIRST_FILE_PANEL..).map(|n| Arc::from(format!("P{n}"))).filter(|id| !taken.contains(id));
        let mut number = || numbers.next().unwrap_or_default();
        for file in self.files {
            let id = file.id.clone().unwrap_or_else(&mut number);
            match file.into_item(id) {
                Ok(item) => items.push(item),
                Err(left_out) => unavailable.push(left_out),
            }
        }
        items.extend(self.pages.into_iter().map(|page| page.into_item(number())));
        let mut keys = BTreeSet::new();
        if let Some(twice) = items.iter().find(|item| !keys.insert(item.key.clone())) {
            let (source_name, key) = (source_name.to_owned(), twice.key.to_string());
            return Err(SnapshotError::DuplicateKey { source_name, key });
        }
        let images: Vec<ContextImage> = self.images.into_iter().map(ImageEntry::into_image).collect();
        for (index, image) in images.iter().enumerate() {
            let wrong = |error| SnapshotError::Image { source_name: source_name.to_owned(), index, error };
            image.image.check_data().and_then(|()| image.image.check()).map_err(wrong)?;
        }
        if let Some((index, problem)) = tool_problem(&self.tools) {
            return Err(SnapshotError::Tool { source_name: source_name.to_owned(), index, problem });
        }
        Ok(Snapshot {
            now: self.now,
            working_directory: self.working_directory,
            system: self.system.into_parts(),
            agent_mode: self.agent_mode,
            items,
            unavailable,
            use_repo_map: self.use_repo_map,
            directory_map: self.directory_map,
            messages: self.messages,
            tools: self.tools,
            images,
            documents: self.documents,
            web_search: self.web_search.map(|search| WebSearch { max_results: search.max_results }),
            thinking: self
                .thinking
                .map_or(Thinking::Off, |thinking| Thinking::Budget(thinking.budget_tokens)),
            prompt: self.prompt.and_then(PromptEntry::into_prompt),
            fold: self.fold,
            memory: self.memory,
        })
    }
}

impl SystemEntry {
    fn into_parts(self) -> SystemParts {
        SystemParts {
            agent: self.agent,
            extra: self.extra,
            append: self.append,
            project_files: self.project_files.into_iter().map(|file| (file.path, file.content)).collect(),
            skills: self.skills,
            prompt_type: self.prompt_type,
            custom: self.custom,
            edit_blocks: self.edit_blocks,
        }
    }
}

impl ItemEntry {
    fn into_item(self) -> Item {
        let volatility = self.volatility.unwrap_or(volatility_of(self.kind));
        Item {
            key: self.key.unwrap_or_else(|| format!("panel:{}", self.id).into()),
            id: self.id,
            kind: self.kind,
            title: self.header,
            body: self.content,
            changed_at_ms: self.last_refresh_ms,
            volatility,
            tier: self.tier,
            n: self.n,
            said_by: self.said_by,
        }
    }
}

fn volatility_of(kind: Kind) -> Volatility {
    match kind {
        Kind::Page => Volatility::Still,
        Kind::Legend | Kind::Symbols | Kind::Tree => Volatility::Calm,
        Kind::File | Kind::Panel | Kind::System | Kind::History | Kind::Tool => Volatility::Lively,
    }
}

fn item(kind: Kind, key: String, id: Arc<str>, title: &str, body: Text, changed_at_ms: i64) -> Item {
    Item {
        key: key.into(),
        id,
        kind,
        title: title.into(),
        body,
        changed_at_ms,
        volatility: volatility_of(kind),
        tier: None,
        n: None,
        said_by: None,
    }
}

fn legend_item(legend: Text) -> Item {
    item(Kind::Legend, "legend".into(), "legend".into(), "Symbol map legend", legend, 0)
}

impl FileEntry {
    fn into_item(self, id: Arc<str>) -> Result<Item, LeftOut> {
        let path = self.path.replace('\\', "/");
        let key = format!("file:{path}");
        let Some(content) = self.content else {
            return Err(LeftOut::new(key, self.reason.unwrap_or_else(|| "it could not be read".into())));
        };
        let file = item(Kind::File, key, id, &path, content, self.last_refresh_ms);
        let volatility = self.volatility.unwrap_or(file.volatility);
        Ok(Item { tier: self.tier, n: self.n, said_by: self.said_by, volatility, ..file })
    }
}

impl SymbolEntry {
    fn into_item(self) -> Item {
        let path = self.path.replace('\\', "/");
        let key = format!("symbols:{path}");
        let entry = item(Kind::Symbols, key.clone(), key.into(), &path, self.content, 0);
        Item { tier: self.tier, n: self.n, ..entry }
    }
}

impl TreeEntry {
    fn into_item(self) -> Item {
        let mut files: Vec<String> = self.files.iter().map(|path| path.replace('\\', "/")).collect();
        files.sort_unstable();
        files.dedup();
        item(
            Kind::Tree,
            "tree".into(),
            "P5".into(),
            "Tree",
            Text::new(files.join("\n")),
            self.last_refresh_ms,
        )
    }
}

impl PageEntry {
    fn into_item(self, id: Arc<str>) -> Item {
        let title = self.title.unwrap_or_else(|| self.url.clone());
        let mut body = self.content;
        if let Some(map) = self.symbol_map {
            body.push_str("\n\n");
            body.push_str(&map);
        }
        item(Kind::Page, format!("url:{}", self.url), id, &title, Text::new(body), self.last_refresh_ms)
    }
}

impl ImageEntry {
    fn into_image(self) -> ContextImage {
        let ImageEntry { path, media_type, data, width, height } = self;
        ContextImage { path, image: Image { media_type, data, width, height } }
    }
}

impl PromptEntry {
    fn into_prompt(self) -> Option<UserPrompt> {
        let (id, text) = match self {
            PromptEntry::Text(text) => (MessageId::from("prompt"), text),
            PromptEntry::WithId { id, text } => (id, text),
        };
        (!text.trim().is_empty()).then_some(UserPrompt { id, text })
    }
}

/// The first tool that no provider would take, and why.
fn tool_problem(tools: &[Tool]) -> Option<(usize, String)> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    tools.iter().enumerate().find_map(|(index, tool)| {
        let name = &*tool.name;
        let problem = if name.is_empty() || name.len() > 64 || !name.chars().all(is_valid) {
            format!("the name \"{name}\" should be 1 to 64 letters, digits, `_` or `-`")
        } else if tools[..index].iter().any(|other| other.name == tool.name) {
            format!("\"{name}\" is declared twice; rename one of them")
        } else if tool.parameters.value()["type"] != "object" {
            format!("the parameters of \"{name}\" should be a schema of \"type\": \"object\"")
        } else {
            return None;
        };
        Some((index, problem))
    })
}

/// The first field of a message that its role does not have: where its value stands, its name, the role.
fn unknown_message_field(json: &str) -> Option<(usize, String, String)> {
    #[derive(Deserialize)]
    struct Probe<'a> {
        #[serde(borrow, default)]
        messages: Vec<BTreeMap<String, &'a serde_json::value::RawValue>>,
    }
    let probe: Probe<'_> = serde_json::from_str(json).ok()?;
    probe.messages.iter().find_map(|fields| {
        let role: String = serde_json::from_str(fields.get("role")?.get()).ok()?;
        let (field, value) = fields.iter().find(|(field, _)| !AgentMessage::has_field(&role, field))?;
        // The value is a part of the text it was read from.
        let at = value.get().as_ptr() as usize - json.as_ptr() as usize;
        Some((at, field.clone(), role))
    })
}

/// The JSON schema of the format.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(SnapshotFile).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "Hardpan snapshot, version 1".into());
    }
    schema
}

//! From a [`SnapshotFile`] to a [`Snapshot`], with error messages that name the place of a mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_economy::PauseCounts;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{
    AgentMessage, Image, Item, ItemKind, MessageId, Omission, OmissionReason, Text, Tool, UnavailableCode,
    Volatility, WebSearch,
};
use jiff::Timestamp;
use serde::Deserialize;

use super::file::{
    FileEntry, ImageEntry, ItemEntry, LostCache, PageEntry, PromptEntry, SnapshotFile, SymbolEntry,
    SymbolsEntry, SystemEntry, ThinkingEntry, TreeEntry, UnavailableEntry,
};
use super::{
    AgentMode, ContextImage, FoldDescription, OVERVIEW_KEY, Snapshot, SnapshotError, SystemParts, UserPrompt,
};
use crate::knowledge::FileKnowledge;
use crate::{DetachLimits, FoldReason, KeepLevel, LayoutState, LifetimeSetting};

/// The version of the format that this program reads and writes.
const VERSION: u32 = 1;
/// The first panel number for files without an id: P1 to P9 are for panels such as the todo list.
const FIRST_FILE_PANEL: usize = 10;
/// The panel that shows what files there are.
const TREE_PANEL: &str = "P5";

impl SnapshotFile {
    /// A snapshot file without any context, conversation or prompt.
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
            overview: None,
            at_fold: None,
            pages: Vec::new(),
            use_repo_map: true,
            directory_map: true,
            messages: Vec::new(),
            tools: Vec::new(),
            images: Vec::new(),
            documents: Vec::new(),
            web_search: None,
            ephemeral: Vec::new(),
            thinking: None,
            answer_prefixes: BTreeMap::new(),
            stale_reasoning: BTreeSet::new(),
            prompt: None,
            first_unsent: None,
            file_observations: Vec::new(),
            keep: KeepLevel::default(),
            detach: DetachLimits::default(),
            cache_lifetime: LifetimeSetting::default(),
            pauses: PauseCounts::default(),
            fold: false,
            lost_cache: None,
            layout_state: LayoutState::default(),
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
        if let Some((at, field, role)) = find_unknown_message_field(json) {
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

    /// Converts it to a snapshot, and checks keys, images and tools. `source_name` is the file's
    /// name for error messages.
    pub fn into_snapshot(self, source_name: &str) -> Result<Snapshot, SnapshotError> {
        let mut unavailable: Vec<Omission> =
            self.unavailable.into_iter().map(UnavailableEntry::into_omission).collect();
        let mut items: Vec<Item> = self.items.into_iter().map(ItemEntry::into_item).collect();
        let tree_id = if self.tree.is_some() { OVERVIEW_KEY } else { TREE_PANEL };
        items.extend(self.tree.map(TreeEntry::into_item));
        items.extend(self.overview.map(|text| overview_item(tree_id.into(), text)));
        items.extend(self.symbols.into_iter().flat_map(SymbolsEntry::into_items));
        let at_fold = self.at_fold.map(|entry| {
            let overview = entry.overview.map(|text| overview_item(tree_id.into(), text));
            let symbols = entry.symbols.into_iter().flat_map(SymbolsEntry::into_items);
            Arc::new(FoldDescription {
                bases: entry.bases,
                items: overview.into_iter().chain(symbols).collect(),
            })
        });
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
        if let Some((index, problem)) = find_tool_problem(&self.tools) {
            return Err(SnapshotError::Tool { source_name: source_name.to_owned(), index, problem });
        }
        let mut knowledge = FileKnowledge::default();
        for told in self.file_observations {
            knowledge.record(&told.message, told.observation);
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
            thinking: self.thinking.map_or(ThinkingSetting::Default, ThinkingEntry::setting),
            prompt: self.prompt.and_then(PromptEntry::into_prompt),
            first_unsent: self.first_unsent,
            knowledge,
            keep: self.keep,
            detach: self.detach,
            cache_lifetime: self.cache_lifetime,
            pauses: self.pauses,
            stands_alone: false,
            fold: self.fold.then_some(FoldReason::Requested).or(self.lost_cache.map(|lost| match lost {
                LostCache::Short => FoldReason::ShortCacheLost,
                LostCache::All => FoldReason::CacheLost,
            })),
            at_fold,
            layout_state: self.layout_state,
            answer_prefixes: Arc::new(self.answer_prefixes),
            stale_reasoning: Arc::new(self.stale_reasoning),
            ephemeral: self.ephemeral,
            redactions: Arc::default(),
        })
    }
}

impl SystemEntry {
    fn into_parts(self) -> SystemParts {
        SystemParts {
            whole: self.whole,
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
        let volatility = self.volatility.unwrap_or(default_volatility(self.kind));
        Item {
            key: self.key.unwrap_or_else(|| format!("panel:{}", self.id).into()),
            id: self.id,
            kind: self.kind,
            title: self.header,
            body: self.content,
            changed_at_ms: self.last_refresh_ms,
            volatility,
            tier: self.tier,
            unchanged_responses: self.unchanged_responses,
            shown_by: self.shown_by,
        }
    }
}

fn default_volatility(kind: ItemKind) -> Volatility {
    match kind {
        ItemKind::Page => Volatility::Static,
        ItemKind::Legend | ItemKind::Symbols | ItemKind::Tree => Volatility::Slow,
        ItemKind::File | ItemKind::Panel | ItemKind::System | ItemKind::History | ItemKind::Tool => {
            Volatility::Active
        }
    }
}

fn new_item(kind: ItemKind, key: String, id: Arc<str>, title: &str, body: Text, changed_at_ms: i64) -> Item {
    Item {
        key: key.into(),
        id,
        kind,
        title: title.into(),
        body,
        changed_at_ms,
        volatility: default_volatility(kind),
        tier: None,
        unchanged_responses: None,
        shown_by: None,
    }
}

fn legend_item(legend: Text) -> Item {
    new_item(ItemKind::Legend, "legend".into(), "legend".into(), "Symbol map legend", legend, 0)
}

/// The overview stands where a layout shows the tree, so it is of the same kind.
fn overview_item(id: Arc<str>, text: Text) -> Item {
    new_item(ItemKind::Tree, OVERVIEW_KEY.into(), id, "Overview", text, 0)
}

impl UnavailableEntry {
    fn into_omission(self) -> Omission {
        let UnavailableEntry { key, reason: detail, code } = self;
        let code = code.unwrap_or_default();
        Omission::of_item(key, OmissionReason::Unavailable { code, detail })
    }
}

impl FileEntry {
    fn into_item(self, id: Arc<str>) -> Result<Item, Omission> {
        let path = self.path.replace('\\', "/");
        let key = format!("file:{path}");
        let Some(content) = self.content else {
            let code = self.code.unwrap_or(UnavailableCode::Unreadable);
            let detail = self.reason.unwrap_or_else(|| "it could not be read".into());
            return Err(Omission::of_item(key, OmissionReason::Unavailable { code, detail }));
        };
        let file = new_item(ItemKind::File, key, id, &path, content, self.last_refresh_ms);
        let volatility = self.volatility.unwrap_or(file.volatility);
        Ok(Item {
            tier: self.tier,
            unchanged_responses: self.unchanged_responses,
            shown_by: self.shown_by,
            volatility,
            ..file
        })
    }
}

impl SymbolsEntry {
    fn into_items(self) -> impl Iterator<Item = Item> {
        let legend = self.legend.filter(|legend| !legend.trim().is_empty()).map(legend_item);
        legend.into_iter().chain(self.entries.into_iter().map(SymbolEntry::into_item))
    }
}

impl SymbolEntry {
    fn into_item(self) -> Item {
        let path = self.path.replace('\\', "/");
        let key = format!("symbols:{path}");
        let entry = new_item(ItemKind::Symbols, key.clone(), key.into(), &path, self.content, 0);
        Item { tier: self.tier, unchanged_responses: self.unchanged_responses, ..entry }
    }
}

impl TreeEntry {
    fn into_item(self) -> Item {
        let mut files: Vec<String> = self.files.iter().map(|path| path.replace('\\', "/")).collect();
        files.sort_unstable();
        files.dedup();
        new_item(
            ItemKind::Tree,
            "tree".into(),
            TREE_PANEL.into(),
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
        new_item(
            ItemKind::Page,
            format!("url:{}", self.url),
            id,
            &title,
            Text::new(body),
            self.last_refresh_ms,
        )
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

/// The position of the first tool that providers would reject, and what is wrong with it.
fn find_tool_problem(tools: &[Tool]) -> Option<(usize, String)> {
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

/// Finds the first field of a message that its role does not have. Returns the byte offset of its
/// value, its name, and the role.
fn find_unknown_message_field(json: &str) -> Option<(usize, String, String)> {
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

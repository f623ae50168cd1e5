//! Where a block of the prompt came from, and which region of the layout it belongs to.
//!
//! The principal type is [`Origin`]. Breakdowns, bills and cache verdicts all group tokens by it.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MessageId;

/// What a piece of the prompt is: an item of some kind, or one of the parts around the items. Each
/// kind is a column of the breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The system prompt, the agent's instructions and project files included.
    System,
    /// The symbol map's legend: abbreviations and path aliases.
    Legend,
    /// A symbol map entry: what one file defines.
    Symbols,
    /// The list of the repository's files.
    Tree,
    /// The content of a file.
    File,
    /// The text of a fetched web page.
    Page,
    /// A panel: todo list, memories, git status, consoles, the clock.
    Panel,
    /// The conversation, the current prompt included.
    History,
    /// The declaration of a tool: name, description and schema.
    Tool,
}

impl ItemKind {
    /// Every kind, in the order of the breakdown.
    pub const ALL: [ItemKind; 9] = [
        ItemKind::System,
        ItemKind::Legend,
        ItemKind::Symbols,
        ItemKind::Tree,
        ItemKind::File,
        ItemKind::Page,
        ItemKind::History,
        ItemKind::Panel,
        ItemKind::Tool,
    ];

    /// Name of the kind's column in the breakdown, mostly a plural: `files`.
    pub fn column_name(self) -> &'static str {
        match self {
            ItemKind::System => "system",
            ItemKind::Legend => "legend",
            ItemKind::Symbols => "symbol_map",
            ItemKind::Tree => "tree",
            ItemKind::File => "files",
            ItemKind::Page => "urls",
            ItemKind::Panel => "panels",
            ItemKind::History => "history",
            ItemKind::Tool => "tools",
        }
    }

    /// Name of a single thing of this kind, as JSON output spells it: `file`.
    pub fn name(self) -> &'static str {
        match self {
            ItemKind::System => "system",
            ItemKind::Legend => "legend",
            ItemKind::Symbols => "symbols",
            ItemKind::Tree => "tree",
            ItemKind::File => "file",
            ItemKind::Page => "url",
            ItemKind::Panel => "panel",
            ItemKind::History => "history",
            ItemKind::Tool => "tool",
        }
    }
}

/// How a segment relates to the item it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemCopy {
    /// The item's body as it is now.
    Current,
    /// A diff that brings an earlier copy up to date.
    Update,
    /// An earlier body that is still sent but no longer true.
    Former,
    /// A line that says where the body went.
    Stub,
}

/// What put a piece of text into the prompt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An item: a file, a panel, a page.
    Item {
        /// The item's key, such as `file:src/a.rs`.
        key: Arc<str>,
        /// Whether the segment shows the current body, an earlier one, a diff or a stub.
        copy: ItemCopy,
    },
    /// A message of the conversation, by id.
    Message(MessageId),
    /// A declared tool, by name.
    Tool(Arc<str>),
    /// The layout itself: a header, an "Ok." reply, a footer. The name identifies the rule.
    Rule(&'static str),
}

/// The origin of a block or segment: what it is, and what put it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The column of the breakdown that its tokens count towards.
    pub kind: ItemKind,
    /// The item, message, tool or layout rule that put it there.
    pub source: Source,
}

impl Origin {
    /// The origin of text that a layout adds by a rule of its own.
    pub fn rule(kind: ItemKind, name: &'static str) -> Self {
        Origin { kind, source: Source::Rule(name) }
    }

    /// The origin of text that belongs to a message of the conversation.
    pub fn message(id: &MessageId) -> Self {
        Origin { kind: ItemKind::History, source: Source::Message(id.clone()) }
    }

    /// The origin of text that shows an item.
    pub fn item(kind: ItemKind, key: &Arc<str>, copy: ItemCopy) -> Self {
        Origin { kind, source: Source::Item { key: key.clone(), copy } }
    }

    /// Whether a layout added the text, rather than a person, the model or a file.
    pub fn is_rule(&self) -> bool {
        matches!(self.source, Source::Rule(_))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Item { key, copy: ItemCopy::Current } => write!(f, "{key}"),
            Source::Item { key, copy: ItemCopy::Update } => write!(f, "{key} (update)"),
            Source::Item { key, copy: ItemCopy::Former } => write!(f, "{key} (former copy)"),
            Source::Item { key, copy: ItemCopy::Stub } => write!(f, "{key} (stub)"),
            Source::Message(id) => write!(f, "message:{id}"),
            Source::Tool(name) => write!(f, "tool:{name}"),
            Source::Rule(name) => write!(f, "rule:{name}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// The region of its layout that a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Region {
    /// `tiers`: the most stable tier, unchanged for 12 responses or more.
    L0,
    /// `tiers`: unchanged for 9 responses or more.
    L1,
    /// `tiers`: unchanged for 6 responses or more.
    L2,
    /// `tiers`: unchanged for 3 responses or more, the first cached tier that an item enters.
    L3,
    /// `tiers`: everything that changed recently; never cached.
    #[serde(rename = "active")]
    Active,
    /// `strata` and `panels`: tools, system prompt and, in `strata`, the items.
    #[serde(rename = "base")]
    Base,
    /// `strata` and `panels`: the conversation.
    #[serde(rename = "log")]
    Log,
    /// `strata`: what changes every turn; never cached.
    #[serde(rename = "tail")]
    Tail,
    /// `panels`: the panels, between the system prompt and the conversation.
    #[serde(rename = "panel")]
    Panel,
    /// `inline`: the whole prompt, since the layout has no regions.
    #[serde(rename = "inline")]
    Inline,
}

impl Region {
    /// The name that breakdowns and JSON output use.
    pub fn name(self) -> &'static str {
        match self {
            Region::L0 => "L0",
            Region::L1 => "L1",
            Region::L2 => "L2",
            Region::L3 => "L3",
            Region::Active => "active",
            Region::Base => "base",
            Region::Log => "log",
            Region::Tail => "tail",
            Region::Panel => "panel",
            Region::Inline => "inline",
        }
    }

    /// Whether its blocks are not meant to stay for the next request, so that no layout relies on
    /// their being cached.
    pub fn is_transient(self) -> bool {
        matches!(self, Region::Tail | Region::Active)
    }
}

/// How long the provider is asked to keep a cache entry after its last use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum CacheLifetime {
    /// Five minutes, the default of Anthropic's `cache_control`.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour, at a higher price for writing.
    #[serde(rename = "1h")]
    OneHour,
}

impl CacheLifetime {
    /// The provider's own name for it, the `ttl` of `cache_control`.
    pub fn name(self) -> &'static str {
        match self {
            CacheLifetime::FiveMinutes => "5m",
            CacheLifetime::OneHour => "1h",
        }
    }
}

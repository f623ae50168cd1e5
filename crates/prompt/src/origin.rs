//! Where a block came from, and where in the request it stands.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::MessageId;

/// What sort of thing a piece of the prompt is: the columns of the breakdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The system prompt.
    System,
    /// The symbol map's legend: abbreviations and path aliases.
    Legend,
    /// A symbol map entry: what one file defines.
    Symbols,
    /// The list of the repository's files.
    Tree,
    /// A file's content.
    File,
    /// A web page.
    Page,
    /// A panel: todo list, memories, git status, consoles, the clock.
    Panel,
    /// The conversation, the current prompt included.
    History,
    /// A declared tool.
    Tool,
}

impl Kind {
    /// Every kind, in the order of the breakdown.
    pub const ALL: [Kind; 9] = [
        Kind::System,
        Kind::Legend,
        Kind::Symbols,
        Kind::Tree,
        Kind::File,
        Kind::Page,
        Kind::History,
        Kind::Panel,
        Kind::Tool,
    ];

    /// The name of its column in the breakdown.
    pub fn column(self) -> &'static str {
        match self {
            Kind::System => "system",
            Kind::Legend => "legend",
            Kind::Symbols => "symbol_map",
            Kind::Tree => "tree",
            Kind::File => "files",
            Kind::Page => "urls",
            Kind::Panel => "panels",
            Kind::History => "history",
            Kind::Tool => "tools",
        }
    }

    /// The word for one of its kind.
    pub fn word(self) -> &'static str {
        match self {
            Kind::System => "system",
            Kind::Legend => "legend",
            Kind::Symbols => "symbols",
            Kind::Tree => "tree",
            Kind::File => "file",
            Kind::Page => "url",
            Kind::Panel => "panel",
            Kind::History => "history",
            Kind::Tool => "tool",
        }
    }
}

/// How a segment stands to the item it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Copy {
    /// The item's body as it is now.
    Current,
    /// What makes the body current on top of a former copy: a diff.
    Update,
    /// A body that is no longer true but still sent.
    Former,
    /// A line that says where the body went.
    Stub,
}

/// Who put a piece of text into the prompt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An item of the workspace.
    Item {
        /// The item's key, such as `file:src/a.rs`.
        key: Arc<str>,
        /// Whether this is its current body.
        copy: Copy,
    },
    /// A message of the conversation.
    Message(MessageId),
    /// A declared tool.
    Tool(Arc<str>),
    /// A rule of the layout: a header, an "Ok." reply, a footer.
    Rule(&'static str),
}

/// The origin of a block or segment: its kind and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// What sort of thing it is.
    pub kind: Kind,
    /// Who put it there.
    pub source: Source,
}

impl Origin {
    /// From a rule of the layout.
    pub fn rule(kind: Kind, name: &'static str) -> Self {
        Origin { kind, source: Source::Rule(name) }
    }

    /// From a message.
    pub fn message(id: &MessageId) -> Self {
        Origin { kind: Kind::History, source: Source::Message(id.clone()) }
    }

    /// From an item.
    pub fn item(kind: Kind, key: &Arc<str>, copy: Copy) -> Self {
        Origin { kind, source: Source::Item { key: key.clone(), copy } }
    }

    /// Whether a rule made it, not a person, a model or a file.
    pub fn is_rule(&self) -> bool {
        matches!(self.source, Source::Rule(_))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Item { key, copy: Copy::Current } => write!(f, "{key}"),
            Source::Item { key, copy: Copy::Update } => write!(f, "{key} (update)"),
            Source::Item { key, copy: Copy::Former } => write!(f, "{key} (former copy)"),
            Source::Item { key, copy: Copy::Stub } => write!(f, "{key} (stub)"),
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

/// Which region of its layout a block stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Place {
    /// `tiers`: the most stable tier.
    L0,
    /// `tiers`: very stable.
    L1,
    /// `tiers`: stable.
    L2,
    /// `tiers`: the entry tier.
    L3,
    /// `tiers`: what changes; never cached.
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
    /// `panels`: the panels.
    #[serde(rename = "panel")]
    Panel,
    /// `inline`: everything.
    #[serde(rename = "inline")]
    Inline,
}

impl Place {
    /// The name used in breakdowns.
    pub fn name(self) -> &'static str {
        match self {
            Place::L0 => "L0",
            Place::L1 => "L1",
            Place::L2 => "L2",
            Place::L3 => "L3",
            Place::Active => "active",
            Place::Base => "base",
            Place::Log => "log",
            Place::Tail => "tail",
            Place::Panel => "panel",
            Place::Inline => "inline",
        }
    }
}

/// How long a cache entry is asked to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Lifetime {
    /// Five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour.
    #[serde(rename = "1h")]
    OneHour,
}

impl Lifetime {
    /// The provider's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Lifetime::FiveMinutes => "5m",
            Lifetime::OneHour => "1h",
        }
    }
}

/// Something the snapshot holds that the prompt does not, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The item's key, or `message:ID`, or `call:ID`.
    pub key: String,
    /// Why, in words for a person.
    pub reason: String,
}

impl LeftOut {
    /// Names what was left out and why.
    pub fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        LeftOut { key: key.into(), reason: reason.into() }
    }
}

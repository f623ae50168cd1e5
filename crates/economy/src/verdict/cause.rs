//! Why a cached prefix was not read, and who is to blame.

use std::sync::Arc;

use hardpan_prompt::ChangedPart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::server_tools::ToolChanges;
use crate::format::{format_minutes, format_number};

/// Who caused a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Hardpan: it laid out a different prompt.
    Us,
    /// An extension: it changed the request before the end of what was cached.
    Extension,
    /// The provider: its caching rules, or its cache.
    Provider,
    /// The person: another model, another setting, a long pause.
    Person,
    /// Nobody, because nothing was lost.
    Nobody,
}

/// What happened to an item or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentChange {
    /// Its text is different.
    Changed,
    /// It is new, and appears before the end of what was cached.
    Added,
    /// It is no longer in the prompt.
    Removed,
    /// Its text is the same, but at another position.
    Moved,
}

impl ContentChange {
    fn describe(self) -> &'static str {
        match self {
            ContentChange::Changed => "changed",
            ContentChange::Added => "was put in before what was cached",
            ContentChange::Removed => "was taken out",
            ContentChange::Moved => "was moved",
        }
    }
}

/// Why a request read less than the previous one had left in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Everything that was expected was read.
    AsExpected,
    /// The conversation had nothing in the cache yet, though another one may have shared its
    /// beginning.
    FirstRequest,
    /// The declared tools changed. If all three lists are empty, only their order did.
    ToolsChanged {
        /// Names of new tools.
        added: Vec<Arc<str>>,
        /// Names of tools that are gone.
        removed: Vec<Arc<str>>,
        /// Names of tools with another description or schema.
        changed: Vec<Arc<str>>,
        /// Servers whose part changed of the list in which the model finds tools that are not declared.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        listed: Vec<Arc<str>>,
    },
    /// The system prompt changed, from this segment on.
    SystemChanged(String),
    /// An item changed before the end of what was cached.
    ItemChanged {
        /// The item's key: `file:src/a.rs`.
        key: Arc<str>,
        /// What happened to the item.
        how: ContentChange,
    },
    /// A message changed before the end of what was cached.
    MessageChanged {
        /// The message's id.
        id: Arc<str>,
        /// What happened to the message.
        how: ContentChange,
    },
    /// An extension changed the request before the end of what was cached.
    ChangedByExtension {
        /// Name of the extension.
        extension: Arc<str>,
        /// What it changed.
        change: Box<Cause>,
    },
    /// Text that the layout adds by itself changed: a header, a footer.
    LayoutChanged(String),
    /// The conversation got its first image; messages are cached separately with and without
    /// images.
    ImageAdded,
    /// The conversation lost its last image.
    ImageRemoved,
    /// The thinking budget changed.
    ThinkingChanged,
    /// The reasoning effort changed.
    EffortChanged,
    /// Another setting that is part of the cache keys changed: web search, citations, tool choice,
    /// parallel tools.
    SettingChanged(String),
    /// Another model, which has a cache of its own.
    ModelChanged {
        /// Id of the previous model.
        from: Arc<str>,
        /// Id of the current model.
        to: Arc<str>,
    },
    /// Another provider, which has a cache of its own.
    ProviderChanged {
        /// Id of the previous provider.
        from: Arc<str>,
        /// Id of the current provider.
        to: Arc<str>,
    },
    /// Another process resumed the session, and what it sent was not what had been cached.
    Resumed,
    /// A fold laid out the items anew.
    Folded,
    /// A summary replaced older messages.
    Compacted,
    /// The cache was idle for longer than its lifetime.
    Expired {
        /// How long the cache was idle, in minutes.
        minutes: u64,
        /// The cache's lifetime, in minutes.
        lifetime: u64,
        /// The longer lifetime that the provider offers, in minutes, where that would have outlived
        /// the pause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        avoidable_by: Option<u64>,
    },
    /// The next breakpoint is further from the last entry than the provider looks back.
    TooManyNewBlocks {
        /// Number of blocks between the two.
        blocks: usize,
        /// How many blocks the provider looks back, the marked block included.
        look_back: u32,
    },
    /// No breakpoint is at or after what was cached, or nothing was cached for lack of a
    /// breakpoint.
    Unmarked,
    /// The prefix is smaller than the provider keeps.
    BelowMinimum {
        /// Size of the prefix, in tokens.
        tokens: u64,
        /// The smallest prefix that the provider keeps, in tokens.
        minimum: u64,
    },
    /// The provider names another cause than the one that we found.
    SaidByProvider {
        /// The part of the request that differs, according to the provider.
        part: ChangedPart,
    },
    /// The prompts agree, the entry was young enough and within reach, and yet the provider did not
    /// read it.
    Evicted,
}

impl Cause {
    /// The cause's name in tables and JSON: `tools_changed`.
    pub fn name(&self) -> &'static str {
        match self {
            Cause::AsExpected => "as_expected",
            Cause::FirstRequest => "first_request",
            Cause::ToolsChanged { .. } => "tools_changed",
            Cause::SystemChanged(_) => "system_changed",
            Cause::ItemChanged { .. } => "item_changed",
            Cause::MessageChanged { .. } => "message_changed",
            Cause::ChangedByExtension { .. } => "changed_by_extension",
            Cause::LayoutChanged(_) => "layout_changed",
            Cause::ImageAdded => "image_added",
            Cause::ImageRemoved => "image_removed",
            Cause::ThinkingChanged => "thinking_changed",
            Cause::EffortChanged => "effort_changed",
            Cause::SettingChanged(_) => "setting_changed",
            Cause::ModelChanged { .. } => "model_changed",
            Cause::ProviderChanged { .. } => "provider_changed",
            Cause::Resumed => "resumed",
            Cause::Folded => "folded",
            Cause::Compacted => "compacted",
            Cause::Expired { .. } => "expired",
            Cause::TooManyNewBlocks { .. } => "too_many_new_blocks",
            Cause::Unmarked => "unmarked",
            Cause::BelowMinimum { .. } => "below_minimum",
            Cause::SaidByProvider { .. } => "said_by_provider",
            Cause::Evicted => "evicted",
        }
    }

    /// The MCP server whose tools changed, if nothing else did.
    pub fn server(&self) -> Option<&str> {
        match self {
            Cause::ToolsChanged { added, removed, changed, listed } => {
                ToolChanges::new(added, removed, changed, listed).only_server()
            }
            _ => None,
        }
    }

    /// Under which name losses of this cause are added up: those of an extension or a server under its own.
    pub fn account(&self) -> Arc<str> {
        match self {
            Cause::ChangedByExtension { extension, .. } => format!("extension {extension}").into(),
            cause => match cause.server() {
                Some(server) => format!("MCP server {server}").into(),
                None => cause.name().into(),
            },
        }
    }

    /// The cause as the second half of a sentence.
    pub fn describe(&self) -> String {
        match self {
            Cause::AsExpected => "all that was cached was read".into(),
            Cause::FirstRequest => "the first request of a conversation finds nothing cached".into(),
            Cause::ToolsChanged { added, removed, changed, listed } => {
                ToolChanges::new(added, removed, changed, listed).describe()
            }
            Cause::SystemChanged(segment) => format!("the system prompt changed ({segment})"),
            Cause::ItemChanged { key, how } => format!("{key} {}", how.describe()),
            Cause::MessageChanged { id, how } => format!("message {id} {}", how.describe()),
            Cause::ChangedByExtension { extension, change } => {
                format!("the extension {extension} changed the request: {}", change.describe())
            }
            Cause::LayoutChanged(rule) => format!("a text of the layout changed ({rule})"),
            Cause::ImageAdded => "an image was added to a conversation without images".into(),
            Cause::ImageRemoved => "the last image was taken out of the conversation".into(),
            Cause::ThinkingChanged => "the thinking setting changed".into(),
            Cause::EffortChanged => "the effort setting changed".into(),
            Cause::SettingChanged(name) => format!("a setting changed ({name})"),
            Cause::ModelChanged { from, to } => format!("the model changed from {from} to {to}"),
            Cause::ProviderChanged { from, to } => format!("the provider changed from {from} to {to}"),
            Cause::Resumed => "the session was resumed by another process".into(),
            Cause::Folded => "a fold laid the items anew".into(),
            Cause::Compacted => "the conversation was compacted".into(),
            Cause::Expired { minutes: idle, lifetime, avoidable_by } => {
                let longer = avoidable_by
                    .map(|longer| format!("; a lifetime of {} would have kept it", format_minutes(longer)));
                format!(
                    "the cache expired after {} ({} unused{})",
                    format_minutes(*lifetime),
                    format_minutes(*idle),
                    longer.unwrap_or_default(),
                )
            }
            Cause::TooManyNewBlocks { blocks, look_back } => {
                format!("{blocks} new blocks came at once, and the provider looks back {look_back}")
            }
            Cause::Unmarked => "no breakpoint was set from which a cached prefix is found".into(),
            Cause::BelowMinimum { tokens, minimum } => {
                let (tokens, minimum) = (format_number(*tokens), format_number(*minimum));
                format!("a prefix of {tokens} tokens is under the {minimum} that the provider keeps")
            }
            Cause::SaidByProvider { part } => format!("the provider says that {part} changed"),
            Cause::Evicted => "nothing of ours differs, and the provider no longer had it".into(),
        }
    }
}

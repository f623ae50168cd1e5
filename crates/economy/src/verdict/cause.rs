//! Why a cache was not read, and whose doing that was.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::format::{format_list, format_minutes, format_number};

/// Whose doing a loss was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Ours: the prompt that this program laid out was another one.
    Us,
    /// The provider's: its rules, or its cache.
    Provider,
    /// The person's: another model, another setting, a long silence.
    Person,
    /// Nobody's: nothing was lost.
    Nobody,
}

/// What happened to an item or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentChange {
    /// It says something else.
    Changed,
    /// It appeared before what was cached.
    Added,
    /// It is gone.
    Removed,
    /// It stands elsewhere.
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

/// Why a request read less than the one before it had left in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// All that was expected was read.
    AsExpected,
    /// The conversation had nothing in the cache yet; another one may have had the same beginning there.
    FirstRequest,
    /// The tools are others. With all three lists empty their order is another.
    ToolsChanged {
        /// New ones.
        added: Vec<Arc<str>>,
        /// Those that are gone.
        removed: Vec<Arc<str>>,
        /// Those with another description or schema.
        changed: Vec<Arc<str>>,
    },
    /// The system prompt is another, from this segment on.
    SystemChanged(String),
    /// An item changed before the end of what was cached.
    ItemChanged {
        /// Its key.
        key: Arc<str>,
        /// What happened to it.
        how: ContentChange,
    },
    /// A message changed before the end of what was cached.
    MessageChanged {
        /// Its id.
        id: Arc<str>,
        /// What happened to it.
        how: ContentChange,
    },
    /// A text of the layout's own changed: a header, a footer.
    LayoutChanged(String),
    /// The first image of the conversation: the messages are cached apart with and without images.
    ImageAdded,
    /// The last image is gone.
    ImageRemoved,
    /// Whether or how far the model thinks.
    ThinkingChanged,
    /// The effort asked for.
    EffortChanged,
    /// Another setting that the cache depends on: web search, citations, tool choice, parallel tools.
    SettingChanged(String),
    /// Each model has a cache of its own.
    ModelChanged {
        /// The model before.
        from: Arc<str>,
        /// The model now.
        to: Arc<str>,
    },
    /// So has each provider.
    ProviderChanged {
        /// The provider before.
        from: Arc<str>,
        /// The provider now.
        to: Arc<str>,
    },
    /// The session was resumed by another process, and what it sent was not what had been cached.
    Resumed,
    /// BASE was laid anew.
    Folded,
    /// A summary took the place of older messages.
    Compacted,
    /// The cache was not used for longer than it lives.
    Expired {
        /// How long it had not been used.
        minutes: u64,
        /// How long it lives, in minutes.
        lifetime: u64,
    },
    /// The next breakpoint is further from the last entry than the provider looks back.
    TooManyNewBlocks {
        /// The blocks between the two.
        blocks: usize,
        /// How far the provider looks, the marked block included.
        look_back: u32,
    },
    /// No breakpoint stands at or after what was cached, or nothing was cached because there was none.
    Unmarked,
    /// The prefix is smaller than the provider keeps.
    BelowMinimum {
        /// The prefix, in tokens.
        tokens: u64,
        /// The smallest that is kept.
        minimum: u64,
    },
    /// Nothing of ours differs, the entry was young enough and within reach, and still it was not read.
    Evicted,
}

impl Cause {
    /// Its name, for tables and files.
    pub fn name(&self) -> &'static str {
        match self {
            Cause::AsExpected => "as_expected",
            Cause::FirstRequest => "first_request",
            Cause::ToolsChanged { .. } => "tools_changed",
            Cause::SystemChanged(_) => "system_changed",
            Cause::ItemChanged { .. } => "item_changed",
            Cause::MessageChanged { .. } => "message_changed",
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
            Cause::Evicted => "evicted",
        }
    }

    /// The cause in words, as the second half of a sentence.
    pub fn describe(&self) -> String {
        match self {
            Cause::AsExpected => "all that was cached was read".into(),
            Cause::FirstRequest => "the first request of a conversation finds nothing cached".into(),
            Cause::ToolsChanged { added, removed, changed } => {
                let named = [("added", added), ("removed", removed), ("changed", changed)];
                let named = named.iter().filter(|(_, names)| !names.is_empty());
                let named: Vec<String> =
                    named.map(|(what, names)| format!("{what} {}", format_list(names))).collect();
                match named.is_empty() {
                    true => "the tools came in another order".into(),
                    false => format!("the tools changed ({})", named.join("; ")),
                }
            }
            Cause::SystemChanged(segment) => format!("the system prompt changed ({segment})"),
            Cause::ItemChanged { key, how } => format!("{key} {}", how.describe()),
            Cause::MessageChanged { id, how } => format!("message {id} {}", how.describe()),
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
            Cause::Expired { minutes: idle, lifetime } => {
                format!("the cache expired after {} ({} unused)", format_minutes(*lifetime), format_minutes(*idle))
            }
            Cause::TooManyNewBlocks { blocks, look_back } => {
                format!("{blocks} new blocks came at once, and the provider looks back {look_back}")
            }
            Cause::Unmarked => "no breakpoint was set from which a cached prefix is found".into(),
            Cause::BelowMinimum { tokens, minimum } => {
                let (tokens, minimum) = (format_number(*tokens), format_number(*minimum));
                format!("a prefix of {tokens} tokens is under the {minimum} that the provider keeps")
            }
            Cause::Evicted => "nothing of ours differs, and the provider no longer had it".into(),
        }
    }
}

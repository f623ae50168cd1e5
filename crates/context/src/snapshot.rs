//! Everything a request depends on, as one value.

mod file; // the JSON form: docs/snapshot.md
mod reading; // from the JSON form to a snapshot

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Image, Item, Kind, LeftOut, MessageId, Text, Tool};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Memory;

pub use file::{
    FileEntry, ImageEntry, ItemEntry, PageEntry, ProjectFile, PromptEntry, SnapshotFile, SymbolEntry,
    SymbolsEntry, SystemEntry, ThinkingEntry, TreeEntry, Unavailable, WebSearchEntry, schema,
};

/// A snapshot that cannot be used.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The JSON is malformed, or is not a snapshot.
    #[error(
        "{source_name}:{line}:{column}: {message}{path}\nThe format is described in docs/snapshot.md; `hardpan snapshot` makes one."
    )]
    Malformed {
        /// The file.
        source_name: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        message: String,
        /// ` (at messages[3])`, where known.
        path: String,
    },
    /// The version is not ours.
    #[error("{source_name}: snapshot version {found} is not known; this program reads version {known}")]
    Version {
        /// The file.
        source_name: String,
        /// The version found.
        found: u32,
        /// The version read.
        known: u32,
    },
    /// Two items have one key.
    #[error("{source_name}: two items have the key `{key}`; keys must be unique")]
    DuplicateKey {
        /// The file.
        source_name: String,
        /// The key.
        key: String,
    },
    /// A declared tool is one that no provider takes.
    #[error("{source_name}: tools[{index}]: {problem}")]
    Tool {
        /// The file.
        source_name: String,
        /// Which of the tools, from 0.
        index: usize,
        /// What is wrong, and how it should be.
        problem: String,
    },
    /// An image breaks a limit.
    #[error("{source_name}: image {index}: {error}")]
    Image {
        /// The file.
        source_name: String,
        /// Which of the images, from 0.
        index: usize,
        /// Why.
        error: hardpan_prompt::ImageError,
    },
}

/// Whether tools are in use (seed e's Agent Mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentMode {
    /// The model may call tools.
    #[default]
    On,
    /// It may not, and `inline` strips earlier calls.
    Off,
}

/// Which prompt `inline` starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptType {
    /// The default agent's prompt.
    #[default]
    General,
    /// The agent prompt by itself: it is not prefixed again.
    Agent,
    /// A prompt of the user's, found by its path.
    Custom,
}

/// The pieces of the system prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemParts {
    /// The whole system prompt, in place of everything below: an extension's.
    pub whole: Option<Text>,
    /// The active agent's text; none for the default agent.
    pub agent: Option<Text>,
    /// `system_extra.md`, in place of the one among the texts.
    pub extra: Option<Text>,
    /// Text from settings, after the guidelines.
    pub append: Option<Text>,
    /// AGENTS.md and its kind: path and content.
    pub project_files: Vec<(Arc<str>, Text)>,
    /// Skills: name, description, location.
    pub skills: Vec<Skill>,
    /// Which prompt `inline` starts from.
    pub prompt_type: PromptType,
    /// The custom prompt's text; none if its path could not be resolved.
    pub custom: Option<Text>,
    /// Whether changes are made by edit blocks.
    pub edit_blocks: bool,
}

/// A skill the model may read up on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Where its file is.
    pub location: String,
}

/// An image attached to the prompt, or given as a context file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextImage {
    /// The file it was read from, if it stands for a file.
    pub path: Option<Arc<str>>,
    /// The image.
    pub image: Image,
}

/// What the person just typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPrompt {
    /// The id it will have as a message.
    pub id: MessageId,
    /// The text.
    pub text: Text,
}

/// Everything a request depends on, except the provider, the model, the layout and the texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The one clock.
    pub now: Timestamp,
    /// Where the agent works.
    pub working_directory: Option<Arc<str>>,
    /// The pieces of the system prompt.
    pub system: SystemParts,
    /// Whether tools are in use.
    pub agent_mode: AgentMode,
    /// Keyed context, in the order given.
    pub items: Vec<Item>,
    /// What was asked for but could not be had: unreadable files, for one.
    pub unavailable: Vec<LeftOut>,
    /// `tiers`: whether the symbol map and the tree are sent.
    pub use_repo_map: bool,
    /// `inline`: whether the directory map is sent.
    pub directory_map: bool,
    /// The conversation.
    pub messages: Vec<AgentMessage>,
    /// Declared tools.
    pub tools: Vec<Tool>,
    /// Images for the prompt.
    pub images: Vec<ContextImage>,
    /// Documents attached by id.
    pub documents: Vec<Arc<str>>,
    /// The provider's web search.
    pub web_search: Option<hardpan_prompt::WebSearch>,
    /// Whether the model thinks first.
    pub thinking: hardpan_prompt::Thinking,
    /// What the person just typed; none when the agent goes on by itself.
    pub prompt: Option<UserPrompt>,
    /// The first message of the conversation that no request has carried yet: from it on, the messages are what was just
    /// typed, as a prompt is.
    pub fresh: Option<MessageId>,
    /// `strata`: whether this request is to fold.
    pub fold: bool,
    /// What the layouts remember of earlier requests.
    pub memory: Memory,
}

impl Snapshot {
    /// A snapshot of nothing at all, at a given time.
    pub fn empty(now: Timestamp) -> Self {
        Snapshot {
            now,
            working_directory: None,
            system: SystemParts::default(),
            agent_mode: AgentMode::On,
            items: Vec::new(),
            unavailable: Vec::new(),
            use_repo_map: true,
            directory_map: true,
            messages: Vec::new(),
            tools: Vec::new(),
            images: Vec::new(),
            documents: Vec::new(),
            web_search: None,
            thinking: hardpan_prompt::Thinking::Off,
            prompt: None,
            fresh: None,
            fold: false,
            memory: Memory::default(),
        }
    }

    /// The items of one kind, in order. `chat`, which stands for the conversation itself, is never among them.
    pub fn items_of(&self, kind: Kind) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.kind == kind && !is_chat(item))
    }

    /// The message that begins what was just typed; none when the agent goes on by itself.
    pub fn asked(&self) -> Option<&MessageId> {
        let fresh = self.fresh.as_ref();
        fresh.or_else(|| self.prompt.as_ref().map(|prompt| &prompt.id))
    }

    /// The tools that are declared: none when tools are not in use.
    pub fn active_tools(&self) -> &[Tool] {
        match self.agent_mode {
            AgentMode::On => &self.tools,
            AgentMode::Off => &[],
        }
    }
}

/// Whether the item is the conversation's own entry, which is sent as messages and never as an item.
pub fn is_chat(item: &Item) -> bool {
    &*item.id == "chat"
}

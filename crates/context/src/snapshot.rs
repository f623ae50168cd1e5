//! [`Snapshot`]: everything a request depends on, as one value.

mod file; // the JSON form: docs/snapshot.md
mod parsing; // from the JSON form to a snapshot, and its error messages
mod writing; // from a snapshot to the JSON form

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_economy::PauseCounts;
use hardpan_prompt::{
    AgentMessage, Hash, Image, Item, ItemKind, MessageBody, MessageId, MessagePart, Omission, Text, Tool,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::knowledge::FileKnowledge;
use crate::{DetachLimits, FoldReason, KeepLevel, LayoutState, LifetimeSetting};

pub use file::{
    FileEntry, FoldDescriptionEntry, ImageEntry, ItemEntry, LostCache, ObservationEntry, PageEntry,
    ProjectFile, PromptEntry, SnapshotFile, SymbolEntry, SymbolsEntry, SystemEntry, ThinkingEntry, TreeEntry,
    UnavailableEntry, WebSearchEntry, snapshot_schema,
};

/// Why a snapshot file cannot be used.
#[derive(Debug, Error)]
pub enum SnapshotError {
    /// The JSON is malformed, or is not a snapshot.
    #[error(
        "{source_name}:{line}:{column}: {message}{path}\nThe format is described in docs/snapshot.md; `hardpan snapshot` makes one."
    )]
    Malformed {
        /// The name of the file, or `-` for standard input.
        source_name: String,
        /// The line of the mistake, from 1.
        line: usize,
        /// The column of the mistake, from 1.
        column: usize,
        /// What the parser expected and found.
        message: String,
        /// ` (at messages[3])`, where known.
        path: String,
    },
    /// The file has a version that this program does not read.
    #[error(
        "{source_name}: this program reads snapshot version {known}, not {found}; make a new one with `hardpan snapshot`"
    )]
    Version {
        /// The name of the file.
        source_name: String,
        /// The version in the file.
        found: u32,
        /// The version that this program reads.
        known: u32,
    },
    /// Two items have the same key.
    #[error("{source_name}: two items have the key `{key}`; keys must be unique")]
    DuplicateKey {
        /// The name of the file.
        source_name: String,
        /// The key that occurs twice.
        key: String,
    },
    /// A declared tool would be rejected by providers.
    #[error("{source_name}: tools[{index}]: {problem}")]
    Tool {
        /// The name of the file.
        source_name: String,
        /// The position of the tool, from 0.
        index: usize,
        /// What is wrong, and how it should be.
        problem: String,
    },
    /// An image is not valid base64, or breaks a provider's limit.
    #[error("{source_name}: image {index}: {error}")]
    Image {
        /// The name of the file.
        source_name: String,
        /// The position of the image, from 0.
        index: usize,
        /// Which limit it breaks.
        error: hardpan_prompt::ImageError,
    },
}

/// Whether the model may call tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentMode {
    /// The declared tools are sent.
    #[default]
    On,
    /// No tools are sent, and `inline` strips earlier calls from the conversation.
    Off,
}

/// Which system prompt `inline` starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptType {
    /// The default agent's prompt.
    #[default]
    General,
    /// The agent prompt by itself: it is not prefixed again.
    Agent,
    /// A prompt file of the user's, given by its path.
    Custom,
}

/// The pieces of the system prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemParts {
    /// A complete system prompt from an extension; it replaces everything below.
    pub whole: Option<Text>,
    /// The active agent's text; none for the default agent (`system.md`).
    pub agent: Option<Text>,
    /// Project-specific instructions, in place of `system_extra.md`.
    pub extra: Option<Text>,
    /// Text from the user's settings; it follows the tools' guidelines.
    pub append: Option<Text>,
    /// Instruction files such as AGENTS.md: path and content.
    pub project_files: Vec<(Arc<str>, Text)>,
    /// Skills that the model is told about.
    pub skills: Vec<Skill>,
    /// Which system prompt `inline` starts from.
    pub prompt_type: PromptType,
    /// The custom prompt's text; none if its path could not be resolved: then a minimal prompt is
    /// used.
    pub custom: Option<Text>,
    /// Whether the model edits files by edit blocks in its text instead of by tools.
    pub edit_blocks: bool,
}

/// A skill: instructions in a file that the model reads when it needs them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// The skill's name, as the model is told.
    pub name: String,
    /// One sentence that says when to use it.
    pub description: String,
    /// The path of the file to read.
    pub location: String,
}

/// An image attached to the prompt, or given as a context file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextImage {
    /// The file it was read from; none for an image that was pasted.
    pub path: Option<Arc<str>>,
    /// The image data, type and size.
    pub image: Image,
}

/// A new message of the user that is not part of the conversation yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPrompt {
    /// The id it will have as a message.
    pub id: MessageId,
    /// The text as typed; never blank.
    pub text: Text,
}

/// Everything a request depends on, except the provider, the model, the layout and the texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The time of the request: the only clock that assembly knows.
    pub now: Timestamp,
    /// The folder the agent works in; none if the model need not know it.
    pub working_directory: Option<Arc<str>>,
    /// The pieces of the system prompt.
    pub system: SystemParts,
    /// Whether the model may call tools.
    pub agent_mode: AgentMode,
    /// Keyed context (files, panels, pages, the symbol map, the tree), in the order given.
    pub items: Vec<Item>,
    /// What was asked for but is not available, such as unreadable files, with the reasons.
    pub unavailable: Vec<Omission>,
    /// `tiers`: whether the symbol map and the tree are sent.
    pub use_repo_map: bool,
    /// `inline`: whether the directory map is sent.
    pub directory_map: bool,
    /// The conversation so far, oldest message first.
    pub messages: Vec<AgentMessage>,
    /// The tools to declare, in order; none are sent while agent mode is off.
    pub tools: Vec<Tool>,
    /// Images that go with the prompt.
    pub images: Vec<ContextImage>,
    /// Ids of documents that are attached, for servers that know them.
    pub documents: Vec<Arc<str>>,
    /// The provider's own web search, where it is to be used.
    pub web_search: Option<hardpan_prompt::WebSearch>,
    /// Whether the model thinks before it answers, and how much.
    pub thinking: hardpan_models::ThinkingSetting,
    /// The user's new prompt; none when the agent continues by itself.
    pub prompt: Option<UserPrompt>,
    /// The first message of the conversation that no request has carried yet. From it on, the
    /// messages are new input, as a prompt is; none when there is no new message.
    pub first_unsent: Option<MessageId>,
    /// What the messages of the conversation told the model about files.
    pub knowledge: FileKnowledge,
    /// How much of the conversation a fold may take out.
    pub keep: KeepLevel,
    /// `panels`: when old messages leave the conversation for a frozen history panel.
    pub detach: DetachLimits,
    /// For how long the provider is asked to keep what the request caches.
    pub cache_lifetime: LifetimeSetting,
    /// How many pauses of the conversation outlasted the lifetimes of the provider's cache.
    pub pauses: PauseCounts,
    /// Whether the request is no part of a conversation, such as one for a summary: nothing is worth a
    /// cache entry, and the time does not matter.
    pub stands_alone: bool,
    /// Why this request should fold, even if it does not pay yet; none if the layout decides.
    pub fold: Option<FoldReason>,
    /// How the repository is described from the next fold on; none if that is no different.
    pub at_fold: Option<Arc<FoldDescription>>,
    /// What the layouts carry over from earlier requests.
    pub layout_state: LayoutState,
    /// What each answer of the model came after: see [`prefix_hash`](crate::prefix_hash). Used for
    /// models whose reasoning is bound to that.
    pub answer_prefixes: Arc<BTreeMap<MessageId, Hash>>,
    /// Messages whose reasoning is not sent any more, since something before it has changed.
    pub stale_reasoning: Arc<BTreeSet<MessageId>>,
    /// Texts that are for this request alone: they stand after everything that is cached.
    pub ephemeral: Vec<EphemeralText>,
    /// Secrets that the request must not contain. Not part of a snapshot's file.
    pub redactions: Arc<crate::Redactions>,
}

/// A text for one request, after everything that is cached. The next request is as if it had never been
/// there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EphemeralText {
    /// The extension that wants the model to read it.
    pub extension: Arc<str>,
    /// What the model reads.
    pub text: Text,
}

/// The overview and the map as they would be chosen now. The cached part of a prompt keeps an
/// earlier choice, since a new one would rewrite it; a fold rewrites it anyway.
#[derive(Clone, Debug, PartialEq)]
pub struct FoldDescription {
    /// How often the layout had laid BASE anew when this was observed.
    pub bases: u32,
    /// The items in place of all of the kinds tree, legend and symbols.
    pub items: Vec<Item>,
}

impl Snapshot {
    /// The snapshot with the repository described as a fold shows it; none if that is no different.
    pub(crate) fn described_for_fold(&self) -> Option<Snapshot> {
        let FoldDescription { items: fresh, .. } = &**self.at_fold.as_ref()?;
        let is_replaced = |kind| matches!(kind, ItemKind::Tree | ItemKind::Legend | ItemKind::Symbols);
        let mut items: Vec<Item> =
            self.items.iter().filter(|item| !is_replaced(item.kind)).cloned().collect();
        items.extend(fresh.iter().cloned());
        Some(Snapshot { items, at_fold: None, ..self.clone() })
    }

    /// The snapshot with the reasoning of these messages left out, too.
    pub(crate) fn without_reasoning_of(&self, messages: &BTreeSet<MessageId>) -> Snapshot {
        let stale_reasoning = Arc::new(self.stale_reasoning.union(messages).cloned().collect());
        Snapshot { stale_reasoning, ..self.clone() }
    }

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
            thinking: hardpan_models::ThinkingSetting::Default,
            prompt: None,
            first_unsent: None,
            knowledge: FileKnowledge::default(),
            keep: KeepLevel::default(),
            detach: DetachLimits::default(),
            cache_lifetime: LifetimeSetting::default(),
            pauses: PauseCounts::default(),
            stands_alone: false,
            fold: None,
            at_fold: None,
            layout_state: LayoutState::default(),
            answer_prefixes: Arc::default(),
            stale_reasoning: Arc::default(),
            ephemeral: Vec::new(),
            redactions: Arc::default(),
        }
    }

    /// The items of one kind, in order, without the placeholder `chat` for the conversation.
    pub fn items_of(&self, kind: ItemKind) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(move |item| item.kind == kind && !is_conversation_placeholder(item))
    }

    /// The id of the message that begins the new input; none when the agent continues by itself.
    pub fn new_input(&self) -> Option<&MessageId> {
        let first_unsent = self.first_unsent.as_ref();
        first_unsent.or_else(|| self.prompt.as_ref().map(|prompt| &prompt.id))
    }

    /// What the person has just said, with the id of its message: the prompt, or the last message of the
    /// conversation that is the person's, if nothing has been said to it yet.
    pub fn user_prompt(&self) -> Option<(&MessageId, String)> {
        if let Some(prompt) = &self.prompt {
            return Some((&prompt.id, prompt.text.to_string()));
        }
        let unanswered = self.messages.iter().rev().take_while(|message| message.is_user());
        let text = |part: &MessagePart| match part {
            MessagePart::Text { text } => Some(text.to_string()),
            _ => None,
        };
        let mut said = unanswered.filter_map(|message| match &*message.body {
            MessageBody::User { content } => Some((&message.id, content.iter().filter_map(text).collect())),
            _ => None,
        });
        said.next()
    }

    /// The tools to send: none while agent mode is off.
    pub fn active_tools(&self) -> &[Tool] {
        match self.agent_mode {
            AgentMode::On => &self.tools,
            AgentMode::Off => &[],
        }
    }
}

/// The key of the item that describes the repository in short.
pub(crate) const OVERVIEW_KEY: &str = "overview";

/// Whether the item is the placeholder `chat`, which stands for the conversation. The conversation
/// is sent as messages, never as an item.
pub fn is_conversation_placeholder(item: &Item) -> bool {
    &*item.id == "chat"
}

//! The principal function of this crate is [`assemble`]: it turns a [`Snapshot`] into the prompt
//! of the next request.
//!
//! A [`Snapshot`] holds everything a request depends on: files, conversation, tools, the time. A
//! [`Layout`] (`strata`, `panels`, `tiers` or `inline`) orders it for a [`Target`], that is a model
//! at a provider. The result is an [`AssembledPrompt`]: the
//! [`Prompt`](hardpan_prompt::Prompt), its token counts, and the [`LayoutState`] to put into the
//! next snapshot once the request has been sent. Assembly is a pure function: nothing here reads a
//! file or a clock, so a dry run builds the same bytes as a real request.
//!
//! ```
//! use hardpan_context::{LayoutName, PromptTexts, RenderCache, SnapshotFile, Target, assemble};
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::Vocabulary;
//!
//! let json = r#"{"version": 1, "now": "2026-02-19T14:00:00Z", "prompt": "What is this?"}"#;
//! let snapshot = SnapshotFile::parse("example", json)?.into_snapshot("example")?;
//! let target = Target::new(Catalogue::builtin(), None, "claude-sonnet-5")?;
//! let (texts, cache) = (PromptTexts::builtin()?, RenderCache::new(Vocabulary::O200k));
//! let assembled = assemble(&snapshot, LayoutName::Strata, &target, &texts, &cache)?;
//! assert_eq!(assembled.prompt.messages.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assemble; // from a snapshot to a prompt that fits its window and its model
mod bound_reasoning; // reasoning that may go back only after an unchanged past
mod breakdown; // where the tokens of a prompt go: by region, kind and tier
mod breakpoints; // which ends of a prompt get one of the four breakpoints
mod cache_lifetime; // how long the provider is asked to keep what requests cache
mod declared_tools; // the list of tools stays what it is while it is cached
#[cfg(test)]
mod documented_tests; // what the documents of the modelled systems say
mod fallbacks; // the same prompt for models without tools or without images
mod fold; // that a request folds, and why
mod history; // the conversation, converted to messages that every provider accepts
mod inline; // the `inline` layout: context right before the last user message
mod keep; // how much of a conversation a fold may take out
pub mod knowledge; // FileKnowledge: what the model has seen of files
mod layout; // the Layout trait, its input, and the registry of layouts
mod layout_state; // what the layouts carry over from request to request
mod message_builder; // the messages of a prompt under construction
mod panels; // the `panels` layout: every item as a tool call and its result
mod render_cache; // rendered texts and token counts, kept between requests
mod run_context; // what stands before the conversation stays as it was when the run began
mod secrets; // SecretScanner, Redactions: secrets on their way into a request
mod snapshot; // everything a request depends on
mod strata; // the `strata` layout, the default: BASE, LOG and TAIL
mod system; // how the system prompt is put together
mod target; // the model that a request is for
#[cfg(test)]
mod test_snapshots; // small snapshots for tests
mod texts; // the texts of prompts/ that a model reads, and their overrides
mod tiers; // the `tiers` layout: stability tiers with a breakpoint each
mod time; // timestamps as the model reads them

pub use assemble::{AssembleError, AssembledPrompt, assemble};
pub use bound_reasoning::prefix_hash;
pub use breakdown::{
    Breakdown, BreakdownBlock, BreakdownContent, BreakpointInfo, InstructionCost, LifetimeOutlook,
    SESSION_REQUESTS, SessionFigure,
};
pub use cache_lifetime::{LifetimeSetting, UnknownLifetime};
pub use fallbacks::{without_images, without_newer_fields, without_tools};
pub use fold::{Fold, FoldOutlook, FoldReason};
pub use inline::require_all_properties;
pub use keep::{KeepLevel, UnknownKeepLevel};
pub use layout::{Arrangement, Coupling, Layout, LayoutInput, LayoutName, RepositoryView, UnknownLayout};
pub use layout_state::{LayoutState, LayoutStateLog, StateChange, StateStorage};
pub use panels::{DetachLimits, FrozenHistory};
pub use render_cache::RenderCache;
pub use secrets::{FoundSecret, KnownSecrets, Redactions, SecretScanner, secret_id};
pub use snapshot::{
    AgentMode, ContextImage, EphemeralText, FileEntry, FoldDescription, FoldDescriptionEntry, ImageEntry,
    ItemEntry, LostCache, ObservationEntry, PageEntry, ProjectFile, PromptEntry, PromptType, Skill, Snapshot,
    SnapshotError, SnapshotFile, SymbolEntry, SymbolsEntry, SystemEntry, SystemParts, ThinkingEntry,
    TreeEntry, UnavailableEntry, UserPrompt, WebSearchEntry, snapshot_schema,
};
pub use system::system_prompt_segments;
pub use target::Target;
pub use texts::{
    EXTRA_INSTRUCTIONS_FILE, PHRASES, PHRASES_FILE, PROMPT_FILES, Phrases, PromptTexts, PromptTextsError,
    TaskPhrases, TextOverride, fill_template,
};
pub use tiers::{
    ShownEntry, StabilityTracker, TierChange, TierChangeReason, TierInfo, TierTokens, TrackedEntry,
    TrackedKey, UnknownTrackedKey,
};

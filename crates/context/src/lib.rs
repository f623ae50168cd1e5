//! What the model should see: snapshots, and the layouts that turn one into a prompt.
//!
//! Assembly is a pure function. A [`Snapshot`] says everything a request depends on; a [`Layout`] arranges it for a
//! [`Target`]; what comes out is a [`Prompt`](hardpan_prompt::Prompt) and the [`Memory`] to keep once it has been sent.
//! Nothing here reads a file or a clock, so a dry run is exactly the real thing.
//!
//! ```
//! use hardpan_context::{LayoutName, Memo, SnapshotFile, Target, Texts, assemble};
//! use hardpan_models::Catalogue;
//! use hardpan_prompt::Vocabulary;
//!
//! let json = r#"{"version": 1, "now": "2026-02-19T14:00:00Z", "prompt": "What is this?"}"#;
//! let snapshot = SnapshotFile::parse("example", json)?.into_snapshot("example")?;
//! let target = Target::new(Catalogue::builtin(), None, "claude-sonnet-5")?;
//! let (texts, memo) = (Texts::builtin()?, Memo::new(Vocabulary::O200k));
//! let assembled = assemble(&snapshot, LayoutName::Strata, &target, &texts, &memo)?;
//! assert_eq!(assembled.prompt.turns.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assemble; // from a snapshot to a prompt that fits its window and its model
mod breakdown; // what a prompt holds, by block, kind and tier
mod forms; // prompts for models without tools or without images
mod history; // the conversation, made acceptable
mod inline; // the layout of seed e
mod layout; // the trait, and whom a request is for
mod memo; // what has been rendered already
mod memory; // what the layouts remember
mod panels; // the layout of seed a
mod snapshot; // everything a request depends on
mod stability; // which tier each thing has earned
mod strata; // the default layout
mod system; // the recipe for the system prompt
mod texts; // what a model reads, overridable
mod tiers; // the layout of seeds b and c
mod time; // times as the model sees them
#[cfg(test)]
mod trial; // small snapshots for tests
mod turns; // the messages of a prompt under construction

pub use assemble::{AssembleError, Assembled, assemble};
pub use breakdown::{Breakdown, BreakdownBlock, BreakdownContent, MarkedBlock, TierInfo, TierTokens};
pub use forms::{without_images, without_tools};
pub use inline::all_required;
pub use layout::{Arrangement, Input, Layout, LayoutName, Target, UnknownLayout};
pub use memo::Memo;
pub use memory::{
    Account, Frontier, FrozenHistory, Group, Memory, PanelsMemory, Placed, ShownPanel, StrataMemory, Stub,
    Update, UpdateForm,
};
pub use panels::detach;
pub use snapshot::{
    AgentMode, ContextImage, FileEntry, ImageEntry, ItemEntry, PageEntry, ProjectFile, PromptEntry,
    PromptType, Skill, Snapshot, SnapshotError, SnapshotFile, SymbolEntry, SymbolsEntry, SystemEntry,
    SystemParts, ThinkingEntry, TreeEntry, Unavailable, UserPrompt, WebSearchEntry, schema,
};
pub use stability::{
    Change, Mapped, Reason, Room, Shown, Tracked, Tracker, after_response, cache_target_tokens,
};
pub use system::segments as system_prompt;
pub use texts::{EXTRA, FILES, Override, Phrases, Texts, TextsError, fill};

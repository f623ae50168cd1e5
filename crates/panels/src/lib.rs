//! The panels of a conversation: what the agent keeps in view beside files and messages, each with an
//! id that stays the same for the life of the conversation.
//!
//! The principal types are [`Panel`], which a kind of panel implements, and [`PanelRegistry`], which
//! holds the panels of one conversation, gives them ids, renders those that changed, and saves what a
//! resumed conversation needs to send the same bytes.
//!
//! ```
//! use std::sync::Arc;
//! use hardpan_panels::{ActionCall, PanelRegistry, Todo};
//! use jiff::Timestamp;
//!
//! let registry = PanelRegistry::default();
//! registry.add(Arc::new(Todo::default()));
//! let add = ActionCall { text: Some("write the parser"), ..ActionCall::new("todo_add", Timestamp::UNIX_EPOCH) };
//! assert_eq!(registry.act(&add)?, "added 1: write the parser");
//!
//! let items = registry.items(Timestamp::UNIX_EPOCH);
//! assert_eq!(&*items[0].id, "P1");
//! assert_eq!(items[0].body.as_str(), "1 [ ] write the parser");
//! # Ok::<(), hardpan_panels::ActionError>(())
//! ```
//!
//! [`PanelTool`] lets the model use all of them through one small tool.

mod consoles; // ConsoleTool: programs that go on, each in a terminal that is a panel
mod ids; // PanelIds: ids that stay for the life of a conversation
mod library; // Library: agents, skills and commands; SkillPanel: a skill that is loaded
mod logs; // Logs: what happened, with times
mod memories; // Memories: plain files for later conversations
mod paging; // pages of content that is too long to be shown at once
mod panel; // Panel: what a kind of panel implements
mod panel_tool; // PanelTool: the one tool for all panels
mod registry; // PanelRegistry: the panels of a conversation
mod scratchpad; // Scratchpad: named cells of text
mod spine; // Spine: notifications, and going on while work remains
mod statistics; // Statistics: what the conversation has used
mod todo; // Todo: what is left to do
mod tool_panel; // ToolPanel: which tools are on and off
mod tree; // Tree: the project's files, filtered and described

pub use consoles::{ConsoleListener, ConsoleTool};
pub use ids::{FIRST_FREE_NUMBER, PanelIds};
pub use library::{Library, LibraryEntry, LibraryKind, SkillPanel};
pub use logs::Logs;
pub use memories::{MEMORY_FOLDER, Memories};
pub use panel::{ActionCall, ActionError, Panel, PanelAction, RefreshContext, RefreshStrategy, Revision};
pub use panel_tool::{OpenFiles, PanelTool};
pub use registry::{PanelListing, PanelOpener, PanelRegistry, SavedPanels};
pub use scratchpad::Scratchpad;
pub use spine::{GuardRail, NotificationKind, RunSummary, Spine, SpineDecision, SpineLimits};
pub use statistics::{Statistics, StatisticsFigures};
pub use todo::{Todo, TodoStatus};
pub use tool_panel::ToolPanel;
pub use tree::Tree;

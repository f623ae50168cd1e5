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

mod ids; // PanelIds: ids that stay for the life of a conversation
mod logs; // Logs: what happened, with times
mod paging; // pages of content that is too long to be shown at once
mod panel; // Panel: what a kind of panel implements
mod panel_tool; // PanelTool: the one tool for all panels
mod registry; // PanelRegistry: the panels of a conversation
mod scratchpad; // Scratchpad: named cells of text
mod todo; // Todo: what is left to do

pub use ids::{FIRST_FREE_NUMBER, PanelIds};
pub use logs::Logs;
pub use panel::{ActionCall, ActionError, Panel, PanelAction, RefreshContext, RefreshStrategy, Revision};
pub use panel_tool::{OpenFiles, PanelTool};
pub use registry::{PanelListing, PanelOpener, PanelRegistry, SavedPanels};
pub use scratchpad::Scratchpad;
pub use todo::Todo;

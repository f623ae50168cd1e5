//! What stands between a face (terminal, print, RPC) and the agent: [`ConversationApp`] opens a
//! conversation with its settings, workspace, tools, approvals and models; [`request::assemble`]
//! builds the same request without an agent. Nothing here prints: a face shows [`Notice`]s.

mod actions; // switch conversations, change the model, undo, ask for prices
pub mod approval; // Approver: the rules, then the user, decide whether a tool may run
mod clock; // now: where the clock enters
pub mod commit; // commit messages for staged changes
mod conversation_app; // ConversationApp: what a face works with
mod error_text; // error_text: an error with its causes, in one line
pub mod gather; // FolderReader: reads the workspace into snapshots, for dry runs and for the agent
pub mod learned_state; // what providers taught us, stored between runs
pub mod mentions; // the files and images that a prompt names with @
mod notice; // Notice: what the user should know; NoticeSink: who shows it
mod open; // ConversationApp::open: from options to a running agent
pub mod options; // what a face asks for
mod provider_connection; // makes clients for the agent
pub mod provider_route; // chooses the network or the simulator for a request
pub mod request; // AssembledRequest: a request that is ready to be sent
pub mod send; // sends one request without an agent
mod session_folder; // where conversations are stored
pub mod settings; // the user's settings, the project's settings, trust
pub mod side_requests; // stores the bills of requests outside of conversations, such as commits
pub mod symbol_map; // the symbol index of a folder, and its map in a prompt
pub mod target; // which model a request is for, and in which layout
pub mod tool_set; // ToolSet: the tools, and what they share
pub mod workspace_context; // WorkspaceContext: what the folder contributes to each request

pub use actions::{ActionError, ResumedConversation};
pub use conversation_app::{Attachments, ConversationApp, is_command};
pub use error_text::error_text;
pub use notice::{DiscardNotices, IndexProgress, Notice, NoticeSink};
pub use open::{FaceHooks, OpenError};

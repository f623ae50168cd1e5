//! What stands between a face (terminal, print, RPC) and the agent: [`ConversationApp`] opens a
//! conversation with its settings, workspace, tools, approvals and models; [`request::assemble`]
//! builds the same request without an agent.

pub mod approval; // Approver: the rules, then the user, decide whether a tool may run
pub mod commit; // commit messages for staged changes
pub mod conversation_app; // ConversationApp: from options to a running agent
pub mod gather; // collects a snapshot, a target and a layout from files, a folder and a session
pub mod learned_state; // what providers taught us, stored between runs
pub mod mentions; // the files and images that a prompt names with @
pub mod options; // what a face asks for
pub mod provider_route; // chooses the network or the simulator for a request
pub mod request; // AssembledRequest: a request that is ready to be sent
pub mod settings; // the user's settings, the project's settings, trust
pub mod side_requests; // stores the bills of requests outside of conversations, such as commits
pub mod symbol_map; // the symbol index of a folder, and its map in a prompt
pub mod text; // numbers and amounts for people, text without control characters
pub mod tool_set; // ToolSet: the tools, and what they share
pub mod workspace_context; // WorkspaceContext: what the folder contributes to each request

pub use conversation_app::ConversationApp;

//! The library behind the faces (terminal, print, RPC): it opens a conversation about a folder and
//! builds requests.
//!
//! The principal type is [`ConversationApp`]: an agent with its settings, workspace, tools,
//! approvals and provider. [`request::assemble`] has such an agent build a request that is only shown,
//! or sent by itself. Nothing here parses arguments or prints: a face passes
//! [`options`], and shows events, [`Notice`]s and errors.
//!
//! ```
//! use hardpan_agent::{Input, InputOutcome, InputSource, RunEnd};
//! use hardpan_app::options::{OpenOptions, ProviderAccess, SessionStorage};
//! use hardpan_app::{ConversationApp, FaceHooks};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! let options = OpenOptions {
//!     access: ProviderAccess::Simulator,
//!     storage: SessionStorage::Temporary,
//!     ..OpenOptions::new(folder.path())
//! };
//! let app = ConversationApp::open(&options, &FaceHooks::default())?;
//! app.agent.start().await;
//! let input = Input {
//!     text: "What does this crate do?".into(),
//!     below: None,
//!     images: Vec::new(),
//!     source: InputSource::Interactive,
//!     id: None,
//! };
//! assert_eq!(app.agent.prompt(input).await?, InputOutcome::Ran(RunEnd::Done));
//! app.agent.shutdown().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/embed.rs` shows a whole program, with events and notices.

pub mod actions; // switch conversations, change the model, undo, ask for prices
pub mod agents; // which agent a conversation has
pub mod approval; // Approver: the rules, then the user, decide whether a tool may run
pub mod attachment_price; // AttachmentPrice: what goes with a prompt, priced before it is sent
pub mod audit_log; // AuditLog: what tools were allowed to do, by whom
mod awaited_target; // AwaitedTarget: a model that an extension may bring
mod clock; // now: where the clock enters
mod command_panels; // CommandPanel: outputs of commands that follow the repository
mod command_sandbox; // how the commands of the model are restricted
pub mod commit; // commit messages for staged changes
pub mod context_items; // what a user opens and closes by name
mod conversation_app; // ConversationApp: what a face works with
mod conversation_panels; // ConversationPanels: the panels of a conversation, and going on by itself
mod deferred; // DeferredCommands: what waits until it costs nothing
mod dialog_line; // a dialog as a question for a line of text
mod error_text; // error_text: an error with its causes, in one line
pub mod extensions; // Extensions: TypeScript that takes part in the conversation
mod file_changes; // FileChanges: which open files somebody else changed
mod folder_facts; // FolderFacts: what a person may want to know about a folder at the start
mod foreign_requests; // what servers and extensions may ask of a model, and how often
pub mod gather; // FolderReader: reads the workspace into snapshots, for dry runs and for the agent
mod git_access; // how Hardpan itself runs git
mod git_branch; // sessions know their branch of git
mod git_panels; // GitTool: outputs of git that stay in view
mod github_panels; // GitHubTool: gh
mod hooks; // shell commands that take part in a conversation
pub mod imported_session; // store_imported_session: a conversation that another agent recorded
pub mod learned_state; // what providers taught us, stored between runs
pub mod mcp; // McpServers: servers that bring tools
pub mod mentions; // the files and images that a prompt names with @
pub mod model_check; // compares the catalogue with the provider's own list of models
mod notice; // Notice: what the user should know; NoticeSink: who shows it
mod open; // ConversationApp::open: from options to a running agent
pub mod options; // what a face asks for
pub mod project_guide; // ProjectGuide: an AGENTS.md from what is known without a model
pub mod prompt_settings; // PromptSettings: the system prompt, tools and the map, as settings and flags say
mod provider_connection; // makes clients for the agent
pub mod provider_route; // chooses the network or the simulator for a request
mod repository_programs; // whether a repository's settings name programs that git runs
pub mod request; // AssembledRequest: a request that is ready to be sent
mod secrets; // the secrets of this machine that no request should contain
pub mod send; // sends one request by itself
mod session_folder; // where conversations are stored
mod session_origin; // ForeignSession: a conversation that did not come about here
pub mod settings; // the user's settings, the project's settings, trust
pub mod side_requests; // stores the bills of requests outside of conversations, such as commits
#[cfg(test)]
mod slow_index; // a request does not wait for a slow index
pub mod subagents; // agents that work on a task beside the conversation
pub mod symbol_map; // the symbol index of a folder, and its map in a prompt
pub mod target; // which model a request is for, and in which layout
mod telemetry; // ConversationTelemetry: OpenTelemetry, in builds that have it
pub mod tool_set; // ToolSet: the tools, and what they share
pub mod workspace_context; // WorkspaceContext: what the folder contributes to each request

pub use actions::{ActionError, ResumedConversation};
pub use conversation_app::{Attachments, ConversationApp, is_command};
pub use conversation_panels::ConversationPanels;
pub use deferred::DeferredCommands;
pub use error_text::error_text;
pub use folder_facts::{FolderFacts, NotableName};
pub use notice::{DiscardNotices, IndexProgress, Notice, NoticeSink};
pub use open::{FaceHooks, OpenError};

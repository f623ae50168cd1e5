//! The tools that a model can call: read, search and change files, run commands, fetch web pages.
//!
//! The principal type is [`Tool`]: a declaration for the model, an [`Effect`], and a future that runs
//! one call. Dropping the future ends the work.
//!
//! - [`Scope`] decides which files a call may use. It resolves links first and checks the result.
//! - [`ToolOutcome`] is the answer to a call. A failure is an answer for the model, too: it never stops
//!   the agent. It says what the model has now seen of files, so that no change goes unnoticed.
//! - [`ToolRegistry`] holds the tools of an agent, which may come and go while it runs.
//! - [`Journal`] records changes of files, so that they can be undone.
//! - [`ShellOptions`] say how commands run: their environment, and the sandbox that restricts them.
//!
//! ```
//! use hardpan_context::knowledge::FileKnowledge;
//! use hardpan_prompt::{Json, MessagePart};
//! use hardpan_tools::{Scope, ToolInvocation, read_only_tools};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("notes.md"), "one\ntwo\nthree\n")?;
//! let scope = Scope::new(folder.path(), folder.path());
//!
//! let tools = read_only_tools();
//! let read = tools.iter().find(|tool| &*tool.declaration().name == "read").ok_or("no such tool")?;
//! let arguments = Json::new(&serde_json::json!({"path": "notes.md", "limit": 2}));
//! let knowledge = FileKnowledge::default();
//! let (id, scope, knowledge) = ("call_1", &scope, &knowledge);
//! let call = ToolInvocation { id, arguments: &arguments, scope, knowledge, progress: &|_| {} };
//! let outcome = tokio::runtime::Builder::new_current_thread().build()?.block_on(read.run(call));
//! let expected = MessagePart::text("one\ntwo\n[lines 1-2 of 3; go on with offset=3]");
//! assert_eq!(outcome.content, [expected]);
//! assert_eq!(outcome.file_observations[0].lines, Some(3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The texts that a model reads about each tool are in `texts/`. Whatever a folder holds (pipes,
//! devices, loops of links, endless lines, millions of names), a call ends, keeps a bounded part of it
//! in memory, and says what it left out and how to continue.

mod anchored_file; // AnchoredFile: a file reached through its opened folder
mod bash; // the tool bash: a command, its output, its end
mod blocking; // file operations on threads that may block
mod console; // Console: a program in a terminal that goes on between calls
mod declarations; // what models read about the tools
mod diff; // a unified diff of bounded length
mod edit; // the tool edit: replaces texts that occur exactly once
mod edit_blocks; // EditBlockParser: edits written into an answer
mod fetch; // the tool fetch: a web page as Markdown
mod file_change; // FileChanger: checked, journalled, atomic changes of files
mod find; // the tool find: files and folders by name
mod glob; // Glob: patterns for paths
mod grep; // the tool grep: lines that match
mod journal; // Journal: changes of files, so that they can be undone
mod limits; // how long an answer may be
mod ls; // the tool ls: the names in one folder
mod plain_file; // write_below, remove_below: whole files that Hardpan keeps in a project
mod read; // the tool read: a text file, page by page, or an image
mod recall; // the tool recall: an earlier result, exactly
mod registry; // ToolRegistry: the tools of an agent, from several sources
mod scope; // Scope: which files a call may use
mod similar_names; // suggestions for paths that do not exist
mod symbols; // the tool symbols: answers from the symbol index
mod tool; // Tool, ToolInvocation, ToolOutcome: what a tool is
mod work_tree; // WorkTree: what small files held before a command
mod write; // the tool write: a whole file

#[cfg(test)]
mod link_races;
#[cfg(test)]
mod test_workspace; // TestWorkspace: a temporary workspace for tests // links that are swapped in while tools run

use std::sync::Arc;

use hardpan_workspace::LiveIndex;

pub use bash::sanitize::sanitize as clean_output;
pub use bash::{Confinement, SandboxUnavailable, ShellOptions, command_environment, scrub_environment};
pub use console::{Console, ConsoleEnd, ConsoleError, ConsoleShell, ConsoleView, WaitOutcome, parse_keys};
pub use edit_blocks::{EditBlock, EditBlockParser, EditBlockStatus, MalformedBlock, edit_block_tool};
pub use fetch::{
    PageError, PageReader, WebAnswer, WebBody, WebClient, WebOptions, WebPage, WebRequest, WebRequestError,
    find_urls, page_address,
};
pub use find::Find;
pub use grep::Grep;
pub use journal::{Journal, JournalError, UndoOutcome, UndoneFile};
pub use ls::Ls;
pub use plain_file::{PlainFileError, remove_below, write_below};
pub use read::Read;
pub use recall::{ArchiveError, ArchivedContent, MessageArchive, Recall};
pub use registry::{
    OnDemandSources, RegisterToolError, ToolListing, ToolRegistry, ToolSource, ToolState, ToolUnavailable,
    UnknownTool,
};
pub use scope::{Scope, ScopeError};
pub use symbols::Symbols;
pub use tool::{
    CallSubject, Effect, InnerCall, ResultDisplay, SubjectKind, Tool, ToolClaim, ToolInvocation, ToolOutcome,
    parse_arguments,
};

/// The tools that only read files, in the order in which they are declared to the model. [`Symbols`]
/// also only reads, but needs an index.
pub fn read_only_tools() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Read), Arc::new(Grep), Arc::new(Find), Arc::new(Ls)]
}

/// What [`changing_tools`] need.
#[derive(Clone, Debug)]
pub struct ToolOptions {
    /// Records changes of files, so that they can be undone. `None` records nothing.
    pub journal: Option<Arc<Journal>>,
    /// How `bash` runs commands.
    pub shell: ShellOptions,
    /// What `fetch` may reach.
    pub web: WebOptions,
    /// The index of the workspace, whose watch tells what commands changed. Without one, all files are
    /// looked at.
    pub index: Option<Arc<LiveIndex>>,
}

/// The tool `bash` alone, for commands that the user types. Its text leaves out the exit code, which
/// faces and requests tell from the message.
pub fn shell_tool(shell: ShellOptions) -> Arc<dyn Tool> {
    Arc::new(bash::Bash::new(shell).without_exit_code())
}

/// The tools that may change something, in the order in which they are declared to the model.
pub fn changing_tools(options: ToolOptions) -> Vec<Arc<dyn Tool>> {
    let ToolOptions { journal, shell, web, index } = options;
    let bash = bash::Bash::new(shell).with_journal(journal.clone(), index);
    let changes = file_change::FileChanger::new(journal);
    vec![
        Arc::new(edit::Edit(changes.clone())),
        Arc::new(write::Write(changes)),
        Arc::new(bash),
        Arc::new(fetch::Fetch::new(&web)),
    ]
}

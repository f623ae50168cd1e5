//! What the agent can do: tools that a model may call.
//!
//! - [`Tool`]: a declaration, an [`Effect`], and a future that does the work. Dropping the future ends the work.
//! - [`Scope`]: which files a call may touch: links are followed first, then the place is judged.
//! - [`Outcome`]: what a call answers, also when it failed. A failure is told to the model, it never stops the agent.
//!
//! ```
//! use hardpan_prompt::{Json, Part};
//! use hardpan_tools::{Call, Scope, read_only};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("notes.md"), "one\ntwo\nthree\n")?;
//! let scope = Scope::new(folder.path(), folder.path());
//!
//! let tools = read_only();
//! let read = tools.iter().find(|tool| &*tool.declaration().name == "read").ok_or("no such tool")?;
//! let arguments = Json::new(&serde_json::json!({"path": "notes.md", "limit": 2}));
//! let call = Call { id: "call_1", arguments: &arguments, scope: &scope, progress: &|_| {} };
//! let outcome = tokio::runtime::Builder::new_current_thread().build()?.block_on(read.run(call));
//! assert_eq!(outcome.content, [Part::text("one\ntwo\n[lines 1-2 of 3; go on with offset=3]")]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What a model is told of each tool is in `texts/`. Whatever a folder holds (pipes, devices, loops of links, endless lines,
//! millions of names), a call ends, holds a bounded part of it in memory, and says what it left out and how to go on.

mod anchor; // one file, held by its open folder
mod bash; // bash: a command, its output, its end
mod blocking; // work on files away from the async threads
mod change; // how a file is changed: known before, journalled, at once
mod diff; // what changed, in few lines
mod edit; // edit: texts replaced where they occur exactly once
mod fetch; // fetch: a page of the web as Markdown
mod find; // find: files and folders by name
mod glob; // patterns for paths
mod grep; // grep: lines that match
mod journal; // Journal: what a turn did to files can be taken back
mod limits; // how much an answer holds
mod ls; // ls: the names in one folder
mod nearest; // what a name that does not exist may have meant
mod read; // read: a text file, page by page, or an image
mod sandbox; // Sandbox: what commands are kept from
mod scope; // Scope: which files a call may touch
mod seen; // Seen: what the model has seen of each file
mod texts; // what models are told of the tools
mod tool; // Tool, Call, Outcome: what a tool is
mod write; // write: a whole file

#[cfg(test)]
mod fixture; // a folder, and calls in it

use std::sync::Arc;

pub use bash::{Shell, scrubbed};
pub use fetch::Web;
pub use find::Find;
pub use grep::Grep;
pub use journal::{How, Journal, JournalError, Undone};
pub use ls::Ls;
pub use read::Read;
pub use sandbox::{Launcher, Network, Policy, Sandbox, Support, enter_and_exec, support};
pub use scope::{OutOfScope, Scope};
pub use seen::Seen;
pub use tool::{Call, Effect, Outcome, Tool, arguments};

/// The tools that change nothing, in the order in which they are declared.
pub fn read_only() -> Vec<Arc<dyn Tool>> {
    vec![Arc::new(Read), Arc::new(Grep), Arc::new(Find), Arc::new(Ls)]
}

/// What the tools that change things share and need.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the model has seen of each file. The agent notes what `read` showed.
    pub seen: Seen,
    /// Where changes of files are recorded, so that they can be taken back.
    pub journal: Option<Arc<Journal>>,
    /// How commands are run.
    pub shell: Shell,
    /// What may be fetched.
    pub web: Web,
}

/// The tool that runs commands, by itself: for the commands of the person.
pub fn shell(shell: Shell) -> Arc<dyn Tool> {
    Arc::new(bash::Bash(shell))
}

/// The tools that change things, in the order in which they are declared.
pub fn changing(options: Options) -> Vec<Arc<dyn Tool>> {
    let Options { seen, journal, shell, web } = options;
    let changes = change::Changes { seen, journal, ..Default::default() };
    vec![
        Arc::new(edit::Edit(changes.clone())),
        Arc::new(write::Write(changes)),
        Arc::new(bash::Bash(shell)),
        Arc::new(fetch::Fetch::new(&web)),
    ]
}

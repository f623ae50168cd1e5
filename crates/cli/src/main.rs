//! The `hardpan` command: a thin shell around the context engine and the agent.
//!
//! [`run::run`] dispatches the parsed [`args::Args`]. A command collects its inputs from the folder
//! ([`hardpan_app::gather`]), calls the engine, and prints the result. Data goes to standard output, messages
//! for people go to standard error.

#![warn(clippy::print_stdout, clippy::print_stderr)] // they panic if the reader is gone: see `output`

#[macro_use]
mod output; // standard output, tables, text without control characters

mod acp; // `hardpan acp`
mod args; // the command line, and every help text
mod audit; // `hardpan audit`
mod chat; // a conversation: one prompt, JSON events, or an interactive session
mod clipboard; // copies a text to where it can be pasted from
mod command_setup; // the folder, the settings and the notices of a command
mod commit; // `hardpan commit`
mod context_layers; // the context view: the prompt as layers, from stable to new
mod cost; // `hardpan cost`
mod diff; // `hardpan request --diff`
mod docs; // `hardpan docs`
mod doctor; // `hardpan doctor`
mod event_reader; // EventReader: how faces read the agent's events
mod extensions; // hardpan extensions: which there are, and what they bring
mod first_minute; // what a person reads at the start
mod hud; // --hud: what the last request held, what it cost, what came from the cache
mod import; // `hardpan import`: goes on with a conversation of another agent
mod init; // `hardpan init`: AGENTS.md from what is known offline
mod key_entry; // `hardpan key`: a provider's key, typed without being shown
mod log; // `hardpan log`
mod logging; // HARDPAN_LOG and --log: what happens inside, written to a file
mod map; // `hardpan map` and `hardpan symbols`
mod mcp; // hardpan mcp: servers of the Model Context Protocol
mod models; // `hardpan models`
mod origins; // where each block of a request came from, as JSON
mod page_chat; // an interactive session in the page
mod plain_chat; // an interactive session as plain lines
mod provider_choice; // which provider to use, asked once if several have a key
mod replay; // `hardpan replay`
mod rpc; // `hardpan rpc`
mod run; // one function per command
mod script_output; // --output claude-stream-json and others: what scripts for other agents read
mod send; // `hardpan request --send`
mod sessions; // `hardpan sessions`
mod simulator; // `hardpan simulator`
mod trust; // `hardpan trust`
mod views; // the tables that commands print
mod why; // `hardpan why`

use std::process::ExitCode;

/// A turn allocates thousands of small objects; mimalloc takes a quarter off the time compared with
/// the system's allocator (docs/dependencies.md). The benchmarks use it, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // First of all, as long as this program is the one on disk. In a process that was started to enter
    // the sandbox, this does not return.
    hardpan_sandbox::SandboxLauncher::install("__sandbox");
    hardpan_sandbox::forbid_core_dumps();
    if let Some(code) = acp::command_terminal::run_if_asked() {
        return ExitCode::from(code);
    }
    let args = args::Args::read();
    let started = logging::start(args.log.as_deref()).map_err(anyhow::Error::from);
    match started.and_then(|()| run::run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_output_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            note!("hardpan: {}", output::safe_lines(&output::error_text(&error)));
            chat::ExitError::exit_code_of(&error)
        }
    }
}

//! The `hardpan` command.
//!
//! A thin shell: it gathers a snapshot from the folder, calls the engine, and shows what came out. Data goes to standard
//! output, words to standard error.

mod args; // what can be typed
mod audit; // `hardpan audit`
mod chat; // a conversation: one prompt, JSON events, or line by line
mod commit; // `hardpan commit`
mod cost; // `hardpan cost`
mod diff; // `hardpan request --diff`
mod docs; // `hardpan docs`
mod gather; // from files, a folder and a session to a snapshot
mod hud; // what the last request held and cost, and what came from the cache
mod map; // `hardpan map`, `hardpan symbols`, and the map in a prompt
mod origins; // the origins of a body's blocks, as JSON
mod output; // standard output, tables, safe text
mod replay; // `hardpan replay`
mod route; // how a request gets to its provider
mod rpc; // `hardpan rpc`
mod run; // one function per command
mod send; // `hardpan request --send`
mod sessions; // `hardpan sessions`
mod settings; // the config folder, the project's folder, trust
mod simulator; // `hardpan simulator`
mod state; // what is learned from run to run
mod views; // tables for people
mod why; // `hardpan why`

use std::process::ExitCode;

/// A turn makes and drops thousands of small things: a quarter less time than with the system's allocator
/// (docs/dependencies.md). The benchmarks use it, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::read();
    match run::run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hardpan: {}", output::safe_lines(&format!("{error:#}")));
            chat::Unfinished::code_of(&error)
        }
    }
}

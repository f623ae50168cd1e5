//! A conversation: one prompt and its answer, JSON events, or line by line.

pub mod approve; // who is asked before something is changed
mod around; // what is around the agent: the folder
mod asker; // asking in the terminal, line by line
pub mod attach; // @file, images, standard input: what goes with a prompt
pub mod commands; // what can be typed after a slash
mod editor; // the line that is being typed
pub mod hands; // the tools that change things
mod keys; // from the bytes of a terminal to keys
mod lines; // the conversation line by line
mod once; // one prompt, its answer, and out
pub mod open; // from flags to an agent
mod price; // what an act would cost, and why the last request cost what it did
mod screen; // the terminal, which two write to
mod show; // what a person sees of the events
pub mod signals; // Ctrl-C, and being told to end

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::Chat;
use signals::Asked;

/// Said where signals cannot be listened to.
pub const UNHEARD: &str = "interrupts cannot be listened to";

/// How a run that did not end well is told to the shell.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Unfinished {
    /// The exit code.
    pub code: u8,
    /// What is said.
    pub message: String,
}

impl Unfinished {
    /// Somebody asked for it.
    pub fn told(asked: Asked) -> Self {
        Unfinished { code: asked.code(), message: "interrupted; what was received is kept".into() }
    }

    /// The code of an error, if it has one of its own.
    pub fn code_of(error: &anyhow::Error) -> ExitCode {
        error
            .downcast_ref::<Unfinished>()
            .map_or(ExitCode::FAILURE, |unfinished| ExitCode::from(unfinished.code))
    }
}

/// Begins the conversation that the flags ask for. Without a terminal, what is piped in is the prompt.
pub fn chat(flags: &Chat) -> Result<()> {
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let given = match flags.print.as_deref() {
        None if terminal => None,
        flag => match attach::given(flag)? {
            None => return crate::run::welcome(),
            given => given,
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One for the loop; the others so that a handler that blocks does not hold it up.
        .worker_threads(4)
        .enable_all()
        .build()
        .context("no runtime can be made")?;
    let result = runtime.block_on(async {
        match given {
            Some(given) => once::answer(flags, given).await,
            None => lines::converse(flags).await,
        }
    });
    // A tool or a handler that hangs on a thread of its own must not keep the process.
    runtime.shutdown_background();
    result
}

//! A conversation with the agent: one prompt and its answer, JSON events, or an interactive
//! session. [`hardpan_app::ConversationApp`] holds what all of them share.

mod approval_question; // ApprovalQuestion: what a person sees before a call runs
mod command_error; // SlashCommandError: why a slash command failed
pub mod commands; // the slash commands
pub mod display; // EventPrinter: shows the agent's events as text
mod editor; // LineEditor: the line that the user types
mod event_output; // EventOutput: the agent's events on standard output, as text or JSON
mod keys; // KeyDecoder: from the bytes of a terminal to keys
mod one_shot; // `hardpan -p`: one prompt, its answer, exit
mod panels; // /panels and /close
mod price; // /price and /why
mod prompt_input; // PromptInput: the prompt of `hardpan -p`, from flags and standard input
mod repl; // the interactive session
pub mod screen; // the terminal: output above, the input line below
pub mod signals; // Ctrl-C, SIGTERM and SIGHUP
mod terminal_prompter; // TerminalPrompter: asks the user in the terminal

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::ChatArgs;
use crate::output::OutputFormat;
use hardpan_app::settings::ScreenKind;
use signals::Interrupt;

pub use repl::open_or_ask;

/// The error context where installing signal handlers fails.
pub const SIGNALS_UNAVAILABLE: &str = "cannot listen for signals";

/// An error that ends the process with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExitError {
    /// For the shell: 130 after Ctrl-C, 3 for an answer that is not complete, and so on.
    pub code: u8,
    pub message: String,
}

impl ExitError {
    /// The error of a run that a signal stopped.
    pub fn interrupted(interrupt: Interrupt) -> Self {
        ExitError {
            code: interrupt.exit_code(),
            message: "interrupted; the session keeps what arrived".into(),
        }
    }

    /// The exit code for an error: its own if it is an `ExitError`, else 1.
    pub fn exit_code_of(error: &anyhow::Error) -> ExitCode {
        error
            .downcast_ref::<ExitError>()
            .map_or(ExitCode::FAILURE, |unfinished| ExitCode::from(unfinished.code))
    }
}

/// Starts the conversation that the flags ask for. Without a terminal, standard input is the
/// prompt.
pub fn chat(flags: &ChatArgs) -> Result<()> {
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let input = match flags.print.as_deref() {
        None if terminal => None,
        flag => match prompt_input::read_prompt_input(flag)? {
            None => return crate::run::welcome(),
            input => input,
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One runs the loop; the others keep it going while a handler blocks its thread.
        .worker_threads(4)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let result = runtime.block_on(async {
        match input {
            Some(input) => one_shot::answer(flags, input).await,
            None if is_page_wanted(flags) => crate::page_chat::converse(flags).await,
            None => repl::converse(flags).await,
        }
    });
    // A tool or a handler that hangs on its own thread must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// Whether the settings ask for the terminal face, and this terminal can show it.
fn is_page_wanted(flags: &ChatArgs) -> bool {
    let dir = flags.conversation.target_args.dir.as_deref();
    let is_asked_for = || {
        let settings = crate::command_setup::load_settings(dir).ok();
        settings.is_some_and(|settings| settings.config.screen == Some(ScreenKind::Page))
    };
    flags.output == OutputFormat::Text && !screen::is_dumb() && is_asked_for()
}

//! A conversation with the agent: one prompt and its answer, JSON events, or an interactive
//! session. [`hardpan_app::ConversationApp`] holds what all of them share.

pub mod act_price; // what a slash command costs, before it is run
mod command_error; // SlashCommandError: why a slash command failed
pub mod commands; // the slash commands
pub mod compaction_price; // what a compaction costs and saves
pub mod display; // EventPrinter: shows the agent's events as text
pub mod event_output; // EventOutput: the agent's events on standard output, as text or JSON
pub mod one_shot; // `hardpan -p`: one prompt, its answer, exit
mod panels; // /panels and /close
mod price; // /price and /why
mod prompt_input; // PromptInput: the prompt of `hardpan -p`, from flags and standard input
pub mod screen; // text and answers on the terminal, line by line
pub mod signals; // Ctrl-C, SIGTERM and SIGHUP

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::ChatArgs;
use crate::provider_choice;
use crate::script_output::ChatOutput;
use hardpan_app::DiscardNotices;
use hardpan_app::settings::{ScreenKind, Settings, UserFolders};
use signals::Interrupt;

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
/// prompt; with `--plain`, its lines are what a person would type.
pub fn chat(flags: &ChatArgs) -> Result<()> {
    let input = match flags.print.as_deref() {
        None if flags.plain || io::stdin().is_terminal() => None,
        flag => match prompt_input::read_prompt_input(flag)? {
            None if flags.conversation.names_session() => {
                anyhow::bail!("there is no prompt: give one with -p, or start hardpan in a terminal")
            }
            None => return crate::run::welcome(flags.conversation.target_args.dir.as_deref()),
            input => input,
        },
    };
    if input.is_none() && flags.chat_output().is_script_format() {
        anyhow::bail!(
            "this output is for one prompt: give it with -p, or use --output json for conversations"
        );
    }
    let settings = if input.is_none() { load_settings(flags) } else { None };
    if let Some(settings) = &settings
        && io::stdin().is_terminal()
        && flags.chat_output() == ChatOutput::Text
    {
        provider_choice::choose_provider(&flags.conversation.options()?, settings)?;
    }
    let is_plain = is_plain(flags, settings.as_ref());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One runs the loop; the others keep it going while a handler blocks its thread.
        .worker_threads(4)
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let result = runtime.block_on(async {
        match input {
            Some(input) => one_shot::answer(flags, input).await,
            None if is_plain => crate::plain_chat::converse(flags).await,
            None => crate::page_chat::converse(flags).await,
        }
    });
    // A tool or a handler that hangs on its own thread must not keep the process alive.
    runtime.shutdown_background();
    result
}

/// The settings; none if they have a mistake, which is told when the conversation opens.
pub fn load_settings(flags: &ChatArgs) -> Option<Settings> {
    let dir = flags.conversation.target_args.dir.as_deref();
    let folder = crate::command_setup::working_folder(dir).ok()?;
    let root = hardpan_workspace::find_project_root(&folder);
    Settings::load(&root, UserFolders::from_env(), &DiscardNotices).ok()
}

/// Whether the session is one of plain lines: asked for, or all that there can be.
fn is_plain(flags: &ChatArgs, settings: Option<&Settings>) -> bool {
    let is_set = std::env::var_os("HARDPAN_PLAIN").is_some_and(|value| !value.is_empty() && value != "0");
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && !screen::is_dumb();
    let is_configured = settings.is_some_and(|settings| settings.config.screen == Some(ScreenKind::Plain));
    flags.plain || is_set || !is_terminal || flags.chat_output() != ChatOutput::Text || is_configured
}

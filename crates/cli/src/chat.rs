//! A conversation: one prompt and its answer, JSON events, or line by line.

pub mod approve; // who is asked before something is changed
mod around; // what is around the agent: the folder
mod asker; // asking in the terminal, line by line
mod attach; // @file, images, standard input: what goes with a prompt
pub mod commands; // what can be typed after a slash
pub mod hands; // the tools that change things
mod lines; // the conversation line by line
pub mod open; // from flags to an agent
mod price; // what an act would cost, and why the last request cost what it did
mod show; // what a person sees of the events
pub mod signals; // Ctrl-C, and being told to end

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use hardpan_agent::{AgentError, Input, InputSource, Stop, Taken};

use crate::args::{Chat, Output};
use crate::output;
use open::Opened;
use signals::{Asked, Signals};

/// Said where standard output takes nothing more.
const UNWRITTEN: &str = "standard output cannot be written to; what was said is in the session";

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

/// Begins the conversation that the flags ask for.
pub fn chat(flags: &Chat) -> Result<()> {
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if flags.print.is_none() && !terminal {
        return crate::run::welcome();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // One for the loop; the others so that a handler that blocks does not hold it up.
        .worker_threads(4)
        .enable_all()
        .build()
        .context("no runtime can be made")?;
    let result = runtime.block_on(async {
        match &flags.print {
            Some(prompt) => print(flags, prompt).await,
            None => lines::converse(flags).await,
        }
    });
    // A tool or a handler that hangs on a thread of its own must not keep the process.
    runtime.shutdown_background();
    result
}

/// One prompt, its answer, and out.
async fn print(flags: &Chat, prompt: &str) -> Result<()> {
    let prompt = attach::prompt(prompt)?;
    let opened = Arc::new(Opened::new(flags, None)?);
    commands::register(&opened);
    let agent = opened.agent.clone();
    // What could not be written. The work goes on: its end is in the session.
    let lost: Arc<Mutex<Option<io::Error>>> = Arc::default();
    let shown = match flags.output {
        Output::Json => {
            let lost = lost.clone();
            agent.events().watch(move |event| {
                if let Err(error) = output::print(format!("{event}\n")) {
                    lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                }
            });
            None
        }
        Output::Text => Some(show::Text::follow(&agent, io::stdout().is_terminal())),
    };
    if let Some(hint) = commands::unknown(&agent, &prompt) {
        bail!(hint);
    }
    let mut signals = Signals::listen().context(UNHEARD)?;
    agent.start().await;
    let images = opened.attach(&prompt)?;
    let working = agent.prompt(Input { text: prompt, images, source: InputSource::Interactive });
    tokio::pin!(working);
    let mut ended = None;
    let taken = loop {
        tokio::select! {
            taken = &mut working => break taken,
            asked = signals.next() => {
                ended = Some(asked).filter(|asked| *asked != Asked::Stop).or(ended);
                agent.abort();
            }
        }
    };
    opened.keep().await;
    agent.shutdown().await?;
    if let Some(shown) = &shown {
        shown.finish().context(UNWRITTEN)?;
    }
    if let Some(error) = lost.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error).context(UNWRITTEN);
    }
    if flags.hud {
        show::print_hud(&agent, flags.output);
    }
    match ended {
        Some(asked) => Err(Unfinished::told(asked).into()),
        None => end(taken, flags.output),
    }
}

/// What the shell is told.
fn end(taken: Result<Taken, AgentError>, shown: Output) -> Result<()> {
    let unfinished = |code, message: String| Err(Unfinished { code, message }.into());
    match taken? {
        Taken::Command { said } => {
            if let (Some(said), Output::Text) = (said, shown) {
                let terminal = io::stdout().is_terminal();
                output::print(if terminal { output::safe_lines(&said) } else { said } + "\n")?;
            }
            Ok(())
        }
        Taken::Handled | Taken::Queued(_) | Taken::Ran(Stop::Done) => Ok(()),
        Taken::Ran(Stop::Aborted) => Err(Unfinished::told(Asked::Stop).into()),
        Taken::Ran(Stop::Length) => {
            unfinished(3, "the answer was cut at its limit of tokens (--max-tokens)".into())
        }
        Taken::Ran(Stop::Refused) => unfinished(3, "the model refused".into()),
        Taken::Ran(Stop::Looping { tool }) => {
            unfinished(3, format!("stopped: the model kept making the same failing call of {tool}"))
        }
        Taken::Ran(Stop::TooLong { message } | Stop::Error { message }) => unfinished(1, message),
    }
}

//! One prompt, its answer, and out: for a shell.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use hardpan_agent::{Agent, AgentError, Command, Input, InputSource, Stop, Taken, Tell};
use hardpan_prompt::Body;

use super::attach::{Given, Source};
use super::open::Opened;
use super::signals::{Asked, Signals};
use super::{UNHEARD, Unfinished, commands, show};
use crate::args::{Chat, Output};
use crate::output;

/// Said where standard output takes nothing more.
const UNWRITTEN: &str = "standard output cannot be written to; what was said is in the session";

/// One prompt, its answer, and out.
pub async fn answer(flags: &Chat, given: Given) -> Result<()> {
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
        Output::Text => Some(show::Text::follow(&opened, io::stdout().is_terminal())),
    };
    let wanted = Wanted::by(&agent, given)?;
    let mut signals = Signals::listen().context(UNHEARD)?;
    agent.start().await;
    let working = wanted.done(&opened);
    tokio::pin!(working);
    let mut told = None;
    let came = loop {
        tokio::select! {
            came = &mut working => break came,
            asked = signals.next() => {
                told = told.filter(|told| *told != Asked::Stop).or(Some(asked));
                agent.abort_bash();
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
    match (told, came) {
        (Some(asked), Ok(Came::Command { command, said, failed: Some(_) })) => {
            end_command(&command, said, None, flags.output)?;
            Err(Unfinished::told(asked).into())
        }
        (Some(asked), _) if asked != Asked::Stop => Err(Unfinished::told(asked).into()),
        (_, came) => end(came?, flags.output),
    }
}

/// What a prompt wants.
enum Wanted {
    /// `/name arguments`: a command of ours.
    Command { name: String, arguments: String, command: Command },
    /// `!line`, or `!!line`: a command of the person's own.
    Shell { line: String, tell: Tell },
    /// An answer.
    Answer(Given),
}

/// What came of it.
enum Came {
    /// A command ran, with what it had to say, and why it failed if it did.
    Command { command: String, said: Option<String>, failed: Option<String> },
    /// The agent took it.
    Taken(Taken),
}

impl Wanted {
    /// What is wanted, or why it cannot be had. Only what the person typed runs anything: standard input is a text.
    fn by(agent: &Agent, mut given: Given) -> Result<Self> {
        if let Some(hint) = commands::unknown(agent, &given.prompt) {
            bail!(hint);
        }
        let later = given.prompt.strip_prefix("/later");
        let later = later.filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if given.source == Source::Piped {
            if later.is_some() || commands::called(agent, &given.prompt).is_some() {
                let name = given.prompt.split_whitespace().next().unwrap_or_default();
                bail!(
                    "{name} on standard input is not run: name commands on the command line, -p \"{name}\""
                );
            }
            return Ok(Wanted::Answer(given));
        }
        if let Some(line) = given.prompt.strip_prefix('!') {
            let (line, tell) =
                line.strip_prefix('!').map_or((line, Tell::Model), |line| (line, Tell::Nobody));
            let line = line.trim().to_owned();
            if line.is_empty() {
                bail!("it needs a command: !COMMAND, or !!COMMAND to keep it from the model");
            }
            given.is_not_sent();
            return Ok(Wanted::Shell { line, tell });
        }
        match later.map(str::trim) {
            Some("") => bail!("it needs a text: /later TEXT"),
            // Nothing runs that it could wait for.
            Some(later) => given.prompt = later.to_owned(),
            None => {}
        }
        match commands::called(agent, &given.prompt) {
            Some((name, arguments, command)) => {
                given.is_not_sent();
                Ok(Wanted::Command { name: name.to_owned(), arguments: arguments.to_owned(), command })
            }
            None => Ok(Wanted::Answer(given)),
        }
    }

    async fn done(self, opened: &Opened) -> Result<Came, AgentError> {
        let agent = &opened.agent;
        match self {
            Wanted::Answer(Given { prompt, source, below }) => {
                let images = opened.attach(&prompt, source);
                let input = Input { text: prompt, below, images, source: InputSource::Interactive };
                agent.prompt(input).await.map(Came::Taken)
            }
            Wanted::Shell { line, tell } => {
                let message = agent.bash(line.clone(), tell).await?;
                let Body::BashExecution { output, exit_code, .. } = &*message.body else {
                    return Ok(Came::Taken(Taken::Handled));
                };
                let failed = match exit_code {
                    Some(0) => None,
                    Some(code) => Some(format!("it ended with exit code {code}")),
                    None => Some("it was stopped".to_owned()),
                };
                let said = Some(output.trim_end().to_owned());
                Ok(Came::Command { command: format!("!{line}"), said, failed })
            }
            Wanted::Command { name, arguments, command } => {
                // A task of its own: a command that breaks still ends in words.
                let running = tokio::spawn((command.run)(arguments, agent.clone()));
                let done = running.await.unwrap_or_else(|_| Err("it broke; nothing else was touched".into()));
                let command = format!("/{name}");
                Ok(match done {
                    Ok(said) => Came::Command { command, said, failed: None },
                    Err(why) => Came::Command { command, said: None, failed: Some(why) },
                })
            }
        }
    }
}

/// What the shell is told.
fn end(came: Came, shown: Output) -> Result<()> {
    let unfinished = |code, message: String| Err(Unfinished { code, message }.into());
    let taken = match came {
        Came::Command { command, said, failed } => return end_command(&command, said, failed, shown),
        Came::Taken(taken) => taken,
    };
    match taken {
        Taken::Command { said } => end_command("", said, None, shown),
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

/// What a command said: on standard output, or as an event. Why it failed is the end of the run.
fn end_command(command: &str, said: Option<String>, failed: Option<String>, shown: Output) -> Result<()> {
    match (shown, said) {
        (Output::Json, said) => {
            let mut event = serde_json::json!({"type": "command", "command": command, "said": said});
            if let Some(why) = &failed {
                event["error"] = why.as_str().into();
            }
            output::print(format!("{event}\n"))?;
        }
        (Output::Text, Some(said)) => {
            let terminal = io::stdout().is_terminal();
            output::print(if terminal { output::safe_lines(&said) } else { said } + "\n")?;
        }
        (Output::Text, None) => {}
    }
    failed.map_or(Ok(()), |why| bail!("{command}: {why}"))
}

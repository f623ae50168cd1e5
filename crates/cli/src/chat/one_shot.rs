//! `hardpan -p`: answers one prompt and exits, for shells and scripts. A prompt is a
//! [`PromptAction`]: text for the model, a slash command, or a shell command.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hardpan_agent::{
    Agent, AgentError, Command, CommandError, Input, InputOutcome, InputSource, RunEnd, ShellVisibility,
};
use hardpan_app::attachment_price::AttachmentRefusal;
use hardpan_app::mentions::PromptSource;
use hardpan_app::{Attachments, ConversationApp, FaceHooks};
use hardpan_prompt::MessageBody;

use super::event_output::EventOutput;
use super::prompt_input::PromptInput;
use super::signals::{Interrupt, Signals};
use super::{ExitError, SIGNALS_UNAVAILABLE, commands, display};
use crate::args::ChatArgs;
use crate::command_setup::StderrNotices;
use crate::output;
use crate::script_output::{ChatOutput, ScriptEnd};

/// How soon after the first signal another one belongs to it: `timeout` sends SIGTERM twice, to the process
/// and to its group.
const SIGNAL_PAUSE: Duration = Duration::from_millis(200);

/// The error context where writing the answer fails.
const STDOUT_UNWRITABLE: &str = "cannot write to standard output; the session has the answer";

/// Performs what the prompt asks for and prints the result.
pub async fn answer(flags: &ChatArgs, input: PromptInput) -> Result<()> {
    let face = FaceHooks { prompter: None, notices: StderrNotices::shared() };
    let mut options = flags.conversation.options()?;
    // A prompt has one answer unless asked otherwise, whatever the settings say.
    options.auto_continue.get_or_insert(false);
    let app = Arc::new(ConversationApp::open(&options, &face)?);
    commands::register_commands(&app);
    let agent = app.agent.clone();
    let shown = flags.chat_output();
    let output = EventOutput::start(&app, shown, io::stdout().is_terminal());
    app.load_extensions().await?;
    if input.source == PromptSource::Typed {
        app.mcp.learn_prompts_of(&input.prompt).await;
    }
    let action = PromptAction::parse(&agent, input)?;
    let mut signals = Signals::listen().context(SIGNALS_UNAVAILABLE)?;
    agent.start().await;
    let working = action.perform(&app);
    tokio::pin!(working);
    let mut interrupt = None;
    let mut first_signal = None;
    let outcome = loop {
        tokio::select! {
            outcome = &mut working => break outcome,
            signal = signals.next() => {
                let stopped = tokio::time::Instant::now();
                // The second one ends it at once, except for one that comes with the first.
                if first_signal.is_some_and(|first| stopped.duration_since(first) > SIGNAL_PAUSE) {
                    return Err(ExitError::interrupted(signal).into());
                }
                first_signal.get_or_insert(stopped);
                interrupt = interrupt.filter(|interrupt| *interrupt != Interrupt::Stop).or(Some(signal));
                agent.abort_shell_command();
                agent.stop();
            }
        }
    };
    tokio::select! {
        biased;
        stored = app.close() => stored?,
        signal = signals.next() => return Err(ExitError::interrupted(signal).into()),
    }
    let end = script_end(interrupt, &outcome);
    output.finish(&end).await.context(STDOUT_UNWRITABLE)?;
    if flags.hud {
        display::print_hud(&agent, shown.own_format());
    }
    match (interrupt, outcome) {
        (Some(signal), Ok(ActionOutcome::Command { command, said, failed: Some(_) })) => {
            finish_command(&command, said, None, shown)?;
            Err(ExitError::interrupted(signal).into())
        }
        (Some(signal), _) if signal != Interrupt::Stop => Err(ExitError::interrupted(signal).into()),
        (_, outcome) => finish(outcome?, shown),
    }
}

/// What a prompt asks for.
enum PromptAction {
    /// `/name arguments`: a slash command.
    Command { name: String, arguments: String, command: Command },
    /// `!line` or `!!line`: a shell command of the user's own.
    Shell { line: String, visibility: ShellVisibility },
    /// A prompt for the model.
    Answer(PromptInput),
}

/// What performing a [`PromptAction`] led to.
enum ActionOutcome {
    /// A command ran. `said` is its output, `failed` the reason if it failed.
    Command { command: String, said: Option<String>, failed: Option<ActionFailure> },
    /// The agent handled the prompt.
    Agent(InputOutcome),
    /// What goes with the prompt costs more than may be sent without a question.
    NotSent(AttachmentRefusal),
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum ActionFailure {
    #[error(transparent)]
    Command(CommandError),
    #[error("exited with code {0}")]
    ExitCode(i32),
    /// The shell command was stopped by a signal.
    #[error("stopped")]
    Stopped,
}

impl PromptAction {
    /// Parses a prompt. Only a prompt that the user typed runs commands: standard input is text
    /// that somebody else may have written.
    fn parse(agent: &Agent, mut input: PromptInput) -> Result<Self> {
        if let Some(hint) = commands::unknown_command_hint(agent, &input.prompt) {
            bail!(hint);
        }
        let later = input.prompt.strip_prefix("/later");
        let later = later.filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if input.source == PromptSource::Piped {
            if later.is_some() || commands::is_call(agent, &input.prompt) {
                let name = input.prompt.split_whitespace().next().unwrap_or_default();
                bail!(
                    "commands on standard input are not run: pass {name} on the command line, -p \"{name}\""
                );
            }
            return Ok(PromptAction::Answer(input));
        }
        if input.prompt == "/mode" || input.prompt.starts_with("/mode ") {
            bail!("/mode is for conversations in a terminal; -p asks nobody, and --yes allows everything");
        }
        if let Some(line) = input.prompt.strip_prefix('!') {
            let (line, visibility) = line
                .strip_prefix('!')
                .map_or((line, ShellVisibility::Model), |line| (line, ShellVisibility::UserOnly));
            let line = line.trim().to_owned();
            if line.is_empty() {
                bail!("expected a command: !COMMAND, or !!COMMAND to keep it from the model");
            }
            input.warn_piped_text_unused();
            return Ok(PromptAction::Shell { line, visibility });
        }
        match later.map(str::trim) {
            Some("") => bail!("expected a text: /later TEXT"),
            // Nothing runs, so there is nothing to wait for.
            Some(later) => input.prompt = later.to_owned(),
            None => {}
        }
        match commands::parse_call(agent, &input.prompt) {
            Some((name, arguments, command)) => {
                input.warn_piped_text_unused();
                Ok(PromptAction::Command { name: name.to_owned(), arguments: arguments.to_owned(), command })
            }
            None => Ok(PromptAction::Answer(input)),
        }
    }

    async fn perform(self, app: &ConversationApp) -> Result<ActionOutcome, AgentError> {
        let agent = &app.agent;
        match self {
            PromptAction::Answer(PromptInput { prompt, source, piped_text }) => {
                if let Err(refusal) = app.confirm_attachments(&prompt, piped_text.as_deref(), &[]).await {
                    return Ok(ActionOutcome::NotSent(refusal));
                }
                let Attachments { images, notes } = app.attach_mentions(&prompt, source);
                notes.iter().for_each(|note| display::print_wrapped(&output::safe(&note.to_string())));
                let input = Input {
                    text: prompt,
                    below: piped_text,
                    images,
                    source: InputSource::Interactive,
                    id: None,
                };
                agent.prompt(input).await.map(ActionOutcome::Agent)
            }
            PromptAction::Shell { line, visibility } => {
                let message = agent.run_shell_command(line.clone(), visibility).await?;
                let MessageBody::BashExecution { output, exit_code, .. } = &*message.body else {
                    return Ok(ActionOutcome::Agent(InputOutcome::Handled));
                };
                let failed = match exit_code {
                    Some(0) => None,
                    Some(code) => Some(ActionFailure::ExitCode(*code)),
                    None => Some(ActionFailure::Stopped),
                };
                let said = Some(output.trim_end().to_owned());
                Ok(ActionOutcome::Command { command: format!("!{line}"), said, failed })
            }
            PromptAction::Command { name, arguments, command } => {
                let done = command.run(&arguments, agent).await;
                let command = format!("/{name}");
                Ok(match done {
                    Ok(said) => ActionOutcome::Command { command, said, failed: None },
                    Err(error) => {
                        let failed = Some(ActionFailure::Command(error));
                        ActionOutcome::Command { command, said: None, failed }
                    }
                })
            }
        }
    }
}

/// How everything ended, for scripts.
fn script_end(interrupt: Option<Interrupt>, outcome: &Result<ActionOutcome, AgentError>) -> ScriptEnd {
    let interrupted = interrupt.map(|signal| ExitError::interrupted(signal).message);
    let failed = |failure: Option<String>| ScriptEnd { failure: interrupted.clone().or(failure), said: None };
    match outcome {
        Err(error) => failed(Some(error.to_string())),
        Ok(ActionOutcome::NotSent(refusal)) => failed(Some(refusal.to_string())),
        Ok(ActionOutcome::Command { said, failed: failure, .. }) => {
            ScriptEnd { said: said.clone(), ..failed(failure.as_ref().map(ToString::to_string)) }
        }
        Ok(ActionOutcome::Agent(InputOutcome::Ran(end))) => {
            failed(run_failure(end).map(|failure| failure.message))
        }
        Ok(ActionOutcome::Agent(InputOutcome::Command { output })) => {
            ScriptEnd { said: output.clone(), ..failed(None) }
        }
        Ok(ActionOutcome::Agent(InputOutcome::Handled | InputOutcome::Queued(_))) => failed(None),
    }
}

/// Turns the outcome into the exit code and the message for the shell.
fn finish(outcome: ActionOutcome, shown: ChatOutput) -> Result<()> {
    let taken = match outcome {
        ActionOutcome::Command { command, said, failed } => {
            return finish_command(&command, said, failed, shown);
        }
        ActionOutcome::NotSent(refusal) => {
            return Err(ExitError { code: 1, message: refusal.to_string() }.into());
        }
        ActionOutcome::Agent(taken) => taken,
    };
    match taken {
        InputOutcome::Command { output } => finish_command("", output, None, shown),
        InputOutcome::Handled | InputOutcome::Queued(_) => Ok(()),
        InputOutcome::Ran(end) => run_failure(&end).map_or(Ok(()), |failure| Err(failure.into())),
    }
}

/// The exit code and the message for a run that did not end with an answer.
pub fn run_failure(end: &RunEnd) -> Option<ExitError> {
    let unfinished = |code, message: String| Some(ExitError { code, message });
    match end {
        RunEnd::Done => None,
        RunEnd::Aborted => Some(ExitError::interrupted(Interrupt::Stop)),
        RunEnd::Length => unfinished(
            3,
            "the answer reached its token limit and was cut off; raise it with --max-tokens".into(),
        ),
        RunEnd::Refused => unfinished(3, "the model refused to answer".into()),
        RunEnd::Looping { tool } => {
            unfinished(3, format!("stopped: the model kept repeating the same failing {tool} call"))
        }
        RunEnd::TooLong { message } | RunEnd::Error { message } => unfinished(1, message.clone()),
    }
}

/// Prints a command's output, as text or as an event, and fails if the command failed.
fn finish_command(
    command: &str,
    said: Option<String>,
    failed: Option<ActionFailure>,
    shown: ChatOutput,
) -> Result<()> {
    match (shown, said) {
        (ChatOutput::Json, said) => {
            let mut event = serde_json::json!({"type": "command", "command": command, "said": said});
            if let Some(why) = &failed {
                event["error"] = why.to_string().into();
            }
            output::print_json_line(event.to_string())?;
        }
        (ChatOutput::Text, Some(said)) => {
            output::print(said + "\n")?;
        }
        // Another agent's form has it already.
        _ => {}
    }
    failed.map_or(Ok(()), |why| bail!("{command}: {why}"))
}

//! The interactive session. Lines that the user types while the agent works are queued, and Ctrl-C
//! stops what runs.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hardpan_agent::{AgentError, Delivery, Input, InputOutcome, InputSource, RunEnd, ShellVisibility};
use hardpan_app::mentions::PromptSource;
use hardpan_app::options::{ForeignSessions, OpenOptions};
use hardpan_app::{Attachments, ConversationApp, FaceHooks, OpenError};
use hardpan_prompt::{AgentMessage, MessageBody};
use tokio::sync::mpsc;

use super::commands;
use super::event_output::EventOutput;
use super::signals::{Interrupt, Signals};
use super::terminal_prompter::{TerminalPrompter, UserQuestion, answer_question};
use super::{ExitError, SIGNALS_UNAVAILABLE};
use super::{display, screen};
use crate::args::ChatArgs;
use crate::command_setup::StderrNotices;
use crate::output::{OutputFormat, dollars, safe, safe_lines};
use crate::trust;

/// Prints a message for the user, wrapped to the terminal.
macro_rules! notice {
    ($($words:tt)*) => { display::print_wrapped(&format!($($words)*)) };
}

/// The longest line, in bytes, that a terminal with its own line editing passes on (on Linux;
/// elsewhere less).
const LONGEST_LINE: usize = 4095;

type Pending = FuturesUnordered<BoxFuture<'static, Result<InputOutcome, AgentError>>>;

/// What the next Ctrl-C does while nothing runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IdleCtrlC {
    /// Explain how to leave: it may have been meant for an answer that has just ended.
    Stay,
    /// End the conversation: it was pressed before, and nothing was typed since.
    Leave,
}

/// Opens the conversation; asks first if it comes from elsewhere.
pub fn open_or_ask(mut options: OpenOptions, face: &FaceHooks) -> Result<ConversationApp> {
    match ConversationApp::open(&options, face) {
        Err(OpenError::ForeignSession(origin)) if trust::can_ask() => {
            let origin = safe(&origin.to_string());
            note!(
                "hardpan: {origin}. What it says, somebody else may have written, and the model believes it."
            );
            if !trust::confirm("Continue it here?")? {
                return Err(ExitError { code: 130, message: "nothing was opened".into() }.into());
            }
            options.foreign_sessions = ForeignSessions::Accept;
            Ok(ConversationApp::open(&options, face)?)
        }
        opened => Ok(opened?),
    }
}

/// Runs the session until the user leaves.
pub async fn converse(flags: &ChatArgs) -> Result<()> {
    let (asker, mut questions) = TerminalPrompter::new();
    let face = FaceHooks { prompter: Some(Arc::new(asker)), notices: StderrNotices::shared() };
    let options = flags.conversation.options()?;
    trust::review_changes(&options.folder)?;
    let app = Arc::new(open_or_ask(options, &face)?);
    let agent = app.agent.clone();
    let quit_requested = commands::register_commands(&app);
    let output = EventOutput::start(&app, flags.output, true);
    let context = app.context.clone();
    drop(tokio::task::spawn_blocking(move || context.warm_up(&mut |_, _| ())));
    agent.start().await;
    if flags.output == OutputFormat::Text {
        print_greeting(&app);
    }
    let (mut signals, mut idle) = (Signals::listen().context(SIGNALS_UNAVAILABLE)?, IdleCtrlC::Stay);
    // Raw mode starts only now that no signal ends the process by itself, and ends with the guard:
    // the shell needs its terminal back.
    let (mut lines, _held) = read_input_lines(flags)?;
    let mut pending: Pending = FuturesUnordered::new();
    // Questions that wait for an answer. The next typed line answers the last one.
    let mut open: Vec<UserQuestion> = Vec::new();
    let was_stopped = Arc::new(AtomicBool::new(false));
    let mut interrupt = None;
    while !quit_requested.load(Ordering::Relaxed) {
        // A run that was stopped no longer waits for an answer.
        open.retain(UserQuestion::is_open);
        if pending.is_empty() && flags.output == OutputFormat::Text {
            screen::show_prompt();
        }
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) if open.last().is_some_and(|question| question.is_for(&line)) => {
                    let is_command = open.last().is_some_and(UserQuestion::is_from_command);
                    let unanswered = open.pop().and_then(|question| answer_question(question, &line));
                    open.extend(unanswered);
                    // Repeats the question before; after a command, once that has printed its
                    // output.
                    open.last().filter(|_| !is_command).into_iter().for_each(UserQuestion::show);
                }
                Some(line) => {
                    idle = IdleCtrlC::Stay;
                    let running = pending.len();
                    submit_line(&app, &line, &mut pending, &was_stopped);
                    // What finished at once has printed its output by now.
                    open.last().filter(|_| pending.len() == running).into_iter().for_each(UserQuestion::show);
                }
                None if pending.is_empty() => break,
                // End of input: finishes what runs, but nobody is there to answer questions.
                None => {
                    open.clear();
                    questions.close();
                    while questions.try_recv().is_ok() {}
                    finish_pending(&app, flags, &output, &mut pending, &mut signals).await;
                }
            },
            Some(question) = questions.recv() => {
                output.catch_up().await;
                question.show();
                open.push(question);
            }
            () = wait_for_ping(&app), if pending.is_empty() => keep_warm(&app, &output, &mut signals).await,
            Some(outcome) = pending.next() => {
                report_outcome(&app, flags, &output, outcome).await;
                open.retain(UserQuestion::is_open);
                open.last().into_iter().for_each(UserQuestion::show);
            }
            signal = signals.next() => {
                if screen::discard_input() {
                    idle = IdleCtrlC::Stay;
                }
                match idle {
                    _ if signal != Interrupt::Stop => {
                        interrupt = Some(signal);
                        break;
                    }
                    // Also a run that the agent began by itself.
                    _ if !pending.is_empty() || agent.is_busy() => {
                        open.clear();
                        was_stopped.store(true, Ordering::Relaxed);
                        agent.abort_shell_command();
                        agent.abort();
                    }
                    IdleCtrlC::Stay => {
                        notice!("(press Ctrl-C again, or Ctrl-D, to leave)");
                        idle = IdleCtrlC::Leave;
                    }
                    IdleCtrlC::Leave => break,
                }
            }
        }
    }
    drop(open);
    stop_pending(&app, flags, &output, &mut pending).await;
    app.save_state().await;
    agent.shutdown().await?;
    app.stop_background_work().await;
    // The conversation is over and stored; a terminal that is gone is not worth an error.
    let _ = output.finish().await;
    let (id, path) = agent.session();
    if path.exists() && flags.output == OutputFormat::Text && !flags.conversation.no_session {
        notice!("to continue this conversation: hardpan --resume {}", safe(&id));
    }
    interrupt.map_or(Ok(()), |interrupt| Err(ExitError::interrupted(interrupt).into()))
}

/// Waits until it is time to keep the provider's cache warm; forever if that would not pay off.
async fn wait_for_ping(app: &ConversationApp) {
    let wanted = app.settings.config.keep_alive.unwrap_or(false) && !app.is_simulated();
    match app.agent.cache_warmth().filter(|_| wanted).and_then(|warmth| warmth.ping_due_in()) {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => std::future::pending().await,
    }
}

async fn keep_warm(app: &ConversationApp, output: &EventOutput, signals: &mut Signals) {
    let pinged = tokio::select! {
        pinged = app.agent.ping_cache() => pinged,
        _ = signals.next() => return,
    };
    output.catch_up().await;
    match pinged {
        Ok(spent) => {
            let left = app
                .agent
                .cache_warmth()
                .map_or_else(String::new, |warmth| format!("; {}", display::cache_countdown(&warmth)));
            notice!(
                "(kept the cache warm for {}{left}; set `keep_alive = false` in config.toml to stop this)",
                dollars(spent.dollars)
            );
        }
        Err(error) => notice!("hardpan: {}", safe_lines(&error.to_string())),
    }
}

fn print_greeting(app: &ConversationApp) {
    let agent = &app.agent;
    let target = agent.target();
    let messages = agent.messages();
    let resumed = match messages.len() {
        0 => String::new(),
        count => format!(" · {} so far", commands::pluralize(count, "message")),
    };
    notice!("hardpan · {} · {}{resumed}", safe(&target.model.name()), agent.layout());
    display::last_exchange(&messages).iter().for_each(|last| notice!("{}", safe_lines(last)));
    notice!("Type a question. @file adds a file, /help lists commands, Ctrl-D leaves.");
}

/// Starts reading lines: with our own editor if the terminal supports it and shows text, else as
/// the terminal delivers them.
fn read_input_lines(
    flags: &ChatArgs,
) -> Result<(mpsc::UnboundedReceiver<String>, Option<screen::RawModeGuard>)> {
    let (sender, receiver) = mpsc::unbounded_channel();
    if flags.output == OutputFormat::Text
        && let Some(held) = screen::enter_raw_mode(sender.clone()).context("cannot set up the terminal")?
    {
        return Ok((receiver, Some(held)));
    }
    // Its own thread, because reading a terminal cannot be cancelled.
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if line.len() >= LONGEST_LINE {
                notice!(
                    "hardpan: the terminal may have cut this line; put long text into a file and mention it with @"
                );
            }
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok((receiver, None))
}

/// Handles a typed line: runs a command, starts a run, or queues it.
fn submit_line(app: &Arc<ConversationApp>, line: &str, pending: &mut Pending, was_stopped: &Arc<AtomicBool>) {
    let text = line.trim().to_owned();
    if text.is_empty() {
        return;
    }
    if let Some(command) = text.strip_prefix('!') {
        let (command, visibility) = command
            .strip_prefix('!')
            .map_or((command, ShellVisibility::Model), |command| (command, ShellVisibility::UserOnly));
        let (agent, command) = (app.agent.clone(), command.trim().to_owned());
        if command.is_empty() {
            notice!("expected a command: !COMMAND, or !!COMMAND to keep it from the model");
            return;
        }
        was_stopped.store(false, Ordering::Relaxed);
        let was_stopped = was_stopped.clone();
        pending.push(Box::pin(async move {
            let message = agent.run_shell_command(command, visibility).await?;
            let end = if was_stopped.load(Ordering::Relaxed) { "(stopped)" } else { "" };
            Ok(shell_outcome(&message, end))
        }));
        return;
    }
    if text == "/later" {
        notice!("expected a text: /later TEXT");
        return;
    }
    if let Some(hint) = commands::unknown_command_hint(&app.agent, &text) {
        notice!("{}", safe(&hint));
        return;
    }
    let Attachments { images, notes } = app.attach_mentions(&text, PromptSource::Typed);
    notes.iter().for_each(|note| notice!("{}", safe(&note.to_string())));
    let agent = app.agent.clone();
    let (text, delivery) = match text.strip_prefix("/later ") {
        Some(later) => (later.trim().to_owned(), Delivery::FollowUp),
        None => (text, Delivery::Steer),
    };
    let input = Input { text, below: None, images, source: InputSource::Interactive, id: None };
    pending.push(Box::pin(async move { agent.queue(input, delivery).await }));
}

/// The output of the user's own command, followed by `stopped` if it did not exit by itself.
fn shell_outcome(message: &AgentMessage, stopped: &str) -> InputOutcome {
    let MessageBody::BashExecution { output, exit_code, .. } = &*message.body else {
        return InputOutcome::Handled;
    };
    let end = if exit_code.is_none() { stopped } else { "" };
    let command_output = [output.trim_end(), end].into_iter().filter(|text| !text.is_empty());
    InputOutcome::Command {
        output: Some(command_output.collect::<Vec<_>>().join("\n")).filter(|said| !said.is_empty()),
    }
}

/// Stops what still runs and waits for its end: a run that nobody polls would block the agent.
async fn stop_pending(app: &ConversationApp, flags: &ChatArgs, output: &EventOutput, pending: &mut Pending) {
    while !pending.is_empty() {
        app.agent.abort_shell_command();
        app.agent.abort();
        tokio::select! {
            Some(outcome) = pending.next() => report_outcome(app, flags, output, outcome).await,
            // Stops runs that have started in the meantime, too.
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
}

/// Waits until everything has finished; a signal stops it instead.
async fn finish_pending(
    app: &ConversationApp,
    flags: &ChatArgs,
    output: &EventOutput,
    pending: &mut Pending,
    signals: &mut Signals,
) {
    loop {
        tokio::select! {
            outcome = pending.next() => match outcome {
                Some(outcome) => report_outcome(app, flags, output, outcome).await,
                None => break,
            },
            _ = signals.next() => return stop_pending(app, flags, output, pending).await,
        }
    }
}

/// Prints what became of an input: the command's output, or how the run ended and what it cost.
async fn report_outcome(
    app: &ConversationApp,
    flags: &ChatArgs,
    output: &EventOutput,
    outcome: Result<InputOutcome, AgentError>,
) {
    output.catch_up().await;
    match outcome {
        // Tables fit the terminal already; sentences are wrapped.
        Ok(InputOutcome::Command { output }) => {
            output.iter().for_each(|said| display::print_wrapped(&safe_lines(said)));
        }
        Ok(InputOutcome::Handled) => {}
        Ok(InputOutcome::Queued(_)) => notice!("(queued; /queue lists what waits)"),
        Ok(InputOutcome::Ran(stop)) => {
            app.save_state().await;
            match stop {
                RunEnd::Done => {}
                RunEnd::Aborted => notice!("stopped; the session keeps what arrived"),
                RunEnd::Length => {
                    notice!(
                        "hardpan: the answer reached its token limit and was cut off; raise it with --max-tokens"
                    );
                }
                RunEnd::Refused => notice!("hardpan: the model refused to answer"),
                RunEnd::Looping { tool } => {
                    notice!(
                        "hardpan: stopped: the model kept repeating the same failing {} call",
                        safe(&tool)
                    );
                }
                RunEnd::TooLong { message } | RunEnd::Error { message } => {
                    notice!("hardpan: {}", safe_lines(&message));
                }
            }
            let waiting = app.agent.queued_inputs();
            if !waiting.is_empty() {
                let count = waiting.steering.len() + waiting.follow_up.len();
                notice!("({count} queued, sent with the next prompt; /unqueue drops them)");
            }
            if flags.hud {
                display::print_hud(&app.agent, flags.output);
            } else if flags.output == OutputFormat::Text {
                display::status_line(&app.agent).iter().for_each(|line| notice!("{line}"));
            }
        }
        Err(error) => notice!("hardpan: {}", safe_lines(&error.to_string())),
    }
}

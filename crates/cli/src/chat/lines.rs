//! The conversation line by line: what is typed while the agent works is queued, and Ctrl-C stops what it does.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hardpan_agent::{AgentError, Delivery, Input, InputSource, Stop, Taken, Tell};
use hardpan_prompt::{AgentMessage, Body};
use tokio::sync::mpsc;

use super::asker::{Asker, Question, answer};
use super::attach::Source;
use super::commands;
use super::open::Opened;
use super::signals::{Asked, Signals};
use super::{UNHEARD, Unfinished};
use super::{screen, show};
use crate::args::{Chat, Output};
use crate::output::{self, dollars, safe, safe_lines};

/// Says something to the person.
macro_rules! tell {
    ($($words:tt)*) => { show::say(&format!($($words)*)) };
}

/// So many bytes of a line are all that a terminal which edits lines itself passes on (Linux; elsewhere fewer).
const LONGEST_LINE: usize = 4095;

type Pending = FuturesUnordered<BoxFuture<'static, Result<Taken, AgentError>>>;

/// What Ctrl-C does while nothing runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Idle {
    /// It says how to leave: it may have been meant for an answer that has just ended.
    Stay,
    /// It was pressed before, and nothing was typed since: it ends the conversation.
    Leave,
}

/// Talks until the person has had enough.
pub async fn converse(flags: &Chat) -> Result<()> {
    let (asker, mut questions) = Asker::new();
    let opened = Arc::new(Opened::new(flags, Some(Arc::new(asker)))?);
    let agent = opened.agent.clone();
    let ended = commands::register(&opened);
    match flags.output {
        Output::Json => agent.events().watch(|event| drop(output::print(format!("{event}\n")))),
        Output::Text => drop(show::Text::follow(&opened, true)),
    }
    let around = opened.around.clone();
    drop(tokio::task::spawn_blocking(move || around.warm_up()));
    agent.start().await;
    if flags.output == Output::Text {
        greet(&opened);
    }
    let (mut signals, mut idle) = (Signals::listen().context(UNHEARD)?, Idle::Stay);
    // Held until the end, whatever that is, and only once no signal ends the process by itself: a terminal that is not given back is of no use to the shell.
    let (mut lines, _held) = typed_lines(flags)?;
    let mut pending: Pending = FuturesUnordered::new();
    // What waits for an answer: the next line that is typed is for the last of them.
    let mut open: Vec<Question> = Vec::new();
    let stopped = Arc::new(AtomicBool::new(false));
    let mut asked = None;
    while !ended.load(Ordering::Relaxed) {
        // A run that was stopped waits for no answer.
        open.retain(Question::is_open);
        if pending.is_empty() && flags.output == Output::Text {
            screen::prompt();
        }
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) if open.last().is_some_and(|question| question.is_for(&line)) => {
                    let is_command = open.last().is_some_and(Question::is_of_command);
                    let unanswered = open.pop().and_then(|question| answer(question, &line));
                    open.extend(unanswered);
                    // One that was asked before is asked again; after a command, once that has told what it did.
                    open.last().filter(|_| !is_command).into_iter().for_each(Question::show);
                }
                Some(line) => {
                    idle = Idle::Stay;
                    let running = pending.len();
                    begin(&opened, &line, &mut pending, &stopped);
                    // What was done at once has been told by now.
                    open.last().filter(|_| pending.len() == running).into_iter().for_each(Question::show);
                }
                None if pending.is_empty() => break,
                // The end of what is typed: what was asked for is still done, but nobody answers any more.
                None => {
                    open.clear();
                    questions.close();
                    while questions.try_recv().is_ok() {}
                    finish(&opened, flags, &mut pending, &mut signals).await;
                }
            },
            Some(question) = questions.recv() => {
                question.show();
                open.push(question);
            }
            () = ping_due(&opened), if pending.is_empty() => keep_warm(&opened, &mut signals).await,
            Some(taken) = pending.next() => {
                after(&opened, flags, taken).await;
                open.retain(Question::is_open);
                open.last().into_iter().for_each(Question::show);
            }
            signal = signals.next() => {
                if screen::forget() {
                    idle = Idle::Stay;
                }
                match idle {
                    _ if signal != Asked::Stop => {
                        asked = Some(signal);
                        break;
                    }
                    _ if !pending.is_empty() => {
                        open.clear();
                        stopped.store(true, Ordering::Relaxed);
                        agent.abort_bash();
                        agent.abort();
                    }
                    Idle::Stay => {
                        tell!("(Ctrl-C again, or Ctrl-D, ends)");
                        idle = Idle::Leave;
                    }
                    Idle::Leave => break,
                }
            }
        }
    }
    drop(open);
    stop(&opened, flags, &mut pending).await;
    opened.keep().await;
    agent.shutdown().await?;
    let (id, path) = agent.session();
    if path.exists() && flags.output == Output::Text && !flags.no_session {
        tell!("go on with: hardpan --resume {}", safe(&id));
    }
    asked.map_or(Ok(()), |asked| Err(Unfinished::told(asked).into()))
}

/// Waits until the cache should be kept warm; for ever where that would not pay.
async fn ping_due(opened: &Opened) {
    let wanted = opened.settings.config.keep_alive.unwrap_or(true) && !opened.is_simulated();
    match opened.agent.warmth().filter(|_| wanted).and_then(|warmth| warmth.ping_in()) {
        Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
        None => std::future::pending().await,
    }
}

async fn keep_warm(opened: &Opened, signals: &mut Signals) {
    let pinged = tokio::select! {
        pinged = opened.agent.ping() => pinged,
        _ = signals.next() => return,
    };
    match pinged {
        Ok(spent) => {
            let left = opened
                .agent
                .warmth()
                .map_or_else(String::new, |warmth| format!("; {}", show::countdown(&warmth)));
            tell!(
                "(kept the cache warm for {}{left}; `keep_alive = false` in config.toml ends this)",
                dollars(spent.dollars)
            );
        }
        Err(error) => tell!("hardpan: {}", safe_lines(&error.to_string())),
    }
}

fn greet(opened: &Opened) {
    let agent = &opened.agent;
    let target = agent.target();
    let messages = agent.messages();
    let resumed = match messages.len() {
        0 => String::new(),
        count => format!(" · {} so far", commands::counted(count, "message")),
    };
    tell!("hardpan · {} · {}{resumed}", safe(&target.model.name()), agent.layout());
    show::last_exchange(&messages).iter().for_each(|last| tell!("{}", safe_lines(last)));
    tell!("Type a question; @file adds a file, /help tells more, Ctrl-D ends.");
}

/// Lines as they are typed. They are edited here, where the terminal can be steered and shows nothing but the conversation.
fn typed_lines(flags: &Chat) -> Result<(mpsc::UnboundedReceiver<String>, Option<screen::Grip>)> {
    let (sender, receiver) = mpsc::unbounded_channel();
    if flags.output == Output::Text
        && let Some(held) = screen::hold(sender.clone()).context("the terminal cannot be used")?
    {
        return Ok((receiver, Some(held)));
    }
    // A thread of its own: reading a terminal cannot be cancelled.
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if line.len() >= LONGEST_LINE {
                tell!(
                    "hardpan: the terminal may have cut this line; put a long text into a file and name it with @"
                );
            }
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok((receiver, None))
}

/// Gives a line to the agent: it runs a command, begins a run, or waits for its time.
fn begin(opened: &Arc<Opened>, line: &str, pending: &mut Pending, stopped: &Arc<AtomicBool>) {
    let text = line.trim().to_owned();
    if text.is_empty() {
        return;
    }
    if let Some(command) = text.strip_prefix('!') {
        let (command, tell) =
            command.strip_prefix('!').map_or((command, Tell::Model), |command| (command, Tell::Nobody));
        let (agent, command) = (opened.agent.clone(), command.trim().to_owned());
        if command.is_empty() {
            tell!("it needs a command: !COMMAND, or !!COMMAND to keep it from the model");
            return;
        }
        stopped.store(false, Ordering::Relaxed);
        let stopped = stopped.clone();
        pending.push(Box::pin(async move {
            let message = agent.bash(command, tell).await?;
            let end = if stopped.load(Ordering::Relaxed) { "(stopped)" } else { "" };
            Ok(ran(&message, end))
        }));
        return;
    }
    if text == "/later" {
        tell!("it needs a text: /later TEXT");
        return;
    }
    if let Some(hint) = commands::unknown(&opened.agent, &text) {
        tell!("{}", safe(&hint));
        return;
    }
    let images = opened.attach(&text, Source::Typed);
    let agent = opened.agent.clone();
    let (text, delivery) = match text.strip_prefix("/later ") {
        Some(later) => (later.trim().to_owned(), Delivery::FollowUp),
        None => (text, Delivery::Steer),
    };
    let input = Input { text, below: None, images, source: InputSource::Interactive };
    pending.push(Box::pin(async move { agent.queue(input, delivery).await }));
}

/// What the person's own command printed, and what is said if it did not come to its end by itself.
fn ran(message: &AgentMessage, stopped: &str) -> Taken {
    let Body::BashExecution { output, exit_code, .. } = &*message.body else { return Taken::Handled };
    let end = if exit_code.is_none() { stopped } else { "" };
    let said = [output.trim_end(), end].into_iter().filter(|text| !text.is_empty());
    Taken::Command { said: Some(said.collect::<Vec<_>>().join("\n")).filter(|said| !said.is_empty()) }
}

/// Stops what still runs and waits for its end: a run that nobody drives would hold the agent for ever.
async fn stop(opened: &Opened, flags: &Chat, pending: &mut Pending) {
    while !pending.is_empty() {
        opened.agent.abort_bash();
        opened.agent.abort();
        tokio::select! {
            Some(taken) = pending.next() => after(opened, flags, taken).await,
            // One that has only begun since is stopped, too.
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
}

/// Waits for the end of what runs, unless the person does not want to.
async fn finish(opened: &Opened, flags: &Chat, pending: &mut Pending, signals: &mut Signals) {
    loop {
        tokio::select! {
            taken = pending.next() => match taken {
                Some(taken) => after(opened, flags, taken).await,
                None => break,
            },
            _ = signals.next() => return stop(opened, flags, pending).await,
        }
    }
}

/// What is said once an input is dealt with.
async fn after(opened: &Opened, flags: &Chat, taken: Result<Taken, AgentError>) {
    match taken {
        // As it is: it may be a table, or what a program printed.
        Ok(Taken::Command { said }) => said.iter().for_each(|said| screen::tell(&safe_lines(said))),
        Ok(Taken::Handled) => {}
        Ok(Taken::Queued(_)) => tell!("(queued; /queue shows what waits)"),
        Ok(Taken::Ran(stop)) => {
            opened.keep().await;
            match stop {
                Stop::Done => {}
                Stop::Aborted => tell!("stopped; what was received is kept"),
                Stop::Length => {
                    tell!("hardpan: the answer was cut at its limit of tokens (--max-tokens)");
                }
                Stop::Refused => tell!("hardpan: the model refused"),
                Stop::Looping { tool } => {
                    tell!("hardpan: stopped: the model kept making the same failing call of {}", safe(&tool));
                }
                Stop::TooLong { message } | Stop::Error { message } => {
                    tell!("hardpan: {}", safe_lines(&message));
                }
            }
            let waiting = opened.agent.waiting();
            if !waiting.is_empty() {
                let count = waiting.steering.len() + waiting.follow_up.len();
                tell!("({count} queued; delivered with the next prompt, /unqueue drops them)");
            }
            if flags.hud {
                show::print_hud(&opened.agent, flags.output);
            } else if flags.output == Output::Text {
                show::status(&opened.agent).iter().for_each(|line| tell!("{line}"));
            }
        }
        Err(error) => tell!("hardpan: {}", safe_lines(&error.to_string())),
    }
}

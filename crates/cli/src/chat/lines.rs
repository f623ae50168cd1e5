//! The conversation line by line: what is typed while the agent works is queued, and Ctrl-C stops what it does.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use hardpan_agent::{AgentError, Delivery, Input, InputSource, Stop, Taken, Tell};
use hardpan_prompt::{AgentMessage, Body};
use tokio::sync::mpsc;

use super::asker::{Asker, Question, answer};
use super::commands;
use super::open::Opened;
use super::show;
use super::signals::{Asked, Signals};
use super::{UNHEARD, Unfinished};
use crate::args::{Chat, Output};
use crate::output::{self, dollars, safe, safe_lines};

/// Says something to the person. A terminal that has gone away takes no word any more, and that breaks nothing.
macro_rules! tell {
    ($($words:tt)*) => {{
        let _ = writeln!(io::stderr(), $($words)*);
    }};
}

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
        Output::Text => drop(show::Text::follow(&agent, true)),
    }
    let around = opened.around.clone();
    drop(tokio::task::spawn_blocking(move || around.warm_up()));
    agent.start().await;
    if flags.output == Output::Text {
        greet(&opened);
    }
    let mut lines = typed_lines();
    let mut pending: Pending = FuturesUnordered::new();
    // What waits for a yes or a no; the next line that is typed is the answer.
    let mut open: Option<Question> = None;
    let (mut signals, mut idle) = (Signals::listen().context(UNHEARD)?, Idle::Stay);
    let mut asked = None;
    while !ended.load(Ordering::Relaxed) {
        if pending.is_empty() && flags.output == Output::Text {
            prompt();
        }
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) if open.is_some() => open = open.take().and_then(|question| answer(question, &line)),
                Some(line) => {
                    idle = Idle::Stay;
                    begin(&opened, &line, &mut pending);
                }
                None if pending.is_empty() => break,
                // The end of what is typed: what was asked for is still done, but nobody answers any more.
                None => {
                    open = None;
                    questions.close();
                    while questions.try_recv().is_ok() {}
                    finish(&opened, flags, &mut pending, &mut signals).await;
                }
            },
            Some(question) = questions.recv() => {
                question.show();
                open = Some(question);
            }
            () = ping_due(&opened), if pending.is_empty() => keep_warm(&opened, &mut signals).await,
            Some(taken) = pending.next() => after(&opened, flags, taken).await,
            signal = signals.next() => {
                match idle {
                    _ if signal != Asked::Stop => {
                        asked = Some(signal);
                        break;
                    }
                    _ if !pending.is_empty() => {
                        open = None;
                        agent.abort_bash();
                        agent.abort();
                    }
                    Idle::Stay => {
                        tell!("\n(Ctrl-C again, or Ctrl-D, ends)");
                        idle = Idle::Leave;
                    }
                    Idle::Leave => {
                        tell!();
                        break;
                    }
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
    let messages = agent.messages().len();
    let resumed = if messages > 0 { format!(" · {messages} messages so far") } else { String::new() };
    tell!("hardpan · {} · {}{resumed}", safe(&target.model.name()), agent.layout());
    tell!("Type a question; @file adds a file, /help tells more, Ctrl-D ends.");
}

fn prompt() {
    let mut terminal = io::stderr();
    let _ = terminal.write_all(b"> ").and_then(|()| terminal.flush());
}

/// Lines as they are typed, from a thread of its own: reading a terminal cannot be cancelled.
fn typed_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Gives a line to the agent: it runs a command, begins a run, or waits for its time.
fn begin(opened: &Arc<Opened>, line: &str, pending: &mut Pending) {
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
        pending.push(Box::pin(async move { agent.bash(command, tell).await.map(|message| ran(&message)) }));
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
    let images = match opened.attach(&text) {
        Ok(images) => images,
        Err(error) => {
            tell!("hardpan: {}", safe_lines(&format!("{error:#}")));
            return;
        }
    };
    let agent = opened.agent.clone();
    let (text, delivery) = match text.strip_prefix("/later ") {
        Some(later) => (later.trim().to_owned(), Delivery::FollowUp),
        None => (text, Delivery::Steer),
    };
    let input = Input { text, images, source: InputSource::Interactive };
    pending.push(Box::pin(async move { agent.queue(input, delivery).await }));
}

/// What the person's own command printed.
fn ran(message: &AgentMessage) -> Taken {
    let Body::BashExecution { output, .. } = &*message.body else { return Taken::Handled };
    Taken::Command { said: Some(output.trim_end().to_owned()) }
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
        Ok(Taken::Command { said }) => said.iter().for_each(|said| tell!("{}", safe_lines(said))),
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

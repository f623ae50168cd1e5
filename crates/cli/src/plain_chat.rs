//! The interactive session as plain lines (`--plain`): [`converse`] reads lines from standard input
//! and prints what [`PlainFace`] makes of the conversation. Lines of a pipe are a list: each one is
//! answered before the next, and a failure is told by the exit code.

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use anyhow::Result;
use hardpan_terminal::model::Effect;
use hardpan_terminal::plain::{PipedLines, PlainDetail, PlainEvent, PlainFace};
use hardpan_terminal::runner::Clock;
use hardpan_terminal::theme::Theme;
use tokio::sync::mpsc as async_channel;
use tokio::sync::mpsc::UnboundedSender;

use crate::args::ChatArgs;
use crate::chat::event_output::EventOutput;
use crate::chat::{ExitError, screen};
use crate::output;
use crate::page_chat::conversation::{FaceConversation, FaceSender};
use crate::page_chat::face_host::PageNotices;
use crate::page_chat::{greeting, program_clock, show_outlook};
use crate::script_output::{ChatOutput, ScriptEnd};

/// The longest line, in bytes, that a terminal with its own line editing passes on (on Linux;
/// elsewhere less).
const LONGEST_LINE: usize = 4095;

/// The longest wait for anything.
const LONG_TIME: Duration = Duration::from_secs(3600);

/// Runs the session until the person leaves or standard input ends.
pub async fn converse(flags: &ChatArgs) -> Result<()> {
    let (sender, messages) = mpsc::channel();
    let events = sender.clone();
    let face = FaceSender::new(move |event| drop(events.send(PlainEvent::Other(event))));
    let theme = Theme::from_environment(|name| std::env::var(name).ok());
    let notices = Arc::new(PageNotices::new(face.clone()));
    let mut conversation = FaceConversation::open(flags, &face, notices.clone(), theme).await?;
    let is_json = flags.chat_output() == ChatOutput::Json;
    let json = is_json.then(|| EventOutput::start(&conversation.app, ChatOutput::Json, true));

    let (effects_sender, mut effects) = async_channel::unbounded_channel();
    let (columns, _) = screen::screen_size();
    let detail = if is_json { PlainDetail::QuestionsAndNotes } else { PlainDetail::Everything };
    let is_piped = !io::stdin().is_terminal();
    let mut plain = PlainFace::new(theme, columns, detail, !is_piped);
    let greeting = plain.greet(&if is_json { Vec::new() } else { greeting(&conversation.app) });
    if !is_json {
        show_outlook(&conversation.app, &face);
        if conversation.app.is_offline(&conversation.app.agent.target()) {
            notices.simulator_is_told();
        }
    }
    notices.start();
    let write = if is_json { write_to_stderr } else { write_to_stdout };
    let printer = std::thread::Builder::new().name("plain-face".into()).spawn(move || {
        write(&greeting);
        let piped = is_piped.then(PipedLines::default);
        run(&mut plain, piped, &program_clock(), &messages, &effects_sender, write);
    })?;
    let lines = sender.clone();
    // Its own thread, because reading a terminal cannot be cancelled.
    std::thread::Builder::new().name("plain-input".into()).spawn(move || read_lines(&lines))?;

    let on_interrupt = || drop(sender.send(PlainEvent::Interrupt));
    // Ctrl-C ends a list of prompts with what runs.
    let on_interrupt: Option<&(dyn Fn() + Sync)> = if is_piped { None } else { Some(&on_interrupt) };
    let interrupt = conversation.run(&mut effects, on_interrupt).await;
    drop(effects);
    let ended = conversation.close().await?;
    notices.stop();
    if let Some(json) = json {
        // The conversation is over and stored; a terminal that is gone is not worth an error.
        let _ = json.finish(&ScriptEnd::default()).await;
    }
    // It ends with the next thing that it is told: nobody takes its effects any more.
    let _ = sender.send(PlainEvent::End);
    let _ = tokio::task::spawn_blocking(move || printer.join()).await;
    if !is_json {
        ended.say_goodbye();
    }
    let failure = ended.failure().filter(|_| is_piped);
    let end = interrupt.map(ExitError::interrupted).or(failure);
    end.map_or(Ok(()), |end| Err(end.into()))
}

/// Prints what happens, and passes on what is to be done, until nobody takes that any more.
/// With `piped`, lines wait there until it is their turn.
fn run(
    face: &mut PlainFace,
    mut piped: Option<PipedLines>,
    clock: &Clock,
    messages: &Receiver<PlainEvent>,
    effects: &UnboundedSender<Effect>,
    write: fn(&str),
) {
    loop {
        let wait = face.next_tick().map_or(LONG_TIME, |next| next.saturating_sub(clock()));
        let event = match messages.recv_timeout(wait) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => PlainEvent::Tick,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let is_end = event == PlainEvent::End;
        let show = |face: &mut PlainFace, event| {
            let (text, asked) = face.update(event, clock());
            write(&text);
            for effect in asked {
                let _ = effects.send(effect);
            }
        };
        match (&mut piped, event) {
            (Some(piped), event @ (PlainEvent::Line(_) | PlainEvent::End)) => piped.push(event),
            (_, event) => show(face, event),
        }
        while let Some(event) = piped.as_mut().and_then(|piped| piped.next_for(face)) {
            show(face, event);
        }
        if is_end && effects.is_closed() {
            return;
        }
    }
}

fn read_lines(lines: &Sender<PlainEvent>) {
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.len() >= LONGEST_LINE && io::stdin().is_terminal() {
            note!(
                "hardpan: the terminal may have cut this line; put long text into a file and mention it with @"
            );
        }
        if lines.send(PlainEvent::Line(line)).is_err() {
            return;
        }
    }
    let _ = lines.send(PlainEvent::End);
}

/// The face has made everything harmless that others wrote.
fn write_to_stdout(text: &str) {
    if !text.is_empty() {
        let _ = output::print_controls(text);
    }
}

fn write_to_stderr(text: &str) {
    if !text.is_empty() {
        output::write_controls(text);
    }
}

//! [`Console`]: a program in a terminal of its own that goes on between calls.
//!
//! It runs where commands run, in the sandbox, and ends with all its processes when the console is
//! dropped or Hardpan ends, however that comes. Whatever it prints, a bounded part is kept.

mod keys; // parse_keys: names of keys in a text
mod screen; // Screen: the last lines of the output

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hardpan_sandbox::{ProcessEnd, Program, ProgramEvent, ProgramStreams, RunningProgram};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetpgrp, tcgetsid, tcsetwinsize};
use tokio::sync::Notify;

use crate::Scope;
use crate::bash::{Bash, SandboxUnavailable, ShellOptions};
pub use keys::parse_keys;
use screen::Screen;

/// Wide enough for most output, and lines that a person would read.
const SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// Gives the program the terminal as its own, so that Ctrl-C reaches it. Part of util-linux.
const SETSID: &str = "/usr/bin/setsid";

/// Starts consoles: how commands run.
pub struct ConsoleShell(Bash);

/// Why a console does not start, or does not take keys. The model reads it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsoleError {
    /// Commands do not run.
    #[error(transparent)]
    Sandbox(#[from] SandboxUnavailable),
    /// The system does not start it.
    #[error("The command could not be started: {0}.")]
    NotStarted(#[source] io::Error),
    /// It has ended.
    #[error("The program has ended.")]
    Ended,
    /// It does not read what is typed.
    #[error("The program does not read its input: nothing more can be typed now.")]
    InputFull,
}

/// How a program in a console ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEnd {
    /// By itself, or by a signal.
    Process(ProcessEnd),
    /// It was stopped here.
    Stopped,
}

/// What a console shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleView {
    /// The last lines, without what a terminal would interpret.
    pub lines: Vec<String>,
    /// How many lines came before them.
    pub earlier_lines: u64,
    /// How it ended; `None` while it runs.
    pub end: Option<ConsoleEnd>,
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The text was printed.
    Matched,
    /// The program ended.
    Ended,
    /// Neither came in time.
    TimedOut,
}

/// A running program in a terminal.
pub struct Console {
    command: String,
    /// Not blocking: a program that does not read must not make us wait.
    terminal: File,
    state: Arc<ConsoleState>,
    program: Mutex<Option<RunningProgram>>,
    /// Whether nobody else ends the session of the terminal.
    owns_session: bool,
}

#[derive(Default)]
struct ConsoleState {
    output: Mutex<ConsoleOutput>,
    news: Notify,
}

#[derive(Default)]
struct ConsoleOutput {
    screen: Screen,
    end: Option<ConsoleEnd>,
    /// All that was printed has been read.
    is_complete: bool,
    revision: u64,
    /// The line in which the last keys were typed: what is waited for comes after it.
    mark: u64,
}

impl ConsoleShell {
    /// Consoles that run as commands with these options do.
    pub fn new(options: ShellOptions) -> Self {
        ConsoleShell(Bash::new(options))
    }

    /// Starts a command line in a terminal.
    pub fn start(&self, command: &str, scope: &Scope) -> Result<Console, ConsoleError> {
        if command.contains('\0') {
            return Err(ConsoleError::NotStarted(io::ErrorKind::InvalidInput.into()));
        }
        let sandbox = self.0.sandbox(scope)?;
        let sandbox = sandbox.as_ref().map(|(launcher, policy)| (*launcher, policy));
        let (terminal, program_side) = open_terminal().map_err(ConsoleError::NotStarted)?;
        let program = in_session(self.0.program(command, scope), Path::new(SETSID));
        // A launcher ends whatever it started. Without one, that is the session of the terminal.
        let owns_session = sandbox.is_none();
        let state = Arc::new(ConsoleState::default());
        let streams = || -> io::Result<ProgramStreams> {
            Ok(ProgramStreams {
                input: Some(program_side.try_clone()?),
                output: program_side.try_clone()?,
                errors: program_side.try_clone()?,
            })
        };
        let streams = streams().map_err(ConsoleError::NotStarted)?;
        drop(program_side);
        let told = state.clone();
        let program = program.start(sandbox, streams, move |event| {
            if let ProgramEvent::Ended(end) = event {
                told.change(|output| output.end = output.end.or(Some(ConsoleEnd::Process(end))));
            }
        });
        let program = Mutex::new(Some(program.map_err(ConsoleError::NotStarted)?));
        let reading = terminal.try_clone().map_err(ConsoleError::NotStarted)?;
        let read_into = state.clone();
        let thread = std::thread::Builder::new().name("console".to_owned());
        thread.spawn(move || read_output(reading, &read_into)).map_err(ConsoleError::NotStarted)?;
        Ok(Console { command: command.to_owned(), terminal, state, program, owns_session })
    }
}

impl Console {
    /// The command line that it runs.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Types into the terminal.
    pub fn send(&self, keys: &[u8]) -> Result<(), ConsoleError> {
        if self.state.lock().end.is_some() {
            return Err(ConsoleError::Ended);
        }
        self.state.change(|output| output.mark = output.screen.line_number());
        let mut rest = keys;
        while !rest.is_empty() {
            match (&self.terminal).write(rest) {
                Ok(0) => return Err(ConsoleError::Ended),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(ConsoleError::InputFull);
                }
                Err(_) => return Err(ConsoleError::Ended),
            }
        }
        Ok(())
    }

    /// Waits until a text is printed in or after the line of the last keys, or until the program has
    /// ended; without a text, only for its end.
    pub async fn wait(&self, text: Option<&str>, limit: Duration) -> WaitOutcome {
        let watch = text.map(|text| OutputWatch::new(&self.state, text));
        let found = async {
            loop {
                let news = self.state.news.notified();
                tokio::pin!(news);
                // From here on no news is lost.
                news.as_mut().enable();
                {
                    let output = self.state.lock();
                    if watch.as_ref().is_some_and(|watch| output.screen.is_found(watch.number)) {
                        return WaitOutcome::Matched;
                    }
                    if output.end.is_some() && output.is_complete {
                        return WaitOutcome::Ended;
                    }
                }
                news.await;
            }
        };
        tokio::time::timeout(limit, found).await.unwrap_or(WaitOutcome::TimedOut)
    }

    /// What it shows: at most `lines` lines.
    pub fn view(&self, lines: usize) -> ConsoleView {
        let output = self.state.lock();
        let (lines, earlier_lines) = output.screen.last_lines(lines);
        ConsoleView { lines, earlier_lines, end: output.end }
    }

    /// Another number whenever the view may be another one.
    pub fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// Ends the program and all its processes.
    pub fn stop(&self) {
        self.state.change(|output| output.end = output.end.or(Some(ConsoleEnd::Stopped)));
        self.end_session();
        drop(self.program.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Ends the session of the terminal, as a terminal that is closed does. If this process is killed, the
    /// system closes the terminal.
    fn end_session(&self) {
        if !self.owns_session {
            return;
        }
        let groups = [tcgetsid(&self.terminal), tcgetpgrp(&self.terminal)];
        for group in groups.into_iter().flatten() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.end_session();
    }
}

/// Looks for a text in the output until it is dropped.
struct OutputWatch<'a> {
    state: &'a ConsoleState,
    number: u64,
}

impl<'a> OutputWatch<'a> {
    fn new(state: &'a ConsoleState, text: &str) -> Self {
        let mut output = state.lock();
        let mark = output.mark;
        OutputWatch { state, number: output.screen.watch(mark, text) }
    }
}

impl Drop for OutputWatch<'_> {
    fn drop(&mut self) {
        self.state.lock().screen.unwatch(self.number);
    }
}

impl ConsoleState {
    fn lock(&self) -> MutexGuard<'_, ConsoleOutput> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut ConsoleOutput)) {
        let mut output = self.lock();
        change(&mut output);
        output.revision += 1;
        drop(output);
        self.news.notify_waiters();
    }
}

/// A terminal: our side, which does not block, and the program's.
fn open_terminal() -> io::Result<(File, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let program_side =
        rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    tcsetwinsize(&program_side, SIZE)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    Ok((ours.into(), program_side))
}

/// The program as the leader of a session, with its input as the terminal of that, where there is a
/// tool for it.
fn in_session(program: Program, setsid: &Path) -> Program {
    if setsid.is_file() { program.run_by(setsid, ["--ctty", "--wait"]) } else { program }
}

/// Reads what the program prints, until nothing has the terminal open any more.
fn read_output(mut terminal: File, state: &ConsoleState) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let mut waiting = [PollFd::new(&terminal, PollFlags::IN)];
        match poll(&mut waiting, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
        match terminal.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => state.change(|output| output.screen.push(&buffer[..length])),
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            // The program's side is closed.
            Err(_) => break,
        }
    }
    state.change(|output| {
        output.screen.end();
        output.is_complete = true;
    });
}

#[cfg(test)]
mod tests;

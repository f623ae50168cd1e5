//! [`Program`]: a program to run; [`run_program`] runs it to its end within limits.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::{ProcessEnd, ProgramEvent, ProgramStreams, RunningProgram, SandboxLauncher, SandboxPolicy};

/// What to run: nothing of the caller's environment goes with it but what is named here.
#[derive(Clone, Debug)]
pub struct Program {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    input: Vec<u8>,
}

/// How much a program may print, and how long it may run.
#[derive(Clone, Copy, Debug)]
pub struct OutputLimits {
    /// The most bytes kept of each of standard output and standard error. A program that prints more
    /// is stopped.
    pub max_bytes: usize,
    /// After this time it is stopped.
    pub time: Duration,
}

/// What a program printed and how it ended.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// The beginning of standard output.
    pub stdout: Vec<u8>,
    /// The beginning of standard error.
    pub stderr: Vec<u8>,
    /// How the program ended.
    pub end: ProcessEnd,
    /// It printed more than it may, and was stopped.
    pub truncated: bool,
    /// It ran for too long, and was stopped.
    pub timed_out: bool,
}

impl Program {
    /// A program that runs in `folder`, without arguments, variables and input.
    pub fn new(program: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Program {
            program: program.into(),
            arguments: Vec::new(),
            folder: folder.into(),
            environment: Vec::new(),
            input: Vec::new(),
        }
    }

    /// Adds arguments.
    pub fn arguments<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable. The last value of a name counts.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets environment variables.
    pub fn variables(self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        variables.into_iter().fold(self, |program, (name, value)| program.variable(name, value))
    }

    /// Sets what the program reads from standard input, which is empty otherwise.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// The same program, started by another one that takes it as its last arguments.
    pub fn run_by<S: AsRef<OsStr>>(
        mut self,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = S>,
    ) -> Self {
        let inner = std::mem::replace(&mut self.program, program.into());
        let own = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        let inner = std::iter::once(inner.into_os_string()).chain(std::mem::take(&mut self.arguments));
        self.arguments = own.chain(inner).collect();
        self
    }

    /// The folder that it runs in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The program and its arguments.
    #[cfg(target_os = "linux")]
    pub(crate) fn words(&self) -> impl Iterator<Item = &OsStr> {
        std::iter::once(self.program.as_os_str()).chain(self.arguments.iter().map(OsString::as_os_str))
    }

    /// A command for this program: by a launcher, or as the leader of a process group of its own.
    pub(crate) fn command(&self, launcher: Option<&SandboxLauncher>) -> Command {
        let mut command = match launcher {
            // It is told what to run (`words`).
            Some(launcher) => launcher.command(),
            None => {
                let mut command = Command::new(&self.program);
                command.process_group(0).args(&self.arguments);
                command
            }
        };
        command.current_dir(&self.folder).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts the program with these streams (not with [`Program::input`]), in the sandbox if there
    /// is one. `on_event` is called on a thread of its own.
    pub fn start(
        &self,
        sandbox: Option<(&SandboxLauncher, &SandboxPolicy)>,
        streams: ProgramStreams,
        on_event: impl FnMut(ProgramEvent) + Send + 'static,
    ) -> io::Result<RunningProgram> {
        RunningProgram::start(sandbox, self, streams, on_event)
    }
}

/// How long to wait for killed processes to be gone. The kernel may hold one that waits for a disk.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// How long output is still read when the processes are gone.
const DRAIN_TIME: Duration = Duration::from_secs(1);

enum Event {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    Closed,
    Program(ProgramEvent),
    Timeout,
    Stop,
}

/// Runs a program to its end, or stops it at a limit. All its descendants have been ended then, too.
/// Without a sandbox it has all the rights of the user.
pub fn run_program(
    sandbox: Option<(&SandboxLauncher, &SandboxPolicy)>,
    program: &Program,
    limits: OutputLimits,
) -> io::Result<ProgramOutput> {
    let (_keep_running, stop) = mpsc::channel();
    run_program_until(sandbox, program, limits, stop)
}

/// Runs a program as [`run_program`] does, and stops it when the sender of `stop` is dropped.
pub fn run_program_until(
    sandbox: Option<(&SandboxLauncher, &SandboxPolicy)>,
    program: &Program,
    limits: OutputLimits,
    stop: mpsc::Receiver<Infallible>,
) -> io::Result<ProgramOutput> {
    let (sender, events) = mpsc::channel();
    let (out_reader, out_writer) = io::pipe()?;
    let (err_reader, err_writer) = io::pipe()?;
    let (in_reader, mut in_writer) = io::pipe()?;
    let streams = ProgramStreams {
        input: Some(in_reader.into()),
        output: out_writer.into(),
        errors: err_writer.into(),
    };
    let told = sender.clone();
    let running = program.start(sandbox, streams, move |event| {
        let _ = told.send(Event::Program(event));
    })?;
    let input = program.input.clone();
    thread::spawn(move || in_writer.write_all(&input));
    read_in_thread(out_reader, sender.clone(), Event::Output);
    read_in_thread(err_reader, sender.clone(), Event::Errors);
    // A thread instead of a clock: it ends when the sender of `stop` is dropped. Nobody may listen then.
    thread::spawn(move || {
        let _ = sender.send(match stop.recv_timeout(limits.time) {
            Err(mpsc::RecvTimeoutError::Timeout) => Event::Timeout,
            Err(mpsc::RecvTimeoutError::Disconnected) => Event::Stop,
        });
    });
    let mut output = ProgramOutput {
        stdout: Vec::new(),
        stderr: Vec::new(),
        end: ProcessEnd::Unknown,
        truncated: false,
        timed_out: false,
    };
    let (mut open, mut is_gone, mut running) = (2, false, Some(running));
    while open > 0 || !is_gone {
        // When its processes are gone, the output is at its end, unless one has left the group.
        let event = if is_gone { events.recv_timeout(DRAIN_TIME).ok() } else { events.recv().ok() };
        match event {
            Some(Event::Output(bytes)) => {
                output.truncated |= append(&mut output.stdout, &bytes, limits.max_bytes);
            }
            Some(Event::Errors(bytes)) => {
                output.truncated |= append(&mut output.stderr, &bytes, limits.max_bytes);
            }
            Some(Event::Closed) => open -= 1,
            Some(Event::Program(ProgramEvent::Ended(end))) => {
                output.end = end;
                // What it left running would hold the output open.
                running = None;
            }
            Some(Event::Program(ProgramEvent::Gone)) => is_gone = true,
            Some(Event::Timeout) => output.timed_out = true,
            Some(Event::Stop) | None => break,
        }
        if output.truncated || output.timed_out {
            break;
        }
    }
    drop(running);
    while !is_gone && let Ok(event) = events.recv_timeout(END_PATIENCE) {
        is_gone = matches!(event, Event::Program(ProgramEvent::Gone));
    }
    Ok(output)
}

fn read_in_thread(
    mut reader: impl Read + Send + 'static,
    sender: mpsc::Sender<Event>,
    event: fn(Vec<u8>) -> Event,
) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            if sender.send(event(buffer[..length].to_vec())).is_err() {
                return;
            }
        }
        let _ = sender.send(Event::Closed);
    });
}

/// Appends as much as there is room for. Returns whether something did not fit.
fn append(kept: &mut Vec<u8>, bytes: &[u8], max_bytes: usize) -> bool {
    let room = max_bytes.saturating_sub(kept.len()).min(bytes.len());
    kept.extend_from_slice(&bytes[..room]);
    room < bytes.len()
}

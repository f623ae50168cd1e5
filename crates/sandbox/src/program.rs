//! [`Program`]: a program to run; [`run_program`] runs it to its end within limits.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::{ProcessEnd, ProcessGroup, SandboxLauncher, SandboxPolicy};

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

    /// The folder that it runs in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command for this program, which leads a process group of its own.
    fn command(&self, sandbox: Option<(&SandboxLauncher, &SandboxPolicy)>) -> io::Result<Command> {
        let mut command = match sandbox {
            Some((launcher, policy)) => launcher.command(policy, &self.program)?,
            None => {
                let mut command = Command::new(&self.program);
                command.process_group(0);
                command
            }
        };
        command.args(&self.arguments).current_dir(&self.folder).env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// Starts the program with these streams as its standard output and error; in the sandbox if
    /// there is one. Its input is empty. `on_end` is called when the program itself has ended; its
    /// descendants end when the group is dropped.
    pub fn start(
        &self,
        sandbox: Option<(&SandboxLauncher, &SandboxPolicy)>,
        stdout: impl Into<Stdio>,
        stderr: impl Into<Stdio>,
        on_end: impl FnOnce(ProcessEnd) + Send + 'static,
    ) -> io::Result<ProcessGroup> {
        let mut command = self.command(sandbox)?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        ProcessGroup::start(command, on_end)
    }
}

enum Event {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Closed,
    End(ProcessEnd),
    Timeout,
}

/// Runs a program to its end, or stops it at a limit. All its descendants have been ended then, too.
/// Without a sandbox it has all the rights of the user.
pub fn run_program(
    sandbox: Option<(&SandboxLauncher, &SandboxPolicy)>,
    program: &Program,
    limits: OutputLimits,
) -> io::Result<ProgramOutput> {
    let (sender, events) = mpsc::channel();
    let (out_reader, out_writer) = io::pipe()?;
    let (err_reader, err_writer) = io::pipe()?;
    let (in_reader, mut in_writer) = io::pipe()?;
    let mut command = program.command(sandbox)?;
    command.stdin(in_reader).stdout(out_writer).stderr(err_writer);
    let ended = sender.clone();
    let group = ProcessGroup::start(command, move |end| drop(ended.send(Event::End(end))))?;
    let input = program.input.clone();
    thread::spawn(move || in_writer.write_all(&input));
    read_in_thread(out_reader, sender.clone(), Event::Stdout);
    read_in_thread(err_reader, sender.clone(), Event::Stderr);
    // A thread instead of a clock: it ends when `stop_timer` is dropped.
    let (stop_timer, stopped) = mpsc::channel::<()>();
    thread::spawn(move || {
        if stopped.recv_timeout(limits.time) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = sender.send(Event::Timeout);
        }
    });
    let mut output = ProgramOutput {
        stdout: Vec::new(),
        stderr: Vec::new(),
        end: ProcessEnd::Unknown,
        truncated: false,
        timed_out: false,
    };
    let (mut open, mut ended) = (2, false);
    let mut group = Some(group);
    while open > 0 || !ended {
        let Ok(event) = events.recv() else { break };
        let full = match event {
            Event::Stdout(bytes) => append(&mut output.stdout, &bytes, limits.max_bytes),
            Event::Stderr(bytes) => append(&mut output.stderr, &bytes, limits.max_bytes),
            Event::Closed => {
                open -= 1;
                false
            }
            Event::End(end) => {
                (output.end, ended) = (end, true);
                // What it left running would hold the output open.
                group = None;
                false
            }
            Event::Timeout => {
                output.timed_out = true;
                break;
            }
        };
        if full {
            output.truncated = true;
            break;
        }
    }
    drop((group, stop_timer));
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

//! [`RunningProgram`]: a program that runs, with all its descendants.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use crate::process_group::ProcessGroup;
#[cfg(target_os = "linux")]
use crate::supervised::SupervisedProgram;
use crate::{ProcessEnd, Program, SandboxLauncher, SandboxPolicy};

/// A program with all its descendants. They end when it is dropped, and when this process ends.
pub struct RunningProgram(Running);

enum Running {
    /// Without a launcher: what leaves the group of processes does not end with it.
    Group(ProcessGroup),
    #[cfg(target_os = "linux")]
    Supervised(SupervisedProgram),
}

/// Where a program reads from and prints to.
pub struct ProgramStreams {
    /// Its standard input; empty if there is none.
    pub input: Option<OwnedFd>,
    /// Its standard output.
    pub output: OwnedFd,
    /// Its standard error.
    pub errors: OwnedFd,
}

/// What happens to a running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEvent {
    /// The program itself has ended; its descendants may still run.
    Ended(ProcessEnd),
    /// It was dropped, and its descendants are gone, too. The last event.
    Gone,
}

impl RunningProgram {
    pub(crate) fn start(
        sandbox: Option<(&SandboxLauncher, &SandboxPolicy)>,
        program: &Program,
        streams: ProgramStreams,
        on_event: impl FnMut(ProgramEvent) + Send + 'static,
    ) -> io::Result<RunningProgram> {
        match sandbox {
            #[cfg(target_os = "linux")]
            Some((launcher, policy)) => {
                let program = SupervisedProgram::start(launcher, policy, program, &streams, on_event)?;
                Ok(RunningProgram(Running::Supervised(program)))
            }
            #[cfg(not(target_os = "linux"))]
            Some(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "there is no sandbox on this system")),
            None => {
                let ProgramStreams { input, output, errors } = streams;
                let mut command = program.command(None);
                command.stdin(input.map_or_else(Stdio::null, Stdio::from)).stdout(output).stderr(errors);
                Ok(RunningProgram(Running::Group(ProcessGroup::start(command, on_event)?)))
            }
        }
    }

    /// Asks its processes to end by themselves (SIGTERM).
    pub fn request_end(&self) {
        match &self.0 {
            Running::Group(group) => group.request_end(),
            #[cfg(target_os = "linux")]
            Running::Supervised(program) => program.request_end(),
        }
    }
}

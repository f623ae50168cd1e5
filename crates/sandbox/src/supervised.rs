//! [`SupervisedProgram`]: a program that a launcher runs, as its caller sees it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{Shutdown, shutdown};

use crate::linux::{Report, connect, receive_report, send_end_request, send_request};
use crate::{Namespaces, ProcessEnd, Program, ProgramEvent, ProgramStreams, SandboxLauncher, SandboxPolicy};

/// Whether the system allows namespaces, as far as is known.
static NAMESPACES: AtomicBool = AtomicBool::new(true);

/// Dropping it closes the socket, on which the launcher ends everything. So does the end of this
/// process, however that comes.
pub(crate) struct SupervisedProgram {
    socket: Arc<OwnedFd>,
}

impl SupervisedProgram {
    pub fn start(
        launcher: &SandboxLauncher,
        policy: &SandboxPolicy,
        program: &Program,
        streams: &ProgramStreams,
        on_event: impl FnMut(ProgramEvent) + Send + 'static,
    ) -> io::Result<Self> {
        let namespaces = policy.namespaces == Namespaces::WhereAllowed && NAMESPACES.load(Ordering::Relaxed);
        let (socket, child) = match launch(launcher, policy, program, streams, namespaces)? {
            Launch::Started(socket, child) => (socket, child),
            Launch::NoNamespaces => {
                NAMESPACES.store(false, Ordering::Relaxed);
                match launch(launcher, policy, program, streams, false)? {
                    Launch::Started(socket, child) => (socket, child),
                    Launch::NoNamespaces => return Err(io::ErrorKind::Unsupported.into()),
                }
            }
        };
        let socket = Arc::new(socket);
        let reports = socket.clone();
        std::thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || follow(&reports, child, on_event))?;
        Ok(SupervisedProgram { socket })
    }

    pub fn request_end(&self) {
        send_end_request(&self.socket);
    }
}

impl Drop for SupervisedProgram {
    fn drop(&mut self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

enum Launch {
    Started(OwnedFd, Child),
    NoNamespaces,
}

fn launch(
    launcher: &SandboxLauncher,
    policy: &SandboxPolicy,
    program: &Program,
    streams: &ProgramStreams,
    namespaces: bool,
) -> io::Result<Launch> {
    let (socket, theirs) = connect()?;
    let mut command = program.command(Some(launcher));
    command.stdin(theirs).stdout(streams.output.try_clone()?).stderr(streams.errors.try_clone()?);
    let mut child = command.spawn()?;
    // Our copies of what the launcher has now.
    drop(command);
    let input = streams.input.as_ref().map(AsFd::as_fd);
    let sent = send_request(&socket, policy, program, namespaces, input);
    let report = sent.map(|()| receive_report(&socket));
    let failure = match report {
        Ok(Some(Report::Started)) => return Ok(Launch::Started(socket, child)),
        Ok(Some(Report::NoNamespaces)) => None,
        Ok(Some(Report::Failed(why))) => Some(io::Error::other(why)),
        Ok(Some(Report::Ended(_)) | None) => Some(io::Error::other("the launcher of the sandbox failed")),
        Err(error) => Some(error),
    };
    drop(socket);
    let _ = child.wait();
    failure.map_or(Ok(Launch::NoNamespaces), Err)
}

fn follow(socket: &OwnedFd, mut child: Child, mut on_event: impl FnMut(ProgramEvent)) {
    let mut ended = false;
    while let Some(report) = receive_report(socket) {
        if let Report::Ended(end) = report {
            ended = true;
            on_event(ProgramEvent::Ended(end));
        }
    }
    // The launcher is gone, or we asked it to end.
    let _ = shutdown(socket, Shutdown::Both);
    let _ = child.wait();
    if !ended {
        on_event(ProgramEvent::Ended(ProcessEnd::Unknown));
    }
    on_event(ProgramEvent::Gone);
}

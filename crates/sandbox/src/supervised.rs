//! [`SupervisedProgram`]: a program that a launcher runs, as its caller sees it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{Shutdown, shutdown};

use crate::linux::namespaces::PROXY_PORT;
use crate::linux::{Report, connect, receive_report, send_end_request, send_request};
use crate::proxy::Proxy;
use crate::{
    Enforcement, Namespaces, NetworkAccess, ProcessEnd, Program, ProgramEvent, ProgramStreams,
    SandboxLauncher, SandboxPolicy,
};

/// Whether the system allows namespaces, as far as is known.
static NAMESPACES: AtomicBool = AtomicBool::new(true);

/// Dropping it closes the socket, on which the launcher ends everything. So does the end of this
/// process, however that comes.
pub(crate) struct SupervisedProgram {
    socket: Arc<OwnedFd>,
    _proxy: Option<Proxy>,
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
        let mut launched = launch(launcher, policy, program, streams, namespaces)?;
        if matches!(launched, Launch::NoNamespaces) {
            NAMESPACES.store(false, Ordering::Relaxed);
            launched = launch(launcher, policy, program, streams, false)?;
        }
        let Launch::Started { socket, child, listener } = launched else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let proxy = match (&policy.network, listener) {
            (NetworkAccess::Hosts(hosts), Some(listener)) => Some(Proxy::serve(listener, hosts.clone())?),
            _ => None,
        };
        let socket = Arc::new(socket);
        let reports = socket.clone();
        std::thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || follow(&reports, child, on_event))?;
        Ok(SupervisedProgram { socket, _proxy: proxy })
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
    Started {
        socket: OwnedFd,
        child: Child,
        /// Listens in the program's own network, if it has one.
        listener: Option<OwnedFd>,
    },
    NoNamespaces,
}

/// The variables by which programs find the proxy of their own network.
fn proxy_variables() -> impl Iterator<Item = (&'static str, String)> {
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let proxy = names.map(|name| (name, format!("http://127.0.0.1:{PROXY_PORT}")));
    // What a program starts itself is in its own network, too.
    let direct = ["NO_PROXY", "no_proxy"].map(|name| (name, "localhost,127.0.0.1,::1".to_owned()));
    proxy.into_iter().chain(direct)
}

fn launch(
    launcher: &SandboxLauncher,
    policy: &SandboxPolicy,
    program: &Program,
    streams: &ProgramStreams,
    namespaces: bool,
) -> io::Result<Launch> {
    let has_own_network = matches!(policy.network, NetworkAccess::Hosts(_));
    if has_own_network && (!namespaces || policy.enforcement == Enforcement::None) {
        // Landlock could allow a port, but on any machine: nothing would tell hosts apart.
        return Err(io::Error::other(
            "a list of hosts in `network` needs namespaces, which this system does not allow to users",
        ));
    }
    let (socket, theirs) = connect()?;
    let mut command = program.command(Some(launcher));
    if has_own_network {
        command.envs(proxy_variables());
    }
    command.stdin(theirs).stdout(streams.output.try_clone()?).stderr(streams.errors.try_clone()?);
    let mut child = command.spawn()?;
    // Our copies of what the launcher has now.
    drop(command);
    let input = streams.input.as_ref().map(AsFd::as_fd);
    let sent = send_request(&socket, policy, program, namespaces, input);
    if sent.is_err() {
        // Otherwise the launcher would wait for the rest.
        let _ = shutdown(&socket, Shutdown::Write);
    }
    let mut listener = None;
    let mut next_report = || loop {
        match receive_report(&socket) {
            Some((Report::Listening, received)) => listener = received,
            report => return report.map(|(report, _)| report),
        }
    };
    // A launcher that ends early may have reported why, whatever became of the request.
    let failure = match next_report() {
        Some(Report::Started) => return Ok(Launch::Started { socket, child, listener }),
        Some(Report::NoNamespaces) => None,
        Some(Report::Failed(why)) => Some(io::Error::other(why)),
        _ => Some(sent.err().unwrap_or_else(|| io::Error::other("the launcher of the sandbox failed"))),
    };
    drop(socket);
    let _ = child.wait();
    failure.map_or(Ok(Launch::NoNamespaces), Err)
}

fn follow(socket: &OwnedFd, mut child: Child, mut on_event: impl FnMut(ProgramEvent)) {
    let mut ended = false;
    while let Some((report, _)) = receive_report(socket) {
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

//! What the calling process and the launcher tell each other, over the launcher's standard input: a
//! socket of packets. The caller's end is also a lifeline. When it is closed, everything ends.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::{Enforcement, NetworkAccess, ProcessEnd, Program, ResourceLimits, SandboxPolicy};

/// The longest packet; the kernel's default limit is a little more. Room for any policy beside the
/// longest argument that a program can have (128 KiB).
const MAX_PACKET: usize = 200 * 1024;

/// The most descriptors in one packet (the kernel's limit is 253).
const MAX_DESCRIPTORS: usize = 250;

/// What the launcher is to do. Sent twice: the supervisor and the init process each take one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LaunchRequest {
    pub enforcement: Enforcement,
    /// Whether to make namespaces.
    pub namespaces: bool,
    /// The folder that the program runs in.
    pub folder: PathBytes,
    /// Files and folders that can be written; their descriptors come with the packet.
    pub writable: Vec<PathBytes>,
    pub hidden: Vec<PathBytes>,
    pub readable: Vec<PathBytes>,
    pub network: NetworkMode,
    pub limits: ResourceLimits,
    /// Whether the program's standard input comes after the other descriptors. It is empty if not.
    pub has_input: bool,
}

/// The network of a program, as the launcher needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NetworkMode {
    Off,
    /// One of its own, with a port that the caller gets to listen on.
    Own,
    On,
}

impl From<&NetworkAccess> for NetworkMode {
    fn from(network: &NetworkAccess) -> Self {
        match network {
            NetworkAccess::Off => NetworkMode::Off,
            NetworkAccess::Hosts(_) => NetworkMode::Own,
            NetworkAccess::On => NetworkMode::On,
        }
    }
}

/// A path that may be no UTF-8.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PathBytes(Vec<u8>);

impl PathBytes {
    pub fn path(&self) -> PathBuf {
        OsString::from_vec(self.0.clone()).into()
    }
}

impl From<&Path> for PathBytes {
    fn from(path: &Path) -> Self {
        PathBytes(path.as_os_str().as_bytes().to_vec())
    }
}

/// What the launcher says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The program runs.
    Started,
    /// The socket that listens in the program's own network comes with the packet.
    Listening,
    /// Nothing runs: the system allows no namespaces.
    NoNamespaces,
    /// Nothing runs, for this reason.
    Failed(String),
    /// The program itself has ended so. Its descendants may still run.
    Ended(ProcessEnd),
}

/// A request as it arrived, with the program and its arguments, which follow the JSON in the packet,
/// and with the descriptors of `writable` and the input.
pub(super) struct ReceivedRequest {
    pub request: LaunchRequest,
    pub program: Vec<OsString>,
    pub writable: Vec<OwnedFd>,
    pub input: Option<OwnedFd>,
}

/// The two ends of a connection: ours, and the launcher's.
pub(crate) fn connect() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends what is to be started to both processes of the launcher.
pub(crate) fn send_request(
    socket: &OwnedFd,
    policy: &SandboxPolicy,
    program: &Program,
    namespaces: bool,
    input: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let SandboxPolicy { enforcement, namespaces: _, writable, hidden, readable, network, limits } = policy;
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let bytes = |paths: &[PathBuf]| paths.iter().map(|path| PathBytes::from(&*real(path))).collect();
    let request = LaunchRequest {
        enforcement: *enforcement,
        namespaces: namespaces && *enforcement != Enforcement::None,
        folder: program.folder().into(),
        writable: writable.iter().map(|file| file.path().into()).collect(),
        hidden: bytes(hidden),
        readable: bytes(readable),
        network: network.into(),
        limits: *limits,
        has_input: input.is_some(),
    };
    let descriptors: Vec<BorrowedFd<'_>> =
        writable.iter().map(|file| file.file().as_fd()).chain(input).collect();
    if descriptors.len() > MAX_DESCRIPTORS {
        return Err(io::Error::other("the sandbox has too many writable folders"));
    }
    let mut packet = serde_json::to_vec(&request)?;
    for word in program.words() {
        if word.as_bytes().contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an argument holds a NUL character"));
        }
        packet.push(0);
        packet.extend_from_slice(word.as_bytes());
    }
    if packet.len() > MAX_PACKET {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    for _ in 0..2 {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(io::Error::other("the descriptors do not fit into a packet"));
        }
        rustix::net::sendmsg(socket, &[IoSlice::new(&packet)], &mut control, SendFlags::NOSIGNAL)?;
    }
    Ok(())
}

/// Takes one copy of the request.
pub(super) fn receive_request(socket: BorrowedFd<'_>) -> io::Result<ReceivedRequest> {
    let mut packet = vec![0; MAX_PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut packet)];
    let received = rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            descriptors.extend(files);
        }
    }
    let mut words = packet[..received.bytes].split(|byte| *byte == 0);
    let request: LaunchRequest = serde_json::from_slice(words.next().unwrap_or_default())?;
    let program = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    if descriptors.len() != request.writable.len() + usize::from(request.has_input) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let input = request.has_input.then(|| descriptors.pop()).flatten();
    Ok(ReceivedRequest { request, program, writable: descriptors, input })
}

pub(super) fn report(socket: BorrowedFd<'_>, report: &Report) {
    let packet = serde_json::to_vec(report).unwrap_or_default();
    // If nobody listens any more, the end of the socket says so, too.
    let _ = rustix::net::send(socket, &packet, SendFlags::NOSIGNAL);
}

/// Hands the socket that listens in the program's network to the caller.
pub(super) fn report_listener(socket: BorrowedFd<'_>, listener: BorrowedFd<'_>) -> io::Result<()> {
    let packet = serde_json::to_vec(&Report::Listening)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let listeners = [listener];
    if !control.push(SendAncillaryMessage::ScmRights(&listeners)) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&packet)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// The next report, and the socket that comes with it; none when the launcher has ended.
pub(crate) fn receive_report(socket: &OwnedFd) -> Option<(Report, Option<OwnedFd>)> {
    let mut packet = vec![0; MAX_PACKET];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut packet)];
        match rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.bytes == 0 => return None,
            Ok(received) => {
                let mut listener = None;
                for message in control.drain() {
                    if let RecvAncillaryMessage::ScmRights(files) = message {
                        listener = files.last();
                    }
                }
                let report = serde_json::from_slice(&packet[..received.bytes]).ok()?;
                return Some((report, listener));
            }
            // It ended before it had read everything. What it said is still there.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
            Err(_) => return None,
        }
    }
}

/// Asks the program's processes to end by themselves.
pub(crate) fn send_end_request(socket: &OwnedFd) {
    let _ = rustix::net::send(socket, b"end", SendFlags::NOSIGNAL);
}

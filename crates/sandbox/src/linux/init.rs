//! The init process: restricts itself, starts the program, and takes over what that leaves behind.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::net::RecvFlags;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getpid, getrlimit,
    kill_process_group, pidfd_open, set_child_subreaper, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit, wait,
};

use super::supervisor::end_descendants;
use super::wire::{ReceivedRequest, Report, receive_request, report};
use super::{files, namespaces, syscalls};
use crate::{Enforcement, ProcessEnd, ResourceLimits};

/// How often processes that the program left behind are looked after.
const REAP_INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

pub(super) fn run() -> i32 {
    let socket = io::stdin();
    let socket = socket.as_fd();
    // If the supervisor is killed, this process is, too; and in a namespace, everything else.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = set_child_subreaper(Some(getpid()));
    let received = receive_request(socket);
    let mut own_shared_memory = false;
    if received.as_ref().is_ok_and(|received| received.request.namespaces) {
        if namespaces::mount_proc().is_err() {
            report(socket, &Report::NoNamespaces);
            return 1;
        }
        own_shared_memory = namespaces::mount_shared_memory();
    }
    match received.and_then(|received| start(received, own_shared_memory)) {
        Ok(program) => {
            close_output();
            report(socket, &Report::Started);
            watch(socket, program);
        }
        Err(error) => report(socket, &Report::Failed(error.to_string())),
    }
    end_descendants();
    0
}

fn start(received: ReceivedRequest, own_shared_memory: bool) -> io::Result<Pid> {
    let ReceivedRequest { request, program, writable, input } = received;
    let [program, arguments @ ..] = &program[..] else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program to run in the sandbox"));
    };
    if request.namespaces {
        namespaces::drop_capability()?;
    }
    set_limits(request.limits);
    match request.enforcement {
        Enforcement::Full => {
            files::restrict(&request, &writable, own_shared_memory)?;
            files::drop_privileges()?;
            syscalls::restrict(request.network)?;
        }
        Enforcement::SystemCalls => {
            files::drop_privileges()?;
            rustix::thread::set_no_new_privs(true)?;
            syscalls::restrict(request.network)?;
        }
        Enforcement::None => {}
    }
    let mut command = command_without_descriptors(program, arguments);
    // The program is not to write into the memory of this process, either.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    command.process_group(0).stdin(input.map_or_else(Stdio::null, Stdio::from));
    Ok(Pid::from_child(&command.spawn()?))
}

/// A command that does not pass on what this process inherited open, such as a file of the shell that
/// Hardpan was started in: no restriction applies to what is open already.
fn command_without_descriptors(program: &OsStr, arguments: &[OsString]) -> Command {
    let shell = Path::new("/bin/bash");
    let inherited = inherited_descriptors();
    let mut command = if inherited.is_empty() || !shell.exists() {
        Command::new(program)
    } else {
        let closed: String = inherited.iter().map(|number| format!(" {number}>&-")).collect();
        let mut command = Command::new(shell);
        command.args(["-c", &format!("exec{closed}; exec \"$@\""), "bash"]).arg(program);
        command
    };
    command.args(arguments);
    command
}

/// Descriptors other than the standard ones that a new program would have.
fn inherited_descriptors() -> Vec<u32> {
    let files = fs::read_dir("/proc/self/fdinfo").into_iter().flatten().flatten();
    let is_inherited = |file: &fs::DirEntry| {
        let info = fs::read_to_string(file.path()).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| flags & OFlags::CLOEXEC.bits() == 0)
    };
    let numbers = files.filter(is_inherited).filter_map(|file| file.file_name().to_str()?.parse().ok());
    numbers.filter(|number| *number > 2).collect()
}

/// Lets go of the program's standard output and error, so that they close when its processes end.
pub(super) fn close_output() {
    if let Ok(nowhere) = fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
        let _ = rustix::stdio::dup2_stderr(&nowhere);
    }
}

/// Waits until the other end of the socket is closed.
fn watch(socket: BorrowedFd<'_>, program: Pid) {
    let mut ended = pidfd_open(program, PidfdFlags::empty()).ok();
    loop {
        let mut polled = vec![PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        polled.extend(ended.as_ref().map(|ended| PollFd::new(ended, PollFlags::IN)));
        let _ = poll(&mut polled, Some(&REAP_INTERVAL));
        let news = polled[0].revents();
        drop(polled);
        if !news.is_empty() {
            match rustix::net::recv(socket, &mut [0; 16], RecvFlags::DONTWAIT) {
                Ok((_, 1..)) => {
                    let _ = kill_process_group(program, Signal::TERM);
                }
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                Ok(_) | Err(_) => return,
            }
        }
        while let Ok(Some((process, status))) = wait(WaitOptions::NOHANG) {
            if process == program {
                report(socket, &Report::Ended(end_of(status)));
                ended = None;
            }
        }
    }
}

fn end_of(status: WaitStatus) -> ProcessEnd {
    let exit = status.exit_status().map(ProcessEnd::Exit);
    exit.or(status.terminating_signal().map(ProcessEnd::Signal)).unwrap_or(ProcessEnd::Unknown)
}

fn set_limits(limits: ResourceLimits) {
    let ResourceLimits { memory, file_size, processes } = limits;
    let limits = [
        (Resource::Core, Some(0)),
        (Resource::Data, memory),
        (Resource::Fsize, file_size),
        (Resource::Nproc, processes),
    ];
    for (resource, limit) in limits {
        let Some(limit) = limit else { continue };
        // Never more than the user has.
        let limit = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
        let _ = setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) });
    }
    // When memory runs out, commands end first.
    let _ = fs::write("/proc/self/oom_score_adj", "800");
}

/// All descendants of a process.
pub(super) fn descendants(of: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |name: &str| Pid::from_raw(name.parse().ok()?);
    let parents: Vec<(Pid, Pid)> = processes
        .filter_map(|entry| {
            let process = number(entry.file_name().to_str()?)?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name in parentheses may hold anything; after it come the state and the parent.
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
            Some((process, number(parent)?))
        })
        .collect();
    let mut found = vec![of];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        next += 1;
    }
    found.split_off(1)
}

//! The supervisor: stays outside of the sandbox, and ends everything when its caller is gone.

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open,
    set_child_subreaper, set_dumpable_behavior, wait, waitpid,
};

use super::wire::{NetworkMode, Report, receive_request, report, report_listener};
use super::{init, namespaces};

/// The argument by which the launcher knows that it is the init process.
pub(super) const INIT: &str = "--init";

pub(super) fn run(marker: &str) -> i32 {
    let socket = std::io::stdin();
    let socket = socket.as_fd();
    let received = match receive_request(socket) {
        Ok(received) => received,
        Err(error) => {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("hardpan: invalid sandbox policy: {error}\n").as_bytes(),
            );
            return 2;
        }
    };
    // What a terminal sends to its foreground processes (Ctrl-C) is for the caller alone.
    let _ = rustix::process::setsid();
    // What the program leaves behind becomes a child of the init process, or else of this one.
    let _ = set_child_subreaper(Some(getpid()));
    if received.request.namespaces && namespaces::enter(&received).is_err() {
        report(socket, &Report::NoNamespaces);
        return 1;
    }
    if received.request.network == NetworkMode::Own {
        let listening = namespaces::listen().and_then(|listener| report_listener(socket, listener.as_fd()));
        if let Err(error) = listening {
            report(socket, &Report::Failed(format!("the network of the sandbox: {error}")));
            return 1;
        }
    }
    // Where Landlock is missing, a program could otherwise write into the memory of this process, which
    // is not restricted.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // A link to the running program, whatever is on disk; in the new process, which is the first of
    // its namespace, it leads there, too.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("hardpan").arg(marker).arg(INIT).current_dir(received.request.folder.path());
    drop(received);
    let init = match command.spawn() {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            report(socket, &Report::Failed(error.to_string()));
            return 1;
        }
    };
    init::close_output();
    if let Ok(ended) = pidfd_open(init, PidfdFlags::empty()) {
        loop {
            // Only the end of the socket is of interest: the init process reads it.
            let mut files =
                [PollFd::from_borrowed_fd(socket, PollFlags::empty()), PollFd::new(&ended, PollFlags::IN)];
            match poll(&mut files, None) {
                Err(Errno::INTR) => {}
                Ok(_) if files.iter().all(|file| file.revents().is_empty()) => {}
                _ => break,
            }
        }
    }
    let _ = kill_process(init, Signal::KILL);
    // In a namespace of its own, this returns when all its processes are gone.
    while let Err(Errno::INTR) = waitpid(Some(init), WaitOptions::empty()) {}
    end_descendants();
    0
}

/// Kills every descendant of this process, which must be a subreaper, and waits for it.
pub(super) fn end_descendants() {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => {
                for process in init::descendants(getpid()) {
                    let _ = kill_process(process, Signal::KILL);
                }
                // Waits for one of them; each has been killed.
                let _ = wait(WaitOptions::empty());
            }
            // There are none left.
            Err(_) => return,
        }
    }
}

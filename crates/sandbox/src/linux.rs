//! The sandbox of Linux.
//!
//! The launcher is two processes. The *supervisor* stays outside of the sandbox. It makes namespaces
//! where the system allows them, and ends everything when the process that started it closes its end
//! of a socket, or dies. The *init* process restricts itself, starts the program, reports how that
//! ended, and takes over what the program leaves behind.

mod files; // Landlock: which files can be read and written
mod init; // the process that restricts itself and starts the program
pub(crate) mod namespaces; // processes, mounts and network of the sandbox's own
mod supervisor; // the process outside that ends everything
mod syscalls; // seccomp: system calls that are refused
mod wire; // what the processes tell each other

use std::ffi::OsStr;
use std::path::Path;

use crate::SandboxSupport;

use wire::NetworkMode;
pub(crate) use wire::{Report, connect, receive_report, send_end_request, send_request};

pub(crate) fn sandbox_support() -> SandboxSupport {
    if let Some(support) = files::missing_support() {
        return support;
    }
    match syscalls::filters(NetworkMode::Off) {
        Ok(_) if Path::new("/proc/sys/kernel/seccomp").exists() => SandboxSupport::Full,
        _ => SandboxSupport::Partial(
            "there is no seccomp filter: only TCP is kept from commands (Linux 6.7)".to_owned(),
        ),
    }
}

/// What a process does that was started as the launcher, with this argument after the marker. Returns
/// its exit code.
pub(crate) fn run_as_launcher(marker: &str, argument: Option<&OsStr>) -> i32 {
    if argument.is_some_and(|argument| argument == supervisor::INIT) {
        init::run()
    } else {
        supervisor::run(marker)
    }
}

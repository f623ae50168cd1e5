//! [`SandboxLauncher`]: the program that enters the sandbox and starts the program to run there.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use rustix::fs::{Mode, OFlags};

/// A program whose `main` begins with [`SandboxLauncher::install`].
///
/// It is held open: whatever a command, or an update, puts in its place on disk, the same program
/// restricts the next command.
#[derive(Clone, Debug)]
pub struct SandboxLauncher {
    program: Arc<OwnedFd>,
    /// The first argument by which it knows that it is called as the launcher.
    marker: OsString,
}

/// The launcher of this process, see [`SandboxLauncher::install`].
static INSTALLED: OnceLock<SandboxLauncher> = OnceLock::new();

impl SandboxLauncher {
    /// The first thing that `main` does. If this process was started as a launcher, with `marker` as
    /// its first argument, it does its work and never returns. Otherwise it holds the calling program
    /// open as the launcher of this process, as long as it is the one on disk.
    pub fn install(marker: &str) {
        #[cfg(target_os = "linux")]
        {
            let mut arguments = std::env::args_os().skip(1);
            if arguments.next().is_some_and(|first| first == marker) {
                std::process::exit(crate::linux::run_as_launcher(marker, arguments.next().as_deref()));
            }
            if let Ok(launcher) = Self::open(Path::new("/proc/self/exe"), marker) {
                let _ = INSTALLED.set(launcher);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = marker;
    }

    /// The launcher of this process, if it can be one.
    pub fn installed() -> Option<SandboxLauncher> {
        INSTALLED.get().cloned()
    }

    /// Another program, as it is now.
    pub fn open(program: &Path, marker: &str) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        #[cfg(not(target_os = "linux"))]
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let program = File::from(rustix::fs::open(program, flags, Mode::empty())?);
        if !program.metadata()?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(SandboxLauncher { program: Arc::new(program.into()), marker: marker.into() })
    }

    /// A command that calls the launcher. The caller adds what it is to run.
    pub(crate) fn command(&self) -> Command {
        // The descriptor has the same number in the new process, which still has it when it calls
        // exec. A link of /proc/self/fd leads to the open file, not to a path.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.program.as_raw_fd()));
        command.arg0("hardpan").arg(&self.marker);
        command
    }
}

/// Keeps what is in the memory of this process, keys included, from core dumps and from other
/// processes of the user.
pub fn forbid_core_dumps() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{
            DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
        };
        let maximum = getrlimit(Resource::Core).maximum;
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

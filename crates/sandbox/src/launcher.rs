//! [`SandboxLauncher`]: the program that enters the sandbox and becomes the program to run.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use rustix::fs::{Mode, OFlags};

use crate::SandboxPolicy;

/// A program that calls [`enter_sandbox_and_exec`]. After its own arguments it gets the policy as
/// JSON, then the command.
///
/// It is held open: whatever a command, or an update, puts in its place on disk, the same program
/// restricts the next command.
#[derive(Clone, Debug)]
pub struct SandboxLauncher {
    program: Arc<OwnedFd>,
    arguments: Vec<OsString>,
}

/// The launcher of this process, see [`SandboxLauncher::install`].
static INSTALLED: OnceLock<SandboxLauncher> = OnceLock::new();

impl SandboxLauncher {
    /// Holds the calling program open as the launcher of this process. The first thing that `main`
    /// does, so that nothing has been put in its place. Without `/proc` there is none.
    pub fn install(arguments: &[&str]) {
        if let Ok(launcher) = Self::of_this_program(arguments) {
            let _ = INSTALLED.set(launcher);
        }
    }

    /// The launcher of this process, if it can be one.
    pub fn installed() -> Option<SandboxLauncher> {
        INSTALLED.get().cloned()
    }

    /// The calling program, which enters the sandbox when it is called with these arguments.
    fn of_this_program(arguments: &[&str]) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return Self::open(Path::new("/proc/self/exe"), arguments);
        #[cfg(not(target_os = "linux"))]
        Self::open(&std::env::current_exe()?, arguments)
    }

    /// Another program, as it is now.
    pub fn open(program: &Path, arguments: &[&str]) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        #[cfg(not(target_os = "linux"))]
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let program = File::from(rustix::fs::open(program, flags, Mode::empty())?);
        if !program.metadata()?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(SandboxLauncher {
            program: Arc::new(program.into()),
            arguments: arguments.iter().map(OsString::from).collect(),
        })
    }

    /// A command that starts `program` in the sandbox. The caller adds the program's arguments.
    pub(crate) fn command(&self, policy: &SandboxPolicy, program: &Path) -> io::Result<Command> {
        // The descriptor has the same number in the new process, which still has it when it calls
        // exec. A link of /proc/self/fd leads to the open file, not to a path.
        let mut command = Command::new(format!("/proc/self/fd/{}", self.program.as_raw_fd()));
        command.arg0("hardpan").args(&self.arguments).arg(serde_json::to_string(policy)?).arg(program);
        Ok(command)
    }
}

/// Restricts this process for good and replaces it by the command. Returns only if that fails;
/// nothing has run then.
///
/// For a process that was started for this purpose: it must have no other threads. It becomes the
/// leader of a new session, so the command has no terminal to read from or write to.
pub fn enter_sandbox_and_exec(policy: &SandboxPolicy, command: &mut Command) -> io::Error {
    // Fails for a process that already leads a group, which is fine.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    if let Err(error) = crate::linux::restrict(policy) {
        return error;
    }
    #[cfg(not(target_os = "linux"))]
    if let crate::SandboxSupport::None(why) = crate::sandbox_support() {
        let _ = policy;
        return io::Error::new(io::ErrorKind::Unsupported, why);
    }
    command.exec()
}

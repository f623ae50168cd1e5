//! [`Sandbox`]: what the commands of the model cannot do.
//!
//! A command may write only in the workspace and in its own folder for temporary files, cannot read
//! the folders that hold keys, and has no network unless the user allows it. The kernel enforces
//! this for everything that the command starts, too. It cannot prevent changes of permissions and
//! times of files outside (Landlock has no right for them) and, once the network is allowed, what
//! servers on this machine do on request.
//!
//! A process can only restrict itself, so a launcher comes in between: Hardpan, called again,
//! restricts itself with [`enter_sandbox_and_exec`] and becomes the command.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

mod denials; // what the sandbox denied, told from the output
#[cfg(target_os = "linux")]
mod linux; // Landlock and seccomp

pub(crate) use denials::explain_denials;

/// The sandbox of a session. Each command gets a [`SandboxPolicy`] made from it.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// How a command is started in the sandbox.
    pub launcher: SandboxLauncher,
    /// Folders outside of the workspace that commands may write in, such as a package cache.
    pub writable: Vec<PathBuf>,
    /// Files and folders that commands cannot read, such as those with keys.
    pub hidden: Vec<PathBuf>,
    /// Whether commands can use the network.
    pub network: NetworkAccess,
}

/// A program that calls [`enter_sandbox_and_exec`]. After its own arguments it gets the policy as
/// JSON, then the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxLauncher {
    /// Path of the launcher, usually Hardpan's own executable.
    pub program: PathBuf,
    /// Its arguments before the policy.
    pub arguments: Vec<OsString>,
}

/// What one command can do. Passed to the launcher as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxPolicy {
    /// Files and folders that the command can write. It can read everything that is not hidden.
    pub writable: Vec<PathBuf>,
    /// Files and folders that the command can neither read nor write.
    pub hidden: Vec<PathBuf>,
    /// Whether the command can use the network.
    pub network: NetworkAccess,
}

/// Whether commands can use the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkAccess {
    /// No network, not even this machine's own addresses.
    #[default]
    Off,
    /// The network of the user, without restrictions.
    On,
}

/// How much of the sandbox this system supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxSupport {
    /// Files and the network are restricted.
    Full,
    /// Some restrictions are missing; the text says which.
    Partial(String),
    /// There is no sandbox; the text says why.
    None(String),
}

/// Finds out how much of the sandbox this system supports.
pub fn sandbox_support() -> SandboxSupport {
    #[cfg(target_os = "linux")]
    return linux::sandbox_support();
    #[cfg(not(target_os = "linux"))]
    SandboxSupport::None("the sandbox needs Landlock and seccomp, which only Linux has".to_owned())
}

impl Sandbox {
    /// The policy of a command in the workspace `root` with the temporary folder `temp`.
    pub(crate) fn policy(&self, root: &Path, temp: &Path) -> SandboxPolicy {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let writable = [root, temp].into_iter().map(Path::to_owned).chain(self.writable.iter().cloned());
        SandboxPolicy {
            writable: writable.map(|path| real(&path)).collect(),
            hidden: self.hidden.iter().map(real).collect(),
            network: self.network,
        }
    }
}

impl SandboxLauncher {
    /// A command that starts `program` in the sandbox. The caller adds the program's arguments.
    pub(crate) fn command(&self, policy: &SandboxPolicy, program: &Path) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(serde_json::to_string(policy)?).arg(program);
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
    if let Err(error) = linux::restrict(policy) {
        return error;
    }
    #[cfg(not(target_os = "linux"))]
    if let SandboxSupport::None(why) = sandbox_support() {
        let _ = policy;
        return io::Error::new(io::ErrorKind::Unsupported, why);
    }
    command.exec()
}

#[cfg(test)]
mod tests;

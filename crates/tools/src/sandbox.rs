//! What commands are kept from.
//!
//! A command may write only in the workspace and in a folder of its own for temporary files, may not read the folders
//! that hold keys, and has no network unless the person allows it. The kernel sees to that, so it holds for everything
//! the command starts, too. What it cannot see to: changes of permissions and times of files outside (Landlock knows no
//! right for them), and, once the network is allowed, what servers on this machine do on request.
//!
//! A process can only restrict itself, so a launcher comes between: this program, called again, restricts itself with
//! [`enter_and_exec`] and becomes the command.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

mod denied; // what a policy has denied, from what the command said
#[cfg(target_os = "linux")]
mod linux; // Landlock and seccomp

pub(crate) use denied::denied;

/// How commands are kept within bounds, for all of a session.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// What starts a command in the sandbox.
    pub launcher: Launcher,
    /// Folders outside of the workspace that commands may write in, such as a package cache.
    pub writable: Vec<PathBuf>,
    /// Files and folders that commands may not read: where keys are.
    pub hidden: Vec<PathBuf>,
    /// Whether commands have the network.
    pub network: Network,
}

/// A program that calls [`enter_and_exec`] with the policy (JSON) and the command that follow its own arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

/// What one command may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Where it may write. Everything else it may read.
    pub writable: Vec<PathBuf>,
    /// What it may not even read.
    pub hidden: Vec<PathBuf>,
    /// Whether it has the network.
    pub network: Network,
}

/// Whether commands have the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// They have none, this machine's own addresses included.
    #[default]
    Off,
    /// They have it.
    On,
}

/// How much of the sandbox this system offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// All of it.
    Full,
    /// Some of it, and what is missing.
    Partial(String),
    /// Nothing, and why.
    None(String),
}

/// How much of the sandbox this system offers.
pub fn support() -> Support {
    #[cfg(target_os = "linux")]
    return linux::support();
    #[cfg(not(target_os = "linux"))]
    Support::None(
        "only Linux has the means (Landlock and seccomp) that commands are kept within bounds by".to_owned(),
    )
}

impl Sandbox {
    /// The policy of a command that works in this workspace.
    pub(crate) fn policy(&self, root: &Path, temp: &Path) -> Policy {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let writable = [root, temp].into_iter().map(Path::to_owned).chain(self.writable.iter().cloned());
        Policy {
            writable: writable.map(|path| real(&path)).collect(),
            hidden: self.hidden.iter().map(real).collect(),
            network: self.network,
        }
    }
}

impl Launcher {
    /// The command that starts `program` within the policy; its arguments are still to come.
    pub(crate) fn command(&self, policy: &Policy, program: &Path) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(serde_json::to_string(policy)?).arg(program);
        Ok(command)
    }
}

/// Restricts this process for good and becomes the command. Returns only if that fails; nothing has run then.
///
/// For a process that was started for this: it has no other threads, and leads a session of its own from now on, so
/// that what it starts has no terminal to write to or to read from.
pub fn enter_and_exec(policy: &Policy, command: &mut Command) -> io::Error {
    // A process that leads a group already cannot, and need not.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    if let Err(error) = linux::restrict(policy) {
        return error;
    }
    #[cfg(not(target_os = "linux"))]
    if let Support::None(why) = support() {
        let _ = policy;
        return io::Error::new(io::ErrorKind::Unsupported, why);
    }
    command.exec()
}

#[cfg(test)]
mod tests;

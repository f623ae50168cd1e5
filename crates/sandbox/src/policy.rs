//! [`Sandbox`] and [`SandboxPolicy`]: what commands can and cannot do.
//!
//! A command may write only in the workspace and in its own folder for temporary files, cannot read
//! the folders that hold keys, and has no network unless the user allows it. It cannot be kept from
//! changing permissions and times of files outside (Landlock has no right for them) and, once the
//! network is allowed, what servers on this machine do on request.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SandboxLauncher;

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
    return crate::linux::sandbox_support();
    #[cfg(not(target_os = "linux"))]
    SandboxSupport::None("the sandbox needs Landlock and seccomp, which only Linux has".to_owned())
}

impl Sandbox {
    /// The policy of a command in the workspace `root` with the temporary folder `temp`.
    pub fn policy(&self, root: &Path, temp: &Path) -> SandboxPolicy {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let writable = [root, temp].into_iter().map(Path::to_owned).chain(self.writable.iter().cloned());
        SandboxPolicy {
            writable: writable.map(|path| real(&path)).collect(),
            hidden: self.hidden.iter().map(real).collect(),
            network: self.network,
        }
    }
}

//! [`SandboxPolicy`]: what a program can and cannot do. [`Sandbox`] is what the policies of a session
//! have in common.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::{HostPattern, SandboxLauncher};

/// The sandbox of a session. Each command gets a [`SandboxPolicy`] made from it.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// How a command is started in the sandbox.
    pub launcher: SandboxLauncher,
    /// What a command may do, besides writing in the workspace and in its temporary folder.
    pub policy: SandboxPolicy,
}

/// What one program can do.
#[derive(Clone, Debug, Default)]
pub struct SandboxPolicy {
    /// Which restrictions are in force.
    pub enforcement: Enforcement,
    /// Whether the program has namespaces of its own.
    pub namespaces: Namespaces,
    /// Files and folders that the program can write. It can read everything that is not hidden.
    pub writable: Vec<FileHandle>,
    /// Files and folders that the program can neither read nor write, whatever else is writable.
    pub hidden: Vec<PathBuf>,
    /// Files and folders that the program can read although they are in a hidden one.
    pub readable: Vec<PathBuf>,
    /// Whether the program can use the network.
    pub network: NetworkAccess,
    /// How much the program can use of the machine.
    pub limits: ResourceLimits,
}

/// Which restrictions are in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// Files, network and system calls. A program that cannot be restricted so does not run.
    #[default]
    Full,
    /// Network and system calls, for systems without Landlock: the program can read and write what
    /// the user can.
    SystemCalls,
    /// None. The program still ends with all its descendants.
    None,
}

/// Whether a program has processes and mounts of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespaces {
    /// Where the system allows it.
    #[default]
    WhereAllowed,
    /// Never.
    Never,
}

/// A file or folder, held open: whatever takes its place later, the sandbox allows this one.
#[derive(Clone, Debug)]
pub struct FileHandle {
    path: PathBuf,
    file: Arc<OwnedFd>,
}

/// Whether programs can use the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// No network, not even this machine's own addresses.
    #[default]
    Off,
    /// These hosts, through a proxy, which `HTTP_PROXY` and the like name. The program has a network of
    /// its own with nothing else in it, for which the system must allow namespaces.
    Hosts(Vec<HostPattern>),
    /// The network of the user. Sockets of this machine that have a path or a name (the session bus,
    /// docker) stay closed: their servers would do what the program may not.
    On,
}

/// How much a program can use of the machine. `None` is what the user may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Bytes of memory of each process.
    pub memory: Option<u64>,
    /// Bytes of each file that is written.
    pub file_size: Option<u64>,
    /// Processes and threads at the same time.
    pub processes: Option<u64>,
}

impl Default for ResourceLimits {
    /// More than builds use. Memory has no limit, because many programs reserve far more than they
    /// use; but when memory runs out, the kernel ends commands before anything else.
    fn default() -> Self {
        ResourceLimits { memory: None, file_size: Some(32 << 30), processes: Some(8192) }
    }
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

impl FileHandle {
    /// Follows the links of `path` now and holds what is there.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        #[cfg(target_os = "linux")]
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        #[cfg(not(target_os = "linux"))]
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
        if file.metadata()?.is_symlink() {
            return Err(io::Error::other("it changed while it was opened"));
        }
        Ok(FileHandle { path, file: Arc::new(file.into()) })
    }

    /// Where it was when it was opened, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn file(&self) -> &OwnedFd {
        &self.file
    }
}

impl SandboxPolicy {
    /// This policy with further files and folders that can be written.
    pub fn with_writable(mut self, more: impl IntoIterator<Item = FileHandle>) -> Self {
        self.writable.extend(more);
        self
    }
}

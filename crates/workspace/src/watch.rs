//! [`WorkspaceWatch`]: what changed in a folder since it was last asked.
//!
//! The system queues changes, and a question takes them out of the queue: what was written before the
//! question is in its answer. Nothing runs between two questions, so a watch costs nothing while idle.
//! Several readers share one watch, each with its own [`WatchPosition`].

mod change_log; // ChangeLog: what changed, and when
#[cfg_attr(target_os = "linux", path = "watch/inotify.rs")]
#[cfg_attr(not(target_os = "linux"), path = "watch/unsupported.rs")]
mod folder_events;
mod tree_edit; // TreeEdit: a list of files with some of them added and removed
mod watch_state; // WatchState: the watched folders, and what their events mean // FolderEvents: the queue of the system

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hardpan_files::FileGuard;

use crate::file_tree::{FileTree, TREE_LIMIT};
pub use change_log::{Changes, WatchPosition};
use watch_state::WatchState;

/// What happened to a name, or to a folder.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing happens where nothing is watched"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventKind {
    /// A file was written to, or its permissions changed.
    Content,
    /// A name appeared or disappeared.
    List { is_folder: bool },
    /// The watched folder itself was removed or renamed.
    Gone,
    /// The folder is no longer watched.
    Dropped,
    /// Events were lost.
    Overflow,
}

/// Why a folder is not watched. Whoever wants to know what changed must look.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// There is no watching on this system.
    #[error("this system has no way of watching folders that hardpan knows")]
    Unsupported,
    /// The folder's file system does not report changes that other machines make.
    #[error("the folder is on a file system that does not report all changes")]
    Filesystem,
    /// The user's limit of watches is reached.
    #[error("the system's limit for watches is reached (fs.inotify.max_user_watches)")]
    LimitReached,
    /// There are too many folders or files.
    #[error("the folder has too many files or folders to watch")]
    TooLarge,
    /// The folder was removed or renamed.
    #[error("the folder is no longer there")]
    FolderGone,
    /// The system reports an error.
    #[error("watching failed: {0}")]
    System(String),
}

impl From<io::Error> for WatchError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => WatchError::LimitReached,
            _ if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
                WatchError::LimitReached
            }
            _ => WatchError::System(error.to_string()),
        }
    }
}

/// Watches the files of a folder that git would not ignore, and the parts of its repository that
/// tell the branch and what is staged.
#[derive(Debug)]
pub struct WorkspaceWatch {
    guard: FileGuard,
    root: PathBuf,
    state: Mutex<WatchState>,
}

impl WorkspaceWatch {
    /// Begins to watch the files below `root`. It lists them all, so it takes as long as that.
    pub fn start(guard: FileGuard, root: &Path) -> Result<Self, WatchError> {
        let state = WatchState::start(&guard, root)?;
        Ok(WorkspaceWatch { guard, root: root.to_owned(), state: Mutex::new(state) })
    }

    /// What changed since the position, which moves to now. A position that is new, and a watch that
    /// failed, say that everything may have changed.
    pub fn changes_since(&self, position: &mut WatchPosition) -> Changes {
        let mut state = self.lock();
        state.update(&self.guard, &self.root);
        state.changes_since(position)
    }

    /// The files as [`list_files`](crate::list_files) lists them. Call it after
    /// [`changes_since`](Self::changes_since).
    pub fn file_list(&self) -> Arc<FileTree> {
        let known = self.lock().tree();
        if let Some(tree) = known {
            return tree;
        }
        Arc::new(crate::list_files(&self.guard, &self.root, TREE_LIMIT))
    }

    /// Whether changes of a file are noticed: its folder is watched. The path is absolute and
    /// without links.
    pub fn covers(&self, path: &Path) -> bool {
        let state = self.lock();
        let Some(folder) = path.parent().and_then(|folder| folder.strip_prefix(&self.root).ok()) else {
            return false;
        };
        let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        !is_link && state.is_watched(folder)
    }

    /// Why it no longer watches.
    pub fn failure(&self) -> Option<WatchError> {
        self.lock().failure().cloned()
    }

    /// Waits until something may have changed, at most for `limit`. Takes nothing out of the queue.
    pub fn wait_for_change(&self, limit: Duration) -> bool {
        let descriptor = self.lock().events().and_then(|events| events.try_clone().ok());
        descriptor.is_some_and(|events| events.wait(limit))
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

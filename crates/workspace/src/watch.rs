//! [`WorkspaceWatch`]: what changed in a folder since it was last asked.
//!
//! The system queues changes, and a question takes them out of the queue: what was written before the
//! question is in its answer. Nothing runs between two questions, so a watch costs nothing while idle.
//! Several readers share one watch, each with its own [`WatchPosition`].

mod change_log; // ChangeLog: what changed, and when
#[cfg_attr(target_os = "linux", path = "watch/inotify.rs")]
#[cfg_attr(not(target_os = "linux"), path = "watch/unsupported.rs")]
mod folder_events; // FolderEvents: the queue of the system

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hardpan_files::{FileGuard, OpenFolder};

use crate::file_tree::{FileTree, TREE_LIMIT, list_files_and_folders};
use crate::git::watched_folders;
use crate::path::with_forward_slashes;
use change_log::ChangeLog;
pub use change_log::{Changes, WatchPosition};
use folder_events::FolderEvents;

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

/// The most folders that are watched: a quarter of what systems usually let a user watch, and some
/// 60 MB of the kernel's memory.
const MAX_FOLDERS: usize = 60_000;
/// How often a folder is listed again because new folders appeared while it was listed.
const LISTING_ATTEMPTS: usize = 4;
/// How many ignored names are remembered, so that writing them again does not list the folder again.
const MAX_UNLISTED: usize = 1000;

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

#[derive(Debug)]
struct WatchState {
    /// `None` after a failure: its watches are given back.
    events: Option<FolderEvents>,
    folders: BTreeMap<i32, WatchedFolder>,
    /// The watched folders with files, relative to the root.
    paths: BTreeSet<PathBuf>,
    tree: Arc<FileTree>,
    /// Names that exist and are ignored.
    unlisted: BTreeSet<String>,
    log: ChangeLog,
    failure: Option<WatchError>,
}

/// What a watched folder is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WatchedFolder {
    /// Files, by the folder's path relative to the root.
    Files(PathBuf),
    /// A folder of the repository: `HEAD`, the index, branches.
    Repository,
    /// `info` of the repository, with rules of what is ignored.
    Rules,
}

impl WatchedFolder {
    fn files_path(&self) -> Option<PathBuf> {
        match self {
            WatchedFolder::Files(path) => Some(path.clone()),
            WatchedFolder::Repository | WatchedFolder::Rules => None,
        }
    }
}

impl WorkspaceWatch {
    /// Begins to watch the files below `root`. It lists them all, so it takes as long as that.
    pub fn start(guard: FileGuard, root: &Path) -> Result<Self, WatchError> {
        let mut state = WatchState {
            events: Some(FolderEvents::new(root)?),
            folders: BTreeMap::new(),
            paths: BTreeSet::new(),
            tree: Arc::default(),
            unlisted: BTreeSet::new(),
            log: ChangeLog::default(),
            failure: None,
        };
        state.list(&guard, root)?;
        Ok(WorkspaceWatch { guard, root: root.to_owned(), state: Mutex::new(state) })
    }

    /// What changed since the position, which moves to now. A position that is new, and a watch that
    /// failed, say that everything may have changed.
    pub fn changes_since(&self, position: &mut WatchPosition) -> Changes {
        let mut state = self.lock();
        state.update(&self.guard, &self.root);
        let failed = state.failure.is_some();
        let mut changes = state.log.since(position);
        changes.everything |= failed;
        changes
    }

    /// The files as [`list_files`](crate::list_files) lists them. Call it after
    /// [`changes_since`](Self::changes_since).
    pub fn file_list(&self) -> Arc<FileTree> {
        let state = self.lock();
        if state.failure.is_none() {
            return state.tree.clone();
        }
        drop(state);
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
        state.failure.is_none() && !is_link && state.paths.contains(folder)
    }

    /// Why it no longer watches.
    pub fn failure(&self) -> Option<WatchError> {
        self.lock().failure.clone()
    }

    /// Waits until something may have changed, at most for `limit`. Takes nothing out of the queue.
    pub fn wait_for_change(&self, limit: Duration) -> bool {
        let descriptor = self.lock().events.as_ref().and_then(|events| events.try_clone().ok());
        descriptor.is_some_and(|events| events.wait(limit))
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchState {
    /// Takes what happened out of the queue.
    fn update(&mut self, guard: &FileGuard, root: &Path) {
        let Some(events) = &mut self.events else { return };
        let mut pending = Pending::default();
        let folders = &mut self.folders;
        let read = events.read(|wd, kind, name| match kind {
            EventKind::Overflow => pending.everything = true,
            EventKind::Dropped => drop(folders.remove(&wd)),
            EventKind::Gone => match folders.get(&wd) {
                Some(WatchedFolder::Files(folder)) if folder.as_os_str().is_empty() => pending.gone = true,
                Some(WatchedFolder::Repository | WatchedFolder::Rules) => pending.everything = true,
                Some(WatchedFolder::Files(_)) | None => {}
            },
            EventKind::Content | EventKind::List { .. } => match folders.get(&wd) {
                Some(WatchedFolder::Files(folder)) => pending.add(folder, name, kind),
                Some(WatchedFolder::Repository) => {
                    pending.repository |= is_repository_state(name);
                    pending.folders_changed |= kind == EventKind::List { is_folder: true };
                }
                Some(WatchedFolder::Rules) => pending.everything = true,
                None => {}
            },
        });
        if let Err(error) = read {
            return self.fail(error.into());
        }
        if pending.gone {
            return self.fail(WatchError::FolderGone);
        }
        self.apply(pending, guard, root);
    }

    fn apply(&mut self, pending: Pending, guard: &FileGuard, root: &Path) {
        let Pending { everything, repository, folders_changed, content, listed, .. } = pending;
        let rules = content.iter().chain(&listed).any(|path| is_rule_file(path));
        let mut list_again = everything || folders_changed || rules;
        if list_again {
            self.unlisted.clear();
        }
        if everything {
            self.log.record_everything();
        }
        if repository {
            self.log.record_repository();
        }
        for path in content.iter().chain(&listed) {
            let is_listed = self.tree.has_file(path);
            self.log.record_file(path, is_listed);
            if !listed.contains(path) || self.unlisted.contains(path) {
                continue;
            }
            let kind = root.join(path).symlink_metadata().map(|found| found.file_type());
            let is_there = kind.is_ok_and(|kind| kind.is_file() || kind.is_symlink());
            list_again |= is_there != is_listed;
        }
        if !list_again {
            return;
        }
        let before = self.tree.clone();
        if let Err(error) = self.list(guard, root) {
            return self.fail(error);
        }
        if *before != *self.tree {
            self.log.record_list();
        }
        let unlisted = listed.into_iter().filter(|path| !self.tree.has_file(path));
        self.unlisted.extend(unlisted);
        if self.unlisted.len() > MAX_UNLISTED {
            self.unlisted.clear();
        }
    }

    /// Gives the watches back. From now on everything may have changed at any time.
    fn fail(&mut self, error: WatchError) {
        tracing::info!(%error, "watching ended");
        self.events = None;
        self.folders.clear();
        self.paths.clear();
        self.log.record_everything();
        self.failure = Some(error);
    }

    /// Lists the files, and watches every folder on the way. A folder is listed after it is watched,
    /// so that nothing goes unnoticed in between.
    fn list(&mut self, guard: &FileGuard, root: &Path) -> Result<(), WatchError> {
        let Some(events) = &mut self.events else { return Ok(()) };
        for _ in 0..LISTING_ATTEMPTS {
            let mut folders = BTreeMap::new();
            let mut failure = None;
            let tree = list_files_and_folders(guard, root, TREE_LIMIT, &mut |folder| {
                let relative = folder.strip_prefix(root).unwrap_or(folder).to_owned();
                let opened = guard.locate(folder).and_then(|(held, path)| held.open_real_subfolder(&path));
                // A folder that vanished or cannot be read has nothing to watch.
                let Ok(opened) = opened else { return };
                match events.watch(&opened) {
                    Ok(wd) => drop(folders.insert(wd, WatchedFolder::Files(relative))),
                    Err(error) => failure = Some(error),
                }
            });
            for (folder, is_rules) in watched_folders(root) {
                let Ok(opened) = OpenFolder::open(&folder) else { continue };
                let watched = if is_rules { WatchedFolder::Rules } else { WatchedFolder::Repository };
                match events.watch(opened.file()) {
                    Ok(wd) => drop(folders.insert(wd, watched)),
                    Err(error) => failure = Some(error),
                }
            }
            if let Some(error) = failure {
                return Err(error.into());
            }
            if tree.truncated || folders.len() > MAX_FOLDERS {
                return Err(WatchError::TooLarge);
            }
            let is_new = |wd: &i32| !self.folders.contains_key(wd);
            let has_new = folders.keys().any(is_new);
            for (wd, _) in self.folders.iter().filter(|(wd, _)| !folders.contains_key(wd)) {
                events.unwatch(*wd);
            }
            (self.folders, self.tree) = (folders, Arc::new(tree));
            self.paths = self.folders.values().filter_map(WatchedFolder::files_path).collect();
            if !has_new {
                return Ok(());
            }
        }
        // Folders appear faster than they are listed; their events come with the next question.
        self.log.record_everything();
        Ok(())
    }
}

/// What the events of one question say.
#[derive(Default)]
struct Pending {
    everything: bool,
    gone: bool,
    repository: bool,
    folders_changed: bool,
    /// Files that were written to.
    content: BTreeSet<String>,
    /// Names that appeared or disappeared.
    listed: BTreeSet<String>,
}

impl Pending {
    fn add(&mut self, folder: &Path, name: &[u8], kind: EventKind) {
        let name = String::from_utf8_lossy(name);
        // A repository that is created or removed: other rules hold, and there is another status.
        if name == ".git" {
            self.everything = true;
            return;
        }
        let path = with_forward_slashes(&folder.join(&*name));
        match kind {
            EventKind::List { is_folder: true } => self.folders_changed = true,
            EventKind::List { is_folder: false } => drop(self.listed.insert(path)),
            _ => drop(self.content.insert(path)),
        }
    }
}

/// Whether a file of the repository tells what `git status` tells. Locks come and go with each command.
fn is_repository_state(name: &[u8]) -> bool {
    !name.ends_with(b".lock") && !matches!(name, b"COMMIT_EDITMSG" | b"FETCH_HEAD" | b"gc.log" | b"gc.pid")
}

fn is_rule_file(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some(".gitignore" | ".ignore"))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

//! [`WatchState`]: the watched folders, the list of their files, and what events mean for both.
//!
//! An event names a file or a folder. Each name is looked at again, so that the work is in proportion
//! to what changed. All is listed anew only when rules of what is ignored changed, or events were lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_files::{FileGuard, OpenFolder};

use super::change_log::{ChangeLog, Changes, WatchPosition};
use super::folder_events::FolderEvents;
use super::tree_edit::TreeEdit;
use super::{EventKind, WatchError};
use crate::file_tree::{FileTree, ListedEntry, TREE_LIMIT, list_entry, list_visiting};
use crate::git::watched_folders;
use crate::list_bounds::ListBounds;
use crate::path::with_forward_slashes;
use crate::walk::WalkRules;

/// The most folders that are watched: a quarter of what systems usually let a user watch, and some
/// 60 MB of the kernel's memory.
const MAX_FOLDERS: usize = 60_000;

#[derive(Debug)]
pub(super) struct WatchState {
    /// `None` after a failure: its watches are given back.
    events: Option<FolderEvents>,
    folders: WatchedFolders,
    tree: Arc<FileTree>,
    log: ChangeLog,
    failure: Option<WatchError>,
}

#[derive(Debug, Default)]
struct WatchedFolders {
    by_number: BTreeMap<i32, WatchedFolder>,
    /// The folders with files, relative to the root.
    by_path: BTreeMap<PathBuf, i32>,
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

impl WatchedFolders {
    fn add_files(&mut self, number: i32, path: PathBuf) {
        self.by_path.insert(path.clone(), number);
        self.by_number.insert(number, WatchedFolder::Files(path));
    }

    /// The system no longer watches it.
    fn drop_number(&mut self, number: i32) {
        if let Some(WatchedFolder::Files(path)) = self.by_number.remove(&number)
            && self.by_path.get(&path) == Some(&number)
        {
            self.by_path.remove(&path);
        }
    }

    /// Forgets a folder and those below it. Returns the numbers that are no longer needed.
    fn forget(&mut self, folder: &Path) -> Vec<i32> {
        // Paths are ordered by their parts: what is below a folder comes right after it.
        let below = self.by_path.range(folder.to_owned()..);
        let below: Vec<PathBuf> =
            below.map(|(path, _)| path).take_while(|path| path.starts_with(folder)).cloned().collect();
        let mut numbers = Vec::new();
        for path in below {
            let Some(number) = self.by_path.remove(&path) else { continue };
            if self.by_number.get(&number) == Some(&WatchedFolder::Files(path)) {
                self.by_number.remove(&number);
                numbers.push(number);
            }
        }
        numbers
    }
}

impl WatchState {
    pub fn start(guard: &FileGuard, root: &Path) -> Result<Self, WatchError> {
        let mut state = WatchState {
            events: Some(FolderEvents::new(root)?),
            folders: WatchedFolders::default(),
            tree: Arc::default(),
            log: ChangeLog::default(),
            failure: None,
        };
        state.list_all(guard, root)?;
        Ok(state)
    }

    pub fn changes_since(&self, position: &mut WatchPosition) -> Changes {
        let mut changes = self.log.since(position);
        changes.everything |= self.failure.is_some();
        changes
    }

    /// The list of files; `None` after a failure.
    pub fn tree(&self) -> Option<Arc<FileTree>> {
        self.failure.is_none().then(|| self.tree.clone())
    }

    /// Whether the files of a folder are watched. Relative to the root.
    pub fn is_watched(&self, folder: &Path) -> bool {
        self.failure.is_none() && self.folders.by_path.contains_key(folder)
    }

    pub fn failure(&self) -> Option<&WatchError> {
        self.failure.as_ref()
    }

    pub fn events(&self) -> Option<&FolderEvents> {
        self.events.as_ref()
    }

    /// Takes what happened out of the queue.
    pub fn update(&mut self, guard: &FileGuard, root: &Path) {
        let Some(events) = &mut self.events else { return };
        let mut pending = Pending::default();
        let folders = &mut self.folders;
        let read = events.read(|number, kind, name| match kind {
            EventKind::Overflow => pending.everything = true,
            EventKind::Dropped => folders.drop_number(number),
            EventKind::Gone => match folders.by_number.get(&number) {
                Some(WatchedFolder::Files(folder)) if folder.as_os_str().is_empty() => pending.gone = true,
                Some(WatchedFolder::Repository | WatchedFolder::Rules) => pending.everything = true,
                Some(WatchedFolder::Files(_)) | None => {}
            },
            EventKind::Content | EventKind::List { .. } => match folders.by_number.get(&number) {
                Some(WatchedFolder::Files(folder)) => pending.add(folder, name, kind),
                Some(WatchedFolder::Repository) => {
                    pending.repository |= is_repository_state(name);
                    pending.repository_folders |= kind == EventKind::List { is_folder: true };
                }
                Some(WatchedFolder::Rules) => pending.everything = true,
                None => {}
            },
        });
        let applied = match read {
            Err(error) => Err(error.into()),
            Ok(()) if pending.gone => Err(WatchError::FolderGone),
            Ok(()) => self.apply(&pending, guard, root),
        };
        if let Err(error) = applied {
            self.fail(error);
        }
    }

    fn apply(&mut self, pending: &Pending, guard: &FileGuard, root: &Path) -> Result<(), WatchError> {
        if pending.repository {
            self.log.record_repository();
        }
        for path in &pending.content {
            self.log.record_file(path, self.tree.has_file(path));
        }
        if pending.everything {
            self.log.record_everything();
        }
        if pending.everything || pending.rules || pending.odd_names {
            let before = self.list_all(guard, root)?;
            self.record_difference(&before);
            for (folder, names) in &pending.listed {
                for name in names.keys() {
                    let path = with_forward_slashes(&folder.join(name));
                    self.log.record_file(&path, self.tree.has_file(&path));
                }
            }
            return Ok(());
        }
        if pending.repository_folders {
            self.watch_repository(root)?;
        }
        if pending.listed.is_empty() {
            return Ok(());
        }
        self.look_again(&pending.listed, guard, root)
    }

    /// Looks at names that appeared or disappeared.
    fn look_again(
        &mut self,
        listed: &BTreeMap<PathBuf, ListedNames>,
        guard: &FileGuard,
        root: &Path,
    ) -> Result<(), WatchError> {
        let Some(events) = &mut self.events else { return Ok(()) };
        let mut edit = TreeEdit::new(Arc::unwrap_or_clone(std::mem::take(&mut self.tree)));
        // What was a folder may be another one now: all below it is forgotten first, so that a folder
        // that was moved is not watched by its old path.
        for (folder, names) in listed {
            for (name, _) in names.iter().filter(|(_, is_folder)| **is_folder) {
                let path = folder.join(name);
                self.folders.forget(&path).into_iter().for_each(|number| events.unwatch(number));
                edit.remove_folder(&with_forward_slashes(&path));
            }
        }
        let mut rules = WalkRules::new(guard, root).map_err(|_| WatchError::FolderGone)?;
        let mut failure = None;
        for (folder, names) in listed {
            // One that is gone by now, or was walked as a part of another one, has nothing left to look at.
            let place = root.join(folder);
            let opened = guard.locate(&place).and_then(|(held, path)| held.open_real_subfolder(&path));
            let opened = opened.ok().filter(|_| self.folders.by_path.contains_key(folder));
            for name in names.keys() {
                let path = folder.join(name);
                let kind = opened.as_ref().and_then(|opened| rules.find(&place, opened, name));
                edit.remove(&with_forward_slashes(&path));
                match kind.map(|kind| list_entry(root, &root.join(&path), kind)) {
                    None => {}
                    Some(ListedEntry::File(path)) => edit.add(path),
                    Some(ListedEntry::Skipped(skipped)) => edit.skip(skipped),
                    // One that is watched is as it was.
                    Some(ListedEntry::Folder) if self.folders.by_path.contains_key(&path) => {}
                    Some(ListedEntry::Folder) => {
                        let folders = &mut self.folders;
                        let mut visit = |place: &Path, opened: &std::fs::File| {
                            let path = place.strip_prefix(root).unwrap_or(place).to_owned();
                            match events.watch(opened) {
                                Ok(number) => folders.add_files(number, path),
                                Err(error) => failure = Some(error),
                            }
                        };
                        match rules.walk(&root.join(&path), Some(&mut visit)) {
                            Ok(walk) => edit.add_walk(root, walk),
                            Err(reason) => edit.skip_folder(&with_forward_slashes(&path), reason),
                        }
                    }
                }
            }
        }
        if let Some(error) = failure {
            return Err(error.into());
        }
        let (tree, outcome) = edit.finish();
        self.tree = Arc::new(tree);
        for (path, was_listed) in &outcome.touched {
            self.log.record_file(path, *was_listed || self.tree.has_file(path));
        }
        if outcome.is_other_list {
            self.log.record_list();
        }
        self.check_size(root)
    }

    fn check_size(&self, root: &Path) -> Result<(), WatchError> {
        let FileTree { files, skipped, truncated } = &*self.tree;
        let is_large = *truncated || files.len() + skipped.len() > ListBounds::new(root, TREE_LIMIT).files;
        if is_large || self.folders.by_number.len() > MAX_FOLDERS {
            return Err(WatchError::TooLarge);
        }
        Ok(())
    }

    /// Notes which files are listed now and were not before, or the other way round.
    fn record_difference(&mut self, before: &FileTree) {
        if *before == *self.tree {
            return;
        }
        self.log.record_list();
        let (old, new): (BTreeSet<&String>, BTreeSet<&String>) =
            (before.files.iter().collect(), self.tree.files.iter().collect());
        for path in old.symmetric_difference(&new) {
            self.log.record_file(path, true);
        }
    }

    /// Gives the watches back. From now on everything may have changed at any time.
    fn fail(&mut self, error: WatchError) {
        tracing::info!(%error, "watching ended");
        self.events = None;
        self.folders = WatchedFolders::default();
        self.tree = Arc::default();
        self.log.record_everything();
        self.failure = Some(error);
    }

    /// Lists the files, and watches every folder before its names are read, so that nothing goes
    /// unnoticed in between. Returns the list before.
    fn list_all(&mut self, guard: &FileGuard, root: &Path) -> Result<Arc<FileTree>, WatchError> {
        let Some(events) = &mut self.events else { return Ok(self.tree.clone()) };
        let mut folders = WatchedFolders::default();
        let mut failure = None;
        let mut visit = |place: &Path, opened: &std::fs::File| match events.watch(opened) {
            Ok(number) => folders.add_files(number, place.strip_prefix(root).unwrap_or(place).to_owned()),
            Err(error) => failure = Some(error),
        };
        let tree = list_visiting(guard, root, TREE_LIMIT, Some(&mut visit));
        if let Some(error) = failure {
            return Err(error.into());
        }
        let former = std::mem::replace(&mut self.folders, folders);
        self.watch_repository(root)?;
        let (folders, events) = (&self.folders.by_number, &mut self.events);
        for number in former.by_number.keys().filter(|number| !folders.contains_key(number)) {
            events.iter_mut().for_each(|events| events.unwatch(*number));
        }
        let before = std::mem::replace(&mut self.tree, Arc::new(tree));
        self.check_size(root)?;
        Ok(before)
    }

    /// Watches the folders of the repository that are there now.
    fn watch_repository(&mut self, root: &Path) -> Result<(), WatchError> {
        let Some(events) = &mut self.events else { return Ok(()) };
        for (folder, is_rules) in watched_folders(root) {
            let Ok(opened) = OpenFolder::open(&folder) else { continue };
            let watched = if is_rules { WatchedFolder::Rules } else { WatchedFolder::Repository };
            self.folders.by_number.insert(events.watch(opened.file())?, watched);
        }
        Ok(())
    }
}

/// Names in a folder, and whether one of them was or is a folder.
type ListedNames = BTreeMap<OsString, bool>;

/// What the events of one question say.
#[derive(Default)]
struct Pending {
    everything: bool,
    gone: bool,
    /// Rules of what is ignored changed.
    rules: bool,
    /// Names that are not text: they are shown alike, though they are different.
    odd_names: bool,
    repository: bool,
    repository_folders: bool,
    /// Files that were written to.
    content: BTreeSet<String>,
    /// Names that appeared or disappeared, by folder.
    listed: BTreeMap<PathBuf, ListedNames>,
}

impl Pending {
    fn add(&mut self, folder: &Path, name: &[u8], kind: EventKind) {
        // A repository that is created or removed: other rules hold, and there is another status.
        if name == b".git" {
            self.everything = true;
            return;
        }
        self.rules |= matches!(name, b".gitignore" | b".ignore");
        let name = OsStr::from_bytes(name);
        match kind {
            EventKind::List { is_folder } => {
                self.odd_names |= name.to_str().is_none();
                if !self.listed.contains_key(folder) {
                    self.listed.insert(folder.to_owned(), ListedNames::new());
                }
                let names = self.listed.get_mut(folder);
                names.into_iter().for_each(|names| *names.entry(name.to_owned()).or_default() |= is_folder);
            }
            _ => drop(self.content.insert(with_forward_slashes(&folder.join(name)))),
        }
    }
}

/// Whether a file of the repository tells what `git status` tells. Locks come and go with each command.
fn is_repository_state(name: &[u8]) -> bool {
    !name.ends_with(b".lock") && !matches!(name, b"COMMIT_EDITMSG" | b"FETCH_HEAD" | b"gc.log" | b"gc.pid")
}

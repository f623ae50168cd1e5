//! [`LiveIndex`]: the symbol index of a folder in memory, shared by everything that asks it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hardpan_files::FileGuard;
use hardpan_symbols::SymbolIndex;

use super::index_cache::{self, IndexCache};
use super::{refresh, refresh_changed};
use crate::file_tree::{TREE_LIMIT, list_files};
use crate::watch::{WatchPosition, WorkspaceWatch};

/// The symbol index of a folder. It is loaded from its cache when it is first asked, and brought up
/// to date with the files each time: with those that a watch reports, else with all.
#[derive(Debug)]
pub struct LiveIndex {
    guard: FileGuard,
    root: PathBuf,
    /// Where the index is stored between runs.
    path: Option<PathBuf>,
    slot: Mutex<Slot>,
    watch: OnceLock<Arc<WorkspaceWatch>>,
    is_free: Condvar,
}

/// The index between two uses. Whoever uses it takes it out.
#[derive(Debug, Default)]
struct Slot {
    cache: Option<IndexCache>,
    in_use: bool,
    /// Up to where the index knows the changes of the watch.
    position: WatchPosition,
}

/// The index is still being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the symbol index is still being built")]
pub struct IndexNotReady;

impl LiveIndex {
    /// The index of the files below `root` that the guard lets through, cached in `cache_folder`.
    /// Nothing is read yet.
    pub fn new(guard: FileGuard, root: &Path, cache_folder: Option<&Path>) -> Arc<Self> {
        Arc::new(LiveIndex {
            guard,
            root: root.to_owned(),
            path: cache_folder.map(|folder| index_cache::cache_path(folder, root)),
            slot: Mutex::default(),
            watch: OnceLock::new(),
            is_free: Condvar::new(),
        })
    }

    /// From now on only files are looked at that this watch of the same folder reports.
    pub fn set_watch(&self, watch: Arc<WorkspaceWatch>) {
        // The first one stays: another would watch the same.
        let _ = self.watch.set(watch);
    }

    /// Brings the index up to date and passes it to `use_index`. Waits as long as it takes; while
    /// files are parsed, `progress` is called with their number so far and in all.
    pub fn with_current<R>(
        &self,
        progress: &mut dyn FnMut(usize, usize),
        use_index: impl FnOnce(&SymbolIndex) -> R,
    ) -> R {
        let mut slot = self.lock();
        while slot.in_use {
            slot = self.is_free.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
        self.refresh_and_use(slot, progress, use_index)
    }

    /// Like [`with_current`](Self::with_current), but gives up after `limit`. The index is built
    /// further in the meantime.
    pub fn with_current_within<R>(
        self: &Arc<Self>,
        limit: Duration,
        use_index: impl FnOnce(&SymbolIndex) -> R,
    ) -> Result<R, IndexNotReady> {
        let slot = self.lock();
        if slot.cache.is_none() && !slot.in_use {
            let index = self.clone();
            std::thread::spawn(move || index.with_current(&mut |_, _| (), |_| ()));
        }
        let is_missing = |slot: &mut Slot| slot.in_use || slot.cache.is_none();
        let waiting = self.is_free.wait_timeout_while(slot, limit, is_missing);
        let (slot, waited) = waiting.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(IndexNotReady);
        }
        Ok(self.refresh_and_use(slot, &mut |_, _| (), use_index))
    }

    fn refresh_and_use<R>(
        &self,
        mut slot: MutexGuard<'_, Slot>,
        progress: &mut dyn FnMut(usize, usize),
        use_index: impl FnOnce(&SymbolIndex) -> R,
    ) -> R {
        slot.in_use = true;
        let known = slot.cache.take();
        let mut position = slot.position;
        drop(slot);
        let mut loan = Loan { index: self, cache: None, position: WatchPosition::default() };
        let watch = self.watch.get();
        let changes = watch.map(|watch| watch.changes_since(&mut position));
        let listed = || Arc::new(list_files(&self.guard, &self.root, TREE_LIMIT));
        let tree = watch.map_or_else(listed, |watch| watch.file_list());
        let mut progress = |done| progress(done, tree.files.len());
        let (guard, root, path) = (&self.guard, &self.root, self.path.as_deref());
        let cache = match (known, changes) {
            (Some(known), Some(changes)) if !changes.everything => {
                refresh_changed(guard, root, &tree, &changes, known, path, &mut progress)
            }
            (known, _) => refresh(guard, root, &tree.files, known, path, &mut progress).0,
        };
        loan.position = position;
        use_index(&loan.cache.insert(cache).index)
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        // The slot is changed by whole assignments only, so it is consistent after a panic.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts the index back, also after a panic; then it is loaded again.
struct Loan<'a> {
    index: &'a LiveIndex,
    cache: Option<IndexCache>,
    position: WatchPosition,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let (cache, position) = (self.cache.take(), self.position);
        *self.index.lock() = Slot { cache, in_use: false, position };
        self.index.is_free.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use super::*;

    fn names(index: &SymbolIndex) -> Vec<String> {
        let report = index.report(|_| true);
        report.files.into_iter().flat_map(|file| file.symbols).map(|symbol| symbol.name).collect()
    }

    #[test]
    fn each_use_sees_the_files_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (root, cache) = (folder.path().join("project"), folder.path().join("cache"));
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a.py"), "def one(): ...").unwrap();
        let index = LiveIndex::new(FileGuard::for_folder(&root), &root, Some(&cache));
        assert_eq!(index.with_current(&mut |_, _| (), names), ["one"]);
        fs::write(root.join("a.py"), "def two(): ...").unwrap();
        fs::write(root.join("b.py"), "def three(): ...").unwrap();
        assert_eq!(index.with_current(&mut |_, _| (), names), ["two", "three"]);
        fs::remove_file(root.join("a.py")).unwrap();
        assert_eq!(index.with_current_within(Duration::from_secs(60), names), Ok(vec!["three".into()]));
        assert_eq!(
            LiveIndex::new(FileGuard::for_folder(&root), &root, Some(&cache))
                .with_current(&mut |_, _| (), names),
            ["three"]
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_watched_index_sees_the_same_as_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::write(root.join("a.py"), "def one(): ...").unwrap();
        let guard = FileGuard::for_folder(&root);
        let index = LiveIndex::new(guard.clone(), &root, None);
        assert_eq!(index.with_current(&mut |_, _| (), names), ["one"]);
        index.set_watch(Arc::new(WorkspaceWatch::start(guard.clone(), &root).unwrap()));
        let check = |expected: &[&str]| {
            assert_eq!(index.with_current(&mut |_, _| (), names), expected);
            let fresh = LiveIndex::new(guard.clone(), &root, None);
            assert_eq!(fresh.with_current(&mut |_, _| (), names), expected);
        };
        check(&["one"]);
        fs::write(root.join("a.py"), "def two(): ...").unwrap();
        check(&["two"]);
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/b.py"), "def three(): ...").unwrap();
        check(&["two", "three"]);
        fs::rename(root.join("sub"), root.join("other")).unwrap();
        fs::remove_file(root.join("a.py")).unwrap();
        check(&["three"]);
        fs::write(root.join(".gitignore"), "other/").unwrap();
        check(&[]);
        let many =
            |n: usize| fs::write(root.join(format!("m{n:03}.py")), format!("def m{n:03}(): ...")).unwrap();
        (0..100).for_each(many);
        check(
            &(0..100)
                .map(|n| format!("m{n:03}"))
                .collect::<Vec<_>>()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
        );
    }

    #[test]
    fn waiting_for_an_index_that_is_in_use_has_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.py"), "def one(): ...").unwrap();
        let index = LiveIndex::new(FileGuard::for_folder(folder.path()), folder.path(), None);
        let (begun, has_begun) = mpsc::channel();
        let (finish, may_finish) = mpsc::channel::<()>();
        let other = index.clone();
        let user = std::thread::spawn(move || {
            other.with_current(&mut |_, _| (), |_| {
                begun.send(()).unwrap();
                may_finish.recv().unwrap();
            });
        });
        has_begun.recv().unwrap();
        assert_eq!(index.with_current_within(Duration::from_millis(20), names), Err(IndexNotReady));
        finish.send(()).unwrap();
        user.join().unwrap();
        assert_eq!(index.with_current_within(Duration::from_secs(60), names), Ok(vec!["one".into()]));
    }

    #[test]
    fn an_index_survives_a_user_that_panics() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.py"), "def one(): ...").unwrap();
        let index = LiveIndex::new(FileGuard::for_folder(folder.path()), folder.path(), None);
        let other = index.clone();
        let panicking =
            std::thread::spawn(move || other.with_current(&mut |_, _| (), |_| panic!("on purpose")));
        assert!(panicking.join().is_err());
        assert_eq!(index.with_current(&mut |_, _| (), names), ["one"]);
    }
}

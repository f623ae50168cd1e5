//! [`LiveIndex`]: the symbol index of a folder in memory, shared by everything that asks it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hardpan_files::FileGuard;
use hardpan_symbols::SymbolIndex;

use super::index_cache::{self, IndexCache};
use super::refresh;
use crate::file_tree::{TREE_LIMIT, list_files};

/// The symbol index of a folder. It is loaded from its cache when it is first asked, and brought up
/// to date with the files each time.
#[derive(Debug)]
pub struct LiveIndex {
    guard: FileGuard,
    root: PathBuf,
    /// Where the index is stored between runs.
    path: Option<PathBuf>,
    slot: Mutex<Slot>,
    is_free: Condvar,
}

/// The index between two uses. Whoever uses it takes it out.
#[derive(Debug, Default)]
struct Slot {
    cache: Option<IndexCache>,
    in_use: bool,
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
            is_free: Condvar::new(),
        })
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
        drop(slot);
        let mut loan = Loan { index: self, cache: None };
        let files = list_files(&self.guard, &self.root, TREE_LIMIT).files;
        let mut progress = |done| progress(done, files.len());
        let (cache, _) = refresh(&self.guard, &self.root, &files, known, self.path.as_deref(), &mut progress);
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
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        *self.index.lock() = Slot { cache: self.cache.take(), in_use: false };
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

//! [`LiveIndex`]: the symbol index of a folder in memory, shared by everything that asks it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hardpan_files::FileGuard;
use hardpan_symbols::SymbolIndex;

use super::IndexJob;
use super::index_cache::{self, IndexCache};
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
    progress: BuildProgress,
    /// Set when nobody needs the index any more.
    is_stopped: AtomicBool,
}

/// How far building the index has come.
#[derive(Debug, Default)]
struct BuildProgress {
    done: AtomicUsize,
    /// Files in all; [`UNKNOWN`] before they are listed.
    total: AtomicUsize,
    /// Whether only a part of the folder is listed.
    is_truncated: AtomicBool,
}

const UNKNOWN: usize = usize::MAX;

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
pub struct IndexNotReady {
    /// How many files are indexed.
    pub done: usize,
    /// How many there are, if they are listed.
    pub total: Option<usize>,
}

/// How long someone waits for an index that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexWait {
    /// The longest wait.
    pub limit: Duration,
    /// An index of up to this many files is worth any wait, since it does not take long.
    pub small: usize,
}

impl IndexWait {
    /// Waits for `limit` at most.
    pub fn at_most(limit: Duration) -> Self {
        IndexWait { limit, small: 0 }
    }
}

/// How often progress is reported to someone who waits.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

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
            progress: BuildProgress { total: AtomicUsize::new(UNKNOWN), ..BuildProgress::default() },
            is_stopped: AtomicBool::new(false),
        })
    }

    /// Ends the building of the index: what is indexed by now is stored, and the rest is left for the
    /// next run. Waits for that, at most for `limit`.
    pub fn stop(&self, limit: Duration) {
        self.is_stopped.store(true, Ordering::Relaxed);
        drop(self.is_free.wait_timeout_while(self.lock(), limit, |slot| slot.in_use));
    }

    /// Builds the index again from the next use on, after a [`stop`](Self::stop).
    pub fn resume(&self) {
        self.is_stopped.store(false, Ordering::Relaxed);
    }

    /// Whether the folder has more files than are listed and indexed.
    pub fn is_truncated(&self) -> bool {
        self.progress.is_truncated.load(Ordering::Relaxed)
    }

    /// From now on only files are looked at that this watch of the same folder reports.
    pub fn set_watch(&self, watch: Arc<WorkspaceWatch>) {
        // The first one stays: another would watch the same.
        let _ = self.watch.set(watch);
    }

    /// The watch of the folder, if there is one.
    pub fn watch(&self) -> Option<&Arc<WorkspaceWatch>> {
        self.watch.get()
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

    /// Like [`with_current`](Self::with_current), but gives up when the wait is over. The index is
    /// built further in the meantime.
    #[allow(clippy::disallowed_methods, reason = "a wait has an end")]
    pub fn with_current_within<R>(
        self: &Arc<Self>,
        wait: IndexWait,
        progress: &mut dyn FnMut(usize, usize),
        use_index: impl FnOnce(&SymbolIndex) -> R,
    ) -> Result<R, IndexNotReady> {
        let mut slot = self.lock();
        if slot.cache.is_none() && !slot.in_use {
            let index = self.clone();
            // Until the thread has taken the slot, it counts as in use: nobody else builds, too.
            let build = move || {
                let slot = index.lock();
                index.refresh_and_use(slot, &mut |_, _| (), |_| ());
            };
            slot.in_use = std::thread::Builder::new().name("index".into()).spawn(build).is_ok();
        }
        #[expect(clippy::disallowed_methods, reason = "a wait is measured, nothing that a request holds")]
        let begun = Instant::now();
        while slot.in_use || slot.cache.is_none() {
            let elapsed = begun.elapsed();
            let (done, total) = self.build_progress();
            let is_small = total.is_some_and(|total| total <= wait.small);
            if elapsed >= wait.limit && !is_small {
                return Err(IndexNotReady { done, total });
            }
            let step = if is_small { PROGRESS_INTERVAL } else { PROGRESS_INTERVAL.min(wait.limit - elapsed) };
            slot = self.is_free.wait_timeout(slot, step).unwrap_or_else(PoisonError::into_inner).0;
            if let (done, Some(total)) = self.build_progress() {
                progress(done, total);
            }
        }
        Ok(self.refresh_and_use(slot, progress, use_index))
    }

    fn build_progress(&self) -> (usize, Option<usize>) {
        let total = self.progress.total.load(Ordering::Relaxed);
        (self.progress.done.load(Ordering::Relaxed), (total != UNKNOWN).then_some(total))
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
        let total = tree.files.len();
        self.progress.is_truncated.store(tree.truncated, Ordering::Relaxed);
        self.progress.done.store(0, Ordering::Relaxed);
        self.progress.total.store(total, Ordering::Relaxed);
        let mut progress = |done| {
            self.progress.done.store(done, Ordering::Relaxed);
            progress(done, total);
        };
        let (guard, root, path) = (&self.guard, &*self.root, self.path.as_deref());
        let job = IndexJob { guard, root, path, stop: &self.is_stopped };
        let cache = match (known, changes) {
            (Some(known), Some(changes)) if !changes.everything => {
                job.refresh_changed(&tree, &changes, known, &mut progress)
            }
            // Not stored again while a watch keeps it: that takes longer than what has changed.
            (Some(known), Some(_)) => {
                IndexJob { path: None, ..job }.refresh(&tree.files, Some(known), &mut progress).0
            }
            (known, _) => job.refresh(&tree.files, known, &mut progress).0,
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
        assert_eq!(
            index.with_current_within(IndexWait::at_most(Duration::from_secs(60)), &mut |_, _| (), names),
            Ok(vec!["three".into()])
        );
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
        let briefly = IndexWait::at_most(Duration::from_millis(20));
        let refused = index.with_current_within(briefly, &mut |_, _| (), names);
        assert!(refused.is_err(), "{refused:?}");
        finish.send(()).unwrap();
        user.join().unwrap();
        assert_eq!(
            index.with_current_within(IndexWait::at_most(Duration::from_secs(60)), &mut |_, _| (), names),
            Ok(vec!["one".into()])
        );
    }

    #[test]
    fn what_was_indexed_before_a_stop_is_kept_and_the_rest_is_indexed_later() {
        let folder = tempfile::tempdir().unwrap();
        let (root, cache) = (folder.path().join("project"), folder.path().join("cache"));
        fs::create_dir(&root).unwrap();
        let files: Vec<String> = (0..2000).map(|n| format!("f{n:04}.py")).collect();
        let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for name in &files {
            let path = root.join(name);
            fs::write(&path, format!("def {}(): ...", name.trim_end_matches(".py"))).unwrap();
            // What changed a moment ago is always read again.
            fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        }
        let index = LiveIndex::new(FileGuard::for_folder(&root), &root, Some(&cache));
        let mut stop = |done: usize, _: usize| {
            if done > 0 {
                index.stop(Duration::ZERO);
            }
        };
        let kept = index.with_current(&mut stop, names).len();
        assert!(0 < kept && kept < files.len(), "{kept}");
        let guard = FileGuard::for_folder(&root);
        let next = crate::index_codebase(&guard, &root, &files, Some(&cache), &mut |_| ());
        assert_eq!((names(&next.index).len(), next.parsed_files), (files.len(), files.len() - kept));
    }

    #[test]
    fn a_small_index_is_waited_for_and_a_large_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.py"), "def one(): ...").unwrap();
        let index = LiveIndex::new(FileGuard::for_folder(folder.path()), folder.path(), None);
        index.with_current(&mut |_, _| (), |_| ());
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
        let wait = |small: usize| IndexWait { limit: Duration::from_millis(1), small };
        let refused = index.with_current_within(wait(0), &mut |_, _| (), names);
        assert_eq!(refused.map_err(|not_ready| not_ready.total), Err(Some(1)));
        // The one who waits is asked for progress, and lets the other one end.
        let mut asked = |_, _| _ = finish.send(());
        assert_eq!(index.with_current_within(wait(1), &mut asked, names), Ok(vec!["one".into()]));
        user.join().unwrap();
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

//! [`index_codebase`]: the symbol index of a folder, cached on disk between runs; [`LiveIndex`] keeps
//! it in memory during one.

mod index_cache; // the file it is kept in
mod live; // LiveIndex: the index in memory, shared by all that ask it

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hardpan_files::FileGuard;
use hardpan_symbols::{
    ContentHash, FileSource, IndexUpdate, Outline, SIZE_LIMIT, SkipReason, SymbolIndex, content_hash,
};

use crate::file_tree::FileTree;
use crate::list_bounds::FolderKind;
use crate::watch::Changes;
use index_cache::{FileStamp, IndexCache};
pub use live::{IndexNotReady, IndexWait, LiveIndex};

/// Up to this many new, removed or changed files are worked into the cached index one by one, at
/// some milliseconds each; above that, rebuilding all links from the outlines is faster.
const INCREMENTAL_LIMIT: usize = 24;

/// The symbol index of a folder.
#[derive(Debug)]
pub struct Codebase {
    /// Definitions, imports and references of all files.
    pub index: SymbolIndex,
    /// How many files had to be parsed; the others came from the cache.
    pub parsed_files: usize,
}

/// Indexes `files`, which are paths below `root` with forward slashes. A file that has not changed
/// since an earlier run is taken from the cache in `cache_folder`; a missing, old or damaged cache
/// is ignored. `progress` is called with the number of files done.
pub fn index_codebase(
    guard: &FileGuard,
    root: &Path,
    files: &[String],
    cache_folder: Option<&Path>,
    progress: &mut dyn FnMut(usize),
) -> Codebase {
    let path = cache_folder.map(|folder| index_cache::cache_path(folder, root));
    let never = AtomicBool::new(false);
    let job = IndexJob { guard, root, path: path.as_deref(), stop: &never };
    let (cache, parsed_files) = job.refresh(files, None, progress);
    Codebase { index: cache.index, parsed_files }
}

/// The work of bringing the index of a folder up to date.
#[derive(Clone, Copy)]
struct IndexJob<'a> {
    guard: &'a FileGuard,
    root: &'a Path,
    /// Where the index is stored between runs.
    path: Option<&'a Path>,
    /// Set when nobody needs the index any more.
    stop: &'a AtomicBool,
}

impl IndexJob<'_> {
    /// Brings an index up to date with `files`: the one in `known`, else the one cached at `path`.
    /// Stores it there if anything changed, and returns it with the number of files that were parsed.
    /// Once `stop` is set, no more files are read; those that are missing then count as changed the next
    /// time.
    fn refresh(
        &self,
        files: &[String],
        known: Option<IndexCache>,
        progress: &mut dyn FnMut(usize),
    ) -> (IndexCache, usize) {
        let IndexJob { guard, root, path, stop } = *self;
        let span = tracing::debug_span!("index", root = %root.display(), files = files.len());
        let _entered = span.enter();
        // Stamps are taken before anything is read, so that a later write is noticed in the next run.
        let stamps = || files.iter().map(|name| (name.as_str(), read_stamp(root, name))).collect();
        let (cache, stamps): (IndexCache, BTreeMap<&str, Option<FileStamp>>) = std::thread::scope(|scope| {
            let read = || known.unwrap_or_else(|| path.map(IndexCache::read).unwrap_or_default());
            let cache = scope.spawn(read);
            let stamps = stamps();
            (cache.join().unwrap_or_default(), stamps)
        });
        let changed: Vec<&str> = stamps
            .iter()
            .filter(|(name, stamp)| !cache.is_current(name, **stamp))
            .map(|(name, _)| *name)
            .collect();
        let gone: Vec<String> =
            cache.index.paths().filter(|name| !stamps.contains_key(name)).map(str::to_owned).collect();
        if changed.is_empty() && gone.is_empty() {
            return (cache, 0);
        }
        let folder = CodebaseFiles::new(guard, root, &stamps);
        let (changes, removed) = (changed.len(), gone.len());
        let codebase = folder.update_index(cache.index, &changed, &gone, progress, stop);
        tracing::debug!(changes, removed, parsed = codebase.parsed_files, "index is up to date");
        let parsed = codebase.parsed_files;
        let unread = folder.unread.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stamp = |name: &str| stamps.get(name).copied().flatten().filter(|_| !unread.contains(name));
        (IndexCache::store(codebase.index, path, stamp), parsed)
    }

    /// Brings an index that is in memory up to date with what a watch reported. It is not stored: the
    /// next run parses these files again, if it does not meet more changes before.
    fn refresh_changed(
        &self,
        tree: &FileTree,
        changes: &Changes,
        known: IndexCache,
        progress: &mut dyn FnMut(usize),
    ) -> IndexCache {
        let IndexJob { guard, root, stop, .. } = *self;
        let changed: BTreeSet<&str> =
            changes.files.iter().map(String::as_str).filter(|name| tree.has_file(name)).collect();
        let is_known = |name: &str| known.index.hash(name).is_some();
        let gone: Vec<String> =
            changes.files.iter().filter(|name| !tree.has_file(name) && is_known(name)).cloned().collect();
        if changed.is_empty() && gone.is_empty() {
            return known;
        }
        let stamps: BTreeMap<&str, Option<FileStamp>> =
            changed.iter().map(|name| (*name, read_stamp(root, name))).collect();
        let changed: Vec<&str> = changed.into_iter().collect();
        let folder = CodebaseFiles::new(guard, root, &stamps);
        let update = |index| folder.update_index(index, &changed, &gone, progress, stop).index;
        known.update(update, &stamps, &gone)
    }
}

/// The files as they are on disk now.
struct CodebaseFiles<'a> {
    guard: &'a FileGuard,
    root: &'a Path,
    stamps: &'a BTreeMap<&'a str, Option<FileStamp>>,
    /// Files that were not read, because someone stopped.
    unread: Mutex<BTreeSet<String>>,
    /// Bytes that may still be read.
    room: AtomicU64,
}

impl<'a> CodebaseFiles<'a> {
    fn new(guard: &'a FileGuard, root: &'a Path, stamps: &'a BTreeMap<&'a str, Option<FileStamp>>) -> Self {
        let room = AtomicU64::new(FolderKind::of(root).index_bytes());
        CodebaseFiles { guard, root, stamps, unread: Mutex::default(), room }
    }

    /// Updates an index with the files that changed: a few one by one, many at once.
    fn update_index(
        &self,
        mut index: SymbolIndex,
        changed: &[&str],
        gone: &[String],
        progress: &mut dyn FnMut(usize),
        stop: &AtomicBool,
    ) -> Codebase {
        if changed.len() + gone.len() > INCREMENTAL_LIMIT {
            return self.update_many(index, changed, gone, progress, stop);
        }
        let mut parsed = 0;
        for name in gone {
            index.remove(name);
        }
        for name in changed {
            let source = self.read_source(name, Vec::new());
            let is_content = matches!(source, FileSource::Content(_));
            let change = index.update_from(name, source);
            parsed += usize::from(is_content && change == IndexUpdate::Changed);
        }
        Codebase { index, parsed_files: parsed }
    }

    /// Reads and parses on all cores.
    fn update_many(
        &self,
        mut index: SymbolIndex,
        changed: &[&str],
        gone: &[String],
        progress: &mut dyn FnMut(usize),
        stop: &AtomicBool,
    ) -> Codebase {
        let parsed = AtomicUsize::new(0);
        let known: BTreeMap<&str, ContentHash> =
            changed.iter().filter_map(|name| Some((*name, index.hash(name)?))).collect();
        let read = |name: &str, buffer: Vec<u8>| {
            let known = known.get(name);
            if stop.load(Ordering::Relaxed) {
                self.unread.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
                return known.is_none().then_some(FileSource::Unreadable);
            }
            let source = self.read_source(name, buffer);
            // Touched, but not changed: a checkout of another branch and back.
            if let FileSource::Content(content) = &source {
                if known == Some(&content_hash(content)) {
                    return None;
                }
                parsed.fetch_add(1, Ordering::Relaxed);
            }
            Some(source)
        };
        index.update_many(changed, gone, read, progress);
        Codebase { index, parsed_files: parsed.into_inner() }
    }

    /// Reads one file for the index.
    fn read_source(&self, name: &str, mut buffer: Vec<u8>) -> FileSource {
        match self.stamps.get(name).copied().flatten() {
            None => FileSource::Unreadable,
            Some(stamp) if stamp.size > SIZE_LIMIT as u64 || !self.take_room(stamp.size) => {
                FileSource::Cached(ContentHash::default(), Box::new(Outline::for_skipped(SkipReason::Large)))
            }
            Some(_) => {
                // The file may have been replaced since its stamp was taken.
                let Ok(file) = self.guard.open(&self.root.join(name)) else { return FileSource::Unreadable };
                let read = file.file.take(SIZE_LIMIT as u64 + 1).read_to_end(&mut buffer);
                read.map_or(FileSource::Unreadable, |_| FileSource::Content(buffer))
            }
        }
    }
}

impl CodebaseFiles<'_> {
    /// Takes `bytes` of what may be read. False if there is not so much left.
    fn take_room(&self, bytes: u64) -> bool {
        self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes)).is_ok()
    }
}

/// Stamp of a regular file; `None` for anything else. Links are not followed.
fn read_stamp(root: &Path, name: &str) -> Option<FileStamp> {
    let data = root.join(name).symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let modified = data.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(FileStamp { size: data.len(), modified_ns: u64::try_from(modified.as_nanos()).ok()? })
}

#[cfg(test)]
mod tests;

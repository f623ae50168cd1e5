//! The symbol index of a folder, kept on disk between runs.

mod cache; // the file it is kept in

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use hardpan_symbols::{ContentHash, Index, Outline, SIZE_LIMIT, Skip, Source, content_hash};

use cache::{Cache, Stamp};

/// The index of a folder, and how it came about.
#[derive(Debug)]
pub struct Codebase {
    /// What the code contains.
    pub index: Index,
    /// How many files had to be parsed; the others were known.
    pub parsed: usize,
}

/// Indexes `files`, paths below `root` with forward slashes. What `cache_folder` holds from an earlier run is used where
/// a file has not changed since; a cache that is missing, old or damaged is as good as none. `progress` is told how many
/// files are done.
pub fn codebase(
    root: &Path,
    files: &[String],
    cache_folder: Option<&Path>,
    progress: &mut dyn FnMut(usize),
) -> Codebase {
    let path = cache_folder.map(|folder| cache::path(folder, root));
    let cache = path.as_deref().map(Cache::read).unwrap_or_default();
    let parsed = AtomicUsize::new(0);
    let mut index = Index::default();
    let read = |name: &str| {
        let source = source(root, name, &cache);
        if matches!(source, Source::Content(_)) {
            parsed.fetch_add(1, Ordering::Relaxed);
        }
        source
    };
    index.fill(files, read, progress);
    let parsed = parsed.into_inner();
    let is_new = parsed > 0 || index.paths().len() != cache.len();
    if let Some(path) = path.filter(|_| is_new) {
        // That it cannot be kept costs time in the next run, and nothing else.
        let _ = cache::write(&path, &index, |name| stamp(root, name));
    }
    Codebase { index, parsed }
}

/// What is known about a file: its outline if nothing has changed, else its content.
fn source(root: &Path, name: &str, cache: &Cache) -> Source {
    let Some(stamp) = stamp(root, name) else { return Source::Unreadable };
    if stamp.size > SIZE_LIMIT as u64 {
        return Source::Known(ContentHash::default(), Box::new(Outline::skipped(Skip::Large)));
    }
    if let Some((hash, outline)) = cache.unchanged(name, stamp) {
        return Source::Known(hash, Box::new(outline));
    }
    let Ok(content) = fs::read(root.join(name)) else { return Source::Unreadable };
    // Touched, but not changed: a checkout of another branch and back.
    match cache.same_content(name, content_hash(&content)) {
        Some((hash, outline)) => Source::Known(hash, Box::new(outline)),
        None => Source::Content(content),
    }
}

/// Size and time of a regular file; links are not followed, and nothing else is opened.
fn stamp(root: &Path, name: &str) -> Option<Stamp> {
    let data = fs::symlink_metadata(root.join(name)).ok().filter(fs::Metadata::is_file)?;
    let modified = data.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Stamp { size: data.len(), modified_ns: u64::try_from(modified.as_nanos()).ok()? })
}

#[cfg(test)]
mod tests;

//! The symbol index of a folder, kept on disk between runs.

mod cache; // the file it is kept in

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use hardpan_symbols::{Change, ContentHash, Index, Outline, SIZE_LIMIT, Skip, Source, content_hash};

use cache::{Cache, Stamp};

/// Up to so many files that came, went or changed are worked into the index one by one, at some milliseconds each; with more
/// than that it is quicker to work out everything from the outlines.
const FEW: usize = 24;

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
    // Stamps are taken before anything is read: what is written after that is noticed the next time.
    let stamps = || files.iter().map(|name| (name.as_str(), stamp(root, name))).collect();
    let (cache, stamps): (Cache, BTreeMap<&str, Option<Stamp>>) = std::thread::scope(|scope| {
        let cache = scope.spawn(|| path.as_deref().map(Cache::read).unwrap_or_default());
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
    let folder = Folder { root, stamps: &stamps };
    let is_new = !changed.is_empty() || !gone.is_empty();
    let codebase = if changed.len() + gone.len() <= FEW {
        folder.update(cache.index, &changed, &gone)
    } else {
        folder.fill(&cache, files, progress)
    };
    if let Some(path) = path.filter(|_| is_new) {
        // That it cannot be kept costs time in the next run, and nothing else.
        let _ = cache::write(&path, &codebase.index, |name| stamps.get(name).copied().flatten());
    }
    codebase
}

/// The files as they are.
struct Folder<'a> {
    root: &'a Path,
    stamps: &'a BTreeMap<&'a str, Option<Stamp>>,
}

impl Folder<'_> {
    /// Works what changed into an index.
    fn update(&self, mut index: Index, changed: &[&str], gone: &[String]) -> Codebase {
        let mut parsed = 0;
        for name in gone {
            index.remove(name);
        }
        for name in changed {
            let source = self.source(name, Vec::new());
            let is_content = matches!(source, Source::Content(_));
            let change = index.update_from(name, source);
            parsed += usize::from(is_content && change == Change::Some);
        }
        Codebase { index, parsed }
    }

    /// Makes an index, with what the cache knows.
    fn fill(&self, cache: &Cache, files: &[String], progress: &mut dyn FnMut(usize)) -> Codebase {
        let parsed = AtomicUsize::new(0);
        let known = |name: &str, hash| Some(Source::Known(hash, Box::new(cache.index.outline(name)?)));
        let read = |name: &str, buffer: Vec<u8>| {
            let stamp = self.stamps.get(name).copied().flatten();
            let hash = cache.index.hash(name);
            if let Some(source) =
                hash.filter(|_| cache.is_current(name, stamp)).and_then(|hash| known(name, hash))
            {
                return source;
            }
            let source = self.source(name, buffer);
            let Source::Content(content) = &source else { return source };
            // Touched, but not changed: a checkout of another branch and back.
            let same = hash.filter(|hash| content_hash(content) == *hash).and_then(|hash| known(name, hash));
            same.unwrap_or_else(|| {
                parsed.fetch_add(1, Ordering::Relaxed);
                source
            })
        };
        let mut index = Index::default();
        index.fill(files, read, progress);
        Codebase { index, parsed: parsed.into_inner() }
    }

    /// A file as it is.
    fn source(&self, name: &str, mut buffer: Vec<u8>) -> Source {
        match self.stamps.get(name).copied().flatten() {
            None => Source::Unreadable,
            Some(stamp) if stamp.size > SIZE_LIMIT as u64 => {
                Source::Known(ContentHash::default(), Box::new(Outline::skipped(Skip::Large)))
            }
            Some(_) => {
                let read =
                    fs::File::open(self.root.join(name)).and_then(|mut file| file.read_to_end(&mut buffer));
                read.map_or(Source::Unreadable, |_| Source::Content(buffer))
            }
        }
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

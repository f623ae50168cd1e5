//! [`IndexCache`]: the file that caches the symbol index of a folder.
//!
//! It holds a magic line, the format id of the index, the index, the stamps of its files in path
//! order, and a hash over all of it. It is written beside and then renamed, so that two programs
//! never see half a file; a file with any defect counts as absent. It is safe to delete.

#![expect(clippy::disallowed_types, reason = "stamps are looked up by path, never iterated")]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hardpan_files::{read_small_file, write_private_file};
use hardpan_prompt::Hash;
use hardpan_symbols::{SymbolIndex, format_id};

/// The largest cache that is used, in bytes: some ten times that of a large codebase.
const MAX_CACHE_BYTES: u64 = 1024 * 1024 * 1024;

const MAGIC: &str = "hardpan symbols 2\n";

/// A file modified this shortly before the cache was written may have been modified again within
/// the same tick of the clock.
const TICK_NS: u64 = 2_000_000_000;

/// Size and modification time of a file: if both are unchanged, so is the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds since 1970.
    pub modified_ns: u64,
}

impl FileStamp {
    /// Stored for a file that cannot be read; no file is this large.
    const NONE: FileStamp = FileStamp { size: u64::MAX, modified_ns: 0 };
    /// Length of a stored stamp in bytes.
    const LENGTH: usize = 16;
}

/// The index of an earlier run.
#[derive(Debug, Default)]
pub struct IndexCache {
    /// The index as it was saved.
    pub index: SymbolIndex,
    stamps: HashMap<Box<str>, Option<FileStamp>>,
    /// Modification time in nanoseconds since 1970.
    written_ns: u64,
}

/// Path of the cache file for `root`.
pub fn cache_path(folder: &Path, root: &Path) -> PathBuf {
    let name = Hash::of(root.as_os_str().as_encoded_bytes()).to_string();
    folder.join("symbols").join(name)
}

impl IndexCache {
    /// Reads a cache file; an empty cache if it is missing or unusable.
    pub fn read(path: &Path) -> Self {
        let written_ns = modified_ns(path);
        read_small_file(path, MAX_CACHE_BYTES)
            .ok()
            .and_then(|bytes| IndexCache::parse(&bytes, written_ns))
            .unwrap_or_default()
    }

    /// The cache of an index that was just brought up to date, written to `path` if there is one.
    /// Without a file that says when that was, every file counts as changed the next time.
    pub fn store(index: SymbolIndex, path: Option<&Path>, stamp: impl Fn(&str) -> Option<FileStamp>) -> Self {
        let written_ns = path.map_or(0, |path| match write_cache(path, &index, &stamp) {
            Ok(()) => modified_ns(path),
            Err(error) => {
                // It only costs time in the next run.
                tracing::debug!(path = %path.display(), %error, "index cache not written");
                0
            }
        });
        let stamps = index.paths().map(|name| (Box::from(name), stamp(name))).collect();
        IndexCache { index, stamps, written_ns }
    }

    /// Changes the index in memory only.
    pub fn update(
        mut self,
        change: impl FnOnce(SymbolIndex) -> SymbolIndex,
        stamps: &BTreeMap<&str, Option<FileStamp>>,
        gone: &[String],
    ) -> Self {
        self.index = change(self.index);
        for name in gone {
            self.stamps.remove(name.as_str());
        }
        self.stamps.extend(stamps.iter().map(|(name, stamp)| (Box::from(*name), *stamp)));
        self
    }

    fn parse(bytes: &[u8], written_ns: u64) -> Option<Self> {
        let (content, hash) = bytes.split_at_checked(bytes.len().checked_sub(16)?)?;
        if Hash::of(content).bytes() != hash {
            return None;
        }
        let rest = content.strip_prefix(MAGIC.as_bytes())?.strip_prefix(format_id().as_bytes())?;
        let (length, rest) = rest.split_first_chunk()?;
        let (index, stamps) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let index = SymbolIndex::load(index).ok()?;
        let (stamps, []) = stamps.as_chunks::<{ FileStamp::LENGTH }>() else { return None };
        let stamps = index.paths().map(Box::from).zip(stamps.iter().map(parse_stamp)).collect();
        Some(IndexCache { index, stamps, written_ns })
    }

    /// Whether a file is unchanged since the cache was written. A file that was modified shortly
    /// before may have been modified again, so it does not count.
    pub fn is_current(&self, name: &str, stamp: Option<FileStamp>) -> bool {
        let is_settled = |stamp: FileStamp| stamp.modified_ns.saturating_add(TICK_NS) <= self.written_ns;
        self.stamps.get(name).is_some_and(|known| *known == stamp) && stamp.is_none_or(is_settled)
    }
}

fn parse_stamp(bytes: &[u8; FileStamp::LENGTH]) -> Option<FileStamp> {
    let half = |at: usize| bytes[at..].first_chunk().map(|half| u64::from_le_bytes(*half));
    let stamp = FileStamp { size: half(0)?, modified_ns: half(8)? };
    (stamp != FileStamp::NONE).then_some(stamp)
}

/// When a file was last modified, in nanoseconds since 1970; 0 if that is unknown.
fn modified_ns(path: &Path) -> u64 {
    let modified = fs::metadata(path).and_then(|data| data.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0)
}

/// Writes a cache file.
fn write_cache(
    path: &Path,
    index: &SymbolIndex,
    stamp: impl Fn(&str) -> Option<FileStamp>,
) -> io::Result<()> {
    let stored = index.save();
    let mut bytes = Vec::with_capacity(stored.len() + index.paths().len() * FileStamp::LENGTH + 100);
    bytes.extend(MAGIC.as_bytes());
    bytes.extend(format_id().as_bytes());
    bytes.extend((stored.len() as u64).to_le_bytes());
    bytes.extend(&stored);
    for name in index.paths() {
        let stamp = stamp(name).unwrap_or(FileStamp::NONE);
        bytes.extend(stamp.size.to_le_bytes());
        bytes.extend(stamp.modified_ns.to_le_bytes());
    }
    let hash = Hash::of(&bytes);
    bytes.extend(hash.bytes());
    write_private_file(path, &bytes)
}

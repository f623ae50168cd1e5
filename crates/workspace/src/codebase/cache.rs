//! The file that an index is kept in.
//!
//! A magic line, the format of the index, the index, the stamps of its files in their order, and a hash over all of it. It
//! is written beside and moved into place, so that two programs never see half of one; whatever is not as it should be
//! makes the whole file count as absent. It is safe to delete.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hardpan_prompt::Hash;
use hardpan_symbols::{Index, format_id};

const MAGIC: &str = "hardpan symbols 2\n";

/// A file written so shortly before the cache may have been written again within the same tick of the clock.
const TICK_NS: u64 = 2_000_000_000;

/// Size and time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// In bytes.
    pub size: u64,
    /// When it was written, in nanoseconds since 1970.
    pub modified_ns: u64,
}

impl Stamp {
    /// In place of the stamp of a file that cannot be read: no file is so large.
    const NONE: Stamp = Stamp { size: u64::MAX, modified_ns: 0 };
    /// Of a stored stamp, in bytes.
    const LENGTH: usize = 16;
}

/// What is known from an earlier run.
#[derive(Debug, Default)]
pub struct Cache {
    /// What the files contained.
    pub index: Index,
    stamps: HashMap<Box<str>, Option<Stamp>>,
    /// When it was written, in nanoseconds since 1970.
    written_ns: u64,
}

/// Where the index of `root` is kept.
pub fn path(folder: &Path, root: &Path) -> PathBuf {
    let name = Hash::of(root.as_os_str().as_encoded_bytes()).to_string();
    folder.join("symbols").join(name)
}

impl Cache {
    /// Reads a cache; an empty one if there is none that can be used.
    pub fn read(path: &Path) -> Self {
        let written = fs::metadata(path).and_then(|data| data.modified()).ok();
        let since = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let written_ns = since.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0);
        fs::read(path).ok().and_then(|bytes| Cache::parse(&bytes, written_ns)).unwrap_or_default()
    }

    fn parse(bytes: &[u8], written_ns: u64) -> Option<Self> {
        let (content, hash) = bytes.split_at_checked(bytes.len().checked_sub(16)?)?;
        if Hash::of(content).bytes() != hash {
            return None;
        }
        let rest = content.strip_prefix(MAGIC.as_bytes())?.strip_prefix(format_id().as_bytes())?;
        let (length, rest) = rest.split_first_chunk()?;
        let (index, stamps) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let index = Index::load(index).ok()?;
        let (stamps, []) = stamps.as_chunks::<{ Stamp::LENGTH }>() else { return None };
        let stamps = index.paths().map(Box::from).zip(stamps.iter().map(parse_stamp)).collect();
        Some(Cache { index, stamps, written_ns })
    }

    /// Whether a file is as it was. One that was written shortly before the cache may have been written again.
    pub fn is_current(&self, name: &str, stamp: Option<Stamp>) -> bool {
        let is_settled = |stamp: Stamp| stamp.modified_ns.saturating_add(TICK_NS) <= self.written_ns;
        self.stamps.get(name).is_some_and(|known| *known == stamp) && stamp.is_none_or(is_settled)
    }
}

fn parse_stamp(bytes: &[u8; Stamp::LENGTH]) -> Option<Stamp> {
    let half = |at: usize| bytes[at..].first_chunk().map(|half| u64::from_le_bytes(*half));
    let stamp = Stamp { size: half(0)?, modified_ns: half(8)? };
    (stamp != Stamp::NONE).then_some(stamp)
}

/// Keeps an index.
pub fn write(path: &Path, index: &Index, stamp: impl Fn(&str) -> Option<Stamp>) -> io::Result<()> {
    let stored = index.save();
    let mut bytes = Vec::with_capacity(stored.len() + index.paths().len() * Stamp::LENGTH + 100);
    bytes.extend(MAGIC.as_bytes());
    bytes.extend(format_id().as_bytes());
    bytes.extend((stored.len() as u64).to_le_bytes());
    bytes.extend(&stored);
    for name in index.paths() {
        let stamp = stamp(name).unwrap_or(Stamp::NONE);
        bytes.extend(stamp.size.to_le_bytes());
        bytes.extend(stamp.modified_ns.to_le_bytes());
    }
    let hash = Hash::of(&bytes);
    bytes.extend(hash.bytes());
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let beside = path.with_extension(std::process::id().to_string());
    fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

//! The file that an index is kept in.
//!
//! A magic line, the format of the outlines, the number of entries, the entries, and a hash over all of it. It is
//! written beside and moved into place, so that two programs never see half of one; whatever is not as it should be makes
//! the whole file count as absent. It is safe to delete.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hardpan_prompt::Hash;
use hardpan_symbols::{ContentHash, Index, Outline, decode, encode, format_id};

const MAGIC: &str = "hardpan symbols 1\n";

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

/// What is known from an earlier run.
#[derive(Debug, Default)]
pub struct Cache {
    bytes: Vec<u8>,
    entries: HashMap<String, Entry>,
    /// When it was written, in nanoseconds since 1970.
    written_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    stamp: Stamp,
    hash: ContentHash,
    outline: (usize, usize),
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
        fs::read(path).ok().and_then(|bytes| Cache::parse(bytes, written_ns)).unwrap_or_default()
    }

    fn parse(bytes: Vec<u8>, written_ns: u64) -> Option<Self> {
        let (content, hash) = bytes.split_at_checked(bytes.len().checked_sub(16)?)?;
        if Hash::of(content).bytes() != hash {
            return None;
        }
        let rest = content.strip_prefix(MAGIC.as_bytes())?.strip_prefix(format_id().as_bytes())?;
        let mut reader = Reader { bytes: rest, at: bytes.len() - 16 - rest.len() };
        let mut entries = HashMap::new();
        for _ in 0..reader.number()? {
            let length = usize::try_from(reader.number()?).ok()?;
            let name = std::str::from_utf8(reader.take(length)?).ok()?.to_owned();
            let stamp = Stamp { size: reader.number()?, modified_ns: reader.number()? };
            let hash = reader.take(16)?.try_into().ok()?;
            let length = usize::try_from(reader.number()?).ok()?;
            let outline = (reader.at, length);
            reader.take(length)?;
            entries.insert(name, Entry { stamp, hash, outline });
        }
        Some(Cache { entries, written_ns, bytes })
    }

    /// How many files it knows.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The outline of a file with this stamp, if it was written well before the cache.
    pub fn unchanged(&self, name: &str, stamp: Stamp) -> Option<(ContentHash, Outline)> {
        let entry = self.entries.get(name).filter(|entry| entry.stamp == stamp)?;
        if stamp.modified_ns.saturating_add(TICK_NS) > self.written_ns {
            return None;
        }
        self.outline(entry)
    }

    /// The outline of a file with this content.
    pub fn same_content(&self, name: &str, hash: ContentHash) -> Option<(ContentHash, Outline)> {
        self.outline(self.entries.get(name).filter(|entry| entry.hash == hash)?)
    }

    fn outline(&self, entry: &Entry) -> Option<(ContentHash, Outline)> {
        let (start, length) = entry.outline;
        Some((entry.hash, decode(self.bytes.get(start..start + length)?).ok()?))
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        self.at += length;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}

/// Keeps an index. Files that have no stamp any more are left out.
pub fn write(path: &Path, index: &Index, stamp: impl Fn(&str) -> Option<Stamp>) -> io::Result<()> {
    let mut entries = Vec::new();
    let mut count = 0_u64;
    for name in index.paths() {
        let (Some(stamp), Some(hash), Some(outline)) = (stamp(name), index.hash(name), index.outline(name))
        else {
            continue;
        };
        count += 1;
        let outline = encode(&outline);
        entries.extend((name.len() as u64).to_le_bytes());
        entries.extend(name.as_bytes());
        entries.extend(stamp.size.to_le_bytes());
        entries.extend(stamp.modified_ns.to_le_bytes());
        entries.extend(hash);
        entries.extend((outline.len() as u64).to_le_bytes());
        entries.extend(outline);
    }
    let mut bytes = [MAGIC.as_bytes(), format_id().as_bytes(), &count.to_le_bytes(), &entries].concat();
    let hash = Hash::of(&bytes);
    bytes.extend(hash.bytes());
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let beside = path.with_extension(std::process::id().to_string());
    fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

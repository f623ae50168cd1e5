//! [`JournalFolder`]: the files of a journal: the list of changes, and former contents by hash.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hardpan_files::{RegularFile, UnreadableReason, create_private_folder, read_lines, read_small_file};
use hardpan_prompt::Hash;

use crate::anchored_file::SIZE_LIMIT;

use super::{JournalEntry, JournalError};

/// The list of changes in the journal's folder, one JSON object per line. Former contents lie
/// beside it in files named by their hash.
pub(super) const LIST: &str = "changes.jsonl";

/// The folder of a journal. It is created with the first change, so that a session without changes
/// leaves no files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JournalFolder(pub PathBuf);

impl JournalFolder {
    /// All entries of the list; lines that cannot be read are left out.
    pub fn read_entries(&self) -> Result<Vec<JournalEntry>, JournalError> {
        let read = || -> io::Result<Vec<JournalEntry>> {
            let mut options = OpenOptions::new();
            let path = self.0.join(LIST);
            let mut list = match RegularFile::open_with(&path, options.read(true).append(true)) {
                Ok(list) => list,
                Err(UnreadableReason::Missing) => return Ok(Vec::new()),
                Err(error) => return Err(error.into()),
            };
            let lines = read_lines(&mut list)?;
            let is_cut = lines.left_out.last().is_some_and(|line| !line.has_end)
                || lines.bytes.last().is_some_and(|last| *last != b'\n');
            if is_cut {
                // A crash cut the last line off, before its change happened.
                list.file.write_all(b"\n")?;
            }
            let lines = lines.bytes.split(|byte| *byte == b'\n');
            Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
        };
        read().map_err(|error| JournalError::Io { path: self.0.clone(), error })
    }

    /// Appends an entry durably. It is one write, so that entries of several threads do not mix.
    pub fn append(&self, entry: &JournalEntry) -> Result<(), JournalError> {
        self.append_all(std::slice::from_ref(entry))
    }

    /// Appends entries durably, in one write.
    pub fn append_all(&self, entries: &[JournalEntry]) -> Result<(), JournalError> {
        let path = self.0.join(LIST);
        let append = || -> io::Result<()> {
            create_private_folder(&self.0)?;
            let mut text = Vec::new();
            for entry in entries {
                serde_json::to_writer(&mut text, entry)?;
                text.push(b'\n');
            }
            let mut list = private_file_options().append(true).open(&path)?;
            list.write_all(&text)?;
            list.sync_data()
        };
        append().map_err(|error| JournalError::Io { path: path.clone(), error })
    }

    /// Stores a content durably, in a file named by its hash.
    pub fn store_content(&self, bytes: &[u8]) -> Result<Hash, JournalError> {
        let hash = Hash::of(bytes);
        let path = self.0.join(hash.to_string());
        let store = || -> io::Result<()> {
            if path.metadata().is_ok_and(|metadata| metadata.len() == bytes.len() as u64) {
                return Ok(());
            }
            create_private_folder(&self.0)?;
            let temp = temporary_path(&path);
            let mut file = private_file_options().write(true).truncate(true).open(&temp)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temp, &path)
        };
        store().map(|()| hash).map_err(|error| JournalError::Io { path: path.clone(), error })
    }

    /// Reads a content that was stored.
    pub fn load_content(&self, hash: Hash) -> Result<Vec<u8>, JournalError> {
        let path = self.0.join(hash.to_string());
        let read = read_small_file(&path, SIZE_LIMIT).map_err(io::Error::from);
        let bytes = read.and_then(|bytes| match Hash::of(&bytes) == hash {
            true => Ok(bytes),
            false => Err(io::Error::other("its content is damaged")),
        });
        bytes.map_err(|error| JournalError::Io { path, error })
    }
}

/// A path that no other thread and no other process writes to.
fn temporary_path(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{number}.tmp", std::process::id()))
}

/// Options for files that only their owner can read: former contents may be secrets.
fn private_file_options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

//! [`DiskUse`]: how much of the disk extensions take.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FileType, Stat};

/// How much larger an extension may make the files of the disk in a conversation, in bytes.
const MAX_DISK_BYTES: u64 = 256 << 20;

/// What the smallest file takes, and a folder.
pub const BLOCK: u64 = 4 << 10;

/// How much each extension has added to the disk in this conversation, also before it was loaded anew. What
/// it removes is given back, so that one that writes the same file again and again is not stopped.
#[derive(Default)]
pub struct DiskUse(Mutex<BTreeMap<String, u64>>);

impl DiskUse {
    /// Counts what is about to be written; an error if it is too much.
    pub fn add(&self, extension: &str, bytes: u64) -> io::Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = all.entry(extension.to_owned()).or_default();
        let next = used.saturating_add(bytes);
        if bytes > 0 && next > MAX_DISK_BYTES {
            let limit = MAX_DISK_BYTES >> 20;
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!(
                    "an extension adds at most {limit} MB to the disk in a conversation; remove files first"
                ),
            ));
        }
        *used = next;
        Ok(())
    }

    /// Gives back what was removed. What others wrote is no credit.
    pub fn give_back(&self, extension: &str, bytes: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = all.get_mut(extension) {
            *used = used.saturating_sub(bytes);
        }
    }
}

/// What a file of this length takes.
pub fn disk_bytes(length: u64) -> u64 {
    length.max(1).div_ceil(BLOCK).saturating_mul(BLOCK)
}

/// What is free again when this is removed. A file with another name stays on the disk.
pub fn freed_bytes(removed: &Stat) -> u64 {
    match FileType::from_raw_mode(removed.st_mode) {
        FileType::RegularFile if removed.st_nlink == 1 => {
            disk_bytes(u64::try_from(removed.st_size).unwrap_or(0))
        }
        FileType::Directory => BLOCK,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_has_a_limit_and_what_is_removed_is_given_back() {
        let used = DiskUse::default();
        used.give_back("a", MAX_DISK_BYTES);
        used.add("a", MAX_DISK_BYTES).unwrap();
        let error = used.add("a", BLOCK).unwrap_err();
        assert!(error.to_string().contains("256 MB"), "{error}");
        assert!(used.add("b", BLOCK).is_ok(), "each has its own");
        used.add("a", 0).unwrap();
        used.give_back("a", BLOCK);
        used.add("a", BLOCK).unwrap();
        assert!(used.add("a", 1).is_err());
    }

    #[test]
    fn an_empty_file_takes_a_block() {
        assert_eq!([0, 1, BLOCK, BLOCK + 1].map(disk_bytes), [BLOCK, BLOCK, BLOCK, 2 * BLOCK]);
    }
}

//! [`HiddenFiles`]: the files in hidden folders, by what the file system knows them by.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::RegularFile;

/// The most files and folders that are looked at, so that the profile of a browser takes no seconds.
const MAX_ENTRIES: usize = 200_000;

/// The files in hidden folders, looked up when they are first asked for: a file with several names may
/// be one of them. Clones share what was found.
#[derive(Clone, Debug, Default)]
pub struct HiddenFiles {
    /// Device and inode.
    known: Arc<OnceLock<BTreeSet<(u64, u64)>>>,
}

impl HiddenFiles {
    /// Whether an open file is in one of the folders, without those that are `shown`.
    #[cfg(unix)]
    pub(super) fn hold(&self, file: &RegularFile, folders: &[PathBuf], shown: &[&Path]) -> bool {
        use std::os::unix::fs::MetadataExt;
        let known = self.known.get_or_init(|| find(folders, shown));
        known.contains(&(file.metadata.dev(), file.metadata.ino()))
    }

    #[cfg(not(unix))]
    pub(super) fn hold(&self, _file: &RegularFile, _folders: &[PathBuf], _shown: &[&Path]) -> bool {
        false
    }
}

/// Looks through folders, without following links. Whatever is no folder is passed over.
#[cfg(unix)]
fn find(folders: &[PathBuf], shown: &[&Path]) -> BTreeSet<(u64, u64)> {
    use std::os::unix::fs::{DirEntryExt, MetadataExt};
    let mut found = BTreeSet::new();
    let mut seen = 0;
    let mut rest: Vec<PathBuf> = folders.to_vec();
    while let Some(folder) = rest.pop() {
        if shown.contains(&folder.as_path()) {
            continue;
        }
        let Ok(device) = std::fs::symlink_metadata(&folder).map(|metadata| metadata.dev()) else { continue };
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                return found;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => rest.push(entry.path()),
                Ok(kind) if kind.is_file() => drop(found.insert((device, entry.ino()))),
                Ok(_) | Err(_) => {}
            }
        }
    }
    found
}

//! [`HiddenFiles`]: the files in hidden folders, by what the file system knows them by.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::RegularFile;

/// The most files and folders that are looked at, so that the profile of a browser takes no seconds.
const MAX_ENTRIES: usize = 200_000;

/// The files in hidden folders, as they were when they were looked up. A name that a file gets
/// elsewhere does not change them.
#[derive(Debug, Default)]
pub(super) struct HiddenFiles {
    /// Device and inode.
    known: BTreeSet<(u64, u64)>,
}

impl HiddenFiles {
    /// Looks through folders, without following links, and without those that are `shown`. Whatever is
    /// no folder is passed over.
    #[cfg(unix)]
    pub fn find(folders: &[PathBuf], shown: &[&Path]) -> Self {
        use std::os::unix::fs::{DirEntryExt, MetadataExt};
        let mut found = HiddenFiles::default();
        let mut seen = 0;
        let mut rest: Vec<PathBuf> = folders.to_vec();
        while let Some(folder) = rest.pop() {
            if shown.contains(&folder.as_path()) {
                continue;
            }
            let Ok(device) = fs::symlink_metadata(&folder).map(|metadata| metadata.dev()) else { continue };
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                seen += 1;
                if seen > MAX_ENTRIES {
                    return found;
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => rest.push(entry.path()),
                    Ok(kind) if kind.is_file() => drop(found.known.insert((device, entry.ino()))),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        found
    }

    #[cfg(not(unix))]
    pub fn find(_folders: &[PathBuf], _shown: &[&Path]) -> Self {
        HiddenFiles::default()
    }

    /// Whether an open file is one of them.
    #[cfg(unix)]
    pub fn hold(&self, file: &RegularFile) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.known.contains(&(file.metadata.dev(), file.metadata.ino()))
    }

    #[cfg(not(unix))]
    pub fn hold(&self, _file: &RegularFile) -> bool {
        false
    }
}

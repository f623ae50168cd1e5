//! [`write_below`] and [`remove_below`]: whole files below a folder, for what Hardpan keeps in a
//! project itself.

use std::path::{Path, PathBuf};

use hardpan_files::OpenFolder;

use crate::anchored_file::{AnchoredFile, FileChangeError, MissingFolders};

/// Why a file was not written or removed.
#[derive(Debug, thiserror::Error)]
#[error("{} {source}", path.display())]
pub struct PlainFileError {
    path: PathBuf,
    source: FileChangeError,
}

/// Writes a file below `root`, atomically, with the folders that it needs. No link is followed on the
/// way.
pub fn write_below(root: &Path, relative: &Path, bytes: &[u8]) -> Result<(), PlainFileError> {
    let write = || {
        let file = anchor(root, relative, MissingFolders::Create)?;
        file.replace(file.read()?.as_ref(), bytes)
    };
    write().map_err(|source| PlainFileError { path: relative.to_owned(), source })
}

/// Removes a file below `root`. One that is not there is no error.
pub fn remove_below(root: &Path, relative: &Path) -> Result<(), PlainFileError> {
    let remove = || {
        let file = anchor(root, relative, MissingFolders::Fail)?;
        file.read()?.map_or(Ok(()), |found| file.remove(&found))
    };
    remove().map_err(|source| PlainFileError { path: relative.to_owned(), source })
}

fn anchor(root: &Path, relative: &Path, missing: MissingFolders) -> Result<AnchoredFile, FileChangeError> {
    let folder = OpenFolder::open(root)?;
    AnchoredFile::open_below(&folder, &folder.path().join(relative), missing)
}

//! Reading one file safely, whatever it is: its text, or why there is none and what to do.

use std::io::{self, ErrorKind};
use std::path::Path;

use hardpan_files::{FileGuard, UnreadableReason};

use super::{ExpansionFault, FolderOwner};

/// The largest file that is read, in bytes: some 60,000 tokens, more than any prompt should be made
/// of.
pub const MAX_BYTES: u64 = 256 * 1024;

/// Reads a file's text, or says why it cannot be used.
pub fn read_text(guard: &FileGuard, path: &Path, owner: &FolderOwner) -> Result<String, ExpansionFault> {
    let opened = match owner {
        FolderOwner::User | FolderOwner::Home { .. } => guard.open_user_file(path),
        FolderOwner::Project { .. } => guard.open(path),
    };
    let bytes = opened.and_then(|file| file.read_all(MAX_BYTES)).map_err(|reason| match reason {
        UnreadableReason::Outside => ExpansionFault::OutsideProject,
        UnreadableReason::Private => ExpansionFault::Private,
        UnreadableReason::TooLarge { .. } => ExpansionFault::TooLarge,
        UnreadableReason::Directory | UnreadableReason::Special(_) => ExpansionFault::NotAFile,
        reason => read_fault(path, reason.into()),
    })?;
    let bytes = match owner {
        FolderOwner::User | FolderOwner::Home { .. } => bytes,
        // As it was when the user trusted it.
        FolderOwner::Project { root, files } => {
            let trusted = path.strip_prefix(root).ok().and_then(|path| files.get(path));
            trusted.ok_or(ExpansionFault::Untrusted)?.clone()
        }
    };
    String::from_utf8(bytes).map_err(|error| ExpansionFault::NotUtf8(error.utf8_error()))
}

/// Why the system does not let us read a file.
pub fn read_fault(path: &Path, error: io::Error) -> ExpansionFault {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let (kind, error) = (error.kind(), error.into());
    match kind {
        ErrorKind::NotFound if is_link => ExpansionFault::BrokenLink(error),
        ErrorKind::PermissionDenied => ExpansionFault::Permission(error),
        // A loop of links has no kind of its own; the system's words name it.
        _ if is_link => ExpansionFault::UnfollowableLink(error),
        _ => ExpansionFault::Io(error),
    }
}

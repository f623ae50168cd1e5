//! Reading one file safely, whatever it is: its text, or why there is none and what to do.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::{ExpansionFault, FolderOwner};

/// The largest file that is read, in bytes: some 60,000 tokens, more than any prompt should be made
/// of.
pub const MAX_BYTES: u64 = 256 * 1024;

/// Reads a file's text, or says why it cannot be used.
pub fn read_text(path: &Path, owner: &FolderOwner) -> Result<String, ExpansionFault> {
    check_inside_project(path, owner)?;
    // Before opening it: opening a pipe waits for its writer.
    if !fs::metadata(path).map_err(|error| read_fault(path, error))?.is_file() {
        return Err(ExpansionFault::NotAFile);
    }
    let bytes = match owner {
        FolderOwner::Project { root, files } => {
            let trusted = path.strip_prefix(root).ok().and_then(|path| files.get(path));
            trusted.ok_or(ExpansionFault::Untrusted)?.clone()
        }
        FolderOwner::User => {
            let mut bytes = Vec::new();
            let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
            read.map_err(|error| read_fault(path, error))?;
            bytes
        }
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ExpansionFault::TooLarge);
    }
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

/// Checks that a project's file lies in the project. A link that cannot be followed at all is
/// reported when it is read.
fn check_inside_project(path: &Path, owner: &FolderOwner) -> Result<(), ExpansionFault> {
    let FolderOwner::Project { root, .. } = owner else { return Ok(()) };
    match (root.canonicalize(), path.canonicalize()) {
        (Ok(root), Ok(path)) if !path.starts_with(&root) => Err(ExpansionFault::OutsideProject),
        _ => Ok(()),
    }
}

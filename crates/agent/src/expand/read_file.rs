//! Reading one file safely, whatever it is: its text, or why there is none and what to do.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::FolderOwner;

/// The largest file that is read, in bytes: some 60,000 tokens, more than any prompt should be made
/// of.
pub const MAX_BYTES: u64 = 256 * 1024;

/// Reads a file's text, or says why it cannot be used.
pub fn read_text(path: &Path, owner: &FolderOwner) -> Result<String, String> {
    check_inside_project(path, owner)?;
    // Before opening it: opening a pipe waits for its writer.
    if !fs::metadata(path).map_err(|error| describe_read_error(path, &error))?.is_file() {
        return Err("is not a regular file: put a text file in its place".into());
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| describe_read_error(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!(
            "is larger than {} KB: shorten it, and move details to files that it refers to",
            MAX_BYTES / 1024
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("is not UTF-8 (byte {at} is the first wrong one): convert it, for example with iconv")
    })
}

/// Why the system does not let us read a file, and what to do about it.
pub fn describe_read_error(path: &Path, error: &io::Error) -> String {
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    match error.kind() {
        ErrorKind::NotFound if is_link => "links to a file that does not exist: correct the link".into(),
        ErrorKind::PermissionDenied => {
            "may not be read: its permissions, or those of a folder above it, forbid it".into()
        }
        // A loop of links has no kind of its own; the system's words name it.
        _ if is_link => format!("is a link that cannot be followed ({error}): correct the link"),
        _ => format!("cannot be read: {error}"),
    }
}

/// Checks that a project's file lies in the project. A link that cannot be followed at all is
/// reported when it is read.
fn check_inside_project(path: &Path, owner: &FolderOwner) -> Result<(), String> {
    let FolderOwner::Project { root } = owner else { return Ok(()) };
    match (root.canonicalize(), path.canonicalize()) {
        (Ok(root), Ok(path)) if !path.starts_with(&root) => {
            Err("links to a place outside the project: copy the file into the project".into())
        }
        _ => Ok(()),
    }
}

//! One file, whatever it is: its text, or why there is none.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::Owner;

/// The largest file that is read, in bytes: some 60,000 tokens, more than any prompt should be made of.
pub const LIMIT: u64 = 256 * 1024;

/// The text of a file.
pub fn text(path: &Path, owner: &Owner) -> Result<String, String> {
    stays_inside(path, owner)?;
    // Before opening it: opening a pipe waits for its writer.
    if !fs::metadata(path).map_err(|error| unreadable(path, &error))?.is_file() {
        return Err("is no regular file: put a text file in its place".into());
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > LIMIT {
        return Err(format!(
            "is larger than {} KB: shorten it, and move details to files that it refers to",
            LIMIT / 1024
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("is not UTF-8 (byte {at} is the first wrong one): convert it, for example with iconv")
    })
}

/// Why the system does not give it, and the remedy.
pub fn unreadable(path: &Path, error: &io::Error) -> String {
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

/// A project's file lies in the project. What cannot be followed at all is reported when it is read.
fn stays_inside(path: &Path, owner: &Owner) -> Result<(), String> {
    let Owner::Project { root } = owner else { return Ok(()) };
    match (root.canonicalize(), path.canonicalize()) {
        (Ok(root), Ok(path)) if !path.starts_with(&root) => {
            Err("links to a place outside the project: copy the file into the project".into())
        }
        _ => Ok(()),
    }
}

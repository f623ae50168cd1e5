//! A regular file opened without blocking, or the reason why it cannot be read.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A file that cannot be read, and why.
#[derive(Debug, Error)]
#[error("{} {reason}", path.display())]
pub struct Unreadable {
    /// The file, as it was asked for.
    pub path: PathBuf,
    /// Why it cannot be read.
    pub reason: Reason,
}

/// Why a file cannot be read. The words follow the file's name: "a.txt *does not exist*".
#[derive(Debug, Error)]
pub enum Reason {
    /// There is no such file, or a folder on the way to it is missing.
    #[error("does not exist: check the spelling")]
    Missing,
    /// The system refuses.
    #[error("may not be read: its permissions, or those of a folder above it, forbid it")]
    Permission,
    /// It is a folder.
    #[error("is a directory: name a file in it")]
    Directory,
    /// Reading it could wait for ever.
    #[error("is {0}, not a regular file: copy what it holds into a file first")]
    Special(&'static str),
    /// It holds bytes that no text holds.
    #[error("is binary (byte {offset} is a control character): only text can be shown")]
    Binary {
        /// The first such byte, from 0, in bytes of the file.
        offset: usize,
    },
    /// It is text in some other encoding, or damaged.
    #[error("is not UTF-8 (byte {offset} is the first wrong one): convert it, for example with iconv")]
    NotUtf8 {
        /// The first wrong byte, from 0.
        offset: usize,
    },
    /// It starts with UTF-16's byte order mark, but does not go on so.
    #[error("begins as UTF-16 but is none (byte {offset} is the first wrong one): save it again as UTF-8")]
    NotUtf16 {
        /// The first wrong byte, from 0.
        offset: usize,
    },
    /// Anything else the system reports: a loop of links, a name too long, a failing disk.
    #[error("cannot be read: {0}")]
    Io(io::Error),
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // `a.txt/b` asks for a file in a file.
            ErrorKind::NotFound | ErrorKind::NotADirectory => Reason::Missing,
            ErrorKind::PermissionDenied => Reason::Permission,
            ErrorKind::IsADirectory => Reason::Directory,
            _ => Reason::Io(error),
        }
    }
}

impl Reason {
    /// Names the file.
    pub(crate) fn of(self, path: &Path) -> Unreadable {
        Unreadable { path: path.to_owned(), reason: self }
    }
}

/// Opens a regular file (through links) for reading. Looks at it before opening, because opening a pipe waits
/// for its writer and opening a device may do anything; and again after, because it may have been replaced.
pub fn open(path: &Path) -> Result<(File, Metadata), Reason> {
    check(std::fs::metadata(path)?.file_type())?;
    let mut options = OpenOptions::new();
    options.read(true);
    without_blocking(&mut options);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    check(metadata.file_type())?;
    Ok((file, metadata))
}

fn check(kind: FileType) -> Result<(), Reason> {
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(Reason::Directory)
    } else {
        Err(Reason::Special(special(kind)))
    }
}

/// What a file that is neither regular nor a folder nor a link is called.
#[cfg(unix)]
pub(crate) fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
pub(crate) fn special(_: FileType) -> &'static str {
    "a special file"
}

// O_NONBLOCK closes the gap between the two looks, and turns files that wait for news (/proc/kmsg) into errors.
// Its value is part of each system's ABI; where it is not listed, the two looks alone must do.
#[cfg(unix)]
fn without_blocking(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    let linux = cfg!(all(
        any(target_os = "linux", target_os = "android"),
        any(
            target_arch = "x86_64",
            target_arch = "x86",
            target_arch = "aarch64",
            target_arch = "arm",
            target_arch = "riscv64"
        )
    ));
    let bsd = cfg!(any(
        target_vendor = "apple",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd"
    ));
    if linux {
        options.custom_flags(0o4000);
    } else if bsd {
        options.custom_flags(0x4);
    }
}

#[cfg(not(unix))]
fn without_blocking(_: &mut OpenOptions) {}

//! [`open_regular_file`]: opens a regular file without blocking, or gives the reason why it cannot
//! be read.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A file that cannot be read, and why.
#[derive(Debug, Error)]
#[error("{} {reason}", path.display())]
pub struct UnreadableFile {
    /// Path as the caller gave it.
    pub path: PathBuf,
    /// The cause, with a remedy in its text.
    #[source]
    pub reason: UnreadableReason,
}

/// Why a file cannot be read. The text follows the file's name: "a.txt *does not exist*". It is for
/// people; a model reads [`UnreadableReason::model_text`].
#[derive(Debug, Error)]
pub enum UnreadableReason {
    /// There is no such file, or a folder on the way to it is missing.
    #[error("does not exist: check the spelling")]
    Missing,
    /// Permissions forbid reading it.
    #[error("cannot be read: its permissions, or those of a folder above it, forbid it")]
    Permission,
    /// The path is a folder.
    #[error("is a folder: name a file in it")]
    Directory,
    /// It is a pipe, socket or device, which a read could wait on for ever.
    #[error("is {0}, not a regular file: copy its content into a file first")]
    Special(&'static str),
    /// It contains bytes that no text contains.
    #[error("is a binary file (byte {offset} is a control character): only text can be shown")]
    Binary {
        /// Offset of the first such byte in the file, from 0.
        offset: usize,
    },
    /// It is text in some other encoding, or damaged.
    #[error("is not UTF-8 (byte {offset} is the first invalid one): convert it, for example with iconv")]
    NotUtf8 {
        /// Offset of the first invalid byte, from 0.
        offset: usize,
    },
    /// It starts with a UTF-16 byte order mark, but is not valid UTF-16.
    #[error("starts like UTF-16 but is not (byte {offset} is the first invalid one): save it again as UTF-8")]
    NotUtf16 {
        /// Offset of the first invalid byte, from 0.
        offset: usize,
    },
    /// Anything else the system reports: a loop of links, a name too long, a failing disk.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for UnreadableReason {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // `NotADirectory`: `a.txt/b` names a file inside a file.
            ErrorKind::NotFound | ErrorKind::NotADirectory => UnreadableReason::Missing,
            ErrorKind::PermissionDenied => UnreadableReason::Permission,
            ErrorKind::IsADirectory => UnreadableReason::Directory,
            _ => UnreadableReason::Io(error),
        }
    }
}

impl UnreadableReason {
    /// The text that a model reads. It is part of requests and of stored results, so its bytes
    /// stay as they are when the text for people is improved.
    pub fn model_text(&self) -> String {
        match self {
            UnreadableReason::Missing => "does not exist: check the spelling".into(),
            UnreadableReason::Permission => {
                "may not be read: its permissions, or those of a folder above it, forbid it".into()
            }
            UnreadableReason::Directory => "is a directory: name a file in it".into(),
            UnreadableReason::Special(kind) => {
                format!("is {kind}, not a regular file: copy what it holds into a file first")
            }
            UnreadableReason::Binary { offset } => {
                format!("is binary (byte {offset} is a control character): only text can be shown")
            }
            UnreadableReason::NotUtf8 { offset } => format!(
                "is not UTF-8 (byte {offset} is the first wrong one): convert it, for example with iconv"
            ),
            UnreadableReason::NotUtf16 { offset } => format!(
                "begins as UTF-16 but is none (byte {offset} is the first wrong one): save it again as UTF-8"
            ),
            UnreadableReason::Io(error) => format!("cannot be read: {error}"),
        }
    }

    /// The error for this path.
    pub(crate) fn for_path(self, path: &Path) -> UnreadableFile {
        UnreadableFile { path: path.to_owned(), reason: self }
    }
}

/// Opens a regular file (through links) for reading. It checks the type before opening, because
/// opening a pipe waits for its writer and opening a device may do anything; and again after,
/// because the file may have been replaced.
pub fn open_regular_file(path: &Path) -> Result<(File, Metadata), UnreadableReason> {
    require_regular(std::fs::metadata(path)?.file_type())?;
    let mut options = OpenOptions::new();
    options.read(true);
    set_nonblocking(&mut options);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    require_regular(metadata.file_type())?;
    Ok((file, metadata))
}

fn require_regular(kind: FileType) -> Result<(), UnreadableReason> {
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(UnreadableReason::Directory)
    } else {
        Err(UnreadableReason::Special(special_file_kind(kind)))
    }
}

/// What to call a file that is neither regular nor a folder nor a link.
#[cfg(unix)]
pub(crate) fn special_file_kind(kind: FileType) -> &'static str {
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
pub(crate) fn special_file_kind(_: FileType) -> &'static str {
    "a special file"
}

// O_NONBLOCK closes the gap between the two checks, and turns files that wait for news (/proc/kmsg)
// into errors. Its value is part of each system's ABI; on other systems the two checks must do.
#[cfg(unix)]
fn set_nonblocking(options: &mut OpenOptions) {
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
fn set_nonblocking(_: &mut OpenOptions) {}

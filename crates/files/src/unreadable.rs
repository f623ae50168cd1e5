//! [`UnreadableReason`]: why a file cannot be read, in words for people and for a model.

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
    /// It lies outside of what may be read, or a link leads out.
    #[error("leads outside of the workspace: name the file that it leads to")]
    Outside,
    /// It is one of our own files: keys, permissions, settings or sessions.
    #[error(
        "is one of Hardpan's own files (keys, permissions, settings, sessions) or holds the keys of another program, which never go to a model"
    )]
    Private,
    /// It is longer than what may be read.
    #[error("has more than {limit} bytes: make it shorter")]
    TooLarge {
        /// The most bytes that it may have.
        limit: u64,
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

impl From<UnreadableReason> for io::Error {
    fn from(reason: UnreadableReason) -> Self {
        let kind = match reason {
            UnreadableReason::Io(error) => return error,
            UnreadableReason::Missing => ErrorKind::NotFound,
            UnreadableReason::Permission => ErrorKind::PermissionDenied,
            UnreadableReason::Directory => ErrorKind::IsADirectory,
            UnreadableReason::TooLarge { .. } => ErrorKind::FileTooLarge,
            UnreadableReason::NotUtf8 { .. } => ErrorKind::InvalidData,
            _ => ErrorKind::Other,
        };
        io::Error::new(kind, format!("it {reason}"))
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
            UnreadableReason::Outside => "leads outside of the workspace".into(),
            UnreadableReason::Private => "holds keys, permissions or sessions, which are not shown".into(),
            UnreadableReason::TooLarge { limit } => format!("has more than {limit} bytes"),
            UnreadableReason::Io(error) => format!("cannot be read: {error}"),
        }
    }

    /// The error for this path.
    pub fn for_path(self, path: &Path) -> UnreadableFile {
        UnreadableFile { path: path.to_owned(), reason: self }
    }
}

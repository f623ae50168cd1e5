//! [`LogError`]: why a session cannot be written, with what the user can do about it.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::session::SessionError;

/// Why an entry could not be saved, or a session could not be opened for writing.
#[derive(Clone, Debug, Error)]
#[error("{name}: {cause}{}; {}", if *.is_kept { RETRY_NOTE } else { "" }, cause.remedy())]
pub struct LogError {
    /// Path of the session file.
    pub name: Arc<str>,
    /// What went wrong.
    #[source]
    pub cause: LogErrorCause,
    /// Whether the entries are kept in memory and written with the next one.
    pub is_kept: bool,
}

/// What went wrong with the file of a session.
#[derive(Clone, Debug, Error)]
pub enum LogErrorCause {
    /// Another process holds the lock of this session.
    #[error("another process writes to this session")]
    Busy,
    /// A new session would overwrite an existing file.
    #[error("it already exists")]
    Exists,
    /// The folder of a new session cannot be created.
    #[error("its folder cannot be created: {0}")]
    NoFolder(#[source] Arc<io::Error>),
    /// The file is not a session, or was written by a newer version.
    #[error(transparent)]
    Unreadable(Arc<SessionError>),
    /// The thread that writes the file is gone.
    #[error("its writer thread has ended")]
    WriterEnded,
    /// The operating system refuses.
    #[error("{action}: {}", describe(error))]
    Io {
        /// What was tried.
        action: LogAction,
        /// The system's error.
        #[source]
        error: Arc<io::Error>,
    },
}

/// What was tried with a session file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogAction {
    /// Create the file and its folder.
    Create,
    /// Open an existing file.
    Open,
    /// Take the lock that makes this process the only writer.
    Lock,
    /// Append entries.
    Write,
    /// Cut off an unfinished last line.
    Repair,
    /// Delete the session.
    Delete,
    /// Start the thread that writes.
    StartWriter,
}

/// Added to every failed write, because it is true of each: see [`crate::SessionLog::append`].
const RETRY_NOTE: &str = "; unsaved entries are kept in memory and written with the next one";

const OTHER_SESSION: &str = "name another session; `hardpan sessions` lists them";
const OTHER_FOLDER: &str = "name another data folder in HARDPAN_DATA_DIR";

impl LogError {
    pub(crate) fn new(path: &Path, cause: LogErrorCause) -> Self {
        LogError { name: path.display().to_string().into(), cause, is_kept: false }
    }

    pub(crate) fn io(path: &Path, action: LogAction, error: io::Error) -> Self {
        LogError::new(path, LogErrorCause::Io { action, error: Arc::new(error) })
    }

    /// The same error with a note that the write will be tried again.
    pub(crate) fn with_retry_note(self) -> Self {
        LogError { is_kept: true, ..self }
    }
}

impl LogErrorCause {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        use io::ErrorKind as Kind;
        match self {
            LogErrorCause::Busy => "wait until it has ended, or go on in a copy with --fork",
            LogErrorCause::Exists => "open it, or choose another name",
            LogErrorCause::NoFolder(_) => OTHER_FOLDER,
            LogErrorCause::Unreadable(_) => OTHER_SESSION,
            LogErrorCause::WriterEnded => "open the session again",
            LogErrorCause::Io { error, .. } => match error.kind() {
                Kind::StorageFull | Kind::QuotaExceeded => "free some space on it",
                Kind::FileTooLarge => "raise the limit (`ulimit -f`)",
                Kind::ReadOnlyFilesystem => OTHER_FOLDER,
                Kind::PermissionDenied => {
                    "fix the permissions, or name another data folder in HARDPAN_DATA_DIR"
                }
                Kind::NotFound => OTHER_SESSION,
                _ => "fix that, or name another data folder in HARDPAN_DATA_DIR",
            },
        }
    }

    /// Whether the disk, the quota or the file size limit is exhausted.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind as Kind;
        let LogErrorCause::Io { error, .. } = self else { return false };
        matches!(error.kind(), Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge)
    }
}

/// The error in plain words, with the system's own in brackets.
fn describe(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    let words = match error.kind() {
        Kind::StorageFull => "the disk is full",
        Kind::QuotaExceeded => "your disk quota is used up",
        Kind::FileTooLarge => "the file would be larger than is allowed here",
        Kind::ReadOnlyFilesystem => "the disk is read-only",
        Kind::PermissionDenied => "you are not allowed to write there",
        Kind::NotFound => "it does not exist",
        _ => return error.to_string(),
    };
    format!("{words} ({error})")
}

impl fmt::Display for LogAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogAction::Create => "it cannot be created",
            LogAction::Open => "it cannot be opened",
            LogAction::Lock => "it cannot be locked",
            LogAction::Write => "it cannot be written",
            LogAction::Repair => "it cannot be repaired",
            LogAction::Delete => "it cannot be deleted",
            LogAction::StartWriter => "its writer thread cannot be started",
        })
    }
}

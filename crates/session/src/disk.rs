//! The file of a session as its writer sees it: made late, private, locked, and never longer than what is durable.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use crate::entry::Header;

/// Why something could not be saved, or a session not be opened for writing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}: {message}; {remedy}")]
pub struct LogError {
    /// What sort of failure it is.
    pub kind: LogFailure,
    /// The file.
    pub name: Arc<str>,
    /// What happened, in words for a person.
    pub message: String,
    /// What to do about it.
    pub remedy: &'static str,
}

/// The sorts of [`LogError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFailure {
    /// Another process writes to this session.
    Busy,
    /// There is no room.
    Full,
    /// The place cannot be written to.
    ReadOnly,
    /// The file is no session, or a newer one.
    Unreadable,
    /// The file is there already.
    Exists,
    /// Anything else that the system says.
    Other,
}

/// Said with every failed write, because it is true of each: see [`crate::Log::append`].
const KEPT: &str = "what was not saved is kept in memory and written with the next entry";

impl LogError {
    pub(crate) fn new(
        kind: LogFailure,
        path: &Path,
        message: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        LogError { kind, name: path.display().to_string().into(), message: message.into(), remedy }
    }

    /// In plain words what the system means.
    pub(crate) fn of(path: &Path, doing: &str, error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let (kind, why, remedy) = match error.kind() {
            Kind::StorageFull => (LogFailure::Full, "the disk is full", "make room on it"),
            Kind::QuotaExceeded => (LogFailure::Full, "your share of the disk is used up", "make room on it"),
            Kind::FileTooLarge => (
                LogFailure::Full,
                "the file would be larger than is allowed here",
                "raise the limit (`ulimit -f`)",
            ),
            Kind::ReadOnlyFilesystem => (
                LogFailure::ReadOnly,
                "the disk can only be read",
                "name another data folder in HARDPAN_DATA_DIR",
            ),
            Kind::PermissionDenied => (
                LogFailure::ReadOnly,
                "you are not allowed to write there",
                "correct the permissions, or name another data folder in HARDPAN_DATA_DIR",
            ),
            Kind::NotFound => {
                (LogFailure::Other, "it is not there", "name another session; `hardpan sessions` lists them")
            }
            _ => (LogFailure::Other, "", "correct that, or name another data folder in HARDPAN_DATA_DIR"),
        };
        let message = match why {
            "" => format!("{doing}: {error}"),
            why => format!("{doing}: {why} ({error})"),
        };
        LogError::new(kind, path, message, remedy)
    }

    /// The same, after a write that will be tried again.
    pub(crate) fn and_kept(mut self) -> Self {
        self.message = format!("{}; {KEPT}", self.message);
        self
    }
}

/// The file, and how much of it is durable.
pub(crate) struct Disk {
    path: PathBuf,
    /// None before the first write.
    file: Option<File>,
    /// Written before the first entry of a new file; none for a file that was there.
    header: Option<Header>,
    durable: u64,
    /// Whether the file may be longer than what is durable, after a write that failed.
    torn: bool,
}

impl Disk {
    /// A file that is made with the first write.
    pub(crate) fn later(path: &Path, header: Header) -> Self {
        Disk { path: path.to_owned(), file: None, header: Some(header), durable: 0, torn: false }
    }

    /// A file that is there, locked; and what it holds.
    pub(crate) fn open(path: &Path) -> Result<(Self, Vec<u8>), LogError> {
        let failed = |error: io::Error| LogError::of(path, "it cannot be opened", &error);
        // Opening a pipe would wait for ever.
        if !fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        let mut file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        lock(&file, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let durable = bytes.len() as u64;
        let disk = Disk { path: path.to_owned(), file: Some(file), header: None, durable, torn: false };
        Ok((disk, bytes))
    }

    /// Appends the bytes and makes them durable, or leaves the file as it was.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        if self.file.is_none() {
            self.file = Some(create(&self.path)?);
        }
        let written = match &self.header {
            Some(header) if self.durable == 0 => self.write(&[header.to_line().as_bytes(), bytes].concat()),
            _ => self.write(bytes),
        };
        if written.is_err() {
            // The next write tries again where this fails.
            let _ = self.cut_back();
        }
        written.map_err(|error| LogError::of(&self.path, "it cannot be written", &error))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.cut_back()?;
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        self.torn = true;
        file.write_all(bytes)?;
        file.sync_data()?;
        self.torn = false;
        self.durable += bytes.len() as u64;
        Ok(())
    }

    /// Forgets what a failed write left behind the durable part.
    fn cut_back(&mut self) -> io::Result<()> {
        if let (true, Some(file)) = (self.torn, &self.file) {
            file.set_len(self.durable)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Cuts the file to this length, keeping what is cut off in a file beside it, whose path is returned.
    pub(crate) fn cut_off(&mut self, bytes: &[u8], length: usize) -> Result<PathBuf, LogError> {
        let keep = || {
            let (beside, mut file) = torn_file(&self.path)?;
            file.write_all(&bytes[length..])?;
            file.sync_all()?;
            sync_folder(&beside)?;
            Ok(beside)
        };
        let kept = keep();
        let kept =
            kept.map_err(|error: io::Error| LogError::of(&self.path, "it cannot be repaired", &error))?;
        self.durable = length as u64;
        self.torn = true;
        self.cut_back().map_err(|error| LogError::of(&self.path, "it cannot be repaired", &error))?;
        Ok(kept)
    }
}

impl Drop for Disk {
    /// A file into which nothing could be written is of no use to anybody.
    fn drop(&mut self) {
        let is_ours = self.header.is_some();
        if is_ours && self.durable == 0 && self.file.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Takes the lock that only one writer can have.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), LogError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => LogError::new(
            LogFailure::Busy,
            path,
            "another process writes to this session",
            "wait until it has ended, or fork the session",
        ),
        TryLockError::Error(error) => LogError::of(path, "it cannot be locked", &error),
    })
}

/// Makes the file and the folders above it, for their owner alone, and locks it.
fn create(path: &Path) -> Result<File, LogError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            LogError::new(LogFailure::Exists, path, "it is there already", "open it, or name another")
        }
        // The file is new: what is not there is a folder above it, and it cannot be made.
        io::ErrorKind::NotFound => LogError::new(
            LogFailure::Other,
            path,
            format!("its folder cannot be made: {error}"),
            "name another data folder in HARDPAN_DATA_DIR",
        ),
        _ => LogError::of(path, "it cannot be made", &error),
    };
    let make = || {
        make_folder(path.parent().unwrap_or(Path::new("")))?;
        let file = private().create_new(true).open(path)?;
        sync_folder(path)?;
        Ok(file)
    };
    let file = make().map_err(failed)?;
    lock(&file, path)?;
    Ok(file)
}

/// For appending, and for the owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the folders that are missing, each durable before the next.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        make_folder(parent)?;
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        // Another process may have been faster.
        Err(error) if !folder.is_dir() => Err(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                io::Error::other(format!("{} is in the way: it is no folder", folder.display()))
            }
            _ => error,
        }),
        _ => sync_folder(folder),
    }
}

/// Makes the entry of this path in its folder durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Elsewhere a folder cannot be opened, and its entries are durable by themselves.
    if cfg!(unix) { File::open(parent)?.sync_all() } else { Ok(()) }
}

/// A new file `<name>.torn-N` beside the session.
fn torn_file(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".torn-{number}"));
        match private().create_new(true).open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            file => return Ok((name.into(), file?)),
        }
    }
}

//! [`SessionFile`]: a session file as its writer sees it. The file is created with the first write,
//! readable by its owner only, locked against other writers, and never left longer than what is
//! durable.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hardpan_files::{FileLines, RegularFile, UnreadableReason, read_lines};

use crate::entry::Header;
use crate::log_error::{LogAction, LogError, LogErrorCause};

/// An open session file, and how much of it is durable.
pub(crate) struct SessionFile {
    path: PathBuf,
    /// `None` before the first write.
    file: Option<File>,
    /// Written before the first entry of a new file; `None` for a file that existed.
    header: Option<Header>,
    durable_bytes: u64,
    /// Whether a failed write may have left bytes after the durable part.
    has_torn_tail: bool,
}

impl SessionFile {
    /// A new session; its file is created with the first write.
    pub(crate) fn create_lazily(path: &Path, header: Header) -> Self {
        SessionFile {
            path: path.to_owned(),
            file: None,
            header: Some(header),
            durable_bytes: 0,
            has_torn_tail: false,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens and locks an existing file, and returns its content.
    pub(crate) fn open(path: &Path) -> Result<(Self, FileLines), LogError> {
        let failed = |reason: UnreadableReason| LogError::io(path, LogAction::Open, reason.into());
        let mut options = OpenOptions::new();
        let mut file = RegularFile::open_with(path, options.read(true).append(true)).map_err(failed)?;
        lock_file(&file.file, path)?;
        let lines = read_lines(&mut file).map_err(failed)?;
        let disk = SessionFile {
            path: path.to_owned(),
            file: Some(file.file),
            header: None,
            durable_bytes: lines.file_bytes,
            has_torn_tail: false,
        };
        Ok((disk, lines))
    }

    /// Appends the bytes and makes them durable. On failure the file is left as it was.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        if self.file.is_none() {
            self.file = Some(create_file(&self.path)?);
        }
        let written = match &self.header {
            Some(header) if self.durable_bytes == 0 => {
                self.write(&[header.to_line().as_bytes(), bytes].concat())
            }
            _ => self.write(bytes),
        };
        if written.is_err() {
            // The next write tries again where this fails.
            let _ = self.discard_torn_tail();
        }
        written.map_err(|error| LogError::io(&self.path, LogAction::Write, error))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.discard_torn_tail()?;
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        self.has_torn_tail = true;
        file.write_all(bytes)?;
        file.sync_data()?;
        self.has_torn_tail = false;
        self.durable_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Cuts off what a failed write left after the durable part.
    fn discard_torn_tail(&mut self) -> io::Result<()> {
        if let (true, Some(file)) = (self.has_torn_tail, &self.file) {
            file.set_len(self.durable_bytes)?;
            self.has_torn_tail = false;
        }
        Ok(())
    }

    /// Cuts an unfinished last line off the file and keeps it in a new file beside it, whose path
    /// is returned.
    pub(crate) fn cut_tail(&mut self, tail: &[u8]) -> Result<PathBuf, LogError> {
        let keep = || {
            let (beside, mut file) = create_torn_file(&self.path)?;
            file.write_all(tail)?;
            file.sync_all()?;
            sync_parent_folder(&beside)?;
            Ok(beside)
        };
        let failed = |error: io::Error| LogError::io(&self.path, LogAction::Repair, error);
        let kept = keep().map_err(failed)?;
        self.durable_bytes -= tail.len() as u64;
        self.has_torn_tail = true;
        self.discard_torn_tail().map_err(|error| LogError::io(&self.path, LogAction::Repair, error))?;
        Ok(kept)
    }
}

impl Drop for SessionFile {
    /// Removes a new file into which nothing could be written.
    fn drop(&mut self) {
        let is_ours = self.header.is_some();
        if is_ours && self.durable_bytes == 0 && self.file.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// How often a lock is tried for that somebody else holds, and the pause in between.
const LOCK_TRIES: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Takes the exclusive lock, so that a session has one writer. A lock that was just released may be held a moment
/// longer: a program that is being started has inherited it, until it begins to run.
pub(crate) fn lock_file(file: &File, path: &Path) -> Result<(), LogError> {
    let mut locked = file.try_lock();
    for _ in 1..LOCK_TRIES {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(LOCK_PAUSE);
        locked = file.try_lock();
    }
    locked.map_err(|error| match error {
        TryLockError::WouldBlock => LogError::new(path, LogErrorCause::Busy),
        TryLockError::Error(error) => LogError::io(path, LogAction::Lock, error),
    })
}

/// Creates the file and the folders above it, readable by their owner only, and locks it.
fn create_file(path: &Path) -> Result<File, LogError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => LogError::new(path, LogErrorCause::Exists),
        // The file is new, so what is missing is a folder above it, which cannot be created.
        io::ErrorKind::NotFound => LogError::new(path, LogErrorCause::NoFolder(error.into())),
        _ => LogError::io(path, LogAction::Create, error),
    };
    let make = || {
        create_folder_durably(path.parent().unwrap_or(Path::new("")))?;
        let file = private_append_options().create_new(true).open(path)?;
        sync_parent_folder(path)?;
        Ok(file)
    };
    let file = make().map_err(failed)?;
    lock_file(&file, path)?;
    Ok(file)
}

/// Options for appending to a file that only its owner can read.
fn private_append_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates missing folders from the top down, each durable before the next.
fn create_folder_durably(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        create_folder_durably(parent)?;
    }
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        // Another process may have been faster.
        Err(error) if !folder.is_dir() => Err(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                io::Error::other(format!("{} is in the way: it is not a folder", folder.display()))
            }
            _ => error,
        }),
        _ => sync_parent_folder(folder),
    }
}

/// Makes the directory entry of this path durable.
fn sync_parent_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Elsewhere a folder cannot be opened, and its entries are durable by themselves.
    if cfg!(unix) { File::open(parent)?.sync_all() } else { Ok(()) }
}

/// Creates a new file `<name>.torn-N` beside the session.
fn create_torn_file(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut number = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".torn-{number}"));
        match private_append_options().create_new(true).open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            file => return Ok((name.into(), file?)),
        }
    }
}

//! [`AnchoredFile`]: a file reached through its opened parent folder, so that nobody can slip in a
//! symbolic link between the permission check and the write.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hardpan_files::{FileGuard, OpenFolder, RegularFile, UnreadableReason};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

/// The largest file that `write` and `edit` change, in bytes. For larger ones a command such as sed
/// is the better tool.
pub(crate) const SIZE_LIMIT: u64 = 32 * 1024 * 1024;

/// An open folder and a file name in it. The file itself need not exist.
#[derive(Debug)]
pub(crate) struct AnchoredFile {
    folder: File,
    name: OsString,
    /// Folders that [`AnchoredFile::open`] created, outermost first.
    pub created_folders: Vec<PathBuf>,
}

/// The content of a file, with what is needed to notice that somebody else changed it since.
#[derive(Clone, Debug)]
pub(crate) struct FileContent {
    /// The whole content, at most [`SIZE_LIMIT`] bytes.
    pub bytes: Vec<u8>,
    /// The permission bits, without the file type.
    pub mode: u32,
    file_stamp: FileStamp,
}

/// Values of which at least one changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: i64,
    modified: (i64, i64),
}

/// Why a file cannot be changed. Each message continues a sentence that begins with the file's
/// name.
#[derive(Debug, Error)]
pub(crate) enum FileChangeError {
    #[error("lies in a folder that does not exist")]
    NoFolder,
    #[error("lies behind a link or a file where a folder was expected: use the real path")]
    NotAFolder,
    #[error("is a directory: name a file in it")]
    Directory,
    #[error("is a link that leads nowhere: remove the link first, or name its target")]
    Dangling,
    #[error("is a device, a pipe or a socket, not a regular file: choose another name")]
    Special,
    #[error("is read-only: if it is meant to be changed, make it writable first (chmod u+w)")]
    ReadOnly,
    #[error("holds more than {} MiB: change it with a command instead", SIZE_LIMIT >> 20)]
    TooLarge,
    #[error("is another name of a file with keys or permissions, which tools do not use")]
    Hidden,
    #[error("was changed by something else at the same moment: read it and try again")]
    Raced,
    #[error("cannot be changed: there is no space left on the disk")]
    Full,
    #[error("cannot be changed: {0}")]
    Io(#[source] io::Error),
}

impl From<Errno> for FileChangeError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOSPC | Errno::DQUOT => FileChangeError::Full,
            Errno::NOENT => FileChangeError::NoFolder,
            Errno::LOOP | Errno::NOTDIR => FileChangeError::NotAFolder,
            Errno::ISDIR => FileChangeError::Directory,
            errno => FileChangeError::Io(errno.into()),
        }
    }
}

impl From<io::Error> for FileChangeError {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => FileChangeError::Io(error),
        }
    }
}

/// What [`AnchoredFile::open`] does about parent folders that do not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingFolders {
    /// Create them.
    Create,
    /// Fail with [`FileChangeError::NoFolder`].
    Fail,
}

impl AnchoredFile {
    /// Opens the parent folder of `place`, whose links the caller has already resolved. A link met
    /// on the way was therefore put there a moment ago, and is not followed.
    pub fn open(place: &Path, missing_folders: MissingFolders) -> Result<AnchoredFile, FileChangeError> {
        let root = rustix::fs::openat(CWD, "/", FOLDER_FLAGS, Mode::empty())?;
        AnchoredFile::open_from(root.into(), Path::new("/"), place, missing_folders)
    }

    /// The same for a file below a folder that is held open.
    pub fn open_below(
        folder: &OpenFolder,
        place: &Path,
        missing_folders: MissingFolders,
    ) -> Result<AnchoredFile, FileChangeError> {
        AnchoredFile::open_from(folder.file().try_clone()?, folder.path(), place, missing_folders)
    }

    fn open_from(
        start: File,
        start_path: &Path,
        place: &Path,
        missing_folders: MissingFolders,
    ) -> Result<AnchoredFile, FileChangeError> {
        let below = place.strip_prefix(start_path).map_err(|_| FileChangeError::NotAFolder)?;
        let (Some(parent), Some(name)) = (below.parent(), below.file_name()) else {
            return Err(FileChangeError::Directory);
        };
        let mut created_folders = Vec::new();
        let (mut folder, mut way) = (start, start_path.to_owned());
        for part in parent.components() {
            let Component::Normal(name) = part else { return Err(FileChangeError::NotAFolder) };
            way.push(name);
            folder = open_folder(&folder, name, missing_folders, || created_folders.push(way.clone()))?;
        }
        Ok(AnchoredFile { folder, name: name.to_owned(), created_folders })
    }

    /// Reads the file, if the guard does not hide it: another name of it may be hidden. `None`
    /// where there is none.
    pub fn read_guarded(
        &self,
        guard: &FileGuard,
        place: &Path,
    ) -> Result<Option<FileContent>, FileChangeError> {
        self.read_judged(|file| guard.judge(RegularFile::from_open(file)?, place).map(|file| file.file))
    }

    /// Reads the file. `None` where there is none.
    pub fn read(&self) -> Result<Option<FileContent>, FileChangeError> {
        self.read_judged(Ok)
    }

    fn read_judged(
        &self,
        judge: impl FnOnce(File) -> Result<File, UnreadableReason>,
    ) -> Result<Option<FileContent>, FileChangeError> {
        // The first check avoids opening devices. O_NONBLOCK and the second check cover a file that was
        // replaced in between.
        let Some(stat) = self.stat()? else { return Ok(None) };
        require_regular_file(stat.st_mode)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: File = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?.into();
        let stat = rustix::fs::fstat(&file)?;
        require_regular_file(stat.st_mode)?;
        let file = judge(file).map_err(|reason| match reason {
            UnreadableReason::Private => FileChangeError::Hidden,
            reason => FileChangeError::Io(reason.into()),
        })?;
        let mut bytes = Vec::new();
        file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > SIZE_LIMIT {
            return Err(FileChangeError::TooLarge);
        }
        Ok(Some(FileContent {
            bytes,
            mode: u32::from(Mode::from_raw_mode(stat.st_mode)),
            file_stamp: file_stamp(&stat),
        }))
    }

    /// Atomically and durably replaces the file that was read as `found`, or leaves everything as
    /// it is. Fails if the file changed since.
    pub fn replace(&self, found: Option<&FileContent>, bytes: &[u8]) -> Result<(), FileChangeError> {
        if found.is_some_and(|found| found.mode & 0o222 == 0) {
            return Err(FileChangeError::ReadOnly);
        }
        let (create_temp_file, mut file) =
            self.create_temp_file(if found.is_some() { 0o600 } else { 0o666 })?;
        let written = || -> Result<(), FileChangeError> {
            file.write_all(bytes)?;
            if let Some(found) = found {
                rustix::fs::fchmod(&file, Mode::from_raw_mode(found.mode as rustix::fs::RawMode))?;
            }
            file.sync_all()?;
            self.ensure_unchanged(found)?;
            Ok(rustix::fs::renameat(&self.folder, &create_temp_file, &self.folder, &self.name)?)
        };
        let written = { written }();
        match written {
            Ok(()) => self.sync(),
            Err(_) => drop(rustix::fs::unlinkat(&self.folder, &create_temp_file, AtFlags::empty())),
        }
        written
    }

    /// Creates the file, which must not be there, with these permission bits.
    pub fn create(&self, bytes: &[u8], mode: Option<u32>) -> Result<(), FileChangeError> {
        self.replace(None, bytes)?;
        if let Some(mode) = mode {
            let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
            rustix::fs::chmodat(&self.folder, &self.name, mode, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Removes the file that was read as `found`, unless it changed since.
    pub fn remove(&self, found: &FileContent) -> Result<(), FileChangeError> {
        self.ensure_unchanged(Some(found))?;
        rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?;
        self.sync();
        Ok(())
    }

    fn ensure_unchanged(&self, found: Option<&FileContent>) -> Result<(), FileChangeError> {
        let now = self.stat()?.map(|stat| file_stamp(&stat));
        if now == found.map(|found| found.file_stamp) { Ok(()) } else { Err(FileChangeError::Raced) }
    }

    fn stat(&self) -> Result<Option<rustix::fs::Stat>, FileChangeError> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Creates a temporary file in the same folder: a rename does not cross file systems.
    fn create_temp_file(&self, mode: u32) -> Result<(String, File), FileChangeError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!(".hardpan-{}-{count}.tmp", std::process::id());
            let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
            match rustix::fs::openat(&self.folder, &name, flags, mode) {
                Ok(file) => return Ok((name, file.into())),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Makes a rename durable by syncing the folder. Errors are ignored: not every file system can
    /// do it, and the change itself has happened.
    fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(folder) = rustix::fs::openat(&self.folder, ".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(folder);
        }
    }
}

// O_PATH: folders that can be traversed but not listed are no obstacle.
#[cfg(target_os = "linux")]
const FOLDER_FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const FOLDER_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn open_folder(
    folder: &File,
    name: &OsStr,
    missing_folders: MissingFolders,
    on_created: impl FnOnce(),
) -> Result<File, FileChangeError> {
    match rustix::fs::openat(folder, name, FOLDER_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) if missing_folders == MissingFolders::Create => {
            match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => on_created(),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            Ok(rustix::fs::openat(folder, name, FOLDER_FLAGS, Mode::empty())?.into())
        }
        opened => Ok(opened?.into()),
    }
}

fn require_regular_file(mode: rustix::fs::RawMode) -> Result<(), FileChangeError> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileChangeError::Directory),
        FileType::Symlink => Err(FileChangeError::Dangling),
        _ => Err(FileChangeError::Special),
    }
}

#[allow(clippy::unnecessary_cast, reason = "the widths differ from system to system")]
fn file_stamp(stat: &rustix::fs::Stat) -> FileStamp {
    FileStamp {
        inode: stat.st_ino as u64,
        size: stat.st_size as i64,
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
    }
}

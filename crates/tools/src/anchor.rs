//! One file, held by its open folder, so that no link can be slipped in between the check and the use.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

/// The largest file that is changed: above it, a command such as sed is the better tool.
pub(crate) const SIZE_LIMIT: u64 = 32 * 1024 * 1024;

/// A place in the tree: an open folder, and a name in it.
#[derive(Debug)]
pub(crate) struct Anchor {
    folder: File,
    name: OsString,
    /// Folders that had to be made, outermost first.
    pub made: Vec<PathBuf>,
}

/// A file as it was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// What it holds.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
    stamp: Stamp,
}

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: i64,
    modified: (i64, i64),
}

/// Why a file cannot be changed. The words follow its name.
#[derive(Debug, Error)]
pub(crate) enum Trouble {
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
    #[error("was changed by something else at the same moment: read it and try again")]
    Raced,
    #[error("cannot be changed: there is no space left on the disk")]
    Full,
    #[error("cannot be changed: {0}")]
    Io(io::Error),
}

impl From<Errno> for Trouble {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOSPC | Errno::DQUOT => Trouble::Full,
            Errno::NOENT => Trouble::NoFolder,
            Errno::LOOP | Errno::NOTDIR => Trouble::NotAFolder,
            Errno::ISDIR => Trouble::Directory,
            errno => Trouble::Io(errno.into()),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Trouble::Io(error),
        }
    }
}

/// What to do about folders that are missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folders {
    /// Make them.
    Make,
    /// That is an error.
    Need,
}

impl Anchor {
    /// Takes hold of a place whose links were resolved before. A link on the way is therefore one that has just
    /// been put there, and not followed.
    pub fn of(place: &Path, folders: Folders) -> Result<Anchor, Trouble> {
        let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(Trouble::Directory);
        };
        let mut made = Vec::new();
        let mut way = PathBuf::new();
        let mut folder: Option<File> = None;
        for part in parent.components() {
            way.push(part);
            let next = match (&folder, part) {
                (Some(folder), Component::Normal(name)) => {
                    step(folder, name, folders, || made.push(way.clone()))?
                }
                (None, Component::RootDir) => rustix::fs::openat(CWD, "/", ON_THE_WAY, Mode::empty())?.into(),
                _ => return Err(Trouble::NotAFolder),
            };
            folder = Some(next);
        }
        let folder = folder.ok_or(Trouble::NotAFolder)?;
        Ok(Anchor { folder, name: name.to_owned(), made })
    }

    /// What is there now; nothing is `None`.
    pub fn find(&self) -> Result<Option<Found>, Trouble> {
        // The look before keeps us from opening devices; O_NONBLOCK and the look after, from being cheated.
        let Some(stat) = self.stat()? else { return Ok(None) };
        regular(stat.st_mode)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file: File = rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?.into();
        let stat = rustix::fs::fstat(&file)?;
        regular(stat.st_mode)?;
        let mut bytes = Vec::new();
        file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > SIZE_LIMIT {
            return Err(Trouble::TooLarge);
        }
        Ok(Some(Found { bytes, mode: u32::from(Mode::from_raw_mode(stat.st_mode)), stamp: stamp(&stat) }))
    }

    /// Puts new content in place of what was found, at once and durably, or leaves everything as it is.
    pub fn replace(&self, found: Option<&Found>, bytes: &[u8]) -> Result<(), Trouble> {
        if found.is_some_and(|found| found.mode & 0o222 == 0) {
            return Err(Trouble::ReadOnly);
        }
        let (temp, mut file) = self.temp(if found.is_some() { 0o600 } else { 0o666 })?;
        let written = || -> Result<(), Trouble> {
            file.write_all(bytes)?;
            if let Some(found) = found {
                rustix::fs::fchmod(&file, Mode::from_raw_mode(found.mode as rustix::fs::RawMode))?;
            }
            file.sync_all()?;
            self.unchanged(found)?;
            Ok(rustix::fs::renameat(&self.folder, &temp, &self.folder, &self.name)?)
        };
        let written = { written }();
        match written {
            Ok(()) => self.sync(),
            Err(_) => drop(rustix::fs::unlinkat(&self.folder, &temp, AtFlags::empty())),
        }
        written
    }

    /// Removes what was found.
    pub fn remove(&self, found: &Found) -> Result<(), Trouble> {
        self.unchanged(Some(found))?;
        rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?;
        self.sync();
        Ok(())
    }

    fn unchanged(&self, found: Option<&Found>) -> Result<(), Trouble> {
        let now = self.stat()?.map(|stat| stamp(&stat));
        if now == found.map(|found| found.stamp) { Ok(()) } else { Err(Trouble::Raced) }
    }

    fn stat(&self) -> Result<Option<rustix::fs::Stat>, Trouble> {
        match rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// A new file beside the one that it will replace: a rename does not cross file systems.
    fn temp(&self, mode: u32) -> Result<(String, File), Trouble> {
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

    /// Makes a rename durable. Not every file system can; the change itself is done.
    fn sync(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(folder) = rustix::fs::openat(&self.folder, ".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(folder);
        }
    }
}

// A folder that may be passed but not listed is no obstacle, where the system can tell the two apart.
#[cfg(target_os = "linux")]
const ON_THE_WAY: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const ON_THE_WAY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn step(folder: &File, name: &OsStr, folders: Folders, made: impl FnOnce()) -> Result<File, Trouble> {
    match rustix::fs::openat(folder, name, ON_THE_WAY, Mode::empty()) {
        Err(Errno::NOENT) if folders == Folders::Make => {
            match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => made(),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            Ok(rustix::fs::openat(folder, name, ON_THE_WAY, Mode::empty())?.into())
        }
        opened => Ok(opened?.into()),
    }
}

fn regular(mode: rustix::fs::RawMode) -> Result<(), Trouble> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Trouble::Directory),
        FileType::Symlink => Err(Trouble::Dangling),
        _ => Err(Trouble::Special),
    }
}

#[allow(clippy::unnecessary_cast, reason = "the widths differ from system to system")]
fn stamp(stat: &rustix::fs::Stat) -> Stamp {
    Stamp {
        inode: stat.st_ino as u64,
        size: stat.st_size as i64,
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
    }
}

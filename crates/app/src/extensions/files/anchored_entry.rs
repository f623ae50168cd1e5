//! [`AnchoredEntry`]: an entry of a folder held open, so that nobody can slip in a link between the check
//! of a path and what is done there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// How deep the folders are that are removed with all their content.
const MAX_DEPTH: usize = 200;

#[cfg(target_os = "linux")]
const FOLDER_FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const FOLDER_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What is done about folders on the way that do not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MissingFolders {
    Create,
    Fail,
}

/// An open folder and a name in it. There need not be anything of this name.
pub struct AnchoredEntry {
    folder: File,
    name: OsString,
}

impl AnchoredEntry {
    /// Opens the parent folder of `place`, whose links the caller has resolved. A link on the way was
    /// therefore put there a moment ago, and is not followed.
    pub fn open(place: &Path, missing: MissingFolders) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (place.parent(), place.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let mut folder: File = rustix::fs::openat(CWD, "/", FOLDER_FLAGS, Mode::empty())?.into();
        for part in parent.components() {
            match part {
                Component::RootDir => {}
                Component::Normal(name) => folder = open_folder(&folder, name, missing)?,
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        Ok(AnchoredEntry { folder, name: name.to_owned() })
    }

    /// Opens the file to be written; `more` says whether it is made if it is not there.
    pub fn open_to_write(&self, more: OFlags) -> io::Result<File> {
        // NONBLOCK: opening a pipe would wait for its reader.
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, &self.name, flags | more, Mode::from_raw_mode(0o666))?;
        Ok(file.into())
    }

    /// Opens the file to be read.
    pub fn open_to_read(&self) -> io::Result<File> {
        // NONBLOCK: opening a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.folder, &self.name, flags, Mode::empty())?.into())
    }

    /// What it is; a link is not followed.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The names in the folder in order, with those of folders below it if `recursive`. Links are not
    /// followed.
    pub fn list(&self, recursive: bool, max_entries: usize) -> io::Result<Vec<(String, FileType)>> {
        let mut found = Vec::new();
        let depth = if recursive { MAX_DEPTH } else { 0 };
        list_folder(&self.folder, &self.name, "", depth, max_entries, &mut found)?;
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// Makes a folder.
    pub fn make_folder(&self) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.folder, &self.name, Mode::from_raw_mode(0o777))?)
    }

    /// Makes a folder whose name begins with that of this entry.
    pub fn make_folder_with_suffix(&self, suffix: &str) -> io::Result<()> {
        let mut name = self.name.clone();
        name.push(suffix);
        Ok(rustix::fs::mkdirat(&self.folder, &name, Mode::from_raw_mode(0o700))?)
    }

    /// Whether there is a folder of this name, which is no link.
    pub fn is_folder(&self) -> bool {
        matches!(kind_of(&self.folder, &self.name), Ok(FileType::Directory))
    }

    /// Moves it to another place.
    pub fn rename_to(&self, other: &AnchoredEntry) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, &self.name, &other.folder, &other.name)?)
    }

    /// Removes a file, or the link itself.
    pub fn remove_file(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    pub fn remove_folder(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a folder with everything in it. Links in it are removed, and not followed.
    pub fn remove_tree(&self) -> io::Result<()> {
        remove_tree(&self.folder, &self.name, MAX_DEPTH)
    }

    /// Whether it is a folder; an error if there is nothing of this name.
    pub fn holds_folder(&self) -> io::Result<bool> {
        Ok(kind_of(&self.folder, &self.name)? == FileType::Directory)
    }
}

fn list_folder(
    parent: &File,
    name: &OsStr,
    prefix: &str,
    depth: usize,
    max_entries: usize,
    found: &mut Vec<(String, FileType)>,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder: File = rustix::fs::openat(parent, name, flags, Mode::empty())?.into();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if found.len() >= max_entries {
            return Err(io::Error::other(format!("there are more than {max_entries} entries")));
        }
        let kind = match entry.file_type() {
            FileType::Unknown => kind_of(&folder, name)?,
            kind => kind,
        };
        let path = format!("{prefix}{}", name.to_string_lossy());
        found.push((path.clone(), kind));
        if kind == FileType::Directory && depth > 0 {
            list_folder(&folder, name, &format!("{path}/"), depth - 1, max_entries, found)?;
        }
    }
    Ok(())
}

fn kind_of(folder: &File, name: &OsStr) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

fn open_folder(folder: &File, name: &OsStr, missing: MissingFolders) -> io::Result<File> {
    match rustix::fs::openat(folder, name, FOLDER_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) if missing == MissingFolders::Create => {
            match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            Ok(rustix::fs::openat(folder, name, FOLDER_FLAGS, Mode::empty())?.into())
        }
        opened => Ok(opened?.into()),
    }
}

fn remove_tree(parent: &File, name: &OsStr, depth: usize) -> io::Result<()> {
    if kind_of(parent, name)? != FileType::Directory {
        return Ok(rustix::fs::unlinkat(parent, name, AtFlags::empty())?);
    }
    if depth == 0 {
        return Err(io::Error::other("its folders are too deep"));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder: File = rustix::fs::openat(parent, name, flags, Mode::empty())?.into();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            remove_tree(&folder, name, depth - 1)?;
        }
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

//! [`AnchoredEntry`]: an entry of a folder held open, so that nobody can slip in a link between the check
//! of a path and what is done there.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use hardpan_files::is_git_name;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::disk_use::freed_bytes;

/// How deep the folders are that are listed, moved or removed with all their content.
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

    /// What it is; a link is not followed.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The names in the folder in order, with those in the folders below it that `may_enter` takes, by
    /// their path from this one. Links are not followed.
    pub fn list(
        &self,
        may_enter: &dyn Fn(&str) -> bool,
        max_entries: usize,
    ) -> io::Result<Vec<(String, FileType)>> {
        let mut found = Vec::new();
        list_folder(&self.folder, &self.name, "", MAX_DEPTH, may_enter, max_entries, &mut found)?;
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// Makes a folder; `mode` says who may use it.
    pub fn make_folder(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.folder, &self.name, Mode::from_raw_mode(mode))?)
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

    /// Removes a folder with everything in it, and counts what is free then. Links in it are removed, and
    /// not followed. `spares_git`: at a `.git` it ends with an error.
    pub fn remove_tree(&self, spares_git: bool, freed: &mut u64) -> io::Result<()> {
        remove_tree(&self.folder, &self.name, MAX_DEPTH, spares_git, freed)
    }

    /// Whether it is a `.git`, or a folder with one in it or below. Links are not followed.
    pub fn holds_git(&self) -> io::Result<bool> {
        holds_git(&self.folder, &self.name, MAX_DEPTH)
    }
}

fn list_folder(
    parent: &File,
    name: &OsStr,
    prefix: &str,
    depth: usize,
    may_enter: &dyn Fn(&str) -> bool,
    max_entries: usize,
    found: &mut Vec<(String, FileType)>,
) -> io::Result<()> {
    let folder = open_to_list(parent, name)?;
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
        if kind == FileType::Directory && depth > 0 && may_enter(&path) {
            list_folder(&folder, name, &format!("{path}/"), depth - 1, may_enter, max_entries, found)?;
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

fn remove_tree(
    parent: &File,
    name: &OsStr,
    depth: usize,
    spares_git: bool,
    freed: &mut u64,
) -> io::Result<()> {
    // It may have been put there since it was looked for.
    if spares_git && is_git_name(name) {
        return Err(git_error());
    }
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if is_folder {
        let (folder, depth) = (open_to_list(parent, name)?, below(depth)?);
        for name in names_in(&folder)? {
            remove_tree(&folder, &name?, depth, spares_git, freed)?;
        }
    }
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    rustix::fs::unlinkat(parent, name, flags)?;
    *freed += freed_bytes(&found);
    Ok(())
}

fn holds_git(parent: &File, name: &OsStr, depth: usize) -> io::Result<bool> {
    if is_git_name(name) {
        return Ok(true);
    }
    if kind_of(parent, name)? != FileType::Directory {
        return Ok(false);
    }
    let (folder, depth) = (open_to_list(parent, name)?, below(depth)?);
    for name in names_in(&folder)? {
        if holds_git(&folder, &name?, depth)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Why something stays: it has a `.git` in it.
pub fn git_error() -> io::Error {
    let reason = "there is a .git, which extensions neither write nor move nor remove: use git commands";
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

fn open_to_list(parent: &File, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?.into())
}

fn below(depth: usize) -> io::Result<usize> {
    depth.checked_sub(1).ok_or_else(|| io::Error::other("its folders are too deep"))
}

fn names_in(folder: &File) -> io::Result<impl Iterator<Item = io::Result<OsString>>> {
    let entries = Dir::read_from(folder)?;
    let names = entries.map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned()));
    Ok(names.filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == "..")))
}

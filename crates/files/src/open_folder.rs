//! [`OpenFolder`]: a folder held open, below which files are opened. No link leads out of it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::{RegularFile, UnreadableReason};

/// How often a path is resolved anew because something on it changed meanwhile.
const ATTEMPTS: usize = 8;

/// A folder held open. Everything below it is reached from its descriptor, so that it stays the
/// same folder whatever happens to its name.
#[derive(Debug)]
pub struct OpenFolder {
    folder: File,
    path: PathBuf,
}

impl OpenFolder {
    /// Opens a folder, through links.
    pub fn open(path: &Path) -> io::Result<OpenFolder> {
        let path = path.canonicalize()?;
        let folder = rustix::fs::openat(CWD, &path, FOLDER_FLAGS, Mode::empty())?;
        Ok(OpenFolder { folder: folder.into(), path })
    }

    /// The folder's path without links, as it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor, from which names are opened.
    pub fn file(&self) -> &File {
        &self.folder
    }

    /// Opens a regular file below the folder. Links are followed as long as they stay below.
    pub fn open_file(&self, relative: &Path) -> Result<RegularFile, UnreadableReason> {
        RegularFile::from_open(self.open_below(relative, OFlags::RDONLY)?)
    }

    /// Opens a folder below this one, to list it.
    pub fn open_subfolder(&self, relative: &Path) -> Result<File, UnreadableReason> {
        self.open_below(relative, OFlags::RDONLY.union(OFlags::DIRECTORY))
    }

    /// Opens a folder below this one to list it, if no link is on the way.
    pub fn open_real_subfolder(&self, relative: &Path) -> Result<File, UnreadableReason> {
        let flags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
        let opened = match open_beneath_without_links(&self.folder, relative, flags) {
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
                open_without_links(&self.folder, relative, flags)
            }
            opened => opened,
        };
        opened.map(File::from).map_err(|errno| self.reason(errno))
    }

    fn open_below(&self, relative: &Path, flags: OFlags) -> Result<File, UnreadableReason> {
        // NONBLOCK: opening a pipe would wait for its writer.
        let flags = flags.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let mut found = Err(Errno::AGAIN);
        for _ in 0..ATTEMPTS {
            found = open_beneath(&self.folder, relative, flags);
            if matches!(found, Err(Errno::XDEV | Errno::NOSYS | Errno::PERM | Errno::LOOP | Errno::INVAL)) {
                // An absolute link may still lead below; and old kernels cannot do it at once.
                found = self.open_step_by_step(relative, flags)?;
            }
            match found {
                // Something on the way changed.
                Err(Errno::AGAIN) => {}
                found => return found.map(File::from).map_err(|errno| self.reason(errno)),
            }
        }
        found.map(File::from).map_err(|errno| self.reason(errno))
    }

    /// Resolves the links by name, and then opens the resolved path below the folder without
    /// following any.
    fn open_step_by_step(
        &self,
        relative: &Path,
        flags: OFlags,
    ) -> Result<Result<OwnedFd, Errno>, UnreadableReason> {
        let real = self.path.join(relative).canonicalize()?;
        let Ok(below) = real.strip_prefix(&self.path) else { return Err(UnreadableReason::Outside) };
        Ok(match open_without_links(&self.folder, below, flags) {
            // A link was put in the way of a path that had none.
            Err(Errno::LOOP | Errno::NOTDIR) => Err(Errno::AGAIN),
            opened => opened,
        })
    }

    fn reason(&self, errno: Errno) -> UnreadableReason {
        match errno {
            // Opening a socket, or a device that is not there.
            Errno::NXIO => UnreadableReason::Special("a socket or a device"),
            Errno::XDEV => UnreadableReason::Outside,
            errno => io::Error::from(errno).into(),
        }
    }
}

// O_PATH: a folder that can be traversed but not listed is no obstacle.
#[cfg(target_os = "linux")]
const FOLDER_FLAGS: OFlags =
    OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const FOLDER_FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[cfg(target_os = "linux")]
fn open_beneath(folder: &File, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
    rustix::fs::openat2(folder, relative, flags, Mode::empty(), resolve)
}

#[cfg(target_os = "linux")]
fn open_beneath_without_links(folder: &File, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
    let resolve = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);
    rustix::fs::openat2(folder, relative, flags, Mode::empty(), resolve)
}

#[cfg(not(target_os = "linux"))]
fn open_beneath_without_links(_: &File, _: &Path, _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(_: &File, _: &Path, _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Opens a path without `..` below a folder, one name after the other. A link is an error.
fn open_without_links(folder: &File, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let names: Vec<_> = relative.components().filter(|part| *part != Component::CurDir).collect();
    let Some((last, above)) = names.split_last() else {
        return rustix::fs::openat(folder, ".", flags, Mode::empty());
    };
    let mut here: Option<File> = None;
    for part in above {
        let Component::Normal(name) = part else { return Err(Errno::XDEV) };
        let next = rustix::fs::openat(here.as_ref().unwrap_or(folder), *name, FOLDER_FLAGS, Mode::empty())?;
        here = Some(next.into());
    }
    let Component::Normal(name) = last else { return Err(Errno::XDEV) };
    rustix::fs::openat(here.as_ref().unwrap_or(folder), *name, flags.union(OFlags::NOFOLLOW), Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(folder: &OpenFolder, path: &str) -> Result<Vec<u8>, String> {
        let opened = folder.open_file(Path::new(path)).and_then(|file| file.read_all(100));
        opened.map_err(|reason| format!("{reason:?}"))
    }

    /// The same by resolving and opening step by step, as on a kernel without `openat2`.
    fn read_step_by_step(folder: &OpenFolder, path: &str) -> Result<Vec<u8>, String> {
        let flags = OFlags::RDONLY.union(OFlags::NONBLOCK);
        let opened = folder
            .open_step_by_step(Path::new(path), flags)
            .and_then(|opened| opened.map_err(|errno| folder.reason(errno)))
            .and_then(|file| RegularFile::from_open(file.into())?.read_all(100));
        opened.map_err(|reason| format!("{reason:?}"))
    }

    #[test]
    fn links_are_followed_as_long_as_they_stay_below() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let root = place.join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "inside").unwrap();
        fs::write(place.join("secret"), "secret").unwrap();
        let link = |name: &str, target: &Path| symlink(target, root.join(name)).unwrap();
        link("near", Path::new("a/file"));
        link("absolute", &root.join("a/file"));
        link("around", Path::new("../root/a/file"));
        link("folder", Path::new("a/b"));
        link("out", Path::new("../secret"));
        link("far", &place.join("secret"));
        link("loop", Path::new("loop"));
        link("zero", Path::new("/dev/zero"));
        link("magic", Path::new("/proc/self/root"));
        let mut chain = "a/file".to_owned();
        for n in 0..50 {
            link(&format!("chain{n}"), Path::new(&chain));
            chain = format!("chain{n}");
        }
        let folder = OpenFolder::open(&root).unwrap();
        for read in [read, read_step_by_step] {
            for path in ["a/file", "near", "absolute", "around", "folder/../file", "./a//file", "chain9"] {
                assert_eq!(read(&folder, path), Ok(b"inside".to_vec()), "{path}");
            }
            let secret = place.join("secret");
            for path in ["out", "far", "../secret", secret.to_str().unwrap(), "zero", "magic/etc/passwd"] {
                assert_eq!(read(&folder, path), Err("Outside".into()), "{path}");
            }
            for path in ["loop", "chain49"] {
                assert!(read(&folder, path).unwrap_err().contains("FilesystemLoop"), "{path}");
            }
            assert_eq!(read(&folder, "a"), Err("Directory".into()));
            assert_eq!(read(&folder, "folder"), Err("Directory".into()));
            assert_eq!(read(&folder, "none"), Err("Missing".into()));
            assert_eq!(read(&folder, "a/file/x"), Err("Missing".into()));
        }
    }

    #[test]
    fn the_folder_stays_the_same_when_its_name_is_taken() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "first").unwrap();
        let folder = OpenFolder::open(&root).unwrap();
        fs::rename(&root, place.path().join("moved")).unwrap();
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "second").unwrap();
        assert_eq!(read(&folder, "a"), Ok(b"first".to_vec()));
    }
}

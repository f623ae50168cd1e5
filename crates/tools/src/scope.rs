//! Which files a call may touch.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use hardpan_workspace::display_path;
use thiserror::Error;

use crate::limits::one_line;
use crate::tool::Outcome;

/// Where tools work: a workspace, and what the person allowed beside it.
///
/// A relative path is meant from the folder. Where nothing is there it is meant from the root, since trees and maps name
/// files from the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The folder that relative paths are meant from.
    pub folder: PathBuf,
    /// The workspace: the repository, or the folder itself.
    pub root: PathBuf,
    /// Further folders that may be read.
    pub readable: Vec<PathBuf>,
    /// Files and folders that are neither read nor written, wherever they lie: where keys are, and what the person allowed.
    pub hidden: Vec<PathBuf>,
}

/// A path that a call must not touch, as it was given, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutOfScope {
    /// It lies elsewhere.
    #[error(
        "{path} is outside of the workspace. Only files below the working directory's project can be used; ask the user to add the folder to `readable` in the settings if you need it"
    )]
    Outside {
        /// The path.
        path: String,
    },
    /// It lies elsewhere, and was to be changed.
    #[error("{path} is outside of the workspace: only files in the workspace can be changed")]
    Unwritable {
        /// The path.
        path: String,
    },
    /// It is the person's alone.
    #[error(
        "{path} holds the user's keys or permissions, which tools neither read nor write: ask the user to change it"
    )]
    Hidden {
        /// The path.
        path: String,
    },
    /// It belongs to git.
    #[error(
        "{path} lies in .git, which tools never write to: a hook or a setting there runs programs. Use git commands"
    )]
    Git {
        /// The path.
        path: String,
    },
    /// It names nothing.
    #[error("The path is empty: name a file, or `.` for the working folder")]
    Empty,
    /// No system has such a name.
    #[error("{path:?} holds a NUL character, which no path can: leave it out")]
    Nul {
        /// The path.
        path: String,
    },
    /// A shell would have put the home folder there.
    #[error("{path}: `~` is not expanded: name the path from the working folder, or from `/`")]
    Tilde {
        /// The path.
        path: String,
    },
    /// It goes up from where nothing is.
    #[error("{path} goes up (`..`) from a folder that does not exist: name the path without it")]
    Unclear {
        /// The path.
        path: String,
    },
    /// The way to it breaks off.
    #[error("{path} cannot be followed: {why}")]
    Broken {
        /// The path.
        path: String,
        /// What the system says, or which link is broken.
        why: String,
    },
}

impl From<OutOfScope> for Outcome {
    fn from(error: OutOfScope) -> Self {
        Outcome::failed(error.to_string())
    }
}

impl Scope {
    /// The scope of a workspace, with nothing beside it.
    pub fn new(root: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Scope { folder: folder.into(), root: root.into(), readable: Vec::new(), hidden: Vec::new() }
    }

    /// The real place of a path that is to be read, links resolved. There may be nothing there.
    pub fn to_read(&self, path: &str) -> Result<PathBuf, OutOfScope> {
        let place = self.place(path)?;
        let (bounds, named) = (self.bounds(), || path.to_owned());
        if bounds.hides(&place) {
            return Err(OutOfScope::Hidden { path: named() });
        }
        if bounds.holds(&place) { Ok(place) } else { Err(OutOfScope::Outside { path: named() }) }
    }

    /// The real place of a path that is to be written, links resolved: in the workspace, and not in `.git`. There may
    /// be nothing there, nor the folders above it.
    pub fn to_write(&self, path: &str) -> Result<PathBuf, OutOfScope> {
        let place = self.place(path)?;
        let named = || path.to_owned();
        let bounds = self.bounds();
        let inside = bounds.root.as_ref().and_then(|root| place.strip_prefix(root).ok());
        let inside = inside.ok_or_else(|| OutOfScope::Unwritable { path: named() })?;
        if bounds.hides(&place) {
            return Err(OutOfScope::Hidden { path: named() });
        }
        // Some file systems know no case, and call it by a short name too.
        let is_git = |name: &str| name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1");
        if inside.iter().any(|part| part.to_str().is_some_and(is_git)) {
            return Err(OutOfScope::Git { path: named() });
        }
        Ok(place)
    }

    /// How a place is called in answers, so that the name leads back to it: from the working folder where it is in the
    /// workspace, else from `/`.
    pub fn shown(&self, place: &Path) -> String {
        self.bounds().shown(place)
    }

    /// The name by which a place in the workspace is known to items and lists: from the root.
    pub fn key(&self, place: &Path) -> String {
        self.bounds().key(place)
    }

    /// The same scope with its links resolved, for many questions at once.
    pub(crate) fn bounds(&self) -> Bounds {
        let real = |folder: &PathBuf| folder.canonicalize().ok();
        Bounds {
            root: real(&self.root),
            folder: real(&self.folder),
            readable: self.readable.iter().filter_map(real).collect(),
            // Also where nothing is yet: it must not be made.
            hidden: self.hidden.iter().map(|path| resolve(path).unwrap_or_else(|_| path.clone())).collect(),
        }
    }

    fn place(&self, path: &str) -> Result<PathBuf, OutOfScope> {
        if path.is_empty() {
            return Err(OutOfScope::Empty);
        }
        let named = || path.to_owned();
        if path.contains('\0') {
            return Err(OutOfScope::Nul { path: named() });
        }
        let meant = [self.folder.join(path), self.root.join(path)];
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let found = meant.iter().find(|path| exists(path));
        if found.is_none() && Path::new(path).starts_with("~") {
            return Err(OutOfScope::Tilde { path: named() });
        }
        let above = || meant.iter().find(|path| path.parent().is_some_and(exists));
        resolve(found.or_else(above).unwrap_or(&meant[0])).map_err(|lost| match lost {
            Lost::Unclear => OutOfScope::Unclear { path: named() },
            Lost::Link(link) => {
                let why = format!("the link {} leads nowhere", link.display());
                OutOfScope::Broken { path: named(), why }
            }
            Lost::Io(error) => OutOfScope::Broken { path: named(), why: error.to_string() },
        })
    }
}

/// A scope with its links resolved. A folder that does not exist holds nothing.
pub(crate) struct Bounds {
    root: Option<PathBuf>,
    folder: Option<PathBuf>,
    readable: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
}

impl Bounds {
    /// Whether a real place is the person's alone.
    fn hides(&self, place: &Path) -> bool {
        self.hidden.iter().any(|hidden| place.starts_with(hidden))
    }

    /// Whether a real place may be read.
    pub fn holds(&self, place: &Path) -> bool {
        !self.hides(place) && self.root.iter().chain(&self.readable).any(|folder| place.starts_with(folder))
    }

    /// Whether an open file may be read: between judging a path and opening it, a link may have taken its place.
    pub fn holds_open(&self, file: &File, place: &Path) -> bool {
        let real = real_path(file).or_else(|| place.canonicalize().ok());
        real.is_some_and(|real| self.holds(&real))
    }

    /// See [`Scope::shown`].
    pub fn shown(&self, place: &Path) -> String {
        let in_root = self.root.as_ref().is_some_and(|root| place.starts_with(root));
        let up = self.folder.as_ref().filter(|_| in_root).and_then(|folder| {
            folder.ancestors().enumerate().find(|(_, ancestor)| place.starts_with(ancestor))
        });
        let name = match up {
            Some((0, folder)) => display_path(folder, place),
            Some((steps, ancestor)) if place == ancestor => vec![".."; steps].join("/"),
            Some((steps, ancestor)) => "../".repeat(steps) + &display_path(ancestor, place),
            None => place.to_string_lossy().into_owned(),
        };
        one_line(&name).into_owned()
    }

    /// See [`Scope::key`].
    pub fn key(&self, place: &Path) -> String {
        match &self.root {
            Some(root) => display_path(root, place),
            None => place.to_string_lossy().into_owned(),
        }
    }
}

/// Where the system says that an open file is.
fn real_path(file: &File) -> Option<PathBuf> {
    descriptor(file)?.read_link().ok()
}

/// A path that leads to an open file whatever happens to its name, where the system has one; else its place.
pub(crate) fn open_path(file: &File, place: &Path) -> PathBuf {
    descriptor(file).filter(|path| path.exists()).unwrap_or_else(|| place.to_owned())
}

#[cfg(target_os = "linux")]
fn descriptor(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
}

#[cfg(not(target_os = "linux"))]
fn descriptor(_: &File) -> Option<PathBuf> {
    None
}

enum Lost {
    Unclear,
    Link(PathBuf),
    Io(io::Error),
}

/// The path with every link followed and `..` taken from where they lead. Names that do not exist yet follow as they
/// are, but nothing goes up from them: nobody can say where that will lead.
fn resolve(path: &Path) -> Result<PathBuf, Lost> {
    match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(Lost::Io(error)),
        Err(_) => {}
    }
    let mut real = PathBuf::new();
    let mut missing = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if missing != Path::new("") => return Err(Lost::Unclear),
            _ if missing != Path::new("") => missing.push(part),
            _ => {
                let next = real.join(part);
                match next.canonicalize() {
                    Ok(place) => real = place,
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(Lost::Io(error)),
                    Err(_) if next.symlink_metadata().is_ok() => return Err(Lost::Link(next)),
                    Err(_) => missing.push(part),
                }
            }
        }
    }
    Ok(real.join(missing))
}

#[cfg(test)]
mod tests;

//! [`Scope`]: which files tools may read and write.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hardpan_files::{FileGuard, HiddenFiles, OpenFolder, UnreadableReason, is_in_git};
use hardpan_workspace::display_path;
use thiserror::Error;

use crate::limits::escape_line_ends;
use crate::tool::ToolOutcome;

/// Where tools work: the workspace, and the folders beside it that the user made readable.
///
/// A relative path means one in `folder`. Where nothing exists there, it means one in `root`,
/// because trees and maps name files from the root.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The working folder, which relative paths start from.
    pub folder: PathBuf,
    /// The workspace root: the repository, or the working folder itself. Only files in it can be
    /// written.
    pub root: PathBuf,
    /// Further folders outside of the workspace that tools may read (the setting `readable`), without
    /// links.
    pub readable: Vec<PathBuf>,
    /// Files and folders that tools neither read nor write, wherever they lie: keys, and the
    /// permissions that the user granted.
    pub hidden: Vec<PathBuf>,
    /// The workspace root, held open since the scope was made, or since the root exists.
    open_root: Arc<OnceLock<Arc<OpenFolder>>>,
    /// What is in the hidden folders, once somebody asked.
    hidden_files: HiddenFiles,
}

/// Why a call may not use a path. The messages are answers to the model; `path` is always as the
/// model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScopeError {
    /// The path is outside of everything that may be read.
    #[error(
        "{path} is outside of the workspace. Only files below the working directory's project can be used; ask the user to add the folder to `readable` in the settings if you need it"
    )]
    Outside {
        /// As the model wrote it.
        path: String,
    },
    /// The path was to be written and is outside of the workspace.
    #[error("{path} is outside of the workspace: only files in the workspace can be changed")]
    Unwritable {
        /// As the model wrote it.
        path: String,
    },
    /// The path is in [`Scope::hidden`].
    #[error(
        "{path} is one of Hardpan's own files (keys, permissions, settings, sessions) or holds the keys of another program, which tools neither read nor write: ask the user to change it"
    )]
    Hidden {
        /// As the model wrote it.
        path: String,
    },
    /// The path was to be written and is in `.git`.
    #[error(
        "{path} lies in .git, which tools never write to: a hook or a setting there runs programs. Use git commands"
    )]
    Git {
        /// As the model wrote it.
        path: String,
    },
    /// The path is an empty string.
    #[error("The path is empty: name a file, or `.` for the working folder")]
    Empty,
    /// The path contains a NUL character.
    #[error("{path:?} holds a NUL character, which no path can: leave it out")]
    Nul {
        /// As the model wrote it.
        path: String,
    },
    /// The path begins with `~`, which only a shell expands.
    #[error("{path}: `~` is not expanded: name the path from the working folder, or from `/`")]
    Tilde {
        /// As the model wrote it.
        path: String,
    },
    /// The path has a `..` after a folder that does not exist, so nobody can say where it leads.
    #[error("{path} goes up (`..`) from a folder that does not exist: name the path without it")]
    ParentOfMissing {
        /// As the model wrote it.
        path: String,
    },
    /// A link is broken, or the system cannot follow the path.
    #[error("{path} cannot be followed: {why}")]
    Unresolvable {
        /// As the model wrote it.
        path: String,
        /// The system's error, or which link is broken.
        why: String,
    },
}

impl ScopeError {
    /// The error for a file that was refused when it was opened: something else took its place
    /// since its path was judged, or the path is another name of a hidden file. Any other reason
    /// comes back.
    pub fn of_refused(reason: UnreadableReason, path: &str) -> Result<ScopeError, UnreadableReason> {
        let path = path.to_owned();
        match reason {
            UnreadableReason::Outside => Ok(ScopeError::Outside { path }),
            UnreadableReason::Private => Ok(ScopeError::Hidden { path }),
            reason => Err(reason),
        }
    }
}

impl From<ScopeError> for ToolOutcome {
    fn from(error: ScopeError) -> Self {
        ToolOutcome::failed(error.to_string())
    }
}

impl Scope {
    /// A scope with nothing readable outside of the workspace, and nothing hidden. Links are followed
    /// now: one that takes the place of a folder later leads nowhere.
    pub fn new(root: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        let follow = |path: PathBuf| resolve(&path).unwrap_or(path);
        let scope = Scope {
            folder: follow(folder.into()),
            root: follow(root.into()),
            readable: Vec::new(),
            hidden: Vec::new(),
            open_root: Arc::default(),
            hidden_files: HiddenFiles::default(),
        };
        scope.open_root();
        scope
    }

    /// Makes a folder readable, which need not exist yet. Its links are followed now, as those of the
    /// workspace.
    pub fn add_readable(&mut self, folder: &Path) {
        self.readable.push(resolve(folder).unwrap_or_else(|_| folder.to_owned()));
    }

    /// Opens the files that may be read, and no others.
    pub fn guard(&self) -> FileGuard {
        let readable: Vec<PathBuf> = self.readable.iter().filter(|folder| is_real(folder)).cloned().collect();
        FileGuard::new(self.open_root(), &readable, &self.hidden).with_hidden_files(self.hidden_files.clone())
    }

    fn open_root(&self) -> Option<Arc<OpenFolder>> {
        if self.open_root.get().is_none()
            && let Ok(root) = OpenFolder::open(&self.root)
        {
            return Some(self.open_root.get_or_init(|| Arc::new(root)).clone());
        }
        self.open_root.get().cloned()
    }

    /// The absolute path of what is to be read, links resolved. It need not exist.
    pub fn resolve_for_read(&self, path: &str) -> Result<PathBuf, ScopeError> {
        let place = self.locate(path)?;
        let (resolved, named) = (self.resolved(), || path.to_owned());
        if resolved.guard.is_hidden(&place) {
            return Err(ScopeError::Hidden { path: named() });
        }
        if resolved.guard.may_read(&place) { Ok(place) } else { Err(ScopeError::Outside { path: named() }) }
    }

    /// The absolute path of what is to be written, links resolved: in the workspace and not in
    /// `.git`. Neither it nor its parent folders need exist.
    pub fn resolve_for_write(&self, path: &str) -> Result<PathBuf, ScopeError> {
        let place = self.locate(path)?;
        let named = || path.to_owned();
        let resolved = self.resolved();
        let inside = resolved.guard.root().and_then(|root| place.strip_prefix(root).ok());
        let inside = inside.ok_or_else(|| ScopeError::Unwritable { path: named() })?;
        if resolved.guard.is_hidden(&place) {
            return Err(ScopeError::Hidden { path: named() });
        }
        if is_in_git(inside) {
            return Err(ScopeError::Git { path: named() });
        }
        Ok(place)
    }

    /// The name of a path in answers, which a later call can use: relative to the working folder
    /// inside the workspace, else absolute.
    pub fn display_name(&self, place: &Path) -> String {
        self.resolved().display_name(place)
    }

    /// The path relative to the workspace root, forward slashes: the key of items and permission
    /// rules.
    pub fn workspace_path(&self, place: &Path) -> String {
        self.resolved().workspace_path(place)
    }

    /// The path that the model wrote, relative to the workspace root, with its links: the key of an
    /// item that shows the file by that name.
    pub(crate) fn named_path(&self, path: &str) -> String {
        let meant = [self.folder.join(path), self.root.join(path)];
        let found = meant.iter().find(|path| path.symlink_metadata().is_ok()).unwrap_or(&meant[0]);
        display_path(&self.root, found)
    }

    /// The scope with its links resolved once, for many questions.
    pub(crate) fn resolved(&self) -> ResolvedScope {
        ResolvedScope {
            guard: self.guard(),
            folder: Some(self.folder.clone()).filter(|folder| is_real(folder)),
        }
    }

    fn locate(&self, path: &str) -> Result<PathBuf, ScopeError> {
        if path.is_empty() {
            return Err(ScopeError::Empty);
        }
        let named = || path.to_owned();
        if path.contains('\0') {
            return Err(ScopeError::Nul { path: named() });
        }
        let meant = [self.folder.join(path), self.root.join(path)];
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let found = meant.iter().find(|path| exists(path));
        if found.is_none() && Path::new(path).starts_with("~") {
            return Err(ScopeError::Tilde { path: named() });
        }
        let above = || meant.iter().find(|path| path.parent().is_some_and(exists));
        resolve(found.or_else(above).unwrap_or(&meant[0])).map_err(|lost| match lost {
            ResolveError::ParentOfMissing => ScopeError::ParentOfMissing { path: named() },
            ResolveError::BrokenLink(link) => {
                let why = format!("the link {} leads nowhere", link.display());
                ScopeError::Unresolvable { path: named(), why }
            }
            ResolveError::Io(error) => ScopeError::Unresolvable { path: named(), why: error.to_string() },
        })
    }
}

/// A scope with its links resolved. Folders that do not exist are left out.
pub(crate) struct ResolvedScope {
    /// Opens the files of the scope.
    pub guard: FileGuard,
    folder: Option<PathBuf>,
}

impl ResolvedScope {
    /// See [`Scope::display_name`].
    pub fn display_name(&self, place: &Path) -> String {
        let in_root = self.guard.root().is_some_and(|root| place.starts_with(root));
        let up = self.folder.as_ref().filter(|_| in_root).and_then(|folder| {
            folder.ancestors().enumerate().find(|(_, ancestor)| place.starts_with(ancestor))
        });
        let name = match up {
            Some((0, folder)) => display_path(folder, place),
            Some((steps, ancestor)) if place == ancestor => vec![".."; steps].join("/"),
            Some((steps, ancestor)) => "../".repeat(steps) + &display_path(ancestor, place),
            None => place.to_string_lossy().into_owned(),
        };
        escape_line_ends(&name).into_owned()
    }

    /// See [`Scope::workspace_path`].
    pub fn workspace_path(&self, place: &Path) -> String {
        match self.guard.root() {
            Some(root) => display_path(root, place),
            None => place.to_string_lossy().into_owned(),
        }
    }
}

/// Whether no link is on the way to a folder. Links were followed when the scope was made: where one
/// is now, somebody put it there since.
fn is_real(folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|real| real == folder)
}

enum ResolveError {
    ParentOfMissing,
    BrokenLink(PathBuf),
    Io(io::Error),
}

/// Follows every link, and takes `..` from where the links lead. Names that do not exist yet are
/// appended as they are, but a `..` after one is an error: nobody can say where it will lead.
fn resolve(path: &Path) -> Result<PathBuf, ResolveError> {
    match path.canonicalize() {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(ResolveError::Io(error)),
        Err(_) => {}
    }
    let mut real = PathBuf::new();
    let mut missing = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if missing != Path::new("") => return Err(ResolveError::ParentOfMissing),
            _ if missing != Path::new("") => missing.push(part),
            _ => {
                let next = real.join(part);
                match next.canonicalize() {
                    Ok(place) => real = place,
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(ResolveError::Io(error)),
                    Err(_) if next.symlink_metadata().is_ok() => return Err(ResolveError::BrokenLink(next)),
                    Err(_) => missing.push(part),
                }
            }
        }
    }
    Ok(real.join(missing))
}

#[cfg(test)]
mod tests;

//! [`FileGuard`]: which files may become context, and the only way to open them.

mod hidden_files; // HiddenFiles: what is in hidden folders

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub use self::hidden_files::HiddenFiles;
use crate::{OpenFolder, RegularFile, UnreadableReason, plain_path};

/// The most links that are followed one after the other; Linux follows as many.
const MAX_LINKS: usize = 40;

/// The files that may become part of a request: those of the workspace and of further folders that
/// the user made readable, without our own files.
///
/// Every path is absolute. A file is opened first and judged then, by its descriptor.
#[derive(Clone, Debug, Default)]
pub struct FileGuard {
    /// `None` if the workspace does not exist.
    root: Option<Arc<OpenFolder>>,
    readable: Vec<PathBuf>,
    /// By the names that were given, with links resolved, and by those of every link between; a path
    /// that does not exist yet is there too.
    hidden: Vec<PathBuf>,
    /// What is in the hidden folders, looked up when a file has several names.
    hidden_files: HiddenFiles,
}

impl FileGuard {
    /// The guard of a workspace that is held open. Files and folders in `hidden` are refused
    /// wherever they lie; of a hidden folder and a readable one within each other, the inner one
    /// counts.
    pub fn new(root: Option<Arc<OpenFolder>>, readable: &[PathBuf], hidden: &[PathBuf]) -> Self {
        let mut hidden: Vec<PathBuf> = hidden.iter().flat_map(|path| names_of(path)).collect();
        hidden.sort_unstable();
        hidden.dedup();
        let readable = readable.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        FileGuard { root, readable, hidden, hidden_files: HiddenFiles::default() }
    }

    /// The same with what another guard of these folders has found in them.
    pub fn with_hidden_files(self, hidden_files: HiddenFiles) -> Self {
        FileGuard { hidden_files, ..self }
    }

    /// The same with further readable folders. `hidden_files` is what guards with these folders have
    /// found.
    pub fn with_folders(mut self, folders: &[PathBuf], hidden_files: HiddenFiles) -> Self {
        self.readable.extend(folders.iter().filter_map(|folder| folder.canonicalize().ok()));
        FileGuard { hidden_files, ..self }
    }

    /// A guard for all files below a folder.
    pub fn for_folder(root: &Path) -> Self {
        FileGuard::new(OpenFolder::open(root).ok().map(Arc::new), &[], &[])
    }

    /// The workspace's path without links; `None` if it does not exist.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_ref().map(|root| root.path())
    }

    /// The workspace, held open.
    pub fn root_folder(&self) -> Option<&Arc<OpenFolder>> {
        self.root.as_ref()
    }

    /// Whether a path without links is one of our own files. It says nothing about what is there
    /// when it is opened.
    pub fn is_hidden(&self, place: &Path) -> bool {
        let depth = |folder: &Path| place.starts_with(folder).then(|| folder.components().count());
        let shown = self.folders().filter_map(depth).max();
        self.hidden.iter().filter_map(|hidden| depth(hidden)).max() > shown
    }

    /// Whether one of our own files lies at a path or below it, or would: whoever moves or removes what
    /// is there takes the hidden file along.
    pub fn contains_hidden(&self, place: &Path) -> bool {
        self.hidden.iter().any(|hidden| hidden.starts_with(place))
    }

    /// Whether a path without links may be read.
    pub fn may_read(&self, place: &Path) -> bool {
        !self.is_hidden(place) && self.folders().any(|folder| place.starts_with(folder))
    }

    /// Opens a file of the workspace or of a readable folder. `place` may go through links, as
    /// long as they stay in the folder that it begins with.
    pub fn open(&self, place: &Path) -> Result<RegularFile, UnreadableReason> {
        let (folder, relative) = self.locate(place)?;
        self.judge(folder.open_file(&relative)?, place)
    }

    /// Opens a folder of the workspace or a readable one, to list it.
    pub fn open_folder(&self, place: &Path) -> Result<File, UnreadableReason> {
        let (folder, relative) = self.locate(place)?;
        if self.is_hidden(place) {
            return Err(UnreadableReason::Private);
        }
        folder.open_subfolder(&relative)
    }

    /// Opens a file that the user named. It may lie anywhere; but one whose path leads through the
    /// workspace must be there, because others may have put a link in its place, or in that of a
    /// folder above it. `..` is taken as it reads.
    pub fn open_named_by_user(&self, place: &Path) -> Result<RegularFile, UnreadableReason> {
        let mut path = plain_path(place);
        // From link to link: one outside may lead into the workspace, and one there out again.
        for _ in 0..MAX_LINKS {
            match self.first_turn(&path) {
                Turn::Workspace => return self.open(&path),
                Turn::Link(target) => path = target,
                Turn::None => return self.judge(RegularFile::open(&path)?, &path),
            }
        }
        Err(io::Error::from(rustix::io::Errno::LOOP).into())
    }

    /// Follows a path without `..` from the root of the file system: what it meets first.
    fn first_turn(&self, path: &Path) -> Turn {
        let mut names = path.iter();
        let mut at = PathBuf::new();
        while let Some(name) = names.next() {
            at.push(name);
            if self.folders().any(|folder| at == folder) {
                return Turn::Workspace;
            }
            if let Ok(target) = at.read_link() {
                let above = at.parent().unwrap_or(Path::new("/"));
                return Turn::Link(plain_path(&above.join(target).join(names.as_path())));
            }
        }
        Turn::None
    }

    /// Opens a file that the user keeps in the config folder for the model to read: it may be
    /// there, but it must not be one of the hidden files under another name.
    pub fn open_user_file(&self, place: &Path) -> Result<RegularFile, UnreadableReason> {
        let file = RegularFile::open(place)?;
        let is_secret = self.hidden.iter().any(|hidden| hidden.is_file() && file.is_named(hidden));
        if is_secret { Err(UnreadableReason::Private) } else { Ok(file) }
    }

    /// Refuses an open file that is one of our own, by whatever name it was opened.
    pub fn judge(&self, file: RegularFile, place: &Path) -> Result<RegularFile, UnreadableReason> {
        let real = file.real_path().or_else(|| place.canonicalize().ok());
        let is_hidden = real.is_none_or(|real| self.is_hidden(&real))
            || file.has_other_names() && self.has_hidden_name(&file);
        if is_hidden { Err(UnreadableReason::Private) } else { Ok(file) }
    }

    /// Whether one of the names of a file is hidden: a hard link to a key or a session.
    fn has_hidden_name(&self, file: &RegularFile) -> bool {
        let shown: Vec<&Path> = self.folders().collect();
        self.hidden.iter().any(|hidden| file.is_named(hidden))
            || self.hidden_files.hold(file, &self.hidden, &shown)
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.root().into_iter().chain(self.readable.iter().map(PathBuf::as_path))
    }

    /// Our own files and folders below a folder, relative to it.
    pub fn hidden_below(&self, folder: &Path) -> Vec<PathBuf> {
        let hidden = self.hidden.iter().filter(|hidden| self.is_hidden(hidden));
        hidden.filter_map(|hidden| hidden.strip_prefix(folder).ok()).map(Path::to_owned).collect()
    }

    /// The workspace or the readable folder that a path begins with, held open, and the path below
    /// it.
    pub fn locate(&self, place: &Path) -> Result<(Arc<OpenFolder>, PathBuf), UnreadableReason> {
        let below = |folder: &Path| place.strip_prefix(folder).map(Path::to_owned).ok();
        if let Some(root) = &self.root
            && let Some(relative) = below(root.path())
        {
            return Ok((root.clone(), relative));
        }
        let readable = self.readable.iter().find_map(|folder| Some((folder, below(folder)?)));
        let Some((folder, relative)) = readable else { return Err(UnreadableReason::Outside) };
        Ok((Arc::new(OpenFolder::open(folder)?), relative))
    }
}

/// All paths by which the file system comes to a place: the given one, one for each link on the way, and
/// last the one without links, as far as it exists. Whoever replaces any of these links decides what the
/// given path means.
fn names_of(path: &Path) -> Vec<PathBuf> {
    let mut names = vec![path.to_owned()];
    let mut real = PathBuf::new();
    let mut rest = path.to_owned();
    for _ in 0..=MAX_LINKS {
        match next_link(&mut real, &rest) {
            Some((target, below)) => {
                rest = target.join(below);
                names.push(plain_path(&real.join(&rest)));
            }
            None => break,
        }
    }
    names
}

/// Goes from a place without links to the next link of a path: where that leads, and what follows it.
fn next_link(real: &mut PathBuf, path: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(real.pop()),
            part => real.push(part),
        }
        if let Component::Normal(_) = part
            && let Ok(target) = real.read_link()
        {
            real.pop();
            return Some((target, parts.as_path().to_owned()));
        }
    }
    None
}

/// What a path meets first.
enum Turn {
    /// A folder of the guard.
    Workspace,
    /// A link outside of them: where the path goes on.
    Link(PathBuf),
    /// Neither.
    None,
}

#[cfg(test)]
mod tests;

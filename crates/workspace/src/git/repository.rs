//! [`RepositoryFolders`]: where a repository keeps what, verified: whoever can write in the work tree
//! could make it name another repository of the user.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hardpan_files::RegularFile;

/// The most bytes of a file that holds a path.
const MAX_PATH_BYTES: u64 = 8 * 1024;

/// Where a repository keeps what. All paths are without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepositoryFolders {
    /// The folder with `.git`.
    pub work_tree: PathBuf,
    /// `HEAD`, the index and, unless it is a linked work tree, all the rest.
    pub git_dir: PathBuf,
    /// Objects, branches and settings.
    pub common_dir: PathBuf,
    pub kind: RepositoryKind,
}

/// How the work tree belongs to the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepositoryKind {
    /// `.git` is the repository.
    Plain,
    /// `.git` names a folder below `worktrees` of another repository, which names it back.
    LinkedWorkTree,
    /// `.git` names a folder whose setting `core.worktree` must name it back, as for submodules.
    Submodule,
}

/// Why git does not run on a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryProblem {
    /// `.git` is a link, a pipe or the like, or a file that names no folder.
    #[error("{} is no repository", .0.display())]
    NoRepository(PathBuf),
    /// `.git` names a repository that does not name it back.
    #[error("{} belongs to a repository elsewhere, which does not know it", .0.display())]
    NotLinkedBack(PathBuf),
    /// The repository's setting `core.worktree` names another folder.
    #[error("the work tree of this repository is another folder (core.worktree)")]
    OtherWorkTree,
    /// The repository takes a part of it from elsewhere.
    #[error("{} takes objects or settings from another repository", .0.display())]
    Borrows(PathBuf),
}

impl RepositoryFolders {
    /// The repository whose work tree is `root`; none if `root` has no `.git`.
    pub fn locate(root: &Path) -> Result<Option<Self>, RepositoryProblem> {
        let dot_git = root.join(".git");
        let problem = || RepositoryProblem::NoRepository(dot_git.clone());
        let Ok(found) = dot_git.symlink_metadata() else { return Ok(None) };
        let work_tree = root.canonicalize().map_err(|_| problem())?;
        let folders = if found.is_dir() {
            let git_dir = work_tree.join(".git");
            let (common_dir, kind) = (git_dir.clone(), RepositoryKind::Plain);
            if git_dir.join("commondir").symlink_metadata().is_ok() {
                return Err(RepositoryProblem::Borrows(git_dir));
            }
            RepositoryFolders { work_tree, git_dir, common_dir, kind }
        } else if found.is_file() {
            let text = read_path_file(&dot_git).ok_or_else(problem)?;
            let named = text.strip_prefix("gitdir:").ok_or_else(problem)?.trim();
            let git_dir = work_tree.join(named).canonicalize().map_err(|_| problem())?;
            if !git_dir.is_dir() {
                return Err(problem());
            }
            Self::of_git_file(work_tree, git_dir)?
        } else {
            return Err(problem());
        };
        // Whatever else is there would make git wait.
        for file in [folders.git_dir.join("HEAD"), folders.common_dir.join("config")] {
            if !file.metadata().is_ok_and(|found| found.is_file()) {
                return Err(RepositoryProblem::NoRepository(folders.git_dir));
            }
        }
        // Status would tell of another repository's objects only if they were in the index, but there
        // is no reason to look at them.
        for name in ["alternates", "http-alternates"] {
            if folders.common_dir.join("objects/info").join(name).symlink_metadata().is_ok() {
                return Err(RepositoryProblem::Borrows(folders.common_dir));
            }
        }
        Ok(Some(folders))
    }

    /// The repository that a `.git` file names.
    fn of_git_file(work_tree: PathBuf, git_dir: PathBuf) -> Result<Self, RepositoryProblem> {
        let not_linked = || RepositoryProblem::NotLinkedBack(work_tree.join(".git"));
        let common_file = git_dir.join("commondir");
        if common_file.symlink_metadata().is_err() {
            let (common_dir, kind) = (git_dir.clone(), RepositoryKind::Submodule);
            return Ok(RepositoryFolders { work_tree, git_dir, common_dir, kind });
        }
        let common = read_path_file(&common_file).ok_or_else(not_linked)?;
        let common_dir = git_dir.join(common.trim()).canonicalize().map_err(|_| not_linked())?;
        let is_below = git_dir.parent() == Some(&common_dir.join("worktrees"));
        let back = read_path_file(&git_dir.join("gitdir")).ok_or_else(not_linked)?;
        let back = git_dir.join(back.trim());
        let back_folder = back.parent().and_then(|folder| folder.canonicalize().ok());
        let names_it =
            back.file_name().is_some_and(|name| name == ".git") && back_folder.as_ref() == Some(&work_tree);
        if !is_below || !names_it {
            return Err(not_linked());
        }
        let kind = RepositoryKind::LinkedWorkTree;
        Ok(RepositoryFolders { work_tree, git_dir, common_dir, kind })
    }

    /// Checks the repository's own settings, as (scope, name, value): they must not name another
    /// work tree, and those of a submodule must name this one.
    pub fn check_settings(&self, settings: &[Setting]) -> Result<(), RepositoryProblem> {
        let is_own = |setting: &&Setting| match self.kind {
            // Of a linked work tree, git reads this from its own settings only.
            RepositoryKind::LinkedWorkTree => setting.scope == "worktree",
            RepositoryKind::Plain | RepositoryKind::Submodule => {
                matches!(&*setting.scope, "local" | "worktree")
            }
        };
        let named = settings.iter().filter(|setting| setting.name == "core.worktree").filter(is_own);
        let is_here = |setting: &Setting| {
            self.git_dir.join(&setting.value).canonicalize().ok().as_ref() == Some(&self.work_tree)
        };
        let named: Vec<bool> = named.map(is_here).collect();
        match self.kind {
            RepositoryKind::Submodule if named.is_empty() => {
                Err(RepositoryProblem::NotLinkedBack(self.work_tree.join(".git")))
            }
            _ if named.contains(&false) => Err(RepositoryProblem::OtherWorkTree),
            _ => Ok(()),
        }
    }

    /// Changes when somebody writes the repository's settings.
    pub fn settings_identity(&self) -> SettingsIdentity {
        let files = [self.common_dir.join("config"), self.git_dir.join("config.worktree")];
        files.map(|file| {
            let found = file.symlink_metadata().ok()?;
            Some((
                found.dev(),
                found.ino(),
                found.len(),
                found.mtime(),
                found.mtime_nsec(),
                found.ctime_nsec(),
            ))
        })
    }

    /// The folders that a commit writes. Of the repository of a linked work tree, it does not write
    /// hooks and settings: a hook must not change what runs in the other work trees.
    pub fn writable(&self) -> Vec<PathBuf> {
        let common = match self.kind {
            RepositoryKind::Plain | RepositoryKind::Submodule => Vec::new(),
            RepositoryKind::LinkedWorkTree => {
                let parts = ["objects", "refs", "logs"].map(|part| self.common_dir.join(part));
                parts.into_iter().filter(|part| part.is_dir()).collect()
            }
        };
        let outside = [&self.git_dir].into_iter().filter(|folder| !folder.starts_with(&self.work_tree));
        [&self.work_tree].into_iter().chain(outside).cloned().chain(common).collect()
    }

    /// The folders that git must be able to read. Those in the work tree are not named: a command
    /// could replace them by links.
    pub fn readable(&self) -> Vec<PathBuf> {
        let outside = [&self.git_dir, &self.common_dir];
        let outside = outside.into_iter().filter(|folder| !folder.starts_with(&self.work_tree));
        [&self.work_tree].into_iter().chain(outside).cloned().collect()
    }
}

/// What tells one state of the files with the settings from another.
pub(super) type SettingsIdentity = [Option<(u64, u64, u64, i64, i64, i64)>; 2];

/// A setting of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// `system`, `global`, `local`, `worktree` or `command`.
    pub scope: String,
    /// Section and key in lower case: `core.worktree`.
    pub name: String,
    pub value: String,
}

impl Setting {
    /// Parses `git config --list --show-scope -z`.
    pub fn parse_list(list: &str) -> Vec<Setting> {
        let mut fields = list.split_terminator('\0');
        let mut settings = Vec::new();
        while let (Some(scope), Some(setting)) = (fields.next(), fields.next()) {
            // A name without a value is true.
            let (name, value) = setting.split_once('\n').unwrap_or((setting, "true"));
            settings.push(Setting { scope: scope.into(), name: name.into(), value: value.into() });
        }
        settings
    }
}

/// The first line of a small regular file; none for anything else.
fn read_path_file(path: &Path) -> Option<String> {
    use std::io::Read;
    if path.symlink_metadata().ok()?.is_symlink() {
        return None;
    }
    let file = RegularFile::open(path).ok()?.file;
    let mut text = String::new();
    file.take(MAX_PATH_BYTES).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned)
}

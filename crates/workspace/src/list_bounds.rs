//! [`ListBounds`]: how far into a folder a listing goes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files that are listed of a folder that does not look like a project.
const PLAIN_FOLDER_FILES: usize = 10_000;
/// Files that are listed of a folder that holds everything: `/`, and a home folder.
const CATCH_ALL_FILES: usize = 2_000;
/// Time for listing a folder that is no project.
const LISTING_TIME: Duration = Duration::from_secs(3);
/// Bytes that are indexed of a folder that is no project.
const INDEX_BYTES: u64 = 64 * 1024 * 1024;

/// Names in a folder that make it a project.
const PROJECT_MARKERS: [&str; 24] = [
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".hardpan",
    "AGENTS.md",
    "CLAUDE.md",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "CMakeLists.txt",
    "Makefile",
    "meson.build",
    "deno.json",
    "flake.nix",
];

/// What kind of folder someone works in, as far as it decides how much of it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderKind {
    /// A repository, or a folder with the files of a project.
    Project,
    /// Neither of these.
    Plain,
    /// The root of the file system, a home folder, or a folder above that.
    CatchAll,
}

impl FolderKind {
    /// The kind of `folder`, which is absolute.
    pub fn of(folder: &Path) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        FolderKind::with_home(folder, home.as_deref())
    }

    fn with_home(folder: &Path, home: Option<&Path>) -> Self {
        // A home folder under version control is a project, too: its rules say what belongs to it.
        if folder.join(".git").exists() {
            return FolderKind::Project;
        }
        let real_home = home.and_then(|home| home.canonicalize().ok());
        let homes = home.into_iter().chain(real_home.as_deref());
        if folder.parent().is_none() || homes.into_iter().any(|home| home.starts_with(folder)) {
            return FolderKind::CatchAll;
        }
        let is_project = PROJECT_MARKERS.iter().any(|name| folder.join(name).exists());
        if is_project { FolderKind::Project } else { FolderKind::Plain }
    }

    /// Bytes of files that are indexed at most.
    pub fn index_bytes(self) -> u64 {
        if self == FolderKind::Project { u64::MAX } else { INDEX_BYTES }
    }
}

/// Where the listing of a folder ends.
pub struct ListBounds {
    /// Files and skipped paths.
    pub files: usize,
    /// Entries of any kind: a folder may have a million empty folders.
    entries: usize,
    time: Option<Duration>,
}

impl ListBounds {
    pub fn new(root: &Path, limit: usize) -> Self {
        let kind = FolderKind::of(root);
        let files = match kind {
            FolderKind::Project => limit,
            FolderKind::Plain => limit.min(PLAIN_FOLDER_FILES),
            FolderKind::CatchAll => limit.min(CATCH_ALL_FILES),
        };
        let time = (kind != FolderKind::Project).then_some(LISTING_TIME);
        ListBounds { files, entries: files.saturating_mul(4), time }
    }

    /// Whether the listing ends before the next entry, after `visited` ones.
    pub fn are_reached(&self, visited: usize, begun: Instant) -> bool {
        let is_late = || self.time.is_some_and(|time| visited.is_multiple_of(64) && begun.elapsed() > time);
        visited >= self.entries || is_late()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn home_and_what_is_above_hold_everything() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home/me");
        fs::create_dir_all(home.join("work")).unwrap();
        let kind = |path: &Path| FolderKind::with_home(path, Some(&home));
        assert_eq!(kind(Path::new("/")), FolderKind::CatchAll);
        assert_eq!(kind(&folder.path().join("home")), FolderKind::CatchAll);
        fs::write(home.join("Makefile"), "").unwrap();
        assert_eq!(kind(&home), FolderKind::CatchAll, "a stray file makes no project of a home folder");
        assert_eq!(kind(&home.join("work")), FolderKind::Plain);
        fs::write(home.join("work/Cargo.toml"), "").unwrap();
        assert_eq!(kind(&home.join("work")), FolderKind::Project);
        fs::create_dir(home.join(".git")).unwrap();
        assert_eq!(kind(&home), FolderKind::Project);
    }
}

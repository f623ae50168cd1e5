//! [`is_git_name`]: what runs programs in a repository.

use std::ffi::OsStr;
use std::path::Path;

/// Whether a file or folder of this name is a repository's `.git`, whose hooks and settings run programs.
/// Some file systems ignore case, or have a short name for it.
pub fn is_git_name(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
}

/// Whether a path has a `.git` in it.
pub fn is_in_git(path: &Path) -> bool {
    path.iter().any(is_git_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_known_by_every_name() {
        for path in [".git", "a/.git/hooks", ".GIT/config", "sub/Git~1"] {
            assert!(is_in_git(Path::new(path)), "{path}");
        }
        for path in ["git", ".gitignore", "a.git/config", ".github"] {
            assert!(!is_in_git(Path::new(path)), "{path}");
        }
    }
}

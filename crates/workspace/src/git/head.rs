//! [`checked_out_branch`]: what `HEAD` names, without running git.

use std::path::Path;

use hardpan_files::read_small_text;

use super::repository::RepositoryFolders;

/// The most bytes of `HEAD`.
const MAX_HEAD_BYTES: u64 = 4 * 1024;

/// How many digits name a commit.
const SHORT_COMMIT: usize = 8;

/// The branch that is checked out in the work tree `root`; the beginning of the commit's id if it is
/// none. `None` where there is no repository.
pub fn checked_out_branch(root: &Path) -> Option<String> {
    let folders = RepositoryFolders::locate(root).ok()??;
    let head = read_small_text(&folders.git_dir.join("HEAD"), MAX_HEAD_BYTES).ok()?;
    let head = head.trim();
    match head.strip_prefix("ref:") {
        Some(name) => {
            let name = name.trim();
            Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned())
        }
        None => head.get(..SHORT_COMMIT).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_or_a_commit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(checked_out_branch(folder.path()), None);
        let git = folder.path().join(".git");
        std::fs::create_dir(&git).unwrap();
        std::fs::write(git.join("config"), "").unwrap();
        let told = |head: &str| {
            std::fs::write(git.join("HEAD"), head).unwrap();
            checked_out_branch(folder.path())
        };
        assert_eq!(told("ref: refs/heads/fix/retry\n").as_deref(), Some("fix/retry"));
        assert_eq!(told("0fce32fc7d5c1d2a\n").as_deref(), Some("0fce32fc"));
        assert_eq!(told(""), None);
    }
}

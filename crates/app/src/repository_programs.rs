//! [`names_programs`]: whether the settings of a repository name programs that git runs when it only
//! looks. A rule for reading with git covers no such run.

use std::fs;
use std::path::Path;

/// The most bytes of a repository's settings; longer ones are not looked at.
const MAX_CONFIG_BYTES: u64 = 64 << 10;

/// Parts of the names of settings that hold a program, or lead to other settings.
const PROGRAM_SETTINGS: [&str; 14] = [
    "external",
    "textconv",
    "fsmonitor",
    "include",
    "command",
    "pager",
    "editor",
    "helper",
    "program",
    "hookspath",
    "filter",
    "driver",
    "alias",
    "cmd",
];

/// Whether git, run in this folder, may run a program that the repository's own settings name. Also
/// if that cannot be told.
pub fn names_programs(root: &Path) -> bool {
    let git = root.join(".git");
    let Ok(metadata) = fs::symlink_metadata(&git) else { return false };
    // A linked work tree has its settings elsewhere.
    !metadata.is_dir()
        || ["config", "config.worktree"].iter().any(|name| file_names_programs(&git.join(name)))
}

fn file_names_programs(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        Ok(metadata) if !metadata.is_file() || metadata.len() > MAX_CONFIG_BYTES => true,
        Ok(_) => match fs::read_to_string(path) {
            Ok(text) => {
                let text = text.to_ascii_lowercase();
                PROGRAM_SETTINGS.iter().any(|setting| text.contains(setting))
            }
            Err(_) => true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_run_something_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!names_programs(folder.path()), "there is no repository");
        fs::create_dir(folder.path().join(".git")).unwrap();
        let config = folder.path().join(".git/config");
        let usual = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n";
        fs::write(&config, usual).unwrap();
        assert!(!names_programs(folder.path()));
        for setting in [
            "[diff]\n\texternal = ./x",
            "[core]\n\tfsMonitor = ./x",
            "[diff \"a\"]\n\ttextconv = x",
            "[include]\n\tpath = x",
        ] {
            fs::write(&config, format!("{usual}{setting}\n")).unwrap();
            assert!(names_programs(folder.path()), "{setting}");
        }
        fs::remove_file(&config).unwrap();
        fs::create_dir(&config).unwrap();
        assert!(names_programs(folder.path()), "it is no file");
    }
}

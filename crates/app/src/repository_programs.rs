//! [`names_programs`]: whether the settings of a repository name programs that git runs when it only
//! looks. A rule for reading with git covers no such run.

use std::path::Path;

use hardpan_files::{UnreadableReason, read_small_file};

/// The most bytes of a repository's settings; longer ones are not looked at.
const MAX_CONFIG_BYTES: u64 = 64 << 10;

/// Parts of the names of settings that hold a program, or lead to other settings.
const PROGRAM_SETTINGS: [&str; 17] = [
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
    // Where missing objects are fetched from, by a program that the settings name.
    "promisor",
    "partialclone",
    "uploadpack",
];

/// Hooks that run when git only looks: `git status` writes what it found out into the index.
const READING_HOOKS: [&str; 1] = ["post-index-change"];

/// Whether git, run in this folder, may run a program that the repository names. Also if that cannot
/// be told.
pub fn names_programs(root: &Path) -> bool {
    // As git looks for a repository: from the folder upwards, and each folder may be one itself.
    for folder in root.ancestors() {
        let git = folder.join(".git");
        match git.symlink_metadata() {
            // A linked work tree has its settings elsewhere.
            Ok(found) => return !found.is_dir() || repository_names_programs(&git),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return true,
            Err(_) if folder.join("HEAD").exists() && folder.join("objects").exists() => return true,
            Err(_) => {}
        }
    }
    false
}

fn repository_names_programs(git: &Path) -> bool {
    let exists = |name: &str| git.join(name).symlink_metadata().is_ok();
    // With it, the settings and hooks are elsewhere.
    exists("commondir")
        || READING_HOOKS.iter().any(|hook| exists(&format!("hooks/{hook}")))
        || ["config", "config.worktree"].iter().any(|name| file_names_programs(&git.join(name)))
}

fn file_names_programs(path: &Path) -> bool {
    match read_small_file(path, MAX_CONFIG_BYTES) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            PROGRAM_SETTINGS.iter().any(|setting| text.contains(setting))
        }
        // A link that leads nowhere may lead somewhere in a moment.
        Err(UnreadableReason::Missing) => path.is_symlink(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A repository without anything that runs.
    fn repository(folder: &Path) {
        fs::create_dir_all(folder.join(".git/hooks")).unwrap();
        fs::write(folder.join(".git/config"), "[core]\n\tbare = false\n").unwrap();
    }

    #[test]
    fn a_repository_that_runs_something_in_other_ways_is_noticed() {
        let ways: [(&str, &str); 4] = [
            (".git/commondir", "../elsewhere"),
            (".git/hooks/post-index-change", "#!/bin/sh"),
            (".git/config", "[remote \"o\"]\n\turl = .\n\tpromisor = true\n\tuploadpack = ./x\n"),
            (".git/config.worktree", "[extensions]\n\tpartialClone = o\n"),
        ];
        for (name, text) in ways {
            let folder = tempfile::tempdir().unwrap();
            repository(folder.path());
            fs::create_dir(folder.path().join("sub")).unwrap();
            assert!(!names_programs(folder.path()));
            fs::write(folder.path().join(name), text).unwrap();
            assert!(names_programs(folder.path()), "{name}");
            assert!(names_programs(&folder.path().join("sub")), "{name}, from a folder in it");
        }
    }

    #[test]
    fn a_folder_that_is_a_repository_itself_is_one_of_unknown_settings() {
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path());
        let inner = folder.path().join("inner");
        fs::create_dir_all(inner.join("objects")).unwrap();
        assert!(!names_programs(&inner));
        fs::write(inner.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        assert!(names_programs(&inner));
    }

    #[test]
    fn a_pipe_in_place_of_the_settings_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        repository(folder.path());
        let config = folder.path().join(".git/config");
        fs::remove_file(&config).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &config, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(names_programs(folder.path()));
        fs::remove_file(&config).unwrap();
        std::os::unix::fs::symlink("nowhere", &config).unwrap();
        assert!(names_programs(folder.path()));
    }

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

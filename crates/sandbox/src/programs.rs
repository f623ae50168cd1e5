//! [`Programs`]: the programs that Hardpan itself runs, found once.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where shells are that no `PATH` names.
const USUAL_SHELLS: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/bin/sh"];

/// The programs that Hardpan itself runs, by absolute path. They are looked for once, and only where
/// no command of the model can put another program in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// None if there is no git in a safe place.
    pub git: Option<PathBuf>,
    /// GitHub's command line. None if there is none in a safe place.
    pub gh: Option<PathBuf>,
    /// `bash`; where there is none, `/bin/sh`.
    pub shell: PathBuf,
    /// The folders of `PATH` that were searched, joined.
    pub search_path: OsString,
}

impl Programs {
    /// Searches the absolute folders of `path` (the variable `PATH`) that are not in one of the
    /// `changeable` folders, nor lead there by a link: the workspace, and what else commands may
    /// write.
    pub fn find(path: Option<&OsStr>, changeable: &[PathBuf]) -> Self {
        let real = |folder: &PathBuf| folder.canonicalize().ok();
        let changeable: Vec<PathBuf> =
            changeable.iter().cloned().chain(changeable.iter().filter_map(real)).collect();
        let is_safe = |path: &Path| {
            let is_outside = |path: &Path| !changeable.iter().any(|folder| path.starts_with(folder));
            is_outside(path) && path.canonicalize().is_ok_and(|real| is_outside(&real))
        };
        let folders = path.map(std::env::split_paths).into_iter().flatten();
        let folders: Vec<PathBuf> =
            folders.filter(|folder| folder.is_absolute() && is_safe(folder)).collect();
        let find = |name: &str| {
            let files = folders.iter().map(|folder| folder.join(name));
            files.into_iter().find(|file| is_executable(file) && is_safe(file))
        };
        let usual = || USUAL_SHELLS.iter().map(PathBuf::from).find(|file| is_executable(file));
        Programs {
            git: find("git"),
            gh: find("gh"),
            shell: find("bash").or_else(usual).unwrap_or_else(|| "/bin/sh".into()),
            search_path: std::env::join_paths(&folders).unwrap_or_default(),
        }
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_that_a_command_could_replace_is_never_found() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let (work, safe) = (root.join("work"), root.join("usr/bin"));
        program(&work.join(".venv/bin/git"));
        program(&work.join(".venv/bin/gh"));
        program(&work.join(".venv/bin/bash"));
        program(&safe.join("git"));
        program(&safe.join("bash"));
        fs::create_dir_all(root.join("links")).unwrap();
        symlink(work.join(".venv/bin/git"), root.join("links/git")).unwrap();
        symlink(work.join(".venv/bin"), root.join("linked")).unwrap();
        symlink(&work, root.join("work-too")).unwrap();
        fs::create_dir_all(root.join("plain")).unwrap();
        fs::write(root.join("plain/git"), "").unwrap();
        let entries = [
            work.join(".venv/bin"),
            root.join("usr/../work/.venv/bin"),
            root.join("linked"),
            root.join("links"),
            root.join("plain"),
            PathBuf::from(""),
            PathBuf::from("."),
            PathBuf::from(".venv/bin"),
            root.join("missing"),
            safe.clone(),
        ];
        let path = std::env::join_paths(entries).unwrap();
        for changeable in [work.clone(), root.join("work-too")] {
            let found = Programs::find(Some(&path), &[changeable]);
            assert_eq!((found.git, found.gh), (Some(safe.join("git")), None));
            assert_eq!(found.shell, safe.join("bash"));
        }
        let none = Programs::find(Some(work.join(".venv/bin").as_os_str()), &[work]);
        assert_eq!(none.git, None);
        assert!(none.shell.is_absolute());
    }
}

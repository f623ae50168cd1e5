//! [`read_instructions`]: the instructions that the user and the project give every agent, in
//! AGENTS.md and CLAUDE.md.

use std::path::{Path, PathBuf};

use hardpan_files::{FileGuard, RegularFile, UnreadableReason};

use crate::{TEXT_LIMIT, TextFile, Truncation, display_path, read_open_text};

/// File names in order of preference. Only one file per folder is read.
const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Reads the instructions that apply in `working_directory`, most general first: the user's, then
/// one file of each folder from `root` down. Each is a path for display and a text; the user's file
/// is shown without its path on the machine.
///
/// A file that exists but cannot be read is returned with a note instead of its text, so that its
/// absence is noticed. A project's file that links to a place outside `root` is not read: a foreign
/// project must not decide which of the user's files are sent to a provider. Neither is one of our
/// own files, by whatever name. Empty files are left out.
pub fn read_instructions(
    guard: &FileGuard,
    root: &Path,
    working_directory: &Path,
    user_folder: Option<&Path>,
) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some((name, path)) = user_folder.and_then(find_instructions) {
        found.push((format!("{name} (user)"), read_or_explain(guard.open_user_file(&path))));
    }
    for folder in folders_down_to(root, working_directory) {
        // The user's own folder may be one of these folders; its file is already in the list.
        if Some(folder.as_path()) == user_folder {
            continue;
        }
        if let Some((_, path)) = find_instructions(&folder) {
            found.push((display_path(root, &path), read_or_explain(guard.open(&path))));
        }
    }
    found.retain(|(_, text)| !text.trim().is_empty());
    found
}

/// `root` and the folders below it on the way to `working_directory`.
fn folders_down_to(root: &Path, working_directory: &Path) -> Vec<PathBuf> {
    let below = working_directory.strip_prefix(root).unwrap_or(Path::new(""));
    let mut folders = vec![root.to_owned()];
    for part in below {
        folders.extend(folders.last().map(|folder| folder.join(part)));
    }
    folders
}

fn find_instructions(folder: &Path) -> Option<(&'static str, PathBuf)> {
    NAMES.iter().map(|&name| (name, folder.join(name))).find(|(_, path)| path.symlink_metadata().is_ok())
}

fn read_or_explain(file: Result<RegularFile, UnreadableReason>) -> String {
    match file.and_then(|file| read_open_text(&file, TEXT_LIMIT)) {
        Ok(TextFile { text, truncation: None }) => text,
        Ok(TextFile { text, truncation: Some(Truncation { shown_bytes, total_bytes }) }) => {
            format!("{text}\n[cut here: {shown_bytes} of {total_bytes} bytes]")
        }
        Err(UnreadableReason::Missing) => "[not read: it links to a file that does not exist]".into(),
        Err(UnreadableReason::Outside) => "[not read: it links to a place outside the project]".into(),
        Err(reason) => format!("[not read: it {}]", reason.model_text()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn folder_of(files: &[(&str, &str)]) -> TempDir {
        let folder =
            tempfile::Builder::new().tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn instructions(root: &Path, folder: &Path, user: Option<&Path>) -> Vec<(String, String)> {
        read_instructions(&FileGuard::for_folder(root), root, folder, user)
    }

    fn pair(path: &str, text: &str) -> (String, String) {
        (path.into(), text.into())
    }

    #[test]
    fn the_user_s_come_first_and_then_those_on_the_way_down() {
        let user = folder_of(&[("CLAUDE.md", "user")]);
        let project = folder_of(&[
            ("AGENTS.md", "root"),
            ("CLAUDE.md", "not this one"),
            ("a/x", ""),
            ("a/b/CLAUDE.md", "deep"),
            ("a/b/c/AGENTS.md", "deeper"),
            ("other/AGENTS.md", "elsewhere"),
        ]);
        let here = project.path().join("a/b");
        let expected =
            [pair("CLAUDE.md (user)", "user"), pair("AGENTS.md", "root"), pair("a/b/CLAUDE.md", "deep")];
        assert_eq!(instructions(project.path(), &here, Some(user.path())), expected);
    }

    #[test]
    fn no_file_is_given_twice() {
        let project = folder_of(&[("AGENTS.md", "x")]);
        let expected = [pair("AGENTS.md (user)", "x")];
        assert_eq!(instructions(project.path(), project.path(), Some(project.path())), expected);
    }

    #[test]
    fn a_working_directory_elsewhere_counts_as_the_root() {
        let project = folder_of(&[("AGENTS.md", "x")]);
        let elsewhere = folder_of(&[("AGENTS.md", "y")]);
        assert_eq!(instructions(project.path(), elsewhere.path(), None), [pair("AGENTS.md", "x")]);
    }

    #[test]
    fn an_empty_file_is_left_out_and_an_unreadable_one_is_not() {
        let project = folder_of(&[("AGENTS.md", " \n"), ("CLAUDE.md", "not this one"), ("a/x", "")]);
        fs::write(project.path().join("a/AGENTS.md"), b"caf\xe9!").unwrap();
        let found = instructions(project.path(), &project.path().join("a"), None);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "a/AGENTS.md");
        assert!(found[0].1.starts_with("[not read: it is not UTF-8 (byte 3"), "{found:?}");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_out_of_the_project_is_not_read() {
        use std::os::unix::fs::symlink;
        let secret = folder_of(&[("key", "secret")]);
        let project = folder_of(&[("docs/guide.md", "inside"), ("a/x", ""), ("a/b/x", "")]);
        symlink("docs/guide.md", project.path().join("AGENTS.md")).unwrap();
        symlink(secret.path().join("key"), project.path().join("a/AGENTS.md")).unwrap();
        symlink("nowhere", project.path().join("a/b/AGENTS.md")).unwrap();
        let expected = [
            pair("AGENTS.md", "inside"),
            pair("a/AGENTS.md", "[not read: it links to a place outside the project]"),
            pair("a/b/AGENTS.md", "[not read: it links to a file that does not exist]"),
        ];
        assert_eq!(instructions(project.path(), &project.path().join("a/b"), None), expected);
    }
}

use std::fs;
use std::process::Command;

use tempfile::{TempDir, tempdir};

use super::*;

/// A folder with these files; a name that ends in `/` is a folder, and `.git/` makes it a repository.
fn folder_of(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    folder
}

fn list_all(root: &Path, limit: usize) -> FileTree {
    let root = root.parent().unwrap().canonicalize().unwrap().join(root.file_name().unwrap());
    list_files(&FileGuard::for_folder(&crate::find_project_root(&root)), &root, limit)
}

fn skipped(path: &str, reason: &str) -> SkippedPath {
    SkippedPath { path: path.into(), reason: reason.into() }
}

#[test]
fn names_are_sorted_by_their_bytes() {
    let folder = folder_of(&[
        ("b", ""),
        ("a/b", ""),
        ("a-b", ""),
        ("B", ""),
        ("é", ""),
        ("a/b c.txt", ""),
        (".hidden", ""),
    ]);
    let tree = list_all(folder.path(), TREE_LIMIT);
    assert_eq!(tree.files, [".hidden", "B", "a-b", "a/b", "a/b c.txt", "b", "é"]);
    assert_eq!(tree.skipped, []);
    assert!(!tree.truncated);
}

#[test]
fn git_s_ignore_rules_hold() {
    let rules = "*.log\n!keep.log\n/target/\nbuild/\n";
    let folder = folder_of(&[
        (".git/", ""),
        (".git/info/exclude", "private\n"),
        (".gitignore", rules),
        ("a.log", ""),
        ("keep.log", ""),
        ("private", ""),
        ("target/x", ""),
        ("src/target/y", ""),
        ("src/build/z", ""),
        ("src/.gitignore", "generated.rs\n"),
        ("src/generated.rs", ""),
        ("src/main.rs", ""),
    ]);
    let expected = [".gitignore", "keep.log", "src/.gitignore", "src/main.rs", "src/target/y"];
    assert_eq!(list_all(folder.path(), TREE_LIMIT).files, expected);
}

#[test]
fn the_rules_above_hold_inside_a_repository_and_not_beyond_it() {
    let folder = folder_of(&[
        (".gitignore", "*.rs\n"),
        ("repo/.git/", ""),
        ("repo/.gitignore", "*.tmp\n"),
        ("repo/src/a.rs", ""),
        ("repo/src/a.tmp", ""),
        ("plain/a.rs", ""),
        ("plain/.gitignore", "b.rs"),
        ("plain/b.rs", ""),
    ]);
    assert_eq!(list_all(&folder.path().join("repo/src"), TREE_LIMIT).files, ["a.rs"]);
    assert_eq!(list_all(&folder.path().join("plain"), TREE_LIMIT).files, [".gitignore", "a.rs"]);
}

#[test]
fn what_real_git_lists_is_listed() {
    let folder =
        folder_of(&[(".gitignore", "out/*\n!out/kept\n"), ("out/a", ""), ("out/kept", ""), ("x y/ü", "")]);
    let git = |arguments: &[&str]| {
        Command::new("git").arg("-C").arg(folder.path()).args(arguments).output().unwrap().stdout
    };
    git(&["init", "--quiet"]);
    let listed = String::from_utf8(git(&["ls-files", "-z", "--others", "--exclude-standard"])).unwrap();
    let mut listed: Vec<&str> = listed.split_terminator('\0').collect();
    listed.sort_unstable();
    assert_eq!(list_all(folder.path(), TREE_LIMIT).files, listed);
}

#[test]
fn nested_repositories_are_listed_without_their_git_folders() {
    let folder = folder_of(&[
        (".git/HEAD", ""),
        ("sub/.git/HEAD", ""),
        ("sub/a", ""),
        ("module/.git", "gitdir: ../.git/modules/module"),
        ("module/b", ""),
    ]);
    assert_eq!(list_all(folder.path(), TREE_LIMIT).files, ["module/b", "sub/a"]);
}

#[test]
#[cfg(unix)]
fn links_are_listed_and_not_followed() {
    let folder = folder_of(&[("real/a", "")]);
    std::os::unix::fs::symlink(folder.path(), folder.path().join("real/loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("broken")).unwrap();
    assert_eq!(list_all(folder.path(), TREE_LIMIT).files, ["broken", "real/a", "real/loop"]);
}

#[test]
#[cfg(unix)]
fn names_and_kinds_that_cannot_be_listed_are_named() {
    use std::os::unix::ffi::OsStrExt;
    let folder = folder_of(&[("a\nb", ""), ("c\td/e", ""), ("back\\slash", "")]);
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut expected = vec![
        skipped("a\\nb", "its name has control characters"),
        skipped("c\\td/e", "its name has control characters"),
        skipped("pipe", "a named pipe"),
    ];
    // Some file systems take only Unicode.
    if fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"z\xff")), "").is_ok() {
        expected.push(skipped("z\u{fffd}", "its name is not Unicode"));
    }
    let tree = list_all(folder.path(), TREE_LIMIT);
    assert_eq!(tree.files, ["back\\slash"]);
    assert_eq!(tree.skipped, expected);
}

#[test]
fn a_rule_that_cannot_be_read_is_reported() {
    let folder = folder_of(&[(".gitignore", "a{b\n*.log\n"), ("x.log", ""), ("x", "")]);
    let tree = list_all(folder.path(), TREE_LIMIT);
    assert_eq!(tree.files, [".gitignore", "x"]);
    assert_eq!(tree.skipped.len(), 1);
    assert_eq!(tree.skipped[0].path, ".gitignore");
    assert!(tree.skipped[0].reason.contains("a{b"), "{:?}", tree.skipped);
}

#[test]
fn a_root_that_is_missing_or_a_file_is_reported() {
    let folder = folder_of(&[("a", "")]);
    let root = folder.path().canonicalize().unwrap();
    let tree = list_files(&FileGuard::for_folder(&root), &root.join("a"), TREE_LIMIT);
    assert_eq!((tree.files.len(), tree.skipped), (0, vec![skipped(".", "not a directory")]));
    let tree = list_all(&folder.path().join("none"), TREE_LIMIT);
    assert_eq!(tree.files.len(), 0);
    assert_eq!(tree.skipped.len(), 1);
}

#[test]
fn the_limit_ends_the_list_at_the_same_place_every_time() {
    let folder = folder_of(&[("a/1", ""), ("a/2", ""), ("a-b", ""), ("c", "")]);
    let tree = list_all(folder.path(), 3);
    assert_eq!(tree.files, ["a-b", "a/1", "a/2"]);
    assert!(tree.truncated);
    assert_eq!(list_all(folder.path(), 3), tree);
    assert!(!list_all(folder.path(), 4).truncated);
}

#[test]
fn the_order_in_which_files_were_made_does_not_matter() {
    let names = ["b/x", "a", "c", "b/a", "d/e/f"].map(|name| (name, ""));
    let mut reversed = names;
    reversed.reverse();
    assert_eq!(
        list_all(folder_of(&names).path(), TREE_LIMIT),
        list_all(folder_of(&reversed).path(), TREE_LIMIT)
    );
}

#[test]
fn a_list_that_is_too_long_is_shown_by_folders() {
    let names = ["a/b/3", "a/b/c/1", "a/b/c/2", "a/b/c/3", "a/b/c/4", "d/4", "e"];
    let files = names.iter().map(|path| (*path).to_owned()).collect();
    let tree = FileTree { files, skipped: Vec::new(), truncated: false };
    assert_eq!(tree.lines_within(100), (tree.files.clone(), 0));
    assert_eq!(tree.lines_within(30).0, ["a/b/3", "a/b/c/ (4 files)", "d/4", "e"]);
    assert_eq!(tree.lines_within(25).0, ["a/b/ (5 files)", "d/4", "e"]);
    let (lines, hidden) = tree.lines_within(1);
    assert_eq!((lines.join(", "), hidden), ("a/ (5 files), d/ (1 file), e".to_owned(), 6));
}

/// What [`FileTree::lines_within`] says, written down plainly: it counts all files for each depth.
fn lines_by_counting(files: &[String], bytes: usize) -> (Vec<String>, usize) {
    let depth_of = |path: &str| path.matches('/').count();
    let mut depth = files.iter().map(|path| depth_of(path)).max().unwrap_or(0);
    let (mut lines, mut hidden) = (files.to_vec(), 0);
    while lines.iter().map(|line| line.len() + 1).sum::<usize>() > bytes && depth > 0 {
        depth -= 1;
        let mut folders: std::collections::BTreeMap<&str, usize> = Default::default();
        lines = files.iter().filter(|path| depth_of(path) <= depth).cloned().collect();
        for path in files {
            if let Some((end, _)) = path.match_indices('/').nth(depth) {
                *folders.entry(&path[..=end]).or_default() += 1;
            }
        }
        hidden = folders.values().sum();
        lines.extend(folders.iter().map(|(folder, count)| hardpan_prompt::folder_line(folder, *count)));
        lines.sort_unstable();
    }
    (lines, hidden)
}

#[test]
fn lists_of_any_shape_and_limit_are_shown_by_the_same_folders() {
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let parts = ["a", "a-b", "b", "é", "src", "0", "a b"];
    for _ in 0..300 {
        let mut path = |_| {
            let depth = 1 + random(5);
            (0..depth).map(|_| parts[random(7) as usize]).collect::<Vec<_>>().join("/")
        };
        let mut files: Vec<String> = (0..40).map(&mut path).collect();
        // What is a folder is no file.
        let all = files.clone();
        files.retain(|file| !all.iter().any(|other| other.starts_with(&format!("{file}/"))));
        files.sort_unstable();
        files.dedup();
        let tree = FileTree { files, skipped: Vec::new(), truncated: false };
        for bytes in [0, 20, 60, 100, 150, 200, 300, 1000] {
            assert_eq!(tree.lines_within(bytes), lines_by_counting(&tree.files, bytes), "{:?}", tree.files);
        }
    }
}

#[test]
fn a_folder_that_is_no_project_is_listed_in_part() {
    let files: Vec<String> = (0..10_050).map(|n| format!("d{:02}/f{n:05}", n % 20)).collect();
    let entries: Vec<(&str, &str)> = files.iter().map(|name| (name.as_str(), "")).collect();
    let folder = folder_of(&entries);
    let tree = list_all(folder.path(), TREE_LIMIT);
    assert!(tree.truncated);
    assert_eq!(tree.files.len(), 10_000);
    fs::write(folder.path().join("Cargo.toml"), "").unwrap();
    let tree = list_all(folder.path(), TREE_LIMIT);
    assert!(!tree.truncated);
    assert_eq!(tree.files.len(), 10_051);
}

/// The folders in /dev in which another file system is mounted: /dev/pts and /dev/shm, usually.
#[cfg(target_os = "linux")]
fn mount_points_in_dev() -> Vec<std::path::PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata("/dev").unwrap().dev();
    let folders = fs::read_dir("/dev").unwrap().map(|entry| entry.unwrap());
    let folders = folders.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| entry.path());
    folders.filter(|path| fs::metadata(path).is_ok_and(|found| found.dev() != device)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_mounted_below_is_not_entered() {
    let dev = Path::new("/dev");
    let mounted = mount_points_in_dev();
    assert!(!mounted.is_empty(), "a Linux system mounts something below /dev");
    let tree = list_all(dev, TREE_LIMIT);
    for path in mounted {
        let name = path.strip_prefix(dev).unwrap().to_str().unwrap();
        assert!(tree.skipped.contains(&skipped(name, "another file system is mounted here")), "{name}");
        let below = format!("{name}/");
        assert!(!tree.files.iter().any(|file| file.starts_with(&below)), "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_the_kernel_makes_up_is_not_listed() {
    for folder in ["/proc", "/sys"] {
        let tree = list_all(Path::new(folder), TREE_LIMIT);
        assert_eq!(tree.files, Vec::<String>::new());
        assert_eq!(tree.skipped, [skipped(".", "a view of the system's state, not files")]);
    }
}

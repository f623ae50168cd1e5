use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::Command;

use proptest::prelude::*;

use super::*;
use crate::list_files;

struct Watched {
    folder: tempfile::TempDir,
    root: PathBuf,
    watch: WorkspaceWatch,
    position: WatchPosition,
}

impl Watched {
    fn new(prepare: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        prepare(&root);
        let watch = WorkspaceWatch::start(FileGuard::for_folder(&root), &root).unwrap();
        let mut position = WatchPosition::default();
        assert!(watch.changes_since(&mut position).everything);
        Watched { folder, root, watch, position }
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.root.join(path).parent().unwrap()).unwrap();
        fs::write(self.root.join(path), text).unwrap();
    }

    fn changes(&mut self) -> Changes {
        let changes = self.watch.changes_since(&mut self.position);
        let listed = list_files(&FileGuard::for_folder(&self.root), &self.root, TREE_LIMIT);
        assert_eq!(*self.watch.file_list(), listed);
        changes
    }
}

/// How many folders below `root` can be watched: a file beside it says so.
pub(super) fn watch_limit(root: &Path) -> usize {
    let limit = fs::read_to_string(root.with_extension("watch-limit")).ok();
    limit.and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX)
}

fn changed_files(files: &[&str]) -> Changes {
    let files = files.iter().map(|file| (*file).to_owned()).collect();
    Changes { listed_files: true, files, ..Changes::default() }
}

fn git(root: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(root).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let names = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let output = command.args(names).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_question_after_a_write_knows_of_it_and_the_next_one_does_not() {
    let mut watched = Watched::new(|root| fs::write(root.join("a"), "1").unwrap());
    assert_eq!(watched.changes(), Changes::default());
    watched.write("a", "2");
    assert_eq!(watched.changes(), changed_files(&["a"]));
    assert_eq!(watched.changes(), Changes::default());
    // Written beside and renamed, as editors do: the list stays the same.
    watched.write("a.new", "3");
    fs::rename(watched.root.join("a.new"), watched.root.join("a")).unwrap();
    let changes = watched.changes();
    assert!(!changes.list && !changes.everything && changes.listed_files, "{changes:?}");
    assert!(changes.files.contains("a"));
}

#[test]
fn new_and_removed_files_and_folders_change_the_list() {
    let mut watched = Watched::new(|root| fs::write(root.join("a"), "1").unwrap());
    watched.write("deep/er/b", "1");
    assert!(watched.changes().list);
    watched.write("deep/er/b", "2");
    assert_eq!(watched.changes(), changed_files(&["deep/er/b"]));
    fs::rename(watched.root.join("deep"), watched.root.join("moved")).unwrap();
    assert!(watched.changes().list);
    watched.write("moved/er/b", "3");
    assert_eq!(watched.changes(), changed_files(&["moved/er/b"]));
    fs::remove_dir_all(watched.root.join("moved")).unwrap();
    fs::remove_file(watched.root.join("a")).unwrap();
    assert!(watched.changes().list);
    assert!(watched.changes().is_empty());
}

#[test]
fn ignored_folders_are_not_watched_and_ignored_files_do_not_touch_the_status() {
    let mut watched = Watched::new(|root| {
        fs::write(root.join(".gitignore"), "target/\n*.log\n").unwrap();
        fs::create_dir(root.join("target")).unwrap();
    });
    watched.write("target/x", "1");
    assert!(watched.changes().is_empty());
    assert!(!watched.watch.covers(&watched.root.join("target/x")));
    for text in ["1", "2"] {
        watched.write("a.log", text);
        let changes = watched.changes();
        assert!(!changes.affect_status(), "{changes:?}");
        // Somebody may have opened it all the same.
        assert!(changes.files.contains("a.log"));
    }
    watched.write(".gitignore", "*.log\n");
    assert!(watched.changes().list);
    watched.write("target/x", "2");
    assert_eq!(watched.changes(), changed_files(&["target/x"]));
}

#[test]
fn the_repository_is_watched_narrowly() {
    let mut watched = Watched::new(|root| {
        git(root, &["init", "-q", "-b", "main"]);
        fs::write(root.join("a"), "1").unwrap();
    });
    git(&watched.root, &["add", "a"]);
    let staged = watched.changes();
    assert!(staged.repository && !staged.list && staged.files.is_empty(), "{staged:?}");
    git(&watched.root, &["commit", "-q", "-m", "x"]);
    assert!(watched.changes().repository);
    git(&watched.root, &["branch", "feature/one"]);
    assert!(watched.changes().repository);
    git(&watched.root, &["branch", "feature/two"]);
    assert!(watched.changes().repository);
    assert!(watched.changes().is_empty());
    // An object alone says nothing.
    fs::create_dir_all(watched.root.join(".git/objects/zz")).unwrap();
    assert!(watched.changes().is_empty());
}

#[test]
fn pipes_links_and_sockets_are_neither_opened_nor_followed() {
    let outside = tempfile::tempdir().unwrap();
    let mut watched = Watched::new(|root| fs::write(root.join("a"), "1").unwrap());
    symlink(outside.path(), watched.root.join("out")).unwrap();
    assert!(Command::new("mkfifo").arg(watched.root.join("pipe")).status().unwrap().success());
    let socket = std::os::unix::net::UnixListener::bind(watched.root.join("socket")).unwrap();
    assert!(watched.changes().list);
    fs::write(outside.path().join("x"), "1").unwrap();
    assert!(watched.changes().is_empty());
    assert!(!watched.watch.covers(&watched.root.join("out/x")));
    // A file whose place a pipe takes is no longer in the list.
    fs::remove_file(watched.root.join("a")).unwrap();
    assert!(Command::new("mkfifo").arg(watched.root.join("a")).status().unwrap().success());
    assert!(watched.changes().list);
    drop(socket);
}

#[test]
fn lost_events_mean_that_everything_may_have_changed() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let mut watched = Watched::new(|root| fs::write(root.join("a"), "1").unwrap());
    // Two names in turn: the same event twice in a row is one.
    for _ in 0..=limit / 2 {
        for name in ["one", "two"] {
            let file = fs::File::create(watched.root.join(name)).unwrap();
            file.set_len(1).unwrap();
        }
    }
    assert!(watched.changes().everything);
    watched.write("a", "2");
    assert_eq!(watched.changes(), changed_files(&["a"]));
}

#[test]
fn a_folder_that_is_gone_ends_the_watch_and_everything_may_change() {
    let mut watched = Watched::new(|root| fs::write(root.join("a"), "1").unwrap());
    fs::rename(&watched.root, watched.folder.path().join("elsewhere")).unwrap();
    assert!(watched.watch.changes_since(&mut watched.position).everything);
    assert_eq!(watched.watch.failure(), Some(WatchError::FolderGone));
    assert!(watched.watch.changes_since(&mut watched.position).everything);
    assert!(!watched.watch.wait_for_change(Duration::ZERO));
}

#[test]
fn at_the_limit_of_watches_everything_may_have_changed_and_the_list_is_read_each_time() {
    let mut watched = Watched::new(|root| {
        fs::create_dir(root.join("one")).unwrap();
        fs::write(root.with_extension("watch-limit"), "3").unwrap();
    });
    watched.write("one/a", "1");
    assert_eq!(watched.changes().files.len(), 1);
    assert_eq!(watched.watch.failure(), None);
    // A third folder is watched, a fourth is not.
    watched.write("two/b", "1");
    assert!(watched.changes().files.contains("two/b"));
    watched.write("three/c", "1");
    assert!(watched.changes().everything);
    assert_eq!(watched.watch.failure(), Some(WatchError::LimitReached));
    // From now on whoever asks looks, and finds what is there.
    assert!(watched.changes().everything);
    watched.write("three/d", "1");
    assert!(watched.changes().everything);
    assert!(watched.watch.file_list().has_file("three/d"));
    assert!(!watched.watch.covers(&watched.root.join("one/a")));
    assert!(!watched.watch.wait_for_change(Duration::ZERO));
    // A folder with too many to begin with is not watched at all.
    fs::write(watched.root.with_extension("watch-limit"), "2").unwrap();
    let started = WorkspaceWatch::start(FileGuard::for_folder(&watched.root), &watched.root);
    assert_eq!(started.unwrap_err(), WatchError::LimitReached);
}

#[test]
fn several_readers_each_learn_of_a_change() {
    let mut watched = Watched::new(|root| fs::write(root.join("a"), "1").unwrap());
    let mut other = WatchPosition::default();
    assert!(watched.watch.changes_since(&mut other).everything);
    watched.write("a", "2");
    assert!(watched.watch.wait_for_change(Duration::from_secs(60)));
    assert_eq!(watched.changes(), changed_files(&["a"]));
    assert_eq!(watched.watch.changes_since(&mut other), changed_files(&["a"]));
}

/// A change of the tree, on names from a small set so that they meet.
#[derive(Clone, Debug)]
enum Operation {
    Write(String, String),
    Remove(String),
    Rename(String, String),
    Folder(String),
    Link(String),
    Pipe(String),
    Rules(String, &'static str),
}

fn operation() -> impl Strategy<Value = Operation> {
    let name = || prop::sample::select(vec!["a", "b", "c.log", "d", "ü\n"]);
    let path = move || prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"));
    let rules = prop::sample::select(vec!["*.log\n", "d/\n", "/a\n!b\n", "", "[\n"]);
    prop_oneof![
        4 => (path(), "[xyz]{1,3}").prop_map(|(path, text)| Operation::Write(path, text)),
        2 => path().prop_map(Operation::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Operation::Rename(from, to)),
        2 => path().prop_map(Operation::Folder),
        1 => path().prop_map(Operation::Link),
        1 => path().prop_map(Operation::Pipe),
        1 => (path(), rules).prop_map(|(path, rules)| Operation::Rules(path, rules)),
    ]
}

impl Operation {
    /// Does what is possible: some of it is not, where a file is in the way.
    fn carry_out(&self, root: &Path) {
        let place = |path: &str| {
            let place = root.join(path);
            let _ = fs::create_dir_all(place.parent().unwrap());
            place
        };
        match self {
            Operation::Write(path, text) => {
                // Whoever opens a pipe waits.
                let place = place(path);
                if !place.symlink_metadata().is_ok_and(|found| found.file_type().is_fifo()) {
                    let _ = fs::write(place, text);
                }
            }
            Operation::Remove(path) => {
                let _ = fs::remove_file(root.join(path)).or_else(|_| fs::remove_dir_all(root.join(path)));
            }
            Operation::Rename(from, to) => drop(fs::rename(root.join(from), place(to))),
            Operation::Folder(path) => drop(fs::create_dir_all(root.join(path))),
            Operation::Link(path) => drop(symlink("no/where", place(path))),
            Operation::Pipe(path) => {
                let mode = rustix::fs::Mode::from(0o600);
                let _ =
                    rustix::fs::mknodat(rustix::fs::CWD, place(path), rustix::fs::FileType::Fifo, mode, 0);
            }
            Operation::Rules(path, rules) => {
                drop(fs::write(place(&format!("{path}/.gitignore")), rules));
            }
        }
    }
}

/// The listed files with what they hold.
fn contents(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let files = list_files(&FileGuard::for_folder(root), root, TREE_LIMIT).files;
    let content = |file: &String| {
        let place = root.join(file);
        let is_file = place.symlink_metadata().is_ok_and(|found| found.is_file());
        is_file.then(|| fs::read(place).unwrap())
    };
    files.iter().map(|file| (file.clone(), content(file))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn whatever_happens_the_list_is_right_and_every_changed_file_is_named(
        batches in prop::collection::vec(prop::collection::vec(operation(), 1..6), 1..6),
    ) {
        let mut watched = Watched::new(|root| fs::write(root.join("a"), "1").unwrap());
        for batch in batches {
            let before = contents(&watched.root);
            batch.iter().for_each(|operation| operation.carry_out(&watched.root));
            let changes = watched.changes();
            let after = contents(&watched.root);
            if changes.everything {
                continue;
            }
            for path in before.keys().chain(after.keys()) {
                let is_same = before.get(path) == after.get(path);
                prop_assert!(is_same || changes.files.contains(path), "{path}: {changes:?}");
                prop_assert!(before.contains_key(path) == after.contains_key(path) || changes.list);
            }
            prop_assert!(watched.changes().is_empty());
        }
    }
}

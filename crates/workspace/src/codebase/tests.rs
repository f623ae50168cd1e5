use std::fs;
use std::time::{Duration, SystemTime};

use hardpan_symbols::MapRequest;
use tempfile::TempDir;

use super::*;

struct TestFolder {
    root: TempDir,
    cache: TempDir,
    files: Vec<String>,
}

impl TestFolder {
    /// Files that were written an hour ago, by the time of the file system itself.
    fn new(files: &[(&str, &str)]) -> Self {
        let (root, cache) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let tree =
            TestFolder { root, cache, files: files.iter().map(|(name, _)| (*name).to_owned()).collect() };
        files.iter().for_each(|(name, content)| tree.write(name, content, 3600));
        tree
    }

    fn write(&self, name: &str, content: &str, seconds_ago: u64) {
        let path = self.root.path().join(name);
        fs::write(&path, content).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let written: SystemTime = file.metadata().unwrap().modified().unwrap();
        file.set_modified(written - Duration::from_secs(seconds_ago)).unwrap();
    }

    fn open(&self) -> (usize, String) {
        let codebase = index_codebase(
            &FileGuard::for_folder(self.root.path()),
            self.root.path(),
            &self.files,
            Some(self.cache.path()),
            &mut |_| {},
        );
        (codebase.parsed_files, codebase.index.map(&MapRequest::default()).text())
    }

    fn cache_file(&self) -> std::path::PathBuf {
        index_cache::cache_path(self.cache.path(), self.root.path())
    }
}

#[test]
fn nothing_is_parsed_twice_and_the_map_is_the_same() {
    let tree = TestFolder::new(&[
        ("a.py", "def a(): ...\n"),
        ("b.py", "from a import a\na()\n"),
        ("c.txt", "no code"),
    ]);
    let (parsed, cold) = tree.open();
    assert_eq!(parsed, 3);
    assert_eq!(tree.open(), (0, cold.clone()));
    tree.write("a.py", "def a(): ...\n", 1800);
    assert_eq!(tree.open(), (0, cold), "touched, but not changed");
}

#[test]
fn a_change_is_noticed_even_if_size_and_time_stay() {
    let tree = TestFolder::new(&[("a.py", "def one(): ...\n")]);
    tree.open();
    tree.write("a.py", "def two(): ...\n", 0);
    let (parsed, map) = tree.open();
    assert_eq!(parsed, 1);
    assert!(map.contains("f two"), "{map}");
    // Written again within the same tick as the cache: the stamp proves nothing.
    let stamp = fs::metadata(tree.root.path().join("a.py")).unwrap().modified().unwrap();
    fs::write(tree.root.path().join("a.py"), "def six(): ...\n").unwrap();
    fs::File::options().write(true).open(tree.root.path().join("a.py")).unwrap().set_modified(stamp).unwrap();
    assert!(tree.open().1.contains("f six"));
}

#[test]
fn a_cache_that_is_damaged_old_or_gone_is_as_good_as_none() {
    let tree = TestFolder::new(&[("a.py", "def a(): ...\n")]);
    let (_, map) = tree.open();
    let whole = fs::read(tree.cache_file()).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(tree.cache_file(), &bytes).unwrap();
        assert_eq!(tree.open(), (1, map.clone()), "byte {at}");
        fs::write(tree.cache_file(), &whole[..at]).unwrap();
        assert_eq!(tree.open(), (1, map.clone()), "cut at {at}");
    }
    fs::remove_file(tree.cache_file()).unwrap();
    assert_eq!(tree.open(), (1, map));
}

#[test]
fn files_come_and_go() {
    let mut tree = TestFolder::new(&[("a.py", "def a(): ...\n"), ("b.py", "def b(): ...\n")]);
    tree.open();
    fs::remove_file(tree.root.path().join("b.py")).unwrap();
    assert!(!tree.open().1.contains("f b"), "listed, but gone when it was read");
    tree.files.pop();
    assert_eq!(tree.open().0, 0);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.py", tree.root.path().join("loop.py")).unwrap();
        tree.files.push("loop.py".into());
        assert_eq!(tree.open().0, 0, "links are not followed");
    }
}

#[test]
fn few_changes_and_many_give_the_map_of_a_fresh_index() {
    let names: Vec<String> = (0..3 * INCREMENTAL_LIMIT).map(|n| format!("m{n}.py")).collect();
    let text = |n: usize, round: usize| format!("from m{} import f0\ndef f{round}(a{n}): f0(a{n})\n", n + 1);
    let first: Vec<String> = (0..names.len()).map(|n| text(n, 0)).collect();
    let files: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(first.iter().map(String::as_str)).collect();
    let mut tree = TestFolder::new(&files);
    assert_eq!(tree.open().0, names.len());
    for (round, changed) in [(1, INCREMENTAL_LIMIT - 1), (2, 2 * INCREMENTAL_LIMIT)] {
        (0..changed).for_each(|n| tree.write(&names[n], &text(n, round), 1800));
        tree.files.pop();
        let (parsed, map) = tree.open();
        assert_eq!(parsed, changed);
        let fresh = index_codebase(
            &FileGuard::for_folder(tree.root.path()),
            tree.root.path(),
            &tree.files,
            None,
            &mut |_| {},
        );
        assert_eq!(map, fresh.index.map(&MapRequest::default()).text());
        assert_eq!(tree.open(), (0, map));
    }
}

#[test]
fn what_is_only_touched_is_read_once_more_and_not_again() {
    let tree = TestFolder::new(&[("a.py", "def a(): ...\n")]);
    tree.open();
    let written = || fs::metadata(tree.cache_file()).unwrap().modified().unwrap();
    let first = written();
    tree.open();
    assert_eq!(written(), first, "nothing to write");
    tree.write("a.py", "def a(): ...\n", 1800);
    tree.open();
    let second = written();
    assert_ne!(second, first, "the new stamp is kept");
    tree.open();
    assert_eq!(written(), second);
}

#[test]
fn programs_that_start_at_once_do_not_disturb_each_other() {
    let tree = TestFolder::new(&[("a.py", "def a(): ...\n"), ("b.py", "from a import a\na()\n")]);
    let (_, expected) = tree.open();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(tree.open().1, expected);
                    let _ = fs::remove_file(tree.cache_file());
                }
            });
        }
    });
    assert_eq!(tree.open().1, expected);
}

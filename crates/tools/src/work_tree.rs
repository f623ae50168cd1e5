//! [`WorkTree`]: what the small files of the workspace held before a command, so that `/undo` also takes
//! back what commands did.
//!
//! The contents are kept in memory by the signatures of their files: taking it again reads what has
//! changed. A watch tells what that is, so that nothing is looked at if nothing has changed; without one
//! the folder is walked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_prompt::Hash;
use hardpan_workspace::{Changes, EntryKind, FileGuard, WatchPosition, WorkspaceWatch, walk};

use crate::Scope;

/// How many files are looked at. In larger trees the rest is not covered.
const MAX_FILES: usize = 20_000;

/// The largest file that is kept.
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// How many bytes are kept in all.
const MAX_KEPT_BYTES: u64 = 32 * 1024 * 1024;

/// The files of a workspace that git would not ignore, as they were when it was last brought up to date.
#[derive(Debug, Default)]
pub(crate) struct WorkTree {
    /// `None` before the first time.
    files: Option<TreeFiles>,
    /// Up to where it knows the changes of the watch.
    position: WatchPosition,
}

#[derive(Debug, Default)]
struct TreeFiles {
    by_path: BTreeMap<Arc<Path>, TreeFile>,
    /// How many bytes are kept.
    kept: u64,
    /// Whether there are files that are not looked at.
    is_partial: bool,
}

#[derive(Debug)]
struct TreeFile {
    signature: FileSignature,
    mode: u32,
    /// `None` if the file is too large, or cannot be read.
    content: Option<Arc<[u8]>>,
}

impl TreeFile {
    fn kept_bytes(&self) -> u64 {
        self.content.as_ref().map_or(0, |content| content.len() as u64)
    }
}

/// Values of which at least one changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileSignature {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// What a command did to a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TreeChange {
    pub path: PathBuf,
    pub before: FormerFile,
    /// The hash of what it holds now; `None` if it is gone.
    pub after: Option<Hash>,
}

/// What a file was before a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FormerFile {
    /// There was none.
    Missing,
    /// Its content and permission bits.
    Kept(Arc<[u8]>, u32),
    /// It was not kept.
    NotKept,
}

impl WorkTree {
    /// Brings the tree up to date, and returns what changed since the last time, by path. The first time
    /// that is nothing. Files with the signature that they had are not read again.
    pub fn update(&mut self, scope: &Scope, watch: Option<&WorkspaceWatch>) -> Vec<TreeChange> {
        // Asked before anything is read, so that what changes meanwhile is looked at the next time.
        let changes = watch.map(|watch| watch.changes_since(&mut self.position));
        match (&mut self.files, changes, watch) {
            (Some(files), Some(changes), Some(watch)) if !changes.everything => {
                files.apply(scope, &changes, watch)
            }
            (known, ..) => {
                let later = TreeFiles::walk(scope, known.as_ref());
                let changes = known.as_ref().map(|known| known.changes_until(&later)).unwrap_or_default();
                *known = Some(later);
                changes
            }
        }
    }
}

impl TreeFiles {
    fn walk(scope: &Scope, known: Option<&TreeFiles>) -> TreeFiles {
        let guard = scope.guard();
        let mut files = TreeFiles::default();
        let entries = walk(&guard, &scope.root).filter_map(Result::ok);
        for entry in entries.filter(|entry| entry.kind == EntryKind::File) {
            if files.by_path.len() >= MAX_FILES {
                files.is_partial = true;
                break;
            }
            let Ok(metadata) = entry.path.symlink_metadata() else { continue };
            let known = known.and_then(|known| known.by_path.get(&*entry.path));
            let file = files.read_file(&guard, &entry.path, &metadata, known);
            files.insert(entry.path.into(), file);
        }
        files
    }

    /// Looks at the files that a watch reports.
    fn apply(&mut self, scope: &Scope, changes: &Changes, watch: &WorkspaceWatch) -> Vec<TreeChange> {
        if changes.files.is_empty() {
            return Vec::new();
        }
        let (guard, list) = (scope.guard(), watch.file_list());
        let mut different = Vec::new();
        for path in &changes.files {
            let place = scope.root.join(path);
            let before = self.by_path.remove(&*place);
            self.kept -= before.as_ref().map_or(0, TreeFile::kept_bytes);
            let metadata = place.symlink_metadata().ok();
            let listed = metadata.filter(|metadata| metadata.is_file() && list.has_file(path));
            if before.is_none() && listed.is_some() && self.by_path.len() >= MAX_FILES {
                self.is_partial = true;
                continue;
            }
            let after = listed.map(|found| self.read_file(&guard, &place, &found, before.as_ref()));
            different.extend(self.change(&place, before.as_ref(), after.as_ref()));
            after.into_iter().for_each(|file| self.insert(place.as_path().into(), file));
        }
        different
    }

    fn insert(&mut self, path: Arc<Path>, file: TreeFile) {
        self.kept += file.kept_bytes();
        self.by_path.insert(path, file);
    }

    /// A file as it is now, which is not read if it is the one that is known.
    fn read_file(
        &self,
        guard: &FileGuard,
        path: &Path,
        metadata: &Metadata,
        known: Option<&TreeFile>,
    ) -> TreeFile {
        let signature = FileSignature {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        let fits = metadata.size() <= MAX_FILE_BYTES && self.kept + metadata.size() <= MAX_KEPT_BYTES;
        let known =
            known.filter(|known| known.signature == signature).and_then(|known| known.content.clone());
        let read = || guard.open(path).and_then(|file| file.read_all(MAX_FILE_BYTES)).ok();
        let content = if fits { known.or_else(|| read().map(Into::into)) } else { None };
        TreeFile { signature, mode: metadata.mode() & 0o7777, content }
    }

    /// What is different in a later tree, by path.
    fn changes_until(&self, later: &TreeFiles) -> Vec<TreeChange> {
        let paths: BTreeSet<&Arc<Path>> = self.by_path.keys().chain(later.by_path.keys()).collect();
        let different = paths.into_iter().filter_map(|path| {
            let after = later.by_path.get(path);
            // Others that were found first may have taken its place among those that are looked at.
            if after.is_none() && later.is_partial && path.symlink_metadata().is_ok() {
                return None;
            }
            self.change(path, self.by_path.get(path), after)
        });
        different.collect()
    }

    /// What became of a file of this tree.
    fn change(&self, path: &Path, before: Option<&TreeFile>, after: Option<&TreeFile>) -> Option<TreeChange> {
        match (before, after) {
            (None, None) => return None,
            (Some(before), Some(after))
                if before.signature == after.signature
                    || before.content.is_some() && before.content == after.content =>
            {
                return None;
            }
            _ => {}
        }
        let is_known = after.is_none_or(|after| after.content.is_some());
        let former = match before {
            _ if !is_known => FormerFile::NotKept,
            // It may be one that was not looked at: to undo that must not remove it.
            None if self.is_partial => FormerFile::NotKept,
            None => FormerFile::Missing,
            Some(file) => match &file.content {
                Some(content) => FormerFile::Kept(content.clone(), file.mode),
                None => FormerFile::NotKept,
            },
        };
        let after = after.and_then(|after| after.content.as_ref()).map(|content| Hash::of(content));
        Some(TreeChange { path: path.to_owned(), before: former, after })
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::time::Instant;

    use super::*;

    struct Folder {
        _folder: tempfile::TempDir,
        scope: Scope,
    }

    impl Folder {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            Folder { _folder: folder, scope: Scope::new(&root, &root) }
        }

        fn write(&self, path: &str, text: &str) {
            fs::create_dir_all(self.scope.root.join(path).parent().unwrap()).unwrap();
            fs::write(self.scope.root.join(path), text).unwrap();
        }

        fn watch(&self) -> WorkspaceWatch {
            WorkspaceWatch::start(self.scope.guard(), &self.scope.root).unwrap()
        }
    }

    #[test]
    fn a_watched_tree_finds_what_one_that_walks_finds() {
        let folder = Folder::new();
        for (path, text) in
            [("a", "1"), ("b/c", "2"), ("b/d", "3"), (".gitignore", "*.log\n"), ("e.log", "4")]
        {
            folder.write(path, text);
        }
        let watch = folder.watch();
        let (mut watched, mut walked) = (WorkTree::default(), WorkTree::default());
        assert_eq!(watched.update(&folder.scope, Some(&watch)), []);
        assert_eq!(walked.update(&folder.scope, None), []);
        assert_eq!(watched.update(&folder.scope, Some(&watch)), []);
        folder.write("a", "one");
        folder.write("new/f", "5");
        folder.write("e.log", "6");
        folder.write("large", &"x".repeat(300_000));
        fs::remove_file(folder.scope.root.join("b/c")).unwrap();
        fs::rename(folder.scope.root.join("b"), folder.scope.root.join("g")).unwrap();
        let mut changes = watched.update(&folder.scope, Some(&watch));
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!(changes, walked.update(&folder.scope, None));
        let names: Vec<_> = changes.iter().map(|change| change.path.file_name().unwrap()).collect();
        assert_eq!(names, ["a", "c", "d", "d", "large", "f"]);
        assert_eq!(watched.files.unwrap().kept, walked.files.unwrap().kept);
    }

    #[test]
    fn a_change_is_told_once_with_what_the_file_held_before() {
        let folder = Folder::new();
        folder.write("a", "1");
        let watch = folder.watch();
        let mut tree = WorkTree::default();
        tree.update(&folder.scope, Some(&watch));
        folder.write("a", "2");
        let [change] = &tree.update(&folder.scope, Some(&watch))[..] else { panic!() };
        assert!(matches!(&change.before, FormerFile::Kept(content, _) if **content == *b"1"));
        assert_eq!(tree.update(&folder.scope, Some(&watch)), []);
        // The same bytes again are no change.
        folder.write("a", "2");
        assert_eq!(tree.update(&folder.scope, Some(&watch)), []);
    }

    #[test]
    fn a_file_that_was_not_looked_at_before_does_not_count_as_new() {
        let folder = Folder::new();
        folder.write("Makefile", ""); // a project: all of it is listed
        for number in 0..MAX_FILES {
            let folder_name = format!("d{:03}", number / 100);
            fs::create_dir_all(folder.scope.root.join(&folder_name)).unwrap();
            fs::File::create(folder.scope.root.join(folder_name).join(format!("{number:05}"))).unwrap();
        }
        folder.write("z/last", "kept by nobody");
        let watch = folder.watch();
        let (mut watched, mut walked) = (WorkTree::default(), WorkTree::default());
        watched.update(&folder.scope, Some(&watch));
        walked.update(&folder.scope, None);
        // Room for files that had none.
        (0..5).for_each(|n| fs::remove_file(folder.scope.root.join(format!("d000/{n:05}"))).unwrap());
        folder.write("z/last", "changed");
        folder.write("a/first", "new");
        for changes in [watched.update(&folder.scope, Some(&watch)), walked.update(&folder.scope, None)] {
            let gone = changes.iter().filter(|change| change.after.is_none()).count();
            assert_eq!(gone, 5, "{changes:?}");
            let others: Vec<_> = changes.iter().filter(|change| change.after.is_some()).collect();
            assert!(!others.is_empty());
            assert!(others.iter().all(|change| change.before == FormerFile::NotKept), "{others:?}");
        }
    }

    /// `cargo test --release -p hardpan-tools --lib work_tree -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    #[allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a measurement looks at the clock")]
    fn twenty_thousand_files_measured() {
        let folder = Folder::new();
        folder.write("Makefile", ""); // a project: all of it is listed
        (0..MAX_FILES - 1)
            .for_each(|number| folder.write(&format!("d{}/{number}", number / 100), "some text\n"));
        let watch = folder.watch();
        let mut tree = WorkTree::default();
        for (name, watch, is_written) in [
            ("first", None, false),
            ("nothing changed, walked", None, false),
            ("first, watched", Some(&watch), false),
            ("nothing changed, watched", Some(&watch), false),
            ("one file changed, watched", Some(&watch), true),
            ("one file changed, walked", None, true),
        ] {
            if is_written {
                folder.write("d7/700", &format!("another text, {name}\n"));
            }
            let begun = Instant::now();
            let changes = tree.update(&folder.scope, watch).len();
            println!("{name}: {:.3} ms", begun.elapsed().as_secs_f64() * 1000.0);
            assert_eq!(changes, usize::from(is_written), "{name}");
        }
    }
}

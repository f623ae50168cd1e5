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

/// The files of a workspace that git would not ignore, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkTree {
    files: Arc<BTreeMap<Arc<Path>, Arc<TreeFile>>>,
    /// How many bytes are kept.
    kept: u64,
    /// Up to where it knows the changes of the watch.
    position: WatchPosition,
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
    /// The tree as it is now. Files with the signature that they have in `self` are not read again.
    pub fn take(&self, scope: &Scope, watch: Option<&WorkspaceWatch>) -> WorkTree {
        // Asked before anything is read, so that what changes meanwhile is looked at the next time.
        let mut position = self.position;
        let changes = watch.map(|watch| watch.changes_since(&mut position));
        let tree = match (changes, watch) {
            (Some(changes), Some(_)) if changes.files.is_empty() && !changes.everything => self.clone(),
            (Some(changes), Some(watch)) if !changes.everything => self.with_changes(scope, &changes, watch),
            _ => self.walk(scope),
        };
        WorkTree { position, ..tree }
    }

    fn walk(&self, scope: &Scope) -> WorkTree {
        let guard = scope.guard();
        let (mut files, mut kept) = (BTreeMap::new(), 0);
        let entries = walk(&guard, &scope.root).filter_map(Result::ok);
        for entry in entries.filter(|entry| entry.kind == EntryKind::File).take(MAX_FILES) {
            let Ok(metadata) = entry.path.symlink_metadata() else { continue };
            let file = self.read_file(&guard, &entry.path, &metadata, kept);
            kept += file.kept_bytes();
            files.insert(entry.path.into(), file);
        }
        WorkTree { files: Arc::new(files), kept, position: self.position }
    }

    fn with_changes(&self, scope: &Scope, changes: &Changes, watch: &WorkspaceWatch) -> WorkTree {
        let guard = scope.guard();
        let mut tree = self.clone();
        let files = Arc::make_mut(&mut tree.files);
        let list = watch.file_list();
        for path in &changes.files {
            let place = scope.root.join(path);
            let known = files.remove(&*place);
            tree.kept -= known.as_ref().map_or(0, |known| known.kept_bytes());
            if !list.has_file(path) || files.len() >= MAX_FILES {
                continue;
            }
            let Ok(metadata) = place.symlink_metadata() else { continue };
            if metadata.is_file() {
                let file = self.read_file(&guard, &place, &metadata, tree.kept);
                tree.kept += file.kept_bytes();
                files.insert(place.into(), file);
            }
        }
        tree
    }

    /// A file as it is now, unless it is known. `kept` bytes are kept of others.
    fn read_file(&self, guard: &FileGuard, path: &Path, metadata: &Metadata, kept: u64) -> Arc<TreeFile> {
        let signature = FileSignature {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        let fits = metadata.size() <= MAX_FILE_BYTES && kept + metadata.size() <= MAX_KEPT_BYTES;
        let known = self.files.get(path).filter(|known| known.signature == signature);
        match known {
            Some(known) if fits && known.content.is_some() => return known.clone(),
            _ => {}
        }
        let read = || guard.open(path).and_then(|file| file.read_all(MAX_FILE_BYTES)).ok();
        let content = if fits { read().map(Into::into) } else { None };
        Arc::new(TreeFile { signature, mode: metadata.mode() & 0o7777, content })
    }

    /// What is different in a later tree, by path.
    pub fn changes_until(&self, later: &WorkTree) -> Vec<TreeChange> {
        if Arc::ptr_eq(&self.files, &later.files) {
            return Vec::new();
        }
        let paths: BTreeSet<&Arc<Path>> = self.files.keys().chain(later.files.keys()).collect();
        paths.into_iter().filter_map(|path| self.change_of(path, later)).collect()
    }

    fn change_of(&self, path: &Path, later: &WorkTree) -> Option<TreeChange> {
        let (before, after) = (self.files.get(path), later.files.get(path));
        if let (Some(before), Some(after)) = (before, after)
            && (Arc::ptr_eq(before, after)
                || before.signature == after.signature
                || before.content.is_some() && before.content == after.content)
        {
            return None;
        }
        let is_known = after.is_none_or(|after| after.content.is_some());
        let former = match before {
            _ if !is_known => FormerFile::NotKept,
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
        let take = |before: &WorkTree, watch| before.take(&folder.scope, watch);
        let (watched, walked) = (take(&WorkTree::default(), Some(&watch)), take(&WorkTree::default(), None));
        assert_eq!(watched.changes_until(&take(&watched, Some(&watch))), []);
        folder.write("a", "one");
        folder.write("new/f", "5");
        folder.write("e.log", "6");
        folder.write("large", &"x".repeat(300_000));
        fs::remove_file(folder.scope.root.join("b/c")).unwrap();
        fs::rename(folder.scope.root.join("b"), folder.scope.root.join("g")).unwrap();
        let (watched_after, walked_after) = (take(&watched, Some(&watch)), take(&walked, None));
        let changes = watched.changes_until(&watched_after);
        assert_eq!(changes, walked.changes_until(&walked_after));
        let names: Vec<_> = changes.iter().map(|change| change.path.file_name().unwrap()).collect();
        assert_eq!(names, ["a", "c", "d", "d", "large", "f"]);
        assert_eq!(watched_after.kept, walked_after.kept);
    }

    #[test]
    fn nothing_is_looked_at_where_nothing_changed() {
        let folder = Folder::new();
        folder.write("a", "1");
        let watch = folder.watch();
        let before = WorkTree::default().take(&folder.scope, Some(&watch));
        let after = before.take(&folder.scope, Some(&watch));
        assert!(Arc::ptr_eq(&before.files, &after.files));
        folder.write("a", "2");
        let [change] = &after.changes_until(&after.take(&folder.scope, Some(&watch)))[..] else { panic!() };
        assert!(matches!(&change.before, FormerFile::Kept(content, _) if **content == *b"1"));
    }

    /// `cargo test --release -p hardpan-tools --lib work_tree -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    #[allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a measurement looks at the clock")]
    fn twenty_thousand_files_measured() {
        let folder = Folder::new();
        folder.write("Makefile", ""); // a project: all of it is listed
        (0..19_999).for_each(|number| folder.write(&format!("d{}/{number}", number / 100), "some text\n"));
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
                folder.write("d7/700", "another text\n");
            }
            let begun = Instant::now();
            let next = tree.take(&folder.scope, watch);
            println!("{name}: {:.3} ms", begun.elapsed().as_secs_f64() * 1000.0);
            tree = next;
        }
    }
}

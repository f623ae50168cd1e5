//! [`Readings`]: what was read of the folder, kept until it changes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hardpan_context::{FileEntry, ImageEntry, SnapshotFile, TreeEntry, UnavailableEntry};
use hardpan_prompt::{Hash, Text, UnavailableCode};
use hardpan_workspace as workspace;
use hardpan_workspace::{Changes, FileTree, StatusChanges, WatchPosition};

use super::folder::unavailable;

/// The longest file list in a prompt, in bytes: about 20,000 tokens, as much as the symbol map may
/// take.
const TREE_BYTES: usize = 80_000;

/// What was read, and up to where changes are known.
#[derive(Default)]
pub struct Readings {
    pub position: WatchPosition,
    pub status: Option<StatusReading>,
    /// What changed in the work tree since git told the status.
    pub status_changes: StatusChanges,
    pub tree: Option<TreeReading>,
    /// Only files whose changes are noticed.
    pub files: BTreeMap<FileKey, FileReading>,
}

/// A file, and who named it: others may be opened by the user than by the model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileKey {
    pub place: PathBuf,
    pub by_user: bool,
    /// The most bytes that are shown.
    pub limit: usize,
}

/// What git said.
#[derive(Clone, Debug)]
pub enum StatusReading {
    NoRepository,
    Status(Text),
    Failed(UnavailableEntry),
}

/// The list of files, with what it leaves out.
#[derive(Clone, Debug)]
pub struct TreeReading {
    entry: Option<(TreeEntry, Hash)>,
    unavailable: Vec<UnavailableEntry>,
}

/// What a file contributes.
#[derive(Clone, Debug, Default)]
pub struct FileReading {
    pub entry: Option<FileEntry>,
    pub image: Option<ImageEntry>,
    pub unavailable: Option<UnavailableEntry>,
    pub is_refused: bool,
}

impl Readings {
    pub fn forget_all(&mut self) {
        *self = Readings { position: self.position, ..Readings::default() };
    }

    /// Forgets what the changes of the folder `root` concern.
    pub fn forget(&mut self, changes: &Changes, root: &Path) {
        if changes.everything {
            return self.forget_all();
        }
        if changes.repository {
            self.status = None;
        } else if changes.affect_status() {
            self.status_changes.add(&changes.files, changes.list);
        }
        if changes.list {
            self.tree = None;
            // A folder that was renamed or removed takes files along that no event names.
            self.files.clear();
        }
        if !changes.files.is_empty() {
            self.files.retain(|key, _| {
                let relative = key.place.strip_prefix(root).ok().and_then(Path::to_str);
                relative.is_none_or(|relative| !changes.files.contains(relative))
            });
        }
    }
}

impl TreeReading {
    pub fn new(tree: &FileTree) -> Self {
        let code = UnavailableCode::NotListed;
        let rest = |reason: String| unavailable("tree (the rest)".into(), &reason, code);
        let skipped = tree.skipped.iter();
        let mut left_out: Vec<UnavailableEntry> = skipped
            .map(|skipped| {
                unavailable(format!("file:{}", skipped.path), &skipped.reason, UnavailableCode::Unreadable)
            })
            .collect();
        if tree.truncated {
            left_out.push(rest(format!("only the first {} files are listed", workspace::TREE_LIMIT)));
        }
        let (files, hidden) = tree.lines_within(TREE_BYTES);
        if hidden > 0 {
            left_out.push(rest(format!(
                "{hidden} files are shown only as their folders: the list would be too long"
            )));
        }
        let entry = (!files.is_empty()).then(|| {
            let hash = Hash::chain(files.iter().map(|line| Hash::of(line.as_bytes())));
            (TreeEntry { files, last_refresh_ms: 0 }, hash)
        });
        TreeReading { entry, unavailable: left_out }
    }

    /// Adds the list to a snapshot. Returns its hash, if it is not empty.
    pub fn add_to(self, file: &mut SnapshotFile) -> Option<Hash> {
        file.unavailable.extend(self.unavailable);
        let (entry, hash) = self.entry?;
        file.tree = Some(entry);
        Some(hash)
    }
}

impl FileReading {
    /// Adds what was read to a snapshot that does not have the file yet.
    pub fn add_to(self, file: &mut SnapshotFile, shown: &str) {
        if !self.is_refused {
            // Named on purpose, so it no longer matters why the walk skipped it.
            file.unavailable.retain(|entry| entry.key != format!("file:{shown}"));
        }
        file.unavailable.extend(self.unavailable);
        file.images.extend(self.image);
        file.files.extend(self.entry);
    }
}

//! [`walk`]: everything below a folder by git's ignore rules, without ever leaving it.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_files::{FileGuard, OpenFolder, UnreadableReason};
use ignore::gitignore::Gitignore;
use rustix::fs::{AtFlags, Dir, FileType};

use crate::ignore_rules::{FolderRules, RuleReader, global_rules, is_ignored};
use crate::{SkippedPath, find_project_root};

/// One path that a walk found.
#[derive(Debug)]
pub struct WalkEntry {
    /// Absolute path; links in it are those of the folder that was walked.
    pub path: PathBuf,
    /// 0 for the folder itself, 1 for what is in it.
    pub depth: usize,
    /// What it is. Links are not followed.
    pub kind: EntryKind,
    /// Rules of this folder that cannot be used.
    pub rule_problems: Vec<SkippedPath>,
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device, in words.
    Special(&'static str),
}

/// Walks a folder and everything in it that git would not ignore, hidden files included, in the
/// order of names, the folder itself first. `.git` and our own files are left out.
///
/// Every folder is opened below the guard's and without links, so that a folder that is replaced
/// during the walk leads nowhere. A path that cannot be read is an error among the entries; so is a
/// folder in which another file system is mounted, which is not entered.
pub fn walk(guard: &FileGuard, folder: &Path) -> Walk<'static> {
    walk_whole(guard, folder, None)
}

/// The same, and calls `visitor` with each folder.
pub(crate) fn walk_whole<'v>(
    guard: &FileGuard,
    folder: &Path,
    visitor: Option<FolderVisitor<'v>>,
) -> Walk<'v> {
    let start = WalkRules::new(guard, folder).and_then(|mut rules| rules.walk(folder, visitor));
    start.unwrap_or_else(|reason| Walk {
        state: None,
        waiting: vec![Err(SkippedPath::new(folder, io::Error::from(reason).to_string()))],
        visitor: None,
    })
}

/// Called with the absolute path of a folder and the folder, before its names are read.
pub(crate) type FolderVisitor<'v> = &'v mut dyn FnMut(&Path, &File);

/// The iterator of [`walk`].
pub struct Walk<'v> {
    /// `None` if there is nothing to walk.
    state: Option<WalkState>,
    /// What comes before the next name, the last first.
    waiting: Vec<Result<WalkEntry, SkippedPath>>,
    visitor: Option<FolderVisitor<'v>>,
}

struct WalkState {
    ground: Arc<WalkGround>,
    /// The rules of the folders above the walked one.
    above: Vec<Arc<FolderRules>>,
    /// The folders on the way to the next name.
    levels: Vec<Level>,
    /// The device that the walked folder is on.
    device: Option<u64>,
}

/// What is the same for every folder below one.
struct WalkGround {
    guard: FileGuard,
    root: Arc<OpenFolder>,
    /// Our own files and folders below the root, relative to it.
    hidden: Vec<PathBuf>,
    global: Gitignore,
}

/// The rules of a folder and of those below it, read when they are first needed. They are
/// those of one moment.
pub(crate) struct WalkRules {
    ground: Arc<WalkGround>,
    /// The folder, relative to the ground's root.
    top: PathBuf,
    /// The rules of the folders above it.
    above: Vec<Arc<FolderRules>>,
    /// The device that the folder is on.
    device: Option<u64>,
    below: BTreeMap<PathBuf, Arc<FolderRules>>,
}

impl WalkRules {
    /// The rules of `folder`, which is absolute, and of those below it.
    pub fn new(guard: &FileGuard, folder: &Path) -> Result<Self, UnreadableReason> {
        let (root, top) = guard.locate(folder)?;
        let project = find_project_root(folder);
        let hidden = guard.hidden_below(root.path());
        let global = global_rules(&project);
        let ground = Arc::new(WalkGround { guard: guard.clone(), root, hidden, global });
        let mut above = Vec::new();
        // Rules above the folder count only inside a repository: a stray .gitignore in the home
        // folder must not hide files.
        if project.join(".git").exists() {
            for parent in top.ancestors().skip(1).collect::<Vec<_>>().into_iter().rev() {
                if ground.root.path().join(parent).starts_with(&project) {
                    above.push(Arc::new(ground.read_rules(parent)));
                }
            }
        }
        let opened = ground.root.open_real_subfolder(&top).ok();
        let device = opened.and_then(|opened| Some(opened.metadata().ok()?.dev()));
        Ok(WalkRules { ground, top, above, device, below: BTreeMap::new() })
    }

    /// Walks a folder, which is absolute: the one that this is about, or one below it.
    pub fn walk<'v>(
        &mut self,
        folder: &Path,
        visitor: Option<FolderVisitor<'v>>,
    ) -> Result<Walk<'v>, UnreadableReason> {
        let relative = self.ground.relative(folder)?;
        let above = match relative.parent().filter(|_| relative != self.top) {
            Some(parent) => self.rules_within(parent),
            None => self.above.clone(),
        };
        let (ground, levels, device) = (self.ground.clone(), Vec::new(), self.device);
        let state = WalkState { ground, above, levels, device };
        Walk::start(state, relative, visitor)
    }

    /// What a name in a folder below is, unless it is ignored or not there. The folder is absolute.
    pub fn find(&mut self, folder: &Path, opened: &File, name: &OsStr) -> Option<EntryKind> {
        let relative = self.ground.relative(folder).ok()?;
        if self.ground.leaves_out(&relative.join(name), name) {
            return None;
        }
        let found = rustix::fs::statat(opened, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = entry_kind(FileType::from_raw_mode(found.st_mode));
        let rules = self.rules_within(&relative);
        let rules: Vec<&FolderRules> = rules.iter().map(|rules| &**rules).collect();
        let is_folder = kind == EntryKind::Folder;
        (!is_ignored(&rules, &self.ground.global, &folder.join(name), is_folder)).then_some(kind)
    }

    /// The rules that hold for names in a folder, the innermost last.
    fn rules_within(&mut self, folder: &Path) -> Vec<Arc<FolderRules>> {
        let mut rules = self.above.clone();
        let folders: Vec<&Path> =
            folder.ancestors().take_while(|folder| folder.starts_with(&self.top)).collect();
        for folder in folders.into_iter().rev() {
            let known = match self.below.get(folder) {
                Some(known) => known.clone(),
                None => {
                    let read = Arc::new(self.ground.read_rules(folder));
                    self.below.insert(folder.to_owned(), read.clone());
                    read
                }
            };
            rules.push(known);
        }
        rules
    }
}

impl WalkGround {
    fn read_rules(&self, folder: &Path) -> FolderRules {
        let place = self.root.path().join(folder);
        let has_name = |name: &str| place.join(name).symlink_metadata().is_ok();
        let reader = RuleReader { root: &self.root, guard: &self.guard };
        reader.read_folder(folder, has_name, &mut Vec::new())
    }

    fn relative(&self, folder: &Path) -> Result<PathBuf, UnreadableReason> {
        let relative = folder.strip_prefix(self.root.path()).map_err(|_| UnreadableReason::Outside)?;
        Ok(relative.to_owned())
    }

    fn leaves_out(&self, relative: &Path, name: &OsStr) -> bool {
        name == OsStr::new(".git") || self.hidden.iter().any(|hidden| hidden == relative)
    }
}

/// A folder of which some names have been walked.
struct Level {
    /// Path relative to the root.
    folder: PathBuf,
    names: std::vec::IntoIter<(OsString, EntryKind)>,
    rules: FolderRules,
}

impl<'v> Walk<'v> {
    fn start(
        mut state: WalkState,
        relative: PathBuf,
        mut visitor: Option<FolderVisitor<'v>>,
    ) -> Result<Walk<'v>, UnreadableReason> {
        let mut entry = state.entry(&relative, EntryKind::Folder);
        match state.enter(relative, &mut entry, &mut visitor) {
            Ok(()) => Ok(Walk { state: Some(state), waiting: vec![Ok(entry)], visitor }),
            Err(FolderSkip::Unreadable(UnreadableReason::Missing)) if entry.path.is_file() => {
                entry.kind = EntryKind::File;
                Ok(Walk { state: None, waiting: vec![Ok(entry)], visitor: None })
            }
            Err(FolderSkip::Unreadable(reason)) => Err(reason),
            Err(reason) => {
                let skipped = SkippedPath::new(&entry.path, reason.into_text());
                Ok(Walk { state: None, waiting: vec![Err(skipped), Ok(entry)], visitor: None })
            }
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<WalkEntry, SkippedPath>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(item) = self.waiting.pop() {
            return Some(item);
        }
        let state = self.state.as_mut()?;
        loop {
            let level = state.levels.last_mut()?;
            let Some((name, kind)) = level.names.next() else {
                state.levels.pop();
                continue;
            };
            let path = level.folder.join(&name);
            if state.ground.leaves_out(&path, &name) {
                continue;
            }
            let mut entry = state.entry(&path, kind);
            if state.ignores(&entry) {
                continue;
            }
            if kind == EntryKind::Folder
                && let Err(reason) = state.enter(path, &mut entry, &mut self.visitor)
            {
                self.waiting.push(Err(SkippedPath::new(&entry.path, reason.into_text())));
            }
            return Some(Ok(entry));
        }
    }
}

impl WalkState {
    fn entry(&self, relative: &Path, kind: EntryKind) -> WalkEntry {
        let path = match relative.as_os_str().is_empty() {
            true => self.ground.root.path().to_owned(),
            false => self.ground.root.path().join(relative),
        };
        WalkEntry { path, depth: self.levels.len(), kind, rule_problems: Vec::new() }
    }

    fn ignores(&self, entry: &WalkEntry) -> bool {
        let above = self.above.iter().map(|rules| &**rules);
        let folders: Vec<&FolderRules> = above.chain(self.levels.iter().map(|level| &level.rules)).collect();
        is_ignored(&folders, &self.ground.global, &entry.path, entry.kind == EntryKind::Folder)
    }

    /// Reads the names and the rules of a folder, whose entry this is.
    fn enter(
        &mut self,
        folder: PathBuf,
        entry: &mut WalkEntry,
        visitor: &mut Option<FolderVisitor<'_>>,
    ) -> Result<(), FolderSkip> {
        let WalkGround { guard, root, .. } = &*self.ground;
        let opened = root.open_real_subfolder(&folder)?;
        let device = opened.metadata().map_err(UnreadableReason::from)?.dev();
        if *self.device.get_or_insert(device) != device {
            return Err(FolderSkip::MountPoint);
        }
        if self.levels.is_empty() && is_kernel_view(&opened) {
            return Err(FolderSkip::KernelView);
        }
        if let Some(visit) = visitor {
            visit(&entry.path, &opened);
        }
        let mut names: Vec<_> = folder_names(&opened).map_err(UnreadableReason::from)?.collect();
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let has_name =
            |wanted: &str| names.binary_search_by(|(name, _)| (**name).cmp(OsStr::new(wanted))).is_ok();
        let reader = RuleReader { root, guard };
        let rules = reader.read_folder(&folder, has_name, &mut entry.rule_problems);
        self.levels.push(Level { folder, names: names.into_iter(), rules });
        Ok(())
    }
}

/// Why the names in a folder are not walked.
enum FolderSkip {
    Unreadable(UnreadableReason),
    /// Another file system begins there.
    MountPoint,
    /// Its files are made up by the kernel.
    KernelView,
}

impl From<UnreadableReason> for FolderSkip {
    fn from(reason: UnreadableReason) -> Self {
        FolderSkip::Unreadable(reason)
    }
}

impl FolderSkip {
    /// The reason as a phrase for the user.
    fn into_text(self) -> String {
        match self {
            FolderSkip::Unreadable(reason) => io::Error::from(reason).to_string(),
            FolderSkip::MountPoint => "another file system is mounted here".into(),
            FolderSkip::KernelView => "a view of the system's state, not files".into(),
        }
    }
}

/// Whether a folder is on a file system like /proc and /sys. There is no end to their files, and
/// reading some of them waits for ever.
#[cfg(target_os = "linux")]
fn is_kernel_view(folder: &File) -> bool {
    /// proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, configfs, bpf, devpts.
    const KINDS: [u64; 10] = [
        0x9fa0,
        0x6265_6572,
        0x0027_e0eb,
        0x6367_7270,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x6265_6570,
        0xcafe_4a11,
        0x1cd1,
    ];
    rustix::fs::fstatfs(folder).is_ok_and(|found| KINDS.contains(&(found.f_type as u64)))
}

#[cfg(not(target_os = "linux"))]
fn is_kernel_view(_folder: &File) -> bool {
    false
}

/// The names in an open folder with what they are, in no order.
pub fn folder_names(folder: &File) -> io::Result<impl Iterator<Item = (OsString, EntryKind)> + use<>> {
    let shared = folder.try_clone()?;
    let entries = Dir::read_from(folder)?;
    Ok(entries.filter_map(move |entry| {
        let entry = entry.ok()?; // it vanished
        let name = os_string(entry.file_name());
        let kind = match entry.file_type() {
            FileType::Unknown => rustix::fs::statat(&shared, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            kind => kind,
        };
        (name != "." && name != "..").then(|| (name, entry_kind(kind)))
    }))
}

fn os_string(name: &CStr) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(name.to_bytes()).to_owned()
}

fn entry_kind(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Link,
        FileType::Fifo => EntryKind::Special("a named pipe"),
        FileType::Socket => EntryKind::Special("a socket"),
        _ => EntryKind::Special("a device"),
    }
}

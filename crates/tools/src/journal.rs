//! [`Journal`]: records every change that tools make to files, so that a turn's changes can be
//! undone.

mod folder; // JournalFolder: the files of a journal

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::anchored_file::{AnchoredFile, FileContent, MissingFolders};
use crate::work_tree::{FormerFile, TreeChange};
use folder::JournalFolder;

/// How many files that one command changes are kept: each is written to the disk.
const MAX_COMMAND_CHANGES: usize = 300;

/// Which files were changed in which turn, and what they held before. An entry is durable before
/// its change happens, so a crash never loses a former content.
///
/// The lock is never held while a file is read or written.
#[derive(Debug)]
pub struct Journal(Mutex<JournalState>);

#[derive(Debug)]
struct JournalState {
    folder: JournalFolder,
    turn: u64,
    /// What the list holds, and the turns that are being undone.
    entries: Vec<JournalEntry>,
}

/// One line of `changes.jsonl`. The names of variants and fields are the file's format.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalEntry {
    Changed(FileChange),
    /// A command changed this file, whose former content was not kept.
    NotKept(UnkeptFile),
    /// All changes of this turn up to here were undone.
    Undone(u64),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct UnkeptFile {
    turn: u64,
    path: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct FileChange {
    turn: u64,
    path: PathBuf,
    /// The hash of the former content. `None` where there was no file.
    before: Option<Hash>,
    mode: Option<u32>,
    /// The hash of the new content. `None` where a command removed the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<Hash>,
    /// Folders that were created for the file, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    made: Vec<PathBuf>,
}

/// Why a journal cannot be used, or a turn not undone.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The folder or a file in it cannot be read or written.
    #[error("the journal {} cannot be used: {error}; free space, or correct the folder's permissions", path.display())]
    Io {
        /// The folder or the file that failed.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// The turn changed no files, or was undone before.
    #[error("turn {turn} changed no files, or was undone already")]
    NothingToUndo {
        /// The turn that was to be undone.
        turn: u64,
    },
}

/// What [`Journal::undo`] did with one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UndoneFile {
    /// Absolute path of the file.
    pub path: PathBuf,
    /// Whether it was restored. Serialized as `how`.
    #[serde(rename = "how")]
    pub outcome: UndoOutcome,
}

/// How a file was restored, or why it was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoOutcome {
    /// The file has its former content again.
    Restored,
    /// The turn had created the file; it was removed.
    Removed,
    /// The file already was as before the turn.
    Unchanged,
    /// Something changed the file after the turn, so it was left alone.
    ChangedSince,
    /// A command changed the file, and its former content was not kept: it is large, or one of too
    /// many.
    NotKept,
    /// The file could not be written, for this reason, and was left alone.
    Failed(String),
}

impl Journal {
    /// Opens the journal in this folder. The folder need not exist; the first change creates it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, JournalError> {
        JournalState::read(JournalFolder(folder.into())).map(|state| Journal(Mutex::new(state)))
    }

    /// Continues with the journal in another folder, because the user switched to another session.
    pub fn switch_to(&self, folder: impl Into<PathBuf>) -> Result<(), JournalError> {
        let state = JournalState::read(JournalFolder(folder.into()))?;
        *self.lock() = state;
        Ok(())
    }

    /// Assigns all changes from now on to this turn.
    pub fn begin_turn(&self, turn: u64) {
        self.lock().turn = turn;
    }

    /// The latest turn with changes that were not undone. `None` where there is none.
    pub fn last_undoable_turn(&self) -> Option<u64> {
        let state = self.lock();
        state.entries.iter().map(JournalEntry::turn).filter(|&turn| !state.changes_of(turn).is_empty()).max()
    }

    /// The files that a turn changed, in the order of their first change. Undone changes do not
    /// count.
    pub fn changed_files(&self, turn: u64) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for change in self.lock().changes_of(turn) {
            if !paths.contains(&change.path) {
                paths.push(change.path);
            }
        }
        paths
    }

    /// What each changed file held before its first change in a turn from `first` on, by path. Undone
    /// changes do not count; `None` is a file that did not exist, or whose content was not kept.
    pub fn contents_before(&self, first: u64) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let (folder, changes) = {
            let state = self.lock();
            let mut turns: Vec<u64> = state.entries.iter().map(JournalEntry::turn).collect();
            turns.sort_unstable();
            turns.dedup();
            let turns = turns.into_iter().filter(|turn| *turn >= first);
            let changes: Vec<FileChange> = turns.flat_map(|turn| state.changes_of(turn)).collect();
            (state.folder.clone(), changes)
        };
        let mut files: BTreeMap<PathBuf, Option<Hash>> = BTreeMap::new();
        for change in changes {
            files.entry(change.path).or_insert(change.before);
        }
        let content = |hash: Option<Hash>| hash.and_then(|hash| folder.load_content(hash).ok());
        files.into_iter().map(|(path, hash)| (path, content(hash))).collect()
    }

    /// The turn that changes belong to now.
    pub fn turn(&self) -> u64 {
        self.lock().turn
    }

    /// Records a change durably, before it happens. `found` is what the file holds now.
    pub(crate) fn record(
        &self,
        place: &Path,
        found: Option<&FileContent>,
        after: Hash,
        made: &[PathBuf],
    ) -> Result<(), JournalError> {
        let (folder, turn) = {
            let state = self.lock();
            (state.folder.clone(), state.turn)
        };
        let before = found.map(|found| folder.store_content(&found.bytes)).transpose()?;
        let change = FileChange {
            turn,
            path: place.to_owned(),
            before,
            mode: found.map(|found| found.mode),
            after: Some(after),
            made: made.to_vec(),
        };
        let entry = JournalEntry::Changed(change);
        folder.append(&entry)?;
        let mut state = self.lock();
        // The user may have switched to another session in the meantime.
        if state.folder == folder {
            state.entries.push(entry);
        }
        Ok(())
    }

    /// Records what a command did to files, after it happened.
    pub(crate) fn record_command(&self, changes: Vec<TreeChange>) -> Result<(), JournalError> {
        if changes.is_empty() {
            return Ok(());
        }
        let (folder, turn) = {
            let state = self.lock();
            (state.folder.clone(), state.turn)
        };
        let mut entries = Vec::with_capacity(changes.len());
        for (at, TreeChange { path, before, after }) in changes.into_iter().enumerate() {
            let (before, mode) = match before {
                FormerFile::Missing => (None, None),
                FormerFile::Kept(content, mode) if at < MAX_COMMAND_CHANGES => {
                    (Some(folder.store_content(&content)?), Some(mode))
                }
                FormerFile::Kept(..) | FormerFile::NotKept => {
                    entries.push(JournalEntry::NotKept(UnkeptFile { turn, path }));
                    continue;
                }
            };
            entries.push(JournalEntry::Changed(FileChange {
                turn,
                path,
                before,
                mode,
                after,
                made: Vec::new(),
            }));
        }
        folder.append_all(&entries)?;
        let mut state = self.lock();
        if state.folder == folder {
            state.entries.extend(entries);
        }
        Ok(())
    }

    /// Undoes the changes of a turn: every file becomes what it was before the turn, unless
    /// something changed it since its last change in the turn. Such a file is left alone and
    /// reported as [`UndoOutcome::ChangedSince`].
    ///
    /// The contents that an undo replaces are kept in the journal's folder, so even an undo loses
    /// nothing.
    pub fn undo(&self, turn: u64) -> Result<Vec<UndoneFile>, JournalError> {
        let unkept = self.lock().unkept_files(turn);
        let (folder, changes) = self.lock().claim_undo(turn)?;
        let undone = undo_changes(&folder, &changes)
            .map(|mut undone| {
                let is_new = |path: &PathBuf| !changes.iter().any(|change| change.path == *path);
                let unkept = unkept.into_iter().filter(is_new);
                undone.extend(unkept.map(|path| UndoneFile { path, outcome: UndoOutcome::NotKept }));
                undone
            })
            .and_then(|undone| folder.append(&JournalEntry::Undone(turn)).map(|()| undone));
        if undone.is_err() {
            self.lock().release_undo(&folder, turn);
        }
        undone
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        // No change of the state is made in two steps, so it is consistent after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalState {
    fn read(folder: JournalFolder) -> Result<Self, JournalError> {
        let entries = folder.read_entries()?;
        let turn = entries.iter().map(JournalEntry::turn).max().unwrap_or(0);
        Ok(JournalState { folder, turn, entries })
    }

    /// Takes the changes of a turn to undo them. Nobody else can undo them from now on.
    fn claim_undo(&mut self, turn: u64) -> Result<(JournalFolder, Vec<FileChange>), JournalError> {
        let changes = self.changes_of(turn);
        if changes.is_empty() {
            return Err(JournalError::NothingToUndo { turn });
        }
        self.entries.push(JournalEntry::Undone(turn));
        Ok((self.folder.clone(), changes))
    }

    /// Gives the changes back, because undoing them failed.
    fn release_undo(&mut self, folder: &JournalFolder, turn: u64) {
        let claim = |entry: &JournalEntry| matches!(entry, JournalEntry::Undone(claimed) if *claimed == turn);
        if self.folder == *folder
            && let Some(at) = self.entries.iter().rposition(claim)
        {
            self.entries.remove(at);
        }
    }

    /// The files that commands of a turn changed and that cannot be restored.
    fn unkept_files(&self, turn: u64) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in &self.entries {
            match entry {
                JournalEntry::NotKept(file) if file.turn == turn && !paths.contains(&file.path) => {
                    paths.push(file.path.clone());
                }
                JournalEntry::Undone(undone) if *undone == turn => paths.clear(),
                _ => {}
            }
        }
        paths
    }

    /// The changes of a turn that were not undone.
    fn changes_of(&self, turn: u64) -> Vec<FileChange> {
        let start = self
            .entries
            .iter()
            .rposition(|entry| matches!(entry, JournalEntry::Undone(undone) if *undone == turn));
        let entries = &self.entries[start.map_or(0, |start| start + 1)..];
        let of_turn = |entry: &JournalEntry| match entry {
            JournalEntry::Changed(change) if change.turn == turn => Some(change.clone()),
            _ => None,
        };
        entries.iter().filter_map(of_turn).collect()
    }
}

/// Gives every file the content that it had before these changes.
fn undo_changes(folder: &JournalFolder, changes: &[FileChange]) -> Result<Vec<UndoneFile>, JournalError> {
    let mut files: BTreeMap<&Path, (&FileChange, &FileChange)> = BTreeMap::new();
    for change in changes {
        files.entry(&change.path).and_modify(|(_, last)| *last = change).or_insert((change, change));
    }
    let mut undone = Vec::new();
    for (path, (first, last)) in files {
        let outcome = undo_file(folder, path, first, last)?;
        undone.push(UndoneFile { path: path.to_owned(), outcome });
    }
    // Innermost first; a folder that holds anything stays.
    for made in changes.iter().flat_map(|change| &change.made).rev() {
        let _ = std::fs::remove_dir(made);
    }
    Ok(undone)
}

fn undo_file(
    folder: &JournalFolder,
    path: &Path,
    first: &FileChange,
    last: &FileChange,
) -> Result<UndoOutcome, JournalError> {
    // A command may have removed the folder as well.
    let was_removed = first.before.is_some() && last.after.is_none();
    let folders = if was_removed { MissingFolders::Create } else { MissingFolders::Fail };
    let opened = AnchoredFile::open(path, folders).and_then(|anchored| Ok((anchored.read()?, anchored)));
    let (found, anchored) = match opened {
        Ok((found, anchored)) => (found, anchored),
        Err(_) if first.before.is_none() && !path.exists() => return Ok(UndoOutcome::Unchanged),
        Err(error) => return Ok(UndoOutcome::Failed(error.to_string())),
    };
    let now = found.as_ref().map(|found| Hash::of(&found.bytes));
    if now == first.before {
        return Ok(UndoOutcome::Unchanged);
    }
    if now != last.after {
        return Ok(UndoOutcome::ChangedSince);
    }
    if let Some(found) = &found {
        folder.store_content(&found.bytes)?;
    }
    let (done, outcome) = match (first.before, found) {
        (None, None) => return Ok(UndoOutcome::Unchanged),
        (None, Some(found)) => (anchored.remove(&found), UndoOutcome::Removed),
        (Some(hash), None) => {
            (anchored.create(&folder.load_content(hash)?, first.mode), UndoOutcome::Restored)
        }
        (Some(hash), Some(mut found)) => {
            found.mode = first.mode.unwrap_or(found.mode);
            (anchored.replace(Some(&found), &folder.load_content(hash)?), UndoOutcome::Restored)
        }
    };
    Ok(done.map_or_else(|error| UndoOutcome::Failed(error.to_string()), |()| outcome))
}

impl JournalEntry {
    fn turn(&self) -> u64 {
        match self {
            JournalEntry::Changed(change) => change.turn,
            JournalEntry::NotKept(file) => file.turn,
            JournalEntry::Undone(turn) => *turn,
        }
    }
}

#[cfg(test)]
mod tests;

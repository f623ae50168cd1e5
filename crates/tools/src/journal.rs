//! [`Journal`]: records every change that tools make to files, so that a turn's changes can be
//! undone.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::anchored_file::{AnchoredFile, FileContent, MissingFolders};

/// The list of changes in the journal's folder, one JSON object per line. Former contents lie
/// beside it in files named by their hash.
const LIST: &str = "changes.jsonl";

/// Which files were changed in which turn, and what they held before. An entry is durable before
/// its change happens, so a crash never loses a former content.
#[derive(Debug)]
pub struct Journal(Mutex<JournalState>);

#[derive(Debug)]
struct JournalState {
    folder: PathBuf,
    /// Created with the first change, so that a session without changes leaves no files.
    list: Option<File>,
    turn: u64,
    lines: Vec<JournalEntry>,
}

/// One line of `changes.jsonl`. The names of variants and fields are the file's format.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JournalEntry {
    Changed(FileChange),
    /// All changes of this turn up to here were undone.
    Undone(u64),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct FileChange {
    turn: u64,
    path: PathBuf,
    /// The hash of the former content. `None` where there was no file.
    before: Option<Hash>,
    mode: Option<u32>,
    after: Hash,
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
    /// The file could not be written, for this reason, and was left alone.
    Failed(String),
}

impl Journal {
    /// Opens the journal in this folder. The folder need not exist; the first change creates it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, JournalError> {
        JournalState::read(folder.into()).map(|state| Journal(Mutex::new(state)))
    }

    /// Continues with the journal in another folder, because the user switched to another session.
    pub fn switch_to(&self, folder: impl Into<PathBuf>) -> Result<(), JournalError> {
        let state = JournalState::read(folder.into())?;
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
        state.lines.iter().map(JournalEntry::turn).filter(|&turn| !state.changes_of(turn).is_empty()).max()
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

    /// Records a change durably, before it happens. `found` is what the file holds now.
    pub(crate) fn record(
        &self,
        place: &Path,
        found: Option<&FileContent>,
        after: Hash,
        made: &[PathBuf],
    ) -> Result<(), JournalError> {
        let mut state = self.lock();
        let before = found.map(|found| state.store_content(&found.bytes)).transpose()?;
        let change = FileChange {
            turn: state.turn,
            path: place.to_owned(),
            before,
            mode: found.map(|found| found.mode),
            after,
            made: made.to_vec(),
        };
        state.append(JournalEntry::Changed(change))
    }

    /// Undoes the changes of a turn: every file becomes what it was before the turn, unless
    /// something changed it since its last change in the turn. Such a file is left alone and
    /// reported as [`UndoOutcome::ChangedSince`].
    ///
    /// The contents that an undo replaces are kept in the journal's folder, so even an undo loses
    /// nothing.
    pub fn undo(&self, turn: u64) -> Result<Vec<UndoneFile>, JournalError> {
        let mut state = self.lock();
        let changes = state.changes_of(turn);
        if changes.is_empty() {
            return Err(JournalError::NothingToUndo { turn });
        }
        let mut files: BTreeMap<&Path, (&FileChange, &FileChange)> = BTreeMap::new();
        for change in &changes {
            files.entry(&change.path).and_modify(|(_, last)| *last = change).or_insert((change, change));
        }
        let mut undone = Vec::new();
        for (path, (first, last)) in files {
            let outcome = state.undo_file(path, first, last)?;
            undone.push(UndoneFile { path: path.to_owned(), outcome });
        }
        // Innermost first; a folder that holds anything stays.
        for folder in changes.iter().flat_map(|change| &change.made).rev() {
            let _ = std::fs::remove_dir(folder);
        }
        state.append(JournalEntry::Undone(turn))?;
        Ok(undone)
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        // An entry is pushed only after it was written, so the state is consistent after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalState {
    fn read(folder: PathBuf) -> Result<Self, JournalError> {
        let open = || -> io::Result<(Option<File>, Vec<JournalEntry>)> {
            let mut list = match OpenOptions::new().read(true).append(true).open(folder.join(LIST)) {
                Ok(list) => list,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, Vec::new())),
                Err(error) => return Err(error),
            };
            let mut text = String::new();
            list.read_to_string(&mut text)?;
            if !text.is_empty() && !text.ends_with('\n') {
                // A crash cut the last line off, before its change happened.
                list.write_all(b"\n")?;
            }
            Ok((Some(list), text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()))
        };
        match open() {
            Ok((list, lines)) => {
                let turn = lines.iter().map(JournalEntry::turn).max().unwrap_or(0);
                Ok(JournalState { folder, list, turn, lines })
            }
            Err(error) => Err(JournalError::Io { path: folder, error }),
        }
    }

    fn undo_file(
        &self,
        path: &Path,
        first: &FileChange,
        last: &FileChange,
    ) -> Result<UndoOutcome, JournalError> {
        let opened = AnchoredFile::open(path, MissingFolders::Fail)
            .and_then(|anchored| Ok((anchored.read()?, anchored)));
        let (found, anchored) = match opened {
            Ok((found, anchored)) => (found, anchored),
            Err(_) if first.before.is_none() && !path.exists() => return Ok(UndoOutcome::Unchanged),
            Err(error) => return Ok(UndoOutcome::Failed(error.to_string())),
        };
        let now = found.as_ref().map(|found| Hash::of(&found.bytes));
        if now == first.before {
            return Ok(UndoOutcome::Unchanged);
        }
        let Some(mut found) = found.filter(|_| now == Some(last.after)) else {
            return Ok(UndoOutcome::ChangedSince);
        };
        self.store_content(&found.bytes)?;
        let (done, outcome) = match first.before {
            None => (anchored.remove(&found), UndoOutcome::Removed),
            Some(hash) => {
                found.mode = first.mode.unwrap_or(found.mode);
                (anchored.replace(Some(&found), &self.load_content(hash)?), UndoOutcome::Restored)
            }
        };
        Ok(done.map_or_else(|error| UndoOutcome::Failed(error.to_string()), |()| outcome))
    }

    /// Stores a content in a file named by its hash.
    fn store_content(&self, bytes: &[u8]) -> Result<Hash, JournalError> {
        let hash = Hash::of(bytes);
        let path = self.folder.join(hash.to_string());
        let keep = || -> io::Result<()> {
            if path.metadata().is_ok_and(|metadata| metadata.len() == bytes.len() as u64) {
                return Ok(());
            }
            std::fs::create_dir_all(&self.folder)?;
            let temp = path.with_extension("tmp");
            let mut file = private_file_options().write(true).truncate(true).open(&temp)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&temp, &path)
        };
        keep().map(|()| hash).map_err(|error| JournalError::Io { path: path.clone(), error })
    }

    fn load_content(&self, hash: Hash) -> Result<Vec<u8>, JournalError> {
        let path = self.folder.join(hash.to_string());
        let bytes = std::fs::read(&path).and_then(|bytes| match Hash::of(&bytes) == hash {
            true => Ok(bytes),
            false => Err(io::Error::other("its content is damaged")),
        });
        bytes.map_err(|error| JournalError::Io { path, error })
    }

    fn append(&mut self, line: JournalEntry) -> Result<(), JournalError> {
        let path = self.folder.join(LIST);
        let mut append = || -> io::Result<()> {
            if self.list.is_none() {
                std::fs::create_dir_all(&self.folder)?;
                self.list = Some(private_file_options().append(true).open(&path)?);
            }
            let mut text = serde_json::to_vec(&line)?;
            text.push(b'\n');
            let list = self.list.as_mut().ok_or(io::ErrorKind::NotFound)?;
            list.write_all(&text)?;
            list.sync_data()
        };
        append().map_err(|error| JournalError::Io { path: path.clone(), error })?;
        self.lines.push(line);
        Ok(())
    }

    /// The changes of a turn that were not undone.
    fn changes_of(&self, turn: u64) -> Vec<FileChange> {
        let start = self
            .lines
            .iter()
            .rposition(|line| matches!(line, JournalEntry::Undone(undone) if *undone == turn));
        let lines = &self.lines[start.map_or(0, |start| start + 1)..];
        let of_turn = |line: &JournalEntry| match line {
            JournalEntry::Changed(change) if change.turn == turn => Some(change.clone()),
            _ => None,
        };
        lines.iter().filter_map(of_turn).collect()
    }
}

impl JournalEntry {
    fn turn(&self) -> u64 {
        match self {
            JournalEntry::Changed(change) => change.turn,
            JournalEntry::Undone(turn) => *turn,
        }
    }
}

/// Options for files that only their owner can read: former contents may be secrets.
fn private_file_options() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests;

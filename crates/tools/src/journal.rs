//! The journal of changes: what a turn did to files can be taken back.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_prompt::Hash;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::anchor::{Anchor, Folders, Found};

/// The name of the list of changes within the journal's folder; former contents lie beside it, named by hash.
const LIST: &str = "changes.jsonl";

/// What was changed in which turn, and what was there before. Durable before the change happens.
#[derive(Debug)]
pub struct Journal(Mutex<State>);

#[derive(Debug)]
struct State {
    folder: PathBuf,
    /// Made with the first change: where nothing was changed, nothing is left.
    list: Option<File>,
    turn: u64,
    lines: Vec<Line>,
}

/// One line of the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Changed(Change),
    /// All changes of this turn so far were taken back.
    Undone(u64),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Change {
    turn: u64,
    path: PathBuf,
    /// What was there: absent where there was no file.
    before: Option<Hash>,
    mode: Option<u32>,
    after: Hash,
    /// Folders that were made for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    made: Vec<PathBuf>,
}

/// A journal that cannot be used.
#[derive(Debug, Error)]
pub enum JournalError {
    /// The folder or a file in it cannot be read or written.
    #[error("the journal {} cannot be used: {error}; free space, or correct the folder's permissions", path.display())]
    Io {
        /// What cannot be used.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is nothing to take back.
    #[error("turn {turn} changed no files, or its changes were taken back already")]
    Nothing {
        /// The turn that was asked for.
        turn: u64,
    },
}

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Undone {
    /// The file.
    pub path: PathBuf,
    /// What happened to it.
    pub how: How,
}

/// How a file was taken back, or why it was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It has its former content again.
    Restored,
    /// It did not exist before, and is gone.
    Removed,
    /// It was already as it had been before the turn.
    Unchanged,
    /// Something changed it since; it was left alone.
    ChangedSince,
    /// It could not be written; it was left alone.
    Failed(String),
}

impl Journal {
    /// Opens the journal in this folder, or begins one. The folder is made with the first change.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, JournalError> {
        State::read(folder.into()).map(|state| Journal(Mutex::new(state)))
    }

    /// Goes on with the journal in another folder: the conversation is another one.
    pub fn turn_to(&self, folder: impl Into<PathBuf>) -> Result<(), JournalError> {
        let state = State::read(folder.into())?;
        *self.lock() = state;
        Ok(())
    }

    /// From now on, changes belong to this turn.
    pub fn begin(&self, turn: u64) {
        self.lock().turn = turn;
    }

    /// The last turn whose changes can be taken back.
    pub fn last_turn(&self) -> Option<u64> {
        let state = self.lock();
        state.lines.iter().map(Line::turn).filter(|&turn| !state.of(turn).is_empty()).max()
    }

    /// The files that a turn changed, in the order of the first change.
    pub fn changed(&self, turn: u64) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for change in self.lock().of(turn) {
            if !paths.contains(&change.path) {
                paths.push(change.path);
            }
        }
        paths
    }

    /// Records a change that is about to happen.
    pub(crate) fn record(
        &self,
        place: &Path,
        found: Option<&Found>,
        after: Hash,
        made: &[PathBuf],
    ) -> Result<(), JournalError> {
        let mut state = self.lock();
        let before = found.map(|found| state.keep(&found.bytes)).transpose()?;
        let change = Change {
            turn: state.turn,
            path: place.to_owned(),
            before,
            mode: found.map(|found| found.mode),
            after,
            made: made.to_vec(),
        };
        state.append(Line::Changed(change))
    }

    /// Takes the changes of a turn back: every file becomes what it was before the turn, unless something changed
    /// it since its last change in the turn. Such a file is left as it is, and named.
    ///
    /// What is replaced is kept in the journal's folder, so that even this loses nothing.
    pub fn undo(&self, turn: u64) -> Result<Vec<Undone>, JournalError> {
        let mut state = self.lock();
        let changes = state.of(turn);
        if changes.is_empty() {
            return Err(JournalError::Nothing { turn });
        }
        let mut files: BTreeMap<&Path, (&Change, &Change)> = BTreeMap::new();
        for change in &changes {
            files.entry(&change.path).and_modify(|(_, last)| *last = change).or_insert((change, change));
        }
        let mut undone = Vec::new();
        for (path, (first, last)) in files {
            let how = state.take_back(path, first, last)?;
            undone.push(Undone { path: path.to_owned(), how });
        }
        // Innermost first; a folder that holds anything stays.
        for folder in changes.iter().flat_map(|change| &change.made).rev() {
            let _ = std::fs::remove_dir(folder);
        }
        state.append(Line::Undone(turn))?;
        Ok(undone)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A line is pushed only after it was written: what a panic left is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn read(folder: PathBuf) -> Result<Self, JournalError> {
        let open = || -> io::Result<(Option<File>, Vec<Line>)> {
            let mut list = match OpenOptions::new().read(true).append(true).open(folder.join(LIST)) {
                Ok(list) => list,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, Vec::new())),
                Err(error) => return Err(error),
            };
            let mut text = String::new();
            list.read_to_string(&mut text)?;
            if !text.is_empty() && !text.ends_with('\n') {
                // The last line was torn by a crash: its change never happened.
                list.write_all(b"\n")?;
            }
            Ok((Some(list), text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()))
        };
        match open() {
            Ok((list, lines)) => {
                let turn = lines.iter().map(Line::turn).max().unwrap_or(0);
                Ok(State { folder, list, turn, lines })
            }
            Err(error) => Err(JournalError::Io { path: folder, error }),
        }
    }

    fn take_back(&self, path: &Path, first: &Change, last: &Change) -> Result<How, JournalError> {
        let looked = Anchor::of(path, Folders::Need).and_then(|anchor| Ok((anchor.find()?, anchor)));
        let (found, anchor) = match looked {
            Ok((found, anchor)) => (found, anchor),
            Err(_) if first.before.is_none() && !path.exists() => return Ok(How::Unchanged),
            Err(trouble) => return Ok(How::Failed(trouble.to_string())),
        };
        let now = found.as_ref().map(|found| Hash::of(&found.bytes));
        if now == first.before {
            return Ok(How::Unchanged);
        }
        let Some(mut found) = found.filter(|_| now == Some(last.after)) else { return Ok(How::ChangedSince) };
        self.keep(&found.bytes)?;
        let (done, how) = match first.before {
            None => (anchor.remove(&found), How::Removed),
            Some(hash) => {
                found.mode = first.mode.unwrap_or(found.mode);
                (anchor.replace(Some(&found), &self.kept(hash)?), How::Restored)
            }
        };
        Ok(done.map_or_else(|trouble| How::Failed(trouble.to_string()), |()| how))
    }

    /// Keeps a content under its hash.
    fn keep(&self, bytes: &[u8]) -> Result<Hash, JournalError> {
        let hash = Hash::of(bytes);
        let path = self.folder.join(hash.to_string());
        let keep = || -> io::Result<()> {
            if path.metadata().is_ok_and(|metadata| metadata.len() == bytes.len() as u64) {
                return Ok(());
            }
            std::fs::create_dir_all(&self.folder)?;
            let temp = path.with_extension("tmp");
            let mut file = private().write(true).truncate(true).open(&temp)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&temp, &path)
        };
        keep().map(|()| hash).map_err(|error| JournalError::Io { path: path.clone(), error })
    }

    fn kept(&self, hash: Hash) -> Result<Vec<u8>, JournalError> {
        let path = self.folder.join(hash.to_string());
        let bytes = std::fs::read(&path).and_then(|bytes| match Hash::of(&bytes) == hash {
            true => Ok(bytes),
            false => Err(io::Error::other("its content is damaged")),
        });
        bytes.map_err(|error| JournalError::Io { path, error })
    }

    fn append(&mut self, line: Line) -> Result<(), JournalError> {
        let path = self.folder.join(LIST);
        let mut append = || -> io::Result<()> {
            if self.list.is_none() {
                std::fs::create_dir_all(&self.folder)?;
                self.list = Some(private().append(true).open(&path)?);
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

    /// The changes of a turn that were not taken back.
    fn of(&self, turn: u64) -> Vec<Change> {
        let start =
            self.lines.iter().rposition(|line| matches!(line, Line::Undone(undone) if *undone == turn));
        let lines = &self.lines[start.map_or(0, |start| start + 1)..];
        let of_turn = |line: &Line| match line {
            Line::Changed(change) if change.turn == turn => Some(change.clone()),
            _ => None,
        };
        lines.iter().filter_map(of_turn).collect()
    }
}

impl Line {
    fn turn(&self) -> u64 {
        match self {
            Line::Changed(change) => change.turn,
            Line::Undone(turn) => *turn,
        }
    }
}

/// Former contents may be secrets: only their owner can read them.
fn private() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

#[cfg(test)]
mod tests;

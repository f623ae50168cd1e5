//! [`CommandRecord`]: what a command does to files, for the journal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_workspace::LiveIndex;

use crate::journal::JournalError;
use crate::work_tree::WorkTree;
use crate::{Journal, Scope};

/// The files as they were after the last command, shared by all commands of a conversation.
#[derive(Debug, Default)]
pub(super) struct RecordedTree {
    tree: WorkTree,
    /// How many commands are running.
    running: usize,
}

/// The record of one command, from before its start to its end. A command that is aborted is recorded,
/// too.
pub(super) struct CommandRecord {
    files: RecordedFiles,
    is_ended: bool,
}

/// Where a command works, and what knows the files there.
#[derive(Clone)]
pub(super) struct RecordedFiles {
    pub journal: Arc<Journal>,
    pub scope: Scope,
    pub tree: Arc<Mutex<RecordedTree>>,
    /// Has the watch that tells what changed.
    pub index: Option<Arc<LiveIndex>>,
}

impl CommandRecord {
    /// Looks at the files before a command.
    pub async fn begin(files: RecordedFiles) -> Option<Self> {
        let begun = move || {
            let mut tree = files.lock();
            let is_alone = tree.running == 0;
            // What changed while no command ran is nobody's; the rest is what the others did so far. If
            // that cannot be recorded, their end will say so.
            let recorded = files.update(&mut tree, is_alone);
            tree.running += 1;
            drop((recorded, tree));
            CommandRecord { files, is_ended: false }
        };
        tokio::task::spawn_blocking(begun).await.ok()
    }

    /// Records what changed. Returns a line for the user if that failed.
    pub async fn end(mut self) -> Option<String> {
        self.is_ended = true;
        let files = self.files.clone();
        let ended = tokio::task::spawn_blocking(move || files.end());
        ended.await.ok()?.err().map(|error| error.to_string())
    }
}

impl Drop for CommandRecord {
    fn drop(&mut self) {
        if !self.is_ended {
            let files = self.files.clone();
            // Whoever aborts a command does not wait for this.
            std::thread::spawn(move || drop(files.end()));
        }
    }
}

impl RecordedFiles {
    fn end(&self) -> Result<(), JournalError> {
        let mut tree = self.lock();
        tree.running -= 1;
        self.update(&mut tree, false)
    }

    /// Brings the tree up to date, and records what changed unless it is nobody's.
    fn update(&self, recorded: &mut RecordedTree, is_nobodys: bool) -> Result<(), JournalError> {
        let watch = self.index.as_ref().and_then(|index| index.watch());
        let changes = recorded.tree.update(&self.scope, watch.map(|watch| &**watch));
        if is_nobodys { Ok(()) } else { self.journal.record_command(changes) }
    }

    fn lock(&self) -> MutexGuard<'_, RecordedTree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

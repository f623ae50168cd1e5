//! [`FolderWatch`]: when the workspace is watched.
//!
//! A run of one request never asks what changed, and starting a watch lists all files. So the watch
//! starts with the second request of a conversation, on a thread of its own: the request does not wait
//! for it, and reads the folder once more.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use hardpan_workspace::{FileGuard, LiveIndex, WatchError, WorkspaceWatch};

use crate::notice::{Notice, NoticeSink};

/// The watch of a folder, from before it is worth its start.
pub struct FolderWatch {
    guard: FileGuard,
    root: PathBuf,
    index: Arc<LiveIndex>,
    notices: Arc<dyn NoticeSink>,
    is_started: AtomicBool,
    has_told: AtomicBool,
    watch: OnceLock<Arc<WorkspaceWatch>>,
}

impl FolderWatch {
    pub fn new(guard: FileGuard, root: PathBuf, index: Arc<LiveIndex>, notices: Arc<dyn NoticeSink>) -> Self {
        let (is_started, has_told) = (AtomicBool::new(false), AtomicBool::new(false));
        FolderWatch { guard, root, index, notices, is_started, has_told, watch: OnceLock::new() }
    }

    /// The watch, if it runs.
    pub fn running(&self) -> Option<&Arc<WorkspaceWatch>> {
        let watch = self.watch.get()?;
        match watch.failure() {
            None => Some(watch),
            Some(error) => {
                self.tell(error);
                None
            }
        }
    }

    /// Starts the watch unless that was done before.
    pub fn start(this: &Arc<Self>) {
        if this.is_started.swap(true, Ordering::Relaxed) {
            return;
        }
        let this = this.clone();
        std::thread::spawn(move || match WorkspaceWatch::start(this.guard.clone(), &this.root) {
            Ok(watch) => {
                let watch = Arc::new(watch);
                this.index.set_watch(watch.clone());
                let _ = this.watch.set(watch);
            }
            Err(error) => this.tell(error),
        });
    }

    fn tell(&self, error: WatchError) {
        if !self.has_told.swap(true, Ordering::Relaxed) {
            self.notices.notice(Notice::NotWatched(error));
        }
    }
}

//! What stands for the queue of changes on systems without one that we know.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::{EventKind, WatchError};

#[derive(Debug)]
pub enum FolderEvents {}

impl FolderEvents {
    pub fn new(_root: &Path) -> Result<Self, WatchError> {
        Err(WatchError::Unsupported)
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        match *self {}
    }

    pub fn watch(&mut self, _folder: &File) -> io::Result<i32> {
        match *self {}
    }

    pub fn unwatch(&mut self, _wd: i32) {
        match *self {}
    }

    pub fn wait(&self, _limit: Duration) -> bool {
        match *self {}
    }

    pub fn read(&mut self, _handle: impl FnMut(i32, EventKind, &[u8])) -> io::Result<()> {
        match *self {}
    }
}

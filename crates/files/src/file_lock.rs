//! [`FileLock`]: one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::create_private_folder;

/// How often a file that another process holds is tried.
const PAUSE: Duration = Duration::from_millis(20);

/// A file that other processes wait for, until this is dropped or the process ends.
#[derive(Debug)]
pub struct FileLock(#[expect(dead_code, reason = "it is held open")] File);

impl FileLock {
    /// Takes the lock, and waits for another process that holds it, but no longer than `limit`. The file
    /// and its folder are created if they are missing, accessible to their owner only.
    pub fn acquire(path: &Path, limit: Duration) -> io::Result<FileLock> {
        path.parent().map_or(Ok(()), create_private_folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        for _ in 0..=limit.as_millis() / PAUSE.as_millis() {
            match file.try_lock() {
                Ok(()) => return Ok(FileLock(file)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/file.lock");
        let held = FileLock::acquire(&path, Duration::ZERO).unwrap();
        let late = FileLock::acquire(&path, Duration::from_millis(40)).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(held);
        FileLock::acquire(&path, Duration::ZERO).unwrap();
    }
}

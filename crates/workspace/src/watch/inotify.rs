//! [`FolderEvents`]: the queue of changes that Linux keeps for watched folders.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::{EventKind, WatchError};

/// More events than the queue holds, so that a storm that goes on ends the reading.
const MAX_EVENTS: usize = 200_000;
const BUFFER_BYTES: usize = 64 * 1024;

/// Numbers of file systems whose files change without this machine's doing: NFS, SMB, CIFS, FUSE,
/// 9p, AFS, Ceph, Coda, Lustre. From `linux/magic.h` and the file systems' own sources.
const REMOTE_FILESYSTEMS: [u64; 10] = [
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x6573_5546,
    0x0102_1997,
    0x5346_414F,
    0x00C3_6400,
    0x7375_7245,
    0x0BD0_0BD0,
];

#[derive(Debug)]
pub struct FolderEvents {
    inotify: OwnedFd,
    /// How many folders may be watched, where a test says so.
    #[cfg(test)]
    pub limit: usize,
}

impl FolderEvents {
    /// A queue for folders on the file system of `root`.
    pub fn new(root: &Path) -> Result<Self, WatchError> {
        let found = rustix::fs::statfs(root).map_err(io::Error::from)?;
        // The field is signed on some systems.
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "a magic number")]
        let filesystem = found.f_type as u64 & 0xFFFF_FFFF;
        if REMOTE_FILESYSTEMS.contains(&filesystem) {
            return Err(WatchError::Filesystem);
        }
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(io::Error::from)?;
        Ok(FolderEvents {
            inotify,
            #[cfg(test)]
            limit: super::tests::watch_limit(root),
        })
    }

    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(FolderEvents {
            inotify: self.inotify.try_clone()?,
            #[cfg(test)]
            limit: self.limit,
        })
    }

    /// Watches an open folder; the same folder has the same number each time.
    pub fn watch(&mut self, folder: &File) -> io::Result<i32> {
        #[cfg(test)]
        {
            // What the system says at its limit.
            self.limit = self.limit.checked_sub(1).ok_or(Errno::NOSPC)?;
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::MODIFY
            // What was written through a memory map shows when the file is closed.
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::EXCL_UNLINK
            | WatchFlags::ONLYDIR;
        // By its descriptor: its name may be a link by now.
        let place = format!("/proc/self/fd/{}", folder.as_raw_fd());
        Ok(inotify::add_watch(&self.inotify, place, flags)?)
    }

    pub fn unwatch(&mut self, wd: i32) {
        // It fails if the folder is gone, and with it the watch.
        let _ = inotify::remove_watch(&self.inotify, wd);
    }

    /// Waits for events, and leaves them in the queue.
    pub fn wait(&self, limit: Duration) -> bool {
        let limit = Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
        let mut waiting = [PollFd::new(&self.inotify, PollFlags::IN)];
        poll(&mut waiting, Some(&limit)).is_ok_and(|ready| ready > 0)
    }

    /// Takes all events out of the queue: the number of the folder, what happened, and the name.
    pub fn read(&mut self, mut handle: impl FnMut(i32, EventKind, &[u8])) -> io::Result<()> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        for _ in 0..MAX_EVENTS {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let name = event.file_name().map(std::ffi::CStr::to_bytes).unwrap_or_default();
            if let Some(kind) = event_kind(event.events(), !name.is_empty()) {
                handle(event.wd(), kind, name);
            }
        }
        handle(-1, EventKind::Overflow, b"");
        Ok(())
    }
}

fn event_kind(events: ReadFlags, has_name: bool) -> Option<EventKind> {
    let is_folder = events.contains(ReadFlags::ISDIR);
    let list = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
    if events.contains(ReadFlags::QUEUE_OVERFLOW) {
        Some(EventKind::Overflow)
    } else if events.contains(ReadFlags::IGNORED) {
        Some(EventKind::Dropped)
    } else if events.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) {
        Some(EventKind::Gone)
    } else if events.intersects(list) {
        Some(EventKind::List { is_folder })
    } else {
        // Permissions of a folder: those inside may not be readable any more.
        (has_name).then_some(if is_folder { EventKind::List { is_folder: true } } else { EventKind::Content })
    }
}

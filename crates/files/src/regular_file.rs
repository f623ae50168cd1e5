//! [`RegularFile`]: an open regular file. Opening never waits, and reading has a limit.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::UnreadableReason;

/// An open file that is neither a folder nor a pipe, socket or device. What is read comes from this
/// very file, whatever becomes of its name.
#[derive(Debug)]
pub struct RegularFile {
    /// Open for reading, at its start.
    pub file: File,
    /// As it was when the file was opened.
    pub metadata: Metadata,
}

impl RegularFile {
    /// Opens a regular file, through links. It checks the type before opening, because opening a
    /// device may do anything; and again after, because the file may have been replaced.
    pub fn open(path: &Path) -> Result<RegularFile, UnreadableReason> {
        require_regular(std::fs::metadata(path)?.file_type())?;
        let mut options = OpenOptions::new();
        options.read(true);
        RegularFile::open_with(path, &mut options)
    }

    /// Opens a regular file with these options, for example to append to it. It is not created.
    pub fn open_with(path: &Path, options: &mut OpenOptions) -> Result<RegularFile, UnreadableReason> {
        require_regular(std::fs::metadata(path)?.file_type())?;
        // Between the two checks a pipe may take the file's place, on which opening would wait.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            options,
            rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
        );
        RegularFile::from_open(options.open(path)?)
    }

    /// Takes an open file, if it is a regular one.
    pub fn from_open(file: File) -> Result<RegularFile, UnreadableReason> {
        let metadata = file.metadata()?;
        require_regular(metadata.file_type())?;
        Ok(RegularFile { file, metadata })
    }

    /// The whole content, if it has at most `limit` bytes.
    pub fn read_all(self, limit: u64) -> Result<Vec<u8>, UnreadableReason> {
        if self.metadata.len() > limit {
            return Err(UnreadableReason::TooLarge { limit });
        }
        let mut bytes = Vec::new();
        self.file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit { Err(UnreadableReason::TooLarge { limit }) } else { Ok(bytes) }
    }

    /// Like [`RegularFile::read_all`], for a text.
    pub fn read_text(self, limit: u64) -> Result<String, UnreadableReason> {
        String::from_utf8(self.read_all(limit)?)
            .map_err(|error| UnreadableReason::NotUtf8 { offset: error.utf8_error().valid_up_to() })
    }

    /// The path of the file as the system reports it now. `None` where it does not.
    #[cfg(target_os = "linux")]
    pub fn real_path(&self) -> Option<PathBuf> {
        use std::os::fd::AsRawFd;
        std::fs::read_link(format!("/proc/self/fd/{}", self.file.as_raw_fd())).ok()
    }

    /// The path of the file as the system reports it now. `None` where it does not.
    #[cfg(not(target_os = "linux"))]
    pub fn real_path(&self) -> Option<PathBuf> {
        None
    }

    /// Whether the file may have more than one name: hard links.
    #[cfg(unix)]
    pub fn has_other_names(&self) -> bool {
        std::os::unix::fs::MetadataExt::nlink(&self.metadata) > 1
    }

    /// Whether the file may have more than one name: hard links.
    #[cfg(not(unix))]
    pub fn has_other_names(&self) -> bool {
        true
    }

    /// Whether a path names this very file, by that or by another name.
    #[cfg(unix)]
    pub fn is_named(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let id = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        std::fs::metadata(path).is_ok_and(|other| id(&other) == id(&self.metadata))
    }

    /// Whether a path names this very file, by that or by another name.
    #[cfg(not(unix))]
    pub fn is_named(&self, _path: &Path) -> bool {
        false
    }
}

/// Reads a file that we have a convention for, such as a configuration: a regular file of at most
/// `limit` bytes.
pub fn read_small_file(path: &Path, limit: u64) -> Result<Vec<u8>, UnreadableReason> {
    RegularFile::open(path)?.read_all(limit)
}

/// Like [`read_small_file`], for a text.
pub fn read_small_text(path: &Path, limit: u64) -> Result<String, UnreadableReason> {
    RegularFile::open(path)?.read_text(limit)
}

pub(crate) fn require_regular(kind: FileType) -> Result<(), UnreadableReason> {
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(UnreadableReason::Directory)
    } else {
        Err(UnreadableReason::Special(special_file_kind(kind)))
    }
}

/// What to call a file that is neither regular nor a folder nor a link.
#[cfg(unix)]
pub fn special_file_kind(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

/// What to call a file that is neither regular nor a folder nor a link.
#[cfg(not(unix))]
pub fn special_file_kind(_: FileType) -> &'static str {
    "a special file"
}

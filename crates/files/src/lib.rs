//! Opening files that somebody else may have put there: the one way from a name to bytes.
//!
//! - [`FileGuard`] says which files may become context, and is the only way to open them. It opens
//!   below a folder that it holds open, and judges the descriptor, never the name: a link that is
//!   put in place between a check and a read leads nowhere.
//! - [`RegularFile`] is an open regular file. Pipes, sockets and devices are refused without
//!   waiting, and every read has a limit.
//! - [`read_lines`] reads a file of lines with bounded memory.
//! - [`create_private_folder`] and [`write_private_file`] keep what they create to its owner, and a
//!   [`FileLock`] keeps other processes waiting.
//!
//! ```
//! use hardpan_files::{FileGuard, UnreadableReason};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::create_dir(folder.path().join("project"))?;
//! std::fs::write(folder.path().join("project/a.txt"), "text")?;
//! std::fs::write(folder.path().join("secret"), "secret")?;
//!
//! let root = folder.path().join("project").canonicalize()?;
//! let guard = FileGuard::for_folder(&root);
//! assert_eq!(guard.open(&root.join("a.txt"))?.read_all(100)?, b"text");
//! let outside = guard.open(&root.join("../secret"));
//! assert!(matches!(outside, Err(UnreadableReason::Outside)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file_guard; // FileGuard: which files may become context
mod file_lock; // FileLock: one process at a time
mod git_folder; // is_git_name: what runs programs in a repository
mod lines; // read_lines: lines of bounded length
mod open_folder; // OpenFolder: a folder held open, below which files are opened
mod plain_path; // plain_path: a path without `.` and `..`
mod private_file; // create_private_folder, write_private_file: for the owner only
mod regular_file; // RegularFile: an open regular file
mod unreadable; // UnreadableReason: why a file cannot be read

pub use file_guard::{FileGuard, HiddenFiles};
pub use file_lock::FileLock;
pub use git_folder::{is_git_name, is_in_git};
pub use lines::{FileLines, LineExcess, MAX_LINE_BYTES, UnreadLine, read_lines};
pub use open_folder::OpenFolder;
pub use plain_path::plain_path;
pub use private_file::{create_private_folder, write_private_file};
pub use regular_file::{RegularFile, read_small_file, read_small_text, special_file_kind};
pub use unreadable::{UnreadableFile, UnreadableReason};

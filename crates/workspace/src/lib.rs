//! What is around the agent: files, images, the tree, git and the project's instructions.
//!
//! - [`read_text`] and [`read_image`] read one file whole, or say in plain words why not ([`Unreadable`]). No
//!   input makes them hang: pipes, devices and sockets are refused before they are opened.
//! - [`files`] lists a folder by git's ignore rules as a [`Tree`], in the same order on every machine.
//! - [`git_status`], [`root_of`] and [`instructions`] tell where the work happens.
//!
//! ```
//! use hardpan_workspace::{TEXT_LIMIT, TREE_LIMIT, files, read_text};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("notes.md"), "# Notes\n")?;
//!
//! let tree = files(folder.path(), TREE_LIMIT);
//! assert_eq!(tree.files, ["notes.md"]);
//! assert_eq!(read_text(&folder.path().join("notes.md"), TEXT_LIMIT)?.text, "# Notes\n");
//!
//! let error = read_text(folder.path(), TEXT_LIMIT).unwrap_err();
//! assert!(error.to_string().ends_with("is a directory: name a file in it"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate reads. It writes nothing but the cache of [`codebase`], in the folder that it is given for it.

mod codebase; // codebase: the symbol index of a folder, kept on disk
mod git; // git_status, root_of: which repository, which branch, what changed
mod image; // read_image: type by content, size in pixels
mod instructions; // instructions: AGENTS.md and CLAUDE.md on the way down
mod path; // display_path: the name a file is shown by
mod regular; // Unreadable: a regular file opened without blocking, or the reason why not
mod text; // read_text: text of a known encoding, cut where it is too long
mod tree; // files: the tree by git's ignore rules

pub use codebase::{Codebase, codebase};
pub use git::{git_status, root_of};
pub use image::{ImageFileError, read_image};
pub use instructions::instructions;
pub use path::display_path;
pub use regular::{Reason, Unreadable, open};
pub use text::{Cut, TEXT_LIMIT, TextFile, read_text};
pub use tree::{Skipped, TREE_LIMIT, Tree, files, walk};

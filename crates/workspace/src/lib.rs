//! The project the agent works in: its files, images, file tree, git state, instructions and symbol
//! index.
//!
//! - [`read_text`] and [`read_image`] read one file, or say in plain words why not
//!   ([`UnreadableFile`]). No input makes them hang: pipes, devices and sockets are refused. Files
//!   that others may have put there are opened by a [`FileGuard`] first.
//! - [`list_files`] lists a folder by git's ignore rules as a [`FileTree`], in the same order on
//!   every machine.
//! - [`Git::status`], [`find_project_root`] and [`read_instructions`] tell where the work happens.
//!
//! - [`WorkspaceWatch`] tells what changed since it was last asked.
//! - [`index_codebase`] parses the code into a symbol index, and caches it on disk; [`LiveIndex`] keeps it
//!   in memory and up to date.
//!
//! ```
//! use hardpan_workspace::{FileGuard, TEXT_LIMIT, TREE_LIMIT, list_files, read_text};
//!
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("notes.md"), "# Notes\n")?;
//!
//! let root = folder.path().canonicalize()?;
//! let tree = list_files(&FileGuard::for_folder(&root), &root, TREE_LIMIT);
//! assert_eq!(tree.files, ["notes.md"]);
//! assert_eq!(read_text(&folder.path().join("notes.md"), TEXT_LIMIT)?.text, "# Notes\n");
//!
//! let error = read_text(folder.path(), TEXT_LIMIT).unwrap_err();
//! assert!(error.to_string().ends_with("is a folder: name a file in it"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate only reads. The one thing it writes is the cache of [`index_codebase`], in the folder
//! it is given for that.

mod codebase; // index_codebase: the symbol index of a folder, cached on disk
mod cursor_rules; // CursorRule: a rule that says itself when it applies
mod file_tree; // list_files, FileTree: the files of a folder by git's ignore rules
mod front_matter; // FrontMatter: the top of a file that another agent reads
mod git; // Git, find_project_root: repository, branch and changes
mod glob; // compile_glob: globs from anybody
mod ignore_rules; // which files git would ignore
mod image; // read_image: type by content, size in pixels
mod instructions; // read_instructions: AGENTS.md, CLAUDE.md and others from the root down
mod list_bounds; // FolderKind: how much of a folder is looked at
mod path; // display_path: the path by which a file is shown
mod text; // read_text: text of a known encoding, cut if it is too long
mod walk; // walk: everything below a folder, without leaving it
mod watch; // WorkspaceWatch: what changed since it was last asked

pub use codebase::{Codebase, IndexNotReady, IndexWait, LiveIndex, index_codebase};
pub use cursor_rules::{CURSOR_RULES_FOLDER, CursorRule, RuleScope, read_cursor_rules};
pub use file_tree::{FileTree, SkippedPath, TREE_LIMIT, list_files};
pub use front_matter::FrontMatter;
pub use git::{
    GITHUB_VARIABLES, Git, GitConfinement, GitError, GitHubCli, GitHubError, GitOptions, RemoteError,
    RemoteRepository, RepositoryProblem, StatusChanges, checked_out_branch, find_project_root,
};
pub use glob::{GlobError, compile_glob};
pub use hardpan_files::{FileGuard, OpenFolder, RegularFile, UnreadableFile, UnreadableReason};
pub use ignore_rules::compile_rules;
pub use image::{ImageFileError, read_image, read_open_image};
pub use instructions::{InstructionKinds, InstructionPlaces, read_instructions};
pub use list_bounds::FolderKind;
pub use path::display_path;
pub use text::{TEXT_LIMIT, TextFile, Truncation, decode_text, read_open_text, read_text};
pub use walk::{EntryKind, Walk, WalkEntry, folder_names, walk};
pub use watch::{Changes, WatchError, WatchPosition, WorkspaceWatch};

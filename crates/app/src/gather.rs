//! Gathers what a request is made of: [`FolderReader`] reads the folder, [`read_snapshot_file`] a
//! snapshot that stands for it.
//!
//! This is where the world is read; the engine below takes values only.

mod content_times; // ContentTimes: when the content of an item last changed
mod folder;
mod folder_watch; // FolderWatch: when the workspace is watched
mod readings; // Readings: what was read of the folder, kept until it changes // FolderReader: reads a folder into a snapshot

use std::io;
use std::path::{Path, PathBuf};

use hardpan_context::{PromptEntry, SnapshotError, SnapshotFile, ThinkingEntry};
use hardpan_files::read_small_text;
use hardpan_prompt::{Image, Text};
use hardpan_tools::Scope;
use hardpan_workspace as workspace;
use hardpan_workspace::ImageFileError;
use jiff::Timestamp;

use crate::command_sandbox::hidden_files;
use crate::options::RequestOptions;
use crate::settings::Settings;
use crate::target::{resolve_keep, resolve_lifetime};

pub use content_times::ContentTimes;
pub use folder::{FolderReader, RepositoryState};
pub(crate) use folder::{PANEL_FILE_LIMIT, PREVIEW_WAIT, REQUEST_WAIT, RESUME_WAIT, discover_expansions};
pub(crate) use folder_watch::FolderWatch;

/// Why the inputs of a request cannot be gathered. A part of the folder that cannot be read is no
/// error: the snapshot lists it with the reason.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatherError {
    /// The folder is not there.
    #[error("cannot find {}: {source}", path.display())]
    FolderNotFound {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file stands where a folder is expected.
    #[error("{} is a file: name the folder it is in", path.display())]
    NotAFolder {
        /// The file.
        path: PathBuf,
    },
    /// The folder may not be read.
    #[error("cannot read the folder {}: {source}", path.display())]
    UnreadableFolder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The snapshot file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    UnreadableSnapshot {
        /// The snapshot file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The snapshot contradicts itself.
    #[error(transparent)]
    InvalidSnapshot(#[from] SnapshotError),
    /// An image cannot be sent.
    #[error(transparent)]
    Image(#[from] ImageFileError),
}

/// The largest snapshot file, in bytes: twice the largest request, since JSON escapes.
const MAX_SNAPSHOT_BYTES: u64 = 64 * 1024 * 1024;

/// Reads the snapshot file at `path`, with what the options add to it.
pub fn read_snapshot_file(
    path: &Path,
    options: &RequestOptions,
    settings: &Settings,
) -> Result<SnapshotFile, GatherError> {
    let folder = canonical_folder(&options.folder)?;
    let root = workspace::find_project_root(&folder);
    let mut file = read_snapshot(path, options.now)?;
    let mut scope = Scope::new(root, &folder);
    scope.hidden = hidden_files(settings);
    for path in &options.files {
        folder::add_named_file(&mut file, &scope, path);
    }
    for path in &options.images {
        file.images.push(folder::image_entry(read_named_image(&scope, path)?, None));
    }
    if let Some(prompt) = &options.prompt {
        file.prompt = Some(PromptEntry::Text(Text::new(prompt.as_str())));
    }
    if let Some(setting) = options.target.thinking {
        file.thinking = ThinkingEntry::new(setting);
    }
    // A snapshot file says itself what to keep, unless a flag does.
    if options.target.keep.is_some() {
        file.keep = resolve_keep(&options.target, settings);
    }
    if options.target.cache_lifetime.is_some() {
        file.cache_lifetime = resolve_lifetime(&options.target, settings);
    }
    file.fold |= options.fold;
    Ok(file)
}

/// The full path of a folder that can be read, without links.
pub fn canonical_folder(folder: &Path) -> Result<PathBuf, GatherError> {
    let path = || folder.to_owned();
    let found =
        folder.canonicalize().map_err(|source| GatherError::FolderNotFound { path: path(), source })?;
    if !found.is_dir() {
        return Err(GatherError::NotAFolder { path: path() });
    }
    match found.read_dir() {
        Ok(_) => Ok(found),
        Err(source) => Err(GatherError::UnreadableFolder { path: path(), source }),
    }
}

/// Reads an image that the user named, from the working directory of the process.
pub(crate) fn read_named_image(scope: &Scope, path: &Path) -> Result<Image, ImageFileError> {
    let open = || scope.guard().open_named_by_user(&std::path::absolute(path)?);
    let file = open().map_err(|reason| reason.for_path(path))?;
    workspace::read_open_image(&file, path)
}

fn read_snapshot(path: &Path, now: Option<Timestamp>) -> Result<SnapshotFile, GatherError> {
    let json = read_small_text(path, MAX_SNAPSHOT_BYTES)
        .map_err(|reason| GatherError::UnreadableSnapshot { path: path.to_owned(), source: reason.into() })?;
    let mut file = SnapshotFile::parse(&path.display().to_string(), &json)?;
    file.now = now.unwrap_or(file.now);
    Ok(file)
}

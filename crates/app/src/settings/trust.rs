//! Trust: which projects' own settings, skills and templates Hardpan uses. The user trusts what the
//! files say, not the folder: when they change, Hardpan ignores them until the user has seen the
//! changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hardpan_files::{create_private_folder, read_small_text, write_private_file};
use similar::TextDiff;

use super::project_files::ProjectFiles;
use super::{SettingsError, UserFolders, read_optional};

/// The largest stored content, in bytes: as much as can be trusted, escaped.
const MAX_STORED_BYTES: u64 = 64 * 1024 * 1024;

/// The list of trusted projects, a line each: the hash of their files, a tab, their path. A line of
/// an earlier version is a path alone.
fn trust_file(folders: &UserFolders) -> Result<PathBuf, SettingsError> {
    let folder = folders.config.as_ref().ok_or(SettingsError::NoConfigFolder)?;
    Ok(folder.join("trusted"))
}

/// Where the trusted content is kept: later content is compared with it, and what it forbids goes on until the user has
/// seen a change. It only counts if it has the hash of the list.
fn content_file(folders: &UserFolders, hash: &str) -> Option<PathBuf> {
    Some(folders.data.as_ref()?.join("trust").join(format!("{hash}.json")))
}

fn canonical(root: &Path) -> Result<String, SettingsError> {
    let root = root
        .canonicalize()
        .map_err(|source| SettingsError::FolderNotFound { path: root.to_owned(), source })?;
    let name = root.to_str().ok_or(SettingsError::UntrustableName { problem: "is not UTF-8" })?;
    if name.contains('\n') {
        return Err(SettingsError::UntrustableName { problem: "contains a line break" });
    }
    Ok(name.to_owned())
}

/// A line of the list.
struct TrustLine<'a> {
    /// None in a line of an earlier version.
    hash: Option<&'a str>,
    name: &'a str,
}

impl<'a> TrustLine<'a> {
    fn parse(line: &'a str) -> Self {
        match line.split_once('\t') {
            // Every path begins with a slash.
            Some((hash, name)) if !hash.starts_with('/') => TrustLine { hash: Some(hash), name },
            _ => TrustLine { hash: None, name: line },
        }
    }
}

/// What the user said about a project, and what is there now.
#[derive(Debug)]
pub struct TrustReview {
    root: String,
    /// What the user trusted.
    pub state: TrustState,
    /// What the project's files say now.
    pub current: ProjectFiles,
}

/// What the user said about a project's own settings.
#[derive(Debug, PartialEq, Eq)]
pub enum TrustState {
    /// The user trusts exactly what is there.
    Trusted,
    /// The user trusted something else.
    Changed {
        /// What the user trusted; none if it was not kept.
        before: Option<ProjectFiles>,
    },
    /// The user never trusted the project.
    Untrusted,
}

/// Whether the user ever trusted the project at `root`, whatever its files say now.
pub(super) fn is_listed(root: &Path, folders: &UserFolders) -> Result<bool, SettingsError> {
    if folders.config.is_none() {
        return Ok(false);
    }
    let list = read_optional(&trust_file(folders)?)?.unwrap_or_default();
    let name = canonical(root)?;
    Ok(list.lines().any(|line| TrustLine::parse(line).name == name))
}

/// What the user trusted of the project at `root`, if it was kept.
pub(super) fn trusted_content(
    root: &Path,
    folders: &UserFolders,
) -> Result<Option<ProjectFiles>, SettingsError> {
    let name = canonical(root)?;
    let list = read_optional(&trust_file(folders)?)?.unwrap_or_default();
    let line = list.lines().map(TrustLine::parse).find(|line| line.name == name);
    Ok(line.and_then(|line| stored_content(folders, line.hash?)))
}

impl TrustReview {
    /// Reads the project's files, and compares them with what the user trusted.
    pub fn read(root: &Path, folders: &UserFolders) -> Result<Self, SettingsError> {
        let name = canonical(root)?;
        let current = ProjectFiles::read(root, &folders.private_files())?;
        let list = read_optional(&trust_file(folders)?)?.unwrap_or_default();
        let line = list.lines().map(TrustLine::parse).find(|line| line.name == name);
        let now = current.hash().to_string();
        let state = match line {
            None => TrustState::Untrusted,
            Some(TrustLine { hash: Some(hash), .. }) if hash == now => TrustState::Trusted,
            Some(TrustLine { hash, .. }) => {
                TrustState::Changed { before: hash.and_then(|hash| stored_content(folders, hash)) }
            }
        };
        Ok(TrustReview { root: name, state, current })
    }

    /// The project's full path.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The files that differ from what the user trusted, all of them if that is not known.
    pub fn changed_files(&self) -> Vec<PathBuf> {
        let nothing = ProjectFiles::default();
        let before = self.before().unwrap_or(&nothing);
        let paths: BTreeSet<&PathBuf> = before.files().keys().chain(self.current.files().keys()).collect();
        let differs = |path: &&PathBuf| before.get(path) != self.current.get(path);
        paths.into_iter().filter(differs).cloned().collect()
    }

    /// What a yes would newly trust, as a diff from what the user trusted before.
    pub fn diff(&self) -> String {
        let nothing = ProjectFiles::default();
        let before = self.before().unwrap_or(&nothing);
        self.changed_files().iter().map(|path| file_diff(path, before, &self.current)).collect()
    }

    fn before(&self) -> Option<&ProjectFiles> {
        match &self.state {
            TrustState::Trusted => Some(&self.current),
            TrustState::Changed { before } => before.as_ref(),
            TrustState::Untrusted => None,
        }
    }

    /// Trusts what was read, and nothing that has changed since.
    pub fn accept(&self, folders: &UserFolders) -> Result<(), SettingsError> {
        let hash = self.current.hash().to_string();
        if let Some(file) = content_file(folders, &hash) {
            let json = serde_json::to_vec(&self.current).unwrap_or_default();
            write_file(&file, &json)?;
        }
        write_list(&self.root, Some(&hash), folders)
    }
}

/// Takes a project from the list of trusted ones. Returns its full path.
pub fn remove_trust(root: &Path, folders: &UserFolders) -> Result<String, SettingsError> {
    let name = canonical(root)?;
    write_list(&name, None, folders)?;
    Ok(name)
}

fn stored_content(folders: &UserFolders, hash: &str) -> Option<ProjectFiles> {
    let json = read_small_text(&content_file(folders, hash)?, MAX_STORED_BYTES).ok()?;
    let files: ProjectFiles = serde_json::from_str(&json).ok()?;
    (files.hash().to_string() == hash).then_some(files)
}

/// Replaces the line of a project, or removes it.
fn write_list(name: &str, hash: Option<&str>, folders: &UserFolders) -> Result<(), SettingsError> {
    let file = trust_file(folders)?;
    let list = read_optional(&file)?.unwrap_or_default();
    let others = list.lines().filter(|line| !line.is_empty() && TrustLine::parse(line).name != name);
    let mut text: String = others.map(|line| format!("{line}\n")).collect();
    text.extend(hash.map(|hash| format!("{hash}\t{name}\n")));
    write_file(&file, text.as_bytes())
}

/// Written beside it and renamed, so that a crash leaves the old file and never half of one.
fn write_file(file: &Path, content: &[u8]) -> Result<(), SettingsError> {
    let folder = file.parent().ok_or(SettingsError::NoConfigFolder)?;
    create_private_folder(folder)
        .map_err(|source| SettingsError::FolderNotCreated { path: folder.to_owned(), source })?;
    write_private_file(file, content)
        .map_err(|source| SettingsError::Unwritable { path: file.to_owned(), source })
}

fn file_diff(path: &Path, before: &ProjectFiles, now: &ProjectFiles) -> String {
    let text = |content: Option<&[u8]>| match content {
        None => Ok(String::new()),
        Some(bytes) => std::str::from_utf8(bytes).map(str::to_owned),
    };
    let (old, new) = (before.get(path), now.get(path));
    let name = |there: bool| if there { path.display().to_string() } else { "/dev/null".to_owned() };
    let (old_name, new_name) = (name(old.is_some()), name(new.is_some()));
    match (text(old), text(new)) {
        (Ok(old), Ok(new)) if old != new => {
            TextDiff::from_lines(&old, &new).unified_diff().header(&old_name, &new_name).to_string()
        }
        // An empty file, or one that is no text.
        _ => format!("--- {old_name}\n+++ {new_name}\n({} bytes)\n", new.map_or(0, <[u8]>::len)),
    }
}

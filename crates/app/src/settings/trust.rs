//! Trust: which folders' own settings, skills and templates Hardpan uses.

use std::fs;
use std::path::{Path, PathBuf};

use super::{SettingsError, UserFolders, read_optional};

/// The list of trusted folders, one path per line.
fn trust_file(folders: &UserFolders) -> Result<PathBuf, SettingsError> {
    let folder = folders.config.as_ref().ok_or(SettingsError::NoConfigFolder)?;
    Ok(folder.join("trusted"))
}

pub(super) fn is_trusted(root: &Path, folders: &UserFolders) -> Result<bool, SettingsError> {
    if folders.config.is_none() {
        return Ok(false);
    }
    let list = read_optional(&trust_file(folders)?)?.unwrap_or_default();
    let name = canonical(root)?;
    Ok(list.lines().any(|line| line == name))
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

/// Whether a folder's own settings are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// They are.
    Trusted,
    /// They are ignored.
    Untrusted,
}

/// Adds a folder to the list of trusted ones, or removes it. Returns its full path.
pub fn set_trust(root: &Path, trust: Trust, folders: &UserFolders) -> Result<String, SettingsError> {
    let file = trust_file(folders)?;
    let name = canonical(root)?;
    let list = read_optional(&file)?.unwrap_or_default();
    let mut names: Vec<&str> = list.lines().filter(|line| *line != name && !line.is_empty()).collect();
    if trust == Trust::Trusted {
        names.push(&name);
    }
    let folder = file.parent().ok_or(SettingsError::NoConfigFolder)?;
    fs::create_dir_all(folder)
        .map_err(|source| SettingsError::FolderNotCreated { path: folder.to_owned(), source })?;
    // Written beside it and renamed, so that a crash leaves the old list and never half of one.
    let beside = folder.join(format!("trusted.{}", std::process::id()));
    let text = names.iter().map(|name| format!("{name}\n")).collect::<String>();
    fs::write(&beside, text).map_err(|source| SettingsError::Unwritable { path: beside.clone(), source })?;
    fs::rename(&beside, &file).map_err(|source| SettingsError::Unwritable { path: file, source })?;
    Ok(name)
}

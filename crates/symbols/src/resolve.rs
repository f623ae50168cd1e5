//! [`PathLookup`]: resolves an import to files of the repository, with one small rule per family of
//! languages.

#![expect(
    clippy::disallowed_types,
    reason = "paths are looked up, never iterated; the lists in them are sorted"
)]

mod rules;

use std::collections::HashMap;

use crate::language::{ImportRule, Language};
use crate::manifest::Manifest;
use crate::name_table::WordHash;
use crate::outline::{Import, ImportForm};

/// Number of a file in the index.
pub(crate) type FileId = u32;

/// A table by path or name. It is never iterated, since its order is arbitrary.
type Table<T> = HashMap<Box<str>, T, WordHash>;

/// All paths of the repository, and what its package files say.
#[derive(Debug, Default)]
pub(crate) struct PathLookup {
    files: Table<FileId>,
    /// Files directly in each folder, sorted by path.
    folders: Table<Vec<(Box<str>, FileId)>>,
    /// Folders that contain a file of each name, sorted.
    by_name: Table<Vec<Box<str>>>,
    /// Folders with files, by the last part of their path, sorted.
    folder_names: Table<Vec<Box<str>>>,
    /// Package files by folder, deepest first; sorted, so that the result does not depend on the
    /// order of arrival.
    manifests: Vec<(Box<str>, Manifest)>,
}

/// What an import resolves to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ImportResolution {
    /// Files of the repository.
    Files(Vec<FileId>),
    /// An external package, by its name.
    External(String),
    /// The standard library, or a path that resolves to nothing: not shown.
    Ignored,
}

impl PathLookup {
    pub(crate) fn insert(&mut self, path: &str, file: FileId, manifest: Option<&Manifest>) {
        let (folder, name) = split_path(path);
        if self.files.insert(path.into(), file).is_none() {
            let files = self.folders.entry(folder.into()).or_default();
            if files.is_empty() {
                insert_sorted(self.folder_names.entry(split_path(folder).1.into()).or_default(), folder);
            }
            let at = files.partition_point(|(other, _)| **other < *path);
            files.insert(at, (path.into(), file));
            insert_sorted(self.by_name.entry(name.into()).or_default(), folder);
        }
        let name_and_folder =
            |known: &(Box<str>, Manifest)| *known.0 == *folder && is_manifest_name(&known.1, name);
        self.manifests.retain(|known| !name_and_folder(known));
        if let Some(manifest) = manifest {
            // Deepest first: the nearest package decides.
            let at =
                self.manifests.partition_point(|(other, _)| (other.len(), &**other) > (folder.len(), folder));
            self.manifests.insert(at, (folder.into(), manifest.clone()));
        }
    }

    pub(crate) fn remove(&mut self, path: &str) {
        let (folder, name) = split_path(path);
        self.files.remove(path);
        if let Some(files) = self.folders.get_mut(folder) {
            files.retain(|(other, _)| **other != *path);
            if files.is_empty()
                && let Some(folders) = self.folder_names.get_mut(split_path(folder).1)
            {
                folders.retain(|other| **other != *folder);
            }
        }
        if let Some(folders) = self.by_name.get_mut(name) {
            folders.retain(|other| **other != *folder);
        }
        self.manifests.retain(|(at, manifest)| **at != *folder || !is_manifest_name(manifest, name));
    }

    /// Resolves one import of the file `from`.
    pub(crate) fn resolve(&self, language: &Language, from: &str, import: &Import) -> Vec<ImportResolution> {
        let submodule = matches!(import.form, ImportForm::Submodule | ImportForm::PublicSubmodule);
        match language.imports {
            ImportRule::None => vec![ImportResolution::External(import.path.to_string())],
            ImportRule::Rust if submodule => vec![self.resolve_rust_submodule(from, &import.path)],
            ImportRule::Rust => rules::expand_use_tree(&import.path)
                .iter()
                .map(|path| self.resolve_rust(from, path))
                .collect(),
            ImportRule::Python => self.resolve_python(from, import),
            ImportRule::Ecmascript => vec![self.resolve_ecmascript(from, &import.path)],
            ImportRule::Go => vec![self.resolve_go(&import.path)],
            ImportRule::Dotted => vec![self.resolve_dotted(language, from, &import.path)],
            ImportRule::Path => vec![self.resolve_path(language, from, &import.path)],
        }
    }

    fn find_file(&self, path: &str) -> Option<FileId> {
        self.files.get(path).copied()
    }

    /// The first of these endings that gives an existing file.
    fn find_with_ending(&self, stem: &str, endings: &[&str]) -> Option<FileId> {
        endings.iter().find_map(|ending| self.find_file(&format!("{stem}{ending}")))
    }

    /// The file whose path ends with `ending` and is nearest to `from`: most leading folders in
    /// common, then by path.
    fn find_nearest(&self, from: &str, ending: &str) -> Option<FileId> {
        let (tail, name) = split_path(ending);
        let fits = |folder: &&str| {
            tail.is_empty()
                || folder.strip_suffix(tail).is_some_and(|head| head.is_empty() || head.ends_with('/'))
        };
        let common = |folder: &str| {
            folder.split('/').zip(split_path(from).0.split('/')).take_while(|(a, b)| a == b).count()
        };
        let folders = self.by_name.get(name)?.iter().map(|folder| &**folder).filter(fits);
        let folder = folders.max_by_key(|folder| (common(folder), std::cmp::Reverse(folder.len())))?;
        self.find_file(&join_path(folder, name))
    }
}

fn insert_sorted(list: &mut Vec<Box<str>>, item: &str) {
    let at = list.partition_point(|other| **other < *item);
    list.insert(at, item.into());
}

fn is_manifest_name(manifest: &Manifest, name: &str) -> bool {
    match manifest {
        Manifest::Crate(_) => name == "Cargo.toml",
        Manifest::GoModule(_) => name == "go.mod",
        Manifest::Package(_) => name == "package.json",
        Manifest::Paths(_) => name == "tsconfig.json" || name == "jsconfig.json",
    }
}

/// Splits a path into folder and name; the folder is empty at the top level.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Joins a folder and a path, and resolves `.` and `..`.
fn join_path(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests;

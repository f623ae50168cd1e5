//! From an import to the files of the repository that it means, one small rule per family of languages.

mod rules;

use std::collections::HashMap;

use crate::language::{ImportRule, Language};
use crate::manifest::Manifest;
use crate::names::WordHash;
use crate::outline::{Import, ImportForm};

/// The number of a file in the index.
pub(crate) type FileId = u32;

/// Something by path or name; never gone through, since the order is any.
type Table<T> = HashMap<Box<str>, T, WordHash>;

/// The paths of the repository, and what its package files say.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    files: Table<FileId>,
    /// The files directly in a folder, sorted by path.
    folders: Table<Vec<(Box<str>, FileId)>>,
    /// The folders in which a file of that name lies, sorted.
    by_name: Table<Vec<Box<str>>>,
    /// The folders with files whose last part is that name, sorted.
    folder_names: Table<Vec<Box<str>>>,
    /// By the folder of the package file and its kind; sorted, so that the answer does not depend on the order of arrival.
    manifests: Vec<(Box<str>, Manifest)>,
}

/// What an import means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Files of the repository.
    Files(Vec<FileId>),
    /// A package from elsewhere, by its name.
    External(String),
    /// The language's own library, which is not worth a word.
    Nothing,
}

impl Paths {
    pub(crate) fn insert(&mut self, path: &str, file: FileId, manifest: Option<&Manifest>) {
        let (folder, name) = split(path);
        if self.files.insert(path.into(), file).is_none() {
            let files = self.folders.entry(folder.into()).or_default();
            if files.is_empty() {
                insert_sorted(self.folder_names.entry(split(folder).1.into()).or_default(), folder);
            }
            let at = files.partition_point(|(other, _)| **other < *path);
            files.insert(at, (path.into(), file));
            insert_sorted(self.by_name.entry(name.into()).or_default(), folder);
        }
        let name_and_folder = |known: &(Box<str>, Manifest)| *known.0 == *folder && is_of(&known.1, name);
        self.manifests.retain(|known| !name_and_folder(known));
        if let Some(manifest) = manifest {
            // Deepest first: the package that is nearest to a file decides.
            let at =
                self.manifests.partition_point(|(other, _)| (other.len(), &**other) > (folder.len(), folder));
            self.manifests.insert(at, (folder.into(), manifest.clone()));
        }
    }

    pub(crate) fn remove(&mut self, path: &str) {
        let (folder, name) = split(path);
        self.files.remove(path);
        if let Some(files) = self.folders.get_mut(folder) {
            files.retain(|(other, _)| **other != *path);
            if files.is_empty()
                && let Some(folders) = self.folder_names.get_mut(split(folder).1)
            {
                folders.retain(|other| **other != *folder);
            }
        }
        if let Some(folders) = self.by_name.get_mut(name) {
            folders.retain(|other| **other != *folder);
        }
        self.manifests.retain(|(at, manifest)| **at != *folder || !is_of(manifest, name));
    }

    /// What an import of a file means.
    pub(crate) fn resolve(&self, language: &Language, from: &str, import: &Import) -> Vec<Meaning> {
        let submodule = matches!(import.form, ImportForm::Submodule | ImportForm::PublicSubmodule);
        match language.imports {
            ImportRule::None => vec![Meaning::External(import.path.to_string())],
            ImportRule::Rust if submodule => vec![self.rust_submodule(from, &import.path)],
            ImportRule::Rust => {
                rules::expand(&import.path).iter().map(|path| self.rust(from, path)).collect()
            }
            ImportRule::Python => self.python(from, import),
            ImportRule::Ecmascript => vec![self.ecmascript(from, &import.path)],
            ImportRule::Go => vec![self.go(&import.path)],
            ImportRule::Dotted => vec![self.dotted(language, from, &import.path)],
            ImportRule::Path => vec![self.path(language, from, &import.path)],
        }
    }

    fn file(&self, path: &str) -> Option<FileId> {
        self.files.get(path).copied()
    }

    /// The first of the endings that makes a file.
    fn with_ending(&self, stem: &str, endings: &[&str]) -> Option<FileId> {
        endings.iter().find_map(|ending| self.file(&format!("{stem}{ending}")))
    }

    /// The file whose path ends like this, nearest to `from`: most leading folders in common, then by path.
    fn nearest(&self, from: &str, ending: &str) -> Option<FileId> {
        let (tail, name) = split(ending);
        let fits = |folder: &&str| {
            tail.is_empty()
                || folder.strip_suffix(tail).is_some_and(|head| head.is_empty() || head.ends_with('/'))
        };
        let common = |folder: &str| {
            folder.split('/').zip(split(from).0.split('/')).take_while(|(a, b)| a == b).count()
        };
        let folders = self.by_name.get(name)?.iter().map(|folder| &**folder).filter(fits);
        let folder = folders.max_by_key(|folder| (common(folder), std::cmp::Reverse(folder.len())))?;
        self.file(&join(folder, name))
    }
}

fn insert_sorted(list: &mut Vec<Box<str>>, item: &str) {
    let at = list.partition_point(|other| **other < *item);
    list.insert(at, item.into());
}

fn is_of(manifest: &Manifest, name: &str) -> bool {
    match manifest {
        Manifest::Crate(_) => name == "Cargo.toml",
        Manifest::GoModule(_) => name == "go.mod",
        Manifest::Package(_) => name == "package.json",
        Manifest::Paths(_) => name == "tsconfig.json" || name == "jsconfig.json",
    }
}

/// Folder and name; the folder is empty at the top.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// A path below a folder, with `.` and `..` taken out.
fn join(folder: &str, path: &str) -> String {
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

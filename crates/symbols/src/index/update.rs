//! Incremental updates: one file is parsed again, and only the links of the names it affects are
//! computed anew.
//!
//! The steps are always the same: remove the links of every affected name, change the tables, add
//! the links of the same names. Since links are whole numbers computed from the tables, the result
//! equals a rebuild from nothing.

use rayon::prelude::*;

use super::links::LinkChange;
use super::{
    ContentHash, DefinitionSite, File, FileImports, FileSource, SymbolIndex, content_hash, next_revision,
};
use crate::name_table::NameId;
use crate::outline::{Outline, SkipReason};
use crate::resolve::FileId;

/// How many re-exports are followed. Chains are short; cycles exist.
const MAX_REEXPORT_DEPTH: usize = 4;
/// A file that sees more files than this imports everything, which tells nothing.
const MAX_VISIBLE_FILES: usize = 4096;

/// Whether an update changed the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexUpdate {
    /// The content is the same as before.
    Unchanged,
    /// The file was added, replaced or removed.
    Changed,
}

impl SymbolIndex {
    /// Parses one file, new or known, and updates its links.
    pub fn update(&mut self, path: &str, content: &[u8]) -> IndexUpdate {
        let hash = content_hash(content);
        if self.hash(path) == Some(hash) {
            return IndexUpdate::Unchanged;
        }
        self.replace_file(path, hash, Outline::parse(path, content));
        IndexUpdate::Changed
    }

    /// Like [`update`](Self::update), with an outline or nothing in place of the content.
    pub fn update_from(&mut self, path: &str, source: FileSource) -> IndexUpdate {
        let (hash, outline) = match source {
            FileSource::Content(content) => return self.update(path, &content),
            FileSource::Cached(hash, outline) => (hash, *outline),
            FileSource::Unreadable => (ContentHash::default(), Outline::for_skipped(SkipReason::Unreadable)),
        };
        // Files that were not read have no hash.
        if self.hash(path) == Some(hash) && hash != ContentHash::default() {
            return IndexUpdate::Unchanged;
        }
        self.replace_file(path, hash, outline);
        IndexUpdate::Changed
    }

    /// Removes a file and its links.
    pub fn remove(&mut self, path: &str) -> IndexUpdate {
        let Some(id) = self.paths.get(path).copied() else { return IndexUpdate::Unchanged };
        self.path_lookup.remove(path);
        let empty = self.new_file(path, ContentHash::default(), Outline::default());
        self.apply_file(id, empty, PathsChange::Changed);
        // Nothing refers to it any more, so its id is free.
        self.paths.remove(path);
        self.files[id as usize] = None;
        self.free.push(id);
        IndexUpdate::Changed
    }

    fn replace_file(&mut self, path: &str, hash: ContentHash, outline: Outline) {
        let known = self.get(path).map(|file| file.outline.manifest == outline.manifest);
        let paths = if known == Some(true) { PathsChange::Same } else { PathsChange::Changed };
        let id = self.id_for_path(path);
        if paths == PathsChange::Changed {
            self.path_lookup.insert(path, id, outline.manifest.as_ref());
        }
        let file = self.new_file(path, hash, outline);
        self.apply_file(id, file, paths);
    }

    fn apply_file(&mut self, id: FileId, mut file: File, paths: PathsChange) {
        if self.files[id as usize].is_none() {
            let blank = self.new_file(&file.path, ContentHash::default(), Outline::default());
            self.files[id as usize] = Some(blank);
        }
        let imports = self.changed_imports(id, &file, paths);
        let viewers = self.affected_viewers(&imports);
        let names = self.affected_names(id, &file, &viewers);
        let defined = self.newly_defined(id, &file);
        let callees = self.callees(&defined);
        for name in &names {
            self.adjust_name_links(*name, LinkChange::Remove);
        }
        for (importer, _) in &imports {
            self.adjust_import_edges(*importer, LinkChange::Remove);
        }
        self.add_to_name_tables(id, &file);
        if let Some(old) = self.files[id as usize].take() {
            self.remove_from_name_tables(id, &old, &file);
            (file.imports, file.visible) = (old.imports, old.visible);
        }
        self.files[id as usize] = Some(file);
        let importers: Vec<FileId> = imports.iter().map(|(importer, _)| *importer).collect();
        for (importer, new) in imports {
            if let Some(file) = &mut self.files[importer as usize] {
                file.imports = new;
            }
        }
        for viewer in viewers {
            self.update_visible(viewer);
            self.bump_revision(viewer);
        }
        for name in &names {
            self.adjust_name_links(*name, LinkChange::Add);
        }
        for importer in importers {
            self.adjust_import_edges(importer, LinkChange::Add);
        }
        // Whether a call is shown depends on what it refers to.
        for (name, user, before) in callees {
            if self.callee(name, user, None) != before {
                self.bump_revision(user);
            }
        }
    }

    /// What the uses of these names refer to, for each file that uses them.
    fn callees(&self, names: &[NameId]) -> Vec<(NameId, FileId, Option<FileId>)> {
        let users = |name: NameId| self.uses[name as usize].users.iter().map(move |user| (name, *user));
        names
            .iter()
            .flat_map(|name| users(*name))
            .map(|(name, user)| (name, user, self.callee(name, user, None)))
            .collect()
    }

    /// The names whose definitions in this file changed, appeared or disappeared.
    fn newly_defined(&self, id: FileId, file: &File) -> Vec<NameId> {
        let (old_sites, old_owners) =
            self.by_id(id).map(|old| (old.sites.to_vec(), old.owners.to_vec())).unwrap_or_default();
        let (new, gone) = symmetric_difference(file.sites.to_vec(), old_sites);
        let (joined, left) = symmetric_difference(file.owners.to_vec(), old_owners);
        let members = joined.into_iter().chain(left).map(|(member, _)| member);
        new.into_iter().chain(gone).chain(members).collect()
    }

    /// The files whose imports resolve differently now, with the new resolution.
    fn changed_imports(&self, id: FileId, file: &File, paths: PathsChange) -> Vec<(FileId, FileImports)> {
        let check = |id: FileId, file: &File, old: &FileImports| {
            let new = self.resolve_imports(file);
            (new != *old).then_some((id, new))
        };
        let mut changed: Vec<(FileId, FileImports)> = match paths {
            PathsChange::Same => Vec::new(),
            PathsChange::Changed => {
                let others: Vec<(FileId, &File)> =
                    self.files_by_path().filter(|(other, _)| *other != id).collect();
                others.par_iter().filter_map(|(other, known)| check(*other, known, &known.imports)).collect()
            }
        };
        changed.extend(self.by_id(id).and_then(|old| check(id, file, &old.imports)));
        changed
    }

    /// The files that may see other files than before: those whose imports changed, and those that
    /// import them through re-exports.
    fn affected_viewers(&self, imports: &[(FileId, FileImports)]) -> Vec<FileId> {
        let mut viewers: Vec<FileId> = imports.iter().map(|(id, _)| *id).collect();
        let passes_on = |imports: &FileImports| imports.targets.iter().any(|target| target.is_public);
        let mut reexporters: Vec<FileId> = imports
            .iter()
            .filter(|(id, new)| {
                passes_on(new) || self.by_id(*id).is_some_and(|file| passes_on(&file.imports))
            })
            .map(|(id, _)| *id)
            .collect();
        while !reexporters.is_empty() {
            reexporters.sort_unstable();
            let mut next = Vec::new();
            for (id, file) in self.files_by_path() {
                let mut through = file
                    .imports
                    .targets
                    .iter()
                    .filter(|target| reexporters.binary_search(&target.file).is_ok());
                if through.next().is_some() && !viewers.contains(&id) {
                    viewers.push(id);
                    next.extend(passes_on(&file.imports).then_some(id));
                }
            }
            reexporters = next;
        }
        viewers
    }

    /// The names whose links may change, sorted, each once.
    fn affected_names(&self, id: FileId, file: &File, viewers: &[FileId]) -> Vec<NameId> {
        let (mut names, mut before) = (file.words.to_vec(), Vec::new());
        if let Some(old) = self.by_id(id) {
            before.extend_from_slice(&old.words);
        }
        if !viewers.contains(&id) {
            let (new, gone) = symmetric_difference(names.clone(), before.clone());
            // A name it used before and still uses keeps its links, unless the set of types it
            // mentions changed.
            if new.iter().chain(&gone).all(|word| self.uses[*word as usize].owner_files == 0) {
                (names, before) = (new, gone);
            }
        }
        names.extend(before);
        names.extend(self.newly_defined(id, file));
        for viewer in viewers.iter().filter(|viewer| **viewer != id) {
            names.extend(self.by_id(*viewer).into_iter().flat_map(|file| file.words.iter().copied()));
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Adds the names of a file to the tables.
    fn add_to_name_tables(&mut self, id: FileId, file: &File) {
        for word in &file.words {
            let users = &mut self.uses[*word as usize].users;
            if let Err(at) = users.binary_search(&id) {
                users.insert(at, id);
            }
        }
        for site in &file.sites {
            let sites = &mut self.uses[*site as usize].sites;
            if let Err(at) = sites.binary_search_by_key(&id, |site| site.file) {
                sites.insert(at, DefinitionSite { file: id, uses: 0 });
            }
        }
        for owner in owners(file) {
            self.uses[owner as usize].owner_files += 1;
        }
    }

    /// Removes from the tables what a file no longer has. What it keeps, keeps its count.
    fn remove_from_name_tables(&mut self, id: FileId, old: &File, new: &File) {
        for word in symmetric_difference(old.words.to_vec(), new.words.to_vec()).0 {
            self.uses[word as usize].users.retain(|user| *user != id);
        }
        for site in symmetric_difference(old.sites.to_vec(), new.sites.to_vec()).0 {
            self.uses[site as usize].sites.retain(|site| site.file != id);
        }
        for owner in owners(old) {
            self.uses[owner as usize].owner_files -= 1;
        }
    }

    /// Computes which files a file sees.
    fn update_visible(&mut self, id: FileId) {
        let visible = self.visible_files(id);
        if let Some(file) = &mut self.files[id as usize] {
            file.visible = visible;
        }
    }

    pub(super) fn visible_files(&self, id: FileId) -> Vec<FileId> {
        let Some(file) = self.by_id(id) else { return Vec::new() };
        let mut visible: Vec<FileId> = file.imports.targets.iter().map(|target| target.file).collect();
        let mut edge = visible.clone();
        for _ in 0..MAX_REEXPORT_DEPTH {
            let next = edge
                .iter()
                .filter_map(|reexporter| self.by_id(*reexporter))
                .flat_map(|reexporter| &reexporter.imports.targets);
            let mut next: Vec<FileId> =
                next.filter(|target| target.is_public).map(|target| target.file).collect();
            next.sort_unstable();
            next.dedup();
            next.retain(|file| visible.binary_search(file).is_err() && *file != id);
            if next.is_empty() || visible.len() + next.len() > MAX_VISIBLE_FILES {
                break;
            }
            visible.extend_from_slice(&next);
            visible.sort_unstable();
            edge = next;
        }
        visible
    }

    /// Computes all links from the outlines.
    pub(super) fn rebuild_links(&mut self) {
        for uses in &mut self.uses {
            uses.users.clear();
            uses.sites.clear();
            uses.owner_files = 0;
        }
        self.edges.iter_mut().for_each(Vec::clear);
        self.used_by.fill(0);
        let files: Vec<(FileId, &File)> = self.files_by_path().collect();
        let resolved: Vec<(FileId, FileImports)> =
            files.par_iter().map(|(id, file)| (*id, self.resolve_imports(file))).collect();
        for (id, imports) in resolved {
            if let Some(mut file) = self.files[id as usize].take() {
                file.imports = imports;
                file.revision = next_revision();
                self.add_to_name_tables(id, &file);
                self.files[id as usize] = Some(file);
            }
        }
        for id in 0..self.files.len() as FileId {
            self.update_visible(id);
            self.adjust_import_edges(id, LinkChange::Add);
        }
        for name in 0..self.uses.len() as NameId {
            self.adjust_name_links(name, LinkChange::Add);
        }
    }
}

/// Whether the set of paths, or a package file, changed: then every import must be resolved again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathsChange {
    Same,
    Changed,
}

/// The types that a file defines members of, each once.
pub(super) fn owners(file: &File) -> Vec<NameId> {
    let mut owners: Vec<NameId> = file.owners.iter().map(|(_, owner)| *owner).collect();
    owners.sort_unstable();
    owners.dedup();
    owners
}

/// The items only in `one`, and those only in `other`.
fn symmetric_difference<T: Ord + Copy>(mut one: Vec<T>, mut other: Vec<T>) -> (Vec<T>, Vec<T>) {
    one.sort_unstable();
    other.sort_unstable();
    let only = |of: &[T], without: &[T]| {
        of.iter().copied().filter(|name| without.binary_search(name).is_err()).collect()
    };
    (only(&one, &other), only(&other, &one))
}

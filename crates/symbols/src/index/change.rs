//! What an edit changes: one file is read again, and only the links of the names it touches are worked out anew.
//!
//! The steps are always the same: take away the links of every name that the change can reach, change the tables, add
//! the links of the same names. Since links are whole numbers worked out from the tables, the outcome is what working out
//! everything from nothing gives.

use rayon::prelude::*;

use super::links::Sign;
use super::{ContentHash, File, Imports, Index, Site, Source, content_hash, next_revision};
use crate::names::NameId;
use crate::outline::{Outline, Skip};
use crate::resolve::FileId;

/// How far imports that are passed on are followed. Chains are short; circles exist.
const CHAIN: usize = 4;
/// A file that sees more than this imports everything, which says nothing.
const VIEW: usize = 4096;

/// Whether an update changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The content is the one that was known.
    None,
    /// The index is a new one.
    Some,
}

impl Index {
    /// Reads one file, new or known, again.
    pub fn update(&mut self, path: &str, content: &[u8]) -> Change {
        let hash = content_hash(content);
        if self.hash(path) == Some(hash) {
            return Change::None;
        }
        self.replace(path, hash, Outline::of(path, content));
        Change::Some
    }

    /// The same for a file of which the caller may have more, or less, than the content.
    pub fn update_from(&mut self, path: &str, source: Source) -> Change {
        let (hash, outline) = match source {
            Source::Content(content) => return self.update(path, &content),
            Source::Known(hash, outline) => (hash, *outline),
            Source::Unreadable => (ContentHash::default(), Outline::skipped(Skip::Unreadable)),
        };
        // Files whose content nobody read have no hash.
        if self.hash(path) == Some(hash) && hash != ContentHash::default() {
            return Change::None;
        }
        self.replace(path, hash, outline);
        Change::Some
    }

    /// Forgets a file.
    pub fn remove(&mut self, path: &str) -> Change {
        let Some(id) = self.paths.get(path).copied() else { return Change::None };
        self.lookup.remove(path);
        let empty = self.file(path, ContentHash::default(), Outline::default());
        self.change(id, empty, Paths::Changed);
        // Nothing leads here any more, so the number is free.
        self.paths.remove(path);
        self.files[id as usize] = None;
        self.free.push(id);
        Change::Some
    }

    fn replace(&mut self, path: &str, hash: ContentHash, outline: Outline) {
        let known = self.get(path).map(|file| file.outline.manifest == outline.manifest);
        let paths = if known == Some(true) { Paths::Same } else { Paths::Changed };
        let id = self.number_of(path);
        if paths == Paths::Changed {
            self.lookup.insert(path, id, outline.manifest.as_ref());
        }
        let file = self.file(path, hash, outline);
        self.change(id, file, paths);
    }

    fn change(&mut self, id: FileId, mut file: File, paths: Paths) {
        if self.files[id as usize].is_none() {
            let blank = self.file(&file.path, ContentHash::default(), Outline::default());
            self.files[id as usize] = Some(blank);
        }
        let imports = self.changed_imports(id, &file, paths);
        let viewers = self.viewers(&imports);
        let names = self.reached(id, &file, &viewers);
        let defined = self.newly_defined(id, &file);
        let callees = self.callees(&defined);
        for name in &names {
            self.shift(*name, Sign::Take);
        }
        for (importer, _) in &imports {
            self.shift_imports(*importer, Sign::Take);
        }
        self.note(id, &file);
        if let Some(old) = self.files[id as usize].take() {
            self.forget(id, &old, &file);
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
            self.look(viewer);
            self.touch(viewer);
        }
        for name in &names {
            self.shift(*name, Sign::Add);
        }
        for importer in importers {
            self.shift_imports(importer, Sign::Add);
        }
        // Where a call is shown depends on what it leads to.
        for (name, user, before) in callees {
            if self.callee(name, user, None) != before {
                self.touch(user);
            }
        }
    }

    /// Where the uses of names lead, for those who may call them.
    fn callees(&self, names: &[NameId]) -> Vec<(NameId, FileId, Option<FileId>)> {
        let users = |name: NameId| self.uses[name as usize].users.iter().map(move |user| (name, *user));
        names
            .iter()
            .flat_map(|name| users(*name))
            .map(|(name, user)| (name, user, self.callee(name, user, None)))
            .collect()
    }

    /// The names that a file defines in another way than before, or only now, or no longer.
    fn newly_defined(&self, id: FileId, file: &File) -> Vec<NameId> {
        let (old_sites, old_owners) =
            self.by_id(id).map(|old| (old.sites.to_vec(), old.owners.to_vec())).unwrap_or_default();
        let (new, gone) = difference(file.sites.to_vec(), old_sites);
        let (joined, left) = difference(file.owners.to_vec(), old_owners);
        let members = joined.into_iter().chain(left).map(|(member, _)| member);
        new.into_iter().chain(gone).chain(members).collect()
    }

    /// The files whose imports lead elsewhere now.
    fn changed_imports(&self, id: FileId, file: &File, paths: Paths) -> Vec<(FileId, Imports)> {
        let check = |id: FileId, file: &File, old: &Imports| {
            let new = self.resolve(file);
            (new != *old).then_some((id, new))
        };
        let mut changed: Vec<(FileId, Imports)> = match paths {
            Paths::Same => Vec::new(),
            Paths::Changed => {
                let others: Vec<(FileId, &File)> =
                    self.in_order().filter(|(other, _)| *other != id).collect();
                others.par_iter().filter_map(|(other, known)| check(*other, known, &known.imports)).collect()
            }
        };
        changed.extend(self.by_id(id).and_then(|old| check(id, file, &old.imports)));
        changed
    }

    /// The files that may see others than before: those whose imports changed, and those who see through them.
    fn viewers(&self, imports: &[(FileId, Imports)]) -> Vec<FileId> {
        let mut viewers: Vec<FileId> = imports.iter().map(|(id, _)| *id).collect();
        let passes_on = |imports: &Imports| imports.targets.iter().any(|target| target.is_public);
        let mut doors: Vec<FileId> = imports
            .iter()
            .filter(|(id, new)| {
                passes_on(new) || self.by_id(*id).is_some_and(|file| passes_on(&file.imports))
            })
            .map(|(id, _)| *id)
            .collect();
        while !doors.is_empty() {
            doors.sort_unstable();
            let mut next = Vec::new();
            for (id, file) in self.in_order() {
                let mut through =
                    file.imports.targets.iter().filter(|target| doors.binary_search(&target.file).is_ok());
                if through.next().is_some() && !viewers.contains(&id) {
                    viewers.push(id);
                    next.extend(passes_on(&file.imports).then_some(id));
                }
            }
            doors = next;
        }
        viewers
    }

    /// The names whose links may change: sorted, each once.
    fn reached(&self, id: FileId, file: &File, viewers: &[FileId]) -> Vec<NameId> {
        let (mut names, mut before) = (file.words.to_vec(), Vec::new());
        if let Some(old) = self.by_id(id) {
            before.extend_from_slice(&old.words);
        }
        if !viewers.contains(&id) {
            let (new, gone) = difference(names.clone(), before.clone());
            // What it used before and uses still leads where it led, unless it speaks of other types now.
            if new.iter().chain(&gone).all(|word| self.uses[*word as usize].owned == 0) {
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

    /// Enters a file into the tables of names.
    fn note(&mut self, id: FileId, file: &File) {
        for word in &file.words {
            let users = &mut self.uses[*word as usize].users;
            if let Err(at) = users.binary_search(&id) {
                users.insert(at, id);
            }
        }
        for site in &file.sites {
            let sites = &mut self.uses[*site as usize].sites;
            if let Err(at) = sites.binary_search_by_key(&id, |site| site.file) {
                sites.insert(at, Site { file: id, uses: 0 });
            }
        }
        for owner in owners(file) {
            self.uses[owner as usize].owned += 1;
        }
    }

    /// Takes out of the tables of names what a file no longer has. What it keeps, keeps its count.
    fn forget(&mut self, id: FileId, old: &File, new: &File) {
        for word in difference(old.words.to_vec(), new.words.to_vec()).0 {
            self.uses[word as usize].users.retain(|user| *user != id);
        }
        for site in difference(old.sites.to_vec(), new.sites.to_vec()).0 {
            self.uses[site as usize].sites.retain(|site| site.file != id);
        }
        for owner in owners(old) {
            self.uses[owner as usize].owned -= 1;
        }
    }

    /// Works out what a file sees.
    fn look(&mut self, id: FileId) {
        let visible = self.view(id);
        if let Some(file) = &mut self.files[id as usize] {
            file.visible = visible;
        }
    }

    pub(super) fn view(&self, id: FileId) -> Vec<FileId> {
        let Some(file) = self.by_id(id) else { return Vec::new() };
        let mut visible: Vec<FileId> = file.imports.targets.iter().map(|target| target.file).collect();
        let mut edge = visible.clone();
        for _ in 0..CHAIN {
            let next =
                edge.iter().filter_map(|door| self.by_id(*door)).flat_map(|door| &door.imports.targets);
            let mut next: Vec<FileId> =
                next.filter(|target| target.is_public).map(|target| target.file).collect();
            next.sort_unstable();
            next.dedup();
            next.retain(|file| visible.binary_search(file).is_err() && *file != id);
            if next.is_empty() || visible.len() + next.len() > VIEW {
                break;
            }
            visible.extend_from_slice(&next);
            visible.sort_unstable();
            edge = next;
        }
        visible
    }

    /// Works out everything from the outlines.
    pub(super) fn relate(&mut self) {
        for uses in &mut self.uses {
            uses.users.clear();
            uses.sites.clear();
            uses.owned = 0;
        }
        self.edges.iter_mut().for_each(Vec::clear);
        self.used_by.fill(0);
        let files: Vec<(FileId, &File)> = self.in_order().collect();
        let resolved: Vec<(FileId, Imports)> =
            files.par_iter().map(|(id, file)| (*id, self.resolve(file))).collect();
        for (id, imports) in resolved {
            if let Some(mut file) = self.files[id as usize].take() {
                file.imports = imports;
                file.revision = next_revision();
                self.note(id, &file);
                self.files[id as usize] = Some(file);
            }
        }
        for id in 0..self.files.len() as FileId {
            self.look(id);
            self.shift_imports(id, Sign::Add);
        }
        for name in 0..self.uses.len() as NameId {
            self.shift(name, Sign::Add);
        }
    }
}

/// Whether the set of paths, or what package files say, is another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paths {
    Same,
    Changed,
}

/// The types that a file has members of, each once.
pub(super) fn owners(file: &File) -> Vec<NameId> {
    let mut owners: Vec<NameId> = file.owners.iter().map(|(_, owner)| *owner).collect();
    owners.sort_unstable();
    owners.dedup();
    owners
}

/// What only the one and only the other has.
fn difference<T: Ord + Copy>(mut one: Vec<T>, mut other: Vec<T>) -> (Vec<T>, Vec<T>) {
    one.sort_unstable();
    other.sort_unstable();
    let only = |of: &[T], without: &[T]| {
        of.iter().copied().filter(|name| without.binary_search(name).is_err()).collect()
    };
    (only(&one, &other), only(&other, &one))
}

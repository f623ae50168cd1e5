//! [`SymbolIndex`]: the outlines of all files of a repository, the references between them, and
//! incremental updates of both.

mod file;
mod links;
mod report;
mod search;
mod storage;
mod update;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::language::{Language, Languages};
use crate::name_table::{NameId, NameTable};
use crate::outline::{Outline, SkipReason};
use crate::resolve::{FileId, ImportResolution, PathLookup, split_path};

pub(crate) use file::File;
use file::{FileImports, ImportTarget, Member, is_package};
pub use report::{DefinitionReport, FileReport, IndexReport, SkippedReport, SymbolMatch, SymbolReport};
pub use update::IndexUpdate;

/// Hash of a file's content: the first 16 bytes of its BLAKE3 hash.
pub type ContentHash = [u8; 16];

/// Hashes the content of a file.
pub fn content_hash(content: &[u8]) -> ContentHash {
    let mut half = [0; 16];
    half.copy_from_slice(&blake3::hash(content).as_bytes()[..16]);
    half
}

fn next_revision() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

thread_local! {
    /// Reused for one file after the other, so that large buffers are not allocated and freed each
    /// time.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Turns what the caller knows about a file into an outline.
fn read_outline(
    path: &str,
    read: impl Fn(&str, Vec<u8>) -> Option<FileSource>,
) -> Option<(ContentHash, Outline)> {
    Some(match read(path, BUFFER.take())? {
        FileSource::Content(mut content) => {
            let made = (content_hash(&content), Outline::parse(path, &content));
            content.clear();
            BUFFER.set(content);
            made
        }
        FileSource::Cached(hash, outline) => (hash, *outline),
        FileSource::Unreadable => (ContentHash::default(), Outline::for_skipped(SkipReason::Unreadable)),
    })
}

/// How many files are parsed before their outlines are added: enough to keep all threads busy, few
/// enough to hold in memory.
const BATCH_FILES: usize = 512;

/// What the caller provides when the index asks for a file.
#[derive(Debug)]
pub enum FileSource {
    /// The bytes of the file.
    Content(Vec<u8>),
    /// The outline from a cache, and the hash of the content it was made from.
    Cached(ContentHash, Box<Outline>),
    /// The file cannot be read; only its name is listed.
    Unreadable,
}

/// The symbol index of a repository.
///
/// ```
/// use hardpan_symbols::SymbolIndex;
///
/// let mut index = SymbolIndex::default();
/// index.update("clock.py", b"def now(): ...");
/// index.update("main.py", b"from clock import now\nnow()");
/// assert_eq!(index.find_definitions("now")[0].used_by, ["main.py"]);
/// ```
#[derive(Debug, Default)]
pub struct SymbolIndex {
    /// In path order, which is the order of everything that is shown.
    paths: BTreeMap<Box<str>, FileId>,
    path_lookup: PathLookup,
    files: Vec<Option<File>>,
    free: Vec<FileId>,
    names: NameTable,
    uses: Vec<NameUses>,
    /// References by the file they start from, sorted by the file they lead to.
    edges: Vec<Vec<Edge>>,
    /// How many files (tests not counted) refer to each file.
    used_by: Vec<u32>,
}

/// Which files define a name, and which use it.
#[derive(Debug, Default)]
struct NameUses {
    /// Files that define it, sorted by file id.
    sites: Vec<DefinitionSite>,
    /// Files that contain the word, sorted.
    users: Vec<FileId>,
    /// How many files define members of a type of that name.
    owner_files: u32,
}

#[derive(Clone, Copy, Debug)]
struct DefinitionSite {
    file: FileId,
    /// How many files (tests not counted) use this definition.
    uses: u32,
}

/// A reference from one file to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) to: FileId,
    /// How many names and imports it consists of.
    count: u32,
    /// Weight in fixed point: sums of whole numbers do not depend on their order.
    pub(crate) weight: u64,
}

impl SymbolIndex {
    /// Adds or replaces many files at once, in parallel on rayon's current pool, and rebuilds all
    /// references.
    ///
    /// `read` is called once for each path, from any thread, with an empty buffer that it may use
    /// for the content; `done` is called after each batch with the number of files so far. Paths
    /// are relative to the repository, with forward slashes. The result does not depend on the
    /// order of the paths or on the number of threads.
    pub fn add_files<P: AsRef<str> + Sync>(
        &mut self,
        paths: &[P],
        read: impl Fn(&str, Vec<u8>) -> FileSource + Sync,
        done: impl FnMut(usize),
    ) {
        self.update_many(paths, &[], |path, buffer| Some(read(path, buffer)), done);
    }

    /// The same, and removes the files `gone`. A file for which `read` returns nothing stays as it is.
    pub fn update_many<P: AsRef<str> + Sync>(
        &mut self,
        paths: &[P],
        gone: &[String],
        read: impl Fn(&str, Vec<u8>) -> Option<FileSource> + Sync,
        mut done: impl FnMut(usize),
    ) {
        for path in gone {
            let Some(id) = self.paths.remove(path.as_str()) else { continue };
            self.path_lookup.remove(path);
            self.files[id as usize] = None;
            self.free.push(id);
        }
        let mut sorted: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut batches = sorted.chunks(BATCH_FILES);
        let (mut count, mut last): (usize, (&[&str], Vec<_>)) = (0, (&[], Vec::new()));
        // While one batch is parsed, the previous one is added.
        while count < sorted.len() {
            let batch = batches.next().unwrap_or_default();
            let (paths, outlines) = last;
            let (next, ()) = rayon::join(
                || batch.par_iter().map(|path| read_outline(path, &read)).collect(),
                || self.add_unlinked(paths, outlines),
            );
            count += paths.len();
            done(count);
            last = (batch, next);
        }
        self.rebuild_links();
    }

    /// Adds files without links; [`rebuild_links`](Self::rebuild_links) must follow.
    fn add_unlinked(&mut self, paths: &[&str], outlines: Vec<Option<(ContentHash, Outline)>>) {
        let outlines = outlines.into_iter().zip(paths);
        for ((hash, outline), path) in outlines.filter_map(|(outline, path)| Some((outline?, path))) {
            let id = self.id_for_path(path);
            self.path_lookup.insert(path, id, outline.manifest.as_ref());
            self.files[id as usize] = Some(self.new_file(path, hash, outline));
        }
    }

    /// Hash of the content a file was parsed from; `None` for an unknown path.
    pub fn hash(&self, path: &str) -> Option<ContentHash> {
        self.get(path).map(|file| file.hash)
    }

    /// The complete outline of a file, words included.
    pub fn outline(&self, path: &str) -> Option<Outline> {
        let file = self.get(path)?;
        let words = file.words.iter().map(|word| self.names.get(*word).into()).collect();
        Some(Outline { words, ..file.outline.clone() })
    }

    /// All paths, sorted by their bytes.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &str> {
        self.paths.keys().map(|path| &**path)
    }

    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.get(*self.paths.get(path)? as usize)?.as_ref()
    }

    pub(crate) fn by_id(&self, id: FileId) -> Option<&File> {
        self.files.get(id as usize)?.as_ref()
    }

    /// All files in path order.
    pub(crate) fn files_by_path(&self) -> impl Iterator<Item = (FileId, &File)> {
        self.paths.values().filter_map(|id| Some((*id, self.by_id(*id)?)))
    }

    /// One more than the greatest file id.
    pub(crate) fn capacity(&self) -> usize {
        self.files.len()
    }

    /// Whether a file defines a name that other files can use.
    pub(crate) fn defines(&self, file: &File, name: &str) -> bool {
        self.names.find_id(name).is_some_and(|name| file.sites.binary_search(&name).is_ok())
    }

    pub(crate) fn edges_of(&self, id: FileId) -> &[Edge] {
        self.edges.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// How many files (tests not counted) refer to a file.
    pub(crate) fn used_by(&self, id: FileId) -> u32 {
        self.used_by.get(id as usize).copied().unwrap_or(0)
    }

    /// How many files (tests not counted) use a name that this file defines.
    pub(crate) fn uses_of(&self, id: FileId, name: NameId) -> u32 {
        let sites = self.uses.get(name as usize).map_or(&[][..], |uses| &uses.sites);
        sites.binary_search_by_key(&id, |site| site.file).map_or(0, |at| sites[at].uses)
    }

    /// Marks that the map of a file may have changed.
    fn bump_revision(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(id as usize).and_then(Option::as_mut) {
            file.revision = next_revision();
        }
    }

    pub(crate) fn name_text(&self, name: NameId) -> &str {
        self.names.get(name)
    }

    /// The id of a path; a new path gets a new id.
    fn id_for_path(&mut self, path: &str) -> FileId {
        if let Some(id) = self.paths.get(path) {
            return *id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.files.push(None);
            self.edges.push(Vec::new());
            self.used_by.push(0);
            FileId::try_from(self.files.len() - 1).unwrap_or(FileId::MAX)
        });
        self.paths.insert(path.into(), id);
        id
    }

    /// Creates a file without links.
    fn new_file(&mut self, path: &str, hash: ContentHash, mut outline: Outline) -> File {
        let words = std::mem::take(&mut outline.words);
        let words = words.iter().map(|word| self.names.intern(word)).collect();
        let names =
            outline.definitions.iter().map(|definition| self.names.intern(&definition.name)).collect();
        let package = is_package(&outline).then(|| self.names.intern(split_path(path).0));
        self.uses.resize_with(self.names.len(), NameUses::default);
        outline.definitions.shrink_to_fit();
        outline.imports.shrink_to_fit();
        let rows = outline.rows();
        File::new(path, hash, outline, rows, words, names, package)
    }

    /// Resolves all imports of a file against the current paths.
    fn resolve_imports(&self, file: &File) -> FileImports {
        let language = file.outline.language.and_then(|id| Languages::builtin().get(id));
        let Some(language) = language else { return FileImports::default() };
        let passes_on = language.passes_imports_on(&file.path);
        let mut imports = FileImports::default();
        for import in &file.outline.imports {
            let is_public = passes_on || import.form.is_public();
            for resolution in self.resolve_import(language, file, import) {
                match resolution {
                    ImportResolution::Files(files) => {
                        imports
                            .targets
                            .extend(files.into_iter().map(|file| ImportTarget { file, is_public }));
                    }
                    ImportResolution::External(name) if language.is_library(&name) => {}
                    ImportResolution::External(name) => imports.externals.push(name.into()),
                    ImportResolution::Ignored => {}
                }
            }
        }
        let own = self.paths.get(&file.path).copied();
        imports.targets.retain(|target| Some(target.file) != own);
        // Public first, so that of two targets the public one is kept.
        imports.targets.sort_unstable_by_key(|target| (target.file, !target.is_public));
        imports.targets.dedup_by_key(|target| target.file);
        imports.externals.sort_unstable();
        imports.externals.dedup();
        imports
    }

    fn resolve_import(
        &self,
        language: &Language,
        file: &File,
        import: &crate::outline::Import,
    ) -> Vec<ImportResolution> {
        self.path_lookup.resolve(language, &file.path, import)
    }
}

#[cfg(test)]
mod tests;

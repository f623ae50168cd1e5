//! The repository: every file's outline, who uses whose names, and what an edit changes in that.

mod change;
mod file;
mod links;
mod query;
mod store;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::language::{Language, Languages};
use crate::names::{NameId, Names};
use crate::outline::{Outline, Skip};
use crate::resolve::{FileId, Meaning, Paths, split};

pub use change::Change;
pub(crate) use file::File;
use file::{Imports, Member, Target, is_package};
pub use query::{FileReport, Place, Report, SkippedReport, SymbolReport};

/// The hash of a file's content: the first half of its BLAKE3.
pub type ContentHash = [u8; 16];

/// The hash of some content.
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
    /// For the content of one file after the other: so much memory is not asked for and given back each time.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What the caller knows about a file as an outline.
fn outline(path: &str, read: impl Fn(&str, Vec<u8>) -> Source) -> (ContentHash, Outline) {
    match read(path, BUFFER.take()) {
        Source::Content(mut content) => {
            let made = (content_hash(&content), Outline::of(path, &content));
            content.clear();
            BUFFER.set(content);
            made
        }
        Source::Known(hash, outline) => (hash, *outline),
        Source::Unreadable => (ContentHash::default(), Outline::skipped(Skip::Unreadable)),
    }
}

/// How many files are read before their outlines are added: enough to keep all threads busy, few enough to hold in memory.
const BATCH: usize = 512;

/// What the caller knows about a file when the index asks for it.
#[derive(Debug)]
pub enum Source {
    /// Its content.
    Content(Vec<u8>),
    /// Its outline, from a cache, and the hash of the content that the outline was made from.
    Known(ContentHash, Box<Outline>),
    /// It cannot be read.
    Unreadable,
}

/// What a repository contains.
///
/// ```
/// use hardpan_symbols::Index;
///
/// let mut index = Index::default();
/// index.update("clock.py", b"def now(): ...");
/// index.update("main.py", b"from clock import now\nnow()");
/// assert_eq!(index.places("now")[0].used_by, ["main.py"]);
/// ```
#[derive(Debug, Default)]
pub struct Index {
    /// In the order of the paths, which is the order of everything that is shown.
    paths: BTreeMap<Box<str>, FileId>,
    lookup: Paths,
    files: Vec<Option<File>>,
    free: Vec<FileId>,
    names: Names,
    uses: Vec<Uses>,
    /// By the file that they start from, sorted by the file that they lead to.
    edges: Vec<Vec<Edge>>,
    /// How many files that are no tests lead to each.
    used_by: Vec<u32>,
}

/// Who defines a name and who uses it.
#[derive(Debug, Default)]
struct Uses {
    /// Sorted by file.
    sites: Vec<Site>,
    /// Sorted.
    users: Vec<FileId>,
    /// How many files have members of a type of that name.
    owned: u32,
}

#[derive(Clone, Copy, Debug)]
struct Site {
    file: FileId,
    /// How many files that are no tests use it.
    uses: u32,
}

/// One file leads to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) to: FileId,
    /// Names and imports that make it.
    count: u32,
    /// In fixed point, since sums of whole numbers do not depend on their order.
    pub(crate) weight: u64,
}

impl Index {
    /// Adds or replaces many files at once, in parallel on rayon's current pool, and works out the references anew.
    ///
    /// `read` is called once for each path, from any thread, with an empty buffer that it may use for the content; `done`
    /// after each batch, with the number of files so far.
    /// Paths are relative to the repository, with forward slashes. The result does not depend on the order of the paths
    /// or on the number of threads.
    pub fn fill<P: AsRef<str> + Sync>(
        &mut self,
        paths: &[P],
        read: impl Fn(&str, Vec<u8>) -> Source + Sync,
        mut done: impl FnMut(usize),
    ) {
        let mut sorted: Vec<&str> = paths.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut batches = sorted.chunks(BATCH);
        let (mut count, mut last): (usize, (&[&str], Vec<_>)) = (0, (&[], Vec::new()));
        // While one batch is read, the one before it is added.
        while count < sorted.len() {
            let batch = batches.next().unwrap_or_default();
            let (paths, outlines) = last;
            let (next, ()) = rayon::join(
                || batch.par_iter().map(|path| outline(path, &read)).collect(),
                || self.add(paths, outlines),
            );
            count += paths.len();
            done(count);
            last = (batch, next);
        }
        self.relate();
    }

    /// Adds files that are not yet related to any other.
    fn add(&mut self, paths: &[&str], outlines: Vec<(ContentHash, Outline)>) {
        for (path, (hash, outline)) in paths.iter().zip(outlines) {
            let id = self.number_of(path);
            self.lookup.insert(path, id, outline.manifest.as_ref());
            self.files[id as usize] = Some(self.file(path, hash, outline));
        }
    }

    /// The hash of the content that a file was read from.
    pub fn hash(&self, path: &str) -> Option<ContentHash> {
        self.get(path).map(|file| file.hash)
    }

    /// The outline of a file, complete.
    pub fn outline(&self, path: &str) -> Option<Outline> {
        let file = self.get(path)?;
        let words = file.words.iter().map(|word| self.names.get(*word).into()).collect();
        Some(Outline { words, ..file.outline.clone() })
    }

    /// All paths, sorted.
    pub fn paths(&self) -> impl ExactSizeIterator<Item = &str> {
        self.paths.keys().map(|path| &**path)
    }

    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.get(*self.paths.get(path)? as usize)?.as_ref()
    }

    pub(crate) fn by_id(&self, id: FileId) -> Option<&File> {
        self.files.get(id as usize)?.as_ref()
    }

    /// All files in the order of their paths.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (FileId, &File)> {
        self.paths.values().filter_map(|id| Some((*id, self.by_id(*id)?)))
    }

    /// One more than the greatest number of a file.
    pub(crate) fn capacity(&self) -> usize {
        self.files.len()
    }

    /// Whether a file defines a name that others can use.
    pub(crate) fn defines(&self, file: &File, name: &str) -> bool {
        self.names.find(name).is_some_and(|name| file.sites.binary_search(&name).is_ok())
    }

    pub(crate) fn edges_of(&self, id: FileId) -> &[Edge] {
        self.edges.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// How many files use a file.
    pub(crate) fn used_by(&self, id: FileId) -> u32 {
        self.used_by.get(id as usize).copied().unwrap_or(0)
    }

    /// How many files use a name of a file.
    pub(crate) fn uses_of(&self, id: FileId, name: NameId) -> u32 {
        let sites = self.uses.get(name as usize).map_or(&[][..], |uses| &uses.sites);
        sites.binary_search_by_key(&id, |site| site.file).map_or(0, |at| sites[at].uses)
    }

    /// Notes that the map may say something else about a file.
    fn touch(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(id as usize).and_then(Option::as_mut) {
            file.revision = next_revision();
        }
    }

    pub(crate) fn word(&self, name: NameId) -> &str {
        self.names.get(name)
    }

    /// The number of a path, new or known.
    fn number_of(&mut self, path: &str) -> FileId {
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

    /// A file that is not yet related to any other.
    fn file(&mut self, path: &str, hash: ContentHash, mut outline: Outline) -> File {
        let words = std::mem::take(&mut outline.words);
        let words = words.iter().map(|word| self.names.intern(word)).collect();
        let names =
            outline.definitions.iter().map(|definition| self.names.intern(&definition.name)).collect();
        let package = is_package(&outline).then(|| self.names.intern(split(path).0));
        self.uses.resize_with(self.names.len(), Uses::default);
        outline.definitions.shrink_to_fit();
        outline.imports.shrink_to_fit();
        let rows = outline.rows();
        File::new(path, hash, outline, rows, words, names, package)
    }

    /// Where the imports of a file lead today.
    fn resolve(&self, file: &File) -> Imports {
        let language = file.outline.language.and_then(|id| Languages::builtin().get(id));
        let Some(language) = language else { return Imports::default() };
        let passes_on = language.passes_imports_on(&file.path);
        let mut imports = Imports::default();
        for import in &file.outline.imports {
            let is_public = passes_on || import.form.is_public();
            for meaning in self.meanings(language, file, import) {
                match meaning {
                    Meaning::Files(files) => {
                        imports.targets.extend(files.into_iter().map(|file| Target { file, is_public }));
                    }
                    Meaning::External(name) if language.is_library(&name) => {}
                    Meaning::External(name) => imports.externals.push(name.into()),
                    Meaning::Nothing => {}
                }
            }
        }
        let own = self.paths.get(&file.path).copied();
        imports.targets.retain(|target| Some(target.file) != own);
        // Public first, so that what is kept of two is the public one.
        imports.targets.sort_unstable_by_key(|target| (target.file, !target.is_public));
        imports.targets.dedup_by_key(|target| target.file);
        imports.externals.sort_unstable();
        imports.externals.dedup();
        imports
    }

    fn meanings(&self, language: &Language, file: &File, import: &crate::outline::Import) -> Vec<Meaning> {
        self.lookup.resolve(language, &file.path, import)
    }
}

#[cfg(test)]
mod tests;

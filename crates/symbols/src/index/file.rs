//! [`File`]: one file of the index, with its outline and everything computed from it once.

use super::{ContentHash, next_revision};
use crate::capture::SymbolKind;
use crate::language::{ImportRule, LanguageId, Languages};
use crate::name_table::NameId;
use crate::outline::{Outline, OutlineRow, Visibility};
use crate::resolve::FileId;

/// The name of a member, and the name of its type.
pub(super) type Member = (NameId, NameId);

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: Box<str>,
    pub(crate) hash: ContentHash,
    /// The outline without its words, which are in `words`.
    pub(crate) outline: Outline,
    /// Ids of the outline's words, in the same order.
    pub(crate) words: Box<[NameId]>,
    /// Ids of the names of the outline's definitions, in the same order.
    pub(crate) names: Box<[NameId]>,
    /// The definitions that the map shows.
    pub(crate) rows: Box<[OutlineRow]>,
    /// A new number whenever the map of the file may have changed; no two indexes share one.
    pub(crate) revision: u64,
    /// Names it defines for other files: sorted, each once.
    pub(crate) sites: Box<[NameId]>,
    /// Those of the names that are only members, with the names of their types: sorted.
    pub(super) owners: Box<[Member]>,
    pub(crate) is_test: bool,
    /// Whether its imports name folders instead of files (Go).
    pub(crate) imports_folders: bool,
    /// First language of its family; names are linked only within a family.
    pub(crate) family: LanguageId,
    /// Id of its folder's path, if files of one folder see each other without imports.
    pub(super) package: Option<NameId>,
    pub(crate) imports: FileImports,
    /// Files that its imports lead to, through re-exports: sorted.
    pub(super) visible: Vec<FileId>,
}

impl File {
    /// A file without links. The outline comes without its words.
    pub(super) fn new(
        path: &str,
        hash: ContentHash,
        outline: Outline,
        rows: Box<[OutlineRow]>,
        words: Box<[NameId]>,
        names: Box<[NameId]>,
        package: Option<NameId>,
    ) -> Self {
        let languages = Languages::builtin();
        let language = outline.language.and_then(|id| languages.get(id));
        let (sites, owners) = collect_sites(&outline, &names);
        File {
            path: path.into(),
            hash,
            words,
            names,
            rows,
            revision: next_revision(),
            sites,
            owners,
            is_test: languages.is_test(path, outline.language),
            family: outline.language.map_or(LanguageId::MAX, |id| languages.family_id(id)),
            package,
            imports_folders: language.is_some_and(|language| language.imports == ImportRule::Go),
            imports: FileImports::default(),
            visible: Vec::new(),
            outline,
        }
    }
}

/// Whether files of its folder see each other's names without an import.
pub(super) fn is_package(outline: &Outline) -> bool {
    outline.language.and_then(|id| Languages::builtin().get(id)).is_some_and(|language| language.packages)
}

/// The resolved imports of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileImports {
    /// Sorted by file, each once.
    pub(crate) targets: Vec<ImportTarget>,
    /// Sorted, each once.
    pub(crate) externals: Vec<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ImportTarget {
    pub(crate) file: FileId,
    pub(super) is_public: bool,
}

/// The names that an outline defines for other files, and which of them are only members of types.
fn collect_sites(outline: &Outline, names: &[NameId]) -> (Box<[NameId]>, Box<[Member]>) {
    let (mut sites, mut free, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for (definition, name) in outline.definitions.iter().zip(names) {
        if definition.visibility != Visibility::Shared || !definition.kind.is_linkable() {
            continue;
        }
        sites.push(*name);
        // A type inside a type is referred to by its own name.
        let is_member = !definition.kind.has_members()
            || matches!(definition.kind, SymbolKind::Constant | SymbolKind::Variable);
        let holder = outline.parent(definition).filter(|parent| is_member && parent.kind.has_members());
        match holder.and(definition.parent).and_then(|at| names.get(at as usize)) {
            Some(owner) => owners.push((*name, *owner)),
            None => free.push(*name),
        }
    }
    free.sort_unstable();
    owners.retain(|(name, _)| free.binary_search(name).is_err());
    sites.sort_unstable();
    sites.dedup();
    owners.sort_unstable();
    owners.dedup();
    (sites.into(), owners.into())
}

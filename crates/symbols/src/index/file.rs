//! One file of the index: its outline, and what is worked out from it once.

use super::{ContentHash, next_revision};
use crate::capture::Kind;
use crate::language::{ImportRule, LanguageId, Languages};
use crate::names::NameId;
use crate::outline::{Outline, Reach, Row};
use crate::resolve::FileId;

/// The name of a member, and of a type that it belongs to.
pub(super) type Member = (NameId, NameId);

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: Box<str>,
    pub(crate) hash: ContentHash,
    /// Without its words, which are in `words`.
    pub(crate) outline: Outline,
    /// In the order of the outline's words.
    pub(crate) words: Box<[NameId]>,
    /// In the order of the outline's definitions.
    pub(crate) names: Box<[NameId]>,
    /// What the map shows of it.
    pub(crate) rows: Box<[Row]>,
    /// Another one whenever something that the map says about the file may have changed; no two indexes share any.
    pub(crate) revision: u64,
    /// The names that it defines for others: sorted, each once.
    pub(crate) sites: Box<[NameId]>,
    /// For each of those that are members only, with the names of their types: sorted.
    pub(super) owners: Box<[Member]>,
    pub(crate) is_test: bool,
    /// Whether its imports name folders, not files.
    pub(crate) imports_folders: bool,
    /// The first language of its family; names link only inside.
    pub(crate) family: LanguageId,
    /// Its folder where that makes a package, by number.
    pub(super) package: Option<NameId>,
    pub(crate) imports: Imports,
    /// The files that its imports lead to, through those that pass their imports on: sorted.
    pub(super) visible: Vec<FileId>,
}

impl File {
    /// A file that is not yet related to any other. The outline is without its words.
    pub(super) fn new(
        path: &str,
        hash: ContentHash,
        outline: Outline,
        rows: Box<[Row]>,
        words: Box<[NameId]>,
        names: Box<[NameId]>,
        package: Option<NameId>,
    ) -> Self {
        let languages = Languages::builtin();
        let language = outline.language.and_then(|id| languages.get(id));
        let (sites, owners) = sites(&outline, &names);
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
            family: outline.language.map_or(LanguageId::MAX, |id| languages.family(id)),
            package,
            imports_folders: language.is_some_and(|language| language.imports == ImportRule::Go),
            imports: Imports::default(),
            visible: Vec::new(),
            outline,
        }
    }
}

/// Whether the folder of a file makes a package.
pub(super) fn is_package(outline: &Outline) -> bool {
    outline.language.and_then(|id| Languages::builtin().get(id)).is_some_and(|language| language.packages)
}

/// Where the imports of a file lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Imports {
    /// Sorted by file, each once.
    pub(crate) targets: Vec<Target>,
    /// Sorted, each once.
    pub(crate) externals: Vec<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) file: FileId,
    pub(super) is_public: bool,
}

/// The names that an outline defines for others, and which of them are members of what.
fn sites(outline: &Outline, names: &[NameId]) -> (Box<[NameId]>, Box<[Member]>) {
    let (mut sites, mut free, mut owners) = (Vec::new(), Vec::new(), Vec::new());
    for (definition, name) in outline.definitions.iter().zip(names) {
        if definition.reach != Reach::Shared || !definition.kind.links() {
            continue;
        }
        sites.push(*name);
        // A type inside a type is spoken of by its own name.
        let is_member =
            !definition.kind.has_members() || matches!(definition.kind, Kind::Constant | Kind::Variable);
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

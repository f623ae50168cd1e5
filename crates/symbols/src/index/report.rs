//! Queries: where a name is defined and used, and [`IndexReport`], everything as one value for
//! `--json`.

use serde::Serialize;

use super::{File, SymbolIndex};
use crate::capture::SymbolKind;
use crate::language::Languages;
use crate::outline::{Definition, SkipReason, Visibility};
use crate::resolve::FileId;

/// One definition of a name, and the files that use it.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct DefinitionReport {
    /// Path of the defining file, relative to the root.
    pub path: String,
    /// Kind, name, line and signature.
    #[serde(flatten)]
    pub symbol: SymbolReport,
    /// Files that use it, sorted, tests included. For fields and enum cases: files of the same
    /// language family that contain the word.
    pub used_by: Vec<String>,
}

/// A definition that a search found.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SymbolMatch {
    /// Path of the defining file, relative to the root.
    pub path: String,
    /// Kind, name, line and signature.
    #[serde(flatten)]
    pub symbol: SymbolReport,
    /// How many files use it, tests not counted.
    pub uses: u32,
}

/// Everything the index knows about a set of files.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct IndexReport {
    /// Parsed files, sorted by path.
    pub files: Vec<FileReport>,
    /// Files of which only the name is known.
    pub skipped: Vec<SkippedReport>,
}

/// What the index knows about one file.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct FileReport {
    /// Path relative to the root, forward slashes.
    pub path: String,
    /// Name of its language; `None` if unknown.
    pub language: Option<String>,
    /// How many files refer to it, tests not counted.
    pub references: u32,
    /// Its definitions, in file order.
    pub symbols: Vec<SymbolReport>,
    /// External packages that it imports.
    pub imports: Vec<String>,
    /// Files of the repository that it imports.
    pub local_imports: Vec<String>,
}

/// A definition for display.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SymbolReport {
    /// Class, function, method, …
    pub kind: SymbolKind,
    /// Name without its parents.
    pub name: String,
    /// Name of the enclosing definition; `None` at the top level.
    pub parent: Option<String>,
    /// The line of its name, from 1.
    pub line: u32,
    /// Parameters and return type, as the map shows them.
    pub signature: String,
}

/// A file that was not parsed.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SkippedReport {
    /// Path relative to the root, forward slashes.
    pub path: String,
    /// Why it was not parsed.
    pub reason: SkipReason,
}

impl SymbolIndex {
    /// Finds the definitions of a name, by path and line, with the files that use each.
    pub fn find_definitions(&self, name: &str) -> Vec<DefinitionReport> {
        let mut places = Vec::new();
        for (id, file) in self.files_by_path() {
            let named =
                file.outline.definitions.iter().filter(|definition| {
                    *definition.name == *name && definition.kind != SymbolKind::Extension
                });
            places.extend(named.map(|definition| DefinitionReport {
                path: file.path.to_string(),
                symbol: symbol_report(file, definition),
                used_by: self.find_users(id, definition),
            }));
        }
        places
    }

    /// Files whose code contains a word, sorted, whatever it means there.
    pub fn mentions(&self, word: &str) -> Vec<&str> {
        let uses = self.names.find_id(word).and_then(|name| self.uses.get(name as usize));
        let users = uses.into_iter().flat_map(|uses| &uses.users);
        let mut paths: Vec<&str> = users.filter_map(|id| self.by_id(*id)).map(|file| &*file.path).collect();
        paths.sort_unstable();
        paths
    }

    fn find_users(&self, id: FileId, definition: &Definition) -> Vec<String> {
        let Some(name) = self.names.find_id(&definition.name) else { return Vec::new() };
        if definition.visibility != Visibility::Shared {
            return Vec::new();
        }
        let mut paths: Vec<String> = if definition.kind.is_linkable() {
            let links = self.links(name);
            let here =
                links.iter().filter(|link| link.leads_to(id)).filter_map(|link| self.by_id(link.origin()));
            here.map(|file| file.path.to_string()).collect()
        } else {
            let family = self.by_id(id).map(|file| file.family);
            let users = self.uses.get(name as usize).into_iter().flat_map(|uses| &uses.users);
            let others = users.filter(|user| **user != id).filter_map(|user| self.by_id(*user));
            others.filter(|file| Some(file.family) == family).map(|file| file.path.to_string()).collect()
        };
        paths.sort_unstable();
        paths
    }

    /// Reports on the files for which `wanted` returns true.
    pub fn report(&self, wanted: impl Fn(&str) -> bool) -> IndexReport {
        let mut report = IndexReport::default();
        for (id, file) in self.files_by_path().filter(|(_, file)| wanted(&file.path)) {
            if let Some(reason) = file.outline.skipped {
                report.skipped.push(SkippedReport { path: file.path.to_string(), reason });
                continue;
            }
            let language = file.outline.language.and_then(|id| Languages::builtin().get(id));
            report.files.push(FileReport {
                path: file.path.to_string(),
                language: language.map(|language| language.name.clone()),
                references: self.used_by(id),
                symbols: file
                    .outline
                    .definitions
                    .iter()
                    .filter(|d| d.kind != SymbolKind::Extension)
                    .map(|d| symbol_report(file, d))
                    .collect(),
                imports: file.imports.externals.iter().map(ToString::to_string).collect(),
                local_imports: self.local_imports(file).into_iter().map(str::to_owned).collect(),
            });
        }
        report
    }

    /// Paths of the repository that a file imports, sorted.
    pub(crate) fn local_imports(&self, file: &File) -> Vec<&str> {
        let targets = file.imports.targets.iter().filter_map(|target| self.by_id(target.file));
        let mut paths: Vec<&str> = targets.map(|file| &*file.path).collect();
        paths.sort_unstable();
        paths
    }
}

pub(super) fn symbol_report(file: &File, definition: &Definition) -> SymbolReport {
    SymbolReport {
        kind: definition.kind,
        name: definition.name.to_string(),
        parent: file.outline.parent(definition).map(|parent| parent.name.to_string()),
        line: definition.line,
        signature: definition.signature.to_string(),
    }
}

//! What can be asked: where a name is defined and used, and everything as one value for `--json`.

use serde::Serialize;

use super::{File, Index};
use crate::capture::Kind;
use crate::language::Languages;
use crate::outline::{Definition, Reach, Skip};
use crate::resolve::FileId;

/// Where a name is defined.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: String,
    /// The definition.
    #[serde(flatten)]
    pub symbol: SymbolReport,
    /// The files that use it, sorted; tests are among them. For fields and cases: those that write the word.
    pub used_by: Vec<String>,
}

/// Everything that is known.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Report {
    /// The files, sorted by path.
    pub files: Vec<FileReport>,
    /// The files of which only the name is known.
    pub skipped: Vec<SkippedReport>,
}

/// One file.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct FileReport {
    /// Its path.
    pub path: String,
    /// Its language, where that is known.
    pub language: Option<String>,
    /// How many files use it, tests not counted.
    pub references: u32,
    /// What it defines, in the order of the file.
    pub symbols: Vec<SymbolReport>,
    /// The packages from elsewhere that it imports.
    pub imports: Vec<String>,
    /// The files that it imports.
    pub local_imports: Vec<String>,
}

/// One definition.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SymbolReport {
    /// What sort of thing it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// The name of what holds it.
    pub parent: Option<String>,
    /// The line of its name, from 1.
    pub line: u32,
    /// Parameters and return type, as the map shows them.
    pub signature: String,
}

/// A file of which only the name is known.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct SkippedReport {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: Skip,
}

impl Index {
    /// Where a name is defined, by path and line, and who uses it.
    pub fn places(&self, name: &str) -> Vec<Place> {
        let mut places = Vec::new();
        for (id, file) in self.in_order() {
            let named = file
                .outline
                .definitions
                .iter()
                .filter(|definition| *definition.name == *name && definition.kind != Kind::Extension);
            places.extend(named.map(|definition| Place {
                path: file.path.to_string(),
                symbol: symbol(file, definition),
                used_by: self.users(id, definition),
            }));
        }
        places
    }

    /// The files in which a word is written as code, sorted, whatever it means there.
    pub fn mentions(&self, word: &str) -> Vec<&str> {
        let uses = self.names.find(word).and_then(|name| self.uses.get(name as usize));
        let users = uses.into_iter().flat_map(|uses| &uses.users);
        let mut paths: Vec<&str> = users.filter_map(|id| self.by_id(*id)).map(|file| &*file.path).collect();
        paths.sort_unstable();
        paths
    }

    fn users(&self, id: FileId, definition: &Definition) -> Vec<String> {
        let Some(name) = self.names.find(&definition.name) else { return Vec::new() };
        if definition.reach != Reach::Shared {
            return Vec::new();
        }
        let mut paths: Vec<String> = if definition.kind.links() {
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

    /// Everything about the files that `wanted` names, or about all.
    pub fn report(&self, wanted: impl Fn(&str) -> bool) -> Report {
        let mut report = Report::default();
        for (id, file) in self.in_order().filter(|(_, file)| wanted(&file.path)) {
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
                    .filter(|d| d.kind != Kind::Extension)
                    .map(|d| symbol(file, d))
                    .collect(),
                imports: file.imports.externals.iter().map(ToString::to_string).collect(),
                local_imports: self.local_imports(file).into_iter().map(str::to_owned).collect(),
            });
        }
        report
    }

    /// The paths that a file imports, sorted.
    pub(crate) fn local_imports(&self, file: &File) -> Vec<&str> {
        let targets = file.imports.targets.iter().filter_map(|target| self.by_id(target.file));
        let mut paths: Vec<&str> = targets.map(|file| &*file.path).collect();
        paths.sort_unstable();
        paths
    }
}

fn symbol(file: &File, definition: &Definition) -> SymbolReport {
    SymbolReport {
        kind: definition.kind,
        name: definition.name.to_string(),
        parent: file.outline.parent(definition).map(|parent| parent.name.to_string()),
        line: definition.line,
        signature: definition.signature.to_string(),
    }
}

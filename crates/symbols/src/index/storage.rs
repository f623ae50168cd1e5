//! [`SymbolIndex::save`] and [`SymbolIndex::load`]: a whole index as bytes, with outlines and
//! computed links, so that neither has to be done again.
//!
//! Files and names are renumbered, files by path and names by first appearance, so that the bytes
//! do not depend on the history of the index, and unused names are dropped.

use rayon::prelude::*;

use super::update::owners;
use super::{ContentHash, DefinitionSite, Edge, File, FileImports, ImportTarget, NameUses, SymbolIndex};
use crate::capture::SymbolKind;
use crate::encoding::{ByteReader, IndexDecodeError, write_list, write_number, write_text};
use crate::language::Languages;
use crate::manifest::Manifest;
use crate::name_table::{NameId, NameTable};
use crate::outline::{
    Asyncness, Definition, Import, ImportForm, Outline, OutlineRow, SkipReason, Visibility,
};
use crate::resolve::FileId;

/// The ids under which files and names are stored.
struct IdRemapping {
    /// Stored id of each file, by its current id.
    files: Vec<FileId>,
    names: Vec<NameId>,
    /// Current ids of the stored names, in stored order.
    stored_names: Vec<NameId>,
}

impl IdRemapping {
    fn new(index: &SymbolIndex) -> Self {
        let mut ids = IdRemapping {
            files: vec![0; index.files.len()],
            names: vec![NameId::MAX; index.names.len()],
            stored_names: Vec::new(),
        };
        for ((id, file), at) in index.files_by_path().zip(0..) {
            ids.files[id as usize] = at;
            for name in file.words.iter().chain(&file.names).chain(&file.package) {
                let number = &mut ids.names[*name as usize];
                if *number == NameId::MAX {
                    *number = ids.stored_names.len() as NameId;
                    ids.stored_names.push(*name);
                }
            }
        }
        ids
    }

    fn file_id(&self, id: FileId) -> FileId {
        self.files[id as usize]
    }

    fn name_id(&self, id: NameId) -> NameId {
        self.names[id as usize]
    }
}

/// A file with its part of the index's tables.
struct StoredFile {
    file: File,
    /// How many files use each of its `sites`.
    uses: Vec<u32>,
    edges: Vec<Edge>,
}

impl SymbolIndex {
    /// The whole index as bytes, for a cache that stores [`format_id`](crate::format_id) beside
    /// them. The same files give the same bytes.
    pub fn save(&self) -> Vec<u8> {
        let ids = IdRemapping::new(self);
        let files: Vec<(FileId, &File)> = self.files_by_path().collect();
        let sections: Vec<Vec<u8>> =
            files.par_iter().map(|(id, file)| self.write_file_section(*id, file, &ids)).collect();
        let mut to = Vec::with_capacity(sections.iter().map(Vec::len).sum::<usize>() * 3 / 2);
        write_list(&mut to, &ids.stored_names, |to, name| {
            write_number(to, self.names.get(*name).len() as u64);
        });
        ids.stored_names.iter().for_each(|name| to.extend_from_slice(self.names.get(*name).as_bytes()));
        write_list(&mut to, &sections, |to, section| write_number(to, section.len() as u64));
        sections.iter().for_each(|section| to.extend_from_slice(section));
        to
    }

    fn write_file_section(&self, id: FileId, file: &File, ids: &IdRemapping) -> Vec<u8> {
        let mut to = Vec::new();
        write_text(&mut to, &file.path);
        to.extend(file.hash);
        write_number(&mut to, file.package.map_or(0, |name| u64::from(ids.name_id(name)) + 1));
        write_list(&mut to, &file.words, |to, word| write_number(to, ids.name_id(*word)));
        write_outline(&mut to, &file.outline, |at| ids.name_id(file.names[at]));
        write_list(&mut to, &file.rows, |to, row| {
            write_number(to, row.definition);
            write_number(to, row.parent.map_or(0, |parent| u64::from(parent) + 1));
            write_number(to, row.depth);
        });
        let mut targets: Vec<(FileId, bool)> =
            file.imports.targets.iter().map(|target| (ids.file_id(target.file), target.is_public)).collect();
        targets.sort_unstable();
        write_list(&mut to, &targets, |to, (file, is_public)| {
            write_number(to, u64::from(*file) << 1 | u64::from(*is_public));
        });
        write_list(&mut to, &file.imports.externals, |to, name| write_text(to, name));
        let mut sites: Vec<(NameId, u32)> =
            file.sites.iter().map(|name| (ids.name_id(*name), self.uses_of(id, *name))).collect();
        sites.sort_unstable();
        write_list(&mut to, &sites, |to, (_, uses)| write_number(to, *uses));
        let mut edges: Vec<Edge> =
            self.edges_of(id).iter().map(|edge| Edge { to: ids.file_id(edge.to), ..*edge }).collect();
        edges.sort_unstable_by_key(|edge| edge.to);
        write_list(&mut to, &edges, |to, edge| {
            write_number(to, edge.to);
            write_number(to, edge.count);
            write_number(to, edge.weight);
        });
        to
    }

    /// Restores a saved index.
    ///
    /// # Errors
    /// If the bytes do not come from [`save`](Self::save). No input makes it panic or allocate more
    /// than the input justifies.
    pub fn load(bytes: &[u8]) -> Result<SymbolIndex, IndexDecodeError> {
        let mut from = ByteReader::new(bytes);
        Self::read_index(&mut from).ok_or(IndexDecodeError { offset: from.offset })
    }

    fn read_index(from: &mut ByteReader<'_>) -> Option<SymbolIndex> {
        let lengths: Vec<usize> = from.read_list(ByteReader::read_usize)?;
        let length = lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length))?;
        let mut names = NameTable::from_text(std::str::from_utf8(from.read_bytes(length)?).ok()?, &lengths)?;
        let lengths: Vec<usize> = from.read_list(ByteReader::read_usize)?;
        let sections: Vec<&[u8]> =
            lengths.iter().map(|length| from.read_bytes(*length)).collect::<Option<_>>()?;
        from.is_at_end().then_some(())?;
        let (ids_by_hash, stored) = rayon::join(
            || names.build_ids(),
            || {
                let read =
                    |section: &&[u8]| read_stored_file(&mut ByteReader::new(section), &names, sections.len());
                sections.par_iter().map(read).collect::<Option<Vec<StoredFile>>>()
            },
        );
        names.set_ids(ids_by_hash);
        let stored = stored.filter(|files| files.is_sorted_by(|a, b| a.file.path < b.file.path))?;
        let mut index = SymbolIndex { names, ..SymbolIndex::default() };
        index.fill_from(stored);
        Some(index)
    }

    /// Fills an empty index; the files are in path order, and their ids are their positions.
    fn fill_from(&mut self, stored: Vec<StoredFile>) {
        self.used_by = vec![0; stored.len()];
        let (uses, ()) = rayon::join(
            || build_name_uses(&stored, self.names.len()),
            || {
                for (StoredFile { file, edges, .. }, id) in stored.iter().zip(0..) {
                    self.path_lookup.insert(&file.path, id, file.outline.manifest.as_ref());
                    let counted = edges.iter().filter(|_| !file.is_test);
                    counted.for_each(|edge| self.used_by[edge.to as usize] += 1);
                }
            },
        );
        self.uses = uses;
        self.paths = stored.iter().map(|stored| stored.file.path.clone()).zip(0..).collect();
        for StoredFile { file, edges, .. } in stored {
            self.files.push(Some(file));
            self.edges.push(edges);
        }
        let seen: Vec<Vec<FileId>> =
            (0..self.files.len()).into_par_iter().map(|id| self.visible_files(id as FileId)).collect();
        for (file, visible) in self.files.iter_mut().flatten().zip(seen) {
            file.visible = visible;
        }
    }
}

/// Computes which files define and use each name.
fn build_name_uses(stored: &[StoredFile], names: usize) -> Vec<NameUses> {
    let mut counts = vec![(0_u32, 0_u32); names];
    for StoredFile { file, .. } in stored {
        file.words.iter().for_each(|word| counts[*word as usize].0 += 1);
        file.sites.iter().for_each(|site| counts[*site as usize].1 += 1);
    }
    let room = |(users, sites): (u32, u32)| NameUses {
        users: Vec::with_capacity(users as usize),
        sites: Vec::with_capacity(sites as usize),
        owner_files: 0,
    };
    let mut all: Vec<NameUses> = counts.into_iter().map(room).collect();
    for (StoredFile { file, uses, .. }, id) in stored.iter().zip(0..) {
        file.words.iter().for_each(|word| all[*word as usize].users.push(id));
        for (site, uses) in file.sites.iter().zip(uses) {
            all[*site as usize].sites.push(DefinitionSite { file: id, uses: *uses });
        }
        owners(file).into_iter().for_each(|owner| all[owner as usize].owner_files += 1);
    }
    all
}

fn read_stored_file(from: &mut ByteReader<'_>, names: &NameTable, files: usize) -> Option<StoredFile> {
    let path = from.read_text()?;
    let hash: ContentHash = from.read_bytes(16)?.try_into().ok()?;
    let package = match from.read_number()? {
        0 => None,
        number => Some(NameId::try_from(number - 1).ok().filter(|name| (*name as usize) < names.len())?),
    };
    let words: Box<[NameId]> = from.read_list(|from| from.read_u32_below(names.len()))?;
    let (outline, defined) = read_outline(from, names, words.len())?;
    let mut count = 0;
    let row = |from: &mut ByteReader<'_>| {
        let definition = from.read_u32_below(outline.definitions.len())?;
        let parent = from.read_u32_below(count + 1)?.checked_sub(1);
        count += 1;
        Some(OutlineRow { definition, parent, depth: from.read_u32()?.try_into().ok()? })
    };
    let rows = from.read_list(row)?;
    let mut file = File::new(path, hash, outline, rows, words, defined, package);
    let target = |from: &mut ByteReader<'_>| {
        let number = from.read_number()?;
        let file = FileId::try_from(number >> 1).ok().filter(|file| (*file as usize) < files)?;
        Some(ImportTarget { file, is_public: number & 1 == 1 })
    };
    file.imports = FileImports {
        targets: from.read_list(target)?,
        externals: from.read_list(|from| from.read_text().map(Box::from))?,
    };
    let uses: Vec<u32> = from.read_list(ByteReader::read_u32)?;
    let edge = |from: &mut ByteReader<'_>| {
        Some(Edge { to: from.read_u32_below(files)?, count: from.read_u32()?, weight: from.read_number()? })
    };
    let edges = from.read_list(edge)?;
    (from.is_at_end() && uses.len() == file.sites.len()).then_some(StoredFile { file, uses, edges })
}

/// Writes an outline without its words; `name` gives the stored id of each definition's name.
fn write_outline(to: &mut Vec<u8>, outline: &Outline, name: impl Fn(usize) -> NameId) {
    let Outline { language, skipped, definitions, imports, words: _, manifest } = outline;
    write_number(to, language.map_or(0, |language| u64::from(language) + 1));
    let skipped = skipped.and_then(|skip| SkipReason::ALL.iter().position(|known| *known == skip));
    write_number(to, skipped.map_or(0, |at| at as u64 + 1));
    write_manifest(to, manifest.as_ref());
    write_list(to, imports, |to, import| {
        write_text(to, &import.path);
        to.push(import.form as u8);
        write_list(to, &import.names, |to, name| write_text(to, name));
    });
    let mut place = 0;
    write_list(to, definitions, |to, definition| {
        let Definition { kind, name: _, parent, line, signature, bases, asyncness, visibility, calls } =
            definition;
        to.extend([kind.code(), *asyncness as u8, *visibility as u8]);
        write_number(to, name(place));
        place += 1;
        write_number(to, parent.map_or(0, |parent| u64::from(parent) + 1));
        write_number(to, *line);
        write_text(to, signature);
        write_list(to, bases, |to, base| write_text(to, base));
        write_list(to, calls, |to, call| write_number(to, *call));
    });
}

fn write_manifest(to: &mut Vec<u8>, manifest: Option<&Manifest>) {
    let named = |to: &mut Vec<u8>, code: u8, name: &str| {
        to.push(code);
        write_text(to, name);
    };
    match manifest {
        None => to.push(0),
        Some(Manifest::Crate(name)) => named(to, 1, name),
        Some(Manifest::GoModule(name)) => named(to, 2, name),
        Some(Manifest::Package(name)) => named(to, 3, name),
        Some(Manifest::Paths(pairs)) => {
            to.push(4);
            write_list(to, pairs, |to, (short, long)| {
                write_text(to, short);
                write_text(to, long);
            });
        }
    }
}

/// Reads an outline and the ids of its definitions' names.
fn read_outline(
    from: &mut ByteReader<'_>,
    names: &NameTable,
    words: usize,
) -> Option<(Outline, Box<[NameId]>)> {
    let language = match from.read_byte()? {
        0 => None,
        code => Some(code - 1).filter(|id| Languages::builtin().get(*id).is_some()).map(Some)?,
    };
    let skipped = match from.read_byte()? {
        0 => None,
        code => Some(*SkipReason::ALL.get(usize::from(code) - 1)?),
    };
    let manifest = match from.read_byte()? {
        0 => None,
        1 => Some(Manifest::Crate(from.read_text()?.into())),
        2 => Some(Manifest::GoModule(from.read_text()?.into())),
        3 => Some(Manifest::Package(from.read_text()?.into())),
        4 => Some(Manifest::Paths(
            from.read_list(|from| Some((from.read_text()?.into(), from.read_text()?.into())))?,
        )),
        _ => return None,
    };
    let imports = from.read_list(read_import)?;
    let mut defined = Vec::new();
    let definitions: Vec<Definition> =
        from.read_list(|from| read_definition(from, names, words, &mut defined))?;
    // An index out of range would panic later.
    let sound = |parent: u32| (parent as usize) < definitions.len();
    definitions.iter().all(|definition| definition.parent.is_none_or(sound)).then_some(())?;
    let outline = Outline { language, skipped, definitions, imports, words: Vec::new(), manifest };
    Some((outline, defined.into()))
}

fn read_import(from: &mut ByteReader<'_>) -> Option<Import> {
    let path = from.read_text()?.into();
    let form = match from.read_byte()? {
        0 => ImportForm::Use,
        1 => ImportForm::Public,
        2 => ImportForm::Submodule,
        3 => ImportForm::PublicSubmodule,
        _ => return None,
    };
    Some(Import { path, form, names: from.read_list(|from| from.read_text().map(Box::from))? })
}

fn read_definition(
    from: &mut ByteReader<'_>,
    names: &NameTable,
    words: usize,
    defined: &mut Vec<NameId>,
) -> Option<Definition> {
    let kind = SymbolKind::from_code(from.read_byte()?)?;
    let asyncness = match from.read_byte()? {
        0 => Asyncness::Sync,
        1 => Asyncness::Async,
        _ => return None,
    };
    let visibility = match from.read_byte()? {
        0 => Visibility::Shared,
        1 => Visibility::Local,
        2 => Visibility::Test,
        3 => Visibility::Implied,
        _ => return None,
    };
    let name = from.read_u32_below(names.len())?;
    defined.push(name);
    Some(Definition {
        kind,
        asyncness,
        visibility,
        name: names.get(name).into(),
        parent: from.read_u32()?.checked_sub(1),
        line: from.read_u32()?,
        signature: from.read_text()?.into(),
        bases: from.read_list(|from| from.read_text().map(Box::from))?,
        calls: from.read_list(|from| from.read_u32_below(words))?,
    })
}

//! A whole index as bytes: the outlines, and what was worked out from them, so that neither has to be done again.
//!
//! Files and names are numbered anew, files by path and names as they come, so that the bytes tell nothing of how the
//! index came about, and names that nobody has any more are gone.

use rayon::prelude::*;

use super::change::owners;
use super::{ContentHash, Edge, File, Imports, Index, Site, Target, Uses};
use crate::capture::Kind;
use crate::language::Languages;
use crate::manifest::Manifest;
use crate::names::{NameId, Names};
use crate::outline::{Definition, Import, ImportForm, Outline, Reach, Row, Skip, Waits};
use crate::resolve::FileId;
use crate::wire::{Cursor, Damaged, list, number, text};

/// The numbers that files and names are stored under.
struct Numbers {
    /// By the number here.
    files: Vec<FileId>,
    names: Vec<NameId>,
    /// The stored names, by the number here.
    kept: Vec<NameId>,
}

impl Numbers {
    fn of(index: &Index) -> Self {
        let mut numbers = Numbers {
            files: vec![0; index.files.len()],
            names: vec![NameId::MAX; index.names.len()],
            kept: Vec::new(),
        };
        for ((id, file), at) in index.in_order().zip(0..) {
            numbers.files[id as usize] = at;
            for name in file.words.iter().chain(&file.names).chain(&file.package) {
                let number = &mut numbers.names[*name as usize];
                if *number == NameId::MAX {
                    *number = numbers.kept.len() as NameId;
                    numbers.kept.push(*name);
                }
            }
        }
        numbers
    }

    fn file(&self, id: FileId) -> FileId {
        self.files[id as usize]
    }

    fn name(&self, id: NameId) -> NameId {
        self.names[id as usize]
    }
}

/// A file, and what is known of it in the tables of the index.
struct Stored {
    file: File,
    /// How many files use each of its sites.
    uses: Vec<u32>,
    edges: Vec<Edge>,
}

impl Index {
    /// Everything as bytes, for a cache that keeps [`format_id`](crate::format_id) beside them. The same files give the same
    /// bytes.
    pub fn save(&self) -> Vec<u8> {
        let numbers = Numbers::of(self);
        let files: Vec<(FileId, &File)> = self.in_order().collect();
        let sections: Vec<Vec<u8>> =
            files.par_iter().map(|(id, file)| self.section(*id, file, &numbers)).collect();
        let mut to = Vec::with_capacity(sections.iter().map(Vec::len).sum::<usize>() * 3 / 2);
        list(&mut to, &numbers.kept, |to, name| number(to, self.names.get(*name).len() as u64));
        numbers.kept.iter().for_each(|name| to.extend_from_slice(self.names.get(*name).as_bytes()));
        list(&mut to, &sections, |to, section| number(to, section.len() as u64));
        sections.iter().for_each(|section| to.extend_from_slice(section));
        to
    }

    fn section(&self, id: FileId, file: &File, numbers: &Numbers) -> Vec<u8> {
        let mut to = Vec::new();
        text(&mut to, &file.path);
        to.extend(file.hash);
        number(&mut to, file.package.map_or(0, |name| u64::from(numbers.name(name)) + 1));
        list(&mut to, &file.words, |to, word| number(to, numbers.name(*word)));
        encode(&mut to, &file.outline, |at| numbers.name(file.names[at]));
        list(&mut to, &file.rows, |to, row| {
            number(to, row.definition);
            number(to, row.parent.map_or(0, |parent| u64::from(parent) + 1));
            number(to, row.depth);
        });
        let mut targets: Vec<(FileId, bool)> =
            file.imports.targets.iter().map(|target| (numbers.file(target.file), target.is_public)).collect();
        targets.sort_unstable();
        list(&mut to, &targets, |to, (file, is_public)| {
            number(to, u64::from(*file) << 1 | u64::from(*is_public));
        });
        list(&mut to, &file.imports.externals, |to, name| text(to, name));
        let mut sites: Vec<(NameId, u32)> =
            file.sites.iter().map(|name| (numbers.name(*name), self.uses_of(id, *name))).collect();
        sites.sort_unstable();
        list(&mut to, &sites, |to, (_, uses)| number(to, *uses));
        let mut edges: Vec<Edge> =
            self.edges_of(id).iter().map(|edge| Edge { to: numbers.file(edge.to), ..*edge }).collect();
        edges.sort_unstable_by_key(|edge| edge.to);
        list(&mut to, &edges, |to, edge| {
            number(to, edge.to);
            number(to, edge.count);
            number(to, edge.weight);
        });
        to
    }

    /// The index that was saved.
    ///
    /// # Errors
    /// Bytes that [`save`](Self::save) did not make. No bytes make it panic or ask for more memory than they are worth.
    pub fn load(bytes: &[u8]) -> Result<Index, Damaged> {
        let mut from = Cursor::new(bytes);
        Self::read(&mut from).ok_or(Damaged { at: from.at })
    }

    fn read(from: &mut Cursor<'_>) -> Option<Index> {
        let lengths: Vec<usize> = from.list(Cursor::size)?;
        let length = lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length))?;
        let mut names = Names::of(std::str::from_utf8(from.take(length)?).ok()?, &lengths)?;
        let lengths: Vec<usize> = from.list(Cursor::size)?;
        let sections: Vec<&[u8]> = lengths.iter().map(|length| from.take(*length)).collect::<Option<_>>()?;
        from.is_at_end().then_some(())?;
        let (numbered, stored) = rayon::join(
            || names.numbered(),
            || {
                let read = |section: &&[u8]| stored(&mut Cursor::new(section), &names, sections.len());
                sections.par_iter().map(read).collect::<Option<Vec<Stored>>>()
            },
        );
        names.adopt(numbered);
        let stored = stored.filter(|files| files.is_sorted_by(|a, b| a.file.path < b.file.path))?;
        let mut index = Index { names, ..Index::default() };
        index.take(stored);
        Some(index)
    }

    /// Fills an empty index; the files are in order, and their numbers are their places.
    fn take(&mut self, stored: Vec<Stored>) {
        self.used_by = vec![0; stored.len()];
        let (uses, ()) = rayon::join(
            || uses(&stored, self.names.len()),
            || {
                for (Stored { file, edges, .. }, id) in stored.iter().zip(0..) {
                    self.lookup.insert(&file.path, id, file.outline.manifest.as_ref());
                    let counted = edges.iter().filter(|_| !file.is_test);
                    counted.for_each(|edge| self.used_by[edge.to as usize] += 1);
                }
            },
        );
        self.uses = uses;
        self.paths = stored.iter().map(|stored| stored.file.path.clone()).zip(0..).collect();
        for Stored { file, edges, .. } in stored {
            self.files.push(Some(file));
            self.edges.push(edges);
        }
        let seen: Vec<Vec<FileId>> =
            (0..self.files.len()).into_par_iter().map(|id| self.view(id as FileId)).collect();
        for (file, visible) in self.files.iter_mut().flatten().zip(seen) {
            file.visible = visible;
        }
    }
}

/// Who defines and who uses each name.
fn uses(stored: &[Stored], names: usize) -> Vec<Uses> {
    let mut counts = vec![(0_u32, 0_u32); names];
    for Stored { file, .. } in stored {
        file.words.iter().for_each(|word| counts[*word as usize].0 += 1);
        file.sites.iter().for_each(|site| counts[*site as usize].1 += 1);
    }
    let room = |(users, sites): (u32, u32)| Uses {
        users: Vec::with_capacity(users as usize),
        sites: Vec::with_capacity(sites as usize),
        owned: 0,
    };
    let mut all: Vec<Uses> = counts.into_iter().map(room).collect();
    for (Stored { file, uses, .. }, id) in stored.iter().zip(0..) {
        file.words.iter().for_each(|word| all[*word as usize].users.push(id));
        for (site, uses) in file.sites.iter().zip(uses) {
            all[*site as usize].sites.push(Site { file: id, uses: *uses });
        }
        owners(file).into_iter().for_each(|owner| all[owner as usize].owned += 1);
    }
    all
}

fn stored(from: &mut Cursor<'_>, names: &Names, files: usize) -> Option<Stored> {
    let path = from.text()?;
    let hash: ContentHash = from.take(16)?.try_into().ok()?;
    let package = match from.number()? {
        0 => None,
        number => Some(NameId::try_from(number - 1).ok().filter(|name| (*name as usize) < names.len())?),
    };
    let words: Box<[NameId]> = from.list(|from| from.below(names.len()))?;
    let (outline, defined) = decode(from, names, words.len())?;
    let mut count = 0;
    let row = |from: &mut Cursor<'_>| {
        let definition = from.below(outline.definitions.len())?;
        let parent = from.below(count + 1)?.checked_sub(1);
        count += 1;
        Some(Row { definition, parent, depth: from.small()?.try_into().ok()? })
    };
    let rows = from.list(row)?;
    let mut file = File::new(path, hash, outline, rows, words, defined, package);
    let target = |from: &mut Cursor<'_>| {
        let number = from.number()?;
        let file = FileId::try_from(number >> 1).ok().filter(|file| (*file as usize) < files)?;
        Some(Target { file, is_public: number & 1 == 1 })
    };
    file.imports =
        Imports { targets: from.list(target)?, externals: from.list(|from| from.text().map(Box::from))? };
    let uses: Vec<u32> = from.list(Cursor::small)?;
    let edge = |from: &mut Cursor<'_>| {
        Some(Edge { to: from.below(files)?, count: from.small()?, weight: from.number()? })
    };
    let edges = from.list(edge)?;
    (from.is_at_end() && uses.len() == file.sites.len()).then_some(Stored { file, uses, edges })
}

/// An outline without its words; `name` is the number of the name of each definition.
fn encode(to: &mut Vec<u8>, outline: &Outline, name: impl Fn(usize) -> NameId) {
    let Outline { language, skipped, definitions, imports, words: _, manifest } = outline;
    number(to, language.map_or(0, |language| u64::from(language) + 1));
    let skipped = skipped.and_then(|skip| Skip::ALL.iter().position(|known| *known == skip));
    number(to, skipped.map_or(0, |at| at as u64 + 1));
    encode_manifest(to, manifest.as_ref());
    list(to, imports, |to, import| {
        text(to, &import.path);
        to.push(import.form as u8);
        list(to, &import.names, |to, name| text(to, name));
    });
    let mut place = 0;
    list(to, definitions, |to, definition| {
        let Definition { kind, name: _, parent, line, signature, bases, waits, reach, calls } = definition;
        to.extend([kind.code(), *waits as u8, *reach as u8]);
        number(to, name(place));
        place += 1;
        number(to, parent.map_or(0, |parent| u64::from(parent) + 1));
        number(to, *line);
        text(to, signature);
        list(to, bases, |to, base| text(to, base));
        list(to, calls, |to, call| number(to, *call));
    });
}

fn encode_manifest(to: &mut Vec<u8>, manifest: Option<&Manifest>) {
    let named = |to: &mut Vec<u8>, code: u8, name: &str| {
        to.push(code);
        text(to, name);
    };
    match manifest {
        None => to.push(0),
        Some(Manifest::Crate(name)) => named(to, 1, name),
        Some(Manifest::GoModule(name)) => named(to, 2, name),
        Some(Manifest::Package(name)) => named(to, 3, name),
        Some(Manifest::Paths(pairs)) => {
            to.push(4);
            list(to, pairs, |to, (short, long)| {
                text(to, short);
                text(to, long);
            });
        }
    }
}

/// The outline, and the numbers of its definitions' names.
fn decode(from: &mut Cursor<'_>, names: &Names, words: usize) -> Option<(Outline, Box<[NameId]>)> {
    let language = match from.byte()? {
        0 => None,
        code => Some(code - 1).filter(|id| Languages::builtin().get(*id).is_some()).map(Some)?,
    };
    let skipped = match from.byte()? {
        0 => None,
        code => Some(*Skip::ALL.get(usize::from(code) - 1)?),
    };
    let manifest = match from.byte()? {
        0 => None,
        1 => Some(Manifest::Crate(from.text()?.into())),
        2 => Some(Manifest::GoModule(from.text()?.into())),
        3 => Some(Manifest::Package(from.text()?.into())),
        4 => Some(Manifest::Paths(from.list(|from| Some((from.text()?.into(), from.text()?.into())))?)),
        _ => return None,
    };
    let imports = from.list(import)?;
    let mut defined = Vec::new();
    let definitions: Vec<Definition> = from.list(|from| definition(from, names, words, &mut defined))?;
    // A place that leads nowhere would be a panic later.
    let sound = |parent: u32| (parent as usize) < definitions.len();
    definitions.iter().all(|definition| definition.parent.is_none_or(sound)).then_some(())?;
    let outline = Outline { language, skipped, definitions, imports, words: Vec::new(), manifest };
    Some((outline, defined.into()))
}

fn import(from: &mut Cursor<'_>) -> Option<Import> {
    let path = from.text()?.into();
    let form = match from.byte()? {
        0 => ImportForm::Use,
        1 => ImportForm::Public,
        2 => ImportForm::Submodule,
        3 => ImportForm::PublicSubmodule,
        _ => return None,
    };
    Some(Import { path, form, names: from.list(|from| from.text().map(Box::from))? })
}

fn definition(
    from: &mut Cursor<'_>,
    names: &Names,
    words: usize,
    defined: &mut Vec<NameId>,
) -> Option<Definition> {
    let kind = Kind::from_code(from.byte()?)?;
    let waits = match from.byte()? {
        0 => Waits::No,
        1 => Waits::Async,
        _ => return None,
    };
    let reach = match from.byte()? {
        0 => Reach::Shared,
        1 => Reach::Local,
        2 => Reach::Test,
        3 => Reach::Implied,
        _ => return None,
    };
    let name = from.below(names.len())?;
    defined.push(name);
    Some(Definition {
        kind,
        waits,
        reach,
        name: names.get(name).into(),
        parent: from.small()?.checked_sub(1),
        line: from.small()?,
        signature: from.text()?.into(),
        bases: from.list(|from| from.text().map(Box::from))?,
        calls: from.list(|from| from.below(words))?,
    })
}

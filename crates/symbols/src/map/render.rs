//! Lines of the map.

use std::collections::BTreeMap;

use super::alias::Aliases;
use super::{Block, rounded};
use crate::capture::Kind;
use crate::index::{File, Index};
use crate::names::NameId;
use crate::outline::{Definition, Outline, Reach, Waits};
use crate::resolve::FileId;

/// Imports, packages and calls beyond these are a number.
const IMPORTS: usize = 12;
const TESTED: usize = 4;
const CALLS: usize = 3;

/// A definition that the map shows, and how deep it lies.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Its place in the outline.
    pub(super) definition: usize,
    pub(super) depth: usize,
    /// The row of what holds it.
    pub(super) parent: Option<usize>,
}

/// The definitions that others can see, each once, members below what holds them, in the order of the file.
pub(super) fn rows(outline: &Outline) -> Vec<Row> {
    let definitions = &outline.definitions;
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); definitions.len() + 1];
    let top = definitions.len();
    let mut seen: BTreeMap<(usize, &str, &str, &str), usize> = BTreeMap::new();
    // A type in several parts (partial classes, classes opened again, namespaces) is shown where it first stands.
    let mut first: Vec<usize> = (0..=top).collect();
    for (at, definition) in definitions.iter().enumerate() {
        let parent = first[definition.parent.map_or(top, |parent| parent as usize)];
        // A property is read and set, and a field may be set twice, but each is one.
        let signature = if definition.kind.is_callable() { &*definition.signature } else { "" };
        let key = (parent, definition.kind.letter(), &*definition.name, signature);
        if definition.reach == Reach::Shared {
            first[at] = *seen.entry(key).or_insert(at);
            if first[at] == at {
                children[parent].push(at);
            }
        }
    }
    let mut rows: Vec<Row> = Vec::with_capacity(definitions.len());
    let mut next: Vec<(usize, usize, Option<usize>)> = children[top].iter().rev().map(|at| (*at, 0, None)).collect();
    while let Some((definition, depth, parent)) = next.pop() {
        rows.push(Row { definition, depth, parent });
        let row = Some(rows.len() - 1);
        next.extend(std::mem::take(&mut children[definition]).into_iter().rev().map(|at| (at, depth + 1, row)));
    }
    rows
}

/// The name of a definition with those of what holds it.
pub(super) fn full_name(outline: &Outline, definition: &Definition) -> String {
    match outline.parent(definition) {
        Some(parent) => format!("{}.{}", full_name(outline, parent), definition.name),
        None => definition.name.to_string(),
    }
}

/// The rows that are in a list of names.
pub(super) fn named(outline: &Outline, rows: &[Row], names: &[String]) -> Vec<Row> {
    let full = |row: &&Row| full_name(outline, &outline.definitions[row.definition]);
    rows.iter().filter(|row| names.contains(&full(row))).copied().collect()
}

/// What lines need to know besides their file.
pub(super) struct Page<'a> {
    pub(super) index: &'a Index,
    pub(super) aliases: &'a Aliases,
}

impl Page<'_> {
    /// Everything about a file.
    pub(super) fn block(&self, id: FileId, file: &File, rows: &[Row]) -> Block {
        let mut text = self.head(id, file);
        if !file.is_test && file.outline.skipped.is_none() {
            text.push_str(&self.imports(file));
            rows.iter().for_each(|row| text.push_str(&self.line(id, file, *row)));
        }
        Block { path: file.path.to_string(), text }
    }

    /// Some definitions of a file, without its imports.
    pub(super) fn part(&self, id: FileId, file: &File, rows: &[Row]) -> Block {
        let mut text = self.head(id, file);
        rows.iter().for_each(|row| text.push_str(&self.line(id, file, *row)));
        Block { path: file.path.to_string(), text }
    }

    /// The path, and how many use it; or all there is to say about a test or a skipped file.
    pub(super) fn head(&self, id: FileId, file: &File) -> String {
        let path = self.aliases.shorten(&file.path);
        if let Some(skip) = file.outline.skipped {
            return format!("{path}: {}\n", skip.word());
        }
        if file.is_test {
            let list = listed(self.local_imports(file).into_iter(), TESTED);
            return format!("{path}: tests{}{list}\n", if list.is_empty() { "" } else { " " });
        }
        match rounded(self.index.used_by(id)) {
            0 => format!("{path}:\n"),
            count => format!("{path}: ←{count}\n"),
        }
    }

    pub(super) fn imports(&self, file: &File) -> String {
        let mut text = String::new();
        let externals = listed(file.imports.externals.iter().map(ToString::to_string), IMPORTS);
        if !externals.is_empty() {
            text.push_str(&format!("i {externals}\n"));
        }
        let locals = listed(self.local_imports(file).into_iter(), IMPORTS);
        if !locals.is_empty() {
            text.push_str(&format!("i→ {locals}\n"));
        }
        text
    }

    fn local_imports(&self, file: &File) -> Vec<String> {
        let paths = self.index.local_imports(file);
        let mut shown: Vec<String> = match file.imports_folders {
            false => paths.iter().map(|path| self.aliases.shorten(path)).collect(),
            true => paths.iter().map(|path| self.aliases.shorten(&path[..path.rfind('/').map_or(0, |at| at + 1)])).collect(),
        };
        shown.dedup();
        shown
    }

    pub(super) fn line(&self, id: FileId, file: &File, row: Row) -> String {
        let definition = &file.outline.definitions[row.definition];
        let mut line = "  ".repeat(row.depth);
        if definition.waits == Waits::Async {
            line.push('a');
        }
        line.push_str(definition.kind.letter());
        line.push(' ');
        line.push_str(&definition.name);
        line.push_str(&definition.signature);
        if !definition.bases.is_empty() {
            line.push_str(&format!("({})", definition.bases.join(",")));
        }
        if definition.kind.links() {
            match rounded(self.index.uses_of(id, file.names[row.definition])) {
                0 => {}
                count => line.push_str(&format!(" ←{count}")),
            }
        }
        let calls = self.calls(id, file, definition);
        if !calls.is_empty() {
            line.push_str(" →");
            line.push_str(&calls.join(","));
        }
        line.push('\n');
        line
    }

    /// The calls worth knowing: of what exactly one file defines, those that leave this file first.
    fn calls(&self, id: FileId, file: &File, definition: &Definition) -> Vec<&str> {
        let names = definition.calls.iter().filter_map(|word| file.words.get(*word as usize).copied());
        let known: Vec<(NameId, FileId)> = names.filter_map(|name| Some((name, self.index.only_definer(name, file)?))).collect();
        let (inside, outside): (Vec<_>, Vec<_>) = known.into_iter().partition(|(_, definer)| *definer == id);
        outside.iter().chain(&inside).take(CALLS).map(|(name, _)| self.index.word(*name)).collect()
    }
}

/// Some items with commas, and how many more there are.
fn listed(items: impl ExactSizeIterator<Item = String>, limit: usize) -> String {
    let more = items.len().saturating_sub(limit);
    let mut list = items.take(limit).collect::<Vec<_>>().join(",");
    if more > 0 {
        list.push_str(&format!(",+{more}"));
    }
    list
}

/// How much a definition is worth knowing, beside the others of its file.
pub(super) fn worth(definition: &Definition, uses: u32) -> f64 {
    let used = 1.0 + f64::from(uses).ln_1p() * 3.0;
    let kind = match definition.kind {
        Kind::Field | Kind::Variant | Kind::Key => 0.25,
        Kind::Property | Kind::Constant | Kind::Variable => 0.5,
        Kind::Method | Kind::Module | Kind::Extension => 0.6,
        _ => 1.0,
    };
    let hidden = if definition.name.starts_with(['_', '#']) { 0.3 } else { 1.0 };
    used * kind * hidden
}

//! Lines of the map.

use std::collections::BTreeSet;

use super::alias::Aliases;
use super::rounded;
use crate::capture::Kind;
use crate::index::{File, Index};
use crate::outline::{Definition, Row, Waits};
use crate::resolve::FileId;

/// Imports, bases and calls beyond these are a number, or left out.
const IMPORTS: usize = 12;
const TESTED: usize = 4;
const CALLS: usize = 3;
const BASES: usize = 5;

/// The rows that are in a list of names.
pub(super) fn named(file: &File, names: &[String]) -> Vec<Row> {
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    file.rows
        .iter()
        .filter(|row| names.contains(file.outline.full_name(row.definition).as_str()))
        .copied()
        .collect()
}

/// What lines need to know besides their file.
pub(super) struct Page<'a> {
    pub(super) index: &'a Index,
    pub(super) aliases: &'a Aliases,
}

impl Page<'_> {
    /// Everything about a file.
    pub(super) fn whole(&self, id: FileId, file: &File) -> String {
        let mut text = self.head(id, file);
        if !file.is_test && file.outline.skipped.is_none() {
            text.push_str(&self.imports(file));
            file.rows.iter().for_each(|row| self.line(id, file, *row, &mut text));
        }
        text
    }

    /// Some definitions of a file, without its imports.
    pub(super) fn part(&self, id: FileId, file: &File, rows: &[Row]) -> String {
        let mut text = self.head(id, file);
        rows.iter().for_each(|row| self.line(id, file, *row, &mut text));
        text
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
            true => paths
                .iter()
                .map(|path| self.aliases.shorten(&path[..path.rfind('/').map_or(0, |at| at + 1)]))
                .collect(),
        };
        shown.dedup();
        shown
    }

    /// Adds the line of a definition.
    pub(super) fn line(&self, id: FileId, file: &File, row: Row, text: &mut String) {
        let definition = &file.outline.definitions[row.definition as usize];
        text.extend(std::iter::repeat_n("  ", usize::from(row.depth)));
        if definition.waits == Waits::Async {
            text.push('a');
        }
        text.push_str(definition.kind.letter());
        text.push(' ');
        text.push_str(&definition.name);
        text.push_str(&definition.signature);
        if !definition.bases.is_empty() {
            text.push_str(&format!("({})", listed(definition.bases.iter().map(ToString::to_string), BASES)));
        }
        if definition.kind.links() {
            match rounded(self.index.uses_of(id, file.names[row.definition as usize])) {
                0 => {}
                count => text.push_str(&format!(" ←{count}")),
            }
        }
        for (at, call) in self.calls(id, file, definition).into_iter().enumerate() {
            text.push_str(if at == 0 { " →" } else { "," });
            text.push_str(call);
        }
        text.push('\n');
    }

    /// The calls worth knowing: of what is certainly this repository's, those that leave this file first.
    fn calls(&self, id: FileId, file: &File, definition: &Definition) -> Vec<&str> {
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        let within = definition.parent.and_then(|parent| file.names.get(parent as usize).copied());
        for name in definition.calls.iter().filter_map(|word| file.words.get(*word as usize)) {
            match self.index.callee(*name, id, within) {
                Some(definer) if definer == id => inside.push(*name),
                Some(_) => outside.push(*name),
                None => {}
            }
            if outside.len() == CALLS {
                break;
            }
        }
        outside.iter().chain(&inside).take(CALLS).map(|name| self.index.word(*name)).collect()
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

//! [`MapRenderer`]: renders the lines of the map.

use std::collections::BTreeSet;

use super::alias::Aliases;
use super::round_down;
use crate::capture::SymbolKind;
use crate::index::{File, SymbolIndex};
use crate::outline::{Asyncness, Definition, OutlineRow};
use crate::resolve::FileId;

/// Imports, bases and calls beyond these limits become a number, or are left out.
const MAX_IMPORTS: usize = 12;
const MAX_TESTED: usize = 4;
const MAX_CALLS: usize = 3;
const MAX_BASES: usize = 5;

/// The rows whose full names are in the list.
pub(super) fn rows_named(file: &File, names: &[String]) -> Vec<OutlineRow> {
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    file.rows
        .iter()
        .filter(|row| names.contains(file.outline.full_name(row.definition).as_str()))
        .copied()
        .collect()
}

/// Renders files of an index with a set of aliases.
pub(super) struct MapRenderer<'a> {
    pub(super) index: &'a SymbolIndex,
    pub(super) aliases: &'a Aliases,
}

impl MapRenderer<'_> {
    /// The complete block of a file.
    pub(super) fn render_whole(&self, id: FileId, file: &File) -> String {
        let mut text = self.render_head(id, file);
        if !file.is_test && file.outline.skipped.is_none() {
            text.push_str(&self.render_imports(file));
            file.rows.iter().for_each(|row| self.render_line(id, file, *row, &mut text));
        }
        text
    }

    /// A block with only some definitions, without imports.
    pub(super) fn render_rows(&self, id: FileId, file: &File, rows: &[OutlineRow]) -> String {
        let mut text = self.render_head(id, file);
        rows.iter().for_each(|row| self.render_line(id, file, *row, &mut text));
        text
    }

    /// The first line: the path and how many files refer to it; or all there is to say about a test
    /// or skipped file.
    pub(super) fn render_head(&self, id: FileId, file: &File) -> String {
        let path = self.aliases.shorten(&file.path);
        if let Some(skip) = file.outline.skipped {
            return format!("{path}: {}\n", skip.as_str());
        }
        if file.is_test {
            let list = join_limited(self.local_imports(file).into_iter(), MAX_TESTED);
            return format!("{path}: tests{}{list}\n", if list.is_empty() { "" } else { " " });
        }
        match round_down(self.index.used_by(id)) {
            0 => format!("{path}:\n"),
            count => format!("{path}: ←{count}\n"),
        }
    }

    pub(super) fn render_imports(&self, file: &File) -> String {
        let mut text = String::new();
        let externals = join_limited(file.imports.externals.iter().map(ToString::to_string), MAX_IMPORTS);
        if !externals.is_empty() {
            text.push_str(&format!("i {externals}\n"));
        }
        let locals = join_limited(self.local_imports(file).into_iter(), MAX_IMPORTS);
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

    /// Appends the line of a definition.
    pub(super) fn render_line(&self, id: FileId, file: &File, row: OutlineRow, text: &mut String) {
        let definition = &file.outline.definitions[row.definition as usize];
        text.extend(std::iter::repeat_n("  ", usize::from(row.depth)));
        if definition.asyncness == Asyncness::Async {
            text.push('a');
        }
        text.push_str(definition.kind.letter());
        text.push(' ');
        text.push_str(&definition.name);
        text.push_str(&definition.signature);
        if !definition.bases.is_empty() {
            text.push_str(&format!(
                "({})",
                join_limited(definition.bases.iter().map(ToString::to_string), MAX_BASES)
            ));
        }
        if definition.kind.is_linkable() {
            match round_down(self.index.uses_of(id, file.names[row.definition as usize])) {
                0 => {}
                count => text.push_str(&format!(" ←{count}")),
            }
        }
        for (at, call) in self.shown_calls(id, file, definition).into_iter().enumerate() {
            text.push_str(if at == 0 { " →" } else { "," });
            text.push_str(call);
        }
        text.push('\n');
    }

    /// The calls to show: only those that certainly refer to this repository, those into other
    /// files first.
    fn shown_calls(&self, id: FileId, file: &File, definition: &Definition) -> Vec<&str> {
        let (mut outside, mut inside) = (Vec::new(), Vec::new());
        let within = definition.parent.and_then(|parent| file.names.get(parent as usize).copied());
        for name in definition.calls.iter().filter_map(|word| file.words.get(*word as usize)) {
            match self.index.callee(*name, id, within) {
                Some(definer) if definer == id => inside.push(*name),
                Some(_) => outside.push(*name),
                None => {}
            }
            if outside.len() == MAX_CALLS {
                break;
            }
        }
        outside.iter().chain(&inside).take(MAX_CALLS).map(|name| self.index.name_text(*name)).collect()
    }
}

/// Joins up to `limit` items with commas, and says how many more there are.
fn join_limited(items: impl ExactSizeIterator<Item = String>, limit: usize) -> String {
    let more = items.len().saturating_sub(limit);
    let mut list = items.take(limit).collect::<Vec<_>>().join(",");
    if more > 0 {
        list.push_str(&format!(",+{more}"));
    }
    list
}

/// How important a definition is compared to the others of its file.
pub(crate) fn definition_weight(definition: &Definition, uses: u32) -> f64 {
    let used = 1.0 + f64::from(uses).ln_1p() * 3.0;
    let kind = match definition.kind {
        SymbolKind::Field | SymbolKind::Variant | SymbolKind::Key => 0.25,
        SymbolKind::Property | SymbolKind::Constant | SymbolKind::Variable => 0.5,
        SymbolKind::Method | SymbolKind::Module | SymbolKind::Extension => 0.6,
        _ => 1.0,
    };
    let hidden = if definition.name.starts_with(['_', '#']) { 0.3 } else { 1.0 };
    used * kind * hidden
}

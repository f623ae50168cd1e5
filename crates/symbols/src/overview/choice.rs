//! [`choose`]: what an overview names, within its budget.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    OverviewMemory, OverviewRequest, count_files, file_line, folder_line, folder_of, nearest_folder, render,
};
use crate::capture::SymbolKind;
use crate::index::{File, SymbolIndex};
use crate::map::definition_weight;
use crate::resolve::FileId;

/// The share of the budget that lines of folders may take; the rest is for files.
const FOLDER_SHARE: f64 = 0.3;
/// The most definitions that are named with a file.
const MAX_NAMES: usize = 2;
/// Names of files, without their endings, that describe the repository if they stand at its root.
const ROOT_NAMES: [&str; 7] = ["README", "Cargo", "package", "pyproject", "setup", "go", "Makefile"];
/// Names of files, without their endings, at which a program or a package begins.
const ENTRY_NAMES: [&str; 8] = ["main", "__main__", "index", "lib", "mod", "app", "cli", "server"];
/// What an entry point at the root is worth, in ranks of the highest-ranked file; half as much in
/// each folder further down.
const ENTRY_WORTH: f64 = 0.5;
/// What a document or a data file is worth compared to code of the same rank.
const PROSE_WORTH: f64 = 0.2;
/// How often a choice that is too long is shortened. Each round takes away what the last one had
/// too much, so one is usually enough.
const MAX_ROUNDS: usize = 6;

/// Chooses folders by how much of the repository they hold, then files by rank.
pub(super) fn choose(index: &SymbolIndex, paths: &[&str], request: &OverviewRequest<'_>) -> OverviewMemory {
    let counts = count_files(paths);
    let files = scored_files(index, paths, request);
    let count_tokens = request.budget.count_tokens;
    let mut limit = request.budget.tokens;
    for _ in 0..MAX_ROUNDS {
        let mut left = limit;
        let folders = choose_folders(&counts, &files, request, &mut left);
        let mut memory = OverviewMemory { folders, files: BTreeMap::new() };
        for file in &files {
            let folder = nearest_folder(&memory.folders, file.path);
            let cost = count_tokens(&file_line(&file.path[folder.len()..], &file.names));
            // Nothing shorter goes in its place: that would prefer short names to important files.
            let Some(rest) = left.checked_sub(cost) else { break };
            left = rest;
            memory.files.insert(file.path.to_owned(), file.names.clone());
        }
        let tokens = count_tokens(&render(&memory, paths));
        if tokens <= request.budget.tokens {
            return memory;
        }
        limit = limit.saturating_sub(tokens - request.budget.tokens + 1);
    }
    OverviewMemory::default()
}

/// A file that may be named.
struct ScoredFile<'a> {
    path: &'a str,
    score: f64,
    /// Its main definitions.
    names: Vec<String>,
}

/// The files of an overview, the most important first.
fn scored_files<'a>(
    index: &'a SymbolIndex,
    paths: &[&'a str],
    request: &OverviewRequest<'_>,
) -> Vec<ScoredFile<'a>> {
    let ranks = index.ranks(&request.focus.cloned().unwrap_or_default());
    let wanted: BTreeSet<&str> = paths.iter().copied().collect();
    let ranked: Vec<(FileId, &File, f64)> = index
        .files_by_path()
        .zip(ranks)
        .filter(|((_, file), _)| {
            wanted.contains(&*file.path) && !file.is_test && file.outline.skipped.is_none()
        })
        .map(|((id, file), rank)| (id, file, rank))
        .collect();
    let highest = ranked.iter().map(|(_, _, rank)| *rank).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut files: Vec<ScoredFile<'_>> = ranked
        .into_iter()
        .map(|(id, file, rank)| {
            let code = if is_code(file) { 1.0 } else { PROSE_WORTH };
            let score = code * rank / highest + entry_worth(&file.path);
            ScoredFile { path: &file.path, score, names: main_definitions(index, id, file) }
        })
        .collect();
    // Equal scores keep the order of the paths.
    files.sort_by(|a, b| b.score.total_cmp(&a.score));
    files
}

fn is_code(file: &File) -> bool {
    let is_prose = |kind| matches!(kind, SymbolKind::Heading | SymbolKind::Key);
    file.outline.definitions.iter().any(|definition| !is_prose(definition.kind))
}

/// What a file is worth for being where a program or a folder begins.
fn entry_worth(path: &str) -> f64 {
    let name = &path[folder_of(path).len()..];
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    let depth = path.matches('/').count();
    if !(ENTRY_NAMES.contains(&stem) || depth == 0 && ROOT_NAMES.contains(&stem)) {
        return 0.0;
    }
    ENTRY_WORTH / (1_u64 << depth.min(60)) as f64
}

/// The definitions of a file that other files use most, in file order.
fn main_definitions(index: &SymbolIndex, id: FileId, file: &File) -> Vec<String> {
    let is_named = |kind| !matches!(kind, SymbolKind::Heading | SymbolKind::Key | SymbolKind::Extension);
    let mut weighed: Vec<(f64, usize, &str)> = file
        .rows
        .iter()
        .filter(|row| row.depth == 0)
        .map(|row| row.definition as usize)
        .map(|at| (&file.outline.definitions[at], at))
        .filter(|(definition, _)| is_named(definition.kind) && !definition.name.starts_with(['_', '#']))
        .map(|(definition, at)| {
            (definition_weight(definition, index.uses_of(id, file.names[at])), at, &*definition.name)
        })
        .collect();
    weighed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    weighed.dedup_by_key(|(_, _, name)| *name);
    weighed.truncate(MAX_NAMES);
    weighed.sort_by_key(|(_, at, _)| *at);
    weighed.into_iter().map(|(_, _, name)| name.to_owned()).collect()
}

/// The folders that hold most of the files and of what is used, largest first, each before its
/// subfolders.
fn choose_folders(
    counts: &BTreeMap<&str, usize>,
    files: &[ScoredFile<'_>],
    request: &OverviewRequest<'_>,
    left: &mut usize,
) -> BTreeSet<String> {
    let mut scores: BTreeMap<&str, f64> = BTreeMap::new();
    let (total, all): (f64, f64) =
        (counts.get("").map_or(1.0, |count| *count as f64), files.iter().map(|file| file.score).sum());
    for (folder, count) in counts {
        scores.insert(folder, *count as f64 / total);
    }
    for file in files {
        for (end, _) in file.path.match_indices('/') {
            *scores.entry(&file.path[..=end]).or_default() += file.score / all;
        }
    }
    // A folder that only holds one other says nothing of its own.
    let is_chain = |folder: &str| {
        let mut below = counts.range(folder..).skip(1).take_while(|(other, _)| other.starts_with(folder));
        below.any(|(_, count)| counts.get(folder) == Some(count))
    };
    let mut folders: Vec<(&str, f64)> = scores.into_iter().filter(|(folder, _)| !is_chain(folder)).collect();
    folders.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let reserve = *left - (*left as f64 * FOLDER_SHARE) as usize;
    let mut chosen = BTreeSet::new();
    for (folder, _) in folders {
        let line = folder_line(folder, counts.get(folder).copied().unwrap_or(0));
        let cost = (request.budget.count_tokens)(&line);
        if left.saturating_sub(cost) < reserve {
            break;
        }
        *left -= cost;
        chosen.insert(folder.to_owned());
    }
    chosen
}

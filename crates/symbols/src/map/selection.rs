//! Selects what fits into a token budget: the definitions that matter most, in the files that
//! matter most.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rayon::prelude::*;

use super::alias::Aliases;
use super::render::{MapRenderer, definition_weight};
use super::{CodeMap, FileSelection, TokenBudget};
use crate::index::{File, SymbolIndex};
use crate::outline::OutlineRow;
use crate::rank::Focus;
use crate::resolve::FileId;

/// Factor for definitions whose name is in the focus.
const MENTION_FACTOR: f64 = 50.0;
/// Weight of a file that has no definitions to show.
const BARE_FILE_WORTH: f64 = 0.01;
/// No line has fewer tokens, which bounds the number of candidates.
const MIN_LINE_TOKENS: usize = 3;
/// A kept map takes in further files if this part of its budget and so many tokens are free: less is
/// what any selection leaves over.
const MIN_ROOM: usize = 16;
const MIN_ROOM_TOKENS: usize = 64;
/// How many lines are counted in one parallel batch.
const COUNT_BATCH: usize = 512;
/// How often a map that is too long is shortened. Each round removes what the line counts demand,
/// so one is usually enough.
const MAX_ROUNDS: usize = 8;

/// A line that may be in the map.
#[derive(Clone, Copy)]
struct Candidate {
    score: f64,
    /// Index of the file.
    place: usize,
    /// Index of the row; `None` for the head line of a file without rows.
    row: Option<usize>,
}

impl Candidate {
    /// Orders candidates, best first; no two are equal.
    fn compare(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then((self.place, self.row).cmp(&(other.place, other.row)))
    }
}

/// Builds a map that fits into the budget.
pub(super) fn choose_map(
    index: &SymbolIndex,
    files: &[(FileId, &File)],
    focus: &Focus,
    budget: TokenBudget<'_>,
) -> CodeMap {
    let candidates = candidates(index, files, focus, budget.tokens / MIN_LINE_TOKENS);
    let mut costs = LineCosts::new();
    // Aliases depend on the selection and the selection on aliases; after the second round they
    // agree well enough.
    let mut limit = budget.tokens;
    let mut aliases = Aliases::choose(index, files);
    for round in 0..MAX_ROUNDS {
        let mut choice = Selector {
            files,
            renderer: MapRenderer { index, aliases: &aliases },
            count_tokens: budget.count_tokens,
            costs: &mut costs,
        };
        let parts =
            choice.select_within(&candidates, limit.saturating_sub((budget.count_tokens)(&aliases.legend())));
        let chosen: Vec<(FileId, &File)> =
            files.iter().filter(|(_, file)| parts.contains_key(&*file.path)).copied().collect();
        if round == 0 {
            aliases = Aliases::choose(index, &chosen);
            continue;
        }
        let map = index.render_map(files, Aliases::from_folders(aliases.folders()), Some(parts), None);
        let tokens = (budget.count_tokens)(&map.text());
        if tokens <= budget.tokens || map.blocks.is_empty() {
            return map;
        }
        limit = limit.saturating_sub(tokens - budget.tokens + 1);
    }
    index.render_map(files, Aliases::from_folders(&[]), Some(BTreeMap::new()), None)
}

/// Adds whole files to a map that has room for them, the highest-ranked first. A map that filled
/// its budget when it was made has no room, so these are files that came later.
pub(super) fn add_files(
    index: &SymbolIndex,
    files: &[(FileId, &File)],
    map: CodeMap,
    focus: Option<&Focus>,
    budget: TokenBudget<'_>,
) -> CodeMap {
    let mut room = budget.tokens.saturating_sub((budget.count_tokens)(&map.text()));
    let least = MIN_ROOM_TOKENS.max(budget.tokens / MIN_ROOM);
    let Some(mut choice) = map.memory.choice.clone().filter(|_| room >= least) else {
        return map;
    };
    let aliases = Aliases::from_folders(&map.memory.aliases);
    let renderer = MapRenderer { index, aliases: &aliases };
    let mut ranks = vec![0.0; index.capacity()];
    for ((id, _), rank) in index.files_by_path().zip(index.ranks(&focus.cloned().unwrap_or_default())) {
        ranks[id as usize] = rank;
    }
    let mut missing: Vec<&(FileId, &File)> =
        files.iter().filter(|(_, file)| !choice.contains_key(&*file.path)).collect();
    // Equal ranks keep the order of the paths.
    missing.sort_by(|(a, _), (b, _)| ranks[*b as usize].total_cmp(&ranks[*a as usize]));
    let before = choice.len();
    for (id, file) in missing {
        let cost = (budget.count_tokens)(&renderer.render_whole(*id, file));
        if cost <= room {
            room -= cost;
            choice.insert(file.path.to_string(), FileSelection::Whole);
        }
    }
    if choice.len() == before {
        return map;
    }
    index.render_map(files, aliases, Some(choice), None)
}

/// The best `limit` lines, sorted.
fn candidates(index: &SymbolIndex, files: &[(FileId, &File)], focus: &Focus, limit: usize) -> Vec<Candidate> {
    let mut ranks = vec![0.0; index.capacity()];
    for ((id, _), rank) in index.files_by_path().zip(index.ranks(focus)) {
        ranks[id as usize] = rank;
    }
    let scored = |(place, (id, file)): (usize, &(FileId, &File))| {
        score_rows(index, place, *id, file, ranks[*id as usize], focus)
    };
    let mut candidates: Vec<Candidate> = files.par_iter().enumerate().flat_map_iter(scored).collect();
    if candidates.len() > limit && limit > 0 {
        candidates.select_nth_unstable_by(limit - 1, Candidate::compare);
    }
    candidates.truncate(limit);
    candidates.sort_unstable_by(Candidate::compare);
    candidates
}

/// Scores the lines of one file.
fn score_rows(
    index: &SymbolIndex,
    place: usize,
    id: FileId,
    file: &File,
    rank: f64,
    focus: &Focus,
) -> Vec<Candidate> {
    let rows = shown_rows(file);
    if rows.is_empty() {
        return vec![Candidate { score: rank * BARE_FILE_WORTH, place, row: None }];
    }
    let worths = rows.iter().map(|row| {
        let definition = &file.outline.definitions[row.definition as usize];
        let mentioned = focus.names.iter().any(|name| **name == *definition.name);
        definition_weight(definition, index.uses_of(id, file.names[row.definition as usize]))
            * if mentioned { MENTION_FACTOR } else { 1.0 }
    });
    let worths: Vec<f64> = worths.collect();
    // A long file matters more than a short one of the same rank, but not in proportion.
    let whole = worths.iter().sum::<f64>().max(1.0).sqrt();
    let scored = worths.iter().enumerate().map(|(row, worth)| Candidate {
        score: rank * worth / whole,
        place,
        row: Some(row),
    });
    scored.collect()
}

/// The rows of a file that are shown. A test file has only its head line.
fn shown_rows(file: &File) -> &[OutlineRow] {
    if file.is_test { &[] } else { &file.rows }
}

/// Token counts of lines, by file index and row index. They do not depend on aliases.
type LineCosts = BTreeMap<(usize, usize), usize>;

struct Selector<'a> {
    files: &'a [(FileId, &'a File)],
    renderer: MapRenderer<'a>,
    count_tokens: &'a (dyn Fn(&str) -> usize + Sync),
    costs: &'a mut LineCosts,
}

impl Selector<'_> {
    /// Counts the lines of the next candidates on all threads, since most of the time goes there.
    fn count_ahead(&mut self, candidates: &[Candidate]) {
        let unknown = |candidate: &&Candidate| {
            candidate.row.is_some_and(|row| !self.costs.contains_key(&(candidate.place, row)))
        };
        let cost = |candidate: &Candidate| {
            let (place, row) = (candidate.place, candidate.row?);
            let (id, file) = self.files[place];
            let mut line = String::new();
            self.renderer.render_line(id, file, shown_rows(file)[row], &mut line);
            Some(((place, row), (self.count_tokens)(&line)))
        };
        let costs: Vec<_> = candidates.par_iter().filter(unknown).filter_map(cost).collect();
        self.costs.extend(costs);
    }

    /// Takes one line after the other, each with the lines of its parents, while there is room.
    fn select_within(&mut self, candidates: &[Candidate], tokens: usize) -> BTreeMap<String, FileSelection> {
        let mut left = tokens;
        let mut taken: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        for (at, candidate) in candidates.iter().enumerate() {
            if at % COUNT_BATCH == 0 {
                self.count_ahead(&candidates[at..candidates.len().min(at + COUNT_BATCH)]);
            }
            let (id, file) = self.files[candidate.place];
            let rows = shown_rows(file);
            if left < MIN_LINE_TOKENS {
                break;
            }
            let known = taken.get(&candidate.place);
            let mut cost =
                if known.is_some() { 0 } else { (self.count_tokens)(&self.renderer.render_head(id, file)) };
            let is_taken = |row: usize| known.is_some_and(|rows| rows[row]);
            let mut chain = Vec::new();
            let mut next = candidate.row;
            while let Some(row) = next.filter(|row| !is_taken(*row)) {
                cost += *self.costs.entry((candidate.place, row)).or_insert_with(|| {
                    let mut line = String::new();
                    self.renderer.render_line(id, file, rows[row], &mut line);
                    (self.count_tokens)(&line)
                });
                chain.push(row);
                next = rows[row].parent.map(|row| row as usize);
            }
            if cost <= left {
                left -= cost;
                let rows = taken.entry(candidate.place).or_insert_with(|| vec![false; rows.len()]);
                chain.into_iter().for_each(|row| rows[row] = true);
            }
        }
        let mut parts = BTreeMap::new();
        for (place, rows) in taken {
            let (_, file) = self.files[place];
            let imports =
                if file.is_test { 0 } else { (self.count_tokens)(&self.renderer.render_imports(file)) };
            let part = if rows.iter().all(|taken| *taken) && imports <= left {
                left -= imports;
                FileSelection::Whole
            } else {
                let kept = shown_rows(file).iter().zip(&rows).filter(|(_, taken)| **taken);
                let mut names: Vec<String> =
                    kept.map(|(row, _)| file.outline.full_name(row.definition)).collect();
                names.dedup();
                FileSelection::Names(names)
            };
            parts.insert(file.path.to_string(), part);
        }
        parts
    }
}

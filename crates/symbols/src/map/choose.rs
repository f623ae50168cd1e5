//! What a budget is spent on: the definitions that matter most, in the files that matter most.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rayon::prelude::*;

use super::alias::Aliases;
use super::render::{Page, worth};
use super::{Budget, Map, Part};
use crate::index::{File, Index};
use crate::outline::Row;
use crate::rank::Focus;
use crate::resolve::FileId;

/// What was asked for by name matters this much more.
const MENTIONED: f64 = 50.0;
/// What a file's bare line is worth beside its definitions.
const BARE: f64 = 0.01;
/// No line has fewer tokens, so no more lines than this part of the budget can be in.
const SHORTEST_LINE: usize = 3;
/// So many lines are counted at once.
const AHEAD: usize = 512;
/// Rounds of taking away what is too much. Each takes away what is needed by the count of lines, so one is the rule.
const ROUNDS: usize = 8;

/// One line that may be in the map.
#[derive(Clone, Copy)]
struct Candidate {
    score: f64,
    /// The file, by its place.
    place: usize,
    /// The row; none for the bare line of a file that has no rows.
    row: Option<usize>,
}

impl Candidate {
    /// The best first; never equal.
    fn compare(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then((self.place, self.row).cmp(&(other.place, other.row)))
    }
}

/// The map that fits.
pub(super) fn choose(index: &Index, files: &[(FileId, &File)], focus: &Focus, budget: Budget<'_>) -> Map {
    let candidates = candidates(index, files, focus, budget.tokens / SHORTEST_LINE);
    let mut costs = Costs::new();
    // Short names depend on the choice and the choice on short names; the second time they agree well enough.
    let mut limit = budget.tokens;
    let mut aliases = Aliases::choose(index, files);
    for round in 0..ROUNDS {
        let mut choice =
            Choice { files, page: Page { index, aliases: &aliases }, count: budget.count, costs: &mut costs };
        let parts = choice.spend(&candidates, limit.saturating_sub((budget.count)(&aliases.legend())));
        let chosen: Vec<(FileId, &File)> =
            files.iter().filter(|(_, file)| parts.contains_key(&*file.path)).copied().collect();
        if round == 0 {
            aliases = Aliases::choose(index, &chosen);
            continue;
        }
        let map = index.draw(files, Aliases::known(aliases.folders()), Some(parts), None);
        let tokens = (budget.count)(&map.text());
        if tokens <= budget.tokens || map.blocks.is_empty() {
            return map;
        }
        limit = limit.saturating_sub(tokens - budget.tokens + 1);
    }
    index.draw(files, Aliases::known(&[]), Some(BTreeMap::new()), None)
}

/// The best lines, sorted.
fn candidates(index: &Index, files: &[(FileId, &File)], focus: &Focus, limit: usize) -> Vec<Candidate> {
    let mut ranks = vec![0.0; index.capacity()];
    for ((id, _), rank) in index.in_order().zip(index.ranks(focus)) {
        ranks[id as usize] = rank;
    }
    let scored = |(place, (id, file)): (usize, &(FileId, &File))| {
        score(index, place, *id, file, ranks[*id as usize], focus)
    };
    let mut candidates: Vec<Candidate> = files.par_iter().enumerate().flat_map_iter(scored).collect();
    if candidates.len() > limit && limit > 0 {
        candidates.select_nth_unstable_by(limit - 1, Candidate::compare);
    }
    candidates.truncate(limit);
    candidates.sort_unstable_by(Candidate::compare);
    candidates
}

/// The lines of one file.
fn score(index: &Index, place: usize, id: FileId, file: &File, rank: f64, focus: &Focus) -> Vec<Candidate> {
    let rows = lines(file);
    if rows.is_empty() {
        return vec![Candidate { score: rank * BARE, place, row: None }];
    }
    let worths = rows.iter().map(|row| {
        let definition = &file.outline.definitions[row.definition as usize];
        let mentioned = focus.names.iter().any(|name| **name == *definition.name);
        worth(definition, index.uses_of(id, file.names[row.definition as usize]))
            * if mentioned { MENTIONED } else { 1.0 }
    });
    let worths: Vec<f64> = worths.collect();
    // A long file is worth more than a short one of the same rank, but not in proportion.
    let whole = worths.iter().sum::<f64>().max(1.0).sqrt();
    let scored = worths.iter().enumerate().map(|(row, worth)| Candidate {
        score: rank * worth / whole,
        place,
        row: Some(row),
    });
    scored.collect()
}

/// The lines of a file that cost anything by themselves. A test has only its head.
fn lines(file: &File) -> &[Row] {
    if file.is_test { &[] } else { &file.rows }
}

/// The tokens of lines that were counted, by the place of the file and the row. They do not depend on short names.
type Costs = BTreeMap<(usize, usize), usize>;

struct Choice<'a> {
    files: &'a [(FileId, &'a File)],
    page: Page<'a>,
    count: &'a (dyn Fn(&str) -> usize + Sync),
    costs: &'a mut Costs,
}

impl Choice<'_> {
    /// Counts the lines of candidates that come next, on all threads: most of the time goes there.
    fn count_ahead(&mut self, candidates: &[Candidate]) {
        let unknown = |candidate: &&Candidate| {
            candidate.row.is_some_and(|row| !self.costs.contains_key(&(candidate.place, row)))
        };
        let cost = |candidate: &Candidate| {
            let (place, row) = (candidate.place, candidate.row?);
            let (id, file) = self.files[place];
            let mut line = String::new();
            self.page.line(id, file, lines(file)[row], &mut line);
            Some(((place, row), (self.count)(&line)))
        };
        let costs: Vec<_> = candidates.par_iter().filter(unknown).filter_map(cost).collect();
        self.costs.extend(costs);
    }

    /// Takes one line after the other, each with the lines that it hangs on, as long as there is room.
    fn spend(&mut self, candidates: &[Candidate], tokens: usize) -> BTreeMap<String, Part> {
        let mut left = tokens;
        let mut taken: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        for (at, candidate) in candidates.iter().enumerate() {
            if at % AHEAD == 0 {
                self.count_ahead(&candidates[at..candidates.len().min(at + AHEAD)]);
            }
            let (id, file) = self.files[candidate.place];
            let rows = lines(file);
            if left < SHORTEST_LINE {
                break;
            }
            let known = taken.get(&candidate.place);
            let mut cost = if known.is_some() { 0 } else { (self.count)(&self.page.head(id, file)) };
            let is_taken = |row: usize| known.is_some_and(|rows| rows[row]);
            let mut chain = Vec::new();
            let mut next = candidate.row;
            while let Some(row) = next.filter(|row| !is_taken(*row)) {
                cost += *self.costs.entry((candidate.place, row)).or_insert_with(|| {
                    let mut line = String::new();
                    self.page.line(id, file, rows[row], &mut line);
                    (self.count)(&line)
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
            let imports = if file.is_test { 0 } else { (self.count)(&self.page.imports(file)) };
            let part = if rows.iter().all(|taken| *taken) && imports <= left {
                left -= imports;
                Part::Whole
            } else {
                let kept = lines(file).iter().zip(&rows).filter(|(_, taken)| **taken);
                let mut names: Vec<String> =
                    kept.map(|(row, _)| file.outline.full_name(row.definition)).collect();
                names.dedup();
                Part::Names(names)
            };
            parts.insert(file.path.to_string(), part);
        }
        parts
    }
}

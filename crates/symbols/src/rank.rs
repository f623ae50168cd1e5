//! [`SymbolIndex::ranks`]: how much each file matters, by PageRank over the references, biased
//! towards the conversation's focus.

use serde::{Deserialize, Serialize};

use crate::index::SymbolIndex;

/// PageRank's damping factor: the share of rank that follows references. The usual value.
const DAMPING: f64 = 0.85;
/// Iterations; enough for the order to settle, as the error shrinks by [`DAMPING`] each time.
const ROUNDS: usize = 30;
/// Share of the restarts that start at the focus, if there is one. The rest keeps the whole
/// repository in view.
const FOCUS_SHARE: f64 = 0.7;

/// What the conversation is about; it biases ranks and the selection of a map.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Focus {
    /// Paths of files that are open or were mentioned.
    pub files: Vec<String>,
    /// Names of definitions that were mentioned.
    pub names: Vec<String>,
}

impl SymbolIndex {
    /// The rank of each file, in the order of [`SymbolIndex::paths`]; the sum is 1 unless there are no
    /// files.
    ///
    /// The same index and focus give the same bits: sums run in path order, for a fixed number of
    /// rounds. Tests start with rank 0, but pass on what the focus gives them.
    pub fn ranks(&self, focus: &Focus) -> Vec<f64> {
        let start = self.start_distribution(focus);
        // The references of each file, with weights that sum to 1.
        let mut place = vec![0_usize; self.capacity()];
        for (at, (id, _)) in self.files_by_path().enumerate() {
            place[id as usize] = at;
        }
        let mut ends = Vec::with_capacity(start.len());
        let mut targets: Vec<(usize, f64)> = Vec::new();
        for (id, _) in self.files_by_path() {
            let edges = self.edges_of(id);
            let total: u64 = edges.iter().map(|edge| edge.weight).sum();
            targets.extend(
                edges.iter().map(|edge| (place[edge.to as usize], edge.weight as f64 / total as f64)),
            );
            ends.push(targets.len());
        }
        let mut ranks = start.clone();
        for _ in 0..ROUNDS {
            let mut next = vec![0.0; ranks.len()];
            let (mut lost, mut from) = (0.0, 0);
            for (rank, end) in ranks.iter().zip(&ends) {
                if from == *end {
                    lost += rank;
                }
                for (to, part) in &targets[from..*end] {
                    next[*to] += rank * part;
                }
                from = *end;
            }
            // The rank of files without references restarts.
            let anew = 1.0 - DAMPING + DAMPING * lost;
            ranks = next.iter().zip(&start).map(|(next, start)| DAMPING * next + anew * start).collect();
        }
        ranks
    }

    /// The restart distribution: even over files with definitions, biased towards the focus.
    fn start_distribution(&self, focus: &Focus) -> Vec<f64> {
        let mut even: Vec<f64> = Vec::with_capacity(self.paths().len());
        let mut leaning = Vec::with_capacity(self.paths().len());
        for (_, file) in self.files_by_path() {
            even.push(if file.is_test || file.outline.definitions.is_empty() { 0.0 } else { 1.0 });
            let named = focus.files.iter().filter(|path| **path == *file.path).count();
            let defines = |name: &&String| self.defines(file, name);
            leaning.push((named + focus.names.iter().filter(defines).count()) as f64);
        }
        if even.iter().sum::<f64>() == 0.0 {
            even.fill(1.0);
        }
        let (all, focused): (f64, f64) = (even.iter().sum(), leaning.iter().sum());
        let lean = if focused > 0.0 { FOCUS_SHARE } else { 0.0 };
        let share =
            |(even, leaning): (&f64, &f64)| (1.0 - lean) * even / all + lean * leaning / focused.max(1.0);
        even.iter().zip(&leaning).map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> SymbolIndex {
        let mut index = SymbolIndex::default();
        index.update("core.py", b"def core_thing(): ...\ndef other(): ...");
        index.update("a.py", b"from core import core_thing\ndef a_thing(): core_thing()");
        index.update("b.py", b"from core import core_thing\ndef b_thing(): core_thing()");
        index.update("test_a.py", b"from a import a_thing\ndef test(): a_thing()");
        index
    }

    fn order(index: &SymbolIndex, focus: &Focus) -> Vec<String> {
        let ranks = index.ranks(focus);
        let mut order: Vec<(String, f64)> = index.paths().map(str::to_owned).zip(ranks).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        order.into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn what_many_use_comes_first_and_tests_last() {
        assert_eq!(order(&index(), &Focus::default()), ["core.py", "a.py", "b.py", "test_a.py"]);
        let sum: f64 = index().ranks(&Focus::default()).iter().sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_focus_pulls_towards_itself_and_what_it_uses() {
        let files = Focus { files: vec!["b.py".into()], ..Focus::default() };
        assert_eq!(order(&index(), &files)[..2], ["core.py", "b.py"]);
        let names = Focus { names: vec!["b_thing".into()], ..Focus::default() };
        assert_eq!(index().ranks(&names), index().ranks(&files));
        let test = Focus { files: vec!["test_a.py".into()], ..Focus::default() };
        let ranks = index().ranks(&test);
        assert!(ranks[0] > ranks[1], "what the test uses gains: {ranks:?}");
    }

    #[test]
    fn nothing_is_ranked_without_a_panic() {
        assert_eq!(SymbolIndex::default().ranks(&Focus::default()), Vec::<f64>::new());
        let mut index = SymbolIndex::default();
        index.update("notes.txt", b"");
        assert_eq!(index.ranks(&Focus { files: vec!["gone".into()], names: vec!["gone".into()] }), [1.0]);
    }
}

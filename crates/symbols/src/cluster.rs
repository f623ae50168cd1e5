//! [`SymbolIndex::clusters`]: groups of files that belong together. Reference cycles come first;
//! label propagation groups the rest.

use std::collections::BTreeMap;

use crate::index::SymbolIndex;

/// A reference cycle of more files than this is no useful cluster; it is left to label propagation.
const MAX_CYCLE_FILES: usize = 24;
/// Labels settle within a few rounds, or oscillate for ever.
const MAX_ROUNDS: usize = 8;

impl SymbolIndex {
    /// Groups the files that belong together. Each group is sorted, the groups are sorted by their
    /// first file, and a file without references is a group of its own. The same index gives the
    /// same groups.
    pub fn clusters(&self) -> Vec<Vec<&str>> {
        let graph = Graph::from_index(self);
        let mut labels: Vec<usize> = (0..graph.edges.len()).collect();
        let mut settled = vec![false; labels.len()];
        for cycle in graph.cycles() {
            if (2..=MAX_CYCLE_FILES).contains(&cycle.len()) {
                let label = cycle.iter().copied().min().unwrap_or_default();
                for file in cycle {
                    (labels[file], settled[file]) = (label, true);
                }
            }
        }
        graph.spread_labels(&mut labels, &settled);
        let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (path, label) in self.paths().zip(labels) {
            groups.entry(label).or_default().push(path);
        }
        let mut groups: Vec<Vec<&str>> = groups.into_values().collect();
        groups.sort_unstable();
        groups
    }
}

/// The references between files; a file is its position in path order.
struct Graph {
    edges: Vec<Vec<(usize, u64)>>,
}

impl Graph {
    fn from_index(index: &SymbolIndex) -> Self {
        let mut place = vec![0; index.capacity()];
        for (at, (id, _)) in index.files_by_path().enumerate() {
            place[id as usize] = at;
        }
        let edges = index.files_by_path().map(|(id, _)| {
            let mut edges: Vec<(usize, u64)> =
                index.edges_of(id).iter().map(|edge| (place[edge.to as usize], edge.weight)).collect();
            edges.sort_unstable();
            edges
        });
        Self { edges: edges.collect() }
    }

    /// The strongly connected components, by Tarjan's algorithm with an explicit stack: a chain of
    /// references may be long.
    fn cycles(&self) -> Vec<Vec<usize>> {
        const NEW: usize = usize::MAX;
        let count = self.edges.len();
        let (mut number, mut low, mut on_stack) = (vec![NEW; count], vec![0; count], vec![false; count]);
        let (mut next, mut stack, mut cycles) = (0, Vec::new(), Vec::new());
        for root in 0..count {
            let mut path: Vec<(usize, usize)> = Vec::new();
            if number[root] == NEW {
                path.push((root, 0));
            }
            while let Some((file, step)) = path.pop() {
                if step == 0 {
                    (number[file], low[file], on_stack[file]) = (next, next, true);
                    next += 1;
                    stack.push(file);
                } else {
                    // Back from the file that the previous step visited.
                    low[file] = low[file].min(low[self.edges[file][step - 1].0]);
                }
                let mut at = step;
                let mut down = None;
                while let Some((to, _)) = self.edges[file].get(at) {
                    at += 1;
                    if number[*to] == NEW {
                        down = Some(*to);
                        break;
                    }
                    if on_stack[*to] {
                        low[file] = low[file].min(number[*to]);
                    }
                }
                if let Some(to) = down {
                    path.push((file, at));
                    path.push((to, 0));
                } else if low[file] == number[file] {
                    let start = stack.iter().rposition(|other| *other == file).unwrap_or_default();
                    let cycle = stack.split_off(start);
                    cycle.iter().for_each(|file| on_stack[*file] = false);
                    cycles.push(cycle);
                }
            }
        }
        cycles
    }

    /// Every file that is not settled takes the label with the most references, in either
    /// direction; ties go to the smaller label. Rounds run in path order.
    fn spread_labels(&self, labels: &mut [usize], settled: &[bool]) {
        let mut neighbours: Vec<Vec<(usize, u64)>> = self.edges.clone();
        for (from, edges) in self.edges.iter().enumerate() {
            for (to, weight) in edges {
                neighbours[*to].push((from, *weight));
            }
        }
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for file in 0..labels.len() {
                if settled[file] {
                    continue;
                }
                let mut votes: BTreeMap<usize, u64> = BTreeMap::new();
                for (other, weight) in &neighbours[file] {
                    *votes.entry(labels[*other]).or_default() += weight;
                }
                let best = votes.into_iter().max_by_key(|(label, votes)| (*votes, std::cmp::Reverse(*label)));
                if let Some((label, _)) = best
                    && label != labels[file]
                {
                    labels[file] = label;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_clusters_and_strangers_stay_alone() {
        let mut index = SymbolIndex::default();
        index.update("a.py", b"from b import bb\ndef aa(): bb()");
        index.update("b.py", b"from a import aa\ndef bb(): aa()");
        index.update("c.py", b"def cc(): ...");
        index.update("d.py", b"from e import ee\nee()");
        index.update("e.py", b"def ee(): ...");
        assert_eq!(index.clusters(), [vec!["a.py", "b.py"], vec!["c.py"], vec!["d.py", "e.py"]]);
        assert!(SymbolIndex::default().clusters().is_empty());
    }

    #[test]
    fn a_long_chain_is_no_danger() {
        let mut index = SymbolIndex::default();
        let paths: Vec<String> = (0..3000).map(|n| format!("m{n}.py")).collect();
        let read = |path: &str, _| {
            let n: usize = path[1..path.len() - 3].parse().unwrap();
            crate::FileSource::Content(format!("import m{}\n", (n + 1) % 3000).into_bytes())
        };
        index.add_files(&paths, read, |_| ());
        assert_eq!(index.clusters().iter().map(Vec::len).sum::<usize>(), 3000);
    }
}

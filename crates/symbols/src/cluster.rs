//! Files that change together: circles of references first, communities where those say nothing.

use std::collections::BTreeMap;

use crate::index::Index;

/// A circle of more files than this is a tangle, not a cluster; it is cut into communities.
const TANGLE: usize = 24;
/// Labels settle in a few rounds or go round in circles.
const ROUNDS: usize = 8;

impl Index {
    /// The files in groups that belong together, each sorted, sorted by their first; a file that belongs to nobody is a
    /// group of its own. The same index gives the same groups.
    pub fn clusters(&self) -> Vec<Vec<&str>> {
        let graph = Graph::of(self);
        let mut labels: Vec<usize> = (0..graph.leads.len()).collect();
        let mut settled = vec![false; labels.len()];
        for circle in graph.circles() {
            if (2..=TANGLE).contains(&circle.len()) {
                let label = circle.iter().copied().min().unwrap_or_default();
                for file in circle {
                    (labels[file], settled[file]) = (label, true);
                }
            }
        }
        graph.spread(&mut labels, &settled);
        let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for (path, label) in self.paths().zip(labels) {
            groups.entry(label).or_default().push(path);
        }
        let mut groups: Vec<Vec<&str>> = groups.into_values().collect();
        groups.sort_unstable();
        groups
    }
}

/// The references, by place in the order of the paths.
struct Graph {
    leads: Vec<Vec<(usize, u64)>>,
}

impl Graph {
    fn of(index: &Index) -> Self {
        let mut place = vec![0; index.capacity()];
        for (at, (id, _)) in index.in_order().enumerate() {
            place[id as usize] = at;
        }
        let leads = index.in_order().map(|(id, _)| {
            let mut leads: Vec<(usize, u64)> =
                index.edges_of(id).iter().map(|edge| (place[edge.to as usize], edge.weight)).collect();
            leads.sort_unstable();
            leads
        });
        Self { leads: leads.collect() }
    }

    /// The strongly connected parts, by Tarjan's algorithm with a stack of its own: a chain of references may be long.
    fn circles(&self) -> Vec<Vec<usize>> {
        const NEW: usize = usize::MAX;
        let count = self.leads.len();
        let (mut number, mut low, mut open) = (vec![NEW; count], vec![0; count], vec![false; count]);
        let (mut next, mut stack, mut circles) = (0, Vec::new(), Vec::new());
        for root in 0..count {
            let mut way: Vec<(usize, usize)> = Vec::new();
            if number[root] == NEW {
                way.push((root, 0));
            }
            while let Some((file, step)) = way.pop() {
                if step == 0 {
                    (number[file], low[file], open[file]) = (next, next, true);
                    next += 1;
                    stack.push(file);
                } else {
                    // Back from the file that the last step led to.
                    low[file] = low[file].min(low[self.leads[file][step - 1].0]);
                }
                let mut at = step;
                let mut down = None;
                while let Some((to, _)) = self.leads[file].get(at) {
                    at += 1;
                    if number[*to] == NEW {
                        down = Some(*to);
                        break;
                    }
                    if open[*to] {
                        low[file] = low[file].min(number[*to]);
                    }
                }
                if let Some(to) = down {
                    way.push((file, at));
                    way.push((to, 0));
                } else if low[file] == number[file] {
                    let start = stack.iter().rposition(|other| *other == file).unwrap_or_default();
                    let circle = stack.split_off(start);
                    circle.iter().for_each(|file| open[*file] = false);
                    circles.push(circle);
                }
            }
        }
        circles
    }

    /// Every file that is not settled takes the label that most of its references, either way, have; ties go to the
    /// smaller label. Rounds run in the order of the paths.
    fn spread(&self, labels: &mut [usize], settled: &[bool]) {
        let mut near: Vec<Vec<(usize, u64)>> = self.leads.clone();
        for (from, leads) in self.leads.iter().enumerate() {
            for (to, weight) in leads {
                near[*to].push((from, *weight));
            }
        }
        for _ in 0..ROUNDS {
            let mut changed = false;
            for file in 0..labels.len() {
                if settled[file] {
                    continue;
                }
                let mut votes: BTreeMap<usize, u64> = BTreeMap::new();
                for (other, weight) in &near[file] {
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
        let mut index = Index::default();
        index.update("a.py", b"from b import bb\ndef aa(): bb()");
        index.update("b.py", b"from a import aa\ndef bb(): aa()");
        index.update("c.py", b"def cc(): ...");
        index.update("d.py", b"from e import ee\nee()");
        index.update("e.py", b"def ee(): ...");
        assert_eq!(index.clusters(), [vec!["a.py", "b.py"], vec!["c.py"], vec!["d.py", "e.py"]]);
        assert!(Index::default().clusters().is_empty());
    }

    #[test]
    fn a_long_chain_is_no_danger() {
        let mut index = Index::default();
        let paths: Vec<String> = (0..3000).map(|n| format!("m{n}.py")).collect();
        let read = |path: &str, _| {
            let n: usize = path[1..path.len() - 3].parse().unwrap();
            crate::Source::Content(format!("import m{}\n", (n + 1) % 3000).into_bytes())
        };
        index.fill(&paths, read, |_| ());
        assert_eq!(index.clusters().iter().map(Vec::len).sum::<usize>(), 3000);
    }
}

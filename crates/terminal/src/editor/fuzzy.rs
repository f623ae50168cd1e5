//! [`FuzzyList`]: the best matches of a few letters in many names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32String};

/// How good a match is: its score, then the shorter name, then the earlier one.
type Rank = (u32, Reverse<usize>, Reverse<usize>);

/// Names that can be searched as they are typed.
#[derive(Clone, Debug, Default)]
pub struct FuzzyList {
    names: Vec<FuzzyName>,
}

#[derive(Clone, Debug)]
struct FuzzyName {
    name: Utf32String,
    /// A bit for each letter and digit of the name: most names miss one of the query and need no
    /// closer look.
    letters: u64,
}

impl FuzzyList {
    /// A list of names, in an order that decides between equal matches.
    pub fn new<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Self {
        let name = |name: T| FuzzyName { letters: letters(name.as_ref()), name: name.as_ref().into() };
        FuzzyList { names: names.into_iter().map(name).collect() }
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// A name by its index.
    pub fn name(&self, index: usize) -> Option<String> {
        self.names.get(index).map(|known| known.name.to_string())
    }

    /// Indexes of the names that match best, the best first. Without a query, the first names.
    pub fn best(&self, query: &str, limit: usize) -> Vec<usize> {
        if query.is_empty() || limit == 0 {
            return (0..self.names.len().min(limit)).collect();
        }
        let wanted = letters(query);
        let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        // The worst of the best is on top, to be replaced.
        let mut best: BinaryHeap<Reverse<Rank>> = BinaryHeap::new();
        for (index, known) in self.names.iter().enumerate() {
            if known.letters & wanted != wanted {
                continue;
            }
            let Some(score) = pattern.score(known.name.slice(..), &mut matcher) else { continue };
            // Of equal matches the shorter name is meant.
            let rank = (score, Reverse(known.name.len()), Reverse(index));
            if best.len() < limit {
                best.push(Reverse(rank));
            } else if best.peek().is_some_and(|Reverse(worst)| *worst < rank) {
                best.pop();
                best.push(Reverse(rank));
            }
        }
        best.into_sorted_vec().into_iter().map(|Reverse((_, _, Reverse(index)))| index).collect()
    }
}

/// A bit for each ASCII letter and digit. Others are left to the matcher: it may take `é` for `e`,
/// so a name with such letters counts as having all.
fn letters(text: &str) -> u64 {
    let mut found = 0;
    for c in text.bytes() {
        found |= match c.to_ascii_lowercase() {
            letter @ b'a'..=b'z' => 1 << (letter - b'a'),
            digit @ b'0'..=b'9' => 1 << (26 + digit - b'0'),
            0x80.. => return ALL_LETTERS,
            _ => 0,
        };
    }
    found
}

const ALL_LETTERS: u64 = (1 << 36) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str], query: &str) -> Vec<String> {
        let list = FuzzyList::new(names);
        list.best(query, 8).into_iter().filter_map(|index| list.name(index)).collect()
    }

    #[test]
    fn the_closest_name_comes_first() {
        let names = ["src/context/fuzzy_match.rs", "src/fuzzy.rs", "docs/fuzzy.md", "src/main.rs"];
        assert_eq!(found(&names, "fuzzy.rs")[0], "src/fuzzy.rs");
        assert_eq!(found(&names, "sfuz")[0], "src/fuzzy.rs");
        assert_eq!(found(&names, "zzz"), Vec::<String>::new());
        assert_eq!(found(&names, "").len(), 4);
    }

    #[test]
    fn letters_with_accents_are_found_with_and_without_them() {
        assert_eq!(found(&["notes/café.md"], "cafe"), ["notes/café.md"]);
    }

    #[test]
    fn a_few_letters_find_the_same_in_a_long_list_as_the_matcher_does() {
        let names: Vec<String> =
            (0..3000).map(|n| format!("crates/part{}/src/module{}/file{n}.rs", n % 13, n % 97)).collect();
        let list = FuzzyList::new(&names);
        let pattern = Pattern::parse("p7m5f2", CaseMatching::Smart, Normalization::Smart);
        let mut all = pattern.match_list(&names, &mut Matcher::new(Config::DEFAULT.match_paths()));
        all.sort_by_key(|(name, score)| (Reverse(*score), name.len()));
        let best = list.best("p7m5f2", 8);
        assert_eq!(best.len(), 8);
        for (at, index) in best.into_iter().enumerate() {
            assert_eq!((list.name(index).unwrap().len(), at < all.len()), (all[at].0.len(), true));
        }
    }

    /// Prints how long a hundred thousand names take: `cargo test --release … -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement"]
    fn measure_a_hundred_thousand_names() {
        let names: Vec<String> = (0..100_000)
            .map(|n| format!("packages/module{}/src/components/part{}/widget_{n}.tsx", n % 211, n % 1009))
            .collect();
        let list = FuzzyList::new(&names);
        for query in ["w", "wid", "pack99", "mod7part5wid", "xyz"] {
            #[expect(clippy::disallowed_methods, reason = "a measurement")]
            let started = std::time::Instant::now();
            let found = list.best(query, 8).len();
            println!("{query}: {found} in {:?}", started.elapsed());
        }
    }
}

//! [`LineRanges`]: a set of lines of a file.

use serde::{Deserialize, Serialize};

/// A set of lines, counted from 1: sorted ranges, first and last line included, with a gap between
/// any two.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct LineRanges(Vec<(u64, u64)>);

impl LineRanges {
    /// The lines from `first` to `last`; none if `last` comes before `first`. There is no line 0.
    pub fn span(first: u64, last: u64) -> Self {
        let first = first.max(1);
        LineRanges(if first <= last { vec![(first, last)] } else { Vec::new() })
    }

    /// All lines of a file that has this many.
    pub fn all(lines: u64) -> Self {
        LineRanges::span(1, lines)
    }

    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, in order, as first and last line.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// Adds lines.
    pub fn add(&mut self, other: &LineRanges) {
        let mut all = [self.0.as_slice(), &other.0].concat();
        all.sort_unstable();
        self.0.clear();
        for (first, last) in all {
            match self.0.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => self.0.push((first, last)),
            }
        }
    }

    /// Takes lines away.
    pub fn remove(&mut self, other: &LineRanges) {
        for (from, to) in other.iter() {
            let cut = |(first, last): (u64, u64)| {
                let before = LineRanges::span(first, last.min(from - 1));
                let after = to.checked_add(1).map(|next| LineRanges::span(first.max(next), last));
                before.0.into_iter().chain(after.unwrap_or_default().0)
            };
            self.0 = std::mem::take(&mut self.0).into_iter().flat_map(cut).collect();
        }
    }

    /// Whether all lines of `other` are in this set.
    pub fn covers(&self, other: &LineRanges) -> bool {
        let mut rest = other.clone();
        rest.remove(self);
        rest.is_empty()
    }
}

impl From<Vec<(u64, u64)>> for LineRanges {
    /// Takes ranges in any order and form, such as those of a file that somebody edited.
    fn from(ranges: Vec<(u64, u64)>) -> Self {
        let mut all = LineRanges::default();
        for (first, last) in ranges {
            all.add(&LineRanges::span(first, last));
        }
        all
    }
}

impl From<LineRanges> for Vec<(u64, u64)> {
    fn from(ranges: LineRanges) -> Self {
        ranges.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn lines(ranges: &LineRanges) -> BTreeSet<u64> {
        ranges.iter().flat_map(|(first, last)| first..=last).collect()
    }

    fn some_ranges() -> impl Strategy<Value = LineRanges> {
        prop::collection::vec((0..20_u64, 0..20_u64), 0..6).prop_map(LineRanges::from)
    }

    #[test]
    fn the_last_number_is_a_line_like_any_other() {
        let mut ranges = LineRanges::span(0, u64::MAX);
        ranges.remove(&LineRanges::span(3, u64::MAX));
        assert_eq!(ranges, LineRanges::span(1, 2));
        ranges.add(&LineRanges::span(3, u64::MAX));
        assert_eq!(ranges, LineRanges::span(1, u64::MAX));
    }

    proptest! {
        #[test]
        fn ranges_are_sets_of_lines(one in some_ranges(), other in some_ranges()) {
            let (of_one, of_other) = (lines(&one), lines(&other));
            let (mut sum, mut rest) = (one.clone(), one.clone());
            sum.add(&other);
            rest.remove(&other);
            prop_assert_eq!(lines(&sum), &of_one | &of_other);
            prop_assert_eq!(lines(&rest), &of_one - &of_other);
            prop_assert_eq!(one.covers(&other), of_one.is_superset(&of_other));
            for ranges in [sum, rest] {
                // One set has one form, so that equal sets are equal values.
                let gaps = ranges.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
                prop_assert!(gaps && ranges.iter().all(|(first, last)| 1 <= first && first <= last));
                let written = serde_json::to_string(&ranges).unwrap();
                prop_assert_eq!(serde_json::from_str::<LineRanges>(&written).unwrap(), ranges);
            }
        }
    }
}

//! [`Random`]: numbers that depend on the seed alone (SplitMix64).

use std::ops::RangeInclusive;

/// A source of numbers. The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(1))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in this range.
    pub fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        let span = range.end() - range.start() + 1;
        range.start() + (self.next() % span as u64) as usize
    }

    /// True in this many of a hundred cases.
    pub fn percent(&mut self, share: usize) -> bool {
        self.within(0..=99) < share
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.within(0..=choices.len() - 1)]
    }

    /// The position of a choice, the more probable the higher its weight.
    pub fn weighted<T: Copy>(&mut self, choices: &[(usize, T)]) -> T {
        let mut left = self.within(0..=choices.iter().map(|(weight, _)| weight).sum::<usize>() - 1);
        for (weight, choice) in choices {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *choice,
            }
        }
        choices[choices.len() - 1].1
    }
}

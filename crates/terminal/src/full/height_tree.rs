//! [`HeightTree`]: the heights of all blocks and the sums of them, as a Fenwick tree.

/// The rows of each block, with the rows before any of them in logarithmic time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeightTree {
    heights: Vec<usize>,
    /// At index `i`, counted from 1, the sum of as many heights up to `i` as its lowest bit says.
    sums: Vec<usize>,
}

/// The lowest bit that is set.
fn lowest_bit(number: usize) -> usize {
    number & number.wrapping_neg()
}

impl HeightTree {
    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.heights.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.heights.is_empty()
    }

    /// Adds a block at the end.
    pub fn push(&mut self, height: usize) {
        self.heights.push(height);
        let index = self.heights.len();
        let first = index - lowest_bit(index);
        let mut sum = height;
        let mut below = index - 1;
        while below > first {
            sum += self.sums[below - 1];
            below -= lowest_bit(below);
        }
        self.sums.push(sum);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.heights.clear();
        self.sums.clear();
    }

    /// Changes the height of a block.
    pub fn set(&mut self, block: usize, height: usize) {
        let before = std::mem::replace(&mut self.heights[block], height);
        if before == height {
            return;
        }
        let mut index = block + 1;
        while index <= self.sums.len() {
            self.sums[index - 1] = self.sums[index - 1] + height - before;
            index += lowest_bit(index);
        }
    }

    /// The height of a block.
    pub fn height(&self, block: usize) -> usize {
        self.heights[block]
    }

    /// The rows of all blocks before this one.
    pub fn rows_before(&self, block: usize) -> usize {
        let mut index = block.min(self.sums.len());
        let mut sum = 0;
        while index > 0 {
            sum += self.sums[index - 1];
            index -= lowest_bit(index);
        }
        sum
    }

    /// The rows of all blocks.
    pub fn total(&self) -> usize {
        self.rows_before(self.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sums_are_those_of_a_list(
            heights in prop::collection::vec(0_usize..50, 1..200),
            changes in prop::collection::vec((0_usize..200, 0_usize..50), 0..50),
        ) {
            let mut tree = HeightTree::default();
            heights.iter().for_each(|height| tree.push(*height));
            let mut list = heights.clone();
            for (block, height) in changes {
                let block = block % list.len();
                tree.set(block, height);
                list[block] = height;
            }
            for block in 0..=list.len() {
                prop_assert_eq!(tree.rows_before(block), list[..block].iter().sum::<usize>());
            }
            prop_assert_eq!(tree.total(), list.iter().sum::<usize>());
        }
    }
}

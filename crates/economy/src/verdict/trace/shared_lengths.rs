//! [`SharedLengths`]: splitting a trace's lists into what the previous trace has already and the
//! rest.

use serde::{Deserialize, Serialize};

use super::{PieceOrigin, ReusableTrace, Trace, TraceBlock, TracePiece};

/// How much of the beginning of each list two traces share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedLengths {
    pub blocks: usize,
    pieces: usize,
    origins: usize,
}

impl Trace {
    /// How much both traces share; slightly different counts are accepted as the same.
    pub fn shared_lengths(&self, other: &Trace) -> SharedLengths {
        fn same<T>(ours: &[T], theirs: &[T], is_same: impl Fn(&T, &T) -> bool) -> usize {
            ours.iter().zip(theirs).take_while(|(ours, theirs)| is_same(ours, theirs)).count()
        }
        SharedLengths {
            blocks: same(&self.blocks, &other.blocks, TraceBlock::eq),
            pieces: same(&self.pieces, &other.pieces, TracePiece::is_about),
            origins: same(&self.origins, &other.origins, PieceOrigin::eq),
        }
    }

    /// Whether the lists' lengths and indexes fit together.
    pub fn is_sound(&self) -> bool {
        let pieces: usize = self.blocks.iter().map(|block| block.1 as usize).sum();
        pieces == self.pieces.len()
            && self.tools.saturating_add(self.system) <= self.blocks.len()
            && self.pieces.iter().all(|piece| (piece.2 as usize) < self.origins.len())
    }

    /// A copy without the beginnings of the lists.
    pub fn without_first(&self, SharedLengths { blocks, pieces, origins }: &SharedLengths) -> Self {
        Trace {
            provider: self.provider.clone(),
            model: self.model.clone(),
            settings: self.settings.clone(),
            listed: self.listed.clone(),
            blocks: self.blocks[*blocks..].to_vec(),
            pieces: self.pieces[*pieces..].to_vec(),
            origins: self.origins[*origins..].to_vec(),
            known: ReusableTrace::default(),
            ..*self
        }
    }

    /// Prepends the beginnings of another trace's lists. `None`: the other lists are too short.
    pub fn prepend(
        &mut self,
        other: &Trace,
        SharedLengths { blocks, pieces, origins }: &SharedLengths,
    ) -> Option<()> {
        let starts =
            (other.blocks.get(..*blocks)?, other.pieces.get(..*pieces)?, other.origins.get(..*origins)?);
        self.blocks.splice(..0, starts.0.iter().copied());
        self.pieces.splice(..0, starts.1.iter().copied());
        self.origins.splice(..0, starts.2.iter().cloned());
        Some(())
    }
}

impl TracePiece {
    /// Whether text and origin are the same and the counts differ by about 2% at most.
    fn is_about(&self, other: &TracePiece) -> bool {
        let most = 1 + self.1 / 50;
        self.0 == other.0 && self.2 == other.2 && self.1.abs_diff(other.1) <= most
    }
}

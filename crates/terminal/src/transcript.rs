//! [`Transcript`]: the conversation as blocks of source, from which the page prints its lines and the
//! full screen makes its rows, both with [`BlockSource::lines`].

mod block_source; // BlockSource: what a block is made of
mod folding; // the same with a part of it folded away

pub use block_source::{BlockSource, CallRecord};
pub use folding::FOLDED_TAIL;

use crate::model::BlockKind;

/// A part of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptBlock {
    /// What it is, for the blank lines around it.
    pub kind: BlockKind,
    /// What it is made of.
    pub source: BlockSource,
    /// A blank line stands before it, whatever kind the block before is.
    pub begins_apart: bool,
}

/// The conversation as it was said. Blocks are only added; the last answer may grow.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    blocks: Vec<TranscriptBlock>,
    /// The answer that still grows.
    open_answer: Option<usize>,
    /// The next block begins apart.
    is_ended: bool,
    /// Counts how often another conversation took the place of this one.
    generation: usize,
}

impl Transcript {
    /// Puts what was said earlier in another conversation in the place of this one.
    pub fn replace(&mut self, blocks: impl IntoIterator<Item = (BlockKind, BlockSource)>) {
        *self = Transcript { generation: self.generation + 1, ..Transcript::default() };
        for (kind, source) in blocks {
            self.push(kind, source);
            if kind == BlockKind::Answer {
                self.end_block();
            }
        }
    }

    /// Counts how often [`replace`](Transcript::replace) was called.
    pub fn generation(&self) -> usize {
        self.generation
    }

    /// Adds a block, unless nothing is in it.
    pub fn push(&mut self, kind: BlockKind, source: BlockSource) {
        if !source.is_empty() {
            let begins_apart = std::mem::take(&mut self.is_ended);
            self.blocks.push(TranscriptBlock { kind, source, begins_apart });
        }
    }

    /// Adds text to the answer, which begins with it if none is open.
    pub fn push_answer(&mut self, text: &str) {
        if let Some(index) = self.open_answer
            && let BlockSource::Answer(answer) = &mut self.blocks[index].source
        {
            answer.push_str(text);
            return;
        }
        self.end_block();
        let begins_apart = std::mem::take(&mut self.is_ended);
        let source = BlockSource::Answer(text.to_owned());
        self.open_answer = Some(self.blocks.len());
        self.blocks.push(TranscriptBlock { kind: BlockKind::Answer, source, begins_apart });
    }

    /// The answer is complete. False if none was open.
    pub fn finish_answer(&mut self) -> bool {
        let was_open = self.open_answer.take().is_some();
        if was_open {
            self.end_block();
        }
        was_open
    }

    /// What follows is separated, even if it is of the same kind.
    pub fn end_block(&mut self) {
        self.is_ended = true;
    }

    /// Whether what follows is separated.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The answer that still grows.
    pub fn open_answer(&self) -> Option<usize> {
        self.open_answer
    }

    /// All blocks.
    pub fn blocks(&self) -> &[TranscriptBlock] {
        &self.blocks
    }

    /// Whether a blank row stands before a block.
    pub fn has_blank_before(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1).and_then(|before| self.blocks.get(before)) else {
            return false;
        };
        let block = &self.blocks[index];
        let joins = before.kind == block.kind && block.kind != BlockKind::Text && !block.begins_apart;
        !joins && !before.source.ends_blank()
    }

    /// The last block that is a call of a tool.
    pub fn last_call(&self) -> Option<usize> {
        self.blocks.iter().rposition(|block| matches!(block.source, BlockSource::Call(_)))
    }
}

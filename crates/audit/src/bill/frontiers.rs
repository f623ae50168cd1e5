//! Where requests ended what they left in the cache, on the tree of the conversation.
//!
//! The cache model of `hardpan_economy` hashes every block of every request. A recording needs none of that: a request's
//! blocks are the way from the root of the conversation to its leaf, so an entry is a prefix of a request if its node
//! lies on that way. Finding the nearest one takes a few steps, whatever the length of the conversation.

use hardpan_economy::cache::Moment;

use crate::{Piece, Recording, Said};

/// Clocks differ by seconds, and where only the end of a request is recorded its start is guessed.
const GRACE_MS: i64 = 10_000;

/// Bytes of text to a token, nearly: only where no bill tells.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// What the cache keeps apart, besides the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// Whom the request went to.
    pub whom: usize,
    /// Compactions before it: what was cached before one is no prefix of what comes after.
    pub era: usize,
    /// Whether there is an image.
    pub images: bool,
    /// How far the model was to think, by number; none where it does not count, or is not recorded.
    pub thinking: Option<usize>,
    /// The same as the agent calls it: two of its levels can be one to the model.
    pub level: Option<usize>,
}

impl Kept {
    /// Whether the two share a cache, as far as is known.
    pub fn meets(&self, other: &Kept) -> bool {
        let Kept { whom, era, images, thinking, level: _ } = *self;
        let same_thinking = thinking.is_none() || other.thinking.is_none() || thinking == other.thinking;
        (whom, era, images) == (other.whom, other.era, other.images) && same_thinking
    }
}

/// Where a request ended what it left in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frontier {
    pub kept: Kept,
    /// What it left there, in tokens.
    pub tokens: u64,
    /// All tokens of its prompt.
    pub prompt: u64,
    /// When it was written or read last, by the start of the request.
    pub used: Moment,
    /// When the answer of the request that wrote it ended.
    pub ended: Moment,
    /// How long it lives unused, in milliseconds; none where it has no end.
    pub lifetime_ms: Option<i64>,
    /// Its request's last entry.
    pub node: usize,
    /// The former frontier at the same node.
    older: Option<usize>,
    /// The nearest node above with a frontier.
    above: Option<usize>,
}

impl Frontier {
    /// Whether it can be read at this moment, if prefixes are known to live at least so long.
    pub fn is_warm(&self, at: Moment, at_least_ms: i64) -> bool {
        self.lifetime_ms.is_none_or(|lifetime| at.since(self.used) <= (lifetime + GRACE_MS).max(at_least_ms))
    }
}

/// All frontiers of a recording so far.
#[derive(Default)]
pub(super) struct Frontiers {
    all: Vec<Frontier>,
    /// The newest frontier at each node. Node 0 is the beginning, an entry's node is its index + 1.
    at: Vec<Option<usize>>,
    parents: Vec<usize>,
}

/// The node of a request whose last entry is this.
pub(super) fn node(leaf: Option<usize>) -> usize {
    leaf.map_or(0, |entry| entry + 1)
}

impl Frontiers {
    pub fn new(recording: &Recording) -> Self {
        let parents = std::iter::once(0).chain(recording.entries.iter().map(|entry| node(entry.parent)));
        Frontiers { all: Vec::new(), at: vec![None; recording.entries.len() + 1], parents: parents.collect() }
    }

    /// The frontiers on the way from a node back to the beginning, the nearest first.
    fn way(&self, from: usize) -> impl Iterator<Item = usize> {
        let mut next = self.nearest(from);
        std::iter::from_fn(move || {
            let found = next?;
            let frontier = &self.all[found];
            next = frontier.older.or_else(|| frontier.above.and_then(|node| self.at[node]));
            Some(found)
        })
    }

    fn nearest(&self, from: usize) -> Option<usize> {
        let mut node = from;
        while self.at[node].is_none() && node != 0 {
            node = self.parents[node];
        }
        self.at[node]
    }

    /// The nearest frontier, readable or not.
    pub fn last(&self, from: usize) -> Option<&Frontier> {
        self.nearest(from).map(|found| &self.all[found])
    }

    /// The nearest one that can be read.
    pub fn readable(&self, from: usize, kept: &Kept, at: Moment, at_least_ms: i64) -> Option<&Frontier> {
        let found = self.way(from).map(|found| &self.all[found]);
        let mut readable = found.filter(|frontier| frontier.tokens > 0 && frontier.kept.meets(kept));
        readable.find(|frontier| frontier.is_warm(at, at_least_ms))
    }

    /// The nearest one before the last that can be read: what a request finds while the one before it is unanswered.
    pub fn readable_before(
        &self,
        from: usize,
        kept: &Kept,
        at: Moment,
        at_least_ms: i64,
    ) -> Option<&Frontier> {
        let found = self.way(from).skip(1).map(|found| &self.all[found]);
        let mut readable = found.filter(|frontier| frontier.tokens > 0 && frontier.kept.meets(kept));
        readable.find(|frontier| frontier.is_warm(at, at_least_ms))
    }

    /// A request used what was readable, and left its own.
    pub fn leave(&mut self, from: usize, frontier: Frontier, at_least_ms: i64) {
        let Frontier { kept, used, .. } = &frontier;
        let warm: Vec<usize> = self
            .way(from)
            .filter(|found| self.all[*found].kept.meets(kept) && self.all[*found].is_warm(*used, at_least_ms))
            .collect();
        let used = *used;
        for found in warm {
            self.all[found].used = self.all[found].used.max(used);
        }
        let above = self.nearest(from).map(|found| self.all[found].node);
        let is_same = above == Some(from);
        let older = self.at[from];
        let above = if is_same { older.and_then(|older| self.all[older].above) } else { above };
        self.at[from] = Some(self.all.len());
        self.all.push(Frontier { node: from, older, above, ..frontier });
    }

    /// A request that nobody billed lived long enough to have written: the nearest frontier was used, or written anew.
    pub fn touch(&mut self, from: usize, whom: usize, at: Moment) {
        let found = self.way(from).find(|found| self.all[*found].kept.whom == whom);
        if let Some(found) = found {
            self.all[found].used = self.all[found].used.max(at);
        }
    }
}

impl Frontier {
    pub fn new(
        kept: Kept,
        tokens: u64,
        prompt: u64,
        used: Moment,
        ended: Moment,
        lifetime_ms: Option<i64>,
    ) -> Self {
        Frontier { kept, tokens, prompt, used, ended, lifetime_ms, node: 0, older: None, above: None }
    }
}

/// What is known of each node without looking back.
pub(super) struct Nodes {
    /// Compactions on the way.
    pub era: Vec<usize>,
    /// The size of the last summary, nearly, in tokens.
    pub summary: Vec<u64>,
    /// Whether there is an image since the last compaction.
    pub images: Vec<bool>,
    /// Whether there is reasoning, which providers and agents leave out again.
    pub reasoning: Vec<bool>,
    /// Pieces on the way: the blocks of the request, nearly.
    pub blocks: Vec<usize>,
}

impl Nodes {
    pub fn of(recording: &Recording) -> Self {
        let mut nodes = Nodes {
            era: vec![0],
            summary: vec![0],
            images: vec![false],
            reasoning: vec![false],
            blocks: vec![0],
        };
        for entry in &recording.entries {
            let above = node(entry.parent);
            let pieces: &[Piece] = match &entry.said {
                Said::Compaction { .. } => &[],
                Said::Message { pieces, .. } => pieces,
            };
            let is_compaction = matches!(entry.said, Said::Compaction { .. });
            let kept = |flags: &[bool]| flags[above] && !is_compaction;
            let thinks = |piece: &Piece| matches!(piece, Piece::Reasoning(_));
            nodes.summary.push(match &entry.said {
                Said::Compaction { summary, .. } => summary.len() as u64 / BYTES_PER_TOKEN,
                Said::Message { .. } => nodes.summary[above],
            });
            nodes.era.push(nodes.era[above] + usize::from(is_compaction));
            nodes.images.push(kept(&nodes.images) || pieces.iter().any(has_image));
            nodes.reasoning.push(kept(&nodes.reasoning) || pieces.iter().any(thinks));
            nodes.blocks.push(nodes.blocks[above] + pieces.len().max(usize::from(is_compaction)));
        }
        nodes
    }
}

fn has_image(piece: &Piece) -> bool {
    match piece {
        Piece::Image { .. } => true,
        Piece::Result(result) => result.images > 0,
        Piece::Text(_) | Piece::Reasoning(_) | Piece::Call(_) => false,
    }
}

//! [`Frontiers`]: how far each request is cached, on the tree of the conversation.
//!
//! The cache model of `hardpan_economy` hashes every block of every request. A recording needs none
//! of that: the blocks of a request are the path from the root of the conversation to its leaf, so
//! a cache entry is a prefix of a request if its node lies on that path. Finding the nearest one
//! takes a few steps, however long the conversation is.

use hardpan_economy::cache::Moment;

use crate::{EntryContent, RecordedPart, Recording};

/// How much longer than its lifetime an entry may live, in milliseconds: clocks differ by seconds,
/// and the start of some requests is only estimated.
const GRACE_MS: i64 = 10_000;

/// A rough number of bytes per token, for texts that no bill counts.
pub(super) const BYTES_PER_TOKEN: u64 = 4;

/// What separates caches, besides the blocks: requests with different keys do not read each other's
/// entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheKey {
    /// Index of the [`ProviderModel`](super::provider_model::ProviderModel).
    pub model: usize,
    /// How many compactions came before: nothing cached before one is a prefix of what comes after.
    pub compactions: usize,
    /// Whether the request contains an image.
    pub images: bool,
    /// Number of the thinking level as the provider sees it. `None` where it does not matter or is
    /// not recorded.
    pub thinking: Option<usize>,
    /// Number of the thinking level as the agent names it: two of its levels can be one to the
    /// provider.
    pub level: Option<usize>,
}

impl CacheKey {
    /// Whether requests with these keys can read each other's entries, as far as is known.
    pub fn shares_cache_with(&self, other: &CacheKey) -> bool {
        let CacheKey { model, compactions, images, thinking, level: _ } = *self;
        let same_thinking = thinking.is_none() || other.thinking.is_none() || thinking == other.thinking;
        (model, compactions, images) == (other.model, other.compactions, other.images) && same_thinking
    }
}

/// The end of what a request left in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frontier {
    pub key: CacheKey,
    /// How many tokens the request left in the cache.
    pub tokens: u64,
    /// All tokens of the request's prompt.
    pub prompt: u64,
    /// When a request that wrote or read it was last sent.
    pub used: Moment,
    /// When the answer to the request that wrote it ended.
    pub ended: Moment,
    /// How long it lives unused, in milliseconds. `None` where it has no end.
    pub lifetime_ms: Option<i64>,
    /// Index of the request in the recording.
    pub request: usize,
    /// The node of the request's last entry.
    pub node: usize,
    /// The previous frontier at the same node.
    older: Option<usize>,
    /// The nearest ancestor node with a frontier.
    above: Option<usize>,
}

impl Frontier {
    /// Whether it can still be read at this time, if prefixes are known to live at least
    /// `at_least_ms`.
    pub fn is_warm(&self, at: Moment, at_least_ms: i64) -> bool {
        self.lifetime_ms.is_none_or(|lifetime| at.since(self.used) <= (lifetime + GRACE_MS).max(at_least_ms))
    }
}

/// The frontiers of all requests so far.
#[derive(Default)]
pub(super) struct Frontiers {
    all: Vec<Frontier>,
    /// The newest frontier at each node. Node 0 is the root; the node of an entry is its index + 1.
    at: Vec<Option<usize>>,
    parents: Vec<usize>,
}

/// The node of a request with this last entry.
pub(super) fn node(leaf: Option<usize>) -> usize {
    leaf.map_or(0, |entry| entry + 1)
}

impl Frontiers {
    pub fn new(recording: &Recording) -> Self {
        let parents = std::iter::once(0).chain(recording.entries.iter().map(|entry| node(entry.parent)));
        Frontiers { all: Vec::new(), at: vec![None; recording.entries.len() + 1], parents: parents.collect() }
    }

    /// The frontiers on the path from a node back to the root, the nearest first.
    fn ancestors(&self, from: usize) -> impl Iterator<Item = usize> {
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

    /// The nearest frontier on the path, readable or not.
    pub fn nearest_frontier(&self, from: usize) -> Option<&Frontier> {
        self.nearest(from).map(|found| &self.all[found])
    }

    /// The nearest frontier that can be read.
    pub fn readable(&self, from: usize, key: &CacheKey, at: Moment, at_least_ms: i64) -> Option<&Frontier> {
        let found = self.ancestors(from).map(|found| &self.all[found]);
        let mut readable =
            found.filter(|frontier| frontier.tokens > 0 && frontier.key.shares_cache_with(key));
        readable.find(|frontier| frontier.is_warm(at, at_least_ms))
    }

    /// Like [`readable`](Self::readable), without the very nearest: what a request finds while the
    /// previous one is unanswered.
    pub fn readable_before(
        &self,
        from: usize,
        key: &CacheKey,
        at: Moment,
        at_least_ms: i64,
    ) -> Option<&Frontier> {
        let found = self.ancestors(from).skip(1).map(|found| &self.all[found]);
        let mut readable =
            found.filter(|frontier| frontier.tokens > 0 && frontier.key.shares_cache_with(key));
        readable.find(|frontier| frontier.is_warm(at, at_least_ms))
    }

    /// Adds the frontier of a request, and renews the lifetimes of those that it read.
    pub fn add_frontier(&mut self, from: usize, frontier: Frontier, at_least_ms: i64) {
        let Frontier { key, used, .. } = &frontier;
        let warm: Vec<usize> = self
            .ancestors(from)
            .filter(|found| {
                self.all[*found].key.shares_cache_with(key) && self.all[*found].is_warm(*used, at_least_ms)
            })
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

    /// Renews the nearest frontier for an unbilled request that lasted long enough to have written
    /// it.
    pub fn touch(&mut self, from: usize, model: usize, at: Moment) {
        let found = self.ancestors(from).find(|found| self.all[*found].key.model == model);
        if let Some(found) = found {
            self.all[found].used = self.all[found].used.max(at);
        }
    }
}

impl Frontier {
    pub fn new(
        key: CacheKey,
        tokens: u64,
        prompt: u64,
        used: Moment,
        ended: Moment,
        lifetime_ms: Option<i64>,
    ) -> Self {
        let (request, node) = (0, 0);
        Frontier { key, tokens, prompt, used, ended, lifetime_ms, request, node, older: None, above: None }
    }
}

/// Facts about the path to each node, indexed by node.
pub(super) struct NodeFacts {
    /// How many compactions are on the path.
    pub compactions: Vec<usize>,
    /// The approximate size of the last summary, in tokens.
    pub summary: Vec<u64>,
    /// Whether there is an image after the last compaction.
    pub images: Vec<bool>,
    /// Whether there is reasoning after the last compaction, which providers and agents may leave
    /// out of later requests.
    pub reasoning: Vec<bool>,
    /// How many positions are on the path, as a provider counts them that looks back: a run of calls
    /// is one, and so is a run of results.
    pub positions: Vec<usize>,
    /// The kind of the last part on the path.
    last_run: Vec<Run>,
}

/// What a part of a message is to a provider that counts runs as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Calls,
    Results,
    /// Each part counts.
    None,
}

impl NodeFacts {
    pub fn from_recording(recording: &Recording) -> Self {
        let mut nodes = NodeFacts {
            compactions: vec![0],
            summary: vec![0],
            images: vec![false],
            reasoning: vec![false],
            positions: vec![0],
            last_run: vec![Run::None],
        };
        for entry in &recording.entries {
            let above = node(entry.parent);
            let parts: &[RecordedPart] = match &entry.content {
                EntryContent::Compaction { .. } => &[],
                EntryContent::Message { parts, .. } => parts,
            };
            let is_compaction = matches!(entry.content, EntryContent::Compaction { .. });
            let kept = |flags: &[bool]| flags[above] && !is_compaction;
            let thinks = |part: &RecordedPart| matches!(part, RecordedPart::Reasoning(_));
            nodes.summary.push(match &entry.content {
                EntryContent::Compaction { summary, .. } => summary.len() as u64 / BYTES_PER_TOKEN,
                EntryContent::Message { .. } => nodes.summary[above],
            });
            nodes.compactions.push(nodes.compactions[above] + usize::from(is_compaction));
            nodes.images.push(kept(&nodes.images) || parts.iter().any(has_image));
            nodes.reasoning.push(kept(&nodes.reasoning) || parts.iter().any(thinks));
            let (mut positions, mut last) = (nodes.positions[above], nodes.last_run[above]);
            for part in parts {
                let run = run_of(part);
                positions += usize::from(run == Run::None || run != last);
                last = run;
            }
            nodes.positions.push(positions + usize::from(is_compaction));
            nodes.last_run.push(if is_compaction { Run::None } else { last });
        }
        nodes
    }
}

fn run_of(part: &RecordedPart) -> Run {
    match part {
        RecordedPart::Call(_) => Run::Calls,
        RecordedPart::Result(_) => Run::Results,
        RecordedPart::Text(_) | RecordedPart::Reasoning(_) | RecordedPart::Image { .. } => Run::None,
    }
}

fn has_image(part: &RecordedPart) -> bool {
    match part {
        RecordedPart::Image { .. } => true,
        RecordedPart::Result(result) => !result.images.is_empty(),
        RecordedPart::Text(_) | RecordedPart::Reasoning(_) | RecordedPart::Call(_) => false,
    }
}

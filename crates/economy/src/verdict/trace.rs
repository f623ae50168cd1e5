//! [`Trace`]: what is remembered of a prompt, enough to tell what changed, without its texts.

mod build;
mod shared_lengths; // SharedLengths: how much two traces share // builds a trace from a prompt

use std::sync::Arc;

use hardpan_prompt::{CacheLifetime, Region};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cache::{CacheRules, ImplicitMarker, Section};
use build::ReusableTrace;
pub use shared_lengths::SharedLengths;

/// Where a piece of a prompt came from, in a form that can be stored.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PieceOrigin {
    /// An item, by its key.
    Item(Arc<str>),
    /// A line that says where an item's body went, by the item's key.
    Stub(Arc<str>),
    /// A message, by its id.
    Message(Arc<str>),
    /// A tool, by its name.
    Tool(Arc<str>),
    /// Text that the layout adds by a rule of its own, by the rule's name.
    Rule(Arc<str>),
}

impl PieceOrigin {
    /// The origin for a person to read: `file:src/a.rs`, `message m3`, `tool read`, `project
    /// files`.
    pub fn describe(&self) -> String {
        match self {
            PieceOrigin::Item(key) => key.to_string(),
            PieceOrigin::Stub(key) => format!("the stub of {key}"),
            PieceOrigin::Message(id) => format!("message {id}"),
            PieceOrigin::Tool(name) => format!("tool {name}"),
            PieceOrigin::Rule(name) => name.to_string(),
        }
    }

    pub(super) fn is_rule(&self) -> bool {
        matches!(self, PieceOrigin::Rule(_))
    }
}

/// Who spoke last before the model was asked to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LastSpeaker {
    Person,
    Tools,
}

/// A segment: its hash, its tokens by our count, and the index of its origin. Stored as a tuple,
/// since there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TracePiece(pub u64, pub u32, u32);

/// A block: its hash, the number of its pieces, its region, its marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TraceBlock(u64, u32, Region, Option<CacheLifetime>);

/// A setting that is part of the cache keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Setting {
    WebSearch,
    Citations,
    ToolChoice,
    ParallelTools,
    Images,
    Thinking,
    Effort,
}

/// What is remembered of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trace {
    pub provider: Arc<str>,
    pub model: Arc<str>,
    pub last_word: LastSpeaker,
    /// The settings that are switched on, with their values.
    pub settings: Vec<(Setting, String)>,
    /// The servers in the list that searches find tools in, each with the hash of its part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<(Arc<str>, u64)>,
    tools: usize,
    system: usize,
    blocks: Vec<TraceBlock>,
    pieces: Vec<TracePiece>,
    origins: Vec<PieceOrigin>,
    #[serde(skip)]
    known: ReusableTrace,
}

impl Trace {
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    pub fn section(&self, block: usize) -> Section {
        match block {
            block if block < self.tools => Section::Tools,
            block if block < self.tools + self.system => Section::System,
            _ => Section::Messages,
        }
    }

    /// Index of the first block of a section, or where it would be.
    pub fn section_start(&self, section: Section) -> usize {
        match section {
            Section::Tools => 0,
            Section::System => self.tools,
            Section::Messages => self.tools + self.system,
        }
    }

    pub fn region(&self, block: usize) -> Option<Region> {
        self.blocks.get(block).map(|block| block.2)
    }

    /// Whether a block is not meant to stay for the next request, so that no layout relies on its
    /// being cached.
    pub fn is_transient(&self, block: usize) -> bool {
        self.region(block).is_some_and(Region::is_transient)
    }

    /// Whether the request asks that only its own markers count: see
    /// [`Prompt::ends_after_its_breakpoints`](hardpan_prompt::Prompt::ends_after_its_breakpoints).
    pub fn is_explicit_only(&self) -> bool {
        let last = self.len().checked_sub(1);
        last.is_some_and(|last| self.is_transient(last) && self.blocks[last].3.is_none())
            && self.blocks.iter().any(|block| block.3.is_some())
    }

    /// The markers that the provider sees, its own included.
    pub fn markers(&self, rules: &CacheRules) -> Vec<(usize, CacheLifetime)> {
        let implicit = match rules.implicit {
            ImplicitMarker::MessageEnds(_) if !self.is_explicit_only() => self.len().checked_sub(1),
            ImplicitMarker::MessageEnds(_) | ImplicitMarker::None => None,
        };
        let marker = |(index, block): (usize, &TraceBlock)| {
            let unasked = Some(CacheLifetime::FiveMinutes).filter(|_| implicit == Some(index));
            block.3.or(unasked).map(|lifetime| (index, lifetime))
        };
        self.blocks.iter().enumerate().filter_map(marker).collect()
    }

    /// Tokens up to and including a block, by our own count.
    pub fn tokens_through(&self, block: usize) -> u64 {
        self.pieces[..self.first_piece(block + 1)].iter().map(|piece| u64::from(piece.1)).sum()
    }

    pub fn total(&self) -> u64 {
        self.tokens_through(self.len())
    }

    fn first_piece(&self, block: usize) -> usize {
        self.blocks.iter().take(block).map(|block| block.1 as usize).sum()
    }

    pub fn pieces(&self, block: usize) -> &[TracePiece] {
        self.blocks
            .get(block)
            .map_or(&[], |_| &self.pieces[self.first_piece(block)..self.first_piece(block + 1)])
    }

    pub fn pieces_from(&self, block: usize) -> &[TracePiece] {
        &self.pieces[self.first_piece(block)..]
    }

    pub fn pieces_through(&self, block: usize) -> &[TracePiece] {
        &self.pieces[..self.first_piece(block + 1)]
    }

    pub fn origin_of(&self, piece: TracePiece) -> Option<&PieceOrigin> {
        self.origins.get(piece.2 as usize)
    }

    /// Index of the first block that shows a certain origin. `None`: none does.
    pub fn find_block(&self, wanted: impl Fn(&PieceOrigin) -> bool) -> Option<usize> {
        (0..self.len())
            .find(|block| self.pieces(*block).iter().any(|piece| self.origin_of(*piece).is_some_and(&wanted)))
    }

    pub fn contains_origin(&self, origin: &PieceOrigin) -> bool {
        self.origins.contains(origin)
    }

    /// The ids of the conversation's messages, in order.
    pub fn messages(&self) -> Vec<&Arc<str>> {
        let messages = self.origins.iter().filter_map(|origin| match origin {
            PieceOrigin::Message(id) => Some(id),
            _ => None,
        });
        messages.collect()
    }

    /// The tools' names with their hashes, in order.
    pub fn tools(&self) -> impl Iterator<Item = (&Arc<str>, u64)> {
        // A tool is one piece.
        self.pieces.iter().take(self.tools).filter_map(|piece| match self.origin_of(*piece) {
            Some(PieceOrigin::Tool(name)) => Some((name, piece.0)),
            _ => None,
        })
    }

    /// The hashes of the blocks of BASE in `strata`, the only layout that puts messages there.
    pub fn base_hashes(&self) -> Vec<u64> {
        let messages = self.section_start(Section::Messages)..self.len();
        let base = messages.filter(|block| self.region(*block) == Some(Region::Base));
        base.map(|block| self.blocks[block].0).collect()
    }

    /// Index of the first block that differs; if one trace is a prefix of the other, the index
    /// after its end.
    pub fn first_difference(&self, other: &Trace) -> Option<usize> {
        let same =
            self.blocks.iter().zip(&other.blocks).take_while(|(ours, theirs)| ours.0 == theirs.0).count();
        (same < self.len().max(other.len())).then_some(same)
    }
}

//! What a cache sees of a request.

use std::sync::Arc;

use hardpan_prompt::{
    Block, Content, Hash, Lifetime, Measured, Prompt, Role, Thinking, Tool, ToolBlock, Turn,
};
use serde::Serialize;

/// A point in time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moment(pub i64);

impl Moment {
    /// So many milliseconds later.
    pub fn plus(self, ms: i64) -> Self {
        Moment(self.0.saturating_add(ms))
    }

    /// The milliseconds from `earlier` to here.
    pub fn since(self, earlier: Moment) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The part of a request that a block stands in, in the order of the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Tool definitions.
    Tools,
    /// The system prompt.
    System,
    /// The messages.
    Messages,
}

/// What sort of block it is, as far as a walk back may care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// Neither call nor result.
    Plain,
    /// A tool call (`tool_use`).
    Call,
    /// A tool's answer (`tool_result`).
    Result,
}

/// One block of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBlock {
    /// Its identity: the hash of all the model sees of it, its speaker included.
    pub hash: Hash,
    /// Its size.
    pub tokens: usize,
    /// Where it stands.
    pub section: Section,
    /// What sort it is.
    pub kind: BlockKind,
    /// Its marker, if one is really sent.
    pub marker: Option<Lifetime>,
    /// Whether it can hold a marker: empty text and reasoning cannot.
    pub markable: bool,
}

impl CacheBlock {
    /// A plain block without a marker.
    pub fn new(section: Section, hash: Hash, tokens: usize) -> Self {
        CacheBlock { hash, tokens, section, kind: BlockKind::Plain, marker: None, markable: true }
    }

    /// The same with a marker.
    pub fn marked(self, lifetime: Lifetime) -> Self {
        CacheBlock { marker: Some(lifetime), ..self }
    }
}

/// Settings of a request that Anthropic makes part of the cache's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salts {
    /// Whether the provider's web search is on. A change loses system and messages.
    pub web_search: bool,
    /// Whether citations are on. A change loses system and messages.
    pub citations: bool,
    /// `tool_choice` as it is sent. This and what follows lose the messages.
    pub tool_choice: Option<Arc<str>>,
    /// `disable_parallel_tool_use`.
    pub parallel_tools_off: bool,
    /// Whether there is any image.
    pub images: bool,
    /// Whether and how far the model thinks.
    pub thinking: Thinking,
    /// The effort it is asked for, in the provider's word.
    pub effort: Option<Arc<str>>,
}

impl Salts {
    /// Those that a prompt holds itself.
    pub(crate) fn of(prompt: &Prompt) -> Self {
        Salts {
            web_search: prompt.web_search.is_some(),
            images: prompt.blocks().any(Block::has_image),
            thinking: prompt.thinking,
            ..Salts::default()
        }
    }

    /// What the keys of the system prompt and all that follows depend on.
    pub(super) fn system(&self) -> Hash {
        let Salts { web_search, citations, .. } = self;
        Hash::of(format!("system {web_search} {citations}").as_bytes())
    }

    /// What the keys of the messages depend on besides.
    pub(super) fn messages(&self) -> Hash {
        // Every field is named, so that a new one forces a decision here or above.
        let Salts { web_search: _, citations: _, tool_choice, parallel_tools_off, images, thinking, effort } =
            self;
        let all = (tool_choice, parallel_tools_off, images, thinking, effort);
        Hash::of(format!("messages {all:?}").as_bytes())
    }
}

/// A request as a cache sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was sent: lifetimes count from here.
    pub at: Moment,
    /// The model's id: each model has a cache of its own.
    pub model: Arc<str>,
    /// Tools, then system, then messages.
    ///
    /// A marker-based cache needs them as they are on the wire. For one that goes by tokens a text may come in
    /// pieces, so that a change within it loses only what follows the change.
    pub blocks: Vec<CacheBlock>,
    /// The settings that count.
    pub salts: Salts,
}

impl Request {
    /// Reads a request off a prompt and its sizes. The settings that a prompt does not have are left at their
    /// defaults.
    pub fn from_prompt(prompt: &Prompt, measured: &Measured, at: Moment) -> Self {
        // Every field is named, so that a new one forces a decision here.
        let Prompt {
            model,
            max_tokens: _, // 0 warms the cache like any other request
            thinking: _,   // a salt
            tools,
            system,
            system_id: _, // a label of the server's, not text
            turns,
            web_search: _, // a salt
            left_out: _,
        } = prompt;
        let tools = tools.iter().map(tool_block);
        let system = system.iter().map(|block| block_in(Section::System, block.hash(), block));
        let blocks = tools.chain(system).chain(turns.iter().flat_map(turn_blocks));
        let sizes = measured.blocks().chain(std::iter::repeat(0));
        let blocks = blocks.zip(sizes).map(|(block, tokens)| CacheBlock { tokens, ..block }).collect();
        Request { at, model: model.clone(), blocks, salts: Salts::of(prompt) }
    }

    /// Anthropic's automatic mode, `cache_control` on the request itself: marks the last block that can be marked.
    pub fn mark_last(&mut self, lifetime: Lifetime) {
        if let Some(block) = self.blocks.iter_mut().rev().find(|block| block.markable) {
            block.marker = block.marker.or(Some(lifetime));
        }
    }
}

fn tool_block(block: &ToolBlock) -> CacheBlock {
    CacheBlock { marker: block.breakpoint, ..CacheBlock::new(Section::Tools, tool_identity(&block.tool), 0) }
}

/// The identity of a declared tool.
pub(crate) fn tool_identity(tool: &Tool) -> Hash {
    // Snippet and guidelines go into the system prompt, not into the definition.
    let Tool { name, description, parameters, snippet: _, guidelines: _ } = tool;
    let text = |text: &str| Hash::of(text.as_bytes());
    Hash::chain([text("tool"), text(name), text(description), parameters.hash()])
}

fn turn_blocks(turn: &Turn) -> impl Iterator<Item = CacheBlock> {
    identities(turn).map(|(hash, block)| block_in(Section::Messages, hash, block))
}

/// The blocks of a message, each with its identity. The role is part of it; where one message ends and the next of the same
/// role begins is not, since servers merge them. Documents attached to a message go with its first block.
pub(crate) fn identities(turn: &Turn) -> impl Iterator<Item = (Hash, &Block)> {
    let Turn { role, blocks, id: _, documents } = turn;
    let role = if *role == Role::User { b'u' } else { b'a' };
    blocks.iter().enumerate().map(move |(index, block)| {
        let hash = block.hash().marked(role);
        match documents.is_empty() || index > 0 {
            true => (hash, block),
            false => {
                let documents = documents.iter().map(|id| Hash::of(id.as_bytes()));
                (Hash::chain([hash].into_iter().chain(documents)), block)
            }
        }
    })
}

fn block_in(section: Section, hash: Hash, block: &Block) -> CacheBlock {
    let kind = match *block.content {
        Content::Call(_) => BlockKind::Call,
        Content::Result(_) => BlockKind::Result,
        Content::Text(_) | Content::Image(..) | Content::Reasoning(_) => BlockKind::Plain,
    };
    let (marker, markable) = (block.breakpoint, block.can_hold_breakpoint());
    CacheBlock { hash, tokens: 0, section, kind, marker, markable }
}

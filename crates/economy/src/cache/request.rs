//! [`CacheRequest`]: what a cache sees of a request.

use std::sync::Arc;

use hardpan_prompt::{
    Block, CacheLifetime, Content, Hash, Prompt, PromptMessage, PromptTokens, Role, Thinking, Tool, ToolBlock,
};
use serde::Serialize;

/// A point in time, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Moment(pub i64);

impl Moment {
    /// The moment this many milliseconds later.
    pub fn plus(self, ms: i64) -> Self {
        Moment(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment; negative if it is later.
    pub fn since(self, earlier: Moment) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The part of a request that a block belongs to, in the order of the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// The declared tools.
    Tools,
    /// The system prompt's blocks.
    System,
    /// The blocks of all messages.
    Messages,
}

/// The kind of a block, as far as a walk back may count it differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// Neither a call nor a result.
    Plain,
    /// A tool call (`tool_use`).
    Call,
    /// A tool's result (`tool_result`).
    Result,
}

/// One block of a request, as a cache sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBlock {
    /// Its identity: the hash of everything the model sees of it, the speaker's role included.
    pub hash: Hash,
    /// Its size in the provider's tokens.
    pub tokens: usize,
    /// Tools, system prompt or messages.
    pub section: Section,
    /// Whether it belongs to a run of calls or results.
    pub kind: BlockKind,
    /// The lifetime of its marker. `None`: no marker is sent.
    pub marker: Option<CacheLifetime>,
    /// Whether it can carry a marker; blank text and reasoning cannot.
    pub markable: bool,
    /// Whether something ends here at which a provider may cache by itself: the system prompt, a
    /// message of the user, a run of results.
    pub is_end: bool,
}

impl CacheBlock {
    /// Makes a plain block without a marker.
    pub fn new(section: Section, hash: Hash, tokens: usize) -> Self {
        let (kind, marker, markable) = (BlockKind::Plain, None, true);
        CacheBlock { hash, tokens, section, kind, marker, markable, is_end: section == Section::Messages }
    }

    /// Adds a marker to the block.
    pub fn with_marker(self, lifetime: CacheLifetime) -> Self {
        CacheBlock { marker: Some(lifetime), ..self }
    }
}

/// Settings of a request that are part of the cache keys of Anthropic, and of OpenAI from 5.6 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheSettings {
    /// Whether the provider's web search is on. A change loses system prompt and messages.
    pub web_search: bool,
    /// Whether citations are on. A change loses system prompt and messages.
    pub citations: bool,
    /// `tool_choice` as it is sent. A change of this field, or of those below, loses the messages.
    pub tool_choice: Option<Arc<str>>,
    /// Whether `disable_parallel_tool_use` is sent.
    pub parallel_tools_off: bool,
    /// Whether the request contains any image.
    pub images: bool,
    /// The form of thinking that is asked for.
    pub thinking: Thinking,
    /// The reasoning effort asked for, in the provider's own word.
    pub effort: Option<Arc<str>>,
    /// Hashes of further settings of the answer, such as its format.
    pub output_config: Vec<Hash>,
    /// Whether tools are declared outside of the prompt. The first one changes what is before the
    /// tools, so that everything is lost.
    pub deferred_tools: bool,
    /// The speed asked for, other than the usual one. A change loses system prompt and messages.
    pub speed: Option<Arc<str>>,
    /// `prompt_cache_key` of OpenAI: each key has a cache of its own.
    pub cache_key: Option<Arc<str>>,
    /// Format and verbosity of the answer and the service tier, as they are sent to OpenAI.
    pub output: Option<Arc<str>>,
}

impl CacheSettings {
    /// The settings that a prompt itself contains; the others keep their defaults.
    pub(crate) fn from_prompt(prompt: &Prompt) -> Self {
        CacheSettings {
            web_search: prompt.web_search.is_some(),
            images: prompt.blocks().any(Block::has_image),
            thinking: prompt.thinking,
            effort: prompt.effort.map(|effort| effort.as_str().into()),
            ..CacheSettings::default()
        }
    }

    /// Hash of the settings that all keys depend on. `with_thinking`: the model puts thinking and
    /// effort before the tools.
    pub(super) fn tools_hash(&self, with_thinking: bool) -> Hash {
        let thinking = with_thinking.then_some((&self.thinking, &self.effort));
        Hash::of(format!("tools {} {thinking:?}", self.deferred_tools).as_bytes())
    }

    /// Hash of the settings that the keys of the system prompt, and of all that follows, depend on.
    pub(super) fn system_hash(&self) -> Hash {
        let CacheSettings { web_search, citations, speed, .. } = self;
        Hash::of(format!("system {web_search} {citations} {speed:?}").as_bytes())
    }

    /// Hash of the settings that all keys of OpenAI's cache depend on. A choice of tools, images and
    /// the form of thinking are none of them.
    pub(super) fn hash_of_all(&self) -> Hash {
        let CacheSettings {
            web_search,
            citations: _,
            tool_choice: _,
            parallel_tools_off,
            images: _,
            thinking: _,
            effort,
            // Anthropic's.
            output_config: _,
            deferred_tools: _,
            speed: _,
            cache_key,
            output,
        } = self;
        Hash::of(format!("all {:?}", (web_search, parallel_tools_off, effort, cache_key, output)).as_bytes())
    }

    /// Hash of the settings that the keys of the messages depend on, besides those of the system
    /// prompt.
    pub(super) fn messages_hash(&self) -> Hash {
        // Every field is named, so that a new one forces a decision here or above.
        let CacheSettings {
            web_search: _,
            citations: _,
            tool_choice,
            parallel_tools_off,
            images,
            thinking,
            effort,
            output_config,
            deferred_tools: _, // in tools_hash
            speed: _,
            cache_key: _,
            output: _,
        } = self;
        let all = (tool_choice, parallel_tools_off, images, thinking, effort, output_config);
        Hash::of(format!("messages {all:?}").as_bytes())
    }
}

/// A request as a cache sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRequest {
    /// When the request was sent; lifetimes count from here.
    pub at: Moment,
    /// The model's id; each model has a cache of its own.
    pub model: Arc<str>,
    /// Tools, then system prompt, then messages.
    ///
    /// A marker-based cache needs the blocks exactly as they are sent. For a cache that goes by
    /// tokens a text may be split into pieces, so that a change within it loses only what follows
    /// the change.
    pub blocks: Vec<CacheBlock>,
    /// The settings that are part of the cache keys.
    pub settings: CacheSettings,
    /// Whether the request asks that only its own markers count.
    pub explicit_only: bool,
}

impl CacheRequest {
    /// Describes a prompt, given the sizes of its blocks. Settings that a prompt does not contain
    /// keep their defaults.
    pub fn from_prompt(prompt: &Prompt, measured: &PromptTokens, at: Moment) -> Self {
        // Every field is named, so that a new one forces a decision here.
        let Prompt {
            model,
            max_tokens: _, // 0 warms the cache like any other request
            thinking: _,   // in CacheSettings
            effort: _,     // in CacheSettings
            drop_stale_reasoning: _,
            tools,
            system,
            system_id: _, // a label of the server's, not text
            messages,
            web_search: _, // in CacheSettings
            left_out: _,
        } = prompt;
        let tools = tools.iter().map(tool_block);
        let system = system.iter().map(|block| block_in(Section::System, block.hash(), block));
        let blocks = tools.chain(system).chain(messages.iter().flat_map(message_blocks));
        let sizes = measured.blocks().chain(std::iter::repeat(0));
        let mut blocks: Vec<CacheBlock> =
            blocks.zip(sizes).map(|(block, tokens)| CacheBlock { tokens, ..block }).collect();
        find_ends(prompt, &mut blocks);
        let (model, settings) = (model.clone(), CacheSettings::from_prompt(prompt));
        CacheRequest { at, model, blocks, settings, explicit_only: prompt.ends_after_its_breakpoints() }
    }

    /// Anthropic's automatic mode, `cache_control` on the request itself: marks the last block that
    /// can carry a marker.
    pub fn mark_last(&mut self, lifetime: CacheLifetime) {
        if let Some(block) = self.blocks.iter_mut().rev().find(|block| block.markable) {
            block.marker = block.marker.or(Some(lifetime));
        }
    }
}

/// Finds the ends at which a provider may cache by itself. Neighbouring results are one run.
fn find_ends(prompt: &Prompt, blocks: &mut [CacheBlock]) {
    blocks.iter_mut().for_each(|block| block.is_end = false);
    if let Some(last) = blocks.iter_mut().rfind(|block| block.section == Section::System) {
        last.is_end = true;
    }
    // The message and the kind of the block after; nothing follows the last one.
    let mut next: Option<(usize, Role, BlockKind)> = None;
    let messages = prompt.messages.iter().enumerate();
    let said =
        messages.flat_map(|(index, message)| message.blocks.iter().map(move |_| (index, message.role)));
    let said: Vec<(usize, Role)> = said.collect();
    let first = blocks.len() - said.len();
    for (block, (message, role)) in blocks[first..].iter_mut().zip(said).rev() {
        let is_result = block.kind == BlockKind::Result;
        block.is_end = role == Role::User
            && next.is_none_or(|(next_message, next_role, next_kind)| {
                let next_is_result = next_kind == BlockKind::Result;
                let is_run = is_result == next_is_result && (is_result || message == next_message);
                next_role != Role::User || !is_run
            });
        next = Some((message, role, block.kind));
    }
}

fn tool_block(block: &ToolBlock) -> CacheBlock {
    CacheBlock { marker: block.breakpoint, ..CacheBlock::new(Section::Tools, tool_identity(&block.tool), 0) }
}

/// The identity of a declared tool: the hash of what the model sees of it.
pub(crate) fn tool_identity(tool: &Tool) -> Hash {
    // Snippet and guidelines go into the system prompt, not into the definition.
    let Tool { name, description, parameters, snippet: _, guidelines: _ } = tool;
    let text = |text: &str| Hash::of(text.as_bytes());
    Hash::chain([text("tool"), text(name), text(description), parameters.hash()])
}

fn message_blocks(message: &PromptMessage) -> impl Iterator<Item = CacheBlock> {
    // Automatic markers pass over text for one turn.
    let markable = !message.turn_scoped;
    block_identities(message).map(move |(hash, block)| {
        let block = block_in(Section::Messages, hash, block);
        CacheBlock { markable: block.markable && markable, ..block }
    })
}

/// The blocks of a message, each with its identity. The role is part of the identity. The boundary
/// between two messages of the same role is not, since servers merge them. Documents attached to a
/// message count towards its first block.
pub(crate) fn block_identities(message: &PromptMessage) -> impl Iterator<Item = (Hash, &Block)> {
    // A message's own effort keeps the cache.
    let PromptMessage { role, blocks, id: _, documents, turn_scoped: _, effort: _ } = message;
    let role = role.mark();
    blocks.iter().enumerate().map(move |(index, block)| {
        let hash = block.hash().with_mark(role);
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
        Content::Text(_)
        | Content::Image(..)
        | Content::Reasoning(_)
        | Content::ToolChange(_)
        | Content::Provider(_) => BlockKind::Plain,
    };
    let (marker, markable) = (block.breakpoint, block.can_hold_breakpoint());
    CacheBlock { hash, tokens: 0, section, kind, marker, markable, is_end: false }
}

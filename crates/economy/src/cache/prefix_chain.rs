//! [`PrefixChain`]: the cache key of every prefix of a request.

use hardpan_prompt::Hash;

use crate::cache::{
    BlockKind, CacheBlock, CacheRequest, CacheRules, Invalidation, PositionCounting, Section,
};

/// What the cache computes for each block of a request, over everything up to and including it.
#[derive(Debug)]
pub struct PrefixChain {
    /// The cache key of the prefix that ends with the block.
    pub keys: Vec<Hash>,
    /// Tokens of that prefix.
    pub through: Vec<usize>,
    /// The block's position, as a walk back counts positions.
    pub positions: Vec<usize>,
}

impl PrefixChain {
    /// The model is part of every key, the system settings of all keys from the system prompt on,
    /// the message settings of all keys from the first message on: so each change loses exactly the
    /// sections that Anthropic's table says.
    pub fn new(rules: &CacheRules, request: &CacheRequest) -> Self {
        let settings = rules.effective_settings(request);
        let mut key = first_key(rules, request);
        let mut before: Option<&CacheBlock> = None;
        let (mut total, mut position) = (0, 0);
        let size = request.blocks.len();
        let mut chain = PrefixChain {
            keys: Vec::with_capacity(size),
            through: Vec::with_capacity(size),
            positions: Vec::with_capacity(size),
        };
        for block in &request.blocks {
            let section = before.map_or(Section::Tools, |before| before.section);
            if section < Section::System && block.section >= Section::System {
                key = Hash::chain([key, settings.system_hash()]);
            }
            if section < Section::Messages && block.section >= Section::Messages {
                key = Hash::chain([key, settings.messages_hash()]);
            }
            key = Hash::chain([key, block.hash]);
            total += block.tokens;
            position += usize::from(before.is_some_and(|before| !share_position(rules, before, block)));
            before = Some(block);
            chain.keys.push(key);
            chain.through.push(total);
            chain.positions.push(position);
        }
        chain
    }

    /// Tokens of the whole request.
    pub fn total(&self) -> usize {
        self.through.last().copied().unwrap_or(0)
    }
}

/// By Anthropic's table any change of the tools loses everything, even one that comes after a
/// marked tool.
fn first_key(rules: &CacheRules, request: &CacheRequest) -> Hash {
    let tools = request.blocks.iter().filter(|block| block.section == Section::Tools).map(|block| block.hash);
    let model = Hash::of(request.model.as_bytes());
    match rules.invalidation {
        Invalidation::BySection => {
            let settings = request.settings.tools_hash(rules.thinking == Section::Tools);
            Hash::chain([model, settings].into_iter().chain(tools))
        }
        Invalidation::Everything => Hash::chain([model, request.settings.hash_of_all()]),
        Invalidation::None => model,
    }
}

/// Whether two neighbouring blocks count as one position of a walk back.
fn share_position(rules: &CacheRules, before: &CacheBlock, block: &CacheBlock) -> bool {
    let both = |section| before.section == section && block.section == section;
    let is_run = block.kind != BlockKind::Plain && before.kind == block.kind;
    (rules.tools == PositionCounting::Together && both(Section::Tools))
        || (rules.tool_runs == PositionCounting::Together && both(Section::Messages) && is_run)
}

//! Builds the trace of a prompt, reusing the previous trace where the prompts agree.

#![expect(clippy::disallowed_types, reason = "origins are looked up, never iterated")]

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use hardpan_prompt::{
    Block, CacheLifetime, Content, Hash, ItemCopy, Origin, Prompt, Region, ResultPart, Role, Segment,
    SharedContent, Source,
};

use super::{LastSpeaker, PieceOrigin, Setting, Trace, TraceBlock, TracePiece};
use crate::cache::{CacheSettings, block_identities, tool_identity};
use crate::ledger::CompletedRequest;
use crate::tool_listing::{SEARCH_TOOL, listing_parts};

/// What the next trace can be built from, since most blocks stay the same. It only saves time, so
/// it is not stored, and it does not count in comparisons.
#[derive(Clone, Default)]
pub(super) struct ReusableTrace {
    /// The blocks after the tools: role and content. The role is `None` in the system prompt.
    blocks: Vec<(Option<Role>, SharedContent)>,
    /// The index of each origin.
    numbers: HashMap<PieceOrigin, u32>,
}

impl fmt::Debug for ReusableTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Known({} blocks)", self.blocks.len()) // not the texts
    }
}

impl PartialEq for ReusableTrace {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ReusableTrace {}

impl Trace {
    /// Builds the trace of a request. What it shares with the previous prompt's trace is moved over
    /// from there.
    pub fn from_request(request: &CompletedRequest<'_>, before: Option<&mut Trace>) -> Self {
        let CompletedRequest { prompt, model, settings, .. } = request;
        let mut trace = Trace {
            provider: model.provider.as_str().into(),
            model: model.id.as_str().into(),
            last_word: last_speaker(prompt.messages.last().map_or(&[], |message| &message.blocks)),
            settings: enabled_settings(settings, &CacheSettings::from_prompt(prompt)),
            listed: listed_servers(prompt),
            tools: prompt.tools.len(),
            system: prompt.system.len(),
            blocks: Vec::with_capacity(prompt.block_count()),
            pieces: Vec::with_capacity(prompt.block_count()),
            origins: Vec::new(),
            known: ReusableTrace::default(),
        };
        let tools: Vec<u64> =
            prompt.tools.iter().map(|block| short_hash(tool_identity(&block.tool))).collect();
        let same = before.map_or(0, |before| trace.reuse_from(request, before, &tools));
        if same == 0 {
            for (block, hash) in prompt.tools.iter().zip(tools) {
                let origin = PieceOrigin::Tool(block.tool.name.clone());
                trace.push(request, (hash, block.region, block.breakpoint), |add| add(hash, origin.clone()));
            }
        }
        let mut rest = same;
        for block in prompt.system.iter().skip(rest) {
            trace.push_block(request, block.hash(), block);
        }
        rest = rest.saturating_sub(prompt.system.len());
        for message in &prompt.messages {
            if rest >= message.blocks.len() {
                rest -= message.blocks.len();
                continue;
            }
            block_identities(message)
                .skip(rest)
                .for_each(|(hash, block)| trace.push_block(request, hash, block));
            rest = 0;
        }
        let known = blocks_with_roles(prompt).map(|(role, block)| (role, block.content.clone()));
        trace.known.blocks = known.collect();
        trace
    }

    /// Copies what another trace shares with this one, and returns how many blocks after the tools
    /// that is.
    fn reuse_from(&mut self, request: &CompletedRequest<'_>, before: &mut Trace, tools: &[u64]) -> usize {
        let prompt = request.prompt;
        let known = std::mem::take(&mut before.known);
        let is_like = before.tools == self.tools
            && before.system == self.system
            && before.blocks.iter().zip(tools).all(|(block, tool)| block.0 == *tool);
        let now = blocks_with_roles(prompt).zip(&known.blocks);
        let same = now
            .take_while(|((role, block), (spoke, content))| role == spoke && block.content.ptr_eq(content));
        let same = if is_like { same.count() } else { 0 };
        if same == 0 {
            return 0;
        }
        let end = self.tools + same;
        let places = prompt.tools.iter().map(|block| (block.region, block.breakpoint));
        let places = places.chain(prompt.blocks().map(|block| (block.region, block.breakpoint)));
        let blocks = before.blocks[..end].iter().zip(places);
        self.blocks
            .extend(blocks.map(|(block, (place, marker))| TraceBlock(block.0, block.1, place, marker)));
        // The factor between our count and the provider's may have moved.
        let sizes = (0..end).flat_map(|block| request.prompt_tokens.segments(block));
        let pieces = before.pieces[..before.first_piece(end)].iter().zip(sizes);
        self.pieces.extend(pieces.map(|(piece, size)| TracePiece(piece.0, *size, piece.2)));
        let origins = self.pieces.iter().map(|piece| piece.2 as usize + 1).max().unwrap_or(0);
        self.origins.extend_from_slice(&before.origins[..origins]);
        self.known.numbers = known.numbers;
        before.origins[origins..].iter().for_each(|origin| {
            self.known.numbers.remove(origin);
        });
        same
    }

    fn push_block(&mut self, request: &CompletedRequest<'_>, hash: Hash, block: &Block) {
        let hash = short_hash(hash);
        let marked = (hash, block.region, block.breakpoint);
        self.push(request, marked, |add| for_each_piece(block, hash, add));
    }

    /// Appends a block: its hash, its region, its marker, and its pieces.
    fn push(
        &mut self,
        request: &CompletedRequest<'_>,
        (hash, place, marker): (u64, Region, Option<CacheLifetime>),
        pieces: impl FnOnce(&mut dyn FnMut(u64, PieceOrigin)),
    ) {
        let sizes = request.prompt_tokens.segments(self.blocks.len());
        let first = self.pieces.len();
        let (numbers, origins) = (&mut self.known.numbers, &mut self.origins);
        pieces(&mut |hash, origin| {
            let next = origins.len() as u32;
            let number = *numbers.entry(origin).or_insert_with_key(|origin| {
                origins.push(origin.clone());
                next
            });
            let size = sizes.get(self.pieces.len() - first).copied().unwrap_or(0);
            self.pieces.push(TracePiece(hash, size, number));
        });
        let count = (self.pieces.len() - first) as u32;
        self.blocks.push(TraceBlock(hash, count, place, marker));
    }
}

impl PieceOrigin {
    fn from_origin(origin: &Origin) -> Self {
        match &origin.source {
            Source::Item { key, copy: ItemCopy::Stub } => PieceOrigin::Stub(key.clone()),
            Source::Item { key, .. } => PieceOrigin::Item(key.clone()),
            Source::Message(id) => PieceOrigin::Message(id.0.clone()),
            Source::Tool(name) => PieceOrigin::Tool(name.clone()),
            Source::Rule(name) => PieceOrigin::Rule((*name).into()),
        }
    }
}

/// The blocks after the tools with their roles; `None` in the system prompt. Stops at the first
/// message with documents, whose identity does not follow from its blocks alone.
fn blocks_with_roles(prompt: &Prompt) -> impl Iterator<Item = (Option<Role>, &Block)> {
    let system = prompt.system.iter().map(|block| (None, block));
    let messages = prompt.messages.iter().take_while(|message| message.documents.is_empty());
    system.chain(
        messages.flat_map(|message| message.blocks.iter().map(move |block| (Some(message.role), block))),
    )
}

/// The servers whose tools are listed in the description of a tool that finds them.
fn listed_servers(prompt: &Prompt) -> Vec<(Arc<str>, u64)> {
    let search = prompt.tools.iter().find(|block| &*block.tool.name == SEARCH_TOOL);
    let parts = search.map_or(Vec::new(), |block| listing_parts(&block.tool.description));
    let listed =
        parts.into_iter().map(|(server, text)| (server.into(), short_hash(Hash::of(text.as_bytes()))));
    listed.collect()
}

fn short_hash(hash: Hash) -> u64 {
    let bytes = hash.bytes();
    bytes[..8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Calls `add` for each piece of a block: as many as its token counts have segments.
fn for_each_piece(block: &Block, hash: u64, add: &mut dyn FnMut(u64, PieceOrigin)) {
    match &*block.content {
        Content::Text(segments) => for_each_segment(segments, add),
        Content::Result(result) => {
            for part in &result.parts {
                match part {
                    ResultPart::Text(segments) => for_each_segment(segments, add),
                    ResultPart::Image(image) => {
                        add(short_hash(image.hash()), PieceOrigin::from_origin(&result.origin));
                    }
                }
            }
        }
        Content::Image(_, origin) => add(hash, PieceOrigin::from_origin(origin)),
        Content::Reasoning(reasoning) => add(hash, PieceOrigin::from_origin(&reasoning.origin)),
        Content::Call(call) => add(hash, PieceOrigin::from_origin(&call.origin)),
        Content::ToolChange(change) => add(hash, PieceOrigin::from_origin(&change.origin)),
        Content::Provider(block) => add(hash, PieceOrigin::from_origin(&block.origin)),
    }
}

fn for_each_segment(segments: &[Segment], add: &mut dyn FnMut(u64, PieceOrigin)) {
    segments
        .iter()
        .for_each(|segment| add(short_hash(segment.text.hash()), PieceOrigin::from_origin(&segment.origin)));
}

/// The person, if the last message of the request contains a text or a picture of the conversation;
/// otherwise the tools, whose results are blocks of their own kind.
fn last_speaker(blocks: &[Block]) -> LastSpeaker {
    let is_message = |origin: &Origin| matches!(origin.source, Source::Message(_));
    let is_said = |block: &Block| match &*block.content {
        Content::Text(segments) => segments.iter().any(|segment| is_message(&segment.origin)),
        Content::Image(_, origin) => is_message(origin),
        _ => false,
    };
    if blocks.iter().any(is_said) { LastSpeaker::Person } else { LastSpeaker::Tools }
}

/// The settings that are switched on. Those that the prompt itself contains are taken from the
/// prompt.
fn enabled_settings(given: &CacheSettings, prompt: &CacheSettings) -> Vec<(Setting, String)> {
    // Every field is named, so that a new one forces a decision here.
    let CacheSettings {
        citations,
        tool_choice,
        parallel_tools_off,
        effort,
        web_search: _,
        images: _,
        thinking: _,
        // Hardpan sends none of these.
        output_config: _,
        deferred_tools: _,
        speed: _,
        cache_key: _, // one for a session
        output: _,    // never sent
    } = given;
    let on = |setting, on: bool| on.then(|| (setting, "on".to_owned()));
    let word = |setting, word: &Option<Arc<str>>| word.as_ref().map(|word| (setting, word.to_string()));
    let thinking = match prompt.thinking {
        hardpan_prompt::Thinking::Unspecified => None,
        thinking => Some((Setting::Thinking, thinking.to_string())),
    };
    let all = [
        on(Setting::WebSearch, prompt.web_search),
        on(Setting::Citations, *citations),
        word(Setting::ToolChoice, tool_choice),
        on(Setting::ParallelTools, *parallel_tools_off).map(|(setting, _)| (setting, "off".to_owned())),
        on(Setting::Images, prompt.images),
        thinking,
        word(Setting::Effort, if effort.is_some() { effort } else { &prompt.effort }),
    ];
    all.into_iter().flatten().collect()
}

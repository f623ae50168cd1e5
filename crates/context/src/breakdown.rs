//! [`Breakdown`]: where the tokens of a prompt go. It is read from the finished prompt, so it
//! cannot disagree with what is sent.

use std::collections::BTreeMap;

use hardpan_economy::quote;
use hardpan_prompt::{
    AgentMessage, Block, Content, Item, ItemCopy, ItemKind, MessageId, Omission, Origin, Region, ResultPart,
    Source, Tier, ToolBlock,
};
use serde::Serialize;

use crate::panels::detach;
use crate::{AssembledPrompt, LayoutName, Snapshot, Target, stability};

/// Everything `hardpan context` shows.
#[derive(Clone, Debug, Serialize)]
pub struct Breakdown {
    /// The id of the model.
    pub model: String,
    /// The layout that ordered the prompt.
    pub layout: LayoutName,
    /// Tokens of the whole request.
    pub total_tokens: usize,
    /// How many input tokens the model takes.
    pub max_input_tokens: usize,
    /// The regions of the request, in order.
    pub blocks: Vec<BreakdownBlock>,
    /// Tokens by kind of content: system, files, history, ….
    pub breakdown: BTreeMap<&'static str, usize>,
    /// `tiers`: what each tier holds.
    pub tier_info: Option<TierInfo>,
    /// `tiers`: how many of L1 to L3 were skipped.
    pub empty_tiers: u32,
    /// The text of the new prompt, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_text: Option<String>,
    /// Tokens of the symbol map, legend included.
    pub context_map_tokens: usize,
    /// `panels`: the tokens of the conversation without its frozen part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_tokens: Option<usize>,
    /// The breakpoints: where cache entries are requested.
    pub breakpoints: Vec<BreakpointInfo>,
    /// What the snapshot holds and the request does not.
    pub left_out: Vec<Omission>,
    /// What the input of this request costs.
    pub price: RequestPrice,
    /// How tokens were counted, and how exact that is.
    pub tokenizer: TokenizerInfo,
}

/// A region of the request: tools, system prompt, BASE, a tier, the conversation, ….
#[derive(Clone, Debug, Serialize)]
pub struct BreakdownBlock {
    /// The name of the region: `tools`, `system`, `base`, `conversation`.
    pub name: &'static str,
    /// The region of the layout that its first block stands in: `L0`, `base`, `log`.
    pub tier: &'static str,
    /// The tokens of all its blocks.
    pub tokens: usize,
    /// Whether all of it lies before the last breakpoint.
    pub cached: bool,
    /// The blocks of the request that make it up: first and one past the last.
    pub span: (usize, usize),
    /// What it holds, in order.
    pub contents: Vec<BreakdownContent>,
}

/// An item, message or tool within a region.
#[derive(Clone, Debug, Serialize)]
pub struct BreakdownContent {
    /// The kind of content: `file`, `history`, `tool`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The item's key, or what else it came from.
    pub key: String,
    /// Its tokens within this region.
    pub tokens: usize,
    /// For how many responses it has been unchanged, where tracked.
    #[serde(rename = "n")]
    pub unchanged_responses: Option<u32>,
    /// `tiers`: how many responses it has to be unchanged for its tier.
    pub threshold: Option<u32>,
    /// `panels`: whether this panel and all before it are as they were in the last request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<bool>,
    /// `panels`: what it has cost so far, in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// A breakpoint of the request: a cache entry is requested up to this block.
#[derive(Clone, Debug, Serialize)]
pub struct BreakpointInfo {
    /// Where it is among tools, system and messages: `messages[3].content[0]`.
    pub block: String,
    /// Tokens up to and including its block.
    pub tokens: usize,
    /// How long the provider is to keep the entry: `5m` or `1h`.
    pub ttl: &'static str,
}

/// What the input of a request costs, in US dollars.
#[derive(Clone, Debug, Serialize)]
pub struct RequestPrice {
    /// The price when nothing is cached.
    pub cold: f64,
    /// The price when the same request was sent a moment ago.
    pub warm: f64,
    /// Always `USD`.
    pub currency: &'static str,
    /// Whether the catalogue knows what this model costs.
    pub known: bool,
}

/// How the tokens of a breakdown were counted.
#[derive(Clone, Debug, Serialize)]
pub struct TokenizerInfo {
    /// The vocabulary that was used: `o200k`.
    pub vocabulary: &'static str,
    /// Whether it is the model's own vocabulary.
    pub exact: bool,
    /// What counts are multiplied by to estimate the model's own tokens.
    pub factor: f64,
}

/// `tiers`: what each tier holds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TierInfo {
    /// L0, the system message.
    #[serde(rename = "L0")]
    pub l0: TierTokens,
    /// L1, unchanged for 9 responses or more.
    #[serde(rename = "L1")]
    pub l1: TierTokens,
    /// L2, unchanged for 6 responses or more.
    #[serde(rename = "L2")]
    pub l2: TierTokens,
    /// L3, unchanged for 3 responses or more.
    #[serde(rename = "L3")]
    pub l3: TierTokens,
    /// The active tier: what changed recently, the tree, pages and the prompt. It is not cached.
    pub active: TierTokens,
    /// How many of L1 to L3 were skipped.
    pub empty_tiers: u32,
}

/// What one tier holds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TierTokens {
    /// The tokens of everything in it.
    pub tokens: usize,
    /// How many symbol entries it shows.
    pub symbols: usize,
    /// How many files it shows.
    pub files: usize,
    /// How many messages of the conversation it holds.
    pub history: usize,
    /// Whether the tree is in it.
    pub has_tree: bool,
    /// L0: whether the system prompt is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_system: Option<bool>,
    /// L0: whether the legend is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_legend: Option<bool>,
    /// Active: whether pages are in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_urls: Option<bool>,
    /// Active: whether conversation is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_history: Option<bool>,
}

impl Breakdown {
    /// Reads the breakdown from an assembled prompt and the snapshot it was built from.
    pub fn new(
        assembled: &AssembledPrompt,
        snapshot: &Snapshot,
        target: &Target,
        render_cache: &crate::RenderCache,
    ) -> Self {
        let AssembledPrompt { prompt, measured, layout, layout_state } = assembled;
        let snapshot = &*stability::with_tracked_tiers(snapshot, *layout);
        let pieces = collect_pieces(assembled);
        let breakpoints = prompt.breakpoints();
        let cached_end = breakpoints.last().map_or(0, |last| last.block + 1);
        let mut breakdown: BTreeMap<&'static str, usize> =
            ItemKind::ALL.iter().map(|kind| (kind.column_name(), 0)).collect();
        for piece in &pieces {
            *breakdown.entry(piece.origin.kind.column_name()).or_default() += piece.tokens;
        }
        let quote = quote(&target.model, &target.profile, measured.total(), &breakpoints, |block| {
            measured.tokens_through(block)
        });
        let tier_info = (*layout == LayoutName::Tiers).then(|| summarise_tiers(&pieces));
        let exact = target.model.vocabulary.is_some();
        Breakdown {
            model: target.model.id.clone(),
            layout: *layout,
            total_tokens: measured.total(),
            max_input_tokens: target.max_input_tokens() as usize,
            blocks: group_into_regions(&pieces, snapshot, layout_state, *layout, cached_end),
            context_map_tokens: breakdown["symbol_map"] + breakdown["legend"],
            breakdown,
            empty_tiers: tier_info.as_ref().map_or(0, |info| info.empty_tiers),
            tier_info,
            user_text: snapshot.prompt.as_ref().map(|prompt| prompt.text.to_string()),
            conversation_tokens: (*layout == LayoutName::Panels).then(|| {
                let frozen =
                    |id| layout_state.panels.histories.iter().any(|history| history.messages.contains(id));
                let live = snapshot.messages.iter().filter(|message| !frozen(&message.id));
                detach::conversation_tokens(live, &render_cache.counter)
            }),
            breakpoints: breakpoints
                .iter()
                .map(|breakpoint| BreakpointInfo {
                    block: prompt.address(breakpoint.block),
                    tokens: measured.tokens_through(breakpoint.block),
                    ttl: breakpoint.lifetime.name(),
                })
                .collect(),
            left_out: prompt.left_out.clone(),
            price: RequestPrice {
                cold: quote.cold,
                warm: quote.warm,
                currency: "USD",
                known: target.model.price.is_known(),
            },
            tokenizer: TokenizerInfo {
                vocabulary: render_cache.counter.vocabulary().name(),
                exact,
                factor: target.factor.value(),
            },
        }
    }
}

/// A part of the prompt with one origin, and its tokens.
struct PromptPiece {
    block: usize,
    region: Region,
    origin: Origin,
    tokens: usize,
}

/// Every segment of every block, with the tokens measured for it.
fn collect_pieces(assembled: &AssembledPrompt) -> Vec<PromptPiece> {
    let mut pieces = Vec::new();
    let tools = assembled.prompt.tools.iter().map(|ToolBlock { region, tool, .. }| {
        (*region, vec![Origin { kind: ItemKind::Tool, source: Source::Tool(tool.name.clone()) }])
    });
    let blocks =
        assembled.prompt.blocks().map(|block| (block.region, origins(block).into_iter().cloned().collect()));
    for (index, (region, origins)) in tools.chain(blocks).enumerate() {
        for (origin, tokens) in origins.into_iter().zip(assembled.measured.segments(index)) {
            pieces.push(PromptPiece { block: index, region, origin, tokens: *tokens as usize });
        }
    }
    pieces
}

/// One origin for each measured segment of a block.
fn origins(block: &Block) -> Vec<&Origin> {
    match &*block.content {
        Content::Text(segments) => segments.iter().map(|segment| &segment.origin).collect(),
        Content::Result(result) => result
            .parts
            .iter()
            .flat_map(|part| match part {
                ResultPart::Text(segments) => segments.iter().map(|segment| &segment.origin).collect(),
                ResultPart::Image(_) => vec![&result.origin],
            })
            .collect(),
        Content::Image(_, origin) => vec![origin],
        Content::Reasoning(reasoning) => vec![&reasoning.origin],
        Content::Call(call) => vec![&call.origin],
    }
}

fn region_name(
    layout: LayoutName,
    region: Region,
    block: usize,
    first_message: usize,
    kind: ItemKind,
) -> &'static str {
    match (layout, region) {
        _ if kind == ItemKind::Tool => "tools",
        (LayoutName::Tiers, region) => region.name(),
        (_, Region::Base | Region::Inline) if block < first_message => "system",
        (_, Region::Base) => "base",
        (_, Region::Panel) => "panels",
        (_, Region::Log) => "conversation",
        (_, Region::Tail) => "tail",
        (_, Region::Inline) => "messages",
        (_, region) => region.name(),
    }
}

fn group_into_regions(
    pieces: &[PromptPiece],
    snapshot: &Snapshot,
    layout_state: &crate::LayoutState,
    layout: LayoutName,
    cached_end: usize,
) -> Vec<BreakdownBlock> {
    let first_message =
        pieces.iter().filter(|p| p.origin.kind == ItemKind::Tool).map(|p| p.block + 1).max().unwrap_or(0) + 1;
    let index = SnapshotIndex {
        items: snapshot.items.iter().map(|item| (&*item.key, item)).collect(),
        messages: snapshot.messages.iter().map(|message| (&message.id, message)).collect(),
    };
    let mut regions: Vec<BreakdownBlock> = Vec::new();
    for piece in pieces {
        let name = region_name(layout, piece.region, piece.block, first_message, piece.origin.kind);
        if regions.last().is_none_or(|region| region.name != name) {
            let span = (piece.block, piece.block + 1);
            regions.push(BreakdownBlock {
                name,
                tier: piece.region.name(),
                tokens: 0,
                cached: true,
                span,
                contents: vec![],
            });
        }
        let Some(region) = regions.last_mut() else { continue };
        region.tokens += piece.tokens;
        region.span.1 = piece.block + 1;
        region.cached = region.span.1 <= cached_end;
        let content = describe_piece(piece, &index, snapshot, layout_state, layout);
        match region.contents.last_mut().filter(|last| last.key == content.key && last.kind == content.kind) {
            Some(last) => last.tokens += content.tokens,
            None => region.contents.push(content),
        }
    }
    regions
}

/// The items and messages of a snapshot by key and id: every piece of a prompt is looked up.
struct SnapshotIndex<'a> {
    items: BTreeMap<&'a str, &'a Item>,
    messages: BTreeMap<&'a MessageId, &'a AgentMessage>,
}

fn describe_piece(
    piece: &PromptPiece,
    index: &SnapshotIndex<'_>,
    snapshot: &Snapshot,
    layout_state: &crate::LayoutState,
    layout: LayoutName,
) -> BreakdownContent {
    let (unchanged_responses, tier) = match &piece.origin.source {
        Source::Item { key, copy: ItemCopy::Current } => {
            index.items.get(&**key).map_or((None, None), |item| (item.unchanged_responses, item.tier))
        }
        Source::Message(id) => {
            index.messages.get(id).map_or((None, None), |message| (message.unchanged_responses, message.tier))
        }
        _ => (None, None),
    };
    let panel = match &piece.origin.source {
        Source::Item { key, .. } if layout == LayoutName::Panels => {
            let now = layout_state.panels.shown.iter().find(|shown| shown.key == *key);
            let before = snapshot.layout_state.panels.shown.iter().find(|shown| shown.key == *key);
            now.map(|now| (now.hits > before.map_or(0, |before| before.hits), now.cost))
        }
        _ => None,
    };
    BreakdownContent {
        kind: piece.origin.kind.name(),
        key: piece.origin.to_string(),
        tokens: piece.tokens,
        unchanged_responses,
        threshold: tier.filter(|_| layout == LayoutName::Tiers).and_then(Tier::threshold),
        hit: panel.map(|panel| panel.0),
        cost: panel.map(|panel| panel.1),
    }
}

fn summarise_tiers(pieces: &[PromptPiece]) -> TierInfo {
    let mut info = TierInfo::default();
    info.l0.has_system = Some(false);
    info.l0.has_legend = Some(false);
    info.active.has_urls = Some(false);
    info.active.has_history = Some(false);
    let mut messages: Vec<(Region, &Source)> = Vec::new();
    for piece in pieces {
        let tier = match piece.region {
            Region::L0 => &mut info.l0,
            Region::L1 => &mut info.l1,
            Region::L2 => &mut info.l2,
            Region::L3 => &mut info.l3,
            _ => &mut info.active,
        };
        tier.tokens += piece.tokens;
        let is_item = matches!(piece.origin.source, Source::Item { .. });
        match piece.origin.kind {
            ItemKind::Symbols if is_item => tier.symbols += 1,
            ItemKind::File if is_item => tier.files += 1,
            ItemKind::History if matches!(piece.origin.source, Source::Message(_)) => {
                if !messages.contains(&(piece.region, &piece.origin.source)) {
                    messages.push((piece.region, &piece.origin.source));
                    tier.history += 1;
                }
                tier.has_history = tier.has_history.map(|_| true);
            }
            ItemKind::Tree => tier.has_tree = true,
            ItemKind::System => tier.has_system = tier.has_system.map(|_| true),
            ItemKind::Legend => tier.has_legend = tier.has_legend.map(|_| true),
            ItemKind::Page => tier.has_urls = tier.has_urls.map(|_| true),
            _ => {}
        }
    }
    info.empty_tiers = [&info.l1, &info.l2, &info.l3].iter().map(|tier| u32::from(tier.tokens == 0)).sum();
    info
}

//! What a prompt holds, read off the prompt itself.

use std::collections::BTreeMap;

use hardpan_economy::quote;
use hardpan_prompt::{
    AgentMessage, Block, Content, Copy, Item, Kind, LeftOut, MessageId, Origin, Place, ResultPart, Source,
    Tier, ToolBlock,
};
use serde::Serialize;

use crate::panels::detach;
use crate::{Assembled, LayoutName, Snapshot, Target, stability};

/// Everything `hardpan context` shows.
#[derive(Clone, Debug, Serialize)]
pub struct Breakdown {
    /// The model.
    pub model: String,
    /// The layout.
    pub layout: LayoutName,
    /// Tokens of the whole request.
    pub total_tokens: usize,
    /// The most it may have.
    pub max_input_tokens: usize,
    /// The regions of the request, in order.
    pub blocks: Vec<BreakdownBlock>,
    /// Tokens by kind.
    pub breakdown: BTreeMap<&'static str, usize>,
    /// `tiers`: what each tier holds.
    pub tier_info: Option<TierInfo>,
    /// `tiers`: how many of L1 to L3 were skipped.
    pub empty_tiers: u32,
    /// `tiers`: the prompt as it will be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_text: Option<String>,
    /// Tokens of the symbol map, legend included.
    pub context_map_tokens: usize,
    /// `panels`: the tokens of the live conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_tokens: Option<usize>,
    /// Where cache entries are asked for.
    pub breakpoints: Vec<MarkedBlock>,
    /// What the snapshot holds and the request does not.
    pub left_out: Vec<LeftOut>,
    /// What it costs.
    pub price: Price,
    /// How tokens were counted.
    pub tokenizer: Tokenizer,
}

/// A region of the request.
#[derive(Clone, Debug, Serialize)]
pub struct BreakdownBlock {
    /// Its name.
    pub name: &'static str,
    /// Its place in the layout.
    pub tier: &'static str,
    /// Its tokens.
    pub tokens: usize,
    /// Whether all of it is up to a breakpoint.
    pub cached: bool,
    /// The blocks of the request that make it up: first and one past the last.
    pub span: (usize, usize),
    /// What it holds, in order.
    pub contents: Vec<BreakdownContent>,
}

/// A thing within a region.
#[derive(Clone, Debug, Serialize)]
pub struct BreakdownContent {
    /// What sort of thing it is.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its name.
    pub key: String,
    /// Its tokens.
    pub tokens: usize,
    /// For how many responses it has been unchanged, where tracked.
    pub n: Option<u32>,
    /// How many it needs for its tier.
    pub threshold: Option<u32>,
    /// `panels`: whether this panel and all before it are as they were in the last request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<bool>,
    /// `panels`: what it has cost so far, in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// A breakpoint.
#[derive(Clone, Debug, Serialize)]
pub struct MarkedBlock {
    /// Where it is among tools, system and messages: `messages[3].content[0]`.
    pub block: String,
    /// Tokens up to and including its block.
    pub tokens: usize,
    /// How long its entry is to live.
    pub ttl: &'static str,
}

/// What a request costs, input only.
#[derive(Clone, Debug, Serialize)]
pub struct Price {
    /// When nothing is cached.
    pub cold: f64,
    /// When the same request was sent a moment ago.
    pub warm: f64,
    /// The currency.
    pub currency: &'static str,
    /// Whether the catalogue knows what this model costs.
    pub known: bool,
}

/// How tokens were counted.
#[derive(Clone, Debug, Serialize)]
pub struct Tokenizer {
    /// The vocabulary.
    pub vocabulary: &'static str,
    /// Whether it is the model's own.
    pub exact: bool,
    /// What its counts are multiplied by.
    pub factor: f64,
}

/// What each tier holds (seed c).
#[derive(Clone, Debug, Default, Serialize)]
pub struct TierInfo {
    /// L0, the system message.
    #[serde(rename = "L0")]
    pub l0: TierTokens,
    /// L1.
    #[serde(rename = "L1")]
    pub l1: TierTokens,
    /// L2.
    #[serde(rename = "L2")]
    pub l2: TierTokens,
    /// L3.
    #[serde(rename = "L3")]
    pub l3: TierTokens,
    /// What changes.
    pub active: TierTokens,
    /// How many of L1 to L3 were skipped.
    pub empty_tiers: u32,
}

/// What one tier holds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TierTokens {
    /// All its tokens.
    pub tokens: usize,
    /// Symbol entries.
    pub symbols: usize,
    /// Files.
    pub files: usize,
    /// Messages of the conversation.
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
    /// Reads the breakdown off an assembled request.
    pub fn of(assembled: &Assembled, snapshot: &Snapshot, target: &Target, memo: &crate::Memo) -> Self {
        let Assembled { prompt, measured, layout, memory } = assembled;
        let snapshot = &*stability::assigned(snapshot, *layout);
        let pieces = pieces(assembled);
        let breakpoints = prompt.breakpoints();
        let cached_end = breakpoints.last().map_or(0, |last| last.block + 1);
        let mut breakdown: BTreeMap<&'static str, usize> =
            Kind::ALL.iter().map(|kind| (kind.column(), 0)).collect();
        for piece in &pieces {
            *breakdown.entry(piece.origin.kind.column()).or_default() += piece.tokens;
        }
        let quote = quote(&target.model, &target.wire, measured.total(), &breakpoints, |block| {
            measured.through(block)
        });
        let tier_info = (*layout == LayoutName::Tiers).then(|| tier_info(&pieces));
        let exact = target.model.vocabulary.is_some();
        Breakdown {
            model: target.model.id.clone(),
            layout: *layout,
            total_tokens: measured.total(),
            max_input_tokens: target.max_input_tokens() as usize,
            blocks: regions(&pieces, snapshot, memory, *layout, cached_end),
            context_map_tokens: breakdown["symbol_map"] + breakdown["legend"],
            breakdown,
            empty_tiers: tier_info.as_ref().map_or(0, |info| info.empty_tiers),
            tier_info,
            user_text: snapshot.prompt.as_ref().map(|prompt| prompt.text.to_string()),
            conversation_tokens: (*layout == LayoutName::Panels).then(|| {
                let frozen = |id| memory.panels.histories.iter().any(|history| history.messages.contains(id));
                let live = snapshot.messages.iter().filter(|message| !frozen(&message.id));
                detach::conversation_tokens(live, &memo.counter)
            }),
            breakpoints: breakpoints
                .iter()
                .map(|breakpoint| MarkedBlock {
                    block: prompt.address(breakpoint.block),
                    tokens: measured.through(breakpoint.block),
                    ttl: breakpoint.lifetime.word(),
                })
                .collect(),
            left_out: prompt.left_out.clone(),
            price: Price {
                cold: quote.cold,
                warm: quote.warm,
                currency: "USD",
                known: target.model.price.is_known(),
            },
            tokenizer: Tokenizer {
                vocabulary: memo.counter.vocabulary().name(),
                exact,
                factor: target.factor.value(),
            },
        }
    }
}

/// A piece of the prompt with one origin.
struct Piece {
    block: usize,
    place: Place,
    origin: Origin,
    tokens: usize,
}

/// Every segment of every block, with the tokens measured for it.
fn pieces(assembled: &Assembled) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let tools = assembled.prompt.tools.iter().map(|ToolBlock { place, tool, .. }| {
        (*place, vec![Origin { kind: Kind::Tool, source: Source::Tool(tool.name.clone()) }])
    });
    let blocks =
        assembled.prompt.blocks().map(|block| (block.place, origins(block).into_iter().cloned().collect()));
    for (index, (place, origins)) in tools.chain(blocks).enumerate() {
        for (origin, tokens) in origins.into_iter().zip(assembled.measured.segments(index)) {
            pieces.push(Piece { block: index, place, origin, tokens: *tokens as usize });
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
    place: Place,
    block: usize,
    first_message: usize,
    kind: Kind,
) -> &'static str {
    match (layout, place) {
        _ if kind == Kind::Tool => "tools",
        (LayoutName::Tiers, place) => place.name(),
        (_, Place::Base | Place::Inline) if block < first_message => "system",
        (_, Place::Base) => "base",
        (_, Place::Panel) => "panels",
        (_, Place::Log) => "conversation",
        (_, Place::Tail) => "tail",
        (_, Place::Inline) => "messages",
        (_, place) => place.name(),
    }
}

fn regions(
    pieces: &[Piece],
    snapshot: &Snapshot,
    memory: &crate::Memory,
    layout: LayoutName,
    cached_end: usize,
) -> Vec<BreakdownBlock> {
    let first_message =
        pieces.iter().filter(|p| p.origin.kind == Kind::Tool).map(|p| p.block + 1).max().unwrap_or(0) + 1;
    let known = Known {
        items: snapshot.items.iter().map(|item| (&*item.key, item)).collect(),
        messages: snapshot.messages.iter().map(|message| (&message.id, message)).collect(),
    };
    let mut regions: Vec<BreakdownBlock> = Vec::new();
    for piece in pieces {
        let name = region_name(layout, piece.place, piece.block, first_message, piece.origin.kind);
        if regions.last().is_none_or(|region| region.name != name) {
            let span = (piece.block, piece.block + 1);
            regions.push(BreakdownBlock {
                name,
                tier: piece.place.name(),
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
        let content = content(piece, &known, snapshot, memory, layout);
        match region.contents.last_mut().filter(|last| last.key == content.key && last.kind == content.kind) {
            Some(last) => last.tokens += content.tokens,
            None => region.contents.push(content),
        }
    }
    regions
}

/// What a snapshot holds, by name: a conversation has many messages, and each is looked up.
struct Known<'a> {
    items: BTreeMap<&'a str, &'a Item>,
    messages: BTreeMap<&'a MessageId, &'a AgentMessage>,
}

fn content(
    piece: &Piece,
    known: &Known<'_>,
    snapshot: &Snapshot,
    memory: &crate::Memory,
    layout: LayoutName,
) -> BreakdownContent {
    let (n, tier) = match &piece.origin.source {
        Source::Item { key, copy: Copy::Current } => {
            known.items.get(&**key).map_or((None, None), |item| (item.n, item.tier))
        }
        Source::Message(id) => {
            known.messages.get(id).map_or((None, None), |message| (message.n, message.tier))
        }
        _ => (None, None),
    };
    let panel = match &piece.origin.source {
        Source::Item { key, .. } if layout == LayoutName::Panels => {
            let now = memory.panels.shown.iter().find(|shown| shown.key == *key);
            let before = snapshot.memory.panels.shown.iter().find(|shown| shown.key == *key);
            now.map(|now| (now.hits > before.map_or(0, |before| before.hits), now.cost))
        }
        _ => None,
    };
    BreakdownContent {
        kind: piece.origin.kind.word(),
        key: piece.origin.to_string(),
        tokens: piece.tokens,
        n,
        threshold: tier.filter(|_| layout == LayoutName::Tiers).and_then(Tier::threshold),
        hit: panel.map(|panel| panel.0),
        cost: panel.map(|panel| panel.1),
    }
}

fn tier_info(pieces: &[Piece]) -> TierInfo {
    let mut info = TierInfo::default();
    info.l0.has_system = Some(false);
    info.l0.has_legend = Some(false);
    info.active.has_urls = Some(false);
    info.active.has_history = Some(false);
    let mut messages: Vec<(Place, &Source)> = Vec::new();
    for piece in pieces {
        let tier = match piece.place {
            Place::L0 => &mut info.l0,
            Place::L1 => &mut info.l1,
            Place::L2 => &mut info.l2,
            Place::L3 => &mut info.l3,
            _ => &mut info.active,
        };
        tier.tokens += piece.tokens;
        let is_item = matches!(piece.origin.source, Source::Item { .. });
        match piece.origin.kind {
            Kind::Symbols if is_item => tier.symbols += 1,
            Kind::File if is_item => tier.files += 1,
            Kind::History if matches!(piece.origin.source, Source::Message(_)) => {
                if !messages.contains(&(piece.place, &piece.origin.source)) {
                    messages.push((piece.place, &piece.origin.source));
                    tier.history += 1;
                }
                tier.has_history = tier.has_history.map(|_| true);
            }
            Kind::Tree => tier.has_tree = true,
            Kind::System => tier.has_system = tier.has_system.map(|_| true),
            Kind::Legend => tier.has_legend = tier.has_legend.map(|_| true),
            Kind::Page => tier.has_urls = tier.has_urls.map(|_| true),
            _ => {}
        }
    }
    info.empty_tiers = [&info.l1, &info.l2, &info.l3].iter().map(|tier| u32::from(tier.tokens == 0)).sum();
    info
}

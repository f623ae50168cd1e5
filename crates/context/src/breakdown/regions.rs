//! [`PromptPiece`]: the pieces of a finished prompt, and their grouping by region.

use std::collections::BTreeMap;

use hardpan_prompt::{
    AgentMessage, Block, Content, Item, ItemCopy, ItemKind, MessageId, Origin, Region, ResultPart, Source,
    ToolBlock,
};

use super::{BreakdownBlock, BreakdownContent, ContentDetails};
use crate::{AssembledPrompt, Snapshot};

/// A part of the prompt with one origin, and its tokens.
pub struct PromptPiece {
    /// The position of its block in the request, tools counted.
    pub block: usize,
    /// The region of its block.
    pub region: Region,
    /// What it is, and what put it there.
    pub origin: Origin,
    /// Its tokens.
    pub tokens: usize,
}

/// Every segment of every block, with the tokens measured for it.
pub fn collect_pieces(assembled: &AssembledPrompt) -> Vec<PromptPiece> {
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
        Content::ToolChange(change) => vec![&change.origin],
        Content::Provider(block) => vec![&block.origin],
    }
}

/// The name of the part of the request that a piece stands in.
fn region_name(region: Region, block: usize, first_message: usize, kind: ItemKind) -> &'static str {
    match region {
        _ if kind == ItemKind::Tool => "tools",
        Region::Base | Region::Inline if block < first_message => "system",
        Region::Panel => "panels",
        Region::Log => "conversation",
        Region::Inline => "messages",
        region => region.name(),
    }
}

/// Groups the pieces by region, in order. Blocks before `cached_end` are cached.
pub fn group_into_regions(
    pieces: &[PromptPiece],
    snapshot: &Snapshot,
    assembled: &AssembledPrompt,
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
        let name = region_name(piece.region, piece.block, first_message, piece.origin.kind);
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
        let content = describe_piece(piece, &index, snapshot, assembled);
        match region
            .contents
            .last_mut()
            .filter(|last| last.source == content.source && last.kind == content.kind)
        {
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
    assembled: &AssembledPrompt,
) -> BreakdownContent {
    let source = &piece.origin.source;
    let (unchanged_responses, tier) = match source {
        Source::Item { key, copy: ItemCopy::Current } => {
            index.items.get(&**key).map_or((None, None), |item| (item.unchanged_responses, item.tier))
        }
        Source::Message(id) => {
            index.messages.get(id).map_or((None, None), |message| (message.unchanged_responses, message.tier))
        }
        _ => (None, None),
    };
    let layout = assembled.layout.layout();
    let ContentDetails { threshold, hit, cost } =
        layout.content_details(source, tier, &snapshot.layout_state, &assembled.layout_state);
    BreakdownContent {
        kind: piece.origin.kind,
        source: source.clone(),
        tokens: piece.tokens,
        unchanged_responses,
        threshold,
        hit,
        cost,
    }
}

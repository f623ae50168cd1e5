//! The layers of a prompt, and the items within them.

use std::collections::BTreeSet;

use hardpan_agent::UsageReport;
use hardpan_context::{Breakdown, BreakdownContent, Target};
use hardpan_economy::Rates;
use hardpan_prompt::{ItemCopy, Source, TokenUsage};
use hardpan_terminal::blocks::{CacheState, ContextRow, LastUse, Layer, LayerAge, LayerPart};
use hardpan_terminal::views::ContextItem;

use super::{empty_layer, marks, split_at};
use crate::hud::blocks::{Region, regions};

/// What the tokens of a layer cost.
pub(super) struct LayerPrices<'a> {
    pub(super) rates: &'a Rates,
    /// Tokens up to the last breakpoint.
    pub(super) frontier: usize,
}

impl LayerPrices<'_> {
    /// With the next request if the cache holds, and if it has nothing.
    fn of(&self, start: usize, tokens: usize) -> (f64, f64) {
        let cached = self.frontier.saturating_sub(start).min(tokens) as u64;
        let input = tokens as u64 - cached;
        let warm = TokenUsage { input, cache_read: cached, ..TokenUsage::default() };
        let cold = TokenUsage { input, cache_write_5m: cached, ..TokenUsage::default() };
        (self.rates.input_dollars(&warm), self.rates.input_dollars(&cold))
    }

    /// What the last request did with them.
    fn parts(&self, start: usize, tokens: usize, read: usize, garbage: usize) -> Vec<LayerPart> {
        let garbage = garbage.min(read);
        let before_frontier = self.frontier.saturating_sub(start).min(tokens);
        let written = before_frontier.saturating_sub(read);
        let parts = [
            (read - garbage, CacheState::Read),
            (garbage, CacheState::Garbage),
            (written, CacheState::Written),
            (tokens - read.max(before_frontier).min(tokens), CacheState::Sent),
        ];
        parts.into_iter().filter(|(tokens, _)| *tokens > 0).collect()
    }
}

pub(super) fn layer(
    region: &Region<'_>,
    start: usize,
    messages: &mut usize,
    prices: &LayerPrices<'_>,
) -> Layer {
    let block = region.block;
    let read = region.read.unwrap_or(0);
    let garbage: usize = block.contents.iter().filter(is_garbage).map(|content| content.tokens).sum();
    let parts = prices.parts(start, block.tokens, read, garbage);
    let unchanged = block.contents.iter().filter_map(|content| content.unchanged_responses).min();
    let age = match unchanged {
        _ if region.read == Some(0) => LayerAge::New,
        Some(responses) => LayerAge::Requests(responses),
        None => LayerAge::None,
    };
    let (next, amount) = prices.of(start, block.tokens);
    let ids: BTreeSet<&Source> =
        block.contents.iter().map(|content| &content.source).filter(is_message).collect();
    let turns =
        (block.name == "conversation" && !ids.is_empty()).then_some((*messages + 1, *messages + ids.len()));
    *messages += if turns.is_some() { ids.len() } else { 0 };
    Layer {
        name: layer_name(block.name).to_owned(),
        part: None,
        turns,
        depth: 0,
        last: last_use(region.hit(), &parts),
        parts,
        age,
        next,
        amount,
        holds: region.describe_contents(),
        has_breakpoint: false,
    }
}

/// A layer for each panel, with whether it was found in the cache and what it has cost.
pub(super) fn panel_layers(region: &Region<'_>, start: usize, prices: &LayerPrices<'_>) -> Vec<ContextRow> {
    let mut at = start;
    let mut unread = region.read.unwrap_or(0);
    let mut layers = Vec::new();
    for content in &region.block.contents {
        let read = unread.min(content.tokens);
        unread -= read;
        let parts = prices.parts(at, content.tokens, read, 0);
        let (next, _) = prices.of(at, content.tokens);
        at += content.tokens;
        let last = match content.hit {
            Some(false) => LastUse::Text("changed".to_owned()),
            _ => last_use(region.read.map(|_| percent(read, content.tokens)), &parts),
        };
        layers.push(ContextRow::Layer(Layer {
            name: content.key(),
            part: None,
            turns: None,
            depth: 0,
            parts,
            age: content.unchanged_responses.map_or(LayerAge::None, LayerAge::Requests),
            last,
            next,
            amount: content.cost.unwrap_or(0.0),
            holds: content.kind.name().to_owned(),
            has_breakpoint: false,
        }));
    }
    layers
}

fn is_message(source: &&Source) -> bool {
    matches!(source, Source::Message(_))
}

/// Whether a newer copy of the content is in the prompt.
pub(super) fn is_garbage(content: &&BreakdownContent) -> bool {
    matches!(content.source, Source::Item { copy: ItemCopy::Former, .. })
}

fn last_use(hit: Option<u8>, parts: &[LayerPart]) -> LastUse {
    let is_written = parts.iter().any(|(_, state)| *state == CacheState::Written);
    match hit {
        Some(hit) if hit > 0 => LastUse::Read(hit),
        _ if is_written => LastUse::Written,
        _ => LastUse::Sent,
    }
}

pub(super) fn percent(part: usize, whole: usize) -> u8 {
    u8::try_from(part * 100 / whole.max(1)).unwrap_or(100)
}

/// The items of each layer of `context_view`, in the order of its layers.
pub(super) fn layer_items(
    breakdown: &Breakdown,
    target: &Target,
    usage: &UsageReport,
) -> Vec<Vec<ContextItem>> {
    let rates = Rates::for_model(&target.model, &target.profile, breakdown.total_tokens as u64);
    let split = split_at(breakdown, &marks(breakdown));
    let frontier = breakdown.breakpoints.last().map_or(0, |last| last.tokens);
    let prices = LayerPrices { rates: &rates, frontier };
    let mut layers = Vec::new();
    let mut end = 0;
    for region in regions(&split, usage.last_request) {
        let items = region_items(&region, end, &prices);
        end += region.block.tokens;
        match region.block.name {
            "panels" => layers.extend(items.into_iter().map(|item| vec![item])),
            _ => layers.push(items),
        }
    }
    layers
}

/// What a region holds, item by item; neighbours with the same key are one.
fn region_items(region: &Region<'_>, start: usize, prices: &LayerPrices<'_>) -> Vec<ContextItem> {
    let is_panels = region.block.name == "panels";
    let mut items: Vec<ContextItem> = Vec::new();
    let (mut at, mut unread) = (start, region.read.unwrap_or(0));
    for content in &region.block.contents {
        let read = unread.min(content.tokens);
        unread -= read;
        let garbage = if is_garbage(&content) { content.tokens } else { 0 };
        let parts = prices.parts(at, content.tokens, read, garbage);
        let (next, amount) = prices.of(at, content.tokens);
        at += content.tokens;
        let key = content.key();
        if let Some(last) = items.last_mut().filter(|last| last.key == key && !is_panels) {
            last.layer.parts.extend(parts);
            (last.layer.next, last.layer.amount) = (last.layer.next + next, last.layer.amount + amount);
            continue;
        }
        let layer = Layer {
            depth: 1,
            age: content.unchanged_responses.map_or(LayerAge::None, LayerAge::Requests),
            last: last_use(region.read.map(|_| percent(read, content.tokens)), &parts),
            parts,
            next,
            amount,
            holds: content.kind.name().to_owned(),
            ..empty_layer(key.strip_prefix("message:").unwrap_or(&key))
        };
        items.push(ContextItem { key, layer, is_pinned: false, is_excluded: false });
    }
    items
}

/// The name of a region as the product explains it.
fn layer_name(region: &'static str) -> &'static str {
    match region {
        "base" => "BASE",
        "conversation" => "LOG",
        "tail" => "TAIL",
        other => other,
    }
}

//! [`context_view`]: the values of the context view, read from the breakdown of the last request, its
//! bill, and the state of the cache.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hardpan_agent::{Agent, CacheWarmth, Spending, UsageReport};
use hardpan_app::ConversationApp;
use hardpan_context::{Breakdown, BreakdownBlock, BreakdownContent, FoldOutlook, LayoutName, Target};
use hardpan_economy::verdict::Blame;
use hardpan_economy::{Ledger, Rates, Verdict};
use hardpan_prompt::{AgentMessage, ItemCopy, ItemKind, MessageBody, MessagePart, Source, TokenUsage};
use hardpan_terminal::blocks::{
    CacheExpiry, CacheMark, CacheState, ContextColumns, ContextFacts, ContextRow, ContextView, Cost, Garbage,
    LastRequest, LastUse, LastVerdict, Layer, LayerAge, LayerPart, NextFold, SessionTotals,
};
use hardpan_terminal::theme::{Palette, Theme};
use hardpan_terminal::views::{ContextData, ContextItem};

use crate::hud::blocks::{Region, regions};

/// How much of a message is shown.
const GIST_CHARS: usize = 200;

/// What the view is made of.
pub struct ContextSources<'a> {
    /// Of the last request, or of the next one if nothing was sent.
    pub breakdown: &'a Breakdown,
    /// Where it goes, and what that costs.
    pub target: &'a Target,
    /// What the requests used.
    pub usage: &'a UsageReport,
    /// How the last request used the cache.
    pub verdict: Option<Verdict>,
    /// How long the cache lives.
    pub warmth: Option<CacheWarmth>,
    /// Everything that was paid.
    pub ledger: &'a Ledger,
    /// The layout's own figures, in words.
    pub notes: Vec<String>,
}

/// The view of a conversation.
pub fn conversation_view(agent: &Agent, breakdown: &Breakdown) -> ContextView {
    let figures = agent.layout_figures(breakdown);
    let note = |figure: &hardpan_context::SessionFigure| {
        format!("{}: {} now, {} in this session", figure.label, figure.last_request, figure.session)
    };
    context_view(&ContextSources {
        breakdown,
        target: &agent.target(),
        usage: &agent.token_usage(),
        verdict: agent.last_verdict(),
        warmth: agent.cache_warmth(),
        ledger: &agent.ledger(),
        notes: figures.iter().map(note).collect(),
    })
}

/// The view of a conversation with the items of its layers, for the face in which they can be chosen.
pub fn context_data(app: &ConversationApp, breakdown: &Breakdown) -> ContextData {
    let agent = &app.agent;
    let mut view = conversation_view(agent, breakdown);
    let gists: BTreeMap<String, String> =
        agent.messages().iter().map(|message| (message.id.to_string(), gist(message))).collect();
    let mut items = layer_items(breakdown, &agent.target(), &agent.token_usage());
    for item in items.iter_mut().flatten() {
        if let Some(path) = item.key.strip_prefix("file:") {
            item.is_pinned = app.is_pinned(path);
            item.layer.name = path.rsplit('/').next().unwrap_or(path).to_owned();
            item.layer.holds = if item.is_pinned { format!("pinned · {path}") } else { path.to_owned() };
        }
        if let Some(gist) = item.key.strip_prefix("message:").and_then(|id| gists.get(id)) {
            item.layer.holds.clone_from(gist);
        }
    }
    let excluded = app.excluded_items();
    if !excluded.is_empty() {
        view.rows.push(ContextRow::Layer(Layer {
            holds: "what you have left out".to_owned(),
            ..empty_layer("left out")
        }));
        items.push(excluded.iter().map(|key| excluded_item(key, &gists)).collect());
    }
    ContextData { view, items }
}

fn excluded_item(key: &str, gists: &BTreeMap<String, String>) -> ContextItem {
    let name = key.strip_prefix("file:").or(key.strip_prefix("message:")).unwrap_or(key);
    let holds = gists.get(name).cloned().unwrap_or_default();
    let layer = Layer { depth: 1, holds, ..empty_layer(name) };
    ContextItem { key: key.to_owned(), layer, is_pinned: false, is_excluded: true }
}

fn empty_layer(name: &str) -> Layer {
    Layer {
        name: name.to_owned(),
        part: None,
        turns: None,
        depth: 0,
        parts: Vec::new(),
        age: LayerAge::None,
        last: LastUse::Text(String::new()),
        next: 0.0,
        amount: 0.0,
        holds: String::new(),
        has_breakpoint: false,
    }
}

/// Who wrote a message, and how it begins.
fn gist(message: &AgentMessage) -> String {
    let (who, parts) = match &*message.body {
        MessageBody::User { content } => ("you", content),
        MessageBody::Assistant { content, .. } => ("model", content),
        MessageBody::ToolResult { tool_name, content, .. } => {
            (tool_name.as_deref().unwrap_or("tool"), content)
        }
        _ => return String::new(),
    };
    let text = parts.iter().find_map(|part| match part {
        MessagePart::Text { text } => Some(text.as_str().trim()),
        MessagePart::ToolCall(call) => Some(&*call.name),
        _ => None,
    });
    let first = text.unwrap_or_default().lines().next().unwrap_or_default();
    format!("{who}: {}", first.chars().take(GIST_CHARS).collect::<String>())
}

/// The view of a conversation as text, for faces that print lines.
pub fn drawing(agent: &Agent, breakdown: &Breakdown, width: usize) -> String {
    // Nothing can be chosen in what is printed.
    let view = ContextView { chosen: usize::MAX, ..conversation_view(agent, breakdown) };
    let view = view.lines(width, &Theme { palette: Palette::None, ..Theme::default() });
    let lines = view.head.iter().chain(&view.rows).chain(&view.foot);
    let text: String = lines.map(|line| format!("{}\n", line.to_string().trim_end())).collect();
    format!("{}\n", text.trim_end())
}

/// The view of a request.
pub fn context_view(sources: &ContextSources<'_>) -> ContextView {
    let breakdown = sources.breakdown;
    let rates =
        Rates::for_model(&sources.target.model, &sources.target.profile, breakdown.total_tokens as u64);
    let marks = marks(breakdown);
    let split = split_at(breakdown, &marks);
    let frontier = breakdown.breakpoints.last().map_or(0, |last| last.tokens);
    let prices = LayerPrices { rates: &rates, frontier };
    let mut rows = Vec::new();
    let (mut end, mut messages) = (0, 0);
    let mut marks = marks.into_iter().peekable();
    for region in regions(&split, sources.usage.last_request) {
        let start = end;
        end += region.block.tokens;
        if region.block.name == "panels" {
            rows.extend(panel_layers(&region, start, &prices));
        } else {
            rows.push(ContextRow::Layer(layer(&region, start, &mut messages, &prices)));
        }
        while let Some(mark) = marks.next_if(|mark| mark.tokens <= end) {
            rows.push(ContextRow::Mark(mark));
        }
    }
    let is_strata = breakdown.layout == LayoutName::Strata;
    let columns = match breakdown.layout {
        LayoutName::Panels => ContextColumns::PANELS,
        LayoutName::Tiers => ContextColumns::TIERS,
        LayoutName::Strata | LayoutName::Inline => ContextColumns::STRATA,
    };
    ContextView {
        layout: breakdown.layout.as_str().to_owned(),
        model: breakdown.model.clone(),
        max_tokens: breakdown.max_input_tokens,
        next: breakdown.price.warm,
        cold: breakdown.price.cold,
        is_price_unknown: !breakdown.price.known,
        columns,
        rows,
        chosen: 0,
        is_split: !is_strata,
        facts: facts(sources, &rates),
        notes: sources.notes.clone(),
        keys: Vec::new(),
    }
}

/// Where cache entries end, in order: the breakpoints, and the place where the next fold begins.
fn marks(breakdown: &Breakdown) -> Vec<CacheMark> {
    let count = breakdown.breakpoints.len();
    let breakpoint = |(index, mark): (usize, &hardpan_context::BreakpointInfo)| {
        let lifetime = mark.ttl.replace('m', " min").replace('h', " h");
        let note = if index + 1 == count { format!("{lifetime} · end of the request") } else { lifetime };
        CacheMark { is_older: false, tokens: mark.tokens, note }
    };
    let mut marks: Vec<CacheMark> = breakdown.breakpoints.iter().enumerate().map(breakpoint).collect();
    if let Some(fold) = breakdown.next_fold.filter(|fold| fold.garbage_tokens > 0)
        && marks.iter().all(|mark| mark.tokens != fold.kept_tokens)
    {
        let note = "older entry, still readable: the next fold begins here".to_owned();
        marks.push(CacheMark { is_older: true, tokens: fold.kept_tokens, note });
        marks.sort_by_key(|mark| mark.tokens);
    }
    marks
}

/// The breakdown with its regions cut where cache entries end.
fn split_at(breakdown: &Breakdown, marks: &[CacheMark]) -> Breakdown {
    let mut blocks: Vec<BreakdownBlock> = Vec::new();
    // Regions that follow each other with nothing between them but what has no tokens are one.
    let mut is_cut = true;
    let mut at = 0;
    let mut cuts = marks.iter().map(|mark| mark.tokens).peekable();
    for block in &breakdown.blocks {
        let empty = || BreakdownBlock { tokens: 0, contents: Vec::new(), ..block.clone() };
        let mut part = empty();
        for content in &block.contents {
            let mut left = content.tokens;
            // A content on both sides of a cut is counted on each with its share.
            while let Some(cut) = cuts.next_if(|cut| *cut <= at + left) {
                let before = cut.saturating_sub(at).min(left);
                push_content(&mut part, content, before);
                (at, left) = (at + before, left - before);
                push_block(&mut blocks, std::mem::replace(&mut part, empty()), is_cut);
                is_cut = true;
            }
            push_content(&mut part, content, left);
            at += left;
        }
        if part.tokens > 0 {
            push_block(&mut blocks, part, is_cut);
            is_cut = false;
        }
    }
    let frontier = breakdown.breakpoints.last().map_or(0, |last| last.tokens);
    let mut end = 0;
    for block in &mut blocks {
        end += block.tokens;
        block.cached = end <= frontier;
    }
    Breakdown { blocks, ..breakdown.clone() }
}

fn push_block(blocks: &mut Vec<BreakdownBlock>, block: BreakdownBlock, is_cut: bool) {
    match blocks.last_mut() {
        _ if block.tokens == 0 => {}
        Some(last) if !is_cut && last.name == block.name => {
            last.tokens += block.tokens;
            last.contents.extend(block.contents);
        }
        _ => blocks.push(block),
    }
}

fn push_content(block: &mut BreakdownBlock, content: &BreakdownContent, tokens: usize) {
    if tokens > 0 {
        block.tokens += tokens;
        block.contents.push(BreakdownContent { tokens, ..content.clone() });
    }
}

/// What the tokens of a layer cost.
struct LayerPrices<'a> {
    rates: &'a Rates,
    /// Tokens up to the last breakpoint.
    frontier: usize,
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

fn layer(region: &Region<'_>, start: usize, messages: &mut usize, prices: &LayerPrices<'_>) -> Layer {
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
fn panel_layers(region: &Region<'_>, start: usize, prices: &LayerPrices<'_>) -> Vec<ContextRow> {
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
fn is_garbage(content: &&BreakdownContent) -> bool {
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

fn percent(part: usize, whole: usize) -> u8 {
    u8::try_from(part * 100 / whole.max(1)).unwrap_or(100)
}

/// The items of each layer of [`context_view`], in the order of its layers.
fn layer_items(breakdown: &Breakdown, target: &Target, usage: &UsageReport) -> Vec<Vec<ContextItem>> {
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

fn facts(sources: &ContextSources<'_>, rates: &Rates) -> ContextFacts {
    let ContextSources { breakdown, usage, verdict, warmth, ledger, .. } = sources;
    let contents = || breakdown.blocks.iter().flat_map(|block| &block.contents);
    let garbage: usize = contents().filter(is_garbage).map(|content| content.tokens).sum();
    let dollars = |units: f64| units * rates.input_dollars(&TokenUsage { input: 1, ..TokenUsage::default() });
    let rent = rates.input_dollars(&TokenUsage { cache_read: garbage as u64, ..TokenUsage::default() });
    let count = |tokens: u64| usize::try_from(tokens).unwrap_or(usize::MAX);
    let session = usage.session;
    let prompt = TokenUsage { input: session.tokens.prompt(), ..TokenUsage::default() };
    let losses = ledger.losses.values();
    let (lost, misses) =
        losses.fold((0.0, 0), |(lost, times), loss| (lost + loss.dollars, times + count(loss.times)));
    ContextFacts {
        garbage: (garbage > 0).then(|| Garbage {
            tokens: garbage,
            copies: contents().filter(is_garbage).count(),
            rent,
            paid: breakdown.next_fold.map_or(0.0, |fold| dollars(fold.rent)),
        }),
        next_fold: breakdown.next_fold.filter(|fold| fold.garbage_tokens > 0).map(|fold| NextFold {
            in_requests: requests_until(fold, rates),
            costs: dollars(fold.price),
            drops: fold.garbage_tokens,
            saves: dollars(fold.saving),
        }),
        expiry: warmth.map(|warmth| CacheExpiry {
            remaining: Duration::from_secs(u64::try_from(warmth.expires_in).unwrap_or(0)),
            cold: breakdown.price.cold,
            warm: breakdown.price.warm,
        }),
        verdict: verdict.as_ref().filter(|verdict| verdict.is_loss()).map(|verdict| LastVerdict {
            request: count(usage.requests),
            tokens: count(verdict.lost_tokens),
            dollars: verdict.lost_dollars,
            cause: verdict.cause.describe(),
            is_avoidable: matches!(verdict.blame, Blame::Us | Blame::Person),
        }),
        last: usage.last_request.map(|last| LastRequest {
            input: count(last.tokens.input),
            read: count(last.tokens.cache_read),
            written: count(last.tokens.cache_written()),
            output: count(last.tokens.output),
            cost: cost(&last),
        }),
        session: (usage.requests > 0).then(|| SessionTotals {
            requests: count(usage.requests),
            cost: cost(&session),
            without_cache: session.dollars + session.would_cost - rates.input_dollars(&session.tokens)
                + rates.input_dollars(&prompt),
            read: (count(session.tokens.cache_read), count(session.tokens.prompt())),
            lost: (lost, misses),
        }),
        kinds: ItemKind::ALL
            .iter()
            .map(|kind| (kind.column_name().replace('_', " "), breakdown.breakdown.get(kind.column_name())))
            .filter_map(|(name, tokens)| Some((name, *tokens?)))
            .filter(|(_, tokens)| *tokens > 0)
            .collect(),
    }
}

fn cost(spending: &Spending) -> Cost {
    let simulated = Some(spending.would_cost).filter(|amount| *amount > 0.0);
    Cost { paid: spending.dollars, simulated, is_unknown: false }
}

/// In how many requests the rent for the garbage reaches the price of the fold; `None` if there is none.
pub fn requests_until(fold: FoldOutlook, rates: &Rates) -> Option<usize> {
    let rent = fold.garbage_tokens as f64 * rates.ratios().0;
    let left = (fold.price - fold.rent).max(0.0);
    (rent > 0.0).then(|| (left / rent).ceil().max(1.0) as usize)
}

//! [`context_view`]: the values of the context view, read from the breakdown of the last request, its
//! bill, and the state of the cache.

mod facts; // what stands below the layers
mod layers; // layers and their items
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hardpan_agent::{Agent, CacheWarmth, UsageReport};
use hardpan_app::ConversationApp;
use hardpan_context::{Breakdown, BreakdownBlock, BreakdownContent, LayoutName, Target};
use hardpan_economy::{Ledger, Rates, Verdict};
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_terminal::blocks::{
    CacheMark, ContextColumns, ContextRow, ContextView, LastUse, Layer, LayerAge,
};
use hardpan_terminal::theme::{Palette, Theme};
use hardpan_terminal::views::{ContextData, ContextItem};

use crate::hud::blocks::regions;
use facts::facts;
pub use facts::requests_until;
use layers::{LayerPrices, layer, layer_items, panel_layers};

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

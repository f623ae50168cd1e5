//! [`Breakdown`]: where the tokens of a prompt go. It is read from the finished prompt, so it
//! cannot disagree with what is sent.

mod regions; // the pieces of a prompt, grouped by region

use std::collections::BTreeMap;

use hardpan_economy::{LifetimePrices, PauseCounts, Rates, quote};
use hardpan_prompt::{ItemKind, Omission, Source, Text, TokenUsage};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::{
    AssembledPrompt, FoldOutlook, LayoutName, LifetimeSetting, RenderCache, Skill, Snapshot, Target, TierInfo,
};

pub use regions::PromptPiece;

/// Everything `hardpan context` shows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    /// The instruction files and skills that the system prompt holds, and what each costs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<InstructionCost>,
    /// The breakpoints: where cache entries are requested.
    pub breakpoints: Vec<BreakpointInfo>,
    /// What the snapshot holds and the request does not.
    pub left_out: Vec<Omission>,
    /// What the input of this request costs.
    pub price: RequestPrice,
    /// `strata`: where the next fold would begin, and what it would bring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_fold: Option<FoldOutlook>,
    /// How the lifetime of cache entries was chosen, where the provider offers two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_lifetime: Option<LifetimeOutlook>,
    /// How tokens were counted, and how exact that is.
    pub tokenizer: TokenizerInfo,
}

/// A region of the request: tools, system prompt, BASE, a tier, the conversation, ….
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BreakdownContent {
    /// The kind of content: `file`, `history`, `tool`.
    #[serde(rename = "type", serialize_with = "serialize_kind")]
    #[schemars(with = "String")]
    pub kind: ItemKind,
    /// What put it there: as JSON, the item's key or `message:ID`.
    #[serde(rename = "key", serialize_with = "serialize_source")]
    #[schemars(with = "String")]
    pub source: Source,
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

/// What a file of instructions, or the entry of a skill, costs in the system prompt.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InstructionCost {
    /// The path as the model sees it, or `skill:NAME`.
    pub name: String,
    /// Its tokens.
    pub tokens: usize,
    /// Dollars in a request that writes it to the cache.
    pub written: f64,
    /// Dollars in a request that reads it from the cache.
    pub read: f64,
    /// Dollars in a session of [`SESSION_REQUESTS`] requests that loses nothing: written once, then read.
    pub session: f64,
}

/// How many requests a session has for which the price of instructions is told.
pub const SESSION_REQUESTS: u32 = 100;

impl InstructionCost {
    fn all(snapshot: &Snapshot, target: &Target, total: usize, render_cache: &RenderCache) -> Vec<Self> {
        let system = &snapshot.system;
        if system.whole.is_some() {
            return Vec::new();
        }
        let files = system.project_files.iter().map(|(path, text)| (path.to_string(), text.clone()));
        let skills = system.skills.iter().map(skill_entry);
        let texts: Vec<(String, Text)> = files.chain(skills).collect();
        Self::of(texts, target, total, render_cache)
    }

    /// What skills would cost that the system prompt does not list, in a request of `total` tokens.
    pub fn of_unlisted(skills: &[Skill], target: &Target, total: usize) -> Vec<Self> {
        let texts = skills.iter().map(skill_entry).collect();
        Self::of(texts, target, total, &RenderCache::new(target.vocabulary()))
    }

    fn of(
        texts: Vec<(String, Text)>,
        target: &Target,
        total: usize,
        render_cache: &RenderCache,
    ) -> Vec<Self> {
        let rates = Rates::for_model(&target.model, &target.profile, total as u64);
        let cost = |(name, text): (String, Text)| {
            let tokens = target.factor.scale(render_cache.counter.count(&text));
            let many = tokens as u64;
            let written = rates.input_dollars(&TokenUsage { cache_write_5m: many, ..TokenUsage::default() });
            let read = rates.input_dollars(&TokenUsage { cache_read: many, ..TokenUsage::default() });
            InstructionCost {
                name,
                tokens,
                written,
                read,
                session: written + f64::from(SESSION_REQUESTS - 1) * read,
            }
        };
        texts.into_iter().map(cost).collect()
    }
}

/// A skill and its line in the system prompt's list.
fn skill_entry(skill: &Skill) -> (String, Text) {
    let entry = format!("{}: {} ({})", skill.name, skill.description, skill.location);
    (format!("skill:{}", skill.name), Text::new(entry))
}

/// A breakpoint of the request: a cache entry is requested up to this block.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BreakpointInfo {
    /// Where it is among tools, system and messages: `messages[3].content[0]`.
    pub block: String,
    /// Tokens up to and including its block.
    pub tokens: usize,
    /// How long the provider is to keep the entry: `5m` or `1h`.
    pub ttl: &'static str,
}

/// What the input of a request costs, in US dollars.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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

/// How the lifetime of cache entries was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LifetimeOutlook {
    /// What the settings ask for: `auto`, `5m` or `1h`.
    pub setting: LifetimeSetting,
    /// The pauses of the conversation so far that outlasted a lifetime.
    pub pauses: PauseCounts,
    /// How many more pauses an entry of the long lifetime is expected to bridge.
    pub expected_pauses: f64,
    /// How many expected pauses make the long lifetime worth its price.
    pub break_even_pauses: f64,
}

impl LifetimeOutlook {
    fn new(snapshot: &Snapshot, target: &Target, tokens: usize) -> Option<Self> {
        let prices = LifetimePrices::for_model(&target.model, &target.profile, tokens as u64)?;
        let rounded = |pauses: f64| (pauses * 100.0).round() / 100.0;
        Some(LifetimeOutlook {
            setting: snapshot.cache_lifetime,
            pauses: snapshot.pauses,
            expected_pauses: rounded(snapshot.pauses.expected_bridges()),
            break_even_pauses: rounded(prices.break_even_pauses()),
        })
    }
}

/// How the tokens of a breakdown were counted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TokenizerInfo {
    /// The vocabulary that was used: `o200k`.
    pub vocabulary: &'static str,
    /// Whether it is the model's own vocabulary.
    pub exact: bool,
    /// What counts are multiplied by to estimate the model's own tokens.
    pub factor: f64,
}

/// What a layout adds to the breakdown of a prompt.
#[derive(Clone, Debug, Default)]
pub struct LayoutDetails {
    /// What each tier holds, in a layout with tiers.
    pub tier_info: Option<TierInfo>,
    /// The tokens of the live conversation, in a layout that freezes the older part.
    pub conversation_tokens: Option<usize>,
}

/// What a layout adds to one content of the breakdown.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContentDetails {
    /// For how many responses it has to be unchanged to stand where it does.
    pub threshold: Option<u32>,
    /// Whether it and all before it are as they were in the last request.
    pub hit: Option<bool>,
    /// What it has cost so far, in dollars.
    pub cost: Option<f64>,
}

/// A figure of a layout's own, for the last request and the whole session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFigure {
    /// Its name in JSON: `empty_tiers`.
    pub name: &'static str,
    /// What people read: `empty tiers`.
    pub label: &'static str,
    /// The figure of the last request.
    pub last_request: u32,
    /// The sum over all requests of the session.
    pub session: u32,
}

impl Breakdown {
    /// Reads the breakdown from an assembled prompt and the snapshot it was built from.
    pub fn new(
        assembled: &AssembledPrompt,
        snapshot: &Snapshot,
        target: &Target,
        render_cache: &RenderCache,
    ) -> Self {
        let AssembledPrompt { prompt, measured, layout, layout_state, fold: _, stale_reasoning: _ } =
            assembled;
        let snapshot = &*layout.layout().annotate(snapshot, layout_state);
        let pieces = regions::collect_pieces(assembled);
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
        let LayoutDetails { tier_info, conversation_tokens } =
            layout.layout().breakdown_details(&pieces, snapshot, layout_state, &render_cache.counter);
        let exact = target.model.vocabulary.is_some();
        Breakdown {
            model: target.model.id.clone(),
            layout: *layout,
            total_tokens: measured.total(),
            max_input_tokens: target.max_input_tokens() as usize,
            blocks: regions::group_into_regions(&pieces, snapshot, assembled, cached_end),
            context_map_tokens: breakdown["symbol_map"] + breakdown["legend"],
            breakdown,
            empty_tiers: tier_info.as_ref().map_or(0, |info| info.empty_tiers),
            tier_info,
            user_text: snapshot.user_prompt().map(|(_, text)| text),
            conversation_tokens,
            instructions: InstructionCost::all(snapshot, target, measured.total(), render_cache),
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
            next_fold: layout.layout().fold_outlook(layout_state),
            cache_lifetime: LifetimeOutlook::new(snapshot, target, measured.total()),
            tokenizer: TokenizerInfo {
                vocabulary: render_cache.counter.vocabulary().name(),
                exact,
                factor: target.factor.value(),
            },
        }
    }
}

impl BreakdownContent {
    /// The item's key, or what else it came from: `file:src/a.rs`, `message:m1`.
    pub fn key(&self) -> String {
        self.source.to_string()
    }
}

fn serialize_kind<S: Serializer>(kind: &ItemKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

fn serialize_source<S: Serializer>(source: &Source, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(source)
}

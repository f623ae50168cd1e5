//! Breakdowns made by hand, and what is shown of them.

mod widths; // whatever the width, nothing is left out

use std::collections::BTreeMap;

use hardpan_context::{
    BreakdownBlock, BreakdownContent, BreakpointInfo, FoldOutlook, LayoutName, LifetimeOutlook,
    LifetimeSetting, PromptTexts, RenderCache, SnapshotFile, Target, assemble,
};
use hardpan_economy::PauseCounts;
use hardpan_models::Catalogue;
use hardpan_prompt::{ItemCopy, Source, TokenUsage, Vocabulary};

use super::*;

/// The source that is written as this key.
fn source(key: &'static str) -> Source {
    let copies =
        [(" (update)", ItemCopy::Update), (" (former copy)", ItemCopy::Former), (" (stub)", ItemCopy::Stub)];
    match key.split_once(':') {
        Some(("rule", name)) => Source::Rule(name),
        Some(("tool", name)) => Source::Tool(name.into()),
        Some(("message", id)) => Source::Message(id.into()),
        _ => {
            let copy = copies.into_iter().find_map(|(suffix, copy)| Some((key.strip_suffix(suffix)?, copy)));
            let (key, copy) = copy.unwrap_or((key, ItemCopy::Current));
            Source::Item { key: key.into(), copy }
        }
    }
}

fn kind(name: &str) -> ItemKind {
    ItemKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap()
}

/// A region that holds (kind, key, tokens).
fn block(name: &'static str, cached: bool, contents: &[(&str, &'static str, usize)]) -> BreakdownBlock {
    let content = |&(name, key, tokens): &(&str, &'static str, usize)| BreakdownContent {
        kind: kind(name),
        source: source(key),
        tokens,
        unchanged_responses: None,
        threshold: None,
        hit: None,
        cost: None,
    };
    BreakdownBlock {
        name,
        tier: name,
        tokens: contents.iter().map(|content| content.2).sum(),
        cached,
        span: (0, 1),
        contents: contents.iter().map(content).collect(),
    }
}

/// The breakdown of these regions, with a breakpoint after so many tokens.
fn breakdown(layout: LayoutName, blocks: Vec<BreakdownBlock>, frontier: usize) -> Breakdown {
    let mut kinds: BTreeMap<&'static str, usize> =
        ItemKind::ALL.iter().map(|kind| (kind.column_name(), 0)).collect();
    for content in blocks.iter().flat_map(|block| &block.contents) {
        *kinds.get_mut(content.kind.column_name()).unwrap() += content.tokens;
    }
    let mut made = of_a_small_request(layout);
    made.max_input_tokens = 168_000;
    made.total_tokens = blocks.iter().map(|block| block.tokens).sum();
    made.blocks = blocks;
    made.breakdown = kinds;
    made.breakpoints = vec![BreakpointInfo { block: "x".into(), tokens: frontier, ttl: "5m" }];
    made
}

/// A real breakdown, whose figures are then replaced.
fn of_a_small_request(layout: LayoutName) -> Breakdown {
    let json = r#"{"version": 1, "now": "2026-02-19T14:00:00Z", "prompt": "x"}"#;
    let snapshot = SnapshotFile::parse("test", json).unwrap().into_snapshot("test").unwrap();
    let target = Target::new(Catalogue::builtin(), None, "claude-sonnet-5").unwrap();
    let render_cache = RenderCache::new(Vocabulary::O200k);
    let assembled =
        assemble(&snapshot, layout, &target, &PromptTexts::builtin().unwrap(), &render_cache).unwrap();
    Breakdown::new(&assembled, &snapshot, &target, &render_cache)
}

pub fn strata() -> Breakdown {
    let blocks = vec![
        block("tools", true, &[("tool", "tool:read", 400), ("tool", "tool:grep", 600)]),
        block("system", true, &[("system", "rule:agent", 2_900), ("system", "rule:skills", 100)]),
        block(
            "base",
            true,
            &[
                ("panel", "rule:base group", 10),
                ("tree", "tree", 990),
                ("legend", "legend", 200),
                ("symbols", "symbols:a.rs", 3_000),
                ("symbols", "symbols:b.rs", 1_800),
                ("file", "file:src/main.rs", 4_000),
            ],
        ),
        block(
            "conversation",
            false,
            &[
                ("history", "message:1", 2_000),
                ("history", "message:2", 2_500),
                ("file", "file:src/main.rs (update)", 300),
                ("history", "message:1", 200),
            ],
        ),
        block("tail", false, &[("panel", "rule:clock", 25), ("panel", "rule:working directory", 75)]),
    ];
    breakdown(LayoutName::Strata, blocks, 18_000)
}

pub fn tiers() -> Breakdown {
    let blocks = vec![
        block(
            "L0",
            true,
            &[("system", "rule:agent", 3_000), ("legend", "legend", 300), ("symbols", "symbols:a", 700)],
        ),
        block(
            "L3",
            true,
            &[("symbols", "symbols:b", 500), ("file", "file:c", 1_500), ("history", "message:1", 40)],
        ),
        block(
            "active",
            false,
            &[
                ("tree", "rule:file tree header", 15),
                ("tree", "tree", 485),
                ("url", "url:https://example.org/", 900),
                ("file", "file:d", 100),
                ("history", "message:2", 60),
                ("history", "message:3", 400),
            ],
        ),
    ];
    let mut tiers = breakdown(LayoutName::Tiers, blocks, 6_040);
    tiers.empty_tiers = 2;
    tiers.tokenizer.exact = true;
    tiers
}

const EMPTY_TIERS: [SessionFigure; 1] =
    [SessionFigure { name: "empty_tiers", label: "empty tiers", last_request: 2, session: 17 }];

fn hud(breakdown: &Breakdown) -> Hud<'_> {
    Hud {
        verdict: None,
        breakdown,
        provider: "anthropic",
        max_output: 32_000,
        last: None,
        session: Spending::default(),
        requests: 0,
        tasks: None,
        layout_figures: &[],
    }
}

/// Our counts are 5% below the provider's, as estimates are.
/// Tokens as input, read, written, output; and dollars.
pub fn spending([input, cache_read, cache_write_5m, output]: [u64; 4], dollars: f64) -> Spending {
    let tokens = TokenUsage { input, cache_read, cache_write_5m, output, ..TokenUsage::default() };
    Spending { tokens, dollars, would_cost: 0.0 }
}

fn warm_strata(breakdown: &Breakdown) -> Hud<'_> {
    Hud {
        last: Some(spending([1_155, 15_750, 3_150, 321], 0.0213)),
        session: spending([9_155, 45_750, 21_150, 2_321], 0.2134),
        requests: 7,
        ..hud(breakdown)
    }
}

fn warm_tiers(breakdown: &Breakdown) -> Hud<'_> {
    Hud {
        last: Some(spending([1_960, 4_000, 2_040, 12], 0.0198)),
        session: spending([1_234_567_890, 98_765_432, 999_999, 12_345], 4321.5),
        requests: 1_234,
        layout_figures: &EMPTY_TIERS,
        ..hud(breakdown)
    }
}

#[test]
fn strata_in_sixty_columns() {
    let expected = "\
anthropic/claude-sonnet-5 · strata
input about 19,100 of 168,000 tokens (11.4%)
answer up to 32,000 tokens

system       3,000   15.7%  █████
legend         200    1.0%  ▍
symbol map   4,800   25.1%  ████████
tree           990    5.2%  █▋
files        4,300   22.5%  ███████▎
history      4,700   24.6%  ███████▉
panels         110    0.6%  ▏
tools        1,000    5.2%  █▋

tokens        input    read  written  output    cost
last request  1,155  15,750    3,150     321  $0.021
session (7)   9,155  45,750   21,150   2,321  $0.213
from the cache: 78.5% of the last prompt, 60.2% of all

┌─ cache blocks ───────────────────────────────────────────┐
│ block         tokens  cached   hit  holds                │
├──────────────────────────────────────────────────────────┤
│ tools          1,000  yes     100%  2 tools              │
│ system         3,000  yes     100%  system prompt        │
│ base          10,000  yes     100%  tree, legend,        │
│                                     2 symbols, 1 file    │
├──────────────────────────────────────────────────────────┤
│ conversation   5,000  partly   20%  2 messages, 1 update │
│ tail             100  no        0%  clock,               │
│                                     working directory    │
└──────────────────────────────────────────────────────────┘
";
    assert_eq!(warm_strata(&strata()).render(60), expected);
}

#[test]
fn strata_in_a_wide_terminal() {
    let expected = "\
anthropic/claude-sonnet-5 · strata
input about 19,100 of 168,000 tokens (11.4%)
answer up to 32,000 tokens

system       3,000   15.7%  █████████▊
legend         200    1.0%  ▋
symbol map   4,800   25.1%  ███████████████▋
tree           990    5.2%  ███▎
files        4,300   22.5%  ██████████████
history      4,700   24.6%  ███████████████▎
panels         110    0.6%  ▍
tools        1,000    5.2%  ███▎

tokens        input    read  written  output    cost
last request  1,155  15,750    3,150     321  $0.021
session (7)   9,155  45,750   21,150   2,321  $0.213
from the cache: 78.5% of the last prompt, 60.2% of all

┌─ cache blocks ─────────────────────────────────────────────────────────────────────────┐
│ block         tokens  cached   hit              holds                                  │
├────────────────────────────────────────────────────────────────────────────────────────┤
│ tools          1,000  yes     100%  ██████████  2 tools                                │
│ system         3,000  yes     100%  ██████████  system prompt                          │
│ base          10,000  yes     100%  ██████████  tree, legend, 2 symbols, 1 file        │
├────────────────────────────────────────────────────────────────────────────────────────┤
│ conversation   5,000  partly   20%  ██          2 messages, 1 update                   │
│ tail             100  no        0%              clock, working directory               │
└────────────────────────────────────────────────────────────────────────────────────────┘
";
    assert_eq!(warm_strata(&strata()).render(90), expected);
}

#[test]
fn tiers_in_sixty_columns() {
    let expected = "\
anthropic/claude-sonnet-5 · tiers
input 8,000 of 168,000 tokens (4.8%)
answer up to 32,000 tokens

system      3,000   37.5%  ████████████▍
legend        300    3.8%  █▎
symbol map  1,200   15.0%  █████
tree          500    6.2%  ██▏
files       1,600   20.0%  ██████▋
pages         900   11.2%  ███▊
history       500    6.2%  ██▏

tokens    last request        session
input            1,960  1,234,567,890
read             4,000     98,765,432
written          2,040        999,999
output              12         12,345
cost            $0.020       $4321.50
requests                        1,234
from the cache: 50.0% of the last prompt, 7.4% of all

┌─ cache blocks ───────────────────────────────────────────┐
│ block   tokens  cached   hit  holds                      │
├──────────────────────────────────────────────────────────┤
│ L0       4,000  yes     100%  system prompt, legend,     │
│                               1 symbol                   │
│ L3       2,040  yes       0%  1 symbol, 1 file,          │
│                               1 message                  │
├──────────────────────────────────────────────────────────┤
│ active   1,960  no        0%  tree, 1 page, 1 file,      │
│                               2 messages                 │
└─ empty tiers: 2 now, 17 in the session ──────────────────┘
";
    assert_eq!(warm_tiers(&tiers()).render(60), expected);
}

#[test]
fn before_the_first_answer_there_are_no_hits() {
    let expected = "\
anthropic/claude-sonnet-5 · tiers
input 8,000 of 168,000 tokens (4.8%)
answer up to 32,000 tokens

system      3,000   37.5%  ████████████▍
legend        300    3.8%  █▎
symbol map  1,200   15.0%  █████
tree          500    6.2%  ██▏
files       1,600   20.0%  ██████▋
pages         900   11.2%  ███▊
history       500    6.2%  ██▏

tokens        input  read  written  output  cost
last request      -     -        -       -     -
session (0)       0     0        0       0    $0
from the cache: 0.0% of all

┌─ cache blocks ───────────────────────────────────────────┐
│ block   tokens  cached   hit  holds                      │
├──────────────────────────────────────────────────────────┤
│ L0       4,000  yes        -  system prompt, legend,     │
│                               1 symbol                   │
│ L3       2,040  yes        -  1 symbol, 1 file,          │
│                               1 message                  │
├──────────────────────────────────────────────────────────┤
│ active   1,960  no         -  tree, 1 page, 1 file,      │
│                               2 messages                 │
└─ empty tiers: 2 now, 0 in the session ───────────────────┘
";
    let (tiers, figures) = (tiers(), [SessionFigure { session: 0, ..EMPTY_TIERS[0] }]);
    assert_eq!(Hud { layout_figures: &figures, ..hud(&tiers) }.render(60), expected);
}

#[test]
fn the_same_is_there_for_programs() {
    let tiers = tiers();
    let value = warm_tiers(&tiers).json();
    let expected = json!({
        "provider": "anthropic",
        "model": "claude-sonnet-5",
        "layout": "tiers",
        "tokens": 8_000,
        "exact": true,
        "max_input_tokens": 168_000,
        "max_output_tokens": 32_000,
        "categories": {
            "files": 1_600, "history": 500, "legend": 300, "panels": 0, "symbol_map": 1_200,
            "system": 3_000, "tools": 0, "tree": 500, "urls": 900,
        },
        "last_request": { "input": 1_960, "read": 4_000, "written": 2_040, "output": 12, "dollars": 0.0198 },
        "session": {
            "input": 1_234_567_890, "read": 98_765_432, "written": 999_999, "output": 12_345, "dollars": 4321.5,
        },
        "requests": 1_234,
        "blocks": [
            {
                "name": "L0", "tier": "L0", "tokens": 4_000, "cached": "yes", "read": 4_000, "hit_percent": 100,
                "holds": { "system_prompt": 1, "legend": 1, "symbols": 1 },
            },
            {
                "name": "L3", "tier": "L3", "tokens": 2_040, "cached": "yes", "read": 0, "hit_percent": 0,
                "holds": { "symbols": 1, "files": 1, "messages": 1 },
            },
            {
                "name": "active", "tier": "active", "tokens": 1_960, "cached": "no", "read": 0, "hit_percent": 0,
                "holds": { "tree": 1, "pages": 1, "files": 1, "messages": 2 },
            },
        ],
        "next_fold": null,
        "cache_lifetime": {
            "setting": "auto", "pauses": { "bridged": 0, "ended": 0 },
            "expected_pauses": 0.25, "break_even_pauses": 0.65,
        },
        "verdict": null,
        "empty_tiers": { "last_request": 2, "session": 17 },
    });
    assert_eq!(value, expected);
}

/// What was lost, said in a sentence that is wider than a terminal.
fn long_verdict() -> Verdict {
    let verdict = json!({
        "expected_read": 5_000, "read": 0, "lost_tokens": 5_000, "lost_dollars": 0.0115, "ours": "person",
        "cause": { "expired": { "minutes": 12, "lifetime": 5 } },
    });
    serde_json::from_value(verdict).unwrap()
}

#[test]
fn what_was_paid_again_is_said_under_what_was_read() {
    let breakdown = strata();
    let shown = Hud { verdict: Some(long_verdict()), ..warm_strata(&breakdown) };
    let sentence = "5,000 tokens ($0.011) were paid again: the cache expired after 5 minutes (12 minutes unused). You could have avoided it.";
    assert!(shown.render(100).replace('\n', " ").contains(sentence), "{}", shown.render(100));
    assert_eq!(shown.json()["verdict"]["cause"]["expired"]["minutes"], 12);
}

#[test]
fn the_next_fold_and_the_lifetime_of_the_cache_are_told_in_a_line_each() {
    let mut breakdown = strata();
    assert!(!warm_strata(&breakdown).render(100).contains("a fold there"));
    breakdown.next_fold = Some(FoldOutlook {
        kept_tokens: 9_000,
        garbage_tokens: 1_200,
        price: 5_130.4,
        rent: 360.0,
        saving: 120.0,
    });
    breakdown.cache_lifetime = Some(LifetimeOutlook {
        setting: LifetimeSetting::Auto,
        pauses: PauseCounts { bridged: 1, ended: 0 },
        expected_pauses: 0.75,
        break_even_pauses: 0.65,
    });
    let shown = warm_strata(&breakdown);
    let text = shown.render(100).replace('\n', " ");
    for line in [
        "garbage: 1,200 tokens after the first 9,000; a fold there costs 5,130 units and saves 120 with every request; 360 are paid",
        "cache lifetime (auto): 5m; 1 pause that an hour bridges, 0.75 more expected, 0.65 needed",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(shown.json()["next_fold"]["garbage_tokens"], 1_200);
    assert_eq!(shown.json()["cache_lifetime"]["pauses"]["bridged"], 1);
}

#[test]
fn what_was_read_fills_the_regions_from_the_front() {
    let breakdown = strata();
    let hits = |read: u64, input: u64| {
        let last = Some(spending([input, read, 0, 0], 0.0));
        regions(&breakdown, last).iter().map(|region| region.hit().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(hits(0, 19_100), [0, 0, 0, 0, 0]);
    assert_eq!(hits(1, 19_099), [1, 0, 0, 0, 0]);
    assert_eq!(hits(3_999, 15_101), [100, 99, 0, 0, 0]);
    assert_eq!(hits(9_000, 10_100), [100, 100, 50, 0, 0]);
    assert_eq!(hits(19_100, 0), [100, 100, 100, 100, 100]);
    // The provider counts twice what we do.
    assert_eq!(hits(18_000, 20_200), [100, 100, 50, 0, 0]);
    assert_eq!(hits(0, 0), [0, 0, 0, 0, 0]);
}

#[test]
fn a_price_that_is_not_known_is_not_zero() {
    let mut breakdown = tiers();
    breakdown.price.known = false;
    let mut hud = warm_tiers(&breakdown);
    hud.last = Some(Spending { dollars: 0.0, ..hud.last.unwrap() });
    let text = hud.render(100);
    let row = text.lines().find(|line| line.starts_with("last request")).unwrap();
    assert!(row.ends_with(" -"), "{row}");
}

#[test]
fn what_sub_agents_used_is_a_line_of_its_own() {
    let breakdown = strata();
    let tasks = Some(TaskUsage {
        requests: 4,
        prompt_tokens: 10_000,
        cached_tokens: 9_000,
        output_tokens: 132,
        dollars: 0.0031,
    });
    let shown = Hud { tasks, ..warm_strata(&breakdown) };
    let line =
        "of the session, sub-agents: 4 requests, 10,000 tokens (90.0% from the cache), 132 written, $0.0031";
    assert!(shown.render(100).replace('\n', " ").contains(line), "{}", shown.render(100));
    assert_eq!(shown.json()["tasks"]["requests"], 4);
}

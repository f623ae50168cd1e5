//! The context view of breakdowns made by hand.

use hardpan_context::{BreakpointInfo, FoldOutlook};
use hardpan_models::Catalogue;
use hardpan_prompt::{ItemCopy, Source};

use super::*;
use crate::hud::tests::{spending, strata, tiers};

fn view(breakdown: &Breakdown, usage: &UsageReport, width: usize) -> String {
    let target = Target::new(Catalogue::builtin(), None, "claude-sonnet-5").unwrap();
    let warmth = CacheWarmth { expires_in: 252, tokens: 18_000, pings: 0, ping_pays: false };
    let view = context_view(&ContextSources {
        breakdown,
        target: &target,
        usage,
        verdict: None,
        warmth: Some(warmth),
        ledger: &Ledger::default(),
        notes: vec!["empty tiers: 2 now, 17 in this session".to_owned()],
    });
    assert_eq!(view.tokens(), breakdown.total_tokens);
    let lines = view.lines(width, &Theme::default());
    lines.head.iter().chain(&lines.rows).chain(&lines.foot).map(|line| format!("{line}\n")).collect()
}

fn usage() -> UsageReport {
    UsageReport {
        last_request: Some(spending([1_155, 15_750, 3_150, 321], 0.0213)),
        session: spending([9_155, 45_750, 21_150, 2_321], 0.2134),
        requests: 7,
        tasks: None,
        breakdown: None,
    }
}

fn with_garbage() -> Breakdown {
    let mut breakdown = strata();
    let old = breakdown.blocks[3].contents[2].clone();
    let source = Source::Item { key: "file:src/main.rs".into(), copy: ItemCopy::Former };
    breakdown.blocks[3].contents.insert(0, BreakdownContent { source, tokens: 900, ..old });
    breakdown.blocks[3].tokens += 900;
    breakdown.total_tokens += 900;
    breakdown.breakpoints = [(4_000, "1h"), (14_000, "5m"), (18_900, "5m")]
        .map(|(tokens, ttl)| BreakpointInfo { block: "x".into(), tokens, ttl })
        .to_vec();
    breakdown.next_fold = Some(FoldOutlook {
        kept_tokens: 16_000,
        garbage_tokens: 900,
        price: 900.0,
        rent: 500.0,
        saving: 90.0,
    });
    breakdown
}

#[test]
fn strata_as_layers() {
    insta::assert_snapshot!("strata_100", view(&with_garbage(), &usage(), 100));
    insta::assert_snapshot!("strata_80", view(&with_garbage(), &usage(), 80));
}

#[test]
fn tiers_as_layers() {
    insta::assert_snapshot!("tiers_100", view(&tiers(), &usage(), 100));
}

#[test]
fn before_the_first_request_nothing_was_read() {
    insta::assert_snapshot!("first_100", view(&strata(), &UsageReport::default(), 100));
}

#[test]
fn cutting_keeps_every_token_in_its_place() {
    let breakdown = strata();
    for cuts in [vec![], vec![0], vec![1, 2, 3], vec![4_000, 14_000], vec![5_555, 17_777, 99_999]] {
        let mark = |tokens: &usize| CacheMark { is_older: false, tokens: *tokens, note: String::new() };
        let split = split_at(&breakdown, &cuts.iter().map(mark).collect::<Vec<_>>());
        let tokens = |blocks: &[BreakdownBlock], name: &str| -> usize {
            blocks.iter().filter(|block| block.name == name).map(|block| block.tokens).sum()
        };
        for block in &breakdown.blocks {
            assert_eq!(tokens(&split.blocks, block.name), block.tokens, "{cuts:?}");
        }
        for block in &split.blocks {
            assert_eq!(block.contents.iter().map(|content| content.tokens).sum::<usize>(), block.tokens);
        }
        let ends: Vec<usize> = split
            .blocks
            .iter()
            .scan(0, |end, block| {
                *end += block.tokens;
                Some(*end)
            })
            .collect();
        let within = cuts.iter().filter(|cut| (1..breakdown.total_tokens).contains(*cut));
        assert!(within.into_iter().all(|cut| ends.contains(cut)), "{cuts:?} {ends:?}");
    }
}

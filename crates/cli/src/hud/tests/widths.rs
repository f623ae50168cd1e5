//! Whatever the width, no line is wider and nothing is left out.

use unicode_width::UnicodeWidthStr;

use super::*;

#[test]
fn strata_in_forty_columns() {
    let breakdown = strata();
    let hud = Hud { verdict: Some(long_verdict()), ..warm_strata(&breakdown) };
    let expected = "\
anthropic/claude-sonnet-5 · strata
input about 19,100 of 168,000 tokens
(11.4%)
answer up to 32,000 tokens

system       3,000   15.7%  █▉
legend         200    1.0%  ▏
symbol map   4,800   25.1%  ███
tree           990    5.2%  ▋
files        4,300   22.5%  ██▊
history      4,700   24.6%  ███
panels         110    0.6%  ▏
tools        1,000    5.2%  ▋

tokens    last request  session
input            1,155    9,155
read            15,750   45,750
written          3,150   21,150
output             321    2,321
cost            $0.021   $0.213
requests                      7
from the cache: 78.5% of the last
prompt, 60.2% of all
5,000 tokens ($0.011) were paid again:
the cache expired after 5 minutes (12
minutes unused). You could have avoided
it.

┌─ cache blocks ───────────────────────┐
│ block        tokens cached  hit      │
│   holds                              │
├──────────────────────────────────────┤
│ tools         1,000 yes    100%      │
│   2 tools                            │
│ system        3,000 yes    100%      │
│   system prompt                      │
│ base         10,000 yes    100%      │
│   tree, legend, 2 symbols, 1 file    │
├──────────────────────────────────────┤
│ conversation  5,000 partly  20%      │
│   2 messages, 1 update               │
│ tail            100 no       0%      │
│   clock, working directory           │
└──────────────────────────────────────┘
";
    assert_eq!(hud.render(40), expected);
}

#[test]
fn nothing_is_left_out_at_any_width() {
    let (mut strata, tiers) = (strata(), tiers());
    strata.blocks[3].tokens = 1_234_567; // as wide as a block's count gets
    for (breakdown, width) in [&strata, &tiers].into_iter().flat_map(|of| [40, 60, 80, 120].map(|n| (of, n)))
    {
        let hud = Hud { verdict: Some(long_verdict()), ..warm_tiers(breakdown) };
        let text = hud.render(width);
        for line in text.lines() {
            assert!(line.width() <= width, "{width}: {line}");
            assert!(!line.contains('…'), "{width}: {line}");
            assert!(!line.starts_with('│') || !line.trim_matches(['│', ' ']).is_empty(), "{width}: {text}");
        }
        // As one line, so that it does not matter where it is parted.
        let words = text.replace(['│', '─', '┌', '└'], " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut wanted = vec![
            "anthropic/claude-sonnet-5".to_owned(),
            "of 168,000 tokens".to_owned(),
            "answer up to 32,000 tokens".to_owned(),
            "from the cache: 50.0% of the last prompt, 7.4% of all".to_owned(),
            hud.verdict.as_ref().unwrap().sentence(),
        ];
        wanted.extend(hud.figures(hud.last).into_iter().chain(hud.figures(Some(hud.session))));
        wanted.push("1,234".into());
        for region in regions(breakdown, hud.last) {
            wanted.push(format!("{} {}", region.block.name, thousands(region.block.tokens)));
            wanted.push(format!("{} {}%", region.cached.name(), region.hit().unwrap()));
            wanted.push(region.describe_contents().split(", ").next().unwrap().to_owned());
        }
        if breakdown.layout == LayoutName::Tiers {
            wanted.push("empty tiers: 2 now, 17 in the session".into());
        }
        for figure in wanted {
            assert!(words.contains(&figure), "{width} columns lack {figure:?}:\n{text}");
        }
    }
}

#[test]
fn no_line_is_too_wide_and_no_name_steers_the_terminal() {
    let mut breakdown = strata();
    breakdown.model = format!("{}\x1b[2J", "long".repeat(40));
    for width in [0, 40, 60, 61, 79, 80, 100, 200] {
        let mut hud = warm_tiers(&breakdown);
        hud.provider = "a\nb";
        let text = hud.render(width);
        assert!(!text.contains('\x1b') && text.starts_with("a\u{fffd}b/long"), "{text}");
        for line in text.lines() {
            assert!(line.width() <= width.clamp(40, 100), "{width}: {line}");
        }
    }
}

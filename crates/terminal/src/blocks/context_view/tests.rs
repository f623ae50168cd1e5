//! Drawings of the context view.

use std::time::Duration;

use super::*;
use crate::blocks::conversation::Cost;
use crate::blocks::core_sample::CacheState::{Garbage as Waste, Read, Sent, Written};
use crate::blocks::golden::{drawing, drawings};
use crate::theme::{Glyphs, Palette};

fn layer(
    name: &str,
    parts: &[LayerPart],
    age: LayerAge,
    last: LastUse,
    prices: (f64, f64),
    holds: &str,
) -> Layer {
    let (next, amount) = prices;
    Layer {
        name: name.into(),
        part: None,
        turns: None,
        depth: 0,
        parts: parts.to_vec(),
        age,
        last,
        next,
        amount,
        holds: holds.into(),
        has_breakpoint: false,
    }
}

fn paid(paid: f64) -> Cost {
    Cost { paid, ..Cost::default() }
}

fn mark(tokens: usize, note: &str) -> ContextRow {
    ContextRow::Mark(CacheMark { is_older: false, tokens, note: note.into() })
}

fn requests(count: u32) -> LayerAge {
    LayerAge::Requests(count)
}

fn keys() -> Vec<(String, String)> {
    let keys = "Enter open,p pin,c close,x exclude,r recall,f fold,w why,v bytes,D diff,L layout,q back";
    keys.split(',')
        .filter_map(|key| key.split_once(' '))
        .map(|(key, word)| (key.into(), word.into()))
        .collect()
}

fn facts() -> ContextFacts {
    ContextFacts {
        garbage: Some(Garbage { tokens: 12_600, copies: 9, rent: 0.0013, paid: 0.0265 }),
        next_fold: Some(NextFold { in_requests: Some(3), costs: 0.0068, drops: 6_100, saves: 0.0006 }),
        expiry: Some(CacheExpiry { remaining: Duration::from_secs(252), cold: 0.087, warm: 0.0096 }),
        verdict: Some(LastVerdict {
            request: 31,
            tokens: 8_120,
            dollars: 0.019,
            cause: "fuzzy.ts changed on disk".into(),
            is_avoidable: true,
        }),
        last: Some(LastRequest { input: 240, read: 45_400, written: 1_850, output: 310, cost: paid(0.013) }),
        session: Some(SessionTotals {
            requests: 38,
            cost: paid(0.48),
            without_cache: 2.73,
            read: (94, 100),
            lost: (0.021, 2),
        }),
        kinds: [
            ("system", 2_900),
            ("tools", 1_140),
            ("overview", 1_020),
            ("files", 8_940),
            ("history", 33_250),
            ("tail", 240),
        ]
        .map(|(kind, tokens)| (kind.to_owned(), tokens))
        .to_vec(),
    }
}

pub(crate) fn strata() -> ContextView {
    let read = || LastUse::Read(100);
    let with_part = |layer: Layer, part: &str| Layer { part: Some(part.into()), ..layer };
    let log = |turns, parts: &[LayerPart], age, prices, holds: &str| {
        ContextRow::Layer(Layer { turns: Some(turns), ..layer("LOG", parts, age, read(), prices, holds) })
    };
    let item = Layer {
        depth: 1,
        ..layer("fuzzy.ts", &[(3_110, Read)], requests(11), read(), (0.0003, 0.0078), "pinned · 2 old copies")
    };
    let slow = layer("BASE", &[(1_020, Read)], requests(38), read(), (0.0001, 0.0026), "overview");
    let active = layer("BASE", &[(8_940, Read)], requests(11), read(), (0.0009, 0.0224), "4 files");
    let new =
        layer("LOG", &[(1_850, Written)], LayerAge::New, LastUse::Written, (0.0046, 0.0046), "2 results");
    ContextView {
        layout: "strata".into(),
        model: "sonnet 5.5 high".into(),
        max_tokens: 1_000_000,
        next: 0.0096,
        cold: 0.119,
        is_price_unknown: false,
        columns: ContextColumns::STRATA,
        rows: vec![
            ContextRow::Layer(layer(
                "tools",
                &[(1_140, Read)],
                requests(38),
                read(),
                (0.0001, 0.0029),
                "9 tools",
            )),
            ContextRow::Layer(layer(
                "system",
                &[(2_900, Read)],
                requests(38),
                read(),
                (0.0003, 0.0073),
                "prompt, AGENTS.md, skills",
            )),
            mark(4_040, "5 min"),
            ContextRow::Layer(with_part(slow, "slow")),
            ContextRow::Layer(with_part(active, "active")),
            ContextRow::Layer(item),
            mark(14_000, "5 min"),
            log((1, 9), &[(15_700, Read), (6_500, Waste)], requests(12), (0.0022, 0.0555), "turns"),
            ContextRow::Mark(CacheMark {
                is_older: true,
                tokens: 36_200,
                note: "older entry, still readable: the next fold begins here".into(),
            }),
            log((10, 14), &[(3_100, Read), (6_100, Waste)], requests(1), (0.0009, 0.0230), "turns"),
            mark(45_400, "end of the last request"),
            ContextRow::Layer(with_part(new, "new")),
            mark(47_250, "end of this one"),
            ContextRow::Layer(layer(
                "TAIL",
                &[(240, Sent)],
                LayerAge::New,
                LastUse::Sent,
                (0.0005, 0.0005),
                "clock, git status",
            )),
        ],
        chosen: 3,
        is_split: false,
        facts: facts(),
        notes: Vec::new(),
        keys: keys(),
    }
}

fn tiers() -> ContextView {
    let age = |first, last| LayerAge::Between(first, last);
    let rows = vec![
        layer(
            "L0",
            &[(4_639, Read)],
            LayerAge::Text("12".into()),
            LastUse::Read(100),
            (0.0005, 0.0116),
            "system, legend",
        ),
        layer(
            "L1",
            &[(8_210, Read)],
            age(9, 12),
            LastUse::Read(100),
            (0.0008, 0.0205),
            "61 symbols, 2 files",
        ),
        layer("L2", &[], age(6, 9), LastUse::Sent, (0.0, 0.0), ""),
        layer(
            "L3",
            &[(15_088, Read), (2_058, Written)],
            age(3, 6),
            LastUse::Read(88),
            (0.0067, 0.0429),
            "307 symbols, turns 1–4",
        ),
        layer(
            "active",
            &[(7_000, Written), (2_539, Sent)],
            age(0, 3),
            LastUse::Written,
            (0.0226, 0.0227),
            "tree, fuzzy.ts (2), turns 5–6",
        ),
    ];
    ContextView {
        layout: "tiers".into(),
        next: 0.031,
        cold: 0.098,
        columns: ContextColumns::TIERS,
        rows: rows
            .into_iter()
            .map(|layer| ContextRow::Layer(Layer { has_breakpoint: !layer.parts.is_empty(), ..layer }))
            .collect(),
        chosen: 0,
        is_split: true,
        notes: vec![
            "target of a tier 1,126 (minimum 1,024 + 10%) · 1 empty tier now, 9 in 38 requests".into(),
            "moved  retry.ts L2→active: changed · turn 4→L3: unchanged for 3".into(),
        ],
        facts: ContextFacts::default(),
        ..strata()
    }
}

fn panels() -> ContextView {
    let at = |text: &str| LayerAge::Text(text.into());
    let changed = |text: &str| LastUse::Text(text.into());
    let mut rows: Vec<ContextRow> = [
        layer("system", &[(4_235, Read)], LayerAge::None, LastUse::Read(100), (0.0004, 0.018), "prompt"),
        layer("P7 tree", &[(9_519, Read)], at("14:02:11"), LastUse::Read(100), (0.0010, 0.041), "214 files"),
        layer(
            "P12 file",
            &[(2_310, Read)],
            at("14:31:40"),
            LastUse::Read(100),
            (0.0002, 0.006),
            "src/retry.rs",
        ),
        layer(
            "P3 git",
            &[(640, Written)],
            at("14:44:02"),
            changed("changed"),
            (0.0016, 0.009),
            "4 files changed",
        ),
        layer(
            "P15 console",
            &[(1_120, Written)],
            at("14:44:09"),
            changed("after P3"),
            (0.0028, 0.003),
            "npm run check",
        ),
    ]
    .map(ContextRow::Layer)
    .into();
    rows.push(mark(17_824, "then the footer with its clock, so nothing after it can be read:"));
    rows.push(ContextRow::Layer(layer(
        "footer",
        &[(13_383, Sent)],
        at("now"),
        LastUse::Sent,
        (0.0268, 0.390),
        "system again, 12 messages",
    )));
    ContextView {
        layout: "panels".into(),
        next: 0.033,
        cold: 0.071,
        columns: ContextColumns::PANELS,
        rows,
        chosen: 3,
        is_split: true,
        notes: vec![
            "P3 changed: 1,760 tokens from it to ◆ were written again, $0.0044 · turns 1–25 frozen in P20"
                .into(),
        ],
        facts: ContextFacts::default(),
        ..strata()
    }
}

#[test]
fn the_view_at_every_size() {
    for (name, view) in [("strata", strata()), ("tiers", tiers()), ("panels", panels())] {
        let draw = |columns: usize, rows: usize, theme: &Theme| view.lines(columns, theme).fit(rows);
        insta::assert_snapshot!(format!("context_{name}"), drawings(draw));
    }
}

#[test]
fn the_side_bar() {
    insta::assert_snapshot!("context_sidebar", drawing(&strata().sidebar(33, &Theme::default())));
}

#[test]
fn a_price_that_is_not_known_is_not_made_up() {
    let view = ContextView { is_price_unknown: true, ..strata() };
    let lines = drawing(&view.lines(100, &Theme::default()).head);
    assert!(lines.contains("price unknown") && !lines.contains("next request $"));
}

#[test]
fn the_chosen_layer_is_found_in_its_merged_row() {
    let theme = Theme { palette: Palette::None, glyphs: &Glyphs::UNICODE };
    let expected =
        ["tools, system", "tools, system", "BASE", "BASE", "BASE", "LOG 1–14", "LOG 1–14", "LOG new", "TAIL"];
    for (chosen, name) in expected.into_iter().enumerate() {
        let lines = ContextView { chosen, ..strata() }.lines(80, &theme);
        let row = lines.chosen.map(|(row, _)| lines.rows[row].to_string()).unwrap_or_default();
        assert!(row.starts_with(&format!("›{name} ")), "{chosen}: {row}");
    }
}

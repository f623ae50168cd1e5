//! The rules one by one. A thing is written `key tier N tokens`; what is shown, `key tokens`, with
//! `v2` when it changed.

use hardpan_prompt::{Hash, Tier};

use crate::tiers::stability::{ShownEntry, StabilityTracker, SymbolMapFile, TrackedEntry};

struct Case {
    rule: &'static str,
    target: usize,
    before: &'static [&'static str],
    shown: &'static [&'static str],
    after: &'static [&'static str],
    changes: &'static [&'static str],
}

fn tier(word: &str) -> Tier {
    serde_json::from_value(word.into()).unwrap()
}

fn hash(key: &str, version: &str) -> Hash {
    Hash::of(format!("{key} {version}").as_bytes())
}

fn tracked(line: &str) -> TrackedEntry {
    let words: Vec<&str> = line.split(' ').collect();
    TrackedEntry {
        key: words[0].parse().unwrap(),
        tier: tier(words[1]),
        unchanged_responses: words[2].parse().unwrap(),
        hash: Some(hash(words[0], "v1")),
        tokens: words[3].parse().unwrap(),
        hidden_by_open_file: words.contains(&"aside"),
    }
}

fn shown(line: &str) -> ShownEntry {
    let words: Vec<&str> = line.split(' ').collect();
    let version = words.iter().find(|word| word.starts_with('v')).unwrap_or(&"v1");
    let tier = words.iter().find_map(|word| word.strip_prefix("in-")).map_or(Tier::Active, tier);
    ShownEntry {
        key: words[0].parse().unwrap(),
        hash: hash(words[0], version),
        tokens: words[1].parse().unwrap(),
        tier,
    }
}

fn written(tracker: &StabilityTracker) -> Vec<String> {
    let line = |tracked: &TrackedEntry| {
        let TrackedEntry { key, tier, unchanged_responses: n, tokens, hidden_by_open_file, .. } = tracked;
        let tier = serde_json::to_value(tier).unwrap();
        format!(
            "{key} {} {n} {tokens}{}",
            tier.as_str().unwrap(),
            if *hidden_by_open_file { " aside" } else { "" }
        )
    };
    tracker.entries().iter().map(line).collect()
}

const CASES: &[Case] = &[
    Case {
        rule: "a new file begins in active, with N = 0",
        target: 100,
        before: &[],
        shown: &["file:a 50"],
        after: &["file:a active 0 50"],
        changes: &["file:a comes to active: shown for the first time"],
    },
    Case {
        rule: "a new symbol entry begins where the layout shows it, in L3",
        target: 100,
        before: &["symbol:a L3 4 150"],
        shown: &["symbol:a 150", "symbol:b 100 in-L3"],
        after: &["symbol:a L3 5 150", "symbol:b L3 3 100"],
        changes: &["symbol:b comes to L3: shown for the first time"],
    },
    Case {
        rule: "N counts responses in a row with an unchanged hash",
        target: 100,
        before: &["file:a active 1 50"],
        shown: &["file:a 50"],
        after: &["file:a active 2 50"],
        changes: &[],
    },
    Case {
        rule: "a change in active begins the count again",
        target: 100,
        before: &["file:a active 2 50"],
        shown: &["file:a 60 v2"],
        after: &["file:a active 0 60"],
        changes: &[],
    },
    Case {
        rule: "a change sends to active with N = 0",
        target: 100,
        before: &["file:a L1 10 500", "file:b L1 9 200"],
        shown: &["file:a 510 v2", "file:b 200"],
        after: &["file:a active 0 510", "file:b L1 9 200"],
        changes: &["file:a moves from L1 to active: its content changed"],
    },
    Case {
        rule: "a change breaks its tier, and what waited below moves in",
        target: 100,
        before: &["file:a L1 9 100", "file:b L1 9 100", "file:c L2 6 100", "file:d L2 9 100"],
        shown: &["file:a 100 v2", "file:b 100", "file:c 100", "file:d 100"],
        after: &["file:a active 0 100", "file:b L1 10 100", "file:c L2 6 100", "file:d L1 9 100"],
        changes: &[
            "file:a moves from L1 to active: its content changed",
            "file:d moves from L2 to L1: unchanged for 9 responses, and the tier above is rewritten anyway",
        ],
    },
    Case {
        rule: "active counts from 0 to 3, then L3",
        target: 100,
        before: &["file:a active 2 100"],
        shown: &["file:a 100"],
        after: &["file:a L3 3 100"],
        changes: &["file:a moves from active to L3: unchanged for 3 responses, and the tier above was empty"],
    },
    Case {
        rule: "L3 counts from 3 to 6, then L2",
        target: 100,
        before: &["file:a L3 5 100", "file:b L3 3 100"],
        shown: &["file:a 100", "file:b 100"],
        after: &["file:a L2 6 100", "file:b L3 3 100"],
        changes: &["file:a moves from L3 to L2: unchanged for 6 responses, and the tier above was empty"],
    },
    Case {
        rule: "L2 counts from 6 to 9, then L1",
        target: 100,
        before: &["file:a L2 8 100", "file:b L2 6 100"],
        shown: &["file:a 100", "file:b 100"],
        after: &["file:a L1 9 100", "file:b L2 6 100"],
        changes: &["file:a moves from L2 to L1: unchanged for 9 responses, and the tier above was empty"],
    },
    Case {
        rule: "L1 counts from 9 to 12, then L0; and L0 needs no minimum",
        target: 100,
        before: &["file:a L1 11 10", "file:b L1 9 100"],
        shown: &["file:a 10", "file:b 100"],
        after: &["file:a L0 12 10", "file:b L1 9 100"],
        changes: &["file:a moves from L1 to L0: unchanged for 12 responses, and the tier above was empty"],
    },
    Case {
        rule: "L0 counts no further",
        target: 100,
        before: &["file:a L0 12 10"],
        shown: &["file:a 10"],
        after: &["file:a L0 12 10"],
        changes: &[],
    },
    Case {
        rule: "nothing moves into a tier that is neither broken nor empty, and N waits at the limit",
        target: 100,
        before: &["file:a L3 5 100", "file:b L3 3 100", "file:c L2 6 100"],
        shown: &["file:a 100", "file:b 100", "file:c 100"],
        after: &["file:a L3 6 100", "file:b L3 3 100", "file:c L2 6 100"],
        changes: &[],
    },
    Case {
        rule: "at the limit N stands still",
        target: 100,
        before: &["file:a L3 6 100", "file:b L3 3 100", "file:c L2 6 100", "file:d active 3 10"],
        shown: &["file:a 100", "file:b 100", "file:c 100", "file:d 10"],
        after: &["file:a L3 6 100", "file:b L3 3 100", "file:c L2 6 100", "file:d active 3 10"],
        changes: &[],
    },
    Case {
        rule: "tiers are worked from L3 up until nothing moves: one gap draws on all tiers below",
        target: 100,
        before: &[
            "file:a L0 12 100",
            "file:b L1 12 100",
            "file:c L2 9 100",
            "file:d L3 6 100",
            "file:e active 3 100",
            "file:f active 3 100",
            "file:w L1 9 100",
            "file:x L2 6 100",
            "file:y L3 3 100",
        ],
        shown: &[
            "file:a 100 v2",
            "file:b 100",
            "file:c 100",
            "file:d 100",
            "file:e 100",
            "file:f 100",
            "file:w 100",
            "file:x 100",
            "file:y 100",
        ],
        after: &[
            "file:a active 0 100",
            "file:b L0 12 100",
            "file:c L1 9 100",
            "file:d L2 6 100",
            "file:e L3 3 100",
            "file:f L3 3 100",
            "file:w L1 9 100",
            "file:x L2 6 100",
            "file:y L3 3 100",
        ],
        changes: &[
            "file:a moves from L0 to active: its content changed",
            "file:b moves from L1 to L0: unchanged for 12 responses, and the tier above is rewritten anyway",
            "file:c moves from L2 to L1: unchanged for 9 responses, and the tier above is rewritten anyway",
            "file:d moves from L3 to L2: unchanged for 6 responses, and the tier above is rewritten anyway",
            "file:e moves from active to L3: unchanged for 3 responses, and the tier above is rewritten anyway",
            "file:f moves from active to L3: unchanged for 3 responses, and the tier above is rewritten anyway",
        ],
    },
    Case {
        rule: "taken by rising N, the first that reach the target hold the tier up; only those beyond gain N",
        target: 100,
        before: &["file:a L3 5 60", "file:b L3 4 60", "file:c L3 3 60"],
        shown: &["file:a 60", "file:b 60", "file:c 60"],
        after: &["file:a L3 6 60", "file:b L3 4 60", "file:c L3 3 60"],
        changes: &[],
    },
    Case {
        rule: "where the provider has no minimum, nothing holds",
        target: 0,
        before: &["file:a L3 5 60", "file:b L3 4 60"],
        shown: &["file:a 60", "file:b 60"],
        after: &["file:a L2 6 60", "file:b L3 5 60"],
        changes: &["file:a moves from L3 to L2: unchanged for 6 responses, and the tier above was empty"],
    },
    Case {
        rule: "a tier under the target gives to the tier below",
        target: 100,
        before: &["file:a L2 8 60", "file:b L2 6 60", "file:c L3 4 100"],
        shown: &["file:a 60", "file:b 60 v2", "file:c 100"],
        after: &["file:a L3 6 60", "file:b active 0 60", "file:c L3 4 100"],
        changes: &[
            "file:a moves from L2 to L3: its tier held 60 tokens, less than the 100 worth caching",
            "file:b moves from L2 to active: its content changed",
        ],
    },
    Case {
        rule: "what is given may be given on, down to active",
        target: 100,
        before: &["file:a L1 10 60"],
        shown: &["file:a 60"],
        after: &["file:a active 3 60"],
        changes: &[
            "file:a moves from L1 to active: its tier held 60 tokens, less than the 100 worth caching",
        ],
    },
    Case {
        rule: "L0 keeps what it has, however little",
        target: 100,
        before: &["file:a L0 12 60", "file:b L0 12 60"],
        shown: &["file:a 60", "file:b 60 v2"],
        after: &["file:a L0 12 60", "file:b active 0 60"],
        changes: &["file:b moves from L0 to active: its content changed"],
    },
    Case {
        rule: "nothing rises that would have to be given back",
        target: 100,
        before: &["file:a active 3 60", "file:b L1 9 150"],
        shown: &["file:a 60", "file:b 150"],
        after: &["file:a active 3 60", "file:b L1 9 150"],
        changes: &[],
    },
    Case {
        rule: "a broken tier is filled from below before it gives",
        target: 100,
        before: &["file:a L3 4 60", "file:b L3 3 60", "file:c active 2 50"],
        shown: &["file:a 60", "file:b 60 v2", "file:c 50"],
        after: &["file:a L3 4 60", "file:b active 0 60", "file:c L3 3 50"],
        changes: &[
            "file:b moves from L3 to active: its content changed",
            "file:c moves from active to L3: unchanged for 3 responses, and the tier above is rewritten anyway",
        ],
    },
    Case {
        rule: "what was given opens the tier it came to",
        target: 100,
        before: &["file:a L2 8 60", "file:b L2 6 60", "file:c L3 4 100", "file:d active 3 20"],
        shown: &["file:a 60", "file:b 60 v2", "file:c 100", "file:d 20"],
        after: &["file:a L3 6 60", "file:b active 0 60", "file:c L3 4 100", "file:d L3 3 20"],
        changes: &[
            "file:a moves from L2 to L3: its tier held 60 tokens, less than the 100 worth caching",
            "file:b moves from L2 to active: its content changed",
            "file:d moves from active to L3: unchanged for 3 responses, and the tier above is rewritten anyway",
        ],
    },
    Case {
        rule: "history alone does not move into an empty L3",
        target: 100,
        before: &["history:m1 active 3 150"],
        shown: &["history:m1 150"],
        after: &["history:m1 active 3 150"],
        changes: &[],
    },
    Case {
        rule: "history moves when a file writes L3 anyway",
        target: 100,
        before: &["file:a active 2 60", "history:m1 active 3 150", "history:m2 active 1 10"],
        shown: &["file:a 60", "history:m1 150", "history:m2 10"],
        after: &["file:a L3 3 60", "history:m1 L3 3 150", "history:m2 active 2 10"],
        changes: &[
            "file:a moves from active to L3: unchanged for 3 responses, and the tier above was empty",
            "history:m1 moves from active to L3: unchanged for 3 responses, and the tier above was empty",
        ],
    },
    Case {
        rule: "history moves when L3 is broken",
        target: 100,
        before: &["file:a L3 4 60", "file:b L3 3 100", "history:m1 active 3 10"],
        shown: &["file:a 60 v2", "file:b 100", "history:m1 10"],
        after: &["file:a active 0 60", "file:b L3 3 100", "history:m1 L3 3 10"],
        changes: &[
            "file:a moves from L3 to active: its content changed",
            "history:m1 moves from active to L3: unchanged for 3 responses, and the tier above is rewritten anyway",
        ],
    },
    Case {
        rule: "of exchanges with equal N the older rises first",
        target: 100,
        before: &["history:m2 L3 6 100", "history:m1 L3 6 100"],
        shown: &["history:m2 100", "history:m1 100"],
        after: &["history:m2 L2 6 100", "history:m1 L3 6 100"],
        changes: &["history:m2 moves from L3 to L2: unchanged for 6 responses, and the tier above was empty"],
    },
    Case {
        rule: "an exchange waits for the older one",
        target: 100,
        before: &["file:a active 3 100", "history:m1 active 0 10", "history:m2 active 3 10"],
        shown: &["file:a 100", "history:m1 10", "history:m2 10"],
        after: &["file:a L3 3 100", "history:m1 active 1 10", "history:m2 active 3 10"],
        changes: &["file:a moves from active to L3: unchanged for 3 responses, and the tier above was empty"],
    },
    Case {
        rule: "where an exchange falls, those after it fall as far",
        target: 100,
        before: &["file:a L3 3 100", "history:m1 L3 5 50", "history:m2 L3 4 50"],
        shown: &["file:a 100", "history:m1 20 v2", "history:m2 50"],
        after: &["file:a L3 3 100", "history:m1 active 0 20", "history:m2 active 3 50"],
        changes: &[
            "history:m1 moves from L3 to active: its content changed",
            "history:m2 moves from L3 to active: an older exchange fell, and the conversation keeps its order",
        ],
    },
    Case {
        rule: "a vanished file leaves, and its tier is broken",
        target: 100,
        before: &["file:a L3 4 60", "file:b L3 3 100", "file:c active 3 10"],
        shown: &["file:b 100", "file:c 10"],
        after: &["file:b L3 3 100", "file:c L3 3 10"],
        changes: &[
            "file:a leaves L3: no longer shown",
            "file:c moves from active to L3: unchanged for 3 responses, and the tier above is rewritten anyway",
        ],
    },
    Case {
        rule: "an open file's symbol entry steps aside",
        target: 100,
        before: &["symbol:a L2 7 60", "symbol:b L2 6 100"],
        shown: &["file:a 500", "symbol:b 100"],
        after: &["file:a active 0 500", "symbol:a L2 7 60 aside", "symbol:b L2 6 100"],
        changes: &[
            "file:a comes to active: shown for the first time",
            "symbol:a leaves L2: the file itself is open",
        ],
    },
    Case {
        rule: "while it is aside it neither counts nor holds anything up",
        target: 100,
        before: &["file:a active 0 500", "symbol:a L3 4 100 aside", "symbol:b L3 4 100"],
        shown: &["file:a 500", "symbol:b 100"],
        after: &["file:a active 1 500", "symbol:a L3 4 100 aside", "symbol:b L3 4 100"],
        changes: &[],
    },
    Case {
        rule: "it comes back to the tier it had earned",
        target: 100,
        before: &["file:a active 3 50", "symbol:a L2 7 60 aside", "symbol:b L2 6 100"],
        shown: &["symbol:a 60 in-L2", "symbol:b 100"],
        after: &["symbol:a L2 7 60", "symbol:b L2 6 100"],
        changes: &[
            "file:a leaves active: no longer shown",
            "symbol:a comes to L2: its file was closed: back to the tier it had earned",
        ],
    },
    Case {
        rule: "unless it changed meanwhile",
        target: 100,
        before: &["file:a active 3 50", "symbol:a L2 7 60 aside", "symbol:b L2 6 100"],
        shown: &["symbol:a 70 v2 in-L2", "symbol:b 100"],
        after: &["symbol:a active 0 70", "symbol:b L2 6 100"],
        changes: &[
            "file:a leaves active: no longer shown",
            "symbol:a moves from L2 to active: its content changed",
        ],
    },
    Case {
        rule: "an entry that is aside leaves with its file",
        target: 100,
        before: &["file:a active 3 50", "symbol:a L2 7 60 aside"],
        shown: &[],
        after: &[],
        changes: &["file:a leaves active: no longer shown"],
    },
];

#[test]
fn every_rule_holds_in_a_small_case() {
    for Case { rule, target, before, shown: lines, after, changes } in CASES {
        let before = StabilityTracker { entries: before.iter().map(|line| tracked(line)).collect() };
        let shown: Vec<ShownEntry> = lines.iter().map(|line| shown(line)).collect();
        let (state, log) = before.record_response(&shown, *target);
        assert_eq!(written(&state), *after, "{rule}");
        assert_eq!(log.iter().map(ToString::to_string).collect::<Vec<_>>(), *changes, "{rule}");
    }
}

fn mapped(path: &str, tokens: usize, references: f64) -> SymbolMapFile {
    SymbolMapFile { path: path.into(), tokens, references }
}

#[test]
fn clusters_go_whole_into_the_emptiest_tier_the_largest_first() {
    let files = ["a", "b", "c", "d", "e", "f"].map(|path| mapped(path, 100, 0.0));
    let clusters = [vec!["a", "b", "c"], vec!["d"], vec!["e", "f", "elsewhere"]];
    let first = StabilityTracker::initial(&files, &clusters, 100);
    let expected = [
        "symbol:a L1 9 100",
        "symbol:b L1 9 100",
        "symbol:c L1 9 100",
        "symbol:d L3 3 100",
        "symbol:e L2 6 100",
        "symbol:f L2 6 100",
    ];
    assert_eq!(written(&first), expected);
}

#[test]
fn a_tier_that_begins_under_the_target_gives_down() {
    let files = [mapped("a", 40, 0.0), mapped("b", 40, 0.0), mapped("c", 90, 0.0)];
    let first = StabilityTracker::initial(&files, &[vec!["a", "b"]], 100);
    assert_eq!(written(&first), ["symbol:a L2 6 40", "symbol:b L2 6 40", "symbol:c L2 9 90"]);
}

#[test]
fn without_clusters_reference_counts_decide() {
    let files: Vec<SymbolMapFile> =
        (0..10).map(|n| mapped(&n.to_string(), 100, f64::from(n % 10 / 2))).collect();
    let first = StabilityTracker::initial(&files, &[vec!["0"], vec!["1"]], 100);
    let tiers: Vec<String> = written(&first);
    let of = |tier: &str| -> Vec<&str> {
        tiers.iter().filter(|line| line.contains(tier)).map(|line| &line[7..8]).collect()
    };
    assert_eq!(
        (of(" L1 9 "), of(" L2 6 "), of(" L3 3 ")),
        (vec!["8", "9"], vec!["4", "6", "7"], vec!["0", "1", "2", "3", "5"])
    );
    assert!(StabilityTracker::initial(&[], &[vec!["x"]], 100).is_empty());
}

#[test]
fn what_was_placed_before_it_was_shown_counts_from_there() {
    let first = StabilityTracker::initial(&[mapped("a", 200, 1.0)], &[vec!["a"]], 100);
    assert_eq!(written(&first), ["symbol:a L1 9 200"]);
    let (seen, log) = first.record_response(&[shown("symbol:a 210 in-L1")], 100);
    assert_eq!((written(&seen), log.len()), (vec!["symbol:a L1 9 210".to_owned()], 0));
    let (changed, log) = seen.record_response(&[shown("symbol:a 210 v2 in-L1")], 100);
    assert_eq!((written(&changed), log.len()), (vec!["symbol:a active 0 210".to_owned()], 1));
}

#[test]
fn the_state_survives_its_written_form() {
    let tracker =
        StabilityTracker { entries: vec![tracked("symbol:a L2 7 60 aside"), tracked("history:m L3 3 9")] };
    let written = serde_json::to_string(&tracker).unwrap();
    assert_eq!(serde_json::from_str::<StabilityTracker>(&written).unwrap(), tracker);
}

//! The rules one by one. A tracked entry is written `key tier N tokens`; what is shown, `key tokens`; what
//! a coming request holds, `key`. `v2` means that it has changed.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{Hash, Tier};

use crate::tiers::stability::placement::earned_tier;
use crate::tiers::stability::{
    ComingRequest, ShownEntry, StabilityTracker, SymbolMapFile, TrackedEntry, TrackedKey,
};

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

/// The tokens that make a tier worth a cache entry, in all cases.
const TARGET: usize = 100;

fn coming(lines: &[&str], is_new_run: bool) -> ComingRequest {
    let mut coming = ComingRequest {
        items: BTreeMap::new(),
        hidden: BTreeSet::new(),
        exchanges: Vec::new(),
        rewritten: BTreeSet::new(),
        untracked_change: None,
        is_new_run,
        target_tokens: TARGET,
    };
    for line in lines {
        let (name, note) = line.split_once(' ').unwrap_or((line, "v1"));
        if name == "tree" {
            coming.untracked_change = Some(Tier::Active);
            continue;
        }
        let key: TrackedKey = name.parse().unwrap();
        match (&key, note) {
            (TrackedKey::Exchange(_), _) => coming.exchanges.push(key),
            (_, "aside") => drop(coming.hidden.insert(key)),
            (TrackedKey::File(_), "v2" | "shown-anew") => {
                let version = if note == "v2" { "v2" } else { "v1" };
                coming.rewritten.insert(key.clone());
                coming.items.insert(key, hash(name, version));
            }
            _ => drop(coming.items.insert(key, hash(name, note))),
        }
    }
    coming
}

fn tracker(lines: &[&str]) -> StabilityTracker {
    StabilityTracker::from_entries(lines.iter().map(|line| tracked(line)).collect())
}

#[test]
fn a_tier_is_earned_at_3_6_9_and_12_unchanged_responses() {
    let earned: Vec<Tier> = (0..=14).map(earned_tier).collect();
    let expected = [(Tier::Active, 3), (Tier::L3, 3), (Tier::L2, 3), (Tier::L1, 3), (Tier::L0, 3)];
    let expected: Vec<Tier> =
        expected.into_iter().flat_map(|(tier, count)| std::iter::repeat_n(tier, count)).collect();
    assert_eq!(earned, expected);
}

#[test]
fn a_file_graduates_at_three_unchanged_responses_whatever_stands_in_l3() {
    let mut files = tracker(&["symbol:b L3 3 500"]);
    for (response, expected) in ["active 0", "active 1", "active 2", "L3 3", "L3 4"].iter().enumerate() {
        let in_tier = if response > 3 { "file:a 50 in-L3" } else { "file:a 50" };
        files = files.record_response(&[shown(in_tier), shown("symbol:b 500 in-L3")]);
        assert_eq!(written(&files)[0], format!("file:a {expected} 50"), "response {response}");
        files = files.place(&coming(&["file:a", "symbol:b"], false));
    }
}

struct Counting {
    rule: &'static str,
    before: &'static [&'static str],
    shown: &'static [&'static str],
    after: &'static [&'static str],
}

const COUNTING: &[Counting] = &[
    Counting {
        rule: "a new file begins in active with N = 0, a new symbol entry in L3 with N = 3",
        before: &[],
        shown: &["file:a 50", "symbol:b 60 in-L3"],
        after: &["file:a active 0 50", "symbol:b L3 3 60"],
    },
    Counting {
        rule: "N counts responses in a row with an unchanged hash, up to 12",
        before: &["file:a active 1 50", "symbol:a L1 12 70"],
        shown: &["file:a 50", "symbol:a 70 in-L1"],
        after: &["file:a active 2 50", "symbol:a L1 12 70"],
    },
    Counting {
        rule: "a change begins the count again; what is shown stays where it is",
        before: &["file:a L1 10 500"],
        shown: &["file:a 510 v2 in-L1"],
        after: &["file:a L1 0 510"],
    },
    Counting {
        rule: "the symbol entry of an open file steps aside, other absent entries are gone",
        before: &["symbol:a L2 7 50", "symbol:b L2 7 50", "history:m L3 4 10"],
        shown: &["file:a 80"],
        after: &["file:a active 0 80", "symbol:a L2 7 50 aside"],
    },
];

#[test]
fn every_rule_of_counting_holds() {
    for case in COUNTING {
        let shown: Vec<ShownEntry> = case.shown.iter().map(|line| shown(line)).collect();
        let after = tracker(case.before).record_response(&shown);
        assert_eq!(written(&after), case.after, "{}", case.rule);
    }
}

struct Placing {
    rule: &'static str,
    is_new_run: bool,
    before: &'static [&'static str],
    coming: &'static [&'static str],
    after: &'static [&'static str],
    moves: &'static [&'static str],
}

const PLACING: &[Placing] = &[
    Placing {
        rule: "nothing moves while nothing is rewritten",
        is_new_run: true,
        before: &["file:a L3 12 500", "symbol:a L2 12 500", "history:m L3 12 500"],
        coming: &["file:a", "symbol:a", "history:m"],
        after: &["file:a L3 12 500", "symbol:a L2 12 500", "history:m L3 12 500"],
        moves: &[],
    },
    Placing {
        rule: "a changed file goes to active, a changed symbol entry to L3",
        is_new_run: true,
        before: &["file:a L1 10 500", "file:b L1 8 500", "symbol:c L1 9 200", "symbol:d L1 9 200"],
        coming: &["file:a v2", "file:b", "symbol:c v2", "symbol:d"],
        after: &["file:a active 0 500", "file:b L1 8 500", "symbol:c L3 3 200", "symbol:d L1 9 200"],
        moves: &[
            "file:a moves from L1 to active: its content changed",
            "symbol:c moves from L1 to L3: its content changed",
        ],
    },
    Placing {
        rule: "what is rewritten anyway takes what has earned its place there",
        is_new_run: true,
        before: &["file:a L1 10 500", "file:b L3 9 500", "file:c L3 6 500", "file:d L3 5 500"],
        coming: &["file:b", "file:c", "file:d"],
        after: &["file:b L1 9 500", "file:c L2 6 500", "file:d L3 5 500"],
        moves: &[
            "file:a leaves L1: no longer shown",
            "file:b moves from L3 to L1: unchanged for 9 responses",
            "file:c moves from L3 to L2: unchanged for 6 responses",
        ],
    },
    Placing {
        rule: "an empty tier before what is rewritten is free, a full one is not",
        is_new_run: true,
        before: &["file:a L3 8 500", "file:b L3 12 500", "symbol:c L1 9 500", "symbol:d L3 3 500"],
        coming: &["file:a", "file:b", "symbol:c", "symbol:d v2"],
        after: &["file:a L2 8 500", "file:b L2 12 500", "symbol:c L1 9 500", "symbol:d L3 3 500"],
        moves: &[
            "file:a moves from L3 to L2: unchanged for 8 responses",
            "file:b moves from L3 to L2: unchanged for 12 responses",
        ],
    },
    Placing {
        rule: "a rewritten tier that holds too little passes it on",
        is_new_run: true,
        before: &["file:a L1 10 500", "file:b L1 10 40", "file:c L2 7 70"],
        coming: &["file:b", "file:c"],
        after: &["file:b L2 10 40", "file:c L2 7 70"],
        moves: &[
            "file:a leaves L1: no longer shown",
            "file:b moves from L1 to L2: its tier held too little to be worth caching",
        ],
    },
    Placing {
        rule: "history that fills a tier graduates when a run begins",
        is_new_run: true,
        before: &[
            "file:z L3 5 500",
            "history:a active 5 60",
            "history:b active 3 60",
            "history:c active 2 60",
        ],
        coming: &["file:z", "history:a", "history:b", "history:c"],
        after: &["file:z L3 5 500", "history:a L3 5 60", "history:b L3 3 60", "history:c active 2 60"],
        moves: &[
            "history:a moves from active to L3: unchanged for 5 responses",
            "history:b moves from active to L3: unchanged for 3 responses",
        ],
    },
    Placing {
        rule: "history that does not fill a tier waits",
        is_new_run: true,
        before: &["history:a active 5 60", "history:b active 0 60"],
        coming: &["history:a", "history:b"],
        after: &["history:a active 5 60", "history:b active 0 60"],
        moves: &[],
    },
    Placing {
        rule: "history waits while a run goes on",
        is_new_run: false,
        before: &["history:a active 5 600"],
        coming: &["history:a"],
        after: &["history:a active 5 600"],
        moves: &[],
    },
    Placing {
        rule: "history joins the end of the tier before what is rewritten, as far as it has earned",
        is_new_run: true,
        before: &[
            "symbol:s L1 12 500",
            "symbol:t L2 7 500",
            "history:a active 12 9",
            "history:b active 9 9",
            "history:c active 4 9",
        ],
        coming: &["symbol:s", "symbol:t v2", "history:a", "history:b", "history:c"],
        after: &[
            "symbol:s L1 12 500",
            "symbol:t L3 3 500",
            "history:a L1 12 9",
            "history:b L1 9 9",
            "history:c L3 4 9",
        ],
        moves: &[
            "symbol:t moves from L2 to L3: its content changed",
            "history:a moves from active to L1: unchanged for 12 responses",
            "history:b moves from active to L1: unchanged for 9 responses",
            "history:c moves from active to L3: unchanged for 4 responses",
        ],
    },
    Placing {
        rule: "a changed tree lets history into L3 whatever it holds",
        is_new_run: true,
        before: &["file:z L3 5 500", "history:a active 3 9"],
        coming: &["tree", "file:z", "history:a"],
        after: &["file:z L3 5 500", "history:a L3 3 9"],
        moves: &["history:a moves from active to L3: unchanged for 3 responses"],
    },
    Placing {
        rule: "no exchange overtakes an older one",
        is_new_run: true,
        before: &["file:z L3 5 500", "history:a active 1 900", "history:b active 9 900"],
        coming: &["file:z v2", "history:a", "history:b"],
        after: &["file:z active 0 500", "history:a active 1 900", "history:b active 9 900"],
        moves: &["file:z moves from L3 to active: its content changed"],
    },
    Placing {
        rule: "where an older exchange fell, the later ones follow",
        is_new_run: false,
        before: &["history:a active 0 900", "history:b L3 9 900"],
        coming: &["history:a", "history:b"],
        after: &["history:a active 0 900", "history:b active 9 900"],
        moves: &[
            "history:b moves from L3 to active: an older exchange fell, and the conversation keeps its order",
        ],
    },
    Placing {
        rule: "within a run a change moves nothing",
        is_new_run: false,
        before: &["file:a L1 0 500", "symbol:b L1 9 500", "history:m active 12 900"],
        coming: &["file:a v2", "symbol:b", "history:m"],
        after: &["file:a L1 0 500", "symbol:b L1 9 500", "history:m active 12 900"],
        moves: &[],
    },
    Placing {
        rule: "what changed within the last run has earned its tier anew by the next",
        is_new_run: true,
        before: &["file:a L1 7 500", "file:b L2 9 500"],
        coming: &["file:a shown-anew", "file:b"],
        after: &["file:a L2 7 500", "file:b L1 9 500"],
        moves: &[
            "file:a moves from L1 to L2: its tier held too little to be worth caching",
            "file:b moves from L2 to L1: unchanged for 9 responses",
        ],
    },
    Placing {
        rule: "a symbol entry steps aside for its open file and comes back to L3",
        is_new_run: true,
        before: &["symbol:a L1 9 500", "symbol:b L2 8 500 aside", "symbol:c L1 9 500"],
        coming: &["symbol:a aside", "symbol:b", "symbol:c"],
        after: &["symbol:a L1 9 500 aside", "symbol:b L2 8 500", "symbol:c L1 9 500"],
        moves: &["symbol:a leaves L1: the file itself is open", "symbol:b comes to L2: its file was closed"],
    },
];

#[test]
fn every_rule_of_placing_holds() {
    for case in PLACING {
        let before = tracker(case.before);
        let after = before.place(&coming(case.coming, case.is_new_run));
        assert_eq!(written(&after), case.after, "{}", case.rule);
        // The hash of what changed is counted with the response.
        let shown_now = |entry: &TrackedEntry| {
            let changed = case.coming.contains(&format!("{} v2", entry.key).as_str());
            let version = if changed && case.is_new_run { "v2" } else { "v1" };
            TrackedEntry { hash: Some(hash(&entry.key.to_string(), version)), ..entry.clone() }
        };
        let counted = StabilityTracker { entries: after.entries().iter().map(shown_now).collect() };
        let moves: Vec<String> = counted.changes_since(&before).iter().map(ToString::to_string).collect();
        assert_eq!(moves, case.moves, "{}", case.rule);
    }
}

/// A request as a provider sees it: the entries in order, each with its version.
fn rendered(tracker: &StabilityTracker, coming: &ComingRequest) -> Vec<String> {
    let mut lines = Vec::new();
    for tier in Tier::ALL {
        let of_tier = || tracker.entries().iter().filter(|entry| entry.tier == tier);
        let items = of_tier().filter(|entry| coming.items.contains_key(&entry.key));
        let items: Vec<String> =
            items.map(|entry| format!("{} {:?}", entry.key, coming.items[&entry.key])).collect();
        if !items.is_empty() {
            lines.push(format!("{tier:?}: {items:?}"));
        }
        let exchanges = of_tier().filter(|entry| coming.exchanges.contains(&entry.key));
        lines.extend(exchanges.map(|entry| entry.key.to_string()));
    }
    lines
}

fn common_prefix(a: &[String], b: &[String]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[test]
fn moving_never_rewrites_more_than_what_changed() {
    let mut random = 7_u64;
    let mut roll = |sides: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % sides
    };
    let mut moved = 0;
    for _ in 0..4_000 {
        let mut lines: Vec<String> = Vec::new();
        for name in ["a", "b", "c", "d", "e"] {
            let kind = if roll(2) == 0 { "file" } else { "symbol" };
            let tier = ["L0", "L1", "L2", "L3"][roll(4) as usize];
            lines.push(format!("{kind}:{name} {tier} {} {}", 4 + roll(9), 20 + roll(200)));
        }
        let mut oldest = 0;
        for name in ["m", "n", "o"] {
            oldest = (oldest + roll(3) as usize).min(4);
            let tier = ["L0", "L1", "L2", "L3", "active"][oldest];
            // Too little to graduate for its own sake.
            lines.push(format!("history:{name} {tier} {} 5", roll(13)));
        }
        let before = tracker(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let keys: Vec<String> = before.entries().iter().map(|entry| entry.key.to_string()).collect();
        let same: Vec<&str> = keys.iter().map(String::as_str).collect();
        let changed = roll(6) as usize;
        let next: Vec<String> = keys
            .iter()
            .enumerate()
            .map(|(index, key)| if index == changed { format!("{key} v2") } else { key.clone() })
            .collect();
        let (old, new) =
            (coming(&same, true), coming(&next.iter().map(String::as_str).collect::<Vec<_>>(), true));
        let after = before.place(&new);
        let sent = rendered(&before, &old);
        // Without any move, everything before the changed entry could be read.
        let unmoved = common_prefix(&sent, &rendered(&before, &new));
        let placed = common_prefix(&sent, &rendered(&after, &new));
        assert!(placed >= unmoved.min(sent.len()), "{lines:?} {next:?}: {:?}", written(&after));
        moved += usize::from(written(&after) != written(&before));
    }
    assert!(moved > 1_000, "{moved} of the requests moved something");
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
    let seen = first.record_response(&[shown("symbol:a 210 in-L1")]);
    assert_eq!(written(&seen), ["symbol:a L1 9 210"]);
    let changed = seen.record_response(&[shown("symbol:a 210 v2 in-L1")]);
    assert_eq!(written(&changed), ["symbol:a L1 0 210"]);
}

#[test]
fn the_state_survives_its_written_form() {
    let tracker =
        StabilityTracker { entries: vec![tracked("symbol:a L2 7 60 aside"), tracked("history:m L3 3 9")] };
    let written = serde_json::to_string(&tracker).unwrap();
    assert_eq!(serde_json::from_str::<StabilityTracker>(&written).unwrap(), tracker);
}

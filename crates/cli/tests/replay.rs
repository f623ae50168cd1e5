//! `hardpan replay`, on small sessions written by hand.

mod support;

use serde_json::json;
use support::Sandbox;

const START: i64 = 1_786_698_000_000;

/// Three requests, the last one ten minutes after the others.
fn pi() -> String {
    let answer = |started: i64, write: u64| {
        json!({"type": "message", "timestamp": started + 4000, "message": {
            "role": "assistant", "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "stop",
            "content": [{"type": "text", "text": format!("So: {write}.")}], "timestamp": started,
            "usage": {"input": 0, "output": 9, "cacheRead": 0, "cacheWrite": write},
        }})
    };
    let asked = |at: i64| json!({"type": "message", "timestamp": at, "message": {"role": "user", "content": format!("Why {at}?")}});
    let lines = [
        json!({"type": "session", "id": "s", "timestamp": START, "cwd": "/p"}),
        asked(START),
        answer(START, 20_000),
        asked(START + 60_000),
        answer(START + 60_000, 20_100),
        asked(START + 660_000),
        answer(START + 660_000, 20_200),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_json_has_every_layout_against_bill_floor_and_clairvoyant() {
    let sandbox = Sandbox::new();
    sandbox.write("work/s.jsonl", pi());
    let json = sandbox.json(&["replay", "s.jsonl", "--layout", "all", "--json", "--cache-lifetime", "5m"]);
    let session = &json["sessions"][0];
    let keys: Vec<&String> = session.as_object().expect("an object").keys().collect();
    let expected = [
        "file",
        "requests",
        "billed_cost",
        "floor",
        "clairvoyant",
        "layouts",
        "billed_dollars",
        "unpriced",
        "side_tokens",
    ];
    assert_eq!(keys, expected);
    assert_eq!(session["billed_dollars"], 0.226_125);
    assert_eq!(
        (session["requests"].as_u64(), session["billed_cost"].as_f64()),
        (Some(3), Some(1.25 * 60_300.0))
    );
    let appended = 1.25 * 20_000.0 + (2000.0 + 125.0) + 1.25 * 20_200.0;
    let expected =
        json!({"cost": appended, "read": 20_000, "write": 40_300, "input": 0, "folds": 0, "recalls": 0});
    assert_eq!((&session["layouts"]["append"], &session["layouts"]["strata"]), (&expected, &expected));
    assert_eq!(session["clairvoyant"], appended);
    // After the pause the default writes for an hour.
    let auto = sandbox.json(&["replay", "s.jsonl", "--layout", "strata", "--json"]);
    let written = appended + 0.75 * 20_200.0;
    assert_eq!(auto["sessions"][0]["layouts"]["strata"]["cost"], written);
    // What the last request adds is sent once, so that writing it would not pay.
    assert_eq!(session["floor"], 1.25 * 20_100.0 + 2000.0 + 2010.0 + 100.0);
    let mut layouts: Vec<&String> = session["layouts"].as_object().expect("an object").keys().collect();
    layouts.sort();
    assert_eq!(layouts, ["append", "inline", "panels", "strata", "strata-history", "strata-lean", "tiers"]);
}

#[test]
fn a_table_is_for_people_and_a_bad_file_does_not_stop_the_others() {
    let sandbox = Sandbox::new();
    sandbox.write("work/s.jsonl", pi());
    sandbox.write("work/notes.jsonl", "{\"a\":1}\n");
    let out =
        sandbox.run(&["replay", "notes.jsonl", "s.jsonl", "--layout", "strata", "--cache-lifetime", "5m"]);
    assert!(out.stderr.contains("notes.jsonl is not a session of a known agent"), "{}", out.stderr);
    let shown = String::from_utf8(out.stdout).expect("text");
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("s.jsonl: 3 requests, input billed $0.22"), "{}", lines[0]);
    let strata = lines.iter().find(|line| line.starts_with("strata")).expect("a row of strata");
    assert_eq!(strata.split_whitespace().nth(2), Some("0.695"));
    assert!(!shown.contains("panels"));
    let unknown = sandbox.run(&["replay", "s.jsonl", "--layout", "pannels"]);
    assert!(
        unknown.stderr.contains("expected one of strata, panels, tiers, inline, append, all"),
        "{}",
        unknown.stderr
    );
    assert!(sandbox.failure(&["replay", "notes.jsonl"]).contains("cannot replay any of the 1 files"));
}

#[test]
fn a_price_that_nobody_knows_is_not_made_up_and_yours_counts() {
    let sandbox = Sandbox::new();
    sandbox.write("work/s.jsonl", pi().replace("claude-sonnet-4-5", "claude-thing-9"));
    let unknown = sandbox.text(&["replay", "s.jsonl", "--layout", "append"]);
    assert!(
        unknown
            .starts_with("s.jsonl: 3 requests, tokens and ratios only: no price is known of claude-thing-9"),
        "{unknown}"
    );
    assert!(!unknown.contains('$'), "{unknown}");
    let json = sandbox.json(&["replay", "s.jsonl", "--json"]);
    let session = &json["sessions"][0];
    assert_eq!(
        (&session["billed_dollars"], &session["unpriced"]),
        (&json!(null), &json!(["claude-thing-9"]))
    );
    assert_eq!(session["billed_cost"].as_f64(), Some(1.25 * 60_300.0));
    let mine = json!({"models": [{"provider": "anthropic", "id": "claude-thing-9", "price": {"input": 10.0, "output": 50.0}}]});
    sandbox.write("config/models.json", mine.to_string());
    let known = sandbox.text(&["replay", "s.jsonl", "--layout", "append"]);
    assert!(known.starts_with("s.jsonl: 3 requests, input billed $0.75"), "{known}");
}

//! `hardpan audit`, on small sessions of other agents, with no key and no settings.

mod support;

use serde_json::{Value, json};
use support::Sandbox;

const EXPIRED: &str = "the cache expired after 5 minutes (20 minutes unused)";

fn pi() -> String {
    let answer = |started: i64, read: u64, write: u64| {
        json!({"type": "message", "timestamp": started + 4000, "message": {
            "role": "assistant", "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "stop",
            "content": [{"type": "text", "text": "So."}], "timestamp": started,
            "usage": {"input": 5, "output": 9, "cacheRead": read, "cacheWrite": write},
        }})
    };
    let asked =
        |at: i64| json!({"type": "message", "timestamp": at, "message": {"role": "user", "content": "Why?"}});
    let start = 1_786_698_000_000;
    let lines = [
        json!({"type": "session", "id": "s", "timestamp": start, "cwd": "/p"}),
        asked(start),
        answer(start, 0, 20_000),
        asked(start + 1_200_000),
        answer(start + 1_200_000, 0, 20_100),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn claude_code() -> String {
    let usage = json!({"input_tokens": 3, "cache_creation_input_tokens": 9000, "cache_read_input_tokens": 0, "output_tokens": 9});
    let lines = [
        json!({"type": "user", "uuid": "u", "parentUuid": null, "sessionId": "s", "timestamp": "2026-08-14T09:00:00Z",
               "message": {"role": "user", "content": "Why?"}}),
        json!({"type": "assistant", "uuid": "a", "parentUuid": "u", "sessionId": "s", "timestamp": "2026-08-14T09:00:04Z",
               "message": {"id": "m", "role": "assistant", "model": "claude-opus-4-5", "content": [], "usage": usage}}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn codex() -> String {
    let usage =
        json!({"input_tokens": 5000, "cached_input_tokens": 0, "output_tokens": 9, "total_tokens": 5009});
    let said =
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why?"}]});
    let lines = [
        json!({"timestamp": "2026-08-14T09:00:00Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/p", "model_provider": "openai"}}),
        json!({"timestamp": "2026-08-14T09:00:00Z", "type": "turn_context", "payload": {"model": "gpt-5-codex"}}),
        json!({"timestamp": "2026-08-14T09:00:01Z", "type": "response_item", "payload": said}),
        json!({"timestamp": "2026-08-14T09:00:04Z", "type": "event_msg", "payload": {
            "type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn agents(report: &Value) -> Vec<(&str, u64)> {
    let sessions = report["sessions"].as_array().expect("sessions");
    sessions
        .iter()
        .map(|s| (s["agent"].as_str().expect("a name"), s["requests"].as_u64().expect("a count")))
        .collect()
}

#[test]
fn a_bill_is_explained_without_key_and_settings() {
    let sandbox = Sandbox::new();
    sandbox.write("work/s.jsonl", pi());
    let report = sandbox.json(&["audit", "s.jsonl", "--json"]);
    let advice = "go on sooner, or ask for the one-hour cache where the agent offers it; after a long break, begin anew or compact first";
    let cause = json!({
        "cause": "the cache expired", "losses": 1, "tokens": 20_000, "dollars": 0.069, "certainty": "inferred",
        "avoidable_by": "person", "advice": advice,
    });
    let expected = json!({"causes": [cause], "sessions": [{
        "file": "s.jsonl", "agent": "pi", "requests": 2,
        "billed": {"input": 10, "read": 0, "write": 40_100, "output": 18, "cost": 50_135.0, "dollars": 0.150_405},
        "predicted": {"input": 10, "read": 0, "write": 40_100, "cost": 50_135.0},
        "right": 2,
        "losses": [{"request": 1, "at": "2026-08-14T09:20:00Z", "tokens": 20_000, "dollars": 0.069, "cause": EXPIRED, "ours": false, "source": "inferred"}],
        "stable_prefix_cost": 50_135.0,
        "side_requests": [], "total_dollars": 0.150_675, "recorded_dollars": null, "unpriced": [],
    }]});
    assert_eq!(report, expected);
    let text = sandbox.text(&["audit", "s.jsonl"]);
    assert!(
        text.starts_with("s.jsonl (pi): $0.151 for 2 billed requests\n") && text.contains(EXPIRED),
        "{text}"
    );
}

#[test]
fn the_usual_places_of_all_agents_are_looked_through() {
    let sandbox = Sandbox::new();
    let nothing = sandbox.failure(&["audit", "--discover"]);
    assert!(nothing.contains("found no sessions in") && nothing.contains(".claude/projects"), "{nothing}");
    sandbox.write("home/.pi/agent/sessions/--p--/s.jsonl", pi());
    sandbox.write("home/.claude/projects/-p/s.jsonl", claude_code());
    sandbox.write("home/.claude/projects/-p/notes.txt", "no session");
    sandbox.write("home/.codex/sessions/2026/08/14/rollout-s.jsonl", codex());
    let report = sandbox.json(&["audit", "--discover", "--json"]);
    assert_eq!(agents(&report), [("pi", 2), ("claude-code", 1), ("codex", 1)]);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_skipped() {
    let sandbox = Sandbox::new();
    sandbox.write("work/s.jsonl", pi());
    sandbox.write("work/\u{1b}[2Jother.jsonl", "what is this\n");
    let ran = sandbox.run(&["audit", "--json", "s.jsonl", "\u{1b}[2Jother.jsonl", "absent.jsonl"]);
    let report: Value = serde_json::from_slice(&ran.stdout).expect("it is JSON");
    assert_eq!((ran.code, agents(&report)), (Some(0), vec![("pi", 2)]));
    assert!(ran.stderr.contains("skipped: \u{fffd}[2Jother.jsonl is not a session"), "{}", ran.stderr);
    assert!(ran.stderr.contains("skipped: cannot read absent.jsonl"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\r'), "no progress without a terminal");
    assert!(sandbox.failure(&["audit", "absent.jsonl"]).contains("cannot read any of these sessions"));
}

#[test]
fn a_session_without_a_bill_is_refused_by_name() {
    let sandbox = Sandbox::new();
    let asked = claude_code().lines().next().expect("a prompt").to_owned();
    sandbox.write("work/s.jsonl", &asked);
    let refused = sandbox.failure(&["audit", "s.jsonl"]);
    assert!(refused.contains("s.jsonl is a session of Claude Code without a billed request"), "{refused}");
    let refused = sandbox.failure(&["replay", "s.jsonl"]);
    assert!(refused.contains("s.jsonl is a session of Claude Code without a billed request"), "{refused}");
    // Found by itself, it is only counted.
    sandbox.write("home/.claude/projects/-p/a.jsonl", &asked);
    sandbox.write("home/.claude/projects/-p/b.jsonl", claude_code());
    let ran = sandbox.run(&["audit", "--discover", "--json"]);
    assert_eq!(ran.stderr, "hardpan: skipped 1 sessions without a billed request\n");
}

#[test]
fn a_folder_is_looked_through_and_a_page_is_written() {
    let sandbox = Sandbox::new();
    sandbox.write("work/all/a.jsonl", pi());
    sandbox.write("work/all/deep/b.jsonl", codex());
    let ran = sandbox.run(&["audit", "all", "--html", "page.html"]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), "wrote page.html\n"));
    let page = std::fs::read_to_string(sandbox.work().join("page.html")).expect("it was written");
    assert!(page.starts_with("<!doctype html>") && page.contains(EXPIRED));
    assert!(
        sandbox
            .failure(&["audit", "all", "--html", "no/such/page.html"])
            .contains("cannot write no/such/page.html")
    );
}

#[test]
fn settings_that_cannot_be_read_do_not_stop_an_audit() {
    let sandbox = Sandbox::new();
    sandbox.write("work/s.jsonl", pi());
    sandbox.write("config/models.json", "{ broken");
    let ran = sandbox.run(&["audit", "s.jsonl", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

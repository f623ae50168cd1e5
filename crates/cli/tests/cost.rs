//! `hardpan cost` and `hardpan why`, on sessions that the binary itself made.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use hardpan_session::{Session, SessionStore};
use hardpan_test_support::SimulatorServer;
use serde_json::Value;
use support::{LAYOUTS, Sandbox};

fn ask(sandbox: &Sandbox, args: &[&str]) -> String {
    let ran = sandbox.run(&[&["-p"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stderr
}

/// The sandbox's sessions, as they are stored.
fn sessions(sandbox: &Sandbox) -> Vec<Session> {
    let folder = sandbox.work().parent().unwrap().join("home/.local/share/hardpan/sessions");
    SessionStore::new(folder).list(None).iter().map(|summary| Session::open(&summary.path).unwrap()).collect()
}

/// Input, read, written, output.
fn sum(rows: &Value) -> [u64; 4] {
    let mut sum = [0; 4];
    for row in rows.as_array().unwrap() {
        let field = |name: &str| row[name].as_u64().unwrap();
        let parts = [field("input"), field("read"), field("write") + field("write_1h"), field("output")];
        sum.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
    }
    sum
}

fn stored(sandbox: &Sandbox) -> [u64; 4] {
    let mut sum = [0; 4];
    for session in sessions(sandbox) {
        for request in session.requests() {
            let usage = &request.usage;
            let written = usage.cache_write_5m + usage.cache_write_1h;
            let parts = [usage.input, usage.cache_read, written, usage.output];
            sum.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
    }
    sum
}

#[test]
fn where_nothing_was_paid_it_says_so() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["cost"]);
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0));
    assert_eq!(ran.stderr, "no costs here yet: ask a model something with hardpan -p \"…\"\n");
    assert!(sandbox.failure(&["why"]).contains("this folder has no session yet"));
}

#[test]
fn whatever_it_is_added_up_by_the_sum_is_the_same() {
    let (sandbox, server) = (Sandbox::new(), SimulatorServer::offline_assistant());
    sandbox.use_provider(&server);
    sandbox.write("work/src/main.rs", "fn main() {\n    greet();\n}\n\nfn greet() {}\n");
    for layout in LAYOUTS {
        ask(&sandbox, &["Where is greet called?", "--layout", layout]);
    }
    ask(&sandbox, &["And now @src/main.rs?", "--model", "claude-opus-5"]);
    let expected = stored(&sandbox);
    assert!(expected.iter().sum::<u64>() > 10_000);
    for by in ["session", "day", "model", "project", "kind", "key"] {
        let cost = sandbox.json(&["cost", "--by", by, "--json"]);
        assert_eq!(sum(&cost["rows"]), expected, "{by}");
        let rows: f64 =
            cost["rows"].as_array().unwrap().iter().map(|row| row["dollars"].as_f64().unwrap()).sum();
        assert!((rows - cost["total"]["dollars"].as_f64().unwrap()).abs() < 1e-9, "{by}");
        let table = sandbox.run(&["cost", "--by", by]);
        assert_eq!(table.code, Some(0), "{}", table.stderr);
        assert!(String::from_utf8(table.stdout).unwrap().starts_with("requests  "), "{by}");
    }
    let models = sandbox.json(&["cost", "--by", "model", "--json"]);
    assert_eq!(models["rows"].as_array().unwrap().len(), 2);
    let keys = sandbox.json(&["cost", "--by", "key", "--json"]);
    assert!(keys["rows"].as_array().unwrap().iter().any(|row| row["key"] == "file:src/main.rs"));
}

/// The HUD, the end of a run, `/cost` and `cost` say the same about a session, with the same digits.
#[test]
fn all_figures_of_a_session_agree() {
    let (sandbox, server) = (Sandbox::new(), SimulatorServer::offline_assistant());
    sandbox.use_provider(&server);
    sandbox.write("work/src/main.rs", "fn main() {\n    greet();\n}\n\nfn greet() {}\n");
    ask(&sandbox, &["Where is greet called?"]);
    let ran = sandbox.run(&["--continue", "-p", "And @src/main.rs?", "--output", "json", "--hud"]);
    let lines = String::from_utf8(ran.stdout).unwrap();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = |kind: &str| events.iter().rfind(|event| event["type"] == kind).unwrap();
    // Once per run, however many requests it made.
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert!(count("hud") == 1 && count("turn_start") > 1, "{} turns", count("turn_start"));
    let (hud, end) = (&last("hud")["hud"], &last("agent_end")["token_usage"]);
    let id = sessions(&sandbox)[0].header.id.to_string();
    let total = sandbox.json(&["cost", &id, "--json"])["total"].clone();
    let written = total["write"].as_u64().unwrap() + total["write_1h"].as_u64().unwrap();
    let dollars = total["dollars"].as_f64().unwrap();
    for said in [hud, end] {
        assert_eq!(said["requests"], total["requests"]);
        assert!((said["session"]["dollars"].as_f64().unwrap() - dollars).abs() < 1e-9, "{said} {total}");
        assert_eq!(said["session"]["written"], written);
        for field in ["input", "read", "output"] {
            assert_eq!(said["session"][field], total[field], "{field}");
        }
    }
    // The same digits wherever a person reads them.
    let shown = hardpan_prompt::figures::format_dollars(dollars);
    let table = String::from_utf8(sandbox.run(&["cost", &id]).stdout).unwrap();
    assert!(table.lines().any(|line| line.contains(&shown) && line.ends_with("all")), "{shown}: {table}");
    for command in ["/cost", "/cost model"] {
        let said = sandbox.run(&["--resume", &id, "-p", command]);
        let said = String::from_utf8(said.stdout).unwrap();
        let head = format!("{} requests · ", total["requests"]);
        assert!(said.starts_with(&head) && said.lines().next().unwrap().ends_with(&shown), "{shown}: {said}");
    }
    let hud = sandbox.run(&["--resume", &id, "-p", "And again?", "--hud"]);
    let total = sandbox.json(&["cost", &id, "--json"])["total"]["dollars"].as_f64().unwrap();
    let shown = hardpan_prompt::figures::format_dollars(total);
    assert!(hud.stderr.contains(&shown), "{shown}: {}", hud.stderr);
}

/// `cost` and `why` read sessions of Hardpan; for others they name the command that does.
#[test]
fn a_session_of_another_agent_is_for_audit() {
    let sandbox = Sandbox::new();
    let pi = r#"{"type":"session","id":"s","timestamp":"2026-08-14T09:00:00Z","cwd":"/p","provider":"anthropic","modelId":"claude-sonnet-4-5"}"#;
    sandbox.write("work/my session.jsonl", format!("{pi}\n"));
    for command in ["cost", "why"] {
        let said = sandbox.failure(&[command, "my session.jsonl"]);
        assert!(said.contains("is a session of pi"), "{said}");
        assert!(said.contains("run `hardpan audit 'my session.jsonl'`"), "{said}");
    }
}

#[test]
fn what_a_fork_took_along_is_counted_once() {
    let (sandbox, server) = (Sandbox::new(), SimulatorServer::offline_assistant());
    sandbox.use_provider(&server);
    ask(&sandbox, &["Where is main?"]);
    let first = sessions(&sandbox)[0].header.id.to_string();
    let before = sandbox.json(&["cost", "--json"])["total"]["requests"].as_u64().unwrap();
    let stderr = ask(&sandbox, &["And now?", "--fork", &first]);
    assert!(!stderr.is_empty());
    let forked = sessions(&sandbox).into_iter().find(|session| *session.header.id != *first).unwrap();
    let own = forked.requests().count() as u64 - before;
    assert!(own > 0);
    assert_eq!(sandbox.json(&["cost", "--json"])["total"]["requests"], before + own);
    // By itself it tells all that it rests on.
    let alone = sandbox.json(&["cost", &forked.header.id, "--json"]);
    assert_eq!(alone["total"]["requests"], before + own);
    assert_eq!(alone["by"], "kind");
}

#[test]
fn a_loss_is_told_when_it_happens_and_explained_afterwards() {
    let (sandbox, server) = (Sandbox::new(), SimulatorServer::offline_assistant());
    sandbox.use_provider(&server);
    // Long enough to be cached.
    let text: String = (0..800).map(|line| format!("pub fn number_{line}() {{}}\n")).collect();
    sandbox.write("work/src/lib.rs", &text);
    let quiet = ask(&sandbox, &["Where is number_7 in @src/lib.rs?"]);
    assert!(!quiet.contains("paid again"), "{quiet}");
    let none = sandbox.run(&["why"]);
    assert!(none.stderr.starts_with("no losses in the "), "{}", none.stderr);
    // Another server, another cache.
    let other = SimulatorServer::offline_assistant();
    sandbox.use_provider(&other);
    let told = ask(&sandbox, &["And number_8?", "--continue"]);
    let sentence =
        told.lines().find(|line| line.contains("were paid again: the session was resumed")).unwrap();
    assert!(sentence.ends_with("Only the provider could have avoided it."), "{told}");
    let why = sandbox.json(&["why", "--json"]);
    assert_eq!(why[0]["verdict"]["cause"], "resumed");
    assert_eq!(format!("hardpan: {}", why[0]["sentence"].as_str().unwrap()), sentence);
    let text = sandbox.text(&["why", "--all"]);
    assert!(text.contains("tokens were in the cache, 0 were read from it"), "{text}");
    let cost = sandbox.run(&["cost"]);
    assert!(cost.stderr.contains("paid again for cached content: ") && cost.stderr.contains("resumed 1×"));
}

#[test]
fn nobody_is_said_to_have_paid_for_the_simulator() {
    let sandbox = Sandbox::new();
    sandbox.write("work/retry.py", "def retry(n):\n    return n\n");
    let data = sandbox.work().join("../data");
    let run = |args: &[&str]| {
        let output = sandbox.command(args).env("HARDPAN_DATA_DIR", &data).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, hud) = run(&["-p", "where is retry defined?", "--hud"]);
    assert!(hud.contains("$0 (would be $0.0"), "{hud}");
    let (table, said) = run(&["cost"]);
    assert_eq!(table, "");
    assert!(said.contains("no costs here yet"), "{said}");
    assert!(said.contains("which cost nothing; a model's would have cost $0.0"), "{said}");
    let (json, _) = run(&["cost", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["total"]["dollars"], 0.0, "{json}");
}

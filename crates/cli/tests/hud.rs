//! `--hud` of the real binary: what it adds up from run to run, what it says, and in how many columns.

mod provider;
mod support;

use provider::Provider;
use serde_json::Value;
use support::Sandbox;
use unicode_width::UnicodeWidthStr;

const KEY: &str = "sk-of-the-test";

/// The HUD after a prompt, for programs.
fn json(sandbox: &Sandbox, args: &[&str]) -> Value {
    let mut command = sandbox.command(&["-p", "hi", "--hud", "--output", "json"]);
    let output = command.args(args).env("ANTHROPIC_API_KEY", KEY).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events = String::from_utf8(output.stdout).expect("events are UTF-8");
    let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    events.rfind(|event| event["type"] == "hud").expect("a HUD")["hud"].clone()
}

/// The HUD after a prompt, for people, in so many columns.
fn text(sandbox: &Sandbox, args: &[&str], columns: usize) -> String {
    let mut command = sandbox.command(&["-p", "hi", "--hud"]);
    command.args(args).env("ANTHROPIC_API_KEY", KEY).env("COLUMNS", columns.to_string());
    let output = command.output().expect("it can be run");
    let words = String::from_utf8(output.stderr).expect("words are UTF-8");
    assert!(output.status.success(), "{words}");
    words[words.find("anthropic/").expect("a HUD")..].to_owned()
}

#[test]
fn empty_tiers_add_up_over_the_runs_of_a_session() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "default: {text: Hello.}", "");
    let tiers =
        |args: &[&str]| json(&sandbox, &[&["--layout", "tiers"], args].concat())["empty_tiers"].clone();
    let mut sum = 0;
    for args in [&[][..], &["-c"], &["-c"], &["-c"]] {
        let empty = tiers(args);
        sum += empty["last_request"].as_u64().expect("a number");
        assert_eq!(empty["session"], sum, "{empty}");
    }
    assert!(sum > 3, "several requests had empty tiers");
    // Another session begins anew.
    let empty = tiers(&[]);
    assert_eq!(empty["session"], empty["last_request"]);
}

#[test]
fn what_a_second_conversation_reads_is_not_said_to_be_nothing() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "default: {text: Hello.}", "");
    let first = text(&sandbox, &[], 100);
    assert!(
        first.contains("Nothing was lost: the first request of a conversation finds nothing cached."),
        "{first}"
    );
    let second = text(&sandbox, &[], 100);
    assert!(!second.contains("from the cache: 0.0%"), "it reads what the first one wrote: {second}");
    assert!(second.contains("Nothing was lost: the first request found "), "{second}");
    assert!(!second.contains("finds nothing cached"), "{second}");
}

#[test]
fn a_narrow_terminal_gets_more_lines_and_not_less_in_them() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "default: {text: Hello.}", "");
    text(&sandbox, &[], 100);
    for columns in [40, 60, 80, 120] {
        let shown = text(&sandbox, &["-c"], columns);
        for line in shown.lines() {
            assert!(line.width() <= columns && !line.contains('…'), "{columns}: {line}");
        }
        for word in
            ["input", "read", "written", "output", "cost", "session", "cache blocks", "conversation", "tail"]
        {
            assert!(shown.contains(word), "{columns} columns lack {word}:\n{shown}");
        }
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Nothing was paid again: "), "the verdict: {shown}");
        assert!(words.contains("read from the cache."), "to its end: {shown}");
    }
}

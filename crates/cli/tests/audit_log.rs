//! `hardpan log`: who allowed what, how it ended, and no keys. And addresses without passwords.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use serde_json::Value;
use support::Sandbox;
use test_cli::{Terminal, TestCli};

fn log(cli: &TestCli, args: &[&str]) -> Vec<Value> {
    let ran = cli.print(&[&["log", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn what_was_allowed_and_denied_is_written_down_with_who_and_how_it_ended() {
    let cli = TestCli::new("allow = [\"write(notes/a.txt)\"]\ndeny = [\"write(notes/secret.txt)\"]");
    cli.print(&["-p", "Write notes"]);
    cli.print(&["-p", "Write secret"]);
    cli.print(&["-p", "Edit it"]);
    cli.print(&["-p", "Print the variables", "--yes"]);
    let entries = log(&cli, &[]);
    let field = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let short: Vec<[String; 4]> = entries
        .iter()
        .map(|entry| ["event", "tool", "subject", "by"].map(|name| field(entry, name)))
        .collect();
    let expected = [
        ["allowed", "write", "notes/a.txt", "rule"],
        ["ended", "write", "", ""],
        ["denied", "write", "notes/secret.txt", ""],
        ["denied", "edit", "a.txt", ""],
        ["allowed", "bash", "env; cat $HOME/../config/keys.toml", "yes"],
        ["ended", "bash", "", ""],
    ];
    assert_eq!(short, expected.map(|line| line.map(str::to_owned)));
    assert_eq!(entries[0]["rule"], "write(notes/a.txt)");
    assert!(field(&entries[2], "reason").contains("the settings deny it"), "{entries:#?}");
    let sessions =
        entries.iter().map(|entry| field(entry, "session")).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sessions.len(), 4, "one for each run: {sessions:?}");
    let one = field(&entries[0], "session");
    assert_eq!(log(&cli, &[&one[..8]]).len(), 2);
    assert_eq!(log(&cli, &["-n", "1"]).len(), 1);
    let text = String::from_utf8(cli.print(&["log"]).stdout).unwrap();
    assert!(text.contains("allowed by rule write(notes/a.txt): notes/a.txt"), "{text}");
    // Another folder has its own.
    assert!(log(&cli, &["--dir", "/"]).is_empty() && log(&cli, &["--dir", "/", "--all"]).len() == 6);
}

#[test]
fn what_a_person_says_is_written_down_and_an_unstored_conversation_leaves_nothing() {
    let cli = TestCli::new("");
    cli.print(&["-p", "Edit it", "--no-session", "--yes"]);
    assert!(log(&cli, &[]).is_empty());
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say("Write notes", "asks: Change this file?");
    terminal.say("s", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.say("!echo by-the-$((1+1)); exit 3", "by-the-2\r\n");
    terminal.expect("you: ");
    terminal.end();
    let entries = log(&cli, &[]);
    let field = |name: &str| entries.iter().map(|entry| entry[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("event"), ["allowed", "ended", "allowed", "ended"], "{entries:#?}");
    assert_eq!(
        (&entries[2]["tool"], &entries[2]["by"], &entries[2]["subject"], &entries[3]["failed"]),
        (&"user_bash".into(), &"person".into(), &"echo by-the-$((1+1)); exit 3".into(), &true.into())
    );
    assert_eq!((&entries[0]["by"], &entries[0]["rule"]), (&"person".into(), &"write(notes/a.txt)".into()));
}

#[test]
fn addresses_are_shown_without_their_passwords() {
    let sandbox = Sandbox::new();
    let address = "http://me:hunter2hunter2@127.0.0.1:9/v1?key=hunter2hunter2";
    let config = format!("[providers.anthropic]\nbase_url = \"{address}\"\n[patience]\ntries = 1\n");
    sandbox.write("config/config.toml", config);
    for args in [
        &["providers"][..],
        &["providers", "--json"],
        &["request", "Hello", "--http"],
        &["models", "--check", "anthropic"],
        &["-p", "Hello"],
        &["-p", "Hello", "--hud", "--output", "json", "--log", "log.txt"],
    ] {
        let ran = sandbox.command(args).env("ANTHROPIC_API_KEY", "k").output().unwrap();
        let output =
            String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(!output.contains("hunter2"), "{args:?}: {output}");
    }
    let log = std::fs::read_to_string(sandbox.work().join("log.txt")).unwrap_or_default();
    assert!(!log.contains("hunter2"), "{log}");
    let wrong = Sandbox::new();
    wrong.write("config/config.toml", "[providers.anthropic]\nbase_url = \"me:hunter2hunter2@host\"\n");
    let ran = wrong.command(&["-p", "Hello"]).env("ANTHROPIC_API_KEY", "k").output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains("•••@host") && !said.contains("hunter2"), "{said}");
}

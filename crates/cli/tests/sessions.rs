//! `hardpan sessions`, on sessions that a real writer made.

mod support;

use std::path::PathBuf;
use std::process::Stdio;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_session::{Entry, Header, Record, Session, SessionLog, SessionStore};
use jiff::Timestamp;
use support::Sandbox;

/// Steers the terminal, and a page.
const EVIL: &str = "\u{1b}[2J<script>";

fn store(sandbox: &Sandbox) -> SessionStore {
    SessionStore::new(
        sandbox.work().parent().expect("the sandbox").join("home/.local/share/hardpan/sessions"),
    )
}

fn user_message(id: &str, parent: Option<&str>, text: &str) -> Entry {
    Entry::message(
        parent,
        AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(text)] }),
    )
}

fn answer(id: &str, parent: &str, text: &str) -> Entry {
    let content = vec![MessagePart::text(text)];
    let body = MessageBody::Assistant { content, provider: None, model: None, stop_reason: None };
    Entry::message(Some(parent), AgentMessage::new(id, body))
}

fn label(id: &str, parent: &str, target: &str, label: &str) -> Entry {
    let record = Record::Label { target: target.into(), label: Some(label.into()) };
    Entry::new(id, Some(parent), None, record)
}

fn name(id: &str, parent: &str, name: &str) -> Entry {
    Entry::new(id, Some(parent), None, Record::Name { name: name.into() })
}

/// A session in the sandbox's folder.
fn add(sandbox: &Sandbox, id: &str, entries: &[Entry]) -> PathBuf {
    let cwd = sandbox.work().canonicalize().expect("the folder is there");
    let path = store(sandbox).new_path(&cwd, Timestamp::UNIX_EPOCH, id);
    let (time, cwd) = (Some(Timestamp::UNIX_EPOCH), cwd.to_string_lossy().into());
    let header = Header { id: id.into(), time, cwd, extra: Default::default() };
    let log = SessionLog::create(&path, header).expect("a writer");
    entries.iter().for_each(|entry| log.append(entry.clone()).wait().expect("it can be saved"));
    path
}

/// Two branches after `u`, the second one the current.
fn branched() -> Vec<Entry> {
    vec![
        user_message("u", None, "Why does the build fail?"),
        answer("a", "u", "A semicolon."),
        user_message("b", Some("a"), "Where?"),
        answer("c", "u", &format!("The lock file. {EVIL}")),
        label("l", "c", "c", "good"),
        name("n", "l", "The build"),
    ]
}

#[test]
fn a_message_is_recalled_by_its_id_on_its_branch() {
    let sandbox = Sandbox::new();
    add(&sandbox, "5d41402abc4b", &branched());
    let exact = format!("The lock file. {EVIL}");
    let plain = "The lock file. <script>";
    assert_eq!(sandbox.text(&["sessions", "recall", "5d4", "c"]), plain, "without control sequences");
    let expected = serde_json::json!({"id": "c", "role": "assistant", "text": exact});
    assert_eq!(sandbox.json(&["sessions", "recall", "5d4", "c", "--json"]), expected);
    assert!(
        sandbox.failure(&["sessions", "recall", "5d4", "a"]).contains("this conversation has no message a")
    );
    assert_eq!(sandbox.text(&["sessions", "recall", "5d4", "a", "--branch", "b"]), "A semicolon.");
}

#[test]
fn without_sessions_it_says_how_to_start_one() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["sessions"]);
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0));
    assert_eq!(ran.stderr, "no sessions here yet: start one with hardpan -p \"…\"\n");
    assert_eq!(sandbox.json(&["sessions", "--json"]), serde_json::json!([]));
}

#[test]
fn the_sessions_of_the_folder_are_listed() {
    let sandbox = Sandbox::new();
    add(&sandbox, "5d41402abc4b", &branched());
    let table = sandbox.text(&["sessions"]);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("id            last used (UTC)   messages"), "{table}");
    assert!(lines[1].starts_with("5d41402abc4b  20") && lines[1].ends_with("The build"), "{table}");
    let list = sandbox.json(&["sessions", "--json"]);
    assert_eq!((&list[0]["messages"], &list[0]["name"]), (&4.into(), &"The build".into()));
    std::fs::create_dir(sandbox.work().join("below")).expect("a folder");
    assert!(sandbox.run(&["sessions", "--dir", "below"]).stderr.starts_with("no sessions here yet"));
    let all = sandbox.text(&["sessions", "--all"]);
    assert!(all.contains("folder") && all.contains("/work"), "{all}");
    // A program gets all of it, whatever the width of the terminal that it was started in.
    let piped = sandbox.command(&["sessions"]).env("COLUMNS", "40").output().expect("it ends").stdout;
    assert_eq!(String::from_utf8_lossy(&piped), sandbox.text(&["sessions"]));
    assert!(String::from_utf8_lossy(&piped).starts_with("id            last used (UTC) "));
}

#[test]
fn what_was_said_can_be_searched() {
    let sandbox = Sandbox::new();
    add(&sandbox, "5d41402abc4b", &branched());
    let found = sandbox.text(&["sessions", "search", "LOCK", "file"]);
    assert!(found.contains("5d41402abc4b  c      assistant  The lock file. \u{fffd}[2J<script>"), "{found}");
    assert_eq!(sandbox.json(&["sessions", "search", "why", "--json"])[0]["entry"], "u");
    let ran = sandbox.run(&["sessions", "search", "zebra"]);
    let words = "no message in the sessions here contains all of these words; --all searches the sessions of all folders\n";
    assert_eq!((ran.code, &*ran.stderr), (Some(0), words));
}

#[test]
fn a_session_is_shown_as_a_tree() {
    let sandbox = Sandbox::new();
    add(&sandbox, "5d41402abc4b", &branched());
    let work = sandbox.work().canonicalize().expect("the folder is there");
    let expected = format!(
        "5d41402abc4b \"The build\", begun in {}\n  u  user: Why does the build fail?\n  |- a  assistant: A semicolon.\n  \
           |  b  user: Where?\n* c  assistant: [good] The lock file. \u{fffd}[2J<script>\n",
        work.display()
    );
    assert_eq!(sandbox.text(&["sessions", "show", "the build"]), expected);
}

#[test]
fn a_very_long_conversation_is_shown_too() {
    let sandbox = Sandbox::new();
    let path = add(&sandbox, "5d41402abc4b", &[user_message("0", None, "start")]);
    let lines: String = (1..20_000)
        .map(|at| user_message(&at.to_string(), Some(&(at - 1).to_string()), "x").to_line())
        .collect();
    let text = std::fs::read_to_string(&path).expect("it is there") + &lines;
    std::fs::write(&path, text).expect("it can be written");
    assert_eq!(sandbox.text(&["sessions", "show", "5d4"]).lines().count(), 20_001);
}

#[test]
fn a_session_is_exported_in_every_format() {
    let sandbox = Sandbox::new();
    add(&sandbox, "5d41402abc4b", &branched());
    let markdown = sandbox.text(&["sessions", "export", "5d4"]);
    assert!(markdown.starts_with("# The build\n") && markdown.contains("The lock file."));
    assert!(!markdown.contains("A semicolon."));
    let page = sandbox.text(&["sessions", "export", "5d4", "--format", "html", "--branch", "b"]);
    assert!(
        page.starts_with("<!doctype html>") && page.contains("A semicolon.") && !page.contains("<script")
    );
    let file = sandbox.work().join("copy.jsonl");
    let output = ["sessions", "export", "5d4", "--format", "jsonl", "--all", "--output", "copy.jsonl"];
    assert_eq!(sandbox.text(&output), "");
    assert_eq!(Session::open(&file).expect("it is a session").entries, branched());
    let error = sandbox.failure(&["sessions", "export", "5d4", "--branch", "zebra"]);
    assert!(error.contains("has no entry `zebra`"), "{error}");
    let ran = sandbox.run(&["sessions", "export", "5d4", "--format", "pdf"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("use markdown, html or jsonl"), "{}", ran.stderr);
}

#[test]
fn the_ending_of_a_file_names_the_format_unless_a_flag_does() {
    let sandbox = Sandbox::new();
    add(&sandbox, "5d41402abc4b", &branched());
    let export = |more: &[&str]| {
        assert_eq!(sandbox.text(&[&["sessions", "export", "5d4", "--output"], more].concat()), "");
        std::fs::read_to_string(sandbox.work().join(more[0])).expect("it was written")
    };
    assert!(export(&["a.md"]).starts_with("# The build\n"));
    assert!(export(&["b.HTML"]).starts_with("<!doctype html>"));
    assert!(export(&["c.jsonl"]).starts_with("{\"type\":\"session\""));
    assert!(export(&["d.html", "--format", "markdown"]).starts_with("# The build\n"));
    assert!(export(&["notes.txt", "--format", "md"]).starts_with("# The build\n"));
    for name in ["e.pdf", "e"] {
        let error = sandbox.failure(&["sessions", "export", "5d4", "--output", name]);
        let words = "unknown extension: use .md, .html or .jsonl, or add --format";
        assert!(error.starts_with(&format!("hardpan: {name}: {words}")), "{error}");
        assert!(!sandbox.work().join(name).exists());
    }
}

#[test]
fn where_a_conversation_was_resumed_at_an_entry_it_forks_in_the_tree() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["-p", "first", "--no-map"]).code, Some(0));
    let id = sandbox.json(&["sessions", "--json"])[0]["id"].as_str().expect("an id").to_owned();
    let first = sandbox.text(&["sessions", "show", &id]);
    assert!(first.lines().skip(1).all(|line| !line.contains('|')), "{first}");
    let ran = sandbox.run(&["--resume", &id, "--at", "e1", "-p", "second", "--no-map"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let tree = sandbox.text(&["sessions", "show", &id]);
    let lines: Vec<&str> = tree.lines().skip(1).collect();
    assert_eq!(lines[0], "  e1  user: first");
    assert!(lines[1].starts_with("  |- ") && lines[1].contains("model: "), "{tree}");
    assert!(lines[2].starts_with("  |  ") && lines[2].contains("assistant: "), "{tree}");
    let left = lines.iter().filter(|line| line.starts_with("  |")).count();
    assert_eq!(left, first.lines().count() - 2, "all but e1 was left: {tree}");
    assert!(lines[1 + left].ends_with("user: second"), "{tree}");
    assert!(lines.last().is_some_and(|line| line.starts_with("* e")), "{tree}");
    assert_eq!(lines.iter().filter(|line| line.starts_with('*')).count(), 1, "{tree}");
}

#[test]
fn a_damaged_session_is_shown_with_what_is_wrong() {
    let sandbox = Sandbox::new();
    let path = add(&sandbox, "5d41402abc4b", &[user_message("u", None, "hello")]);
    let text = std::fs::read_to_string(&path).expect("it is there") + "garbage\n";
    std::fs::write(&path, text).expect("it can be written");
    assert!(sandbox.text(&["sessions"]).contains("(1 damaged line) hello"));
    let ran = sandbox.run(&["sessions", "show", "5d4"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains(".jsonl:3: kept but not part of the tree"), "{}", ran.stderr);
}

#[test]
fn an_unknown_session_is_an_error_with_names_like_it() {
    let sandbox = Sandbox::new();
    let path = add(&sandbox, "5d41402abc4b", &branched());
    let error = sandbox.failure(&["sessions", "path", "The biuld"]);
    let words =
        "there is no session \"The biuld\" (did you mean The build?); `hardpan sessions --all` lists all";
    assert_eq!(error, format!("hardpan: {words}\n"));
    assert_eq!(sandbox.text(&["sessions", "path", "5d4"]), format!("{}\n", path.display()));
}

#[test]
fn a_session_is_deleted_only_when_asked_for_and_not_in_use() {
    let sandbox = Sandbox::new();
    let path = add(&sandbox, "5d41402abc4b", &branched());
    let error = sandbox.failure(&["sessions", "delete", "5d4"]);
    assert!(error.ends_with("without confirmation: add --yes\n"), "{error}");
    let (log, _) = SessionLog::open(&path).expect("it is free");
    let error = sandbox.failure(&["sessions", "delete", "5d4", "--yes"]);
    assert!(error.contains("another process writes to this session"), "{error}");
    assert!(path.exists());
    drop(log);
    let mut command = sandbox.command(&["sessions", "delete", "5d4", "--yes"]);
    assert!(command.stderr(Stdio::null()).status().expect("it runs").success());
    assert!(!path.exists());
}

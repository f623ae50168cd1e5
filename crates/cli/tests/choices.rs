//! What a conversation was held with stays with it, and what is shown is what would be sent.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::process::{Command, Stdio};

use hardpan_session::{Record, Session, SessionStore};
use hardpan_test_support::{TestResponse, TestServer};
use serde_json::{Value, json};
use support::{CommandOutput, LAYOUTS, Sandbox};

fn ask(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    let ran = sandbox.run(&[&["-p"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

/// The sandbox's only session.
fn session(sandbox: &Sandbox) -> Session {
    let folder = sandbox.work().parent().unwrap().join("home/.local/share/hardpan/sessions");
    let all = SessionStore::new(folder).list(None);
    assert_eq!(all.len(), 1);
    Session::open(&all[0].path).unwrap()
}

/// The models and layouts that turns were asked with, one after the other.
fn turns(session: &Session) -> Vec<(String, String)> {
    let turns = session.requests().filter(|request| &*request.purpose == "turn");
    let mut turns: Vec<_> =
        turns.map(|request| (request.model.to_string(), request.layout.to_string())).collect();
    turns.dedup();
    turns
}

#[test]
fn a_resumed_conversation_goes_on_with_its_model_its_layout_and_its_thinking() {
    let sandbox = Sandbox::new();
    let chosen = ["--model", "claude-opus-5", "--layout", "panels", "--thinking", "2000"];
    ask(&sandbox, &[&["Hello."], &chosen[..]].concat());
    ask(&sandbox, &["And now?", "--continue"]);
    let panels = ("claude-opus-5".to_owned(), "panels".to_owned());
    assert_eq!(turns(&session(&sandbox)), std::slice::from_ref(&panels));
    let branch = session(&sandbox).branch(None).unwrap();
    assert_eq!(branch.thinking.as_deref(), Some("2000"));
    // A flag counts for more, and is what the next one goes on with.
    ask(&sandbox, &["Once more.", "--continue", "--layout", "strata", "--model", "claude-sonnet-5"]);
    ask(&sandbox, &["Once more.", "--continue"]);
    let strata = ("claude-sonnet-5".to_owned(), "strata".to_owned());
    assert_eq!(turns(&session(&sandbox)), [panels, strata]);
    let said = session(&sandbox).entries.into_iter();
    let levels = said.filter(|entry| matches!(entry.record, Record::ThinkingChange { .. }));
    assert_eq!(levels.count(), 1, "it is said once");
}

#[test]
fn how_much_a_conversation_keeps_comes_from_the_flag_or_the_settings() {
    let sandbox = Sandbox::new();
    let kept = |args: &[&str]| sandbox.json(&[&["snapshot"], args].concat())["keep"].clone();
    assert_eq!(kept(&[]), json!(null), "the default is not written");
    assert_eq!(kept(&["--keep", "lean"]), json!("lean"));
    sandbox.write("config/config.toml", "keep = \"history\"\n");
    assert_eq!(kept(&[]), json!("history"));
    assert_eq!(kept(&["--keep", "all"]), json!("all"));
    let ran = sandbox.run(&["snapshot", "--keep", "most"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("use all, history, current or lean"), "{}", ran.stderr);
}

#[test]
fn a_model_of_a_provider_that_is_gone_is_replaced_and_that_is_said() {
    let sandbox = Sandbox::new();
    ask(&sandbox, &["Hello.", "--model", "claude-opus-5"]);
    replace_in_session(&sandbox, "\"provider\":\"anthropic\"", "\"provider\":\"thropic\"");
    let ran = ask(&sandbox, &["Go on.", "--continue"]);
    let said = "this conversation used thropic/claude-opus-5, and there is no provider thropic any more";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(turns(&session(&sandbox)).last().unwrap().0, hardpan_models::DEFAULT_MODEL);
}

#[test]
fn a_model_that_no_list_has_any_more_stays_with_its_conversation_and_that_is_said() {
    let sandbox = Sandbox::new();
    ask(&sandbox, &["Hello.", "--model", "claude-opus-5"]);
    replace_in_session(&sandbox, "\"model\":\"claude-opus-5\"", "\"model\":\"claude-3-9-opera\"");
    let shown = sandbox.run(&["request", "Go on.", "--session", session_path(&sandbox).to_str().unwrap()]);
    let said = "anthropic/claude-3-9-opera is not in the list of models";
    assert!(shown.stderr.contains(said) && shown.code == Some(0), "{}", shown.stderr);
    // It is what the provider is asked for.
    let server = TestServer::start(|_, _| {
        let content = json!([{"type": "text", "text": "Yes."}]);
        TestResponse::json(
            200,
            &json!({"content": content, "stop_reason": "end_turn", "usage": {"input_tokens": 9}}),
        )
    });
    sandbox.write("config/config.toml", format!("[providers.anthropic]\nbase_url = \"{}\"\n", server.url()));
    let ran = ask(&sandbox, &["Go on.", "--continue"]);
    assert!(ran.stderr.contains(said) && ran.stdout == b"Yes.\n", "{}", ran.stderr);
    assert_eq!(server.received()[0].body["model"], "claude-3-9-opera");
    assert_eq!(turns(&session(&sandbox)), [("claude-3-9-opera".to_owned(), "strata".to_owned())]);
}

fn replace_in_session(sandbox: &Sandbox, from: &str, to: &str) {
    let path = session_path(sandbox);
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.contains(from), "{written}");
    std::fs::write(&path, written.replace(from, to)).unwrap();
}

fn session_path(sandbox: &Sandbox) -> std::path::PathBuf {
    let folder = sandbox.work().parent().unwrap().join("home/.local/share/hardpan/sessions");
    SessionStore::new(folder).list(None)[0].path.clone()
}

#[test]
fn a_conversation_from_elsewhere_says_where_it_began() {
    let sandbox = Sandbox::new();
    ask(&sandbox, &["Hello."]);
    let id = session(&sandbox).header.id.to_string();
    let elsewhere = sandbox.work().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let there = elsewhere.to_str().unwrap();
    let ran = ask(&sandbox, &["Go on.", "--resume", &id, "--dir", there, "--foreign"]);
    assert!(ran.stderr.contains("this conversation began in"), "{}", ran.stderr);
    assert!(!ask(&sandbox, &["Go on.", "--resume", &id]).stderr.contains("began in"));
}

/// The dry run is the request: to the token, in every layout, with tools, skills and instructions.
#[test]
fn what_is_shown_is_what_the_agent_sends() {
    for layout in LAYOUTS {
        let sandbox = Sandbox::new();
        sandbox.write("work/AGENTS.md", "Be brief.\n");
        sandbox.write("work/src/lib.rs", "pub fn lighthouse() {}\n");
        let question = "Where is the lighthouse?";
        let shown = sandbox.json(&["context", "--prompt", question, "--layout", layout, "--json"]);
        ask(&sandbox, &[question, "--layout", layout]);
        let first = session(&sandbox).requests().next().unwrap().extra["charge"]["counted"].clone();
        // A time of day may count a token more than another.
        let (shown, first) = (shown["total_tokens"].as_i64().unwrap(), first.as_i64().unwrap());
        let doubt = if layout == "panels" { 3 } else { 1 };
        assert!((shown - first).abs() <= doubt, "{layout}: {shown} shown, {first} sent");
        let body = sandbox.json(&["request", question, "--layout", layout, "--json"]);
        let names: Vec<&str> =
            body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert!(["read", "bash", "edit"].iter().all(|name| names.contains(name)), "{layout}: {names:?}");
        let plain = sandbox.text(&["request", question, "--layout", layout, "--json", "--no-tools"]);
        assert!(!plain.contains("\"bash\""), "{layout}");
    }
}

#[test]
fn the_key_that_is_there_is_used() {
    let sandbox = Sandbox::new();
    let model = |keys: &[&str]| {
        let mut command = sandbox.command(&["context", "--json"]);
        command.envs(keys.iter().map(|name| (name, "a-key")));
        let output = command.output().unwrap();
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        shown["model"].as_str().unwrap().to_owned()
    };
    assert_eq!(model(&[]), "claude-sonnet-5-5");
    assert_eq!(model(&["OPENAI_API_KEY"]), "gpt-6.1-sol");
    assert_eq!(model(&["GEMINI_API_KEY"]), "gemini-3.8-flash");
    assert_eq!(model(&["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]), "claude-sonnet-5-5");
    assert_eq!(model(&["GEMINI_API_KEY", "OPENAI_API_KEY"]), "gpt-6.1-sol");
    sandbox.write("config/config.toml", "model = \"opus\"\n");
    assert_eq!(model(&["OPENAI_API_KEY"]), "claude-opus-5-5", "a choice of the person stands");
}

/// A person stops the first answer before its first word: the conversation goes on with the same model.
#[cfg(unix)]
#[test]
fn a_conversation_whose_first_answer_was_stopped_keeps_its_model_and_layout() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let sandbox = Sandbox::new();
    let address = server.local_addr().unwrap();
    sandbox.write("config/config.toml", format!("[providers.openai]\nbase_url = \"http://{address}/v1\"\n"));
    let mut command = sandbox.command(&["-p", "Hi", "--model", "gpt-6-luna", "--layout", "tiers"]);
    let mut child = command.env("OPENAI_API_KEY", "a-key").stdin(Stdio::null()).spawn().unwrap();
    let (_connection, _) = server.accept().unwrap();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    child.wait().unwrap();
    let shown = sandbox.run(&["context", "--continue", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!([&shown["model"], &shown["layout"]], ["gpt-6-luna", "tiers"]);
}

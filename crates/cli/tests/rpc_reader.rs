//! `hardpan rpc` with a client that does not read its output for a while, or never again.

mod provider;
mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::time::Duration;

use provider::Provider;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::Sandbox;

/// An answer whose events are many times what a pipe holds.
fn long_answer() -> String {
    (0..8_000).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
}

/// Starts the server, and sends it a prompt.
fn begin(sandbox: &Sandbox) -> (Child, ChildStdin) {
    let mut command = sandbox.command(&["rpc"]);
    command.env("ANTHROPIC_API_KEY", "any");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary can be run");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(b"{\"id\": 1, \"type\": \"prompt\", \"message\": \"Talk\"}\n").expect("it reads");
    (child, input)
}

/// Every line until the process has ended.
fn lines(child: &mut Child) -> Vec<Value> {
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let line = |line: std::io::Result<String>| serde_json::from_str(&line.expect("a line")).expect("JSON");
    output.lines().map(line).collect()
}

fn streamed_text(lines: &[Value]) -> String {
    let texts = lines.iter().filter(|line| line["type"] == "message_update");
    texts.map(|line| line["delta"]["text"].as_str().expect("a text")).collect()
}

/// The session as it is on the disk; empty before it is there.
fn session_file(sandbox: &Sandbox) -> String {
    let sessions = sandbox.json(&["sessions", "--json"]);
    let Some(id) = sessions[0]["id"].as_str() else { return String::new() };
    let path = sandbox.text(&["sessions", "path", id]);
    std::fs::read_to_string(path.trim()).unwrap_or_default()
}

fn wait_until(holds: impl Fn() -> bool) {
    for _ in 0..1200 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it does not happen");
}

/// Waits until a part of the answer is stored.
fn wait_for_answer(sandbox: &Sandbox) {
    wait_until(|| session_file(sandbox).contains("\"type\":\"partial\""));
}

#[test]
fn a_client_that_reads_late_gets_every_line_in_order() {
    let (sandbox, answer) = (Sandbox::new(), long_answer());
    let _provider = Provider::start(&sandbox, &format!("turns: [{{text: {answer}}}]"), "");
    let (mut child, input) = begin(&sandbox);
    wait_for_answer(&sandbox);
    std::thread::sleep(Duration::from_secs(1));
    assert!(!session_file(&sandbox).contains("stop_reason"), "the answer is complete, but nobody reads it");
    drop(input);
    let lines = lines(&mut child);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let text = streamed_text(&lines);
    assert!(text == answer, "{} of {} bytes", text.len(), answer.len());
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    let begin = ["session_start", "message_start", "message_end", "response", "agent_start", "turn_start"];
    assert_eq!(kinds[..6], begin);
    assert_eq!(kinds[kinds.len() - 4..], ["message_end", "turn_end", "agent_end", "session_shutdown"]);
}

#[test]
fn an_abort_is_heard_from_a_client_that_does_not_read() {
    let (sandbox, answer) = (Sandbox::new(), long_answer());
    let _provider = Provider::start(&sandbox, &format!("turns: [{{text: {answer}}}]"), "");
    let (mut child, mut input) = begin(&sandbox);
    wait_for_answer(&sandbox);
    input.write_all(b"{\"id\": 2, \"type\": \"abort\"}\n").expect("it reads");
    wait_until(|| session_file(&sandbox).contains("\"stop_reason\":\"aborted\""));
    drop(input);
    let lines = lines(&mut child);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let end = lines.iter().find(|line| line["type"] == "agent_end").expect("an end");
    assert_eq!(end["stop"], json!({"reason": "aborted"}));
    let text = streamed_text(&lines);
    assert!(answer.starts_with(&text) && text.len() < answer.len());
    assert!(lines.iter().any(|line| line["id"] == 2 && line["success"] == true));
}

#[test]
fn a_client_that_never_reads_again_does_not_keep_the_process_alive() {
    let (sandbox, answer) = (Sandbox::new(), long_answer());
    let _provider = Provider::start(&sandbox, &format!("turns: [{{text: {answer}}}]"), "");
    let (mut child, _input) = begin(&sandbox);
    wait_for_answer(&sandbox);
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is alive");
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    assert!(session_file(&sandbox).contains("\"stop_reason\":\"aborted\""), "what was received is kept");
}

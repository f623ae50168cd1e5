//! `hardpan mcp serve`, called by the client of the protocol's Python SDK, and by clients that misbehave.

use std::path::Path;
use std::process::{Command, Stdio};

use hardpan_test_support::SimulatorServer;
use serde_json::{Value, json};

use super::mcp_servers::real_servers;
use super::support::Sandbox;

/// What the Python client was told.
fn call(sandbox: &Sandbox, flags: &[&str], calls: &Value) -> Option<Value> {
    let python = real_servers()?.join("python/bin/python");
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/serve_client.py");
    let served = sandbox.command(&[]);
    let mut command = Command::new(python);
    command
        .arg(client)
        .arg(calls.to_string())
        .arg(env!("CARGO_BIN_EXE_hardpan"))
        .args(["mcp", "serve"])
        .args(flags);
    command.current_dir(sandbox.work()).env_clear();
    command.envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.stdin(Stdio::null()).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().expect("a text")
}

/// A repository, and a conversation in it whose second request lost the cache.
fn sandbox() -> (Sandbox, SimulatorServer) {
    let script = "turns:\n  - {when: {contains: Read it}, tool_calls: [{name: read, arguments: {path: src/lib.rs}}]}\ndefault: {text: Done.}\n";
    let (sandbox, server) = (Sandbox::new(), SimulatorServer::start(script));
    sandbox.use_provider(&server);
    let functions: String = (0..400).map(|number| format!("pub fn number_{number}() {{}}\n")).collect();
    sandbox.write("work/src/lib.rs", format!("pub struct Wagon;\n{functions}"));
    sandbox.write("work/src/main.rs", "use lib::Wagon;\nfn main() { let _ = Wagon; }\n");
    let clock = "export default (pi) => pi.on('before_agent_start', (event) => ({systemPrompt: `${Date.now()} ${event.systemPrompt}`}));\n";
    let extension = sandbox.write("extensions/clock.ts", clock).display().to_string();
    for arguments in [&["-p", "Read it"][..], &["-p", "Again", "--continue"]] {
        let ran = sandbox.run(&[arguments, &["--extension", &extension]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    (sandbox, server)
}

#[test]
fn another_agent_reads_the_map_symbols_losses_and_bills() {
    let (sandbox, _server) = sandbox();
    let calls = json!([
        ["symbol_map", {}],
        ["symbol_map", {"path": "src/main.rs", "tokens": 500}],
        ["symbols", {"name": "Wagon"}],
        ["why", {"all": true}],
        ["audit", {"top": 3}],
    ]);
    let Some(told) = call(&sandbox, &[], &calls) else { return };
    assert_eq!(told["begun"]["serverInfo"]["name"], "hardpan");
    let tools = told["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["symbol_map", "symbols", "why", "audit"]);
    assert!(tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true), "{tools:?}");
    let answers = told["answers"].as_array().unwrap();
    assert!(answers.iter().all(|answer| answer["isError"] == false), "{answers:?}");
    assert_eq!(text(&answers[0]), sandbox.text(&["map", "--overview"]));
    assert!(
        text(&answers[1]).contains("main") && !text(&answers[1]).contains("number_1"),
        "{}",
        text(&answers[1])
    );
    assert_eq!(text(&answers[2]), sandbox.text(&["symbols", "Wagon"]));
    assert_eq!(answers[2]["structuredContent"]["definitions"], sandbox.json(&["symbols", "Wagon", "--json"]));
    assert_eq!(answers[3]["structuredContent"]["losses"], sandbox.json(&["why", "--all", "--json"]));
    assert!(text(&answers[3]).contains("the extension clock changed the request"), "{}", text(&answers[3]));
    assert!(text(&answers[4]).contains("clock"), "{}", text(&answers[4]));
    assert!(answers[4]["structuredContent"].is_object());
    assert!(!told["progress"].as_array().unwrap().is_empty());
}

#[test]
fn nothing_outside_of_the_repository_is_read_unless_sessions_are_allowed() {
    let (sandbox, _server) = sandbox();
    let session = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"secret words\"}}\n";
    let recorded = sandbox.write("home/.claude/projects/p/s.jsonl", session).display().to_string();
    let outside = sandbox.write("elsewhere/s.jsonl", session).display().to_string();
    std::os::unix::fs::symlink(&outside, sandbox.work().join("link.jsonl")).unwrap();
    let calls = json!([
        ["symbol_map", {"path": "../elsewhere"}],
        ["audit", {"file": recorded}],
        ["audit", {"file": outside}],
        ["audit", {"file": "link.jsonl"}],
        ["why", {"session": outside}],
        ["symbols", {"name": 7}],
        ["symbols", {"name": "Nobody"}],
        ["delete", {}],
    ]);
    let Some(told) = call(&sandbox, &[], &calls) else { return };
    let answers = told["answers"].as_array().unwrap();
    for answer in &answers[..7] {
        assert_eq!(answer["isError"], true, "{answer}");
        assert!(!text(answer).contains("secret"), "{answer}");
    }
    assert!(text(&answers[1]).contains("--sessions"), "{}", text(&answers[1]));
    assert!(text(&answers[5]).contains("name"), "{}", text(&answers[5]));
    assert!(
        answers[7]["error"].as_str().unwrap().contains("symbol_map, symbols, why, audit"),
        "{}",
        answers[7]
    );
    // With the flag the recorded one is read (it has no bill), the others are not.
    let told = call(
        &sandbox,
        &["--sessions"],
        &json!([["audit", {"file": recorded}], ["audit", {"file": outside}]]),
    )
    .unwrap();
    assert!(!text(&told["answers"][0]).contains("outside of"), "{told}");
    assert!(text(&told["answers"][1]).contains("outside of"), "{told}");
}

#[test]
fn lines_that_are_no_messages_are_answered_and_the_end_of_the_input_ends_it() {
    let sandbox = Sandbox::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ran = sandbox.run_with_input(&["mcp", "serve"], format!("nonsense\n{hello}\n").as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<Value> = String::from_utf8(ran.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["error"]["code"], -32700, "{lines:?}");
    assert_eq!(lines[1]["result"]["serverInfo"]["name"], "hardpan", "{lines:?}");
    let ran = sandbox.run_with_input(&["mcp", "serve"], b"");
    assert_eq!((ran.code, ran.stdout.len()), (Some(0), 0), "{}", ran.stderr);
}

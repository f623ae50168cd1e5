//! Secrets in requests: found before they leave, replaced or sent as the person wants, the same way
//! each time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::process::Stdio;

use hardpan_test_support::{ReceivedRequest, TestResponse, TestServer};
use serde_json::json;
use support::Sandbox;
use test_cli::{Terminal, TestCli};

/// In the form of a provider's key; made of pieces, so that this file has none.
fn secret() -> String {
    format!("sk-ant-api03-{}", "q7Rk2mVx9LpA4sTz".repeat(4))
}

fn answer(_: usize, request: &ReceivedRequest) -> TestResponse {
    let last = request.body["messages"].as_array().and_then(|all| all.last().cloned()).unwrap_or_default();
    let reads = request.contains("Read it") && last["role"] != "tool";
    let call = json!({"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{\"path\":\"notes.txt\"}"}});
    let message =
        if reads { json!({"content": "", "tool_calls": [call]}) } else { json!({"content": "Fine."}) };
    let reason = if reads { "tool_calls" } else { "stop" };
    TestResponse::json(200, &json!({"choices": [{"message": message, "finish_reason": reason}]}))
}

/// A sandbox with a secret in a file, in `.env` and in keys.toml.
fn sandbox(settings: &str) -> (Sandbox, TestServer) {
    let server = TestServer::start(answer);
    let sandbox = Sandbox::new();
    let config = format!(
        "provider = \"deepseek\"\nmap_tokens = 0\n{settings}\n[providers.deepseek]\nbase_url = \"{}\"\n",
        server.url()
    );
    sandbox.write("config/config.toml", config);
    sandbox.write("work/notes.txt", format!("key {}\nand hunter2-hunter2-x\n", secret()));
    sandbox.write("work/.env", "DB_PASSWORD=hunter2-hunter2-x\nPORT=8080\n");
    (sandbox, server)
}

fn run(sandbox: &Sandbox, args: &[&str]) -> (String, String) {
    let mut command = sandbox.command(args);
    command.env("DEEPSEEK_API_KEY", "the-key-of-the-test").stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn without_a_person_secrets_are_replaced_with_a_line_and_the_prefix_stays_the_same() {
    let (sandbox, server) = sandbox("");
    let (stdout, stderr) = run(&sandbox, &["-p", "Read it and see the-key-of-the-test"]);
    assert_eq!(stdout, "Fine.\n", "{stderr}");
    let received = server.received();
    for secret in [secret().as_str(), "hunter2-hunter2-x", "the-key-of-the-test"] {
        let in_bodies = received.iter().any(|request| request.body.to_string().contains(secret));
        assert!(!in_bodies, "{secret}");
    }
    assert!(received[1].contains("[redacted: Anthropic key "), "{}", received[1].body);
    assert!(received[1].contains("[redacted: DB_PASSWORD of .env "), "{}", received[1].body);
    assert!(received[0].contains("[redacted: key of deepseek "), "{}", received[0].body);
    assert_eq!(stderr.matches("it looks like a secret").count(), 2, "{stderr}");
    assert!(!stderr.contains(&secret()[12..]), "{stderr}");
    // The conversation goes on with the same bytes, without another line.
    let (_, stderr) = run(&sandbox, &["--continue", "-p", "And now?"]);
    assert!(!stderr.contains("looks like a secret"), "{stderr}");
    let messages = |request: &ReceivedRequest| request.body["messages"].as_array().unwrap().clone();
    let (before, after) = (messages(&received[1]), messages(&server.received()[2]));
    assert!(!server.received()[2].contains(&secret()) && after.len() > before.len());
    // The last messages of a request may carry what changes every time.
    let shared = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    assert!(shared + 1 >= before.len(), "{before:#?}\n{after:#?}");
}

#[test]
fn a_preview_shows_the_request_without_secrets_and_the_settings_decide() {
    let (sandbox, _server) = sandbox("");
    let (body, _) = run(&sandbox, &["request", "Hello", "notes.txt", "--json"]);
    assert!(body.contains("[redacted: Anthropic key ") && !body.contains(&secret()), "{body}");
    let (sandbox, server) = self::sandbox("secrets = \"send\"");
    let (stdout, stderr) = run(&sandbox, &["-p", "Read it"]);
    assert_eq!((stdout.as_str(), stderr.contains("secret")), ("Fine.\n", false), "{stderr}");
    assert!(server.received()[1].contains(&secret()));
    // A project does not decide about this.
    let (sandbox, server) = self::sandbox("");
    sandbox.write("work/.hardpan/config.toml", "secrets = \"send\"\n");
    sandbox.run(&["trust", "--yes"]);
    run(&sandbox, &["-p", "Read it"]);
    assert!(!server.received()[1].contains(&secret()));
}

#[test]
fn a_request_made_of_a_snapshot_is_sent_without_secrets_and_says_so() {
    let (sandbox, server) = sandbox("");
    let (snapshot, _) = run(&sandbox, &["snapshot", "Hello", "notes.txt", "--no-tools"]);
    assert!(snapshot.contains(&secret()), "the file holds what was read: {snapshot}");
    sandbox.write("work/s.json", &snapshot);
    let (_, stderr) = run(&sandbox, &["request", "--snapshot", "s.json", "--send"]);
    let received = server.received();
    assert_eq!(received.len(), 1, "{stderr}");
    assert!(!received[0].contains(&secret()) && !received[0].contains("hunter2-hunter2-x"));
    assert!(received[0].contains("[redacted: Anthropic key "), "{}", received[0].body);
    assert_eq!(stderr.matches("it looks like a secret").count(), 1, "{stderr}");
    assert!(!stderr.contains("hunter"), "{stderr}");
}

#[test]
fn a_commit_message_is_asked_for_without_secrets_and_says_so() {
    let (sandbox, server) = sandbox("");
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args).current_dir(sandbox.work());
        assert!(git.env("HOME", sandbox.work()).output().unwrap().status.success(), "git {args:?}");
    };
    git(&["init", "-q"]);
    // The key stands alone in its line, after the mark of the diff.
    sandbox.write("work/key.txt", format!("{}\n", secret()));
    git(&["add", "notes.txt", "key.txt"]);
    let (_, stderr) = run(&sandbox, &["commit", "--print"]);
    let received = server.received();
    // The model is asked again, because its answer is no message.
    assert_eq!(received.len(), 2, "{stderr}");
    for request in received {
        assert!(!request.contains(&secret()[..40]), "{}", request.body);
        assert!(!request.contains("hunter2-hunter2-x"), "{}", request.body);
    }
    assert_eq!(stderr.matches("it looks like a secret").count(), 1, "{stderr}");
}

#[test]
fn a_person_is_asked_before_the_first_request_and_not_again() {
    let cli = TestCli::new("");
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.expect("you: ");
    terminal.say(
        &format!("Take {}", secret()),
        "asks: This request would send what looks like a secret: Anthropic key",
    );
    terminal.say("send", "I have nothing to add.");
    terminal.expect("you: ");
    terminal.say("Go on", "I have nothing to add.");
    terminal.expect("you: ");
    let other = secret().replace("q7Rk", "w3Hn");
    terminal.say(&format!("Take {other}"), "looks like a secret");
    terminal.say("", "replaced in the request");
    terminal.expect("I have nothing to add.");
    let screen = terminal.end();
    assert_eq!(screen.matches("This request would send").count(), 2, "{screen}");
}

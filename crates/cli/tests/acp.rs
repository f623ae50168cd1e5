//! `hardpan acp`: bad input, and clients that go away. `tests/acp` drives whole sessions with the
//! protocol's own SDK.

mod provider;
mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use provider::Provider;
use serde_json::{Value, json};
use support::Sandbox;

/// How long nothing may come before a test gives up.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How often a test looks whether the process has ended.
const END_POLL: Duration = Duration::from_millis(20);

/// A command that runs until it is ended.
const SLEEP: &str = "turns: [{tool_calls: [{name: bash, arguments: {command: \"echo begun; sleep 3141\"}}]}]";

/// An editor.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
}

impl Editor {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut command = sandbox.command(&["acp"]);
        command.args(args).env("ANTHROPIC_API_KEY", "any");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary can be run");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        Editor { child, input, lines, next: 0 }
    }

    fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the process reads");
    }

    fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.raw(format!("{request}\n").as_bytes());
        self.next
    }

    fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT).expect("a line that is waited for");
            if holds(&line) {
                return line;
            }
        }
    }

    /// The response to a request.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.until(|line| line["id"] == id && line.get("method").is_none())
    }

    fn new_session(&mut self, sandbox: &Sandbox) -> Value {
        let response = self.ask("session/new", &json!({"cwd": sandbox.work(), "mcpServers": []}));
        response["result"]["sessionId"].clone()
    }

    /// Begins a prompt whose command runs until it is ended.
    fn begin_command(&mut self, sandbox: &Sandbox) -> Value {
        let session = self.new_session(sandbox);
        self.send(
            "session/prompt",
            &json!({"sessionId": session, "prompt": [{"type": "text", "text": "Wait"}]}),
        );
        self.until(|line| line["params"]["update"]["content"][0]["content"]["text"] == "begun\n");
        session
    }

    /// Waits for the end of the process, which must be its own.
    fn expect_end(mut self) {
        for _ in 0..TIMEOUT.as_millis() / END_POLL.as_millis() {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                assert_eq!(status.code(), Some(0));
                return;
            }
            std::thread::sleep(END_POLL);
        }
        let _ = self.child.kill();
        panic!("it goes on without its editor");
    }
}

/// The session as it is on the disk.
fn session_file(sandbox: &Sandbox, id: &Value) -> String {
    let path = sandbox.text(&["sessions", "path", id.as_str().expect("an id")]);
    std::fs::read_to_string(path.trim()).expect("the session is stored")
}

#[test]
fn bad_input_gets_an_error_and_nothing_else_is_lost() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "default: {text: Good morning.}", "");
    let mut editor = Editor::start(&sandbox, &[]);
    let session = editor.new_session(&sandbox);
    let is_error = |code: i64| move |line: &Value| line["id"].is_null() && line["error"]["code"] == code;
    editor.raw(b"{\"jsonrpc\": \"2.0\", \n");
    editor.until(is_error(-32700));
    editor.raw(b"\xff\xfe\n");
    editor.until(is_error(-32700));
    editor.raw(b"[]\n");
    editor.until(is_error(-32600));
    editor.raw(b"{\"jsonrpc\": \"2.0\"}\n");
    editor.until(is_error(-32600));
    let mut long = vec![b'x'; 20 << 20];
    long.push(b'\n');
    editor.raw(&long);
    editor.until(is_error(-32600));
    // Answers to questions that nobody asked, and notifications that nobody knows.
    editor.raw(
        b"{\"jsonrpc\": \"2.0\", \"id\": 77, \"result\": {}}\n{\"jsonrpc\": \"2.0\", \"method\": \"x/y\"}\n",
    );
    let codes = [
        ("no/such", json!({}), -32601),
        ("session/new", json!({"cwd": 3}), -32602),
        ("session/new", json!({"cwd": "relative", "mcpServers": []}), -32602),
        ("session/new", json!({"cwd": "/no/such/folder", "mcpServers": []}), -32602),
        ("session/load", json!({"cwd": sandbox.work(), "sessionId": "none", "mcpServers": []}), -32002),
        ("session/prompt", json!({"sessionId": "none", "prompt": []}), -32002),
        ("session/prompt", json!({"sessionId": session}), -32602),
        ("session/set_mode", json!({"sessionId": session, "modeId": "all"}), -32602),
        ("session/list", json!({"cursor": "x"}), -32602),
        ("authenticate", json!({"methodId": "magic"}), -32602),
    ];
    for (method, params, code) in codes {
        let response = editor.ask(method, &params);
        assert_eq!(response["error"]["code"], code, "{method} {params}: {response}");
    }
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Hello"}]});
    assert_eq!(editor.ask("session/prompt", &prompt)["result"]["stopReason"], "end_turn");
    drop(editor.input.take());
    editor.expect_end();
    assert!(session_file(&sandbox, &session).contains("Good morning."));
}

#[test]
fn a_prompt_that_is_cancelled_at_once_does_not_run_on() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, SLEEP, "");
    let mut editor = Editor::start(&sandbox, &["--yes"]);
    let session = editor.new_session(&sandbox);
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Wait"}]});
    let id = editor.send("session/prompt", &prompt);
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    editor.raw(format!("{cancel}\n").as_bytes());
    let response = editor.until(|line| line["id"] == id && line.get("method").is_none());
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    drop(editor.input.take());
    editor.expect_end();
}

#[test]
fn a_prompt_beside_the_run_of_an_extension_steers_that() {
    let sandbox = Sandbox::new();
    let wait = "echo begun; while [ ! -e go ]; do sleep 0.05; done";
    let script = format!(
        "turns: [{{tool_calls: [{{name: bash, arguments: {{command: \"{wait}\"}}}}]}}]\ndefault: {{text: Heard.}}"
    );
    let _provider = Provider::start(&sandbox, &script, "");
    let extension = sandbox.work().join("talker.ts");
    let says = "export default (pi) => pi.on(\"session_start\", () => pi.sendUserMessage(\"Wait for me\"));";
    std::fs::write(&extension, says).expect("the extension is written");
    let mut editor = Editor::start(&sandbox, &["--yes", "--extension", "talker.ts"]);
    let session = editor.new_session(&sandbox);
    editor.until(|line| line["params"]["update"]["content"][0]["content"]["text"] == "begun\n");
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "And me"}]});
    let id = editor.send("session/prompt", &prompt);
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(sandbox.work().join("go"), "").expect("the command may end");
    let response = editor.until(|line| line["id"] == id && line.get("method").is_none());
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    drop(editor.input.take());
    editor.expect_end();
    let stored = session_file(&sandbox, &session);
    assert!(["Wait for me", "And me", "Heard."].iter().all(|said| stored.contains(said)), "{stored}");
}

#[test]
fn an_editor_that_closes_its_end_leaves_a_stored_session_and_no_process() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, SLEEP, "");
    let mut editor = Editor::start(&sandbox, &["--yes"]);
    let session = editor.begin_command(&sandbox);
    drop(editor.input.take());
    editor.expect_end();
    let stored = session_file(&sandbox, &session);
    assert!(stored.contains("Wait") && stored.contains("sleep 3141"), "{stored}");
}

#[test]
fn an_editor_that_waits_for_a_permission_when_it_goes_leaves_the_call_unrun() {
    let sandbox = Sandbox::new();
    let script = "turns: [{tool_calls: [{name: write, arguments: {path: made.txt, content: made}}]}]";
    let _provider = Provider::start(&sandbox, script, "");
    let mut editor = Editor::start(&sandbox, &[]);
    let session = editor.new_session(&sandbox);
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "Make it"}]});
    editor.send("session/prompt", &prompt);
    let question = editor.until(|line| line["method"] == "session/request_permission");
    let diff = &question["params"]["toolCall"]["content"][0];
    assert_eq!(
        (&diff["type"], &diff["newText"], diff.get("oldText")),
        (&json!("diff"), &json!("made"), None)
    );
    drop(editor.input.take());
    editor.expect_end();
    assert!(!sandbox.work().join("made.txt").exists());
    assert!(session_file(&sandbox, &session).contains("made.txt"));
}

#[test]
fn a_deleted_session_is_gone_and_one_that_another_process_has_open_stays() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "default: {text: Good morning.}", "");
    let mut editor = Editor::start(&sandbox, &[]);
    let sessions: Vec<Value> = (0..2)
        .map(|number| {
            let session = editor.new_session(&sandbox);
            let text = format!("Prompt {number}");
            let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
            assert_eq!(editor.ask("session/prompt", &prompt)["result"]["stopReason"], "end_turn");
            session
        })
        .collect();
    let [deleted, kept] = &sessions[..] else { panic!("two sessions: {sessions:?}") };
    let mut other = Editor::start(&sandbox, &[]);
    let is_locked = other.ask("session/delete", &json!({"sessionId": kept}));
    assert_eq!(is_locked["error"]["code"], -32603, "{is_locked}");

    for _ in 0..2 {
        let answer = editor.ask("session/delete", &json!({"sessionId": deleted}));
        assert_eq!(answer["result"], json!({}), "also what is not there any more: {answer}");
    }
    let prompt = json!({"sessionId": deleted, "prompt": [{"type": "text", "text": "Once more"}]});
    assert_eq!(editor.ask("session/prompt", &prompt)["error"]["code"], -32002);
    let listed = editor.ask("session/list", &json!({}));
    let ids: Vec<&Value> = listed["result"]["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|session| &session["sessionId"])
        .collect();
    assert_eq!(ids, [kept], "{listed}");
    assert!(session_file(&sandbox, kept).contains("Prompt 1"));
}

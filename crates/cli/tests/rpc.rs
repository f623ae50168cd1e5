//! `hardpan rpc`: the real binary over pipes, with the simulator as its provider on loopback.

mod provider;
mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use provider::Provider;
use serde_json::{Value, json};
use support::Sandbox;

/// How long nothing may come before a test gives up.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A program that drives the agent.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Every line so far.
    seen: Vec<Value>,
    next: u64,
}

impl Client {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut command = sandbox.command(&["rpc"]);
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
        Client { child, input, lines, seen: Vec::new(), next: 0 }
    }

    fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the process reads");
    }

    /// Sends a request, and returns its id.
    fn send(&mut self, mut request: Value) -> Value {
        self.next += 1;
        request["id"] = json!(self.next);
        self.raw(format!("{request}\n").as_bytes());
        json!(self.next)
    }

    /// The next line for which this holds.
    fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|error| panic!("{error} after {:#?}", self.seen));
            self.seen.push(line.clone());
            if holds(&line) {
                return line;
            }
        }
    }

    fn event(&mut self, kind: &str) -> Value {
        self.until(|line| line["type"] == kind)
    }

    fn response(&mut self, id: &Value) -> Value {
        self.until(|line| line["type"] == "response" && line["id"] == *id)
    }

    fn ask(&mut self, request: Value) -> Value {
        let id = self.send(request);
        self.response(&id)
    }

    /// The data of a request that must succeed.
    fn data(&mut self, request: Value) -> Value {
        let response = self.ask(request);
        assert_eq!(response["success"], true, "{response}");
        response["data"].clone()
    }

    /// The error of a request that must fail.
    fn error(&mut self, request: Value) -> String {
        let response = self.ask(request);
        assert_eq!(response["success"], false, "{response}");
        response["error"].as_str().expect("there is an error").to_owned()
    }

    /// Says something, and waits for the end of the run.
    fn prompt(&mut self, message: &str) -> Value {
        self.data(json!({"type": "prompt", "message": message}));
        self.event("agent_end")
    }

    /// Closes standard input, and returns the exit code; every line is checked.
    fn close(mut self) -> (Option<i32>, Vec<Value>) {
        drop(self.input.take());
        while let Ok(line) = self.lines.recv_timeout(TIMEOUT) {
            self.seen.push(line);
        }
        let code = self.child.wait().expect("it ends").code();
        check(&self.seen, self.next);
        (code, std::mem::take(&mut self.seen))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each request has exactly one response, and every other line is of a kind that the schema knows.
fn check(lines: &[Value], requests: u64) {
    let schema: Value = serde_json::from_str(&schema()).expect("the schema is JSON");
    let events = schema["$defs"]["Event"]["properties"]["type"]["enum"].as_array().expect("a list").clone();
    let mut responses: BTreeMap<u64, usize> = BTreeMap::new();
    for line in lines {
        match line["type"].as_str().expect("every line has a type") {
            "response" => {
                line["id"].as_u64().into_iter().for_each(|id| *responses.entry(id).or_default() += 1);
            }
            "approval_request" => {}
            kind => assert!(events.contains(&json!(kind)), "the schema does not know {kind}"),
        }
    }
    assert_eq!(responses, (1..=requests).map(|id| (id, 1)).collect());
}

fn schema() -> String {
    std::fs::read_to_string(support::tests().join("../../../docs/rpc.schema.json"))
        .expect("the schema is there")
}

/// The texts of a run's messages, by role.
fn said(end: &Value) -> Vec<(String, String)> {
    let messages = end["messages"].as_array().expect("a list").iter();
    let text = |message: &Value| {
        let parts = message["content"].as_array().expect("parts").iter();
        parts.filter_map(|part| part["text"].as_str()).collect::<String>()
    };
    messages.map(|message| (message["role"].as_str().expect("a role").to_owned(), text(message))).collect()
}

#[test]
fn the_schema_in_the_docs_is_current() {
    let printed = Sandbox::new().text(&["rpc", "--schema"]);
    assert_eq!(schema(), printed, "run `hardpan rpc --schema > docs/rpc.schema.json`");
}

#[test]
fn a_prompt_is_accepted_when_it_is_stored_and_done_at_its_end() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: [{text: Good morning.}]", "");
    let mut client = Client::start(&sandbox, &[]);
    let id = client.send(json!({"type": "prompt", "message": "Hello!"}));
    let response = client.response(&id);
    let stored = &client.seen[client.seen.len() - 2];
    assert_eq!((&stored["type"], &stored["message"]["role"]), (&json!("message_end"), &json!("user")));
    assert_eq!(response["data"], json!({"taken": "started", "message_id": stored["message"]["id"]}));
    assert_eq!((&response["command"], &response["success"]), (&json!("prompt"), &json!(true)));
    let end = client.event("agent_end");
    assert_eq!(end["stop"], json!({"reason": "done"}));
    assert_eq!(said(&end)[1], ("assistant".into(), "Good morning.".into()));
    let (code, lines) = client.close();
    assert_eq!(code, Some(0));
    assert_eq!(lines.last().expect("a line")["type"], "session_shutdown");
}

#[test]
fn what_can_be_asked_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("config/templates/review.md", "---\ndescription: Looks closely\n---\nReview $1.\n");
    let _provider =
        Provider::start(&sandbox, "turns: [{text: One.}, {text: Two.}]\ndefault: {text: More.}", "");
    let mut client = Client::start(&sandbox, &[]);
    assert_eq!(client.data(json!({"type": "get_context"})), json!({"breakdown": null}));
    client.prompt("first");
    let state = client.data(json!({"type": "get_state"}));
    assert_eq!(
        (&state["busy"], &state["thinking"], &state["layout"]),
        (&json!(false), &json!("default"), &json!("strata"))
    );
    assert_eq!(
        (&state["model"]["provider"], &state["session"]["message_count"]),
        (&json!("anthropic"), &json!(2))
    );
    assert_eq!(state["queued"], json!({"steering": [], "follow_up": []}));
    assert_eq!(state["usage"]["requests"], 1);
    assert!(state["usage"]["session"]["dollars"].as_f64().expect("a price") > 0.0);
    let messages = client.data(json!({"type": "get_messages"}));
    assert_eq!(said(&messages)[0], ("user".into(), "first".into()));
    let id = &messages["messages"][0]["id"];
    let recalled = client.data(json!({"type": "recall", "entry": id}));
    assert_eq!(recalled, json!({"id": id, "role": "user", "text": "first"}));
    let context = client.data(json!({"type": "get_context"}));
    assert!(context["breakdown"]["total_tokens"].as_u64().expect("a number") > 0);
    let stats = client.data(json!({"type": "get_session_stats"}));
    assert_eq!((&stats["user_messages"], &stats["assistant_messages"]), (&json!(1), &json!(1)));
    assert_eq!(stats["context_tokens"], context["breakdown"]["total_tokens"]);
    let commands = client.data(json!({"type": "get_commands"}));
    let named = |name: &str| {
        commands["commands"].as_array().expect("a list").iter().any(|known| known["name"] == name)
    };
    assert!(named("help") && named("undo"), "{commands}");
    let review = commands["commands"].as_array().and_then(|known| known.last()).expect("a template");
    assert_eq!((&review["name"], &review["source"]), (&json!("review"), &json!("template")));
    let completed = client.data(json!({"type": "complete", "text": "/price mo"}));
    assert_eq!(completed["completions"][0]["text"], "model", "{completed}");
    let names = client.data(json!({"type": "complete", "text": "/pri"}));
    assert_eq!(names["completions"][0]["text"], "/price", "{names}");
    // What an argument can name, with what it is; by its words, too.
    for (typed, text, detail) in [
        ("/tree e", id.as_str().expect("an id"), "you: first"),
        ("/exclude first", &format!("message:{}", id.as_str().expect("an id")), "you: first"),
        ("/layout ti", "tiers", "in tiers"),
        ("/defer mod", "model", "switch to another"),
        ("/defer model opus-5-5", "anthropic/claude-opus-5-5", "tokens, $"),
    ] {
        let found = client.data(json!({"type": "complete", "text": typed}));
        let choices = found["completions"].as_array().expect("a list");
        let choice = choices.iter().find(|choice| choice["text"] == text);
        let told = choice.and_then(|choice| choice["detail"].as_str()).unwrap_or_default();
        assert!(told.contains(detail), "{typed}: {found}");
    }
    let none = client.data(json!({"type": "complete", "text": "/resume "}));
    assert_eq!(none["completions"], json!([]), "there is no other conversation");
    client.data(json!({"type": "prompt", "message": "/new"}));
    let other = client.data(json!({"type": "complete", "text": "/resume firs"}));
    assert!(
        other["completions"][0]["detail"].as_str().is_some_and(|it| it.starts_with("first · ")),
        "{other}"
    );
    let help = client.data(json!({"type": "prompt", "message": "/help"}));
    assert_eq!(help["taken"], "command");
    assert!(help["said"].as_str().expect("a text").contains("/model"));
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn model_and_thinking_are_chosen_for_the_next_request() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: []\ndefault: {text: Yes.}", "");
    let mut client = Client::start(&sandbox, &[]);
    let chosen = client.data(json!({"type": "set_model", "model": "claude-haiku-4-5"}));
    assert_eq!((&chosen["provider"], &chosen["model"]), (&json!("anthropic"), &json!("claude-haiku-4-5")));
    assert_eq!(client.data(json!({"type": "set_thinking_level", "level": 2000})), json!({"thinking": 2000}));
    let end = client.prompt("hello");
    assert_eq!(end["messages"][1]["model"], "claude-haiku-4-5");
    assert_eq!(client.data(json!({"type": "get_state"}))["thinking"], 2000);
    assert_eq!(
        client.data(json!({"type": "set_thinking_level", "level": "off"})),
        json!({"thinking": "off"})
    );
    let error =
        client.error(json!({"type": "set_model", "provider": "antropic", "model": "claude-haiku-4-5"}));
    assert!(error.contains("unknown provider \"antropic\" (did you mean anthropic?)"), "{error}");
    let error = client.error(json!({"type": "set_thinking_level", "level": "much"}));
    let expected = "expected default, off, minimal, low, medium, high, xhigh, max or a number of tokens";
    assert!(error.contains(expected), "{error}");
    let error = client.error(json!({"type": "set_thinking_level", "level": 5}));
    assert!(error.contains("a thinking budget of 5 tokens: it must be at least 1024"), "{error}");
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn a_model_that_no_list_has_is_selected_with_a_note() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: []\ndefault: {text: Yes.}", "");
    let mut client = Client::start(&sandbox, &[]);
    let id = client.send(json!({"type": "set_model", "model": "claude-haiku-9"}));
    let note = client.until(|line| line["type"] == "note" && line.to_string().contains("claude-haiku-9"));
    assert!(note.to_string().contains("is not in the list of models (did you mean claude-haiku-"), "{note}");
    assert_eq!(client.response(&id)["data"]["model"], "claude-haiku-9");
    let id = client.send(json!({"type": "set_model", "model": "haiku-4-6"}));
    let note = client.until(|line| line["type"] == "note" && line.to_string().contains("haiku-4-6 is not"));
    assert!(note.to_string().contains("it goes to anthropic unless"), "{note}");
    assert_eq!(client.response(&id)["data"]["model"], "haiku-4-6");
    // A model of the list needs no note, not even by its alias.
    assert_eq!(client.data(json!({"type": "set_model", "model": "haiku"}))["model"], "claude-haiku-5-5");
    let notes = notes_at_end(client);
    assert_eq!(notes.iter().filter(|text| text.contains("not in the list")).count(), 2, "{notes:?}");
}

#[test]
fn every_level_of_thinking_is_taken_and_what_a_model_lacks_is_noted_once() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: []\ndefault: {text: Yes.}", "");
    let mut client = Client::start(&sandbox, &[]);
    for level in ["off", "minimal", "low", "medium", "high", "xhigh", "max", "default"] {
        let chosen = client.data(json!({"type": "set_thinking_level", "level": level}));
        assert_eq!(
            (&chosen["thinking"], &client.data(json!({"type": "get_state"}))["thinking"]),
            (&json!(level), &json!(level))
        );
    }
    // This model takes levels: a budget stands for one of them. That is said once, however often it is
    // chosen and sent.
    for _ in 0..2 {
        assert_eq!(
            client.data(json!({"type": "set_thinking_level", "level": 5000})),
            json!({"thinking": 5000})
        );
        client.prompt("hello");
        client.data(json!({"type": "set_thinking_level", "level": "high"}));
    }
    client.prompt("hello");
    // Another model says it for itself.
    client.data(json!({"type": "set_thinking_level", "level": 5000}));
    client.data(json!({"type": "set_model", "model": "opus"}));
    let notes = notes_at_end(client);
    let said = |text: &str| notes.iter().filter(|note| note.contains(text)).count();
    assert_eq!(said("claude-sonnet-5-5: this model has no effort minimal; low is used"), 1, "{notes:?}");
    assert_eq!(
        said("claude-sonnet-5-5: this model takes no thinking budget; effort medium is used for 5000 tokens"),
        1,
        "{notes:?}"
    );
    assert_eq!(said("claude-opus-5-5: this model takes no thinking budget"), 1, "{notes:?}");
}

/// The texts of all notes of a session that must end well.
fn notes_at_end(client: Client) -> Vec<String> {
    let (code, seen) = client.close();
    assert_eq!(code, Some(0));
    let notes = seen.iter().filter(|line| line["type"] == "note");
    notes.map(|line| line["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn panels_are_listed_opened_turned_hidden_and_closed() {
    let sandbox = Sandbox::new();
    sandbox.write("work/a.txt", "the words of a\n");
    let script = "
turns:
  - when: {contains: Remember}
    tool_calls:
      - {name: panel, arguments: {action: scratch_write, target: one, text: \"LONG\"}}
      - {name: panel, arguments: {action: scratch_write, target: two, text: \"LONG\"}}
      - {name: panel, arguments: {action: scratch_write, target: three, text: \"LONG\"}}
default: {text: Yes.}";
    let script = script.replace("LONG", &"many words ".repeat(700));
    let _provider =
        Provider::start(&sandbox, &script, "layout = \"panels\"\npanels = [\"todo\", \"scratchpad\"]");
    let mut client = Client::start(&sandbox, &["--yes"]);
    client.prompt("Remember this");
    let row = |data: &Value, id: &str| -> (String, u64, u64) {
        let panels = data["panels"].as_array().expect("a list").iter();
        let panel = panels.clone().find(|panel| panel["id"] == id).unwrap_or_else(|| panic!("{data}"));
        let number = |name: &str| panel[name].as_u64().expect("a number");
        (panel["state"].as_str().expect("a state").to_owned(), number("page"), number("pages"))
    };
    let listed = client.data(json!({"type": "get_panels"}));
    assert_eq!(row(&listed, "P1"), ("shown".to_owned(), 1, 0));
    assert_eq!(row(&listed, "P9"), ("shown".to_owned(), 1, 2));
    let turned = client.data(json!({"type": "turn_panel", "panel": "P9", "page": 2}));
    assert_eq!(row(&turned, "P9"), ("shown".to_owned(), 2, 2));
    let hidden = client.data(json!({"type": "switch_panel", "panel": "scratchpad", "state": "hidden"}));
    assert_eq!(row(&hidden, "P9").0, "hidden");
    let opened = client.data(json!({"type": "open_panel", "target": "a.txt"}));
    assert_eq!(opened["open"], json!(["a.txt"]));
    client.prompt("Again");
    let context = client.data(json!({"type": "get_context"})).to_string();
    assert!(context.contains("file:a.txt") && !context.contains("panel:scratchpad"), "{context}");
    let closed = client.data(json!({"type": "close_panel", "target": "a.txt"}));
    assert_eq!(closed["open"], json!([]));
    let shown = client.data(json!({"type": "switch_panel", "panel": "P9", "state": "shown"}));
    assert_eq!(row(&shown, "P9").0, "shown");
    for (request, error) in [
        (json!({"type": "open_panel", "target": "none.txt"}), "none.txt: there is no such file"),
        (json!({"type": "close_panel", "target": "none.txt"}), "none.txt is not open"),
        (json!({"type": "turn_panel", "panel": "P77", "page": 1}), "there is no panel P77"),
    ] {
        let told = client.error(request);
        assert!(told.starts_with(error), "{told}");
    }
    assert_eq!(client.close().0, Some(0));
}

/// Starts a program that ends when there is a file `go`, and rests.
const CONSOLE_SCRIPT: &str = "
turns:
  - when: {contains: Start it}
    tool_calls:
      - {name: console, arguments: {action: start, text: 'until [ -e go ]; do sleep 0.05; done; exit 3'}}
  - when: {has_tool_result: console}
    text: It runs.
default: {text: I see that it has ended.}";

#[test]
fn a_console_that_ends_wakes_an_agent_that_rests() {
    let sandbox = Sandbox::new();
    let settings = "panels = [\"console\"]\n[spine]\nauto_continue = true";
    let _provider = Provider::start(&sandbox, CONSOLE_SCRIPT, settings);
    let mut client = Client::start(&sandbox, &["--yes"]);
    let end = client.prompt("Start it");
    assert_eq!(said(&end).last().map(|(_, text)| text.as_str()), Some("It runs."));
    sandbox.write("work/go", "");
    // Nobody asks for anything: the next run begins by itself.
    let end = client.event("agent_end");
    assert_eq!(end["stop"], json!({"reason": "done"}));
    let said = said(&end);
    assert!(said[0].1.contains("P10 ended with exit code 3"), "{said:?}");
    assert_eq!(said.last(), Some(&("assistant".to_owned(), "I see that it has ended.".to_owned())));
    assert_eq!(client.close().0, Some(0));
}

/// Clock ticks and written bytes of a process so far.
#[cfg(target_os = "linux")]
fn costs(process: u32) -> (u64, u64) {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).expect("it runs");
    let stat = read("stat");
    let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace().skip(11).take(2);
    let written = read("io");
    let written = written.lines().find_map(|line| line.strip_prefix("wchar: ")).expect("a count");
    (fields.map(|ticks| ticks.parse::<u64>().expect("a number")).sum(), written.parse().expect("a number"))
}

#[test]
#[cfg(target_os = "linux")]
fn an_agent_that_rests_with_its_panels_open_costs_nothing() {
    let sandbox = Sandbox::new();
    (0..200).for_each(|number| drop(sandbox.write(&format!("work/src/f{number}.py"), "def f(): ...\n")));
    let settings = "layout = \"panels\"\n[spine]\nauto_continue = true";
    let _provider = Provider::start(&sandbox, CONSOLE_SCRIPT, settings);
    let mut client = Client::start(&sandbox, &["--yes"]);
    client.prompt("Start it");
    // The folder is watched from the second request on; what begins there ends by itself.
    let process = client.child.id();
    let is_idle = || {
        let before = costs(process);
        std::thread::sleep(Duration::from_secs(3));
        costs(process) == before
    };
    assert!((0..20).any(|_| is_idle()), "it never rests: {:?}", costs(process));
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn messages_are_summarised_deleted_and_restored() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: []\ndefault: {text: Yes.}", "layout = \"panels\"");
    let mut client = Client::start(&sandbox, &[]);
    client.prompt("My number is 4711.");
    client.prompt("My colour is blue.");
    let messages = client.data(json!({"type": "get_messages"}));
    let ids: Vec<&Value> =
        messages["messages"].as_array().expect("a list").iter().map(|m| &m["id"]).collect();
    let change = |state: &str, summary: Value| json!({"type": "set_message_state", "entry": ids[0], "last": ids[1], "state": state, "summary": summary});
    let states = |client: &mut Client| -> Vec<Value> {
        let messages = client.data(json!({"type": "get_messages"}));
        messages["messages"].as_array().expect("a list").iter().map(|m| m["state"].clone()).collect()
    };
    let whole = states(&mut client);
    for (state, summary) in [("tl_dr", json!("A number.")), ("deleted", Value::Null)] {
        client.data(change(state, summary));
        assert_ne!(states(&mut client)[0], whole[0], "{state}");
    }
    client.data(change("whole", Value::Null));
    assert_eq!(states(&mut client), whole);
    // Frozen, they are a panel.
    client.data(change("detached", Value::Null));
    client.prompt("Go on.");
    let panels = client.data(json!({"type": "get_panels"}));
    assert!(panels["panels"].as_array().expect("a list").iter().any(|panel| panel["id"] == "H1"), "{panels}");
    client.data(json!({"type": "close_panel", "target": "H1"}));
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn tools_are_listed_and_switched_for_the_next_request() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: []\ndefault: {text: Yes.}", "");
    let mut client = Client::start(&sandbox, &[]);
    let states = |data: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let tools = data["tools"].as_array().expect("a list").iter();
        tools.map(|tool| (text(&tool["name"]), text(&tool["state"]))).collect()
    };
    let all = ["read", "grep", "find", "ls", "symbols", "edit", "write", "bash", "fetch", "recall"];
    let on = |switched_off: &str| {
        all.map(|name| (name.to_owned(), if name == switched_off { "off" } else { "on" }.to_owned()))
    };
    let tools = client.data(json!({"type": "get_tools"}));
    assert_eq!(states(&tools), on(""));
    assert_eq!(
        tools["tools"][0],
        json!({
            "name": "read", "source": "built-in", "state": "on", "declared": true,
            "summary": "Read a text file or an image",
        })
    );
    let switched = client.data(json!({"type": "switch_tool", "name": "bash", "state": "off"}));
    assert_eq!(states(&switched), on("bash"));
    let error = client.error(json!({"type": "switch_tool", "name": "fly", "state": "on"}));
    assert!(error.starts_with("there is no tool named fly; the tools are read, grep"), "{error}");
    client.prompt("hello");
    let file = client.data(json!({"type": "get_state"}))["session"]["file"].clone();
    assert_eq!(client.close().0, Some(0));
    // What would be sent for the stored conversation is what is sent.
    let body = sandbox.text(&["request", "--session", file.as_str().expect("a path"), "--json"]);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let declared: Vec<&str> =
        body["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(
        declared,
        ["context", "read", "grep", "find", "ls", "symbols", "edit", "write", "fetch", "recall"]
    );
}

#[test]
fn sessions_are_begun_switched_and_forked() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: []\ndefault: {text: Yes.}", "");
    let mut client = Client::start(&sandbox, &[]);
    assert_eq!(client.error(json!({"type": "fork"})), "this conversation has no messages yet");
    client.prompt("in the first");
    let first = client.data(json!({"type": "get_state"}))["session"].clone();
    let second = client.data(json!({"type": "new_session"}));
    assert_ne!(first["id"], second["id"]);
    assert_eq!(second["message_count"], 0);
    client.prompt("in the second");
    client.data(json!({"type": "prompt", "message": "/name the second one"}));
    let entry = client.data(json!({"type": "get_messages"}))["messages"][0]["id"].clone();
    let forked = client.data(json!({"type": "fork", "entry": entry}));
    assert_eq!(forked["message_count"], 1);
    assert_eq!(client.data(json!({"type": "switch_session", "session": first["id"]})), first);
    let back = client.data(json!({"type": "switch_session", "session": "the second one"}));
    assert_eq!((&back["id"], &back["name"]), (&second["id"], &json!("the second one")));
    assert_eq!(said(&client.data(json!({"type": "get_messages"})))[0].1, "in the second");
    let error = client.error(json!({"type": "switch_session", "session": "nowhere"}));
    assert!(error.contains("there is no session \"nowhere\""), "{error}");
    let error = client.error(json!({"type": "fork", "entry": "e99"}));
    assert!(error.contains("no entry `e99`"), "{error}");
    let (code, lines) = client.close();
    assert_eq!(code, Some(0));
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    let count = |kind: &str| kinds.iter().filter(|other| **other == kind).count();
    assert_eq!((count("session_switch"), count("session_fork")), (3, 1));
}

#[test]
fn the_person_runs_commands_and_ends_them() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: []\ndefault: {text: Yes.}", "");
    let mut client = Client::start(&sandbox, &[]);
    let ran = client.data(json!({"type": "bash", "command": "echo out; exit 3"}));
    assert_eq!(
        (&ran["message"]["role"], &ran["message"]["exit_code"]),
        (&json!("bash_execution"), &json!(3))
    );
    assert!(ran["message"]["output"].as_str().expect("a text").starts_with("out"), "{ran}");
    let hidden = client.data(json!({"type": "bash", "command": "true", "exclude_from_context": true}));
    assert_eq!(hidden["message"]["exclude_from_context"], true);
    // It tells that it runs by making a file, which is there before it is ended.
    let id = client.send(json!({"type": "bash", "command": "touch begun; sleep 600"}));
    while !sandbox.work().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    client.data(json!({"type": "abort_bash"}));
    let seen = client.seen.iter().find(|line| line["id"] == id && line["type"] == "response").cloned();
    let ended = seen.unwrap_or_else(|| client.response(&id));
    assert_eq!(ended["data"]["message"]["exit_code"], Value::Null, "{ended}");
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn too_little_is_not_compacted_and_much_is() {
    let sandbox = Sandbox::new();
    let script =
        "turns: [{when: {contains: hello}, text: Hi., repeat: always}]\ndefault: {text: 'The summary.'}";
    let _provider = Provider::start(&sandbox, script, "");
    let mut client = Client::start(&sandbox, &[]);
    let error = client.error(json!({"type": "compact"}));
    assert!(error.contains("not compacted"), "{error}");
    for _ in 0..3 {
        client.prompt(&format!("hello {}", "some words that take their room ".repeat(4000)));
    }
    let compacted = client.data(json!({"type": "compact", "instructions": "keep the greeting"}));
    assert!(compacted["summary"].as_str().expect("a text").contains("The summary."), "{compacted}");
    assert!(compacted["messages"].as_u64().expect("a number") > 0);
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn every_bad_line_gets_an_error_and_the_next_good_one_its_answer() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: []\ndefault: {text: Yes.}", "");
    let mut client = Client::start(&sandbox, &[]);
    let huge = format!("{{\"type\":\"prompt\",\"message\":\"{}\"}}", "x".repeat(17 << 20));
    let nested = format!("{{\"type\":\"prompt\",\"message\":{}", "[".repeat(100_000));
    let bad: [(&[u8], &str, Value, Value); 15] = [
        (b"nonsense", "the line is not valid JSON", json!(null), json!(null)),
        (b"{\"type\":\"get_state\"", "the line is not valid JSON", json!(null), json!(null)),
        (b"{} {}", "the line is not valid JSON", json!(null), json!(null)),
        (b"[1, 2]", "a request is a JSON object", json!(null), json!(null)),
        (b"\"get_state\"", "a request is a JSON object", json!(null), json!(null)),
        (b"{\"id\": \"a\"}", "a request needs a \"type\"", json!("a"), json!(null)),
        (b"{\"id\": \"b\", \"type\": 7}", "a request needs a \"type\"", json!("b"), json!(null)),
        (b"{\"id\": [1], \"type\": \"promt\"}", "did you mean prompt?", json!([1]), json!("promt")),
        (
            b"{\"id\": 1.5, \"type\": \"prompt\", \"text\": \"x\"}",
            "unknown field `text`",
            json!(1.5),
            json!("prompt"),
        ),
        (b"{\"type\": \"abort\", \"now\": true}", "unknown field `now`", json!(null), json!("abort")),
        (b"{\"type\": \"bash\"}", "missing field `command`", json!(null), json!("bash")),
        (b"{\"type\": \"bash\", \"command\": \"a\\u0000b\"}", "NUL", json!(null), json!("bash")),
        (b"{\"type\": \"bash\0\"}", "the line is not valid JSON", json!(null), json!(null)),
        (b"{\"type\": \"\xff\"}", "not UTF-8", json!(null), json!(null)),
        (nested.as_bytes(), "recursion limit", json!(null), json!(null)),
    ];
    for (line, error, id, command) in bad {
        client.raw(&[line, b"\n"].concat());
        let response = client.until(|line| line["type"] == "response");
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert!(response["error"].as_str().expect("an error").contains(error), "{shown}: {response}");
        assert_eq!((&response["id"], &response["command"]), (&id, &command), "{shown}");
        assert_eq!(response["success"], false);
    }
    client.raw(format!("{huge}\r\n\n  \n").as_bytes());
    let response = client.until(|line| line["type"] == "response");
    assert_eq!(response["error"], "ignored a line longer than 16 MB");
    let error = client.error(json!({"type": "prompt", "message": "  "}));
    assert!(error.contains("there is nothing to send"), "{error}");
    let image = json!({"media_type": "image/png", "data": "not base64!"});
    let error = client.error(json!({"type": "prompt", "message": "look", "images": [image]}));
    assert!(error.contains("not base64"), "{error}");
    assert_eq!(client.data(json!({"type": "get_state"}))["session"]["message_count"], 0);
    assert_eq!(client.prompt("hello")["stop"]["reason"], "done");
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn an_image_goes_with_its_prompt() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, "turns: [{text: A dot.}]", "");
    let mut client = Client::start(&sandbox, &[]);
    let dot =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = json!({"media_type": "image/png", "data": dot, "width": 1, "height": 1});
    client.data(json!({"type": "prompt", "message": "What is it?", "images": [image]}));
    let end = client.event("agent_end");
    assert_eq!(end["stop"]["reason"], "done", "{end}");
    assert_eq!(end["messages"][0]["content"][1]["data"], dot);
    assert_eq!(client.close().0, Some(0));
}

/// A first answer that takes its time, so that something can be said meanwhile.
const SLOW: &str = "
turns:
  - {when: {contains: begin}, delay: 1500ms, text: I read., tool_calls: [{name: ls, arguments: {path: .}}]}
  - {when: {contains: left}, text: Left it is.}
  - {when: {contains: later}, text: Now it is later.}
default: {text: Done.}
";

#[test]
fn what_is_said_meanwhile_is_delivered_in_its_time() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, SLOW, "");
    let mut client = Client::start(&sandbox, &[]);
    // All at once: what comes after the prompt finds it begun.
    let begun = client.send(json!({"type": "prompt", "message": "begin"}));
    let refused = client.send(json!({"type": "prompt", "message": "me too"}));
    let steered = client.send(json!({"type": "steer", "message": "go left"}));
    let later = client.send(json!({"type": "prompt", "message": "and later", "when_busy": "follow_up"}));
    let switched = client.send(json!({"type": "new_session"}));
    let end = client.event("agent_end");
    let of =
        |id: &Value| client.seen.iter().find(|line| line["type"] == "response" && line["id"] == *id).cloned();
    let [begun, refused, steered, later, switched] =
        [begun, refused, steered, later, switched].map(|id| of(&id).expect("a response"));
    assert_eq!(begun["data"]["taken"], "started");
    for response in [refused, switched] {
        assert!(response["error"].as_str().expect("an error").contains("the agent is busy"), "{response}");
    }
    assert_eq!(steered["data"], json!({"taken": "queued", "delivery": "steer"}));
    assert_eq!(later["data"], json!({"taken": "queued", "delivery": "follow_up"}));
    let said = said(&end);
    let users: Vec<&str> =
        said.iter().filter(|(role, _)| role == "user").map(|(_, text)| text.as_str()).collect();
    assert_eq!(users, ["begin", "go left", "and later"]);
    assert_eq!(said.last().expect("an answer").1, "Now it is later.");
    // Idle, both begin a run of their own, and the end of one is the time for the next.
    client.data(json!({"type": "steer", "message": "more"}));
    client.event("agent_end");
    client.data(json!({"type": "follow_up", "message": "and more"}));
    client.event("agent_end");
    client.prompt("and a prompt");
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn an_abort_ends_the_run_in_the_middle_and_the_next_prompt_goes_on() {
    let sandbox = Sandbox::new();
    let words = "one two three four five six seven eight nine ten ".repeat(50);
    let script = format!(
        "turns: [{{text: '{words}', pace: 40ms}}, {{text: '{words}', pace: 40ms}}]\ndefault: {{text: Back.}}"
    );
    let _provider = Provider::start(&sandbox, &script, "");
    let mut client = Client::start(&sandbox, &[]);
    client.data(json!({"type": "prompt", "message": "count"}));
    client.event("message_update");
    assert_eq!(client.data(json!({"type": "get_state"}))["busy"], true);
    let id = client.send(json!({"type": "abort"}));
    let end = client.event("agent_end");
    assert_eq!(end["stop"]["reason"], "aborted");
    assert_eq!(end["messages"][1]["stop_reason"], "aborted");
    assert!(client.seen.iter().any(|line| line["id"] == id) || client.response(&id)["success"] == true);
    // Without a wait: the abort is for the prompt before it.
    client.send(json!({"type": "prompt", "message": "count again"}));
    client.send(json!({"type": "abort"}));
    assert_eq!(client.event("agent_end")["stop"]["reason"], "aborted");
    assert_eq!(client.prompt("are you there?")["stop"]["reason"], "done");
    assert_eq!(client.data(json!({"type": "abort"})), Value::Null, "there is nothing to stop");
    assert_eq!(client.prompt("and now?")["stop"]["reason"], "done");
    assert_eq!(client.close().0, Some(0));
}

/// Writes one file after the other.
const WRITER: &str = "
turns:
  - {when: {contains: a file}, tool_calls: [{name: write, arguments: {path: a.txt, content: one}}], repeat: always}
  - {when: {contains: another}, tool_calls: [{name: write, arguments: {path: b.txt, content: two}}], repeat: always}
default: {text: Done.}
";

#[test]
fn a_command_may_ask_for_a_line_of_text() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, WRITER, "");
    let mut client = Client::start(&sandbox, &[]);
    let ask = |client: &mut Client, id: &str, answer: Value| {
        client.raw(format!("{}\n", json!({"type": "prompt", "id": id, "message": "/name"})).as_bytes());
        let question = client.event("input_request");
        assert_eq!(question["prompt"], "What should this conversation be called?");
        let mut wrong = json!({"type": "approval_response", "verdict": "yes"});
        wrong["id"] = question["id"].clone();
        client.raw(format!("{wrong}\n").as_bytes());
        let response = client.until(|line| line["type"] == "response" && line["id"] == question["id"]);
        assert!(
            response["error"].as_str().is_some_and(|error| error.contains("of the other kind")),
            "{response}"
        );
        let given = json!({"type": "input_response", "id": question["id"], "value": answer});
        client.raw(format!("{given}\n").as_bytes());
        client.until(|line| line["type"] == "response" && line["id"] == id)
    };
    let named = ask(&mut client, "first", json!("A fine talk"));
    assert_eq!(named["data"]["said"], "this conversation is now called A fine talk", "{named}");
    let given_up = ask(&mut client, "second", Value::Null);
    assert_eq!(given_up["data"]["said"], "/name: expected a name: /name TEXT", "{given_up}");
    assert_eq!(client.data(json!({"type": "get_state"}))["session"]["name"], "A fine talk");
}

#[test]
fn an_extension_asks_the_client() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, WRITER, "");
    let source = "export default (pi) => pi.registerCommand('pick', { handler: async (args, ctx) => { const one = await ctx.ui.select('Which?', ['a', 'b']); const sure = await ctx.ui.confirm('Sure?', one); ctx.ui.setStatus('s', `${one} ${sure} ${ctx.mode}`); } });";
    sandbox.write("work/pick.ts", source);
    let mut client = Client::start(&sandbox, &["--extension", "pick.ts"]);
    client.raw(format!("{}\n", json!({"type": "prompt", "id": 1, "message": "/pick"})).as_bytes());
    let question = client.event("dialog_request");
    assert_eq!((&question["kind"], &question["owner"]), (&json!("select"), &json!("pick")), "{question}");
    assert_eq!(question["choices"], json!(["a", "b"]));
    // A guard that looks for "No" would take this for a yes.
    let wrong = json!({"type": "dialog_response", "id": question["id"], "value": "c"});
    client.raw(format!("{wrong}\n").as_bytes());
    let refused = client.response(&question["id"])["error"].to_string();
    assert!(refused.contains("offers other answers"), "{refused}");
    let answer = json!({"type": "dialog_response", "id": question["id"], "value": "b"});
    client.raw(format!("{answer}\n").as_bytes());
    let question = client.event("dialog_request");
    assert_eq!((&question["kind"], &question["message"]), (&json!("confirm"), &json!("b")), "{question}");
    let answer = json!({"type": "dialog_response", "id": question["id"], "confirmed": true});
    client.raw(format!("{answer}\n").as_bytes());
    assert_eq!(client.event("face_change")["text"], "b true rpc");
}

#[test]
fn a_call_that_changes_something_waits_for_a_yes_or_a_no() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, WRITER, "");
    let mut client = Client::start(&sandbox, &[]);
    client.data(json!({"type": "prompt", "message": "write a file"}));
    let question = client.event("approval_request");
    assert_eq!((&question["tool_name"], &question["args"]["path"]), (&json!("write"), &json!("a.txt")));
    assert_eq!(question["rule"], "write(a.txt)");
    assert!(!sandbox.work().join("a.txt").exists());
    let answer = |client: &mut Client, question: &Value, fields: Value| {
        let mut answer = fields;
        answer["type"] = json!("approval_response");
        answer["id"] = question["id"].clone();
        client.raw(format!("{answer}\n").as_bytes());
        client.until(|line| line["type"] == "response" && line["id"] == question["id"])
    };
    let response = answer(&mut client, &question, json!({"verdict": "no", "reason": "choose a better name"}));
    assert_eq!((&response["success"], &response["command"]), (&json!(true), &json!("approval_response")));
    let end = client.event("agent_end");
    assert!(said(&end)[2].1.contains("the person said no: choose a better name"), "{end}");
    assert!(!sandbox.work().join("a.txt").exists());
    let response = answer(&mut client, &question, json!({"verdict": "yes"}));
    assert!(response["error"].as_str().expect("an error").contains("no question \"q1\" waits"), "{response}");

    client.data(json!({"type": "prompt", "message": "write a file"}));
    let question = client.event("approval_request");
    answer(&mut client, &question, json!({"verdict": "yes", "remember": "session"}));
    client.event("agent_end");
    assert_eq!(std::fs::read_to_string(sandbox.work().join("a.txt")).expect("it was written"), "one");
    // The same file needs no second yes, another one does; stopping is a no.
    let asked = client.seen.len();
    client.prompt("write a file");
    assert!(client.seen[asked..].iter().all(|line| line["type"] != "approval_request"));
    client.data(json!({"type": "prompt", "message": "write another"}));
    client.event("approval_request");
    client.data(json!({"type": "abort"}));
    let ended =
        client.seen.iter().any(|line| line["type"] == "agent_end" && line["stop"]["reason"] == "aborted");
    assert!(ended || client.event("agent_end")["stop"]["reason"] == "aborted");
    assert!(!sandbox.work().join("b.txt").exists());
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn with_yes_nobody_is_asked() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, WRITER, "");
    let mut client = Client::start(&sandbox, &["--yes"]);
    client.prompt("write a file");
    assert_eq!(std::fs::read_to_string(sandbox.work().join("a.txt")).expect("it was written"), "one");
    let (code, lines) = client.close();
    assert_eq!(code, Some(0));
    assert!(lines.iter().all(|line| line["type"] != "approval_request"));
}

#[test]
fn the_end_of_input_lets_the_run_end_and_answers_no() {
    let sandbox = Sandbox::new();
    let _provider = Provider::start(&sandbox, WRITER, "");
    let mut client = Client::start(&sandbox, &[]);
    client.data(json!({"type": "prompt", "message": "write a file"}));
    client.event("approval_request");
    let (code, lines) = client.close();
    assert_eq!(code, Some(0));
    let end = lines.iter().find(|line| line["type"] == "agent_end").expect("the run has ended");
    assert_eq!(end["stop"]["reason"], "done");
    assert!(said(end)[2].1.contains("nobody is there to ask any more"), "{end}");
    assert!(!sandbox.work().join("a.txt").exists());

    let mut client = Client::start(&sandbox, &["--continue"]);
    client.send(json!({"type": "get_state"}));
    client.send(json!({"type": "prompt", "message": "say something"}));
    client.raw(b"{\"type\": \"get_st");
    let (code, lines) = client.close();
    assert_eq!(code, Some(0));
    let state = lines.iter().find(|line| line["command"] == "get_state").expect("a response");
    assert_eq!(state["data"]["session"]["message_count"], 4);
    assert!(lines.iter().any(|line| line["type"] == "agent_end" && line["stop"]["reason"] == "done"));
    assert!(
        lines.iter().any(|line| line["error"].as_str().is_some_and(|error| error.contains("not valid JSON")))
    );
}

#[test]
fn a_reader_that_goes_away_ends_the_run() {
    let sandbox = Sandbox::new();
    let words = "one two three four five ".repeat(2000);
    let _provider = Provider::start(&sandbox, &format!("turns: [{{text: '{words}', pace: 20ms}}]"), "");
    let mut command = sandbox.command(&["rpc"]);
    command.env("ANTHROPIC_API_KEY", "any");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary can be run");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(b"{\"type\": \"prompt\", \"message\": \"count\"}\n").expect("it reads");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    while !line.contains("message_update") {
        line.clear();
        assert_ne!(output.read_line(&mut line).expect("it writes"), 0, "it ended early");
    }
    drop(output);
    // Standard input stays open: the process ends by itself.
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    drop(input);
    let sessions = sandbox.json(&["sessions", "--json"]);
    assert_eq!(sessions[0]["messages"], 2, "what was received is kept: {sessions}");
}

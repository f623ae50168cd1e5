//! What `hardpan request` prints is what is sent, byte for byte: in all layouts, for all protocols, for
//! new conversations and for those that go on. The real simulator writes down what it gets.

#[path = "dry_run/any_point.rs"]
mod any_point;
#[path = "dry_run/habits.rs"]
mod habits;
#[path = "dry_run/restart.rs"]
mod restart;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hardpan_session::SessionStore;
use jiff::Timestamp;
use support::{CommandOutput, LAYOUTS, Sandbox};

const KEY: &str = "sk-this-must-never-be-seen";

/// Provider and model of each protocol.
const PROTOCOLS: [(&str, &str); 4] = [
    ("anthropic", "claude-sonnet-5-5"),
    ("openai", "gpt-4.1"),
    ("openai", "gpt-5.5"),
    ("gemini", "gemini-3.5-flash"),
];

const SCRIPT: &str = r#"
turns:
  - {when: {contains: Read the notes}, reasoning: Let me see., text: Reading., tool_calls: [{name: read, arguments: {path: notes.md}}]}
  - {when: {contains: Rename push}, tool_calls: [{name: edit, arguments: {path: src/ring.rs, old_text: push, new_text: insert}}]}
  - {when: {contains: List everything}, tool_calls: [{name: ls, arguments: {path: src}}, {name: read, arguments: {path: src/main.rs}}]}
default: {text: Done.}
"#;

/// A simulator in a process of its own, and what it got. It ends with the test.
struct RecordingSimulator {
    child: Child,
    url: String,
    log: PathBuf,
}

impl RecordingSimulator {
    fn start(sandbox: &Sandbox, script: &str) -> Self {
        let script = sandbox.write("script.yaml", script);
        let log = script.with_file_name("requests.jsonl");
        let mut command = sandbox.command(&["simulator", "--script"]);
        command.arg(&script).arg("--log-requests").arg(&log);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary can be run");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").expect("the address").to_owned();
        RecordingSimulator { child, url, log }
    }

    /// The bodies so far, as they came.
    fn bodies(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        // The body is the last field of its line, and as it came.
        let body = |line: &str| {
            let (_, body) = line.split_once("\"body\":").expect("a body");
            body.strip_suffix('}').expect("the line's end").to_owned()
        };
        log.lines().map(body).collect()
    }
}

impl Drop for RecordingSimulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A project in a sandbox whose providers are at `url`.
fn project(url: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    configure(&sandbox, url);
    sandbox.write("work/AGENTS.md", "Be brief.\n");
    sandbox.write("work/notes.md", "The ring is slow.\n");
    let ring = "pub struct Ring;\n\nimpl Ring {\n    pub fn push(&mut self, n: u32) {}\n    pub fn pop(&mut self) {}\n}\n";
    sandbox.write("work/src/ring.rs", ring);
    sandbox.write("work/src/main.rs", "mod ring;\n\nfn main() {\n    ring::Ring.push(1);\n}\n");
    sandbox.write("config/templates/again.md", "Rename push, $1 as before.\n");
    sandbox
}

fn configure(sandbox: &Sandbox, url: &str) {
    let provider = |name: &str| format!("[providers.{name}]\nbase_url = \"{url}\"\n");
    let providers: String = ["anthropic", "openai", "gemini"].map(provider).concat();
    sandbox.write("config/config.toml", providers + "[patience]\nlongest_wait_seconds = 0.05\n");
}

fn run(sandbox: &Sandbox, args: &[&str]) -> CommandOutput {
    let mut command: Command = sandbox.command(args);
    command.stdin(Stdio::null());
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
        command.env(name, KEY);
    }
    let output = command.output().expect("the binary can be run");
    let stderr = String::from_utf8(output.stderr).expect("words are UTF-8");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(!shown.contains(KEY) && !stderr.contains(KEY), "a key is never printed");
    assert_eq!(output.status.code(), Some(0), "{args:?}: {stderr}");
    CommandOutput { code: output.status.code(), stdout: output.stdout, stderr }
}

/// The id of the newest conversation.
fn session_id(sandbox: &Sandbox) -> String {
    let folder = sandbox.work().with_file_name("home").join(".local/share/hardpan/sessions");
    SessionStore::new(folder).list(None)[0].id.to_string()
}

/// The one place where something is taken for equal that is not: a moment between `from` and `to`.
/// The two bodies are made at different times, and say so.
fn without_present_time(body: &str, from: Timestamp, to: Timestamp) -> String {
    let moments = (from.as_second()..=to.as_second())
        .map(|second| Timestamp::from_second(second).expect("a time").to_string());
    moments.fold(body.to_owned(), |body, moment| body.replace(&moment, "(now)"))
}

#[allow(clippy::disallowed_methods, reason = "what the binary calls now is measured by the same clock")]
fn clock() -> Timestamp {
    Timestamp::now()
}

/// Everything below a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            found.insert(path.clone(), Vec::new());
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    found
}

/// Shows a request, then has it sent, and compares.
fn compare(sandbox: &Sandbox, simulator: &RecordingSimulator, prompt: &str, how: &[&str], resume: &[&str]) {
    let home = sandbox.work().with_file_name("home");
    let kept = |name: &str| contents(&home.join(name));
    let before = (kept(".local"), kept(".config"), contents(&sandbox.work()));
    // Where the system prompt tells the time, reasoning that is bound to it goes back within the same
    // second only. Neither request is in that of the answer before.
    let last = clock().as_second();
    while clock().as_second() == last {
        std::thread::sleep(Duration::from_millis(20));
    }
    let from = clock();
    let shown = run(sandbox, &[&["request", prompt, "--json"], how, resume].concat());
    let after = (kept(".local"), kept(".config"), contents(&sandbox.work()));
    assert!(before == after, "showing a request leaves no trace");
    let count = simulator.bodies().len();
    run(sandbox, &[&["-p", prompt, "--yes"], how, resume].concat());
    let to = clock();
    let sent = &simulator.bodies()[count];
    let mut shown = String::from_utf8(shown.stdout).expect("JSON");
    if resume.is_empty() {
        // The conversation has had no id before it began.
        shown = shown.replace("\"000000000000\"", &format!("\"{}\"", session_id(sandbox)));
    }
    let [shown, sent] = [&shown, sent].map(|body| without_present_time(body, from, to));
    assert_same(&format!("{prompt:?} {how:?} {resume:?}"), &shown, &sent);
}

/// Shows where two bodies differ, which are too long to be shown whole.
fn assert_same(what: &str, one: &str, other: &str) {
    if one != other {
        let at = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let part = |body: &str| {
            String::from_utf8_lossy(&body.as_bytes()[at.saturating_sub(200)..(at + 300).min(body.len())])
                .into_owned()
        };
        panic!(
            "{what}: of {} and {} bytes {at} are the same\none: {}\n\nother: {}",
            one.len(),
            other.len(),
            part(one),
            part(other)
        );
    }
}

fn compare_conversation(layout: &str) {
    for (provider, model) in PROTOCOLS {
        let sandbox = project("http://127.0.0.1:1");
        let simulator = RecordingSimulator::start(&sandbox, SCRIPT);
        configure(&sandbox, &simulator.url);
        let how = ["--layout", layout, "--provider", provider, "--model", model];
        let compare = |prompt: &str, resume: &[&str]| compare(&sandbox, &simulator, prompt, &how, resume);
        compare("Read the notes, and @src/ring.rs", &[]);
        compare("/again exactly", &["--continue"]);
        // What the model has seen changes behind its back.
        sandbox.write("work/notes.md", "The ring is fast now.\n");
        sandbox.write("work/src/new.rs", "pub fn new() {}\n");
        compare("What has changed?", &["--continue"]);
        let id = session_id(&sandbox);
        compare("List everything", &["--resume", &id]);
        compare("Thank you.", &["--resume", &id]);
        assert!(simulator.bodies().len() >= 8, "tools were called");
    }
}

#[test]
fn what_is_shown_is_what_is_sent_in_every_layout_and_protocol() {
    std::thread::scope(|scope| {
        for layout in LAYOUTS {
            scope.spawn(move || compare_conversation(layout));
        }
    });
}

#[test]
fn the_whole_http_request_is_shown_with_its_keys_masked() {
    let sandbox = project("http://127.0.0.1:1");
    let simulator = RecordingSimulator::start(&sandbox, SCRIPT);
    configure(&sandbox, &simulator.url);
    let config = fs::read_to_string(sandbox.config().join("config.toml")).expect("the settings");
    let own = "[providers.openai]\nheaders = { X-Team = \"a-secret-of-the-team\" }\n";
    sandbox.write("config/config.toml", config.replace("[providers.openai]\n", own));
    let how =
        ["--layout", "inline", "--provider", "openai", "--model", "gpt-5.5", "--now", "2026-11-01T00:00:00Z"];
    let shown = run(&sandbox, &[&["request", "Hi", "--http"], &how[..]].concat());
    let shown = String::from_utf8(shown.stdout).expect("text");
    let (head, body) = shown.split_once("\n\n").expect("an empty line");
    assert_eq!(
        head,
        format!(
            "POST {}/v1/responses\nauthorization: Bearer •••\ncontent-type: application/json\n\
             user-agent: hardpan/{}\nx-team: •••",
            simulator.url,
            env!("CARGO_PKG_VERSION")
        )
    );
    let json = run(&sandbox, &[&["request", "Hi", "--json"], &how[..]].concat());
    assert_eq!(body.as_bytes(), json.stdout);
    assert!(body.contains("\"prompt_cache_key\":\"000000000000\""), "{body}");
}

#[test]
fn a_snapshot_of_a_conversation_gives_the_body_that_goes_on_with_it() {
    for layout in LAYOUTS {
        let sandbox = project("http://127.0.0.1:1");
        let simulator = RecordingSimulator::start(&sandbox, SCRIPT);
        configure(&sandbox, &simulator.url);
        let how = ["--layout", layout, "--model", "claude-sonnet-5-5"];
        run(&sandbox, &[&["-p", "Read the notes, and @src/ring.rs", "--yes"], &how[..]].concat());
        let what = [&["Go on", "--continue", "--now", "2026-11-01T00:00:00Z"], &how[..]].concat();
        let snapshot = run(&sandbox, &[&["snapshot"], &what[..]].concat());
        let body = run(&sandbox, &[&["request", "--json"], &what[..]].concat());
        let file = sandbox.write("snapshot.json", snapshot.stdout);
        let file = file.to_str().expect("a path");
        let again = run(&sandbox, &[&["request", "--snapshot", file, "--json"], &how[..]].concat());
        let parse = |body: &[u8]| -> serde_json::Value { serde_json::from_slice(body).expect("JSON") };
        let (mut body, mut again) = (parse(&body.stdout), parse(&again.stdout));
        // The answer before is not a part of a snapshot, which has no provider.
        assert!(body["diagnostics"]["previous_message_id"].is_string());
        for body in [&mut body, &mut again] {
            body["diagnostics"] = serde_json::Value::Null;
        }
        assert_eq!(body, again, "{layout}");
    }
}

#[test]
fn with_agent_mode_off_no_tools_are_sent_and_a_conversation_with_calls_goes_on() {
    for layout in LAYOUTS {
        let sandbox = project("http://127.0.0.1:1");
        let simulator = RecordingSimulator::start(&sandbox, SCRIPT);
        configure(&sandbox, &simulator.url);
        let how = ["--layout", layout, "--model", "claude-sonnet-5"];
        run(&sandbox, &[&["-p", "Read the notes", "--yes"], &how[..]].concat());
        run(&sandbox, &["-p", "And now?", "--continue", "--agent-mode", "off"]);
        run(&sandbox, &["-p", "And then?", "--continue"]);
        let bodies = simulator.bodies();
        let [with, _, without, again] = &bodies[..] else { panic!("{layout}: {} requests", bodies.len()) };
        let has_tools = |body: &str| body.contains("\"name\":\"read\",\"description\"");
        let told = |body: &str| body.contains("Use the declared tools");
        assert!(has_tools(with) && told(with), "{layout}: {with}");
        assert!(!has_tools(without) && !told(without), "{layout}: {without}");
        assert!(has_tools(again) && told(again), "{layout}: {again}");
        // The modelled layout strips calls; others show what the model has done.
        assert_eq!(without.contains("The ring is slow."), layout != "inline", "{layout}: {without}");
    }
}

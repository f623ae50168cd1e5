//! What MCP servers bring besides tools, in the binary: prompts, resources, questions, samples, progress.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use hardpan_prompt::{MessageBody, MessagePart};
use serde_json::{Value, json};

use super::mcp::{RecordingSimulator, configure, listed, script};
use super::mcp_servers::real_servers;
use super::support::Sandbox;
use super::test_cli::TestCli;

const ASKING_SERVER: &str = include_str!("asking_mcp_server.py");

/// How long nothing may come before a test gives up.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Settings of the server that asks, and the folder of its notes.
fn asking(sandbox: &Sandbox, more: &str) -> (String, PathBuf) {
    let server = sandbox.write("work/asking.py", ASKING_SERVER);
    let notes = sandbox.work().join("notes");
    fs::create_dir_all(&notes).expect("a folder");
    let settings = format!(
        "[mcp_servers.asking]\ncommand = \"python3\"\nargs = [{server:?}, {notes:?}]\nstart_seconds = 60\n{more}\n"
    );
    (settings, notes)
}

/// Settings of the server that shows everything.
fn everything() -> Option<String> {
    let program = real_servers()?.join("node_modules/.bin/mcp-server-everything");
    Some(format!("[mcp_servers.everything]\ncommand = {program:?}\nstart_seconds = 60\n"))
}

fn wait_for(mut holds: impl FnMut() -> bool) -> bool {
    (0..12_000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        holds()
    })
}

/// The text of the newest message of the person.
fn last_prompt(cli: &TestCli) -> String {
    let prompts = cli.messages().into_iter().filter_map(|message| match &*message.body {
        MessageBody::User { content } => Some(content.clone()),
        _ => None,
    });
    match &prompts.last().expect("a prompt")[..] {
        [MessagePart::Text { text }, ..] => text.to_string(),
        other => panic!("{other:?}"),
    }
}

/// `hardpan rpc`, whose client answers questions.
struct RpcClient {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
    seen: Vec<Value>,
}

impl RpcClient {
    fn start(cli: &TestCli, args: &[&str]) -> Self {
        let mut command = cli.command(&["rpc"]);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
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
        let input = child.stdin.take().expect("it is piped");
        RpcClient { child, input, lines, seen: Vec::new() }
    }

    fn send(&mut self, request: &Value) {
        writeln!(self.input, "{request}").and_then(|()| self.input.flush()).expect("the process reads");
    }

    fn prompt(&mut self, message: &str) {
        self.send(&json!({"type": "prompt", "id": "p", "message": message}));
    }

    /// The next line of one of these types.
    fn next_of(&mut self, kinds: &[&str]) -> Value {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT);
            let line = line.unwrap_or_else(|error| panic!("{error} after {:#?}", self.seen));
            self.seen.push(line.clone());
            if kinds.iter().any(|kind| line["type"] == *kind) {
                return line;
            }
        }
    }

    fn answer(&mut self, question: &Value, value: &str) {
        self.send(&json!({"type": "dialog_response", "id": question["id"], "value": value}));
    }

    /// Allows calls of tools until another question or the end of the run comes.
    fn next_question(&mut self) -> Value {
        loop {
            let line = self.next_of(&["approval_request", "dialog_request", "agent_end"]);
            if line["type"] == "approval_request" && line["tool_name"] != "mcp-sampling" {
                self.send(&json!({"type": "approval_response", "id": line["id"], "verdict": "yes"}));
                continue;
            }
            return line;
        }
    }
}

impl Drop for RpcClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prompts_of_servers_are_commands() {
    let Some(server) = everything() else { return };
    let cli = TestCli::with_script("", "default: {text: Done.}");
    configure(&cli, &server);
    configure(&cli, &asking(&cli.sandbox, "").0);
    // Nothing is known of the servers yet.
    let ran = cli.print(&["-p", "/everything:args-prompt 'New York' NY"]);
    assert_eq!(
        (ran.code, String::from_utf8_lossy(&ran.stdout).as_ref()),
        (Some(0), "Done.\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(last_prompt(&cli), "What's weather in New York, NY?");
    cli.print(&["-p", "/everything:resource-prompt Text 1"]);
    let prompt = last_prompt(&cli);
    assert!(prompt.contains("[demo://resource/dynamic/text/1]\nResource 1: This is a plaintext"), "{prompt}");
    cli.print(&["-p", "/asking:talk topic='the weather'"]);
    assert_eq!(last_prompt(&cli), "Talk about the weather.\n(Assistant:)\nI will.");
    // Mistakes are told, and nothing is sent.
    for (call, expected) in [
        (
            "/everything:args-prompt",
            "/everything:args-prompt: it needs CITY: /everything:args-prompt CITY [STATE]",
        ),
        (
            "/asking:odd-name",
            "/asking:odd-name: the MCP server asking: it answered with an error: the writer is ill",
        ),
        ("/asking:nothing", "/asking:nothing"),
    ] {
        let ran = cli.print(&["-p", call]);
        assert_eq!(ran.code, Some(1), "{call}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    // Standard input cannot call them.
    let ran = cli.print_with(&["-p", "-"], "/asking:talk secrets");
    assert_ne!(ran.code, Some(0), "{}", String::from_utf8_lossy(&ran.stdout));
    // They are listed, with their arguments, and complete them.
    let rows = listed(&cli);
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect("a row").clone();
    assert_eq!(row("asking")["prompts"], json!(["/asking:odd name", "/asking:talk"]));
    assert_eq!(row("asking")["resources"], json!(["note://one"]));
    let help = cli.print(&["-p", "/help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.contains("asking:talk") && help.contains("TOPIC · Talk about it\n"), "{help}");
}

#[test]
fn resources_join_the_context_and_their_changes_follow_behind_it() {
    let cli = TestCli::with_script("", "default: {text: unused}");
    let answers = "turns:\n  - {when: {contains: Touch it}, repeat: always, tool_calls: [{name: asking__touch, arguments: {}}]}\ndefault: {text: Done.}\n";
    let simulator = RecordingSimulator::start(&cli.sandbox, answers);
    let provider = format!(
        "model = \"claude-sonnet-5\"\nmap_tokens = 0\n[providers.anthropic]\nbase_url = \"{}/v1\"\n",
        simulator.url
    );
    let (server, notes) = asking(&cli.sandbox, "");
    cli.sandbox.write("config/config.toml", provider + &server);
    listed(&cli);
    let ran = cli.print(&["-p", "What does @asking:note://one say? Touch it", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("asking:note://one joins the context"), "{}", ran.stderr);
    assert!(ran.stderr.contains("asking:note://one has changed"), "{}", ran.stderr);
    let bodies = simulator.bodies();
    assert_eq!(bodies.len(), 2);
    let texts = |body: &Value| body["messages"].to_string();
    assert!(texts(&bodies[0]).contains("The count is 0.") && !texts(&bodies[0]).contains("count is 1"));
    assert!(texts(&bodies[1]).contains("The count is 0.") && texts(&bodies[1]).contains("count is 1"));
    // What was sent before is sent again as it was, but for its end: the state of the workspace.
    let (mut before, after) = (plain_messages(&bodies[0]), plain_messages(&bodies[1]));
    let last = before.pop().expect("a message");
    assert_eq!(before[..], after[..before.len()]);
    assert_eq!(last["content"][0], after[before.len()]["content"][0]);
    // Nobody was asked while no request of ours ran.
    assert_eq!(fs::read_to_string(notes.join("early")).expect("an answer"), r#"{"action": "cancel"}"#);
    // A conversation that goes on shows it, until it is closed.
    let ran = cli.print(&["--continue", "-p", "/close asking:note://one"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = cli.print(&["-p", "/resource"]);
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "asking:note://one  one\n", "{}", ran.stderr);
    for (name, expected) in [
        ("asking:note://two", "the MCP server asking: it answered with an error: there is no such note"),
        ("nobody:note://one", "there is no MCP server nobody"),
        ("note", "expected SERVER:ADDRESS"),
    ] {
        let ran = cli.print(&["-p", &format!("/resource {name}")]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    cli.print(&["-p", "Hello @asking:note://long", "--yes"]);
    let last = texts(simulator.bodies().last().expect("a request"));
    assert!(
        last.contains("[100000 bytes of text, cut after 51200]") && last.len() < 80_000,
        "{}",
        last.len()
    );
}

#[test]
fn a_server_that_tells_of_changes_without_being_asked_is_heard() {
    let cli = TestCli::with_script("", "default: {text: unused}");
    let answers = "turns:\n  - {tool_calls: [{name: asking__touch, arguments: {}}]}\n  - {tool_calls: [{name: ls, arguments: {}}]}\ndefault: {text: Done.}\n";
    let simulator = RecordingSimulator::start(&cli.sandbox, answers);
    let provider = format!(
        "model = \"claude-sonnet-5\"\nmap_tokens = 0\n[providers.anthropic]\nbase_url = \"{}/v1\"\n",
        simulator.url
    );
    let (server, _notes) = asking(&cli.sandbox, "env = { UNASKED = \"1\" }\n");
    cli.sandbox.write("config/config.toml", provider + &server);
    listed(&cli);
    let ran = cli.print(&["-p", "What does @asking:note://one say?", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let bodies = simulator.bodies();
    let told = |body: &Value| body["messages"].to_string().matches("The count is 1.").count();
    // Once, and no more.
    assert_eq!(bodies.iter().map(told).collect::<Vec<_>>(), [0, 1, 1]);
}

/// The messages of a request, without the marks for the cache.
fn plain_messages(body: &Value) -> Vec<Value> {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut messages = body["messages"].as_array().expect("messages").clone();
    messages.iter_mut().for_each(strip);
    messages
}

#[test]
fn a_server_asks_the_person_field_by_field() {
    let Some(server) = everything() else { return };
    let cli = TestCli::with_script("", &script("everything__trigger-elicitation-request", "{}"));
    // The time of a person does not count.
    configure(&cli, &server);
    configure(&cli, "call_seconds = 1");
    listed(&cli);
    let mut client = RpcClient::start(&cli, &[]);
    client.prompt("Call it");
    let question = client.next_question();
    assert_eq!((&question["kind"], &question["owner"]), (&json!("select"), &json!("MCP server everything")));
    let title = question["title"].as_str().expect("a title");
    assert!(title.starts_with("Please provide inputs"), "{title}");
    assert!(title.contains("Give it no passwords or keys"), "{title}");
    std::thread::sleep(Duration::from_secs(3));
    client.answer(&question, "Answer");
    let mut is_asked_again = false;
    loop {
        let question = client.next_question();
        if question["type"] == "agent_end" {
            break;
        }
        let title = question["title"].as_str().expect("a title").to_owned();
        let value = match title.as_str() {
            title if title.starts_with("That does not fit: expected a number from 1 to 100. ") => {
                is_asked_again = true;
                "7"
            }
            title if title.starts_with("Integer") => "500",
            title if title.starts_with("String (Your full") => "Ada",
            title if title.starts_with("String with email") => "ada@example.com",
            title if title.starts_with("Boolean") => "yes",
            title if title.starts_with("Titled Single") => "Green Lantern",
            _ if question["kind"] == "select" => "(no answer)",
            _ => "",
        };
        client.answer(&question, value);
    }
    assert!(is_asked_again);
    drop(client);
    let said = cli.last_result();
    for part in [
        "- Name: Ada",
        "- Agreed to terms: true",
        "- Favorite Integer: 7",
        "ada@example.com",
        "hero-2",
        "\"Guitar\"",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    // Declined by the person, and for want of one.
    let mut client = RpcClient::start(&cli, &[]);
    client.prompt("Call it");
    let question = client.next_question();
    client.answer(&question, "Decline");
    client.next_of(&["agent_end"]);
    assert!(cli.last_result().contains("User declined"));
    drop(client);
    cli.print(&["-p", "Call it", "--yes"]);
    assert!(cli.last_result().contains("User declined"));
}

#[test]
fn an_address_is_shown_and_never_opened() {
    let cli = TestCli::with_script("", &script("asking__visit", "{}"));
    configure(&cli, &asking(&cli.sandbox, "").0);
    listed(&cli);
    let mut client = RpcClient::start(&cli, &[]);
    for (is_yes, action) in [(true, "accept"), (false, "decline")] {
        client.prompt("Call it");
        let mut question = client.next_question();
        // What the server asks at its start is put to the person if the call has begun by then.
        if question["title"].as_str().is_some_and(|title| title.contains("Early")) {
            client.answer(&question, "Decline");
            question = client.next_question();
        }
        assert_eq!(question["owner"], "MCP server asking");
        assert_eq!(question["title"], "Visit sign.example?");
        let message = question["message"].as_str().expect("a message");
        assert!(message.contains("Sign the paper.\nhttps://sign.example/paper\n"), "{message}");
        client.send(&json!({"type": "dialog_response", "id": question["id"], "confirmed": is_yes}));
        client.next_of(&["agent_end"]);
        assert_eq!(cli.last_result(), format!("visit: {{\"action\": \"{action}\"}}"));
    }
    // A run that is stopped takes its question back.
    client.prompt("Call it");
    client.next_question();
    client.send(&json!({"type": "abort", "id": "a"}));
    let end = client.next_of(&["ui_prompt_end"]);
    assert_eq!(end["answered"], false, "{end}");
}

#[test]
fn a_server_asks_a_model_only_if_that_is_allowed_and_the_conversation_pays() {
    let Some(server) = everything() else { return };
    let answers = "turns:\n  - {when: {contains: Call it}, repeat: always, tool_calls: [{name: everything__trigger-sampling-request, arguments: {prompt: 'name a bird', maxTokens: 50}}]}\n  - {when: {contains: name a bird}, repeat: 1, text: A heron.}\ndefault: {text: Done.}\n";
    let cli = TestCli::with_script("", answers);
    configure(&cli, &server);
    listed(&cli);
    // Nobody is there.
    let path = cli.sandbox.config().join("config.toml");
    let before = fs::read_to_string(&path).expect("settings");
    fs::write(&path, format!("allow = [\"mcp(everything.*)\"]\n{before}")).expect("settings");
    cli.print(&["-p", "Call it"]);
    let said = cli.last_result();
    assert!(said.contains("the request was rejected: nobody is there to ask"), "{said}");
    assert!(said.contains("mcp-sampling(everything)"), "{said}");
    // A person sees what is asked, of which model and how much, and says no, then yes.
    let mut client = RpcClient::start(&cli, &[]);
    client.prompt("Call it");
    let question = client.next_question();
    assert_eq!(
        (&question["tool_name"], &question["rule"]),
        (&json!("mcp-sampling"), &json!("mcp-sampling(everything)"))
    );
    let args = &question["args"];
    assert_eq!((&args["server"], &args["max_tokens"]), (&json!("everything"), &json!(50)));
    assert!(args["prompt"].as_str().is_some_and(|prompt| prompt.contains("name a bird")), "{args}");
    assert!(args["tokens"].as_u64().is_some_and(|tokens| tokens > 5), "{args}");
    client.send(
        &json!({"type": "approval_response", "id": question["id"], "verdict": "no", "reason": "later"}),
    );
    client.next_of(&["agent_end"]);
    assert!(cli.last_result().contains("the request was rejected: "), "{}", cli.last_result());
    client.prompt("Call it");
    let question = client.next_question();
    client.send(&json!({"type": "approval_response", "id": question["id"], "verdict": "yes"}));
    client.next_of(&["agent_end"]);
    drop(client);
    let said = cli.last_result();
    assert!(said.contains("A heron.") && said.contains("\"stopReason\": \"endTurn\""), "{said}");
    // A rule allows it, and the bill names the server.
    fs::write(&path, format!("allow = [\"mcp(everything.*)\", \"mcp-sampling(everything)\"]\n{before}"))
        .expect("settings");
    let ran = cli.print(&["-p", "Call it"]);
    assert!(!ran.stderr.contains("has no effect"), "{}", ran.stderr);
    assert!(cli.last_result().contains("\"model\": \"claude-sonnet-5\""), "{}", cli.last_result());
    let bill = cli.print(&["cost", "--by", "kind"]);
    let bill = String::from_utf8_lossy(&bill.stdout).into_owned();
    assert!(bill.contains("mcp:everything"), "{bill}");
}

#[test]
fn progress_is_shown_and_a_call_that_is_stopped_is_cancelled() {
    let Some(server) = everything() else { return };
    let answers = "turns:\n  - {when: {contains: Work}, repeat: always, tool_calls: [{name: everything__trigger-long-running-operation, arguments: {duration: 2, steps: 4}}]}\n  - {when: {contains: Wait}, repeat: always, tool_calls: [{name: asking__wait, arguments: {}}]}\n  - {when: {contains: Touch}, repeat: always, tool_calls: [{name: asking__touch, arguments: {}}]}\ndefault: {text: Done.}\n";
    let cli = TestCli::with_script("", answers);
    let (asking, notes) = asking(&cli.sandbox, "");
    configure(&cli, &server);
    configure(&cli, &asking);
    listed(&cli);
    let mut client = RpcClient::start(&cli, &["--yes"]);
    client.prompt("Work");
    let update = client.next_of(&["tool_execution_update"]);
    assert!(update.to_string().contains("1 of 4"), "{update}");
    client.next_of(&["agent_end"]);
    assert!(cli.last_result().contains("Long running operation completed"));
    client.prompt("Wait");
    assert!(wait_for(|| notes.join("waiting").exists()));
    client.send(&json!({"type": "abort", "id": "a"}));
    client.next_of(&["agent_end"]);
    assert!(wait_for(|| notes.join("cancelled").exists()));
    let note = |name: &str| fs::read_to_string(notes.join(name)).expect("a note");
    assert_eq!(note("cancelled"), note("waiting"));
    // The server and the conversation go on.
    client.prompt("Touch");
    client.next_of(&["agent_end"]);
    assert_eq!(cli.last_result(), "touched 1");
}

/// Whether a process runs; one that has ended and waits to be collected does not.
fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn servers_end_with_all_their_processes_when_the_program_is_killed() {
    for more in ["", "sandbox = true"] {
        let cli = TestCli::with_script("", &script("asking__child", "{}"));
        let (asking, notes) = asking(&cli.sandbox, more);
        configure(&cli, &asking);
        listed(&cli);
        let mut client = RpcClient::start(&cli, &["--yes"]);
        client.prompt("Call it");
        client.next_of(&["agent_end"]);
        assert_eq!(cli.last_result(), "started", "{more}");
        let pids = fs::read_to_string(notes.join("pids")).expect("a note");
        // In the sandbox, the numbers are those of its own.
        let pids: Vec<String> = match more {
            "" => pids.split_whitespace().map(str::to_owned).collect(),
            _ => processes_with(&notes.display().to_string()),
        };
        assert!(!pids.is_empty() && pids.iter().all(|pid| is_running(pid)), "{more} {pids:?}");
        // Not asked to end, but killed.
        client.child.kill().expect("it runs");
        client.child.wait().expect("it ends");
        let is_gone = wait_for(|| !pids.iter().any(|pid| is_running(pid)));
        assert!(is_gone, "{more} {pids:?}");
    }
}

/// The processes whose command line has this text, other than those of the test.
fn processes_with(text: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("a list of processes").flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let numbers = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let is_meant = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(text)
    };
    numbers.filter(is_meant).collect()
}

#[test]
fn a_server_in_the_sandbox_writes_nothing_outside_of_the_workspace() {
    if hardpan_sandbox::sandbox_support() != hardpan_sandbox::SandboxSupport::Full {
        let full: Option<()> = None;
        hardpan_test_support::prerequisite("a full sandbox", "run the tests on a newer kernel", full);
        return;
    }
    for (more, path, expected) in [
        ("sandbox = true", "inside.txt", "written"),
        ("sandbox = true", "../home/outside.txt", "refused: "),
        ("", "../home/outside.txt", "written"),
    ] {
        let cli = TestCli::with_script("", &script("asking__write", &format!("{{path: {path}}}")));
        configure(&cli, &asking(&cli.sandbox, more).0);
        listed(&cli);
        cli.print(&["-p", "Call it", "--yes"]);
        let said = cli.last_result();
        assert!(said.starts_with(expected), "{more} {path}: {said}");
    }
}

#[test]
fn a_projects_server_runs_in_the_sandbox_and_gets_nothing_of_the_environment() {
    let cli = TestCli::with_script("", &script("asking__variables", "{}"));
    let (asking, _) = asking(&cli.sandbox, "pass_environment = [\"OTHER_TOKEN\"]");
    cli.sandbox.write("work/.hardpan/config.toml", &asking);
    // Not before the project is trusted.
    assert_eq!(listed(&cli), Vec::<Value>::new());
    assert_eq!(cli.sandbox.run(&["trust"]).code, Some(0));
    listed(&cli);
    cli.print(&["-p", "Call it", "--yes"]);
    let said = cli.last_result();
    assert!(said.contains("PATH") && !said.contains("TOKEN") && !said.contains("ANTHROPIC"), "{said}");
}

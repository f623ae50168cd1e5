//! MCP servers in the binary: real ones from npm and PyPI, and one that misbehaves.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::mcp_servers::real_servers;
use super::support::{CommandOutput, Sandbox};
use super::test_cli::TestCli;

const HOSTILE_SERVER: &str = include_str!("hostile_mcp_server.py");
const CHANGING_SERVER: &str = include_str!("changing_mcp_server.py");

/// Settings of the server that misbehaves.
fn hostile(sandbox: &Sandbox, name: &str, mode: &str) -> String {
    let script = sandbox.write("hostile.py", HOSTILE_SERVER);
    let starts = script.with_file_name(format!("starts-{name}"));
    // Only those that never answer are waited for to the end.
    let seconds = match mode {
        "hang" | "errors" => 3,
        "nonsense" => 10,
        _ => 60,
    };
    format!(
        "[mcp_servers.{name}]\ncommand = \"python3\"\nargs = [{script:?}, \"{mode}\", {starts:?}]\nstart_seconds = {seconds}\n"
    )
}

pub fn configure(cli: &TestCli, servers: &str) {
    let path = cli.sandbox.config().join("config.toml");
    let before = fs::read_to_string(&path).expect("the settings");
    fs::write(path, format!("{before}\n{servers}")).expect("the settings");
}

pub fn listed(cli: &TestCli) -> Vec<Value> {
    let ran: CommandOutput = cli.print(&["mcp", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_slice(&ran.stdout).expect("JSON")
}

/// What the calls of a run were answered with.
pub fn results(cli: &TestCli, prompt: &str) -> Vec<String> {
    let ran = cli.print(&["-p", prompt, "--yes", "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let output = String::from_utf8(ran.stdout).expect("text");
    let events = output.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    events
        .filter(|event| event["type"] == "tool_execution_end")
        .map(|event| event["content"][0]["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

pub fn script(name: &str, arguments: &str) -> String {
    format!(
        "turns:\n  - {{when: {{contains: Call it}}, repeat: always, tool_calls: [{{name: {name}, arguments: {arguments}}}]}}\ndefault: {{text: Done.}}\n"
    )
}

#[test]
fn a_server_that_misbehaves_is_named_and_stops_nothing() {
    let cli = TestCli::with_script("", &script("hostile__echo", "{text: hi}"));
    let modes = [
        ("hang", "it did not start within 3 s"),
        ("flood", "a line of more than 16 MB"),
        ("errors", "it did not start within 3 s"),
        ("nonsense", "it printed: "),
        ("dies", "it ended; it printed: no licence found"),
        ("version", "the version 1999-01-01 of the protocol, which is not known"),
        ("many", "it lists more than 1000 tools"),
        ("endless", "it lists more than 1000 tools"),
    ];
    let servers: String = modes.iter().map(|(mode, _)| hostile(&cli.sandbox, mode, mode)).collect();
    configure(&cli, &servers);
    configure(&cli, "[mcp_servers.missing]\ncommand = \"no-such-program\"\n");
    let rows = listed(&cli);
    let error = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).expect("a row");
        assert_eq!(row["state"], "failed", "{row}");
        row["error"].as_str().expect("an error").to_owned()
    };
    for (mode, expected) in modes {
        assert!(error(mode).contains(expected), "{mode}: {}", error(mode));
    }
    assert!(error("missing").contains("there is no program no-such-program"));
    // A conversation goes on, and says what is missing.
    let ran = cli.print(&["-p", "Hello"]);
    assert_eq!((ran.code, String::from_utf8_lossy(&ran.stdout).as_ref()), (Some(0), "Done.\n"));
    assert!(ran.stderr.contains("the MCP server missing: there is no program"), "{}", ran.stderr);
}

#[test]
fn calls_ask_have_rules_and_survive_the_servers_death() {
    let cli = TestCli::with_script("", &script("hostile__echo", "{text: hi}"));
    configure(&cli, &hostile(&cli.sandbox, "hostile", "plain"));
    let rows = listed(&cli);
    let names: Vec<&str> =
        rows[0]["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["hostile__bash", "hostile__die", "hostile__echo", "hostile__tree"]);
    assert!(rows[0]["dollars_per_session"].as_f64().is_some_and(|dollars| dollars > 0.0), "{rows:?}");
    cli.print(&["-p", "Call it"]);
    let said = cli.last_result();
    assert!(said.contains("nobody is there to ask") && said.contains("mcp(hostile.echo)"), "{said}");
    let path = cli.sandbox.config().join("config.toml");
    let allowed = format!("allow = [\"mcp(hostile.*)\"]\n{}", fs::read_to_string(&path).expect("settings"));
    fs::write(&path, allowed).expect("settings");
    let ran = cli.print(&["-p", "Call it"]);
    assert!(!ran.stderr.contains("has no effect"), "{}", ran.stderr);
    let said = cli.last_result();
    assert!(said.starts_with("echo hi of start ") && said.contains("PATH"), "{said}");
    assert!(!said.contains("ANTHROPIC") && !said.contains("OTHER_TOKEN"), "the environment is clean: {said}");
}

#[test]
fn a_server_that_dies_in_a_call_is_an_error_result_and_a_long_answer_is_cut() {
    for (tool, expected) in [
        (
            "hostile__die",
            "The MCP server hostile: it ended; it printed: out of luck. The next call starts it again.",
        ),
        ("hostile__bash", "[100000 bytes of text, cut after 51200]"),
    ] {
        let cli = TestCli::with_script("", &script(tool, "{}"));
        configure(&cli, &hostile(&cli.sandbox, "hostile", "plain"));
        listed(&cli);
        let ran = cli.print(&["-p", "Call it", "--yes"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let said = cli.last_result();
        assert!(said.ends_with(expected), "{said}");
    }
}

#[test]
fn a_server_that_hangs_in_a_call_is_started_again_and_one_that_is_late_is_not() {
    for (tool, ending, next) in [
        ("stuck", ", and then no ping: the connection to it was ended. The next call starts it again.", 3),
        ("silent", ".", 2),
    ] {
        let script = format!(
            "turns:\n  - {{tool_calls: [{{name: hostile__die, arguments: {{how: {tool}}}}}]}}\n  - {{tool_calls: [{{name: hostile__echo, arguments: {{text: hi}}}}]}}\ndefault: {{text: Done.}}\n"
        );
        let cli = TestCli::with_script("", &script);
        configure(&cli, &(hostile(&cli.sandbox, "hostile", "plain") + "call_seconds = 1\n"));
        listed(&cli);
        let said = results(&cli, "Call it");
        assert_eq!(said[0], format!("The MCP server hostile: it did not answer within 1 s{ending}"));
        assert!(said[1].starts_with(&format!("echo hi of start {next}, ")), "{said:?}");
    }
}

#[test]
fn a_list_without_a_proper_end_is_kept_as_far_as_it_goes() {
    let cli = TestCli::with_script("", "default: {text: Done.}");
    configure(&cli, &(hostile(&cli.sandbox, "circle", "circle") + &hostile(&cli.sandbox, "empty", "")));
    let tools = |row: &Value| -> Vec<String> {
        let tools = row["tools"].as_array().expect("tools").iter();
        tools.filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    };
    let listed: Vec<Vec<String>> = listed(&cli).iter().map(tools).collect();
    assert_eq!(listed, [["circle__die", "circle__echo"], ["empty__die", "empty__echo"]]);
}

#[test]
fn an_odd_tool_or_part_of_an_answer_costs_no_others() {
    let cli = TestCli::with_script("", &script("hostile__bare", "{}"));
    configure(&cli, &hostile(&cli.sandbox, "hostile", "odd"));
    let rows = listed(&cli);
    let names: Vec<&str> =
        rows[0]["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["hostile__bare", "hostile__echo"]);
    let ran = cli.print(&["-p", "Call it", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("are left out: lost, one without a name"), "{}", ran.stderr);
    assert_eq!(cli.last_result(), "[a part was left out that cannot be read: smell]\nRoses.");
}

#[test]
fn an_answer_that_is_not_quite_one_is_not_waited_for() {
    let kinds = ["not a number", "deep", "half", "error", "list", "shape"];
    let call = |kind: &&str| format!("{{name: mangled__echo, arguments: {{text: {kind}}}}}");
    let calls: Vec<String> = kinds.iter().map(call).collect();
    let script = format!(
        "turns:\n  - {{tool_calls: [{}, {{name: mangled__filter, arguments: {{filter_id: '7'}}}}]}}\ndefault: {{text: Done.}}\n",
        calls.join(", ")
    );
    let cli = TestCli::with_script("", &script);
    configure(&cli, &hostile(&cli.sandbox, "mangled", "mangled"));
    listed(&cli);
    assert_eq!(
        results(&cli, "Call it"),
        [
            "not a number",
            "deep",
            "half a character: \u{fffd}",
            "The MCP server mangled: it answered with an error: only words.",
            "list",
            "The MCP server mangled: it does not speak the protocol: it answered a request with something else.",
            // The argument has a name that every provider takes, and the server gets its own.
            r#"{"filter[id]": "7"}"#,
        ]
    );
}

/// A process that ends with the test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A simulator in a process of its own, and the requests that it got.
pub struct RecordingSimulator {
    _process: Process,
    pub url: String,
    log: PathBuf,
}

impl RecordingSimulator {
    pub fn start(sandbox: &Sandbox, script: &str) -> Self {
        let script = sandbox.write("script.yaml", script);
        let log = script.with_file_name("requests.jsonl");
        let mut command = sandbox.command(&["simulator", "--script"]);
        command.arg(&script).arg("--log-requests").arg(&log);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary can be run");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").expect("the address").to_owned();
        RecordingSimulator { _process: Process(child), url, log }
    }

    /// The bodies of the requests.
    pub fn bodies(&self) -> Vec<Value> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let body = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["body"].take();
        log.lines().map(body).collect()
    }

    /// Tools and system prompt of each request, as they were sent.
    pub fn beginnings(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let beginning = |line: &str| {
            let (_, body) = line.split_once("\"body\":").expect("a body");
            let end = body.find("\"messages\":").expect("messages");
            let tools = body.find("\"tools\":").expect("tools");
            let system = body.find("\"system\":").expect("a system prompt");
            assert!(system < end && end < tools, "{body}");
            // What follows the tools tells one request from another.
            let after = body.rfind("\"diagnostics\":").unwrap_or(body.len());
            format!("{}{}", &body[..end], &body[tools..after])
        };
        log.lines().map(beginning).collect()
    }
}

#[test]
fn the_beginning_of_requests_stays_the_same_while_a_server_restarts_shuffles_and_adds_tools() {
    let cli = TestCli::with_script("", "default: {text: unused}");
    let answers = "turns:\n  - {repeat: 55, tool_calls: [{name: hostile__echo, arguments: {text: again}}]}\ndefault: {text: Done.}\n";
    let simulator = RecordingSimulator::start(&cli.sandbox, answers);
    let provider = format!(
        "model = \"claude-sonnet-5\"\nmap_tokens = 0\n[providers.anthropic]\nbase_url = \"{}/v1\"\n",
        simulator.url
    );
    cli.sandbox.write("config/config.toml", provider + &hostile(&cli.sandbox, "hostile", "restless"));
    listed(&cli);
    let ran = cli.print(&["-p", "Call it", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let beginnings = simulator.beginnings();
    assert!(beginnings.len() > 50, "{} requests", beginnings.len());
    assert!(beginnings[0].contains("hostile__tree"), "{}", beginnings[0]);
    for (number, beginning) in beginnings.iter().enumerate() {
        assert_eq!(*beginning, beginnings[0], "request {number}");
    }
    // The server was started again and again, and the person is told what waits.
    let said = cli.last_result();
    assert!(!said.contains("of start 1,") && !said.contains("of start 2,"), "{said}");
    assert!(ran.stderr.contains("the MCP server hostile has other tools now"), "{}", ran.stderr);
    // A resumed conversation keeps the tools that it began with; a new one has the new ones.
    let count = beginnings.len();
    assert_eq!(cli.print(&["--continue", "-p", "Hello", "--yes"]).code, Some(0));
    assert_eq!(simulator.beginnings()[count], beginnings[0]);
    assert_eq!(cli.print(&["-p", "Hello", "--yes"]).code, Some(0));
    assert!(simulator.beginnings().last().expect("a request").contains("hostile__new1"));
}

/// How many prompts a conversation with a server that changes has.
const PROMPTS: usize = 50;

/// How long the message about one more tool of it is at most, in bytes.
const MAX_ADDITION_BYTES: usize = 600;

/// The requests of one conversation, in one process, that calls a tool of the server with each prompt: the
/// bytes of their beginnings, and their bodies.
fn conversation_with(server: &str, model: &str, loading: &str) -> (Vec<String>, Vec<Value>) {
    let cli = TestCli::with_script("", "default: {text: unused}");
    let (tool, arguments) = match loading {
        "search" => ("mcp_call", "{tool: changing__echo, arguments: {text: fine}}"),
        _ => ("changing__echo", "{text: fine}"),
    };
    let simulator = RecordingSimulator::start(
        &cli.sandbox,
        &format!(
            "turns:\n  - {{when: {{contains: Call it}}, repeat: always, tool_calls: [{{name: {tool}, arguments: {arguments}}}]}}\ndefault: {{text: Done.}}\n"
        ),
    );
    let script = cli.sandbox.write("changing.py", CHANGING_SERVER);
    let starts = script.with_file_name("starts");
    let settings = format!(
        "model = \"{model}\"\nmap_tokens = 0\nmcp_tools = \"{loading}\"\n[providers.anthropic]\nbase_url = \"{}/v1\"\n[mcp_servers.changing]\ncommand = \"python3\"\nargs = [{script:?}, \"{server}\", {starts:?}]\nstart_seconds = 60\n",
        simulator.url
    );
    cli.sandbox.write("config/config.toml", settings);
    listed(&cli);
    let mut command = cli.command(&["rpc", "--yes"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process(command.spawn().expect("the binary can be run"));
    let mut input = process.0.stdin.take().expect("it is piped");
    let mut lines = BufReader::new(process.0.stdout.take().expect("it is piped")).lines();
    for number in 0..PROMPTS {
        let prompt =
            serde_json::json!({"id": number, "type": "prompt", "message": format!("Call it: {number}")});
        writeln!(input, "{prompt}").expect("it reads");
        let is_end = |line: &String| line.contains("\"type\":\"agent_end\"");
        let end = lines.by_ref().map(|line| line.expect("a line")).find(is_end);
        assert!(end.is_some(), "{server}, {model}, {loading}: it ended at prompt {number}");
    }
    (simulator.beginnings(), simulator.bodies())
}

/// The blocks of the messages without the marks of the cache, and how many of them are read from it later.
fn cached_blocks(body: &Value) -> (Vec<String>, usize) {
    let (mut blocks, mut cached) = (Vec::new(), 0);
    for message in body["messages"].as_array().expect("messages") {
        let text = [message["content"].clone()];
        for block in message["content"].as_array().map_or(&text[..], |blocks| blocks) {
            let mut block = block.clone();
            let mark = block.as_object_mut().and_then(|block| block.remove("cache_control"));
            blocks.push(format!("{} {} {block}", message["role"], message["clear_at"]));
            cached = if mark.is_some() { blocks.len() } else { cached };
        }
    }
    (blocks, cached)
}

#[test]
fn a_server_that_always_changes_costs_hardly_more_than_a_quiet_one() {
    let cases = ["claude-sonnet-5-5", "claude-sonnet-5"]
        .into_iter()
        .flat_map(|model| ["all", "search"].map(|loading| (model, loading)));
    for (model, loading) in cases {
        let sizes = ["quiet", "changing"].map(|server| {
            let (beginnings, bodies) = conversation_with(server, model, loading);
            assert_eq!(beginnings.len(), 2 * PROMPTS, "{server}, {model}, {loading}");
            for (number, beginning) in beginnings.iter().enumerate() {
                assert_eq!(*beginning, beginnings[0], "{server}, {model}, {loading}: request {number}");
            }
            let blocks: Vec<(Vec<String>, usize)> = bodies.iter().map(cached_blocks).collect();
            for (number, pair) in blocks.windows(2).enumerate() {
                let [(before, cached), (after, _)] = pair else { continue };
                assert_eq!(
                    before[..*cached],
                    after[..*cached],
                    "{server}, {model}, {loading}: request {number}"
                );
            }
            let last = bodies.last().expect("a request").to_string();
            (last.len(), last.matches("\"tool_addition\"").count())
        });
        let [(quiet, none), (changing, additions)] = sizes;
        assert_eq!(none, 0);
        let is_told = model == "claude-sonnet-5-5" && loading == "all";
        assert_eq!(additions, if is_told { 16 } else { 0 }, "{model}, {loading}");
        let allowed = quiet * 11 / 10 + additions * MAX_ADDITION_BYTES;
        assert!(changing <= allowed, "{model}, {loading}: {changing} bytes, and {quiet} with a quiet server");
    }
}

#[test]
fn servers_are_added_adopted_and_removed() {
    let cli = TestCli::with_script("", &script("echo__echo", "{text: hi}"));
    let hostile = cli.sandbox.write("hostile.py", HOSTILE_SERVER);
    let path = cli.sandbox.config().join("config.toml");
    let before = fs::read_to_string(&path).expect("the settings");
    let (server, starts) =
        (hostile.display().to_string(), hostile.with_file_name("starts").display().to_string());
    let program = ["--", "python3", &server, "plain", &starts];
    let added = cli.print(&[&["mcp", "add", "echo"], &program[..]].concat());
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert_eq!((&listed(&cli)[0]["name"], &listed(&cli)[0]["state"]), (&"echo".into(), &"ready".into()));
    assert_eq!(cli.print(&["-p", "Call it", "--yes"]).code, Some(0));
    assert!(cli.last_result().starts_with("echo hi of start "), "{}", cli.last_result());
    // What is there already is not replaced.
    let again = cli.print(&["mcp", "add", "echo", "--url", "https://example.com/mcp"]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(again.stderr.contains("there is a server echo already"), "{}", again.stderr);
    assert_eq!(cli.print(&["mcp", "remove", "echo"]).code, Some(0));
    assert_eq!(fs::read_to_string(&path).expect("the settings").trim_end(), before.trim_end());
    // A server in a file of the project is shown, and runs only once the person has taken it over.
    let marker = hostile.with_file_name("starts-project");
    let entry = serde_json::json!({"mcpServers": {"shared": {"command": "python3", "args": [server, "plain", marker]}}});
    fs::write(cli.sandbox.work().join(".mcp.json"), entry.to_string()).expect("a file");
    let rows = listed(&cli);
    assert_eq!((&rows[0]["name"], &rows[0]["state"]), (&"shared".into(), &"not_used".into()), "{rows:?}");
    assert_eq!(cli.print(&["-p", "Hello"]).code, Some(0));
    assert!(!marker.exists(), "it was started");
    assert_eq!(cli.print(&["mcp", "adopt", "nobody"]).code, Some(1));
    let adopted = cli.print(&["mcp", "adopt", "shared"]);
    assert_eq!(adopted.code, Some(0), "{}", adopted.stderr);
    assert!(adopted.stderr.contains("it runs or reaches: python3"), "{}", adopted.stderr);
    assert_eq!(listed(&cli)[0]["state"], "ready");
    assert!(marker.exists());
}

#[test]
fn flags_of_one_kind_of_server_are_refused_for_the_other() {
    let cli = TestCli::with_script("", "default: {text: Done.}");
    let path = cli.sandbox.config().join("config.toml");
    let before = fs::read_to_string(&path).expect("the settings");
    let (program, address) = (&["--", "x"][..], &["--url", "https://example.com/mcp"][..]);
    for (flags, rest, other) in [
        (&["--header", "A=b"][..], program, "[COMMAND]..."),
        (&["--bearer-token-env", "A"], program, "[COMMAND]..."),
        (address, program, "[COMMAND]..."),
        (&["--env", "A=b"], address, "--url <URL>"),
        (&["--pass-env", "A"], address, "--url <URL>"),
        (&["--pass-environment", "A"], address, "--url <URL>"),
        (&["--sandbox"], address, "--url <URL>"),
    ] {
        let ran = cli.print(&[&["mcp", "add", "web"], flags, rest].concat());
        let expected = format!("cannot be used with '{other}'");
        assert!(ran.code == Some(2) && ran.stderr.contains(&expected), "{flags:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&flags[0].replace("environment", "env")), "{flags:?}: {}", ran.stderr);
    }
    assert_eq!(fs::read_to_string(&path).expect("the settings"), before);
}

#[test]
fn servers_of_other_agents_are_found_from_a_subfolder_and_get_names_that_tools_can_have() {
    let cli = TestCli::with_script("", "default: {text: Done.}");
    let work = cli.sandbox.work();
    fs::create_dir_all(work.join(".git")).expect("a folder");
    fs::create_dir_all(work.join("inner/deep")).expect("a folder");
    fs::create_dir_all(work.join(".vscode")).expect("a folder");
    let entry = r#"{"mcpServers": {"my server.v2": {"command": "x", "args": ["${NO_SUCH:-none}"]}}}"#;
    fs::write(work.join(".mcp.json"), entry).expect("a file");
    fs::write(work.join(".vscode/mcp.json"), "{\"servers\": ").expect("a file");
    let inner = work.join("inner/deep");
    let folder = ["--dir", inner.to_str().expect("a path")];
    let print = |args: &[&str]| {
        let ran = cli.print(&[args, &folder[..]].concat());
        (ran.code, String::from_utf8_lossy(&ran.stdout).into_owned(), ran.stderr)
    };
    let rows: Vec<Value> = serde_json::from_str(&print(&["mcp", "--json"]).1).expect("JSON");
    let told = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        (text("name"), text("state"), text("adopted_as"), text("error"))
    };
    let reason = "is no JSON: EOF while parsing a value at line 1 column 12";
    assert_eq!(
        rows.iter().map(told).collect::<Vec<_>>(),
        [
            ("my server.v2".into(), "not_used".into(), "my-server-v2".into(), String::new()),
            (String::new(), "unreadable_file".into(), String::new(), reason.into()),
        ]
    );
    let (_, text, _) = print(&["mcp"]);
    assert!(text.contains("`hardpan mcp adopt my-server-v2` takes it over"), "{text}");
    assert!(text.contains(&format!("mcp.json\n  cannot be used: it {reason}")), "{text}");
    let (code, _, error) = print(&["mcp", "adopt", "other"]);
    assert!(code == Some(1) && error.contains(".vscode/mcp.json is no JSON"), "{error}");
    let (code, _, said) = print(&["mcp", "adopt", "my server.v2"]);
    assert!(
        code == Some(0) && said.contains("the server my server.v2 is called my-server-v2 here"),
        "{said}"
    );
    let (code, _, said) = print(&["mcp", "adopt", "my-server-v2", "--as", "second"]);
    assert!(code == Some(0) && said.contains("the server my server.v2 is called second here"), "{said}");
    let settings = fs::read_to_string(cli.sandbox.config().join("config.toml")).expect("the settings");
    for name in ["my-server-v2", "second"] {
        let table = format!("[mcp_servers.{name}]\ncommand = \"x\"\nargs = [\"none\"]");
        assert!(settings.contains(&table), "{settings}");
    }
}

#[test]
fn servers_that_nobody_here_wrote_list_and_run_their_tools() {
    let Some(folder) = real_servers() else { return };
    let bin = |name: &str| folder.join("node_modules/.bin").join(name);
    let cli = TestCli::with_script("", &script("files__read_text_file", "{path: a.txt}"));
    let work = cli.sandbox.work();
    let memory = cli.sandbox.write("memory.jsonl", "");
    let time = folder.join("python/bin/mcp-server-time");
    configure(
        &cli,
        &format!(
            "[mcp_servers.everything]\ncommand = {:?}\nstart_seconds = 60\n[mcp_servers.files]\ncommand = {:?}\nargs = [{work:?}]\nstart_seconds = 60\n[mcp_servers.memory]\ncommand = {:?}\nenv = {{ MEMORY_FILE_PATH = {memory:?} }}\nstart_seconds = 60\n[mcp_servers.time]\ncommand = {time:?}\nstart_seconds = 60\n",
            bin("mcp-server-everything"),
            bin("mcp-server-filesystem"),
            bin("mcp-server-memory"),
        ),
    );
    let rows = listed(&cli);
    for (row, (server, tool)) in rows.iter().zip([
        ("everything", "everything__echo"),
        ("files", "files__read_text_file"),
        ("memory", "memory__create_entities"),
        ("time", "time__get_current_time"),
    ]) {
        assert_eq!((row["name"].as_str(), row["state"].as_str()), (Some(server), Some("ready")), "{row}");
        let tools = row["tools"].as_array().expect("tools");
        assert!(tools.iter().any(|listed| listed["name"] == tool), "{row}");
    }
    let ran = cli.print(&["-p", "Call it", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(cli.last_result().starts_with("one\n"), "{}", cli.last_result());
}

#[test]
fn a_server_on_the_network_lists_and_runs_its_tools_and_may_come_back() {
    let Some(folder) = real_servers() else { return };
    // Nobody else has the port: the listener goes only when the server is about to start.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let start = || {
        let mut command = Command::new(folder.join("node_modules/.bin/mcp-server-everything"));
        command
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = Process(command.spawn().expect("the server can be run"));
        let listens = (0..1200).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        assert!(listens, "the server does not listen");
        server
    };
    let cli = TestCli::with_script("", &script("web__echo", "{message: over the network}"));
    configure(&cli, &format!("[mcp_servers.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n"));
    drop(listener);
    let server = start();
    let rows = listed(&cli);
    assert_eq!(
        (rows[0]["name"].as_str(), rows[0]["state"].as_str()),
        (Some("web"), Some("ready")),
        "{rows:?}"
    );
    let call = || {
        let ran = cli.print(&["-p", "Call it", "--yes"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        cli.last_result()
    };
    assert!(call().contains("over the network"));
    // While it is gone, calls fail with a reason, and the conversation goes on.
    drop(server);
    let said = call();
    assert!(said.starts_with("The MCP server web: "), "{said}");
    let _server = start();
    assert!(call().contains("over the network"));
}

//! Tools of MCP servers that no request declares: found by `tool_search`, called by `mcp_call`.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use super::mcp::{RecordingSimulator, configure, listed};
use super::test_cli::{Terminal, TestCli};

const SERVER: &str = include_str!("../../../../tests/mcp/many_tools_server.py");

/// Settings of a server with so many tools. `files` are those that it waits for.
fn tracker(cli: &TestCli, tools: usize, files: &[&str]) -> String {
    let script = cli.sandbox.write("many_tools_server.py", SERVER);
    let files: String = files.iter().map(|file| format!(", {:?}", cli.sandbox.work().join(file))).collect();
    format!(
        "[mcp_servers.tracker]\ncommand = \"python3\"\nargs = [{script:?}, \"{tools}\"{files}]\nstart_seconds = 60\n"
    )
}

/// A line at the beginning of the settings, before their first table.
fn set(cli: &TestCli, line: &str) {
    let path = cli.sandbox.config().join("config.toml");
    let before = fs::read_to_string(&path).expect("the settings");
    fs::write(path, format!("{line}\n{before}")).expect("the settings");
}

/// A simulator whose requests are written down, as the provider of these settings.
fn record(cli: &TestCli, answers: &str, servers: &str) -> RecordingSimulator {
    let simulator = RecordingSimulator::start(&cli.sandbox, answers);
    let provider = format!(
        "model = \"claude-sonnet-5\"\nmap_tokens = 0\n[providers.anthropic]\nbase_url = \"{}/v1\"\n",
        simulator.url
    );
    cli.sandbox.write("config/config.toml", provider + servers);
    simulator
}

const SEARCH_AND_CALL: &str = "
turns:
  - {when: {contains: Call it}, repeat: always, tool_calls: [{name: tool_search, arguments: {query: create an issue}}]}
  - {when: {has_tool_result: tool_search}, repeat: always, tool_calls: [{name: mcp_call, arguments: {tool: tracker__create_issue, arguments: {project: web, title: Typo, body: null}}}]}
  - {when: {contains: Call wrongly}, repeat: always, tool_calls: [{name: mcp_call, arguments: {tool: tracker__create_issue, arguments: {project: web}}}]}
  - {when: {contains: Call nothing}, repeat: always, tool_calls: [{name: mcp_call, arguments: {tool: tracker__fly, arguments: {}}}]}
  - {when: {contains: Call in words}, repeat: always, tool_calls: [{name: mcp_call, arguments: {tool: tracker.get_issue, arguments: '{\"project\": \"web\", \"number\": 7}'}}]}
default: {text: Done.}
";

const DONE: &str = r#"create_issue {"project": "web", "title": "Typo"}: done"#;

#[test]
fn many_tools_are_found_and_called_and_no_request_declares_them() {
    let cli = TestCli::with_script("", "default: {text: unused}");
    let simulator = record(&cli, SEARCH_AND_CALL, &tracker(&cli, 80, &[]));
    let rows = listed(&cli);
    assert_eq!(
        (&rows[0]["loading"], rows[0]["tools"].as_array().map(Vec::len)),
        (&"on_demand".into(), Some(80))
    );
    let text = cli.print(&["mcp"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let last = text.lines().last().expect("a line");
    assert!(
        last.starts_with("80 tools, ") && last.contains("tokens: loaded on demand; all at once would cost $")
    );
    assert!(text.contains("(says that it only reads)"), "{text}");

    let ran = cli.print(&["-p", "Call it", "--yes", "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(cli.last_result(), DONE);
    let events: Vec<Value> = String::from_utf8_lossy(&ran.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("an event"))
        .collect();
    let started: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_start")
        .filter_map(|event| event["tool_name"].as_str())
        .collect();
    assert_eq!(started, ["tool_search", "tracker__create_issue"]);
    let beginnings = simulator.beginnings();
    for beginning in &beginnings {
        assert_eq!(beginning, &beginnings[0]);
        assert!(beginning.contains("- create_issue: Create a new issue in a project"), "{beginning}");
        assert!(beginning.contains("\"name\":\"mcp_call\"") && !beginning.contains("\"name\":\"tracker__"));
    }
    // What `hardpan context` shows is what is sent.
    let shown = cli.print(&["context", "--json"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("tool_search") && !shown.contains("tracker__create_issue"), "{shown}");
}

#[test]
fn calls_of_tools_on_demand_ask_have_rules_and_are_checked() {
    let cli = TestCli::with_script("mcp_tools = \"search\"", SEARCH_AND_CALL);
    configure(&cli, &tracker(&cli, 8, &[]));
    let ran = cli.print(&["-p", "Call it"]);
    assert!(
        ran.stderr.contains("· tracker__create_issue ") && !ran.stderr.contains("mcp_call"),
        "{}",
        ran.stderr
    );
    let said = cli.last_result();
    assert!(said.contains("nobody is there to ask") && said.contains("mcp(tracker.create_issue)"), "{said}");
    // Nobody is asked about a call that is not made.
    cli.print(&["-p", "Call wrongly"]);
    let said = cli.last_result();
    let expected = "tracker__create_issue was not called: title is missing. The schema of its arguments: {\"type\":\"object\"";
    assert!(said.starts_with(expected), "{said}");
    cli.print(&["-p", "Call nothing"]);
    assert!(
        cli.last_result().starts_with("There is no tool \"tracker__fly\" here."),
        "{}",
        cli.last_result()
    );
    cli.print(&["-p", "Call in words", "--yes"]);
    assert_eq!(cli.last_result(), r#"get_issue {"number": 7, "project": "web"}: done"#);
    set(&cli, "allow = [\"mcp(tracker.*)\"]\ndeny = [\"mcp(tracker.get_issue)\"]");
    assert_eq!(cli.print(&["-p", "Call it"]).code, Some(0));
    assert_eq!(cli.last_result(), DONE);
    cli.print(&["-p", "Call in words", "--yes"]);
    assert!(
        cli.last_result().contains("the settings deny it (mcp(tracker.get_issue))"),
        "{}",
        cli.last_result()
    );
}

#[test]
fn few_tools_are_declared_and_settings_decide() {
    let cli = TestCli::with_script("", SEARCH_AND_CALL);
    configure(&cli, &tracker(&cli, 4, &[]));
    assert_eq!(listed(&cli)[0]["loading"], "at_once");
    set(&cli, "mcp_tools = \"search\"");
    assert_eq!(listed(&cli)[0]["loading"], "on_demand");
    configure(&cli, "tools = \"all\"\n");
    assert_eq!(listed(&cli)[0]["loading"], "at_once", "a server's own setting counts more");
}

#[test]
fn requests_declare_no_more_tools_than_the_provider_takes() {
    for (setting, tools, is_told, of_servers) in
        [("all", [80, 60], true, 60), ("auto", [80, 60], false, 0), ("all", [50, 40], false, 90)]
    {
        let cli = TestCli::with_script("", "default: {text: unused}");
        let simulator = RecordingSimulator::start(&cli.sandbox, "default: {text: Done.}");
        let other = tracker(&cli, tools[1], &[]).replace("mcp_servers.tracker", "mcp_servers.other");
        let settings = format!(
            "model = \"gpt-5.5\"\nmcp_tools = \"{setting}\"\nmap_tokens = 0\n[providers.openai]\nbase_url = \"{}/v1\"\n",
            simulator.url
        );
        cli.sandbox.write("config/config.toml", settings + &tracker(&cli, tools[0], &[]) + &other);
        let key = r#"{"providers": [{"id": "openai", "key_env": ["OTHER_TOKEN"]}]}"#;
        cli.sandbox.write("config/models.json", key);
        listed(&cli);
        let ran = cli.print(&["-p", "Hello", "--yes"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let told = "at most 128 tools: those of MCP servers (tracker) are found by tool_search";
        assert_eq!(ran.stderr.contains(told), is_told, "{setting}: {}", ran.stderr);
        let bodies = simulator.bodies();
        let declared = bodies[0]["tools"].as_array().expect("tools").iter();
        let names = declared.filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()));
        assert_eq!(names.filter(|name| name.contains("__")).count(), of_servers, "{setting}");
    }
}

#[test]
fn a_resumed_conversation_loads_tools_as_it_began() {
    let cli = TestCli::with_script("", "default: {text: unused}");
    let simulator = record(&cli, SEARCH_AND_CALL, &tracker(&cli, 12, &[]));
    set(&cli, "mcp_tools = \"search\"");
    assert_eq!(cli.print(&["-p", "Call it", "--yes"]).code, Some(0));
    let path = cli.sandbox.config().join("config.toml");
    let settings = fs::read_to_string(&path).expect("the settings").replace("\"search\"", "\"all\"");
    fs::write(&path, settings).expect("the settings");
    assert_eq!(cli.print(&["--continue", "-p", "Call it", "--yes"]).code, Some(0));
    assert_eq!(cli.last_result(), DONE);
    let beginnings = simulator.beginnings();
    assert_eq!(beginnings.first(), beginnings.last());
    assert_eq!(cli.print(&["-p", "Hello", "--yes"]).code, Some(0));
    let last = simulator.beginnings().pop().expect("a request");
    assert!(last.contains("\"name\":\"tracker__create_issue\"") && !last.contains("mcp_call"), "{last}");
    // And the other way round.
    let settings = fs::read_to_string(&path).expect("the settings").replace("\"all\"", "\"search\"");
    fs::write(&path, settings).expect("the settings");
    assert_eq!(cli.print(&["--continue", "-p", "Hello", "--yes"]).code, Some(0));
    assert_eq!(simulator.beginnings().pop().expect("a request"), last);
}

#[test]
fn a_late_server_is_reached_at_once_and_the_beginning_of_requests_stays() {
    let cli = TestCli::with_script("", "default: {text: unused}");
    let answers = SEARCH_AND_CALL.replace(
        "turns:",
        "turns:\n  - {when: {contains: Begin}, tool_calls: [{name: write, arguments: {path: started, content: now}}]}\n  - {when: {has_tool_result: write}, tool_calls: [{name: tool_search, arguments: {query: create an issue}}]}",
    );
    let simulator = record(&cli, &answers, &tracker(&cli, 8, &["changed", "started"]));
    set(&cli, "mcp_tools = \"search\"");
    let ran = cli.print(&["-p", "Begin", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(cli.last_result(), DONE);
    let beginnings = simulator.beginnings();
    assert_eq!(beginnings.len(), 4);
    assert!(beginnings[0].contains("tracker__ (still starting: search for its tools)"), "{}", beginnings[0]);
    for beginning in &beginnings {
        assert_eq!(beginning, &beginnings[0]);
    }
}

#[test]
fn a_server_that_changed_the_prefix_is_named_with_tokens_and_dollars() {
    let answers = "turns:\n  - {when: {contains: Call it}, tool_calls: [{name: tracker__create_issue, arguments: {project: web, title: Typo}}]}\n  - {when: {has_tool_result: tracker__create_issue}, text: It is created.}\ndefault: {text: That is all.}\n";
    let cli = TestCli::with_script("mcp_tools = \"all\"", answers);
    configure(&cli, &tracker(&cli, 8, &["changed"]));
    listed(&cli);
    let Some(mut terminal) = Terminal::open(&cli, &["--yes"]) else { return };
    terminal.say("Hello", "That is all.");
    cli.sandbox.write("work/changed", "");
    terminal.press("Call it\n");
    // The answer and the notice come in either order.
    let notice = "the MCP server tracker has other tools now (3 new or changed, 0 gone)";
    let is_there = |text: &str, terminal: &Terminal| terminal.screen().contains(text);
    let polls = (0..3000).take_while(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !(is_there(notice, &terminal) && is_there("It is created.", &terminal))
    });
    assert!(polls.count() < 3000, "{}", terminal.screen());
    terminal.say("/tools on tracker__merge_issue now", "from the next request on");
    terminal.say("Hello again", "That is all.");
    terminal.end();
    let why = cli.print(&["why", "--json"]);
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    let expected = "the MCP server tracker changed its tools (2 added, 1 changed)";
    assert!(why.contains(expected) && why.contains('$'), "{why}");
    let cost = cli.print(&["cost", "--json"]);
    let cost = String::from_utf8_lossy(&cost.stdout).into_owned();
    assert!(cost.contains("MCP server tracker"), "{cost}");
    let audit = cli.print(&["audit", "--json", &cli.data().join("sessions").display().to_string()]);
    let audit = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert!(audit.contains("MCP server") && audit.contains(expected), "{audit}");
}

#[test]
fn a_server_whose_part_of_the_searched_list_changed_is_named_as_well() {
    let answers = "turns:\n  - {when: {contains: Call it}, tool_calls: [{name: mcp_call, arguments: {tool: tracker__create_issue, arguments: {project: web, title: Typo}}}]}\n  - {when: {has_tool_result: mcp_call}, text: It is created.}\ndefault: {text: That is all.}\n";
    let cli = TestCli::with_script("mcp_tools = \"search\"", answers);
    configure(&cli, &tracker(&cli, 8, &["changed"]));
    listed(&cli);
    let Some(mut terminal) = Terminal::open(&cli, &["--yes"]) else { return };
    terminal.say("Hello", "That is all.");
    cli.sandbox.write("work/changed", "");
    terminal.say("Call it", "It is created.");
    // The word that the list is another one comes after the answer.
    let learned = || {
        let tools = listed(&cli);
        tools[0]["tools"].as_array().is_some_and(|tools| tools.len() == 10)
    };
    let polls = (0..300).take_while(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !learned()
    });
    assert!(polls.count() < 300);
    // With the tools that requests declare, the list is the new one.
    terminal.say("/tools off write now", "from the next request on");
    terminal.say("Hello again", "That is all.");
    terminal.end();
    let expected = "the MCP server tracker changed its tools (in the list of tool_search)";
    for command in
        [&["why", "--json"][..], &["audit", "--json", &cli.data().join("sessions").display().to_string()]]
    {
        let said = cli.print(command);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn sub_agents_find_and_call_the_tools_that_they_may_use() {
    let helper = "---\ndescription: files\ntools: read, tracker__create_issue\n---\nYou file things.\n";
    for (agent, prefix) in
        [("default", "own"), ("default", "shared"), ("helper", "own"), ("helper", "shared")]
    {
        // An agent with a beginning of its own declares the few tools that it may use.
        let is_declared = (agent, prefix) == ("helper", "own");
        let call = |tool: &str, arguments: &str| match is_declared {
            true => format!("{{name: tracker__{tool}, arguments: {arguments}}}"),
            false => {
                format!("{{name: mcp_call, arguments: {{tool: tracker__{tool}, arguments: {arguments}}}}}")
            }
        };
        let (create, delete) = (
            call("create_issue", "{project: web, title: Typo}"),
            call("get_issue", "{project: web, number: 7}"),
        );
        let search = match is_declared {
            true => String::new(),
            false => "  - {when: {contains: File the typo}, tool_calls: [{name: tool_search, arguments: {query: create an issue}}]}\n".to_owned(),
        };
        let answers = format!(
            "turns:\n  - {{when: {{contains: Delegate it}}, tool_calls: [{{name: task, arguments: {{agent: {agent}, task: File the typo.}}}}]}}\n{search}  - {{undeclared: true, tool_calls: [{create}]}}\n  - {{undeclared: true, tool_calls: [{delete}]}}\n  - {{text: It is filed.}}\ndefault: {{text: Done.}}\n"
        );
        let config = format!("mcp_tools = \"search\"\nsubagents = \"on\"\n[task]\nprefix = \"{prefix}\"\n");
        let cli = TestCli::with_script(&config, &answers);
        cli.sandbox.write("config/agents/helper.md", helper);
        configure(&cli, &tracker(&cli, 80, &[]));
        listed(&cli);
        let ran = cli.print(&["-p", "Delegate it", "--yes"]);
        assert_eq!(ran.code, Some(0), "{agent}, {prefix}: {}", ran.stderr);
        assert!(cli.last_result().contains("It is filed."), "{agent}, {prefix}: {}", cli.last_result());
        let results = results_of_tasks(&cli);
        assert!(results.iter().any(|said| said == DONE), "{agent}, {prefix}: {results:?}");
        let may_read = agent == "default";
        let last = results.last().expect("a result");
        let is_read = last == r#"get_issue {"number": 7, "project": "web"}: done"#;
        assert_eq!(is_read, may_read, "{agent}, {prefix}: {results:?}");
    }
}

/// What the calls of the sub-agents of all conversations were answered with.
fn results_of_tasks(cli: &TestCli) -> Vec<String> {
    let mut results = Vec::new();
    let mut folders = vec![cli.data().join("sessions")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if folder.extension().is_some_and(|extension| extension == "tasks") {
                let text = fs::read_to_string(&path).expect("a session");
                let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let results_in = lines.filter(|line| line["message"]["role"] == "tool_result");
                results
                    .extend(results_in.filter_map(|line| {
                        line["message"]["content"][0]["text"].as_str().map(str::to_owned)
                    }));
            }
        }
    }
    results
}

#[test]
fn a_question_shows_the_inner_call_and_the_servers_claim() {
    let cli = TestCli::with_script("mcp_tools = \"search\"", SEARCH_AND_CALL);
    configure(&cli, &tracker(&cli, 8, &[]));
    listed(&cli);
    let Some(mut terminal) = Terminal::open(&cli, &[]) else { return };
    terminal.say("Call in words", "tracker__get_issue");
    terminal.expect("number: 7");
    terminal.expect("The server says that it only reads.");
    terminal.expect("mcp(tracker.get_issue) until you leave");
    terminal.say("y", "Done.");
    terminal.say("Call it", "tracker__create_issue");
    terminal.expect("title: Typo");
    terminal.say("n", "Done.");
    let screen = terminal.end();
    assert_eq!(screen.matches("The server says that it only reads.").count(), 1, "{screen}");
}

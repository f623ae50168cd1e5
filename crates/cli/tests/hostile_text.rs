//! Text that steers terminals and readers, from everywhere that text comes from: no command prints
//! it, neither to a terminal nor into a pipe.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::process::{Command, Stdio};

use hardpan_test_support::{ReceivedRequest, TestResponse, TestServer};
use serde_json::{Value, json};
use support::{Sandbox, script_program};

/// Colours, the clipboard, a link, the same as C1, directions, line separators, and what looks like a
/// question.
const HOSTILE: &str = "evil\u{1b}[31m\u{1b}]52;c;aGk=\u{7}\u{1b}]8;;http://e\u{1b}\\\u{9b}2J\u{9d}0;t\u{9c}\u{202e}\u{2066}\u{2028}\u{2029}\u{7f}\u{8}";

/// The same for a file's name, which has no slash.
const HOSTILE_NAME: &str =
    "evil\u{1b}[31m\u{1b}]52;c;aGk=\u{7}\u{9b}2J\u{9d}0;t\u{9c}\u{202e}\u{2066}\u{2028}\u{7f}.rs";

/// What Hardpan itself sends to a terminal.
const OWN_SEQUENCES: [&str; 5] = ["\u{1b}[K", "\u{1b}[2m", "\u{1b}[0m", "\u{1b}[?2004h", "\u{1b}[?2004l"];

/// The characters that must not come out, with some of the text around the first of them.
fn forbidden(output: &str) -> Option<String> {
    let is_forbidden = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let at = output.find(is_forbidden)?;
    let start = output[..at].char_indices().rev().nth(40).map_or(0, |(at, _)| at);
    Some(output[start..].chars().take(100).collect::<String>().escape_debug().to_string())
}

/// A folder, sessions and a provider full of hostile text.
struct HostileWorld {
    sandbox: Sandbox,
    _server: TestServer,
    session: String,
}

fn answer(number: usize, request: &ReceivedRequest) -> TestResponse {
    if request.method == "GET" {
        return TestResponse::json(200, &json!({"data": [{"id": HOSTILE}]}));
    }
    let call = json!({"index": 0, "id": format!("c{number}"), "function":
        {"name": "bash", "arguments": json!({"command": format!("printf '{HOSTILE}'")}).to_string()}});
    let is_result = request.body["messages"]
        .as_array()
        .and_then(|all| all.last())
        .is_some_and(|last| last["role"] == "tool");
    if request.contains("Call") && !is_result {
        let message = json!({"content": HOSTILE, "tool_calls": [call]});
        return TestResponse::json(
            200,
            &json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}),
        );
    }
    if request.contains("Fail") {
        return TestResponse::json(400, &json!({"error": {"message": HOSTILE}}));
    }
    let message = json!({"content": format!("{HOSTILE}\nsecond line"), "reasoning_content": HOSTILE});
    TestResponse::json(
        200,
        &json!({"id": HOSTILE, "model": HOSTILE, "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 2, HOSTILE: 1}}),
    )
}

impl HostileWorld {
    fn new() -> Self {
        let server = TestServer::start(answer);
        let sandbox = Sandbox::new();
        let config = format!(
            "provider = \"deepseek\"\nallow = [\"bash\"]\n[providers.deepseek]\nbase_url = \"{}\"\n",
            server.url()
        );
        sandbox.write("config/config.toml", config);
        for path in ["work/AGENTS.md", "work/README.md", "work/note.txt"] {
            sandbox.write(path, format!("# {HOSTILE}\n"));
        }
        let code = format!("/// {HOSTILE}\npub fn visible_name() {{}}\n");
        sandbox.write(&format!("work/src/{HOSTILE_NAME}"), &code);
        sandbox.write("work/src/main.rs", format!("fn main() {{ visible_name() }}\n// {HOSTILE}\n"));
        let git = |args: &[&str]| {
            let status = Command::new("git").args(args).current_dir(sandbox.work()).output().unwrap().status;
            assert!(status.success(), "git {args:?}");
        };
        git(&["init", "-q"]);
        git(&["-c", "user.name=a", "-c", "user.email=b", "commit", "-q", "--allow-empty", "-m", HOSTILE]);
        git(&["add", "."]);
        let mut world = HostileWorld { sandbox, _server: server, session: String::new() };
        let ran = world.pipe(&["-p", &format!("Call it {HOSTILE}"), "--output", "json"]);
        assert!(ran.contains("agent_end"), "{ran}");
        let sessions: Value = serde_json::from_str(&world.pipe(&["sessions", "--json"])).unwrap();
        world.session = sessions[0]["id"].as_str().unwrap().to_owned();
        world.pipe(&["--resume", &world.session, "-p", &format!("/name {HOSTILE}")]);
        world
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(args);
        command.env("DEEPSEEK_API_KEY", "the-key-of-the-test").stdin(Stdio::null());
        command
    }

    /// Everything that a command writes into pipes.
    fn pipe(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }

    /// Everything that it shows in a terminal, without what Hardpan itself sends there.
    fn terminal(&self, args: &[&str]) -> String {
        let plain = self.command(args);
        let words = [plain.get_program()].into_iter().chain(plain.get_args());
        let line: Vec<String> =
            words.map(|word| format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"))).collect();
        let mut command = Command::new("script");
        command.args(["-qefc", &line.join(" "), "/dev/null"]).current_dir(self.sandbox.work()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("SHELL", "/bin/sh").env("TERM", "xterm").stdin(Stdio::null());
        let shown = String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned();
        let shown = shown.replace('\r', "");
        OWN_SEQUENCES.iter().fold(shown, |shown, own| shown.replace(own, ""))
    }
}

/// Every command with arguments that make it print what others wrote.
fn commands(session: &str) -> Vec<(&'static str, Vec<Vec<String>>)> {
    let args = |all: &[&[&str]]| -> Vec<Vec<String>> {
        all.iter().map(|args| args.iter().map(|arg| (*arg).to_owned()).collect()).collect()
    };
    vec![
        (
            "request",
            args(&[
                &["request", "Hello", "note.txt"],
                &["request", HOSTILE, "note.txt", "--origins"],
                &["request", "Hello", "--send", "--json"],
                &["request", "Hello", "--send"],
                &["request", "Fail", "--send"],
            ]),
        ),
        ("context", args(&[&["context", "note.txt"], &["context", "note.txt", "--json"]])),
        ("snapshot", args(&[&["snapshot", HOSTILE, "note.txt"]])),
        ("map", args(&[&["map"], &["map", "--json"], &["map", "--overview"], &["map", HOSTILE]])),
        (
            "symbols",
            args(&[
                &["symbols", "visible_name"],
                &["symbols", "visible_name", "--json"],
                &["symbols", HOSTILE],
            ]),
        ),
        ("prompt", args(&[&["prompt"], &["prompt", HOSTILE]])),
        (
            "models",
            args(&[
                &["models", HOSTILE],
                &["models", "--check", "deepseek"],
                &["models", "--check", "deepseek", "--json"],
            ]),
        ),
        ("providers", args(&[&["providers"], &["providers", "--json"]])),
        (
            "extensions",
            args(&[
                &["extensions", "--extension", HOSTILE],
                &["extensions", "--json"],
                &["extensions", "new", HOSTILE],
                &["extensions", "forget", HOSTILE],
            ]),
        ),
        (
            "mcp",
            args(&[
                &["mcp"],
                &["mcp", "--json"],
                &["mcp", "list", "--dir", HOSTILE],
                &["mcp", "adopt", HOSTILE],
                &["mcp", "remove", HOSTILE],
                &["mcp", "login", HOSTILE],
                &["mcp", "logout", HOSTILE],
                &["mcp", "serve", "--dir", HOSTILE],
                &["mcp", "add", HOSTILE, "--url", HOSTILE],
            ]),
        ),
        ("simulator", args(&[&["simulator", "--script", HOSTILE], &["simulator", "--rules"]])),
        (
            "sessions",
            args(&[
                &["sessions"],
                &["sessions", "--json"],
                &["sessions", "show", session],
                &["sessions", "search", "evil"],
                &["sessions", "search", "evil", "--json"],
                &["sessions", "export", session],
                &["sessions", "export", session, "--format", "jsonl"],
                &["sessions", "export", session, "--format", "html"],
                &["sessions", "show", HOSTILE],
            ]),
        ),
        ("log", args(&[&["log"], &["log", "--json"], &["log", HOSTILE]])),
        ("cost", args(&[&["cost"], &["cost", "--json"]])),
        ("why", args(&[&["why"], &["why", "--json"], &["why", HOSTILE]])),
        ("commit", args(&[&["commit", "--dry-run"], &["commit", HOSTILE]])),
        (
            "import",
            args(&[
                &["import", HOSTILE, "--foreign"],
                &["import", "--list", "--all"],
                &["import", HOSTILE, "--foreign", "--json"],
            ]),
        ),
        ("audit", args(&[&["audit", HOSTILE], &["audit", "--json", HOSTILE]])),
        ("replay", args(&[&["replay", HOSTILE]])),
        ("rpc", args(&[&["rpc"]])),
        ("acp", args(&[&["acp"]])),
        ("trust", args(&[&["trust", HOSTILE]])),
        ("doctor", args(&[&["doctor"], &["doctor", "--json"], &["doctor", "--dir", HOSTILE]])),
        ("completions", args(&[&["completions", "bash"], &["completions", HOSTILE]])),
        ("man", args(&[&["man"]])),
        ("init", args(&[&["init", "--dir", HOSTILE], &["init", "--yes"], &["init", "--json"]])),
        ("key", args(&[&["key", HOSTILE]])),
        ("docs", args(&[&["docs", HOSTILE], &["docs"]])),
        (
            "",
            args(&[
                &["-p", "Call it"],
                &["-p", "Call it", "--output", "json"],
                &["-p", "Hello", "--hud"],
                &["-p", "Hello", "--hud", "--output", "json"],
                &["-p", "Fail"],
                &["-p", "Fail", "--output", "json"],
                &["--resume", session, "-p", "/session"],
                &["--resume", session, "-p", "/tree"],
                &["--resume", session, "-p", "/tree", "--output", "json"],
                &["--resume", session, "-p", "/context"],
                &["--resume", session, "-p", &format!("/{HOSTILE}")],
                &["--resume", HOSTILE, "-p", "Hello"],
                &["--model", HOSTILE, "-p", "Hello"],
                &[HOSTILE],
                &["--no-such", HOSTILE],
            ]),
        ),
    ]
}

#[test]
fn every_command_is_tried() {
    let help = Sandbox::new().text(&["--help"]);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| !line.is_empty()).filter_map(|line| {
        line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split_whitespace().next()
    });
    let tried: Vec<&str> = commands("").into_iter().map(|(name, _)| name).collect();
    let missing: Vec<&str> = names.filter(|name| *name != "help" && !tried.contains(name)).collect();
    assert!(missing.is_empty(), "add them to the table: {missing:?}");
    assert!(tried.len() > 15);
}

#[test]
fn no_command_writes_control_characters_into_a_pipe() {
    let world = HostileWorld::new();
    let mut evil = 0;
    for args in commands(&world.session).into_iter().flat_map(|(_, all)| all) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = world.pipe(&args);
        evil += usize::from(output.contains("evil"));
        assert_eq!(forbidden(&output), None, "{args:?}");
    }
    assert!(evil > 25, "only {evil} commands printed what is tested");
    // A log is read in a terminal, too.
    let mut logged = world.command(&["-p", "Call it", "--log", "log.txt"]);
    logged.env("HARDPAN_LOG", "trace").output().unwrap();
    let log = std::fs::read_to_string(world.sandbox.work().join("log.txt")).unwrap();
    assert!(log.contains("evil"), "{log}");
    assert_eq!(forbidden(&log), None);
}

#[test]
fn no_command_writes_control_characters_to_a_terminal() {
    if script_program().is_none() {
        return;
    }
    let world = HostileWorld::new();
    let mut evil = 0;
    let exact =
        vec![vec!["request".to_owned(), "Hello".to_owned(), "note.txt".to_owned(), "--json".to_owned()]];
    for args in commands(&world.session).into_iter().map(|(_, all)| all).chain([exact]).flatten() {
        // It reads its input to the end, which a terminal has not.
        if args == ["rpc"] || args == ["acp"] {
            continue;
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let shown = world.terminal(&args);
        evil += usize::from(shown.contains("evil"));
        assert_eq!(forbidden(&shown), None, "{args:?}");
    }
    assert!(evil > 25, "only {evil} commands printed what is tested");
}

#[test]
fn mistakes_in_settings_are_told_without_their_control_characters() {
    for (path, content) in [
        ("config/config.toml", format!("allow = [\"bash(x\u{9b}{}\"]\n", "\\u202e")),
        (
            "config/config.toml",
            format!("model = '{}'\n", HOSTILE.replace(['\u{1b}', '\u{7}', '\u{8}', '\u{7f}'], "")),
        ),
        ("config/config.toml", format!("# x\n{HOSTILE} = 1\n")),
        ("config/keys.toml", format!("{HOSTILE}\n")),
        ("config/models.json", format!("{{\"{HOSTILE}\": 1}}\n")),
        ("config/allowed", format!("{HOSTILE}\n")),
        ("config/prompts/system.md", HOSTILE.to_owned()),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write(path, &content);
        for args in [&["-p", "Hello"][..], &["request", "Hello"], &["models"], &["prompt"]] {
            let ran = sandbox.command(args).stdin(Stdio::null()).output().unwrap();
            let output =
                String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
            assert_eq!(forbidden(&output), None, "{path} {args:?}");
        }
    }
}

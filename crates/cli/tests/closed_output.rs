//! Whoever reads the output may go away at any moment (`hardpan … | head -1`), and a disk can be full:
//! no command panics. The commands are those that `--help` lists, so that a new one is tested without
//! being named here.

mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader};
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use test_cli::TestCli;

/// Calls that show more of what a command prints than its name alone does.
const CALLS: &[&[&str]] = &[
    &["--version"],
    &["models", "sonnet"],
    &["docs", "readme"],
    &["docs", "none"],
    &["request", "Hello"],
    &["request", "Hello", "--json"],
    &["request", "Hello", "--send"],
    &["request", "--snapshot", "none.json"],
    &["snapshot", "Hello"],
    &["symbols", "main"],
    &["audit", "none"],
    &["simulator", "--rules"],
    &["completions", "bash"],
    &["-p", "Hello"],
    &["-p", "Hello", "--output", "json"],
    &["-p", "Hello", "--hud"],
    &["-p", "/help"],
    &["-p", "/none"],
    &["no-such-command"],
];

/// Commands that go on until they are ended: their other calls are in [`CALLS`].
const ENDLESS: [&str; 1] = ["simulator"];

/// What a panic ends the process with.
const PANICKED: i32 = 101;

/// The end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// The help of a command.
fn help(cli: &TestCli, command: &[String]) -> String {
    let args: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
    let output = cli.command(&args).output().expect("it runs");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The commands below one that its help lists.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let names = listed.lines().take_while(|line| !line.is_empty());
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Every command and subcommand: called alone, with `--json` if it has that, and for its help.
fn calls(cli: &TestCli) -> Vec<Vec<String>> {
    let mut calls: Vec<Vec<String>> =
        CALLS.iter().map(|call| call.iter().map(|word| (*word).to_owned()).collect()).collect();
    let mut waiting: Vec<Vec<String>> = vec![Vec::new()];
    let mut found = 0;
    while let Some(command) = waiting.pop() {
        let text = help(cli, &command);
        let with = |word: &str| command.iter().cloned().chain([word.to_owned()]).collect::<Vec<String>>();
        waiting.extend(subcommands(&text).iter().map(|name| with(name)));
        found += 1;
        if command.len() < 2 {
            calls.push(with("--help"));
        }
        let is_endless = command.first().is_some_and(|name| ENDLESS.contains(&&**name));
        if !command.is_empty() && !is_endless {
            calls.push(command.clone());
            calls.extend(text.contains("--json\n").then(|| with("--json")));
        }
    }
    assert!(found > 25, "the commands of the help: {found}");
    calls
}

/// Runs every call on as many threads as there are processors.
fn for_each_call(cli: &TestCli, check: impl Fn(&[&str]) + Sync) {
    let calls = calls(cli);
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(call) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(&call.iter().map(String::as_str).collect::<Vec<_>>());
                }
            });
        }
    });
}

/// How a call ends whose output goes elsewhere.
fn run(cli: &TestCli, args: &[&str], stdout: Stdio, stderr: Stdio) -> Output {
    let mut command = cli.command(args);
    let output = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).output().expect("it runs");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code != PANICKED), "{args:?}: {words}");
    assert!(!words.contains("panicked"), "{args:?}: {words}");
    output
}

#[test]
fn no_command_panics_whatever_becomes_of_its_output() {
    let cli = TestCli::new("");
    for_each_call(&cli, |args| {
        let whole = run(&cli, args, Stdio::piped(), Stdio::piped());
        run(&cli, args, closed_pipe(), Stdio::piped());
        let unheard = run(&cli, args, Stdio::piped(), closed_pipe());
        assert_eq!(
            unheard.status.code(),
            whole.status.code(),
            "{args:?}: words that nobody reads change nothing"
        );
        if CALLS.contains(&args) {
            run(&cli, args, closed_pipe(), closed_pipe());
        }
        if whole.stdout.is_empty() {
            return;
        }
        // A full disk is told: what the reader should have got is not there.
        let full = OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let told = run(&cli, args, full.into(), Stdio::piped());
        // A server whose client cannot be written to has nobody to tell: it ends.
        let is_server = matches!(args.first(), Some(&("rpc" | "acp")));
        assert!(is_server || !told.status.success() && !told.stderr.is_empty(), "{args:?} on a full disk");
        read_one_line(&cli, args);
    });
}

/// `hardpan … | head -1`: the reader takes a line and goes.
fn read_one_line(cli: &TestCli, args: &[&str]) {
    let mut command = cli.command(args);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut first = String::new();
    let _ = BufReader::with_capacity(1, child.stdout.take().expect("a pipe")).read_line(&mut first);
    let output = child.wait_with_output().expect("it ends");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code != PANICKED), "{args:?}: {words}");
    assert!(!words.contains("panicked"), "{args:?}: {words}");
}

//! Whoever reads the output may go away at any moment (`hardpan … | head -1`), and a disk can be full:
//! no command panics. The commands are those that `--help` lists, so that a new one is tested without
//! being named here.

mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader};
use std::process::Stdio;
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
        calls.push(with("--help"));
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

#[test]
fn no_command_panics_if_its_output_is_closed() {
    let cli = TestCli::new("");
    for_each_call(&cli, |args| {
        let output = cli.command(args).stdin(Stdio::null()).stdout(closed_pipe()).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(PANICKED), "{args:?}: {words}");
        assert!(output.status.code().is_some() && !words.contains("panicked"), "{args:?}: {words}");
        let mut command = cli.command(args);
        let status = command.stdin(Stdio::null()).stdout(closed_pipe()).stderr(closed_pipe()).status();
        let code = status.expect("it runs").code();
        assert!(code.is_some_and(|code| code != PANICKED), "{args:?}, both closed: {code:?}");
    });
}

#[test]
fn words_that_nobody_reads_change_nothing() {
    let cli = TestCli::new("");
    for_each_call(&cli, |args| {
        let run = |stderr: Stdio| {
            let mut command = cli.command(args);
            command.stdin(Stdio::null()).stderr(stderr).output().expect("it runs").status.code()
        };
        let (closed, read) = (run(closed_pipe()), run(Stdio::piped()));
        assert_ne!(closed, Some(PANICKED), "{args:?}");
        assert_eq!(closed, read, "{args:?}");
    });
}

/// `hardpan … | head -1`: the reader takes a line and goes.
#[test]
fn a_reader_of_one_line_ends_no_command_in_a_panic() {
    let cli = TestCli::new("");
    for_each_call(&cli, |args| {
        let mut command = cli.command(args);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut first = String::new();
        let _ = BufReader::with_capacity(1, child.stdout.take().expect("a pipe")).read_line(&mut first);
        let output = child.wait_with_output().expect("it ends");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != PANICKED), "{args:?}: {words}");
        assert!(!words.contains("panicked"), "{args:?}: {words}");
    });
}

/// A full disk is an error that is told: what the reader should have got is not there.
#[test]
fn a_full_disk_is_told() {
    let cli = TestCli::new("");
    for_each_call(&cli, |args| {
        let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").expect("/dev/full"));
        let prints = !cli.command(args).stdin(Stdio::null()).output().expect("it runs").stdout.is_empty();
        let output = cli.command(args).stdin(Stdio::null()).stdout(full()).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != PANICKED), "{args:?}: {words}");
        if prints {
            assert!(!output.status.success() && !words.is_empty(), "{args:?}: {:?}", output.status);
        }
    });
}

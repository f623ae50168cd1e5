//! `HARDPAN_LOG` and `--log`: what the binary writes to its log, and what it never does.

mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use support::Sandbox;
use test_cli::TestCli;

/// The prompt of the runs below: the script answers it with a tool call.
const PROMPT: &str = "Edit it, whatever it is";

/// What [`TestCli::command`] has as a key.
const KEY: &str = "the-key-of-the-test";

/// The log that is written where no other is named.
fn default_log(sandbox: &Sandbox) -> PathBuf {
    sandbox.work().with_file_name("home").join(".local/state/hardpan/hardpan.log")
}

/// One run with these arguments, and this value of `HARDPAN_LOG`.
fn run(cli: &TestCli, args: &[&str], level: Option<&str>) -> Output {
    let mut command = cli.command(args);
    command.envs(level.map(|level| ("HARDPAN_LOG", level)));
    let output = command.output().expect("the binary can be run");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_log_has_runs_requests_tool_calls_and_writes_but_no_text_and_no_key() {
    let cli = TestCli::new("");
    run(&cli, &["-p", PROMPT, "--yes"], Some("debug"));
    let log = fs::read_to_string(default_log(&cli.sandbox)).expect("a log");
    for span in [" run{session=", "request{", "tool_call{tool=edit ", "session_write{file="] {
        let closed = |line: &str| line.contains(span) && line.contains(": close time.busy=");
        assert!(log.lines().any(closed), "no {span} in\n{log}");
    }
    for secret in [PROMPT, KEY, "old_text"] {
        assert!(!log.contains(secret), "{secret} is in\n{log}");
    }
}

#[test]
fn texts_are_in_a_log_of_the_lowest_level_and_keys_in_none() {
    let cli = TestCli::new("");
    run(&cli, &["-p", PROMPT, "--yes"], Some("trace"));
    let log = fs::read_to_string(default_log(&cli.sandbox)).expect("a log");
    assert!(log.contains(PROMPT) && log.contains("old_text"), "{log}");
    assert!(!log.contains(KEY), "{log}");
    let foreign = |line: &&str| !line.contains(" hardpan");
    assert_eq!(log.lines().find(foreign), None, "only Hardpan's own crates report");
}

#[test]
fn without_being_asked_for_no_log_appears() {
    let cli = TestCli::new("");
    run(&cli, &["-p", PROMPT, "--yes"], None);
    run(&cli, &["-p", PROMPT, "--yes"], Some("off"));
    run(&cli, &["-p", PROMPT, "--yes"], Some(""));
    assert!(!default_log(&cli.sandbox).exists());
}

#[test]
fn a_log_can_be_put_elsewhere_and_leaves_the_terminal_alone() {
    let cli = TestCli::new("");
    let plain = run(&cli, &["-p", "Show code", "--no-session"], None);
    let logged = run(&cli, &["-p", "Show code", "--no-session", "--log", "logs/a.log"], None);
    assert_eq!((plain.stdout, plain.stderr), (logged.stdout, logged.stderr));
    let log = fs::read_to_string(cli.sandbox.work().join("logs/a.log")).expect("a log");
    assert!(log.contains("run{session=") && !log.contains(" DEBUG "), "`info` is meant: {log}");
    assert!(!default_log(&cli.sandbox).exists());
    // Any command takes the flag.
    run(&cli, &["models", "--log", "logs/b.log"], Some("warn"));
    assert!(cli.sandbox.work().join("logs/b.log").exists());
}

#[cfg(unix)]
#[test]
fn a_log_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let cli = TestCli::new("");
    run(&cli, &["models"], Some("info"));
    let mode = fs::metadata(default_log(&cli.sandbox)).expect("a log").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_mistake_in_the_level_or_the_file_is_told_before_anything_happens() {
    let sandbox = Sandbox::new();
    let fail = |args: &[&str], level: &str| {
        let output = sandbox.command(args).env("HARDPAN_LOG", level).output().expect("it can be run");
        assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]));
        String::from_utf8(output.stderr).expect("words are UTF-8")
    };
    assert_eq!(
        fail(&["models"], "verbose"),
        "hardpan: HARDPAN_LOG: \"verbose\" is no level: write off, error, warn, info, debug or trace, \
         or a level for one crate, such as hardpan_agent=debug\n"
    );
    assert_eq!(
        fail(&["models"], "reqwest=trace"),
        "hardpan: HARDPAN_LOG: Hardpan has no crate \"reqwest\"; an example is hardpan_agent=debug,info\n"
    );
    assert_eq!(
        fail(&["models", "--log", "."], "info"),
        "hardpan: cannot write the log .: Is a directory (os error 21); name another file with --log FILE\n"
    );
}

#[cfg(not(feature = "otel"))]
#[test]
fn a_build_without_telemetry_says_so_if_the_settings_ask_for_it() {
    let sandbox = Sandbox::new();
    sandbox.write("config/config.toml", "[telemetry]\nendpoint = \"http://127.0.0.1:9\"\n");
    let said = sandbox.run(&["-p", "Hello"]).stderr;
    assert!(said.contains("this build of Hardpan has none: build it with `--features otel`"), "{said}");
    sandbox.write("config/config.toml", "[telemetry]\nenabled = false\nendpoint = \"http://127.0.0.1:9\"\n");
    let said = sandbox.run(&["-p", "Hello"]).stderr;
    assert!(!said.contains("telemetry"), "{said}");
}

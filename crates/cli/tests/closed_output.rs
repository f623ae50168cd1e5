//! Whoever reads the output may go away at any moment (`hardpan … | head -1`): no command panics.

mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::io;
use std::process::Stdio;

use test_cli::TestCli;

/// Commands that print to standard output, to standard error, or to both, in every form.
const COMMANDS: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["models"],
    &["models", "sonnet"],
    &["models", "--json"],
    &["providers"],
    &["docs"],
    &["docs", "readme"],
    &["docs", "none"],
    &["request", "Hello"],
    &["request", "Hello", "--json"],
    &["request", "Hello", "--send"],
    &["request", "--snapshot", "none.json"],
    &["context"],
    &["snapshot", "Hello"],
    &["prompt"],
    &["map"],
    &["symbols", "main"],
    &["sessions"],
    &["cost"],
    &["why"],
    &["audit", "none"],
    &["commit"],
    &["trust"],
    &["-p", "Hello"],
    &["-p", "Hello", "--output", "json"],
    &["-p", "Hello", "--hud"],
    &["-p", "/help"],
    &["-p", "/none"],
    &["rpc"],
    &["no-such-command"],
];

/// What a panic ends the process with.
const PANICKED: i32 = 101;

/// The end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn no_command_panics_if_its_standard_output_is_closed() {
    let cli = TestCli::new("");
    for args in COMMANDS {
        let output = cli.command(args).stdin(Stdio::null()).stdout(closed_pipe()).output().expect("it runs");
        let words = String::from_utf8_lossy(&output.stderr);
        assert_ne!(output.status.code(), Some(PANICKED), "{args:?}: {words}");
        assert!(output.status.code().is_some() && !words.contains("panicked"), "{args:?}: {words}");
    }
}

#[test]
fn no_command_panics_if_its_standard_error_is_closed() {
    let cli = TestCli::new("");
    for args in COMMANDS {
        let run = |stderr: Stdio| {
            let mut command = cli.command(args);
            command.stdin(Stdio::null()).stderr(stderr).output().expect("it runs").status.code()
        };
        let (closed, read) = (run(closed_pipe()), run(Stdio::piped()));
        assert_ne!(closed, Some(PANICKED), "{args:?}");
        assert_eq!(closed, read, "{args:?}: words that nobody reads change nothing");
    }
}

#[test]
fn no_command_panics_if_both_are_closed() {
    let cli = TestCli::new("");
    for args in COMMANDS {
        let mut command = cli.command(args);
        let status = command.stdin(Stdio::null()).stdout(closed_pipe()).stderr(closed_pipe()).status();
        let code = status.expect("it runs").code();
        assert!(code.is_some_and(|code| code != PANICKED), "{args:?}: {code:?}");
    }
}

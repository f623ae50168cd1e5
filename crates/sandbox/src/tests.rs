use std::time::Duration;

use super::*;

const LIMITS: OutputLimits = OutputLimits { max_bytes: 100_000, time: Duration::from_secs(60) };

fn shell(script: &str) -> Program {
    Program::new("/bin/sh", "/").arguments(["-c", script])
}

#[test]
fn a_program_is_given_what_is_named_and_nothing_else() {
    let program = shell("cat; env; echo err >&2; pwd; exit 3").variable("A", "b").input("in\n");
    let output = run_program(None, &program, LIMITS).unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = stdout.lines().collect();
    // The shell's own.
    lines.retain(|line| !["PWD=", "OLDPWD=", "SHLVL=", "_="].iter().any(|own| line.starts_with(own)));
    assert_eq!(lines, ["in", "A=b", "/"]);
    assert_eq!((&*output.stderr, output.end), (&b"err\n"[..], ProcessEnd::Exit(3)));
}

#[test]
fn too_much_output_and_too_much_time_stop_a_program() {
    let output = run_program(None, &shell("yes"), LIMITS).unwrap();
    assert!(output.truncated && output.stdout.len() == LIMITS.max_bytes);
    let short = OutputLimits { time: Duration::from_millis(100), ..LIMITS };
    let output = run_program(None, &shell("echo begun; sleep 1000"), short).unwrap();
    assert!(output.timed_out && output.end == ProcessEnd::Unknown);
}

#[test]
fn what_a_program_leaves_running_does_not_hold_its_output() {
    let output = run_program(None, &shell("sleep 1000 & echo done"), LIMITS).unwrap();
    assert_eq!((&*output.stdout, output.end), (&b"done\n"[..], ProcessEnd::Exit(0)));
}

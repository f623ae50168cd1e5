//! Extensions in the binary.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::test_cli::TestCli;

/// Adds two messages to every run; only one of them is for people.
const MESSAGES: &str = r#"
export default function (pi) {
  pi.on("before_agent_start", () => ({
    message: { customType: "note", content: "This is for everybody.", display: true },
  }));
  pi.on("before_agent_start", () => ({
    message: { customType: "note", content: "This is for the model.", display: false },
  }));
}
"#;

#[test]
fn the_model_reads_every_message_and_people_those_that_are_displayed() {
    let cli = TestCli::new("");
    let file = cli.sandbox.write("messages.ts", MESSAGES);
    let extension = file.to_str().expect("a path");
    let shown = |text: &str, face: &str| {
        assert!(text.contains("This is for everybody."), "{face}: {text}");
        assert!(!text.contains("This is for the model."), "{face}: {text}");
    };
    let printed = cli.print(&["-p", "Hello", "--extension", extension]);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    shown(&printed.stderr, "-p");
    let session = format!("{:?}", cli.messages());
    assert!(session.contains("This is for everybody.") && session.contains("This is for the model."));
    let plain = cli.print_with(&["--plain", "--extension", extension], "Hello\n");
    shown(&(String::from_utf8_lossy(&plain.stdout).into_owned() + &plain.stderr), "--plain");
    let listed = cli.print(&["sessions", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let id = listed[0]["id"].as_str().expect("an id");
    let export = cli.print(&["sessions", "export", id]);
    shown(&String::from_utf8_lossy(&export.stdout), "export");
    // Programs get all of them, with the mark.
    let events = cli.print(&["-p", "Hello", "--extension", extension, "--output", "json"]);
    let events = String::from_utf8_lossy(&events.stdout).into_owned();
    assert!(events.contains("This is for the model.") && events.contains("\"display\":false"), "{events}");
}

/// A command that never settles.
const HANGING: &str = r#"
export default function (pi) {
  pi.registerCommand("hang", { handler: async (args, ctx) => { ctx.ui.notify("it began"); await new Promise(() => {}); } });
}
"#;

/// How often it is looked whether a process has ended, and how many times: a command that hangs never does.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(50);
const END_CHECKS: u32 = 1200;

/// Waits for the end of a process; panics if it does not come.
fn wait_for_end(mut child: Child, what: &str) {
    for _ in 0..END_CHECKS {
        if child.try_wait().expect("a child").is_some() {
            return;
        }
        std::thread::sleep(END_CHECK_INTERVAL);
    }
    child.kill().expect("a child");
    panic!("{what}: it did not end");
}

#[test]
fn a_command_that_never_settles_keeps_no_face_from_leaving() {
    let cli = TestCli::new("");
    let file = cli.sandbox.write("hanging.ts", HANGING);
    let extension = file.to_str().expect("a path");
    let faces: [(&[&str], &str); 3] = [
        (&["-p", "/hang"], ""),
        (&["--plain"], "/hang\n"),
        (&["rpc"], "{\"id\":1,\"type\":\"prompt\",\"message\":\"/hang\"}\n"),
    ];
    for (face, typed) in faces {
        for signal in [Signal::TERM, Signal::INT] {
            let mut command = cli.command(&[face, &["--extension", extension]].concat());
            // `-p` reads what is piped to its end before it begins.
            command.stdin(if typed.is_empty() { Stdio::null() } else { Stdio::piped() });
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().expect("it starts");
            let mut input = child.stdin.take();
            input.iter_mut().for_each(|input| input.write_all(typed.as_bytes()).expect("it reads"));
            let (sender, began) = std::sync::mpsc::channel();
            let outputs: [Box<dyn std::io::Read + Send>; 2] = [
                Box::new(child.stdout.take().expect("piped")),
                Box::new(child.stderr.take().expect("piped")),
            ];
            for output in outputs {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    for line in BufReader::new(output).lines().map_while(Result::ok) {
                        if line.contains("it began") {
                            // One report is enough.
                            let _ = sender.send(());
                        }
                    }
                });
            }
            began.recv_timeout(Duration::from_secs(60)).expect("the command begins");
            kill_process(Pid::from_child(&child), signal).expect("it is alive");
            wait_for_end(child, &format!("{face:?} {signal:?}"));
            drop(input);
        }
    }
}

#[test]
fn a_command_that_never_settles_does_not_keep_the_page_open() {
    let cli = TestCli::new("");
    let file = cli.sandbox.write("hanging.ts", HANGING);
    let extension = file.to_str().expect("a path");
    let Some(mut terminal) = super::test_cli::Terminal::open_page(&cli, &["--extension", extension], ":")
    else {
        return;
    };
    terminal.expect("strata");
    terminal.enter("/hang", "it began");
    terminal.end_page();
}

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use hardpan_context::knowledge::FileKnowledge;
use hardpan_prompt::{Json, MessagePart};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

/// Far more than anything here takes: a test that comes to it has failed.
const LONG: Duration = Duration::from_secs(60);

fn tool(fixture: &TestWorkspace) -> Bash {
    let variables = std::env::vars_os().filter(|(name, _)| name == "PATH");
    let mut environment = scrub_environment(variables, &[], &[], &[]);
    environment.push(("GREETING".into(), "hello".into()));
    Bash::new(ShellOptions {
        program: "/bin/bash".into(),
        outputs: fixture.outside().join("outputs"),
        temp: fixture.outside().join("temp"),
        environment,
        confinement: Confinement::None,
    })
}

async fn run(fixture: &TestWorkspace, arguments: Value) -> (String, ToolOutcome) {
    let tool = tool(fixture);
    let arguments = Json::new(&arguments);
    let call = ToolInvocation {
        id: "1",
        arguments: &arguments,
        scope: &fixture.scope,
        knowledge: &FileKnowledge::default(),
        progress: &|_| {},
    };
    let outcome = timeout(LONG, tool.run(call)).await.expect("a call must end");
    let MessagePart::Text { text } = &outcome.content[0] else { panic!("{outcome:?}") };
    (text.to_string(), outcome)
}

async fn text(fixture: &TestWorkspace, command: &str) -> String {
    let (text, outcome) = run(fixture, json!({"command": command})).await;
    assert!(!outcome.is_error, "{outcome:?}");
    text
}

/// Waits until a process is gone, or a zombie that somebody else must reap.
async fn gone(pid: &str) {
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let gone = async {
        while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, gone).await.expect("the process must end");
}

async fn wait_for(path: PathBuf) -> String {
    let there = async {
        loop {
            match fs::read_to_string(&path) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => sleep(Duration::from_millis(10)).await,
            }
        }
    };
    timeout(LONG, there).await.expect("the file must appear")
}

#[tokio::test]
async fn a_command_runs_in_the_folder_and_answers_with_its_output() {
    let fixture = workspace(&[("a.txt", "content\n")]);
    let (text, outcome) = run(&fixture, json!({"command": "cat a.txt; echo $GREETING; pwd"})).await;
    assert_eq!(text, format!("content\nhello\n{}\n", fixture.scope.root.display()));
    assert!(!outcome.is_error);
    let details = outcome.details.unwrap();
    assert_eq!(
        (&details["exit_code"], &details["lines"], &details["full_output"]),
        (&json!(0), &json!(3), &Value::Null)
    );
}

#[tokio::test]
async fn both_streams_come_in_the_order_in_which_they_were_written() {
    let fixture = workspace(&[]);
    let text = text(&fixture, "for i in 1 2 3; do echo out $i; echo err $i >&2; done").await;
    assert_eq!(text, "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
}

#[tokio::test]
async fn exit_codes_and_signals_are_told() {
    let fixture = workspace(&[]);
    let (text, outcome) = run(&fixture, json!({"command": "echo no; exit 3"})).await;
    assert_eq!((&*text, outcome.is_error), ("no\n[exit code 3]", true));
    let (text, outcome) = run(&fixture, json!({"command": "kill -SEGV $$"})).await;
    assert_eq!((&*text, outcome.is_error), ("[ended by signal 11]", true));
    assert_eq!(outcome.details.unwrap()["signal"], 11);
    assert_eq!(self::text(&fixture, "true").await, "(no output)");
}

#[tokio::test]
async fn nothing_can_be_typed_in() {
    let fixture = workspace(&[]);
    assert_eq!(text(&fixture, "cat; read x; echo \"[$x]\"").await, "[]\n");
}

#[tokio::test]
async fn a_group_that_ignores_the_request_to_end_is_killed() {
    let fixture = workspace(&[]);
    let command = "trap '' TERM; (trap '' TERM; echo $BASHPID > child; while :; do sleep 1; done) & echo $$ > leader; echo begun; while :; do sleep 1; done";
    let (text, outcome) = run(&fixture, json!({"command": command, "timeout": 1})).await;
    assert_eq!(
        text,
        "begun\n[stopped after 1 seconds: give a longer timeout, or do less at once; ended by signal 9]"
    );
    assert!(outcome.is_error && outcome.details.unwrap()["timed_out"] == true);
    gone(&wait_for(fixture.path("leader")).await).await;
    gone(&wait_for(fixture.path("child")).await).await;
}

#[tokio::test]
async fn a_command_that_takes_too_long_may_end_by_itself_first() {
    let fixture = workspace(&[]);
    let command = "trap 'echo cleaned up; exit 5' TERM; echo begun; while :; do sleep 0.1; done";
    let (text, _) = run(&fixture, json!({"command": command, "timeout": 1})).await;
    assert!(
        text.starts_with("begun\n") && text.contains("cleaned up\n") && text.ends_with("exit code 5]"),
        "{text}"
    );
}

#[tokio::test]
async fn dropping_the_call_ends_everything_and_leaves_no_zombie() {
    let fixture = workspace(&[]);
    let tool = tool(&fixture);
    let arguments =
        Json::new(&json!({"command": "trap '' TERM; sleep 1000 & echo $! > child; echo $$ > leader; wait"}));
    let call = ToolInvocation {
        id: "1",
        arguments: &arguments,
        scope: &fixture.scope,
        knowledge: &FileKnowledge::default(),
        progress: &|_| {},
    };
    let leader = tokio::select! {
        outcome = tool.run(call) => panic!("{outcome:?}"),
        leader = wait_for(fixture.path("leader")) => leader,
    };
    gone(&fs::read_to_string(fixture.path("child")).unwrap()).await;
    // Our own child must be reaped, not only dead.
    let stat = PathBuf::from(format!("/proc/{}/stat", leader.trim()));
    let reaped = async {
        while stat.exists() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, reaped).await.expect("no zombie may stay");
}

#[tokio::test]
async fn a_child_in_the_background_does_not_hold_the_call_and_ends_with_it() {
    let fixture = workspace(&[]);
    let text = text(&fixture, "sleep 1000 & echo $! > child; echo done").await;
    assert_eq!(
        text,
        "done\n[a process in the background still held the output; it was ended with the command]"
    );
    gone(&wait_for(fixture.path("child")).await).await;
}

#[tokio::test]
async fn a_child_in_another_session_does_not_hold_the_call_either() {
    let fixture = workspace(&[]);
    let (text, _) = run(
        &fixture,
        json!({"command": "setsid sh -c 'echo $$ > child; sleep 1000' & sleep 0.2; echo done"}),
    )
    .await;
    assert!(text.starts_with("done\n[a process in the background"), "{text}");
    let child = wait_for(fixture.path("child")).await;
    let pid = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process_group(pid, Signal::KILL).unwrap();
}

#[tokio::test]
async fn of_a_long_output_the_end_is_shown_and_the_whole_is_kept() {
    let fixture = workspace(&[]);
    let (text, outcome) = run(&fixture, json!({"command": "seq 1 5000"})).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[1999], lines.len()), ("3001", "5000", 2001));
    let file = PathBuf::from(outcome.details.unwrap()["full_output"].as_str().unwrap());
    let notice = format!(
        "[only the last 2000 of 5000 lines (10000 of 23893 bytes) are shown; all of them are in {}]",
        file.display()
    );
    assert_eq!(lines[2000], notice);
    let whole: String = (1..=5000).map(|number| format!("{number}\n")).collect();
    assert_eq!(fs::read_to_string(file).unwrap(), whole);
}

#[tokio::test]
async fn an_endless_output_is_stopped_and_takes_bounded_room() {
    let fixture = workspace(&[]);
    let (text, outcome) = run(&fixture, json!({"command": "yes 'all work and no play'", "timeout": 2})).await;
    assert!(text.len() < 52 * 1024 && text.contains("stopped after 2 seconds"), "{}", text.len());
    let details = outcome.details.unwrap();
    let file = PathBuf::from(details["full_output"].as_str().unwrap());
    assert!(fs::metadata(&file).unwrap().len() <= 256 * 1024 * 1024);
    assert!(details["bytes"].as_u64().unwrap() > 1024 * 1024);
}

#[tokio::test]
async fn one_endless_line_is_cut_within_a_character_of_the_limit() {
    let fixture = workspace(&[]);
    let text = text(&fixture, "printf 'ä%.0s' $(seq 1 60000)").await;
    let shown = text.lines().next().unwrap();
    assert!(
        shown.chars().all(|char| char == 'ä') && (51_198..=51_200).contains(&shown.len()),
        "{}",
        shown.len()
    );
}

#[tokio::test]
async fn what_a_terminal_would_obey_never_arrives() {
    let fixture = workspace(&[]);
    let command = r"printf '\033[31mred\033[0m \000 \377 \033]0;title\007end\r\n10%%\r50%%\r100%%\n'";
    assert_eq!(text(&fixture, command).await, "red \u{fffd} \u{fffd} end\n100%\n");
}

#[tokio::test]
async fn output_is_shown_while_it_comes() {
    let fixture = workspace(&[]);
    let tool = tool(&fixture);
    let shown = Mutex::new(Vec::new());
    let arguments =
        Json::new(&json!({"command": "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two"}));
    let go = fixture.path("go");
    let progress = |text: &str| {
        shown.lock().unwrap().push(text.to_owned());
        // The command goes on only when its first line was seen.
        fs::write(&go, "").unwrap();
    };
    let call = ToolInvocation {
        id: "1",
        arguments: &arguments,
        scope: &fixture.scope,
        knowledge: &FileKnowledge::default(),
        progress: &progress,
    };
    timeout(LONG, tool.run(call)).await.expect("the command must have been seen");
    assert_eq!(shown.lock().unwrap()[0], "one\n");
}

#[tokio::test]
async fn temporary_files_have_a_folder_of_their_own_and_keys_are_not_passed_on() {
    let fixture = workspace(&[]);
    let mut tool = tool(&fixture);
    let variables = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("A_KEY", "1".into()),
        ("B", "2".into()),
        ("C", "3".into()),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    tool.options.environment = scrub_environment(variables, &["B".to_owned()], &[], &[]);
    let arguments =
        Json::new(&json!({"command": "touch \"$(mktemp)\"; ls -d $TMPDIR/*; echo \"[$A_KEY$B$C]\""}));
    let call = ToolInvocation {
        id: "1",
        arguments: &arguments,
        scope: &fixture.scope,
        knowledge: &FileKnowledge::default(),
        progress: &|_| {},
    };
    let outcome = tool.run(call).await;
    let MessagePart::Text { text } = &outcome.content[0] else { panic!("{outcome:?}") };
    assert!(text.starts_with(tool.options.temp.to_str().unwrap()) && text.ends_with("[3]\n"), "{text}");
}

#[tokio::test]
async fn what_cannot_be_started_is_told() {
    let fixture = workspace(&[("sub/", "")]);
    let (text, outcome) = run(&fixture, json!({"command": "x".repeat(200_000)})).await;
    assert!(outcome.is_error && text.starts_with("The command could not be started in .:"), "{text}");
    let (text, _) = run(&fixture, json!({"command": "echo \0"})).await;
    assert!(text.contains("NUL"), "{text}");
}

/// What a command lets the model see of files: each path with the lines shown and their count.
async fn observed(fixture: &TestWorkspace, command: &str) -> Vec<(String, Vec<(u64, u64)>, u64)> {
    let (_, outcome) = run(fixture, json!({"command": command})).await;
    let observations = outcome.file_observations.into_iter();
    observations
        .map(|seen| (seen.path.to_string(), seen.shown.iter().collect(), seen.lines.expect("a text")))
        .collect()
}

#[tokio::test]
async fn what_a_command_shows_of_a_file_counts_as_read() {
    let lines: String = (1..=100).map(|line| format!("line {line}\n")).collect();
    let crlf = "one\r\ntwo\r\nno line end";
    let fixture = workspace(&[("src/a.rs", &lines), ("b.txt", crlf)]);
    let a = |first, last| vec![("src/a.rs".to_owned(), vec![(first, last)], 100)];
    for (command, first, last) in [
        ("cat src/a.rs", 1, 100),
        ("cd src && nl -ba a.rs | sed -n '20,30p'", 20, 30),
        ("cat -n src/a.rs", 1, 100),
        ("sed -n '90,120p' src/a.rs", 90, 100),
        ("head -n 5 src/a.rs 2>/dev/null", 1, 5),
        ("tail -n 5 src/a.rs", 96, 100),
    ] {
        assert_eq!(observed(&fixture, command).await, a(first, last), "{command}");
    }
    let joined = "cat b.txt; sed -n 9p src/a.rs";
    assert_eq!(observed(&fixture, joined).await, [], "the last line of one has the first of the other");
    let expected =
        [("src/a.rs".to_owned(), vec![(1, 2), (9, 9)], 100), ("b.txt".to_owned(), vec![(1, 3)], 3)];
    let both = "sed -n 1,2p src/a.rs; echo --; sed -n 9p src/a.rs; cat b.txt";
    assert_eq!(observed(&fixture, both).await, expected);
}

#[tokio::test]
async fn what_differs_from_the_file_or_lies_elsewhere_is_not_seen() {
    let fixture = workspace(&[("a.txt", "one\ntwo\n"), ("red.txt", "\u{1b}[31mred\n"), ("empty", "")]);
    fs::write(fixture.outside().join("secret.txt"), "secret\n").unwrap();
    for command in [
        "cat a.txt; echo three >> a.txt",
        "cat a.txt missing.txt; true",
        "cat a.txt | tr o 0",
        "cat red.txt",
        "cat empty",
        "cat ../secret.txt",
        "cat a.txt && false",
        "alias cat=head; cat() { echo one; }; cat a.txt",
    ] {
        assert_eq!(observed(&fixture, command).await, [], "{command}");
    }
}

#[tokio::test]
async fn of_a_file_that_is_too_long_only_the_visible_lines_are_seen() {
    let lines: String = (1..=2500).map(|line| format!("line {line}\n")).collect();
    let long = format!("{}\nlast\n", "x".repeat(100_000));
    let fixture = workspace(&[("a.txt", &lines), ("long.txt", &long)]);
    assert_eq!(observed(&fixture, "cat a.txt").await, [("a.txt".into(), vec![(501, 2500)], 2500)]);
    assert_eq!(observed(&fixture, "cat long.txt").await, [("long.txt".into(), vec![(2, 2)], 2)]);
}

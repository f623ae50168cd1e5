//! Durability with real processes: acknowledged entries survive `kill -9` and a full disk, and a
//! session has one writer.
//!
//! The other process is this test binary itself, run for the one test `the_other_process`, with its
//! task in the environment. `HARDPAN_KILLS=1000` is the long mode.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_session::{
    Entry, Header, LogErrorCause, PartialRecord, Record, Session, SessionLog, SessionProblemKind,
};

const TASK: &str = "HARDPAN_TEST_ORDERS";
const SESSION_FILE: &str = "HARDPAN_TEST_FILE";

fn message_entry(id: &str, parent: Option<&str>, text: &str) -> Entry {
    Entry::message(
        parent,
        AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(text)] }),
    )
}

fn create(path: &Path) -> SessionLog {
    let header = Header { id: "s".into(), time: None, cwd: "/".into(), extra: Default::default() };
    SessionLog::create(path, header).expect("a writer")
}

/// Starts this test binary for the one test below.
fn other_process(command: &mut Command, task: &str, file: &Path) -> Child {
    command.args(["--exact", "the_other_process", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(TASK, task).env(SESSION_FILE, file).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("this binary can be run")
}

fn this_binary() -> Command {
    Command::new(std::env::current_exe().expect("this binary has a path"))
}

#[test]
#[ignore = "no test, but the process that other tests start"]
fn the_other_process() {
    let Ok(task) = std::env::var(TASK) else { return };
    let file = std::env::var_os(SESSION_FILE).expect("the task comes with a file");
    match task.as_str() {
        "talk" => append_forever(Path::new(&file)),
        "hold" => hold_lock(Path::new(&file)),
        "fill" => fill_disk(Path::new(&file)),
        task => panic!("unknown task {task}"),
    }
}

/// Goes on with the session for ever, in bursts, and prints what is acknowledged.
fn append_forever(path: &Path) {
    let (log, mut leaf, mut count) = match path.exists() {
        false => (create(path), None, 0),
        true => {
            let (log, session) = SessionLog::open(path).expect("it can be opened after any crash");
            let leaf = session.branch(None).expect("the last leaf").leaf;
            (log, leaf, session.entries.len())
        }
    };
    println!("open");
    loop {
        let mut burst = Vec::new();
        for _ in 0..=count % 4 {
            count += 1;
            let id = format!("m{count}");
            // An answer that comes in pieces first.
            for at in 0..count % 3 {
                let parts = vec![MessagePart::text(format!("piece {at} "))];
                let partial =
                    PartialRecord { message_id: id.as_str().into(), parts, provider: None, model: None };
                let entry = Entry::new(format!("{id}.{at}"), leaf.as_deref(), None, Record::Partial(partial));
                burst.push((entry.id.clone(), log.append(entry)));
            }
            let entry = message_entry(&id, leaf.as_deref(), &"words and \"quotes\"\n".repeat(count % 50));
            leaf = Some(entry.id.clone());
            burst.push((entry.id.clone(), log.append(entry)));
        }
        for (id, saved) in burst {
            saved.wait().expect("it can be saved");
            println!("saved {id}");
        }
    }
}

#[test]
fn whatever_was_acknowledged_survives_kill_9() {
    let rounds: usize =
        std::env::var("HARDPAN_KILLS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(50);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..rounds {
        let mut child = other_process(&mut this_binary(), "talk", &path);
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        // Killed after so many acknowledgements, 0 being while it opens the session; the rest is
        // what was under way.
        let acknowledgements = round * 7 % 23;
        let mut output_lines: Vec<String> =
            lines.by_ref().take(acknowledgements).map(|line| line.expect("text")).collect();
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        output_lines.extend(lines.map_while(Result::ok));
        acknowledged
            .extend(output_lines.iter().filter_map(|line| line.strip_prefix("saved ")).map(str::to_owned));
        if !path.exists() {
            continue;
        }
        let session = match Session::open(&path) {
            // Killed while the first line was written: nothing was acknowledged.
            Err(_) if acknowledged.is_empty() => {
                std::fs::remove_file(&path).expect("it can be removed");
                continue;
            }
            session => session.expect("it can be read"),
        };
        check(&session, &acknowledged);
    }
    assert!(acknowledged.len() > rounds, "it was not killed too early: {}", acknowledged.len());
    let (_, session) = SessionLog::open(&path).expect("it can be gone on with");
    check(&session, &acknowledged);
}

/// Everything acknowledged is there, every message of it in the conversation, and nothing is wrong
/// but the end.
fn check(session: &Session, acknowledged: &[String]) {
    let stored_ids: std::collections::BTreeSet<&str> =
        session.entries.iter().map(|entry| &*entry.id).collect();
    let branch = session.branch(None).expect("the last leaf");
    let conversation_ids: std::collections::BTreeSet<&str> =
        branch.messages.iter().map(|message| &*message.id.0).collect();
    for id in acknowledged {
        assert!(stored_ids.contains(id.as_str()), "{id} was lost");
        assert!(
            id.contains('.') || conversation_ids.contains(id.as_str()),
            "{id} is not in the conversation"
        );
    }
    for problem in &session.problems {
        use SessionProblemKind::{CutOff, Recovered};
        assert!(matches!(problem.kind, CutOff { .. } | Recovered { .. }), "{problem:?}");
    }
}

fn hold_lock(path: &Path) {
    let log = create(path);
    log.append(message_entry("a", None, "mine")).wait().expect("it can be saved");
    println!("open");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("until the other one has tried");
    log.append(message_entry("b", Some("a"), "still mine")).wait().expect("it can be saved");
}

#[test]
fn two_processes_cannot_write_one_session() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    let mut child = other_process(&mut this_binary(), "hold", &path);
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert!(lines.by_ref().map_while(Result::ok).any(|line| line.ends_with("open")));
    let error = SessionLog::open(&path).expect_err("it is locked");
    assert!(matches!(error.cause, LogErrorCause::Busy), "{error}");
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    let (_, session) = SessionLog::open(&path).expect("it is free");
    assert_eq!(session.entries.len(), 2);
}

/// Runs under a limit for the size of files, which stands for a full disk, and then without.
fn fill_disk(path: &Path) {
    let log = create(path);
    log.append(message_entry("a", None, "small")).wait().expect("there is room");
    let before = std::fs::metadata(path).expect("it is there").len();
    let error =
        log.append(message_entry("b", Some("a"), &"large ".repeat(50_000))).wait().expect_err("no room");
    assert!(error.cause.is_full(), "{error}");
    assert_eq!(std::fs::metadata(path).expect("it is there").len(), before, "nothing half-written stays");
    let error =
        log.append(message_entry("c", Some("b"), "small")).wait().expect_err("not before what it follows");
    assert!(error.cause.is_full(), "{error}");
    let pid = std::process::id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
    assert!(raised.expect("prlimit can be run").success());
    log.append(message_entry("d", Some("c"), "small")).wait().expect("there is room again");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s.jsonl");
    let mut shell = Command::new("sh");
    // Without the signal, a write over the limit fails as it does on a full disk: in its middle.
    shell.args(["-c", "trap '' XFSZ; ulimit -S -f 64; exec \"$0\" \"$@\""]);
    shell.arg(std::env::current_exe().expect("this binary has a path"));
    let mut child = other_process(&mut shell, "fill", &path);
    child.stdin.take().expect("it is piped").flush().expect("it is open");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let session = Session::open(&path).expect("it can be read");
    let ids: Vec<&str> = session.entries.iter().map(|entry| &*entry.id).collect();
    assert_eq!((ids, session.problems.len()), (vec!["a", "b", "c", "d"], 0));
}

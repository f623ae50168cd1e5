use std::fs;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use tempfile::TempDir;

use super::*;
use crate::{PartialRecord, Record};

fn header() -> Header {
    Header { id: "s".into(), time: None, cwd: "/p".into(), extra: Default::default() }
}

fn message_entry(id: &str, parent: Option<&str>) -> Entry {
    Entry::message(parent, AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(id)] }))
}

fn partial_entry(id: &str, parent: &str, text: &str) -> Entry {
    let partial = PartialRecord {
        message_id: "m".into(),
        parts: vec![MessagePart::text(text)],
        provider: None,
        model: None,
    };
    Entry::new(id, Some(parent), None, Record::Partial(partial))
}

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/sessions/s.jsonl");
    (folder, path)
}

/// A file of these lines.
fn file(lines: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, header().to_line() + lines).unwrap();
    (folder, path)
}

fn names(folder: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_conversation_in_which_nothing_was_said_leaves_no_file() {
    let (folder, path) = place();
    drop(SessionLog::create(&path, header()).unwrap());
    assert!(names(&folder).is_empty());
}

#[test]
fn what_is_saved_is_in_the_file_in_its_order() {
    let (_folder, path) = place();
    let log = SessionLog::create(&path, header()).unwrap();
    let entries: Vec<Entry> = (0..200)
        .map(|at: usize| {
            message_entry(&at.to_string(), at.checked_sub(1).map(|at| at.to_string()).as_deref())
        })
        .collect();
    let saved: Vec<PendingSave> = entries.iter().map(|entry| log.append(entry.clone())).collect();
    saved.into_iter().for_each(|saved| saved.wait().unwrap());
    let lines: String = entries.iter().map(Entry::to_line).collect();
    assert_eq!(fs::read_to_string(&path).unwrap(), header().to_line() + &lines);
}

#[test]
fn dropping_the_log_waits_for_what_nobody_waited_for() {
    let (_folder, path) = place();
    let log = SessionLog::create(&path, header()).unwrap();
    drop(log.append(message_entry("a", None)));
    drop(log);
    assert_eq!(Session::open(&path).unwrap().entries, [message_entry("a", None)]);
}

#[test]
fn a_save_can_be_awaited() {
    let (_folder, path) = place();
    let log = SessionLog::create(&path, header()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(log.append(message_entry("a", None))).unwrap();
    runtime.block_on(async { log.append(message_entry("b", Some("a"))).wait() }).unwrap();
    assert_eq!(Session::open(&path).unwrap().entries.len(), 2);
}

#[test]
fn a_flush_tells_when_all_before_it_is_durable_and_writes_nothing_itself() {
    let (folder, path) = place();
    let log = SessionLog::create(&path, header()).unwrap();
    log.flush().wait().unwrap();
    assert!(names(&folder).is_empty());
    drop(log.append(message_entry("a", None)));
    log.flush().wait().unwrap();
    assert_eq!(Session::open(&path).unwrap().entries, [message_entry("a", None)]);
}

#[cfg(unix)]
#[test]
fn the_file_and_its_folders_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = place();
    let log = SessionLog::create(&path, header()).unwrap();
    log.append(message_entry("a", None)).wait().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(path.parent().unwrap().parent().unwrap()), 0o700);
}

#[test]
fn a_session_goes_on_where_it_ended() {
    let (_folder, path) = place();
    SessionLog::create(&path, header()).unwrap().append(message_entry("a", None)).wait().unwrap();
    let (log, session) = SessionLog::open(&path).unwrap();
    assert_eq!((session.entries.len(), session.problems.len()), (1, 0));
    log.append(message_entry("b", Some("a"))).wait().unwrap();
    assert_eq!(
        Session::open(&path).unwrap().entries,
        [message_entry("a", None), message_entry("b", Some("a"))]
    );
}

#[test]
fn a_lock_that_goes_in_a_moment_is_waited_for() {
    let (_folder, path) = place();
    let log = SessionLog::create(&path, header()).unwrap();
    log.append(message_entry("a", None)).wait().unwrap();
    let other = path.clone();
    let opening = thread::spawn(move || SessionLog::open(&other).map(|(_, session)| session.entries.len()));
    // As long as a program that inherited the lock takes to begin.
    thread::sleep(std::time::Duration::from_millis(60));
    drop(log);
    assert_eq!(opening.join().unwrap().unwrap(), 1);
}

#[test]
fn a_session_has_one_writer() {
    let (_folder, path) = place();
    let log = SessionLog::create(&path, header()).unwrap();
    log.append(message_entry("a", None)).wait().unwrap();
    let error = SessionLog::open(&path).unwrap_err();
    assert!(matches!(error.cause, LogErrorCause::Busy), "{error}");
    let words =
        "another process writes to this session; wait until it has ended, or go on in a copy with --fork";
    assert_eq!(error.to_string(), format!("{}: {words}", path.display()));
    assert_eq!(Session::open(&path).unwrap().entries.len(), 1, "others may read");
    drop(log);
    SessionLog::open(&path).unwrap();
}

#[test]
fn a_new_session_never_takes_the_place_of_another() {
    let (_folder, path) = file(&message_entry("a", None).to_line());
    let log = SessionLog::create(&path, header()).unwrap();
    let error = log.append(message_entry("b", None)).wait().unwrap_err();
    assert!(matches!(error.cause, LogErrorCause::Exists), "{error}");
    drop(log);
    assert_eq!(Session::open(&path).unwrap().entries, [message_entry("a", None)]);
}

#[test]
fn what_could_not_be_written_is_written_as_soon_as_it_can_be() {
    let (folder, path) = place();
    let in_the_way = folder.path().join("data");
    fs::write(&in_the_way, "").unwrap();
    let log = SessionLog::create(&path, header()).unwrap();
    let error = log.append(message_entry("a", None)).wait().unwrap_err();
    let words = "is in the way: it is not a folder; unsaved entries are kept in memory and written with the next one; \
         fix that, or name another data folder in HARDPAN_DATA_DIR";
    let expected = format!("{}: it cannot be created: {} {words}", path.display(), in_the_way.display());
    assert_eq!(error.to_string(), expected);
    fs::remove_file(&in_the_way).unwrap();
    log.append(message_entry("b", Some("a"))).wait().unwrap();
    assert_eq!(
        Session::open(&path).unwrap().entries,
        [message_entry("a", None), message_entry("b", Some("a"))]
    );
}

#[test]
fn an_entry_that_is_appended_again_after_a_failure_is_there_once() {
    let (folder, path) = place();
    let in_the_way = folder.path().join("data");
    fs::write(&in_the_way, "").unwrap();
    let log = SessionLog::create(&path, header()).unwrap();
    log.append(message_entry("a", None)).wait().unwrap_err();
    fs::remove_file(&in_the_way).unwrap();
    log.append(message_entry("a", None)).wait().unwrap();
    assert_eq!(Session::open(&path).unwrap().entries, [message_entry("a", None)]);
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_off_and_kept() {
    let whole = message_entry("a", None).to_line() + &message_entry("bé", Some("a")).to_line();
    let last = message_entry("c", Some("bé")).to_line();
    for length in 0..=last.len() {
        let torn = &last.as_bytes()[..length];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let start = (header().to_line() + &whole).into_bytes();
        fs::write(&path, [&start, torn].concat()).unwrap();
        let (log, session) = SessionLog::open(&path).unwrap();
        let beside = folder.path().join("s.jsonl.torn-1");
        if length == 0 || length + 1 >= last.len() {
            assert!(session.problems.is_empty(), "{:?}", session.problems);
            assert_eq!(names(&folder), ["s.jsonl"]);
        } else {
            let what = format!(
                "removed: it was cut off while being written; its {length} bytes are kept in {}",
                beside.display()
            );
            assert_eq!((session.problems[0].line, session.problems[0].kind.to_string()), (4, what));
            assert_eq!(fs::read(&beside).unwrap(), torn);
        }
        let leaf = session.branch(None).unwrap().leaf;
        log.append(message_entry("d", leaf.as_deref())).wait().unwrap();
        drop(log);
        let again = Session::open(&path).unwrap();
        assert!(again.problems.is_empty(), "{:?}", again.problems);
        assert_eq!(again.branch(None).unwrap().messages.len(), session.entries.len() + 1);
    }
}

#[test]
fn what_was_cut_off_before_is_not_overwritten() {
    let (folder, path) = file("{\"type\":");
    fs::write(folder.path().join("s.jsonl.torn-1"), "older").unwrap();
    SessionLog::open(&path).unwrap();
    assert_eq!(names(&folder), ["s.jsonl", "s.jsonl.torn-1", "s.jsonl.torn-2"]);
    assert_eq!(fs::read(folder.path().join("s.jsonl.torn-1")).unwrap(), b"older");
    assert_eq!(fs::read_to_string(&path).unwrap(), header().to_line());
}

#[test]
fn a_header_that_lacks_only_its_end_is_given_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, format!("\u{feff}{}", header().to_line().trim_end())).unwrap();
    let (log, _) = SessionLog::open(&path).unwrap();
    log.append(message_entry("a", None)).wait().unwrap();
    drop(log);
    assert_eq!(Session::open(&path).unwrap().entries, [message_entry("a", None)]);
}

#[test]
fn an_answer_that_was_cut_off_is_written_once() {
    let lines = [message_entry("u", None), partial_entry("1", "u", "Hel"), partial_entry("2", "u", "lo")]
        .map(|entry| entry.to_line());
    let (_folder, path) = file(&(lines.concat() + "{\"type\":\"partial\",\"id\":\"3\""));
    let (log, first) = SessionLog::open(&path).unwrap();
    assert_eq!((first.recovered.len(), first.problems.len()), (1, 2));
    drop(log);
    let (_log, second) = SessionLog::open(&path).unwrap();
    assert_eq!((second.recovered.len(), second.problems.len()), (0, 0));
    assert_eq!(second.branch(None).unwrap(), first.branch(None).unwrap());
    assert_eq!(second.branch(None).unwrap().messages.len(), 2);
}

#[test]
fn a_file_that_is_no_session_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    for text in ["", "hello", "{\"type\":\"session\",\"version\":2,\"id\":\"s\"}"] {
        fs::write(&path, text).unwrap();
        let error = SessionLog::open(&path).unwrap_err();
        assert!(matches!(error.cause, LogErrorCause::Unreadable(_)), "{text}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let error = SessionLog::open(&folder.path().join("none.jsonl")).unwrap_err().to_string();
    assert!(error.contains("none.jsonl: it cannot be opened: it does not exist ("), "{error}");
    assert!(SessionLog::open(folder.path()).is_err());
}

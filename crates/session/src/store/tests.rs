use std::sync::Arc;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use tempfile::TempDir;

use super::*;
use crate::{Entry, Header, LogErrorCause, RequestRecord, SessionLog};

const CWD: &str = "/home/me/My Project";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn message_entry(id: &str, parent: Option<&str>, text: &str) -> Entry {
    Entry::message(
        parent,
        AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(text)] }),
    )
}

fn answer(id: &str, parent: &str, text: &str) -> Entry {
    let content = vec![MessagePart::text(text)];
    let body = MessageBody::Assistant { content, provider: None, model: None, stop_reason: None };
    Entry::message(Some(parent), AgentMessage::new(id, body))
}

fn name(id: &str, parent: &str, name: &str) -> Entry {
    Entry::new(id, Some(parent), None, Record::Name { name: name.into() })
}

fn request(id: &str, parent: &str) -> Entry {
    let record = RequestRecord {
        purpose: "turn".into(),
        provider: "anthropic".into(),
        model: "claude-sonnet-5".into(),
        message: None,
        answer: None,
        prefix: None,
        usage: hardpan_prompt::TokenUsage::default(),
        dollars: 0.25,
        would_cost: None,
        factor: None,
        started: Timestamp::UNIX_EPOCH,
        first_token_ms: None,
        ended_ms: None,
        layout: "strata".into(),
        extra: Default::default(),
    };
    Entry::new(id, Some(parent), None, Record::Request(Arc::new(record)))
}

/// A store with sessions of two folders, each written by a log.
struct TestStore {
    store: SessionStore,
    _folder: TempDir,
}

impl TestStore {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        TestStore { store: SessionStore::new(folder.path().join("sessions")), _folder: folder }
    }

    fn add(&self, cwd: &str, id: &str, entries: &[Entry]) -> PathBuf {
        let began = time("2026-11-15T07:12:03Z");
        let path = self.store.new_path(Path::new(cwd), began, id);
        let header = Header { id: id.into(), time: Some(began), cwd: cwd.into(), extra: Default::default() };
        let log = SessionLog::create(&path, header).unwrap();
        entries.iter().for_each(|entry| log.append(entry.clone()).wait().unwrap());
        path
    }
}

fn ids(summaries: &[SessionSummary]) -> Vec<&str> {
    summaries.iter().map(|summary| &*summary.id).collect()
}

#[test]
fn a_session_is_filed_by_its_folder_and_time() {
    let store = SessionStore::new("/data");
    let path = store.new_path(Path::new(CWD), time("2026-11-15T07:12:03.9Z"), "0a1b");
    let hash = &Hash::of(CWD.as_bytes()).to_string()[..8];
    assert_eq!(path, PathBuf::from(format!("/data/My-Project-{hash}/20261115T071203Z-0a1b.jsonl")));
    let root = store.new_path(Path::new("/"), Timestamp::UNIX_EPOCH, "../x");
    assert!(root.ends_with("19700101T000000Z----x.jsonl"), "{}", root.display());
    assert_ne!(store.folder_of(Path::new("/a/x")), store.folder_of(Path::new("/b/x")));
}

#[test]
fn a_list_tells_what_a_person_looks_for() {
    let stored = TestStore::new();
    let model = Record::ModelChange { provider: "p".into(), model: "older".into() };
    let branch = Record::Custom { custom_type: crate::GIT_BRANCH_RECORD.into(), data: "fix-build".into() };
    let path = stored.add(
        CWD,
        "s1",
        &[
            Entry::new("m", None, None, model),
            message_entry("u", Some("m"), "Why does\n  the build fail?"),
            request("q", "u"),
            answer("a", "q", "A semicolon."),
            request("r", "a"),
            name("n", "r", "The build"),
            Entry::new("b", Some("n"), None, branch),
        ],
    );
    let [summary] = stored.store.list(Some(Path::new(CWD))).try_into().unwrap();
    assert!(summary.last_activity.is_some());
    let expected = SessionSummary {
        path,
        id: "s1".into(),
        name: Some("The build".into()),
        cwd: CWD.into(),
        git_branch: Some("fix-build".into()),
        began: Some(time("2026-11-15T07:12:03Z")),
        last_activity: summary.last_activity,
        first_prompt: Some("Why does the build fail?".into()),
        messages: 2,
        model: Some("claude-sonnet-5".into()),
        dollars: 0.5,
        problems: 0,
    };
    assert_eq!(summary, expected);
}

#[test]
fn the_session_last_written_to_comes_first() {
    let stored = TestStore::new();
    let paths = ["a", "b", "c"].map(|id| stored.add(CWD, id, &[message_entry("u", None, id)]));
    let elsewhere = stored.add("/other", "d", &[message_entry("u", None, "d")]);
    for (at, path) in [(3, &paths[0]), (1, &paths[1]), (2, &paths[2]), (4, &elsewhere)] {
        let when = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(at);
        fs::File::options().append(true).open(path).unwrap().set_modified(when).unwrap();
    }
    assert_eq!(ids(&stored.store.list(Some(Path::new(CWD)))), ["a", "c", "b"]);
    assert_eq!(ids(&stored.store.list(None)), ["d", "a", "c", "b"]);
    let latest = stored.store.latest(Path::new(CWD));
    assert_eq!(latest.map(|summary| summary.id.to_string()).as_deref(), Some("a"));
    assert_eq!(stored.store.latest(Path::new("/nowhere")), None);
}

#[test]
fn a_damaged_session_is_listed_and_other_files_are_not() {
    let stored = TestStore::new();
    let path = stored.add(CWD, "s1", &[message_entry("u", None, "hi")]);
    let folder = path.parent().unwrap();
    let line = "{\"parent\":\"u\", \"type\":\"name\", \"id\":\"n\", \"name\":\"n\"}\n";
    let text = fs::read_to_string(&path).unwrap() + "garbage\n" + line + "{\"type\":\"mess";
    fs::write(&path, text).unwrap();
    fs::write(folder.join("headless.jsonl"), "hello\n").unwrap();
    fs::write(folder.join("empty.jsonl"), "").unwrap();
    fs::write(folder.join("s1.jsonl.torn-1"), "x").unwrap();
    fs::create_dir(folder.join("folder.jsonl")).unwrap();
    let mut list = stored.store.list(None);
    list.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(ids(&list), ["headless", "s1"]);
    assert_eq!((list[0].problems, list[1].problems), (1, 2));
    assert_eq!((list[1].messages, list[1].name.as_deref()), (1, Some("n")));
    assert_eq!(ids(&SessionStore::new("/nowhere/at/all").list(None)), [""; 0]);
}

#[test]
fn a_session_is_found_by_its_id_its_name_or_its_path() {
    let stored = TestStore::new();
    let path = stored.add(CWD, "abc1", &[message_entry("u", None, "x"), name("n", "u", "Fix the parser")]);
    stored.add(CWD, "abd2", &[message_entry("u", None, "x")]);
    stored.add("/other", "abc3", &[message_entry("u", None, "x"), name("n", "u", "Elsewhere")]);
    let find = |text: &str| stored.store.find(Some(Path::new(CWD)), text);
    for (text, id) in [
        ("abc1", "abc1"),
        ("abd", "abd2"),
        ("abc", "abc1"), // of this folder
        ("abc3", "abc3"),
        ("fix THE parser", "abc1"),
        ("parser", "abc1"),
        ("elsewhere", "abc3"),
        (path.to_str().unwrap(), "abc1"),
    ] {
        assert_eq!(&*find(text).unwrap().id, id, "{text}");
    }
    let beside = stored.store.find(path.parent(), path.file_name().unwrap().to_str().unwrap());
    assert_eq!(&*beside.unwrap().id, "abc1");
}

#[test]
fn what_could_be_several_or_none_is_an_error_that_helps() {
    let stored = TestStore::new();
    stored.add(CWD, "abc1", &[message_entry("u", None, "x"), name("n", "u", "Parser")]);
    stored.add(CWD, "abd2", &[message_entry("u", None, "x")]);
    let find = |text: &str| stored.store.find(Some(Path::new(CWD)), text).unwrap_err().to_string();
    let error = find("ab");
    assert!(error.contains("abc1 (Parser)") && error.contains("abd2"), "{error}");
    assert!(error.starts_with("\"ab\" matches several sessions: "), "{error}");
    assert_eq!(
        find("parsr"),
        "there is no session \"parsr\" (did you mean Parser?); `hardpan sessions --all` lists all"
    );
    assert_eq!(find("zzzzzz"), "there is no session \"zzzzzz\"; `hardpan sessions --all` lists all");
    assert!(find("").starts_with("there is no session \"\""));
}

#[test]
fn all_words_must_be_in_a_message_in_any_case() {
    let stored = TestStore::new();
    let long = format!("first line\n{} the PARSER of Ärger {}", "a ".repeat(60), "b ".repeat(90));
    stored.add(CWD, "s1", &[message_entry("u", None, &long), answer("a", "u", "No parser here.")]);
    stored.add("/other", "s2", &[message_entry("u", None, "a parser, too")]);
    let search = |cwd: Option<&Path>, words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        stored.store.search(cwd, &words)
    };
    let found = search(None, &["Parser", "ärger"]);
    assert_eq!(found.len(), 1);
    assert_eq!((&*found[0].summary.id, &*found[0].entry, found[0].role), ("s1", "u", "user"));
    assert!(found[0].excerpt.starts_with('…') && found[0].excerpt.ends_with('…'));
    assert!(found[0].excerpt.contains("the PARSER of Ärger"), "{}", found[0].excerpt);
    assert_eq!(search(Some(Path::new(CWD)), &["parser"]).len(), 2);
    assert_eq!(search(None, &["parser"]).len(), 3);
    assert_eq!(search(None, &["first", "parser"]).len(), 1);
    assert!(search(None, &["nothing"]).is_empty() && search(None, &[]).is_empty());
}

#[test]
fn a_deleted_session_leaves_nothing_and_one_in_use_is_refused() {
    let stored = TestStore::new();
    let path = stored.add(CWD, "s1", &[message_entry("u", None, "x")]);
    fs::write(path.with_extension("jsonl.torn-1"), "x").unwrap();
    let summary = stored.store.find(Some(Path::new(CWD)), "s1").unwrap();
    let (log, _) = SessionLog::open(&path).unwrap();
    assert!(matches!(stored.store.delete(&summary).unwrap_err().cause, LogErrorCause::Busy));
    assert!(path.exists());
    drop(log);
    stored.store.delete(&summary).unwrap();
    assert!(!path.parent().unwrap().exists());
}

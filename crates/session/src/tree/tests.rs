use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, Text, TokenUsage};

use super::*;
use crate::PartialRecord;

fn header(id: &str) -> Header {
    Header { id: id.into(), time: None, cwd: "/".into(), extra: Default::default() }
}

fn message_entry(id: &str, parent: Option<&str>) -> Entry {
    Entry::message(parent, AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(id)] }))
}

fn other(id: &str, parent: &str, record: Record) -> Entry {
    Entry::new(id, Some(parent), None, record)
}

fn request(id: &str, parent: &str, dollars: f64) -> Entry {
    let record = RequestRecord {
        purpose: "turn".into(),
        provider: "p".into(),
        model: "x".into(),
        message: Some(parent.into()),
        answer: None,
        prefix: None,
        usage: TokenUsage { output: 1, ..TokenUsage::default() },
        dollars,
        would_cost: None,
        factor: None,
        started: Default::default(),
        first_token_ms: None,
        ended_ms: None,
        layout: "strata".into(),
        extra: Default::default(),
    };
    other(id, parent, Record::Request(Arc::new(record)))
}

fn label(id: &str, parent: &str, target: &str, label: Option<&str>) -> Entry {
    other(id, parent, Record::Label { target: target.into(), label: label.map(Into::into) })
}

fn parse(lines: &str) -> Session {
    Session::parse("s.jsonl", (header("s").to_line() + lines).as_bytes()).unwrap()
}

fn session(entries: &[Entry]) -> Session {
    parse(&entries.iter().map(Entry::to_line).collect::<String>())
}

#[test]
fn the_tree_has_every_entry_once_and_no_pieces() {
    let partial = PartialRecord {
        message_id: "d".into(),
        parts: vec![MessagePart::text("x")],
        provider: None,
        model: None,
    };
    let session = session(&[
        message_entry("a", None),
        message_entry("b", Some("a")),
        other("p", "b", Record::Partial(partial)),
        message_entry("c", Some("a")),
        message_entry("a", Some("c")),
        message_entry("r", None),
        message_entry("d", Some("b")),
    ]);
    let tree = session.tree();
    assert_eq!(tree.roots, [0, 5]);
    assert_eq!(tree.children, [vec![1, 3], vec![6], vec![], vec![], vec![], vec![], vec![]]);
    let leaves: Vec<&str> = session.leaves().iter().map(|entry| &*entry.id).collect();
    assert_eq!(leaves, ["c", "r", "d"]);
    assert_eq!(session.leaf().map(|entry| &*entry.id), Some("d"));
    assert_eq!(session.entry("c").map(|entry| entry.parent.as_deref()), Some(Some("a")));
    let path: Vec<&str> = session.path_to(None).unwrap().iter().map(|entry| &*entry.id).collect();
    assert_eq!(path, ["a", "b", "d"]);
}

#[test]
fn the_last_name_and_the_last_labels_count() {
    let session = session(&[
        message_entry("a", None),
        other("n", "a", Record::Name { name: "old".into() }),
        label("1", "n", "a", Some("start")),
        label("2", "1", "n", Some("x")),
        label("3", "2", "n", None),
        other("m", "a", Record::Name { name: "new".into() }),
    ]);
    assert_eq!(session.name(), Some("new"));
    assert_eq!(session.labels().into_iter().collect::<Vec<_>>(), [("a", "start")]);
}

#[test]
fn the_bill_is_of_all_branches_and_a_branch_has_its_own() {
    let session = session(&[message_entry("a", None), request("1", "a", 0.5), request("2", "a", 0.25)]);
    assert_eq!(session.requests().map(|request| request.dollars).sum::<f64>(), 0.75);
    let branch = session.branch(None).unwrap();
    assert_eq!(branch.requests.iter().map(|request| request.dollars).collect::<Vec<_>>(), [0.25]);
}

#[test]
fn a_branch_has_what_its_layouts_remembered_since_it_was_compacted() {
    let memory = |id: &str, parent: &str, memory: Value| other(id, parent, Record::Memory { memory });
    let compaction = Record::Compaction {
        summary: Text::new("s"),
        first_kept: None,
        tokens_before: Some(9),
        details: None,
    };
    let session = session(&[
        message_entry("a", None),
        memory("1", "a", json!({"n": 1})),
        memory("2", "1", json!({"n": 2})),
        other("k", "2", compaction),
        memory("3", "k", json!([3])),
    ]);
    let of = |leaf: &str| session.branch(Some(leaf)).unwrap().memories;
    assert_eq!([of("a"), of("2")], [vec![], vec![json!({"n": 1}), json!({"n": 2})]]);
    assert_eq!([of("k"), of("3")], [vec![], vec![json!([3])]]);
}

#[test]
fn a_branch_has_the_last_state_of_each_extension() {
    let state = |id: &str, parent: &str, of: &str, data: Value| {
        other(id, parent, Record::Custom { custom_type: of.into(), data })
    };
    let session = session(&[
        message_entry("a", None),
        state("1", "a", "todo", json!(1)),
        state("2", "1", "plan", json!("x")),
        state("3", "2", "todo", json!(2)),
        state("4", "1", "todo", json!(3)),
    ]);
    let of = |leaf| {
        let custom = session.branch(leaf).unwrap().custom;
        custom.into_iter().map(|(of, data)| (of.to_string(), data)).collect::<Vec<_>>()
    };
    assert_eq!(of(Some("3")), [("plan".to_owned(), json!("x")), ("todo".to_owned(), json!(2))]);
    assert_eq!(of(None), [("todo".to_owned(), json!(3))]);
}

#[test]
fn a_fork_is_the_branch_under_a_new_header() {
    let session = session(&[
        message_entry("a", None),
        request("q", "a", 0.5),
        message_entry("b", Some("q")),
        message_entry("c", Some("a")),
        other("x", "c", Record::Custom { custom_type: "t".into(), data: json!(1) }),
    ]);
    let fork = session.fork(Some("b"), header("new")).unwrap();
    assert_eq!(fork.entries, session.entries[..3]);
    assert_eq!(fork.header.extra["forked_from"], json!({"session": "s", "entry": "b"}));
    let lines: String = fork.entries.iter().map(Entry::to_line).collect();
    let copy = Session::parse("new.jsonl", (fork.header.to_line() + &lines).as_bytes()).unwrap();
    assert_eq!(copy.branch(None).unwrap(), session.branch(Some("b")).unwrap());
    assert_eq!(session.fork(None, header("new")).unwrap().entries.len(), 3);
    assert!(session.fork(Some("z"), header("new")).is_err());
}

#[test]
fn a_fork_holds_together_where_a_line_of_the_session_was_lost() {
    let unknown = "{\"type\":\"dream\",\"id\":\"d\",\"parent\":\"lost\",\"depth\":3}\n";
    let lines =
        message_entry("a", None).to_line() + "garbage\n" + unknown + &message_entry("c", Some("d")).to_line();
    let session = parse(&lines);
    let fork = session.fork(None, header("new")).unwrap();
    let lines: String = fork.entries.iter().map(Entry::to_line).collect();
    let copy = Session::parse("new.jsonl", (fork.header.to_line() + &lines).as_bytes()).unwrap();
    assert!(copy.problems.is_empty(), "{:?}", copy.problems);
    assert_eq!(copy.branch(None).unwrap(), session.branch(None).unwrap());
}

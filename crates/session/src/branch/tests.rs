use hardpan_prompt::{MessagePart, Text};
use jiff::Timestamp;

use super::*;
use crate::{Entry, Header};

fn message_entry(id: &str, parent: Option<&str>) -> Entry {
    Entry::message(parent, AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(id)] }))
}

fn compaction(id: &str, parent: &str, first_kept: Option<&str>) -> Entry {
    let record = Record::Compaction {
        summary: Text::new(format!("sum {id}")),
        first_kept: first_kept.map(Into::into),
        tokens_before: None,
        details: None,
    };
    Entry::new(id, Some(parent), Some(Timestamp::UNIX_EPOCH), record)
}

fn session(entries: &[Entry]) -> Session {
    let header = Header { id: "s".into(), time: None, cwd: "/".into(), extra: Default::default() };
    let lines: String = entries.iter().map(Entry::to_line).collect();
    let session = Session::parse("s.jsonl", (header.to_line() + &lines).as_bytes()).unwrap();
    assert_eq!(session.entries, entries);
    session
}

fn ids(branch: &Branch) -> Vec<&str> {
    branch.messages.iter().map(|message| &*message.id.0).collect()
}

#[test]
fn an_empty_session_has_an_empty_branch() {
    assert_eq!(session(&[]).branch(None).unwrap(), Branch::default());
}

#[test]
fn the_last_entry_is_the_leaf_unless_one_is_named() {
    let session = session(&[
        message_entry("a", None),
        message_entry("b", Some("a")),
        message_entry("c", Some("b")),
        message_entry("d", Some("a")),
    ]);
    assert_eq!(ids(&session.branch(None).unwrap()), ["a", "d"]);
    let branch = session.branch(Some("c")).unwrap();
    assert_eq!(ids(&branch), ["a", "b", "c"]);
    assert_eq!(branch.leaf.as_deref(), Some("c"));
}

#[test]
fn a_leaf_that_is_not_there_is_an_error() {
    let error = session(&[message_entry("a", None)]).branch(Some("z")).unwrap_err().to_string();
    assert_eq!(error, "s.jsonl has no entry `z`: give the id of one of its entries, or none for the last");
}

#[test]
fn the_last_choice_on_the_branch_counts() {
    let model = |id: &str, parent, model: &str| {
        Entry::new(id, parent, None, Record::ModelChange { provider: "p".into(), model: model.into() })
    };
    let thinking = |id: &str, parent, level: &str| {
        Entry::new(id, parent, None, Record::ThinkingChange { level: level.into() })
    };
    let session = session(&[
        model("1", None, "x"),
        thinking("2", Some("1"), "low"),
        message_entry("a", Some("2")),
        model("3", Some("a"), "y"),
        thinking("4", Some("3"), "high"),
        Entry::new("5", Some("a"), None, Record::Name { name: "n".into() }),
        Entry::new("6", Some("5"), None, Record::Label { target: "a".into(), label: None }),
    ]);
    let branch = session.branch(Some("4")).unwrap();
    assert_eq!((branch.model, branch.thinking), (Some(("p".into(), "y".into())), Some("high".into())));
    let branch = session.branch(None).unwrap();
    assert_eq!(ids(&branch), ["a"]);
    assert_eq!((branch.model, branch.thinking), (Some(("p".into(), "x".into())), Some("low".into())));
}

#[test]
fn a_compaction_stands_for_what_came_before() {
    let session = session(&[
        message_entry("a", None),
        message_entry("b", Some("a")),
        message_entry("c", Some("b")),
        compaction("k", "c", Some("c")),
        message_entry("d", Some("k")),
    ]);
    assert!(session.problems.is_empty(), "{:?}", session.problems);
    let branch = session.branch(None).unwrap();
    assert_eq!(ids(&branch), ["k", "c", "d"]);
    let mut summary = AgentMessage::new("k", MessageBody::CompactionSummary { summary: Text::new("sum k") });
    summary.time = Some(Timestamp::UNIX_EPOCH);
    assert_eq!(branch.messages[0], summary);
    assert_eq!(ids(&session.branch(Some("c")).unwrap()), ["a", "b", "c"]);
}

#[test]
fn a_second_compaction_replaces_the_first() {
    let entries = [
        message_entry("a", None),
        message_entry("b", Some("a")),
        compaction("k", "b", Some("b")),
        message_entry("c", Some("k")),
        compaction("l", "c", Some("b")),
        message_entry("d", Some("l")),
    ];
    assert_eq!(ids(&session(&entries).branch(None).unwrap()), ["l", "b", "c", "d"]);
}

#[test]
fn a_compaction_may_keep_nothing_or_start_at_an_entry_that_is_no_message() {
    let name = Entry::new("n", Some("a"), None, Record::Name { name: "n".into() });
    let entries =
        [message_entry("a", None), name, message_entry("b", Some("n")), compaction("k", "b", Some("n"))];
    assert_eq!(ids(&session(&entries).branch(None).unwrap()), ["k", "b"]);
    let entries = [message_entry("a", None), compaction("k", "a", None), message_entry("b", Some("k"))];
    assert_eq!(ids(&session(&entries).branch(None).unwrap()), ["k", "b"]);
}

#[test]
fn a_compaction_that_keeps_what_is_not_above_it_is_reported_and_changes_nothing() {
    for kept in ["z", "x", "k", "b"] {
        let entries = [
            message_entry("x", None),
            message_entry("a", None),
            compaction("k", "a", Some(kept)),
            message_entry("b", Some("k")),
        ];
        let session = session(&entries);
        let what = format!("compaction not applied: `{kept}`, the first entry to keep, does not precede it");
        assert_eq!((session.problems[0].line, session.problems[0].kind.to_string()), (4, what));
        assert_eq!(ids(&session.branch(None).unwrap()), ["a", "b"]);
    }
}

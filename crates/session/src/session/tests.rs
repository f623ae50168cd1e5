use std::fs;

use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use proptest::prelude::*;

use super::*;

const HEADER: &str = r#"{"type":"session","version":1,"id":"s","time":"2026-01-02T03:04:05Z","cwd":"/p"}"#;

fn message(id: &str, parent: Option<&str>) -> String {
    Entry::message(parent, AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(id)] }))
        .to_line()
}

fn parse(lines: &[&str]) -> Session {
    Session::parse("s.jsonl", format!("{HEADER}\n{}", lines.concat()).as_bytes()).unwrap()
}

fn ids(session: &Session) -> Vec<String> {
    session.branch(None).unwrap().messages.iter().map(|message| message.id.to_string()).collect()
}

fn problems(session: &Session) -> Vec<(usize, String)> {
    session.problems.iter().map(|problem| (problem.line, problem.kind.to_string())).collect()
}

#[test]
fn the_header_is_read_and_written_back() {
    let session = parse(&[]);
    assert_eq!((&*session.header.id, &*session.header.cwd), ("s", "/p"));
    assert_eq!(session.header.to_line(), format!("{HEADER}\n"));
    let line = r#"{"type":"session","version":1,"id":"s","cwd":"","origin":{"import":true}}"#;
    assert_eq!(Session::parse("s", line.as_bytes()).unwrap().header.to_line(), format!("{line}\n"));
}

#[test]
fn a_file_without_a_header_is_an_error() {
    let message = message("a", None);
    let not_session = r#"{"type":"session","version":1}"#;
    for text in ["", "\n", "hello\n", "[]\n", "{\"type\":\"session\",\"ver", not_session, &message] {
        let error = Session::parse("x.jsonl", text.as_bytes()).unwrap_err();
        assert!(matches!(error, SessionError::NoHeader { .. }), "{text}");
        assert!(error.to_string().starts_with("x.jsonl is not a session file"));
    }
}

#[test]
fn a_newer_version_is_an_error_with_a_remedy() {
    let error = Session::parse("x", br#"{"type":"session","version":2,"id":"s"}"#).unwrap_err();
    let words = "x has session format version 2, but this Hardpan reads version 1: update Hardpan";
    assert_eq!(error.to_string(), words);
}

#[test]
fn a_line_that_was_not_finished_is_left_out() {
    let b = message("b", Some("a"));
    let session = parse(&[&message("a", None), &b[..b.len() - 9]]);
    assert_eq!(problems(&session), [(3, "skipped: it was cut off while being written".into())]);
    assert_eq!(session.problems[0].raw(), Some(&b[..b.len() - 9]));
    assert_eq!(ids(&session), ["a"]);
}

#[test]
fn a_line_that_lacks_only_its_end_is_whole() {
    let session = parse(&[&message("a", None), message("b", Some("a")).trim_end()]);
    assert_eq!(problems(&session), []);
    assert_eq!(ids(&session), ["a", "b"]);
}

#[test]
fn a_session_goes_on_after_an_unfinished_line() {
    // The writer ends the unfinished line, and follows the entry before it.
    let session = parse(&[&message("a", None), r#"{"type":"mess"#, "\n", &message("c", Some("a"))]);
    assert_eq!(session.problems.len(), 1);
    assert_eq!(ids(&session), ["a", "c"]);
}

#[test]
fn a_line_that_cannot_be_read_is_kept_and_the_conversation_goes_on_across_it() {
    let lines = [&message("a", None), "garbage\n", "\n", &message("c", Some("b")), &message("d", Some("c"))];
    let session = parse(&lines);
    assert_eq!(session.problems.len(), 2);
    assert_eq!(session.problems[0].raw(), Some("garbage"));
    assert!(problems(&session)[0].1.starts_with("kept but not part of the tree: it is not a JSON object"));
    let joined = "attached to `a`: its parent `b` is not on an earlier line";
    assert_eq!(problems(&session)[1], (5, joined.into()));
    assert_eq!(ids(&session), ["a", "c", "d"]);
}

#[test]
fn a_line_that_is_not_utf_8_is_reported() {
    let bytes = [HEADER.as_bytes(), b"\n{\"type\":\"\xff\"}\n", message("a", None).as_bytes()].concat();
    let session = Session::parse("s", &bytes).unwrap();
    assert_eq!(session.problems.len(), 1);
    assert_eq!(session.problems[0].raw(), Some("{\"type\":\"\u{fffd}\"}"));
    assert_eq!(ids(&session), ["a"]);
}

#[test]
fn a_message_that_cannot_be_read_still_holds_its_children() {
    let bad = "{\"type\":\"message\",\"id\":\"b\",\"parent\":\"a\",\"message\":{}}\n";
    let session = parse(&[&message("a", None), bad, &message("c", Some("b"))]);
    assert_eq!(session.problems.len(), 1);
    assert!(problems(&session)[0].1.starts_with("kept but not understood: its message cannot be read: "));
    assert_eq!(session.entries[1].to_line(), bad);
    assert_eq!(ids(&session), ["a", "c"]);
}

#[test]
fn a_missing_parent_is_reported() {
    let session = parse(&[&message("a", None), &message("b", Some("x"))]);
    let what = "treated as the start of a conversation: its parent `x` is not on an earlier line";
    assert_eq!(problems(&session), [(3, what.into())]);
    assert_eq!(ids(&session), ["b"]);
}

#[test]
fn a_cycle_is_reported_and_ends() {
    let session = parse(&[&message("a", Some("b")), &message("b", Some("a")), &message("c", Some("c"))]);
    assert_eq!(session.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(ids(&session), ["c"]);
    assert_eq!(session.branch(Some("b")).unwrap().messages.len(), 2);
}

#[test]
fn the_second_of_two_entries_with_one_id_is_left_out() {
    let a = message("a", None);
    let session = parse(&[&a, &message("b", Some("a")), &a]);
    assert_eq!(problems(&session), [(4, "skipped: an earlier entry has the same id `a`".into())]);
    assert_eq!(ids(&session), ["a", "b"]);
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_do_no_harm() {
    let text = format!("\u{feff}{HEADER}\r\n{}\r\n", message("a", None).trim_end());
    let session = Session::parse("s", text.as_bytes()).unwrap();
    assert_eq!((problems(&session), ids(&session)), (vec![], vec!["a".to_owned()]));
}

#[test]
fn a_file_is_opened_by_its_path_and_a_folder_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let error = Session::open(&path).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot read {}: ", path.display())), "{error}");
    fs::write(&path, format!("{HEADER}\n{}", message("a", None))).unwrap();
    assert_eq!(ids(&Session::open(&path).unwrap()), ["a"]);
    let error = Session::open(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("it is a folder: name a file in it"), "{error}");
}

#[test]
fn a_file_cut_anywhere_loses_at_most_the_line_that_was_being_written() {
    let header = format!("{HEADER}\n");
    let text = header.clone() + &message("a", None) + &message("bé", Some("a")) + &message("c", Some("bé"));
    let whole = Session::parse("s", text.as_bytes()).unwrap();
    for end in header.len()..=text.len() {
        let session = Session::parse("s", &text.as_bytes()[..end]).unwrap();
        let written = text.as_bytes()[header.len()..end].iter().filter(|&&byte| byte == b'\n').count();
        assert!(session.entries.len() >= written);
        assert_eq!(session.entries, whole.entries[..session.entries.len()]);
        assert!(session.problems.len() <= 1);
    }
}

proptest! {
    #[test]
    fn any_tree_is_read_back(parents in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let mut text = format!("{HEADER}\n");
        for (at, parent) in parents.iter().enumerate() {
            // The index of the entry itself stands for no parent.
            let parent = Some(parent.index(at + 1)).filter(|&parent| parent < at).map(|at| at.to_string());
            text += &message(&at.to_string(), parent.as_deref());
        }
        let session = Session::parse("s", text.as_bytes()).unwrap();
        prop_assert_eq!(problems(&session), []);
        let lines: String = session.entries.iter().map(Entry::to_line).collect();
        prop_assert_eq!(session.header.to_line() + &lines, text);
        for entry in &session.entries {
            let messages = session.branch(Some(&entry.id)).unwrap().messages;
            prop_assert_eq!(&messages.last().unwrap().id.0, &entry.id);
        }
    }

    #[test]
    fn no_bytes_break_the_reader(
        tail in prop::collection::vec(prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            Just(b"\n".to_vec()),
            Just(b"{\"type\":\"compaction\",\"id\":\"a\",\"parent\":\"b\",\"summary\":\"s\",\"first_kept\":\"a\"}\n".to_vec()),
            Just(b"{\"type\":\"name\",\"id\":\"b\",\"parent\":\"a\",\"name\":\"n\"}\n".to_vec()),
        ], 0..40),
    ) {
        let bytes = [HEADER.as_bytes(), b"\n", &tail.concat()].concat();
        let session = Session::parse("s", &bytes).unwrap();
        session.branch(None).unwrap();
        for entry in &session.entries {
            session.branch(Some(&entry.id)).unwrap();
        }
    }
}

use hardpan_prompt::{Json, ToolCall};

use super::*;
use crate::{Header, Session};

fn partial_entry(id: &str, parent: &str, of: &str, parts: Vec<MessagePart>) -> Entry {
    let partial =
        PartialRecord { message_id: of.into(), parts, provider: Some("p".into()), model: Some("x".into()) };
    Entry::new(id, Some(parent), Some(Timestamp::UNIX_EPOCH), Record::Partial(partial))
}

fn text(id: &str, parent: &str, of: &str, text: &str) -> Entry {
    partial_entry(id, parent, of, vec![MessagePart::text(text)])
}

fn user(id: &str, parent: Option<&str>) -> Entry {
    Entry::message(parent, AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(id)] }))
}

fn name(id: &str, parent: &str) -> Entry {
    Entry::new(id, Some(parent), None, Record::Name { name: id.into() })
}

fn answer(id: &str, parent: &str, content: Vec<MessagePart>) -> Entry {
    let (provider, model) = (Some("p".into()), Some("x".into()));
    let body = MessageBody::Assistant { content, provider, model, stop_reason: Some("interrupted".into()) };
    let mut message = AgentMessage::new(id, body);
    message.time = Some(Timestamp::UNIX_EPOCH);
    Entry::message(Some(parent), message)
}

fn session(entries: &[Entry]) -> Session {
    let header = Header { id: "s".into(), time: None, cwd: "/".into(), extra: Default::default() };
    let lines: String = entries.iter().map(Entry::to_line).collect();
    Session::parse("s.jsonl", (header.to_line() + &lines).as_bytes()).unwrap()
}

fn ids(session: &Session) -> Vec<String> {
    session.branch(None).unwrap().messages.iter().map(|message| message.id.to_string()).collect()
}

#[test]
fn an_answer_that_was_cut_off_is_put_together() {
    let session = session(&[user("u", None), text("1", "u", "m", "Hel"), text("2", "u", "m", "lo")]);
    let whole = answer("m", "u", vec![MessagePart::text("Hello")]);
    assert_eq!(session.entries.last(), Some(&whole));
    assert_eq!(session.recovered, [whole]);
    assert_eq!(ids(&session), ["u", "m"]);
    assert_eq!(session.branch(None).unwrap().leaf.as_deref(), Some("m"));
    let what = "recovered: the answer `m` was cut off; it was put together from the saved pieces";
    assert_eq!(
        (session.problems.len(), session.problems[0].line, session.problems[0].kind.to_string()),
        (1, 4, what.to_owned())
    );
}

#[test]
fn pieces_of_an_answer_that_came_whole_add_nothing() {
    let whole = answer("m", "u", vec![MessagePart::text("Hello!")]);
    let entries = [user("u", None), text("1", "u", "m", "Hel"), whole, text("2", "u", "m", "lo")];
    let session = session(&entries);
    assert_eq!((session.problems.len(), session.recovered.len()), (0, 0));
    assert_eq!(ids(&session), ["u", "m"]);
    assert_eq!(session.branch(None).unwrap().leaf.as_deref(), Some("m"));
    assert_eq!(session.entries, entries);
}

#[test]
fn reasoning_is_joined_until_it_is_signed_and_calls_never() {
    let reasoning = |text: &str, signature: Option<&str>| MessagePart::Reasoning {
        text: text.into(),
        signature: signature.map(Into::into),
        redacted: None,
    };
    let hidden =
        || MessagePart::Reasoning { text: "".into(), signature: None, redacted: Some("secret".into()) };
    let call = |id: &str| {
        let (id, name, arguments) = (id.into(), "read".into(), Json::default());
        MessagePart::ToolCall(ToolCall { id, name, arguments, result: None })
    };
    let entries = [
        user("u", None),
        partial_entry("1", "u", "m", vec![reasoning("a", None)]),
        partial_entry("2", "u", "m", vec![reasoning("b", None)]),
        partial_entry("3", "u", "m", vec![reasoning("", Some("s"))]),
        partial_entry("4", "u", "m", vec![reasoning("c", None), hidden(), reasoning("d", None)]),
        partial_entry(
            "5",
            "u",
            "m",
            vec![MessagePart::text("x"), call("1"), call("2"), MessagePart::text("y")],
        ),
        partial_entry("6", "u", "m", vec![MessagePart::text("z")]),
    ];
    let parts = vec![
        reasoning("ab", Some("s")),
        reasoning("c", None),
        hidden(),
        reasoning("d", None),
        MessagePart::text("x"),
        call("1"),
        call("2"),
        MessagePart::text("yz"),
    ];
    assert_eq!(session(&entries).recovered, [answer("m", "u", parts)]);
}

#[test]
fn what_follows_an_answer_that_was_lost_follows_its_pieces() {
    let session = session(&[user("u", None), text("1", "u", "m", "Hi"), user("v", Some("m"))]);
    assert_eq!(ids(&session), ["u", "m", "v"]);
    assert_eq!(session.recovered.len(), 1);
    assert_eq!(session.unwritten_recovery, None, "a parent cannot be appended after its child");
}

#[test]
fn an_answer_that_the_conversation_went_on_without_is_a_branch_of_its_own() {
    let session = session(&[user("u", None), text("1", "u", "m", "Hi"), user("v", Some("u"))]);
    assert_eq!(ids(&session), ["u", "v"]);
    assert_eq!(session.recovered, [answer("m", "u", vec![MessagePart::text("Hi")])]);
    assert_eq!(session.branch(Some("m")).unwrap().messages.len(), 2);
    assert_eq!(session.unwritten_recovery, None);
}

#[test]
fn a_name_given_while_the_answer_came_does_not_part_it_from_the_conversation() {
    let session = session(&[user("u", None), text("1", "u", "m", "Hi"), name("n", "u")]);
    assert_eq!(ids(&session), ["u", "m"]);
    assert_eq!(session.recovered, [answer("m", "n", vec![MessagePart::text("Hi")])]);
}

#[test]
fn a_piece_is_no_leaf_and_has_no_children() {
    let session = session(&[
        user("u", None),
        text("1", "u", "m", ""),
        partial_entry("2", "u", "n", Vec::new()),
        user("v", Some("2")),
    ]);
    assert_eq!(session.branch(Some("1")).unwrap().leaf.as_deref(), Some("u"));
    assert_eq!(ids(&session), ["u", "v"]);
    assert_eq!(session.recovered.len(), 1, "of `n` nothing has come");
}

use hardpan_prompt::{Json, MediaType};
use serde_json::json;

use super::*;
use crate::{Entry, Header};

fn call(id: &str, call_id: &str, name: &str, arguments: &Value) -> AgentMessage {
    let arguments = Json::new(arguments);
    let call = ToolCall { id: call_id.into(), name: name.into(), arguments, result: None };
    let content = vec![MessagePart::text("I call."), MessagePart::ToolCall(call)];
    AgentMessage::new(id, MessageBody::Assistant { content, provider: None, model: None, stop_reason: None })
}

fn result(id: &str, call_id: &str, tool: &str, content: Vec<MessagePart>) -> AgentMessage {
    let (call_id, tool_name) = (call_id.into(), Some(tool.into()));
    AgentMessage::new(
        id,
        MessageBody::ToolResult { call_id, tool_name, content, is_error: false, not_run: None },
    )
}

fn find(messages: &[AgentMessage], id: &str) -> Result<StoredContent, RecallError> {
    StoredContent::find(&messages.iter().collect::<Vec<_>>(), id)
}

#[test]
fn a_result_comes_back_with_the_long_arguments_of_its_own_call() {
    let content = "fn main() {}\r\n".repeat(30);
    let messages = [
        call("e1", "c", "write", &json!({"path": "a.rs", "content": "an earlier call of the same id"})),
        result("e2", "c", "write", vec![MessagePart::text("Wrote it.")]),
        call("e3", "c", "write", &json!({"path": "a.rs", "content": content})),
        result("e4", "c", "write", vec![MessagePart::text("Wrote it again.")]),
    ];
    let stored = find(&messages, "e4").unwrap();
    assert_eq!(stored.text, "Wrote it again.");
    assert_eq!(stored.arguments, [StoredArgument { name: "content".into(), text: content.clone() }]);
    assert_eq!(stored.full_text(), format!("Wrote it again.\n[content of the call]\n{content}"));
    assert_eq!(find(&messages, "e2").unwrap().full_text(), "Wrote it.", "short arguments stay in requests");
}

#[test]
fn other_values_than_strings_come_back_as_json() {
    let edits = json!([{"old_text": "a".repeat(150), "new_text": "b".repeat(150)}]);
    let messages = [
        call("e1", "c", "edit", &json!({"path": "a.rs", "edits": edits})),
        result("e2", "c", "edit", vec![MessagePart::text("Done.\n")]),
    ];
    let expected = format!("Done.\n[edits of the call]\n{edits}");
    assert_eq!(find(&messages, "e2").unwrap().full_text(), expected);
}

#[test]
fn images_come_back_too() {
    let image = Image { media_type: MediaType::Png, data: "AQID".into(), width: None, height: None };
    let parts = vec![MessagePart::text("a.png"), MessagePart::Image(image.clone())];
    assert_eq!(find(&[result("e2", "c", "read", parts)], "e2").unwrap().images, [image]);
}

#[test]
fn what_the_model_was_not_to_see_is_not_recalled() {
    let body = |exclude_from_context| MessageBody::BashExecution {
        command: "pass".into(),
        output: "secret".into(),
        exit_code: Some(0),
        exclude_from_context,
    };
    let deleted = AgentMessage { state: MessageState::Deleted, ..AgentMessage::new("e3", body(false)) };
    let messages = [AgentMessage::new("e1", body(true)), AgentMessage::new("e2", body(false)), deleted];
    let is_found = |id| find(&messages, id).is_ok();
    assert_eq!(["e1", "e2", "e3"].map(is_found), [false, true, false]);
}

#[test]
fn an_unknown_id_is_answered_with_the_nearest_ones() {
    let messages: Vec<AgentMessage> =
        (1..=20).map(|n| result(&format!("e{}", 2 * n), "c", "read", vec![MessagePart::text("x")])).collect();
    let message = |id| find(&messages, id).unwrap_err().to_string();
    assert_eq!(message("e9"), "this conversation has no message e9; it has e4, e6, e8, e10, e12");
    assert_eq!(
        message("src/a.rs"),
        "this conversation has no message src/a.rs; it has e32, e34, e36, e38, e40"
    );
    assert_eq!(find(&[], "e9").unwrap_err().to_string(), "this conversation has no message e9");
}

#[test]
fn a_session_recalls_what_was_compacted_but_not_what_lies_on_another_branch() {
    let header = Header { id: "s1".into(), time: None, cwd: "/project".into(), extra: Default::default() };
    let text = |id: &str, text: &str| result(id, "c", "read", vec![MessagePart::text(text)]);
    let compaction = Record::Compaction {
        summary: "They read.".into(),
        first_kept: None,
        tokens_before: None,
        details: None,
    };
    let lines = [
        Entry::message(None, text("e1", "old")),
        Entry::message(Some("e1"), text("e2", "left")),
        Entry::new("e3", Some("e1"), None, compaction),
        Entry::message(Some("e3"), text("e4", "new")),
    ];
    let file = header.to_line() + &lines.iter().map(Entry::to_line).collect::<String>();
    let session = Session::parse("s1.jsonl", file.as_bytes()).unwrap();
    let texts =
        ["e1", "e2", "e3", "e4"].map(|id| session.stored_content(None, id).ok().map(|found| found.text));
    assert_eq!(texts, [Some("old".into()), None, None, Some("new".into())]);
    assert_eq!(session.stored_content(Some("e2"), "e2").unwrap().text, "left");
}

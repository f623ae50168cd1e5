use hardpan_prompt::{Json, MessageBody, MessagePart, MessageState, NotRunReason, Text, ToolCall};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn read(line: &str) -> Entry {
    let (entry, problem) = Entry::parse(line).unwrap();
    assert!(problem.is_none(), "{problem:?}");
    entry
}

#[test]
fn a_message_is_written_without_its_id_and_time() {
    let mut message = AgentMessage::new("m1", MessageBody::User { content: vec![MessagePart::text("hi\n")] });
    message.time = Some("2026-01-02T03:04:05Z".parse().unwrap());
    let entry = Entry::message(Some("m0"), message);
    let line = r#"{"type":"message","id":"m1","parent":"m0","time":"2026-01-02T03:04:05Z","message":{"role":"user","content":[{"type":"text","text":"hi\n"}]}}"#;
    assert_eq!(entry.to_line(), format!("{line}\n"));
    assert_eq!(read(line), entry);
}

#[test]
fn a_message_may_have_a_time_of_its_own() {
    let line = r#"{"type":"message","id":"m1","parent":null,"time":"2026-01-02T03:04:05Z","message":{"time":"2025-01-01T00:00:00Z","role":"compaction_summary","summary":"s"}}"#;
    assert_eq!(read(line).to_line(), format!("{line}\n"));
}

#[test]
fn every_record_is_written_as_documented() {
    let lines = [
        r#"{"type":"model_change","id":"a","parent":null,"provider":"anthropic","model":"x"}"#,
        r#"{"type":"thinking_change","id":"b","parent":"a","level":"high"}"#,
        r#"{"type":"label","id":"c","parent":"b","target":"a","label":"start"}"#,
        r#"{"type":"label","id":"d","parent":"c","target":"a","label":null}"#,
        r#"{"type":"name","id":"e","parent":"d","name":"A fix"}"#,
        r#"{"type":"compaction","id":"f","parent":"e","time":"2026-01-02T03:04:05Z","summary":"s","first_kept":"b"}"#,
        r#"{"type":"compaction","id":"g","parent":"f","summary":"s","first_kept":null}"#,
        r#"{"type":"compaction","id":"h","parent":"g","summary":"s","first_kept":null,"tokens_before":9,"details":{"read":["a"]}}"#,
        r#"{"type":"compaction","id":"i","parent":"h","summary":"s","first_kept":null,"tokens_before":"many"}"#,
        r#"{"type":"partial","id":"j","parent":"i","of":"m","parts":[{"type":"text","text":"Hel"}],"provider":"p","model":"x"}"#,
        r#"{"type":"partial","id":"k","parent":"i","of":"m","parts":[{"type":"reasoning","text":"hm","signature":"s"}]}"#,
        r#"{"type":"memory","id":"l","parent":"i","memory":{"z":1,"a":[1.5,null]}}"#,
        r#"{"type":"memory","id":"m","parent":"l","memory":null}"#,
        r#"{"type":"request","id":"n","parent":"m","request":{"purpose":"turn","provider":"p","model":"x","message":"e","usage":{"input":1,"cache_read":2,"cache_write_5m":3,"cache_write_1h":4,"output":5,"reasoning":6},"dollars":0.0125,"factor":1.25,"started":"2026-01-02T03:04:05Z","first_token_ms":7,"ended_ms":8,"layout":"strata","ping":true}}"#,
        r#"{"type":"request","id":"o","parent":"n","request":{"purpose":"compaction","provider":"p","model":"x","usage":{"input":1,"cache_read":0,"cache_write_5m":0,"cache_write_1h":0,"output":5},"dollars":0.0,"started":"2026-01-02T03:04:05Z","layout":"tiers"},"mood":1}"#,
        r#"{"type":"custom","id":"p","parent":"o","custom_type":"todo","data":[1,{"b":2}]}"#,
    ];
    for line in lines {
        let entry = read(line);
        assert!(!matches!(entry.record, Record::Other { .. }), "{line}");
        assert_eq!(entry.to_line(), format!("{line}\n"));
    }
}

#[test]
fn an_unknown_type_is_kept_to_the_byte() {
    let line = r#"{ "type":"dream", "id":"a", "parent":null, "depth":3.0 }"#;
    let entry = read(line);
    assert_eq!(entry.record, Record::Other { line: line.into() });
    assert_eq!(entry.to_line(), format!("{line}\n"));
}

#[test]
fn unknown_fields_and_a_time_that_cannot_be_read_are_kept() {
    let line =
        r#"{"type":"name","id":"a","parent":null,"name":"n","time":"yesterday","mood":{"b":1,"a":[2]}}"#;
    let entry = read(line);
    assert_eq!(entry.time, None);
    assert_eq!(entry.extra, *json!({"time": "yesterday", "mood": {"b": 1, "a": [2]}}).as_object().unwrap());
    assert_eq!(entry.to_line(), format!("{line}\n"));
}

#[test]
fn a_record_that_cannot_be_read_keeps_its_place_and_its_line() {
    let lines = [
        r#"{"type":"message","id":"a","parent":"p","message":{"role":"oracle"}}"#,
        r#"{"type":"message","id":"a","parent":"p"}"#,
        r#"{"type":"name","id":"a","parent":"p","name":7,"mood":1}"#,
        r#"{"type":"compaction","id":"a","parent":"p","summary":"s"}"#,
        r#"{"type":"partial","id":"a","parent":"p","of":"m","parts":[{"type":"dream"}]}"#,
        r#"{"type":"partial","id":"a","parent":"p","parts":[]}"#,
        r#"{"type":"memory","id":"a","parent":"p"}"#,
        r#"{"type":"request","id":"a","parent":"p","request":{"purpose":"turn"}}"#,
        r#"{"type":"custom","id":"a","parent":"p","custom_type":"t"}"#,
        r#"{"type":"name","id":"a","parent":"p","name":"n","mood":"\ud800"}"#,
    ];
    for line in lines {
        let (entry, problem) = Entry::parse(line).unwrap();
        assert!(problem.is_some());
        assert_eq!((&*entry.id, entry.parent.as_deref()), ("a", Some("p")));
        assert_eq!(entry.to_line(), format!("{line}\n"));
    }
}

#[test]
fn the_later_of_two_fields_with_one_name_counts() {
    let entry = read(r#"{"type":"name","id":"a","parent":null,"name":"old","x":1,"name":"new","x":2}"#);
    assert_eq!(entry.record, Record::Name { name: "new".into() });
    assert_eq!(
        entry.to_line(),
        "{\"type\":\"name\",\"id\":\"a\",\"parent\":null,\"name\":\"new\",\"x\":2}\n"
    );
}

#[test]
fn the_name_of_a_message_is_that_of_its_entry() {
    let entry = read(
        r#"{"type":"message","id":"a\"b","parent":null,"message":{"id":"z","role":"user","content":"hi"}}"#,
    );
    let Record::Message(message) = &entry.record else { panic!("a message") };
    assert_eq!(&*message.id.0, "a\"b");
    assert_eq!(*message.body, MessageBody::User { content: vec![MessagePart::text("hi")] });
}

#[test]
fn a_line_without_a_place_in_the_tree_is_an_error() {
    let parent = "it has no `parent` (null for the first entry)";
    let all = [
        (r#"{"type":"name","id":"a","name":"n"}"#, parent),
        (r#"{"type":"name","id":"a","parent":3,"name":"n"}"#, parent),
        (r#"{"type":"name","parent":null,"name":"n"}"#, "its `id` is missing or not a string"),
        (r#"{"id":"a","parent":null}"#, "its `type` is missing or not a string"),
    ];
    for (line, what) in all {
        assert_eq!(Entry::parse(line).unwrap_err().to_string(), what);
    }
    assert!(Entry::parse("[1]").unwrap_err().to_string().starts_with("it is not a JSON object"));
    assert!(Entry::parse(r#"{"type":"na"#).unwrap_err().to_string().starts_with("it is not a JSON object"));
}

fn body() -> impl Strategy<Value = MessageBody> {
    let text = || "\\PC{0,8}|a\nb|\u{2028}|\"\\\\".prop_map(|text: String| Text::new(text));
    let part = prop_oneof![
        text().prop_map(|text| MessagePart::Text { text }),
        (text(), prop::option::of("[a-z]{1,4}")).prop_map(|(text, signature)| MessagePart::Reasoning {
            text,
            signature: signature.map(Into::into),
            redacted: None,
        }),
        ("[a-z]{1,4}", any::<i64>()).prop_map(|(id, number)| MessagePart::ToolCall(ToolCall {
            id: id.into(),
            name: "read".into(),
            arguments: Json::new(&json!({"z": number, "a": [1.0, null, "é"]})),
            result: None,
        })),
    ];
    let parts = prop::collection::vec(part, 0..4);
    prop_oneof![
        text().prop_map(|text| MessageBody::User { content: vec![MessagePart::Text { text }] }),
        (parts, prop::option::of("[a-z]{1,4}")).prop_map(|(content, model)| MessageBody::Assistant {
            content,
            provider: None,
            model: model.map(Into::into),
            stop_reason: None,
        }),
        (text(), any::<bool>()).prop_map(|(text, is_error)| MessageBody::ToolResult {
            call_id: "c".into(),
            tool_name: None,
            not_run: is_error.then(|| NotRunReason::Blocked { message: text.to_string() }),
            content: vec![MessagePart::Text { text }],
            is_error,
        }),
        (text(), prop::option::of(any::<i32>())).prop_map(|(output, exit_code)| MessageBody::BashExecution {
            command: "ls".into(),
            output,
            exit_code,
            exclude_from_context: false,
        }),
        text().prop_map(|summary| MessageBody::BranchSummary { summary }),
    ]
}

proptest! {
    #[test]
    fn a_written_message_is_read_back(body in body(), seconds in prop::option::of(0i64..4_000_000_000), deleted: bool) {
        let mut message = AgentMessage::new("m", body);
        message.time = seconds.map(|seconds| Timestamp::from_second(seconds).unwrap());
        message.state = if deleted { MessageState::Deleted } else { MessageState::Whole };
        let entry = Entry::message(Some("p"), message);
        let line = entry.to_line();
        prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
        let (again, problem) = Entry::parse(line.trim_end()).unwrap();
        prop_assert!(problem.is_none(), "{problem:?}");
        prop_assert_eq!(again, entry);
    }
}

#[test]
fn an_answer_of_several_parts_has_its_plain_text_beside_them() {
    let call = ToolCall { id: "c".into(), name: "read".into(), arguments: Json::default(), result: None };
    let parts = vec![
        MessagePart::text("Let me look."),
        MessagePart::ToolCall(call),
        MessagePart::text("There it is."),
    ];
    let said = |content: Vec<MessagePart>| {
        let body = MessageBody::Assistant { content, provider: None, model: None, stop_reason: None };
        Entry::message(None, AgentMessage::new("m1", body))
    };
    let line = said(parts.clone()).to_line();
    let written: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(written["message"]["text"], "Let me look.\nThere it is.");
    assert_eq!(written["message"]["content"].as_array().map(Vec::len), Some(3));
    // The parts are what counts: another text beside them changes nothing.
    let other = line.replace("Let me look.\\nThere it is.", "Something else.");
    assert_ne!(other, line);
    assert_eq!(Entry::parse(other.trim_end()).unwrap().0, said(parts.clone()));
    let alone: Value = serde_json::from_str(&said(parts[..1].to_vec()).to_line()).unwrap();
    assert_eq!(alone["message"].get("text"), None, "one text is its own plain text");
}

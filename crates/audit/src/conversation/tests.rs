use std::collections::BTreeSet;

use hardpan_session::{Header, Session};
use proptest::prelude::*;

use super::*;

fn imported(lines: &[Value]) -> ImportedConversation {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    ImportedConversation::new(&Recording::parse_conversation("s.jsonl", text.as_bytes()).unwrap())
}

/// The messages in short, by who speaks.
fn outline(conversation: &ImportedConversation) -> Vec<String> {
    let part = |part: &MessagePart| match part {
        MessagePart::Text { text } => text.to_string(),
        MessagePart::Reasoning { text, .. } => format!("({text})"),
        MessagePart::ToolCall(call) => format!("{}:{}{}", call.id, call.name, call.arguments.as_str()),
        MessagePart::Image(image) => image.media_type.name().to_owned(),
        _ => "?".to_owned(),
    };
    let joined = |parts: &[MessagePart]| parts.iter().map(part).collect::<Vec<_>>().join(" | ");
    let line = |entry: &Entry| match &entry.record {
        Record::Message(message) => match &*message.body {
            MessageBody::User { content } => format!("user {}", joined(content)),
            MessageBody::Assistant { content, model, .. } => {
                format!("{} {}", model.as_deref().unwrap_or("?"), joined(content))
            }
            MessageBody::ToolResult { call_id, content, is_error, .. } => {
                format!("{call_id}{} {}", if *is_error { "!" } else { "" }, joined(content))
            }
            other => format!("{other:?}"),
        },
        Record::Compaction { summary, first_kept, .. } => format!("compaction {summary} from {first_kept:?}"),
        other => format!("{other:?}"),
    };
    conversation.entries.iter().map(line).collect()
}

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn a_session_of_claude_code_becomes_one_of_ours() {
    let line = |kind: &str, id: &str, parent: Option<&str>, message: Value| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "cwd": "/w",
               "timestamp": "2026-11-16T10:00:00Z", "message": message})
    };
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let answer = |content: Value| json!({"role": "assistant", "id": "msg_1", "model": "claude-opus-4-5", "content": content, "usage": usage});
    let mut side = line("user", "x", None, json!({"role": "user", "content": "side"}));
    side["isSidechain"] = json!(true);
    let lines = [
        line("user", "a", None, json!({"role": "user", "content": "First try"})),
        line(
            "user",
            "b",
            None,
            json!({"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PNG}}]}),
        ),
        line(
            "assistant",
            "c",
            Some("b"),
            answer(json!([{"type": "thinking", "thinking": "I should look", "signature": "sig"}])),
        ),
        line(
            "assistant",
            "d",
            Some("c"),
            answer(
                json!([{"type": "tool_use", "id": "toolu_1", "name": "mcp__a.b/c", "input": {"path": "x"}}]),
            ),
        ),
        line(
            "user",
            "e",
            Some("d"),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "found"}, {"type": "image", "source": {"type": "base64", "data": PNG}}, {"type": "image", "source": {"type": "file"}}], "is_error": true}]}),
        ),
        line(
            "user",
            "f",
            Some("e"),
            json!({"role": "user", "content": "<local-command-stdout>$0.10</local-command-stdout>"}),
        ),
        side,
    ];
    let conversation = imported(&lines);
    let expected = [
        "user Look | image/png",
        "claude-opus-4-5 (I should look) | imported_1:mcp__a_b_c{\"path\":\"x\"}",
        "imported_1! found | image/png",
    ];
    assert_eq!(outline(&conversation), expected);
    let left_out = LeftOut { other_branches: 2, images: 1, agent_messages: 1, ..LeftOut::default() };
    assert_eq!(conversation.left_out, left_out);
    assert_eq!(conversation.model.as_deref(), Some("claude-opus-4-5"));
}

#[test]
fn a_session_of_codex_becomes_one_of_ours() {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-11-16T10:00:00Z", "type": kind, "payload": payload});
    let said = |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
    let lines = [
        line("session_meta", json!({"id": "s", "cwd": "/w"})),
        line(
            "response_item",
            json!({"type": "additional_tools", "role": "developer", "tools": [{"name": "exec"}]}),
        ),
        line("response_item", said("developer", "You are Codex.")),
        line("response_item", said("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>")),
        line("turn_context", json!({"model": "gpt-5.1-codex"})),
        line("response_item", said("user", "Patch it")),
        line("response_item", json!({"type": "reasoning", "encrypted_content": "gAAAAABxyz", "summary": []})),
        line(
            "response_item",
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c1", "input": "*** Begin Patch"}),
        ),
        line(
            "response_item",
            json!({"type": "custom_tool_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "Done"}, {"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}")}]}),
        ),
        line("response_item", json!({"type": "function_call_output", "call_id": "lost", "output": "?"})),
        line(
            "response_item",
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Patched."}]}),
        ),
    ];
    let conversation = imported(&lines);
    let outline = outline(&conversation);
    assert_eq!(outline[0], "user Patch it");
    assert!(
        outline.iter().any(|line| line.contains("imported_1:apply_patch{\"input\":\"*** Begin Patch\"}")),
        "{outline:?}"
    );
    assert!(outline.contains(&"imported_1 Done | image/png".to_owned()), "{outline:?}");
    assert!(outline.last().unwrap().ends_with("Patched."), "{outline:?}");
    let left_out =
        LeftOut { encrypted_reasoning: 1, results_without_call: 1, agent_messages: 3, ..LeftOut::default() };
    assert_eq!(conversation.left_out, left_out);
}

#[test]
fn a_compaction_of_codex_keeps_what_was_said_and_nothing_of_codex_itself() {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-11-16T10:00:00Z", "type": kind, "payload": payload});
    let said = |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
    let tools = json!({"type": "additional_tools", "role": "developer", "tools": [{"name": "exec"}]});
    let start = [
        line("session_meta", json!({"id": "s", "cwd": "/w"})),
        line("response_item", said("user", "Begin")),
        line("response_item", said("assistant", "Begun.")),
    ];
    let history =
        json!([tools, said("developer", "You are Codex."), said("user", "Begin"), said("user", "It began.")]);
    let readable = line("compacted", json!({"message": "It began.", "replacement_history": history}));
    let sealed = json!([tools, {"type": "compaction", "encrypted_content": "gAAAAABxyz"}]);
    let encrypted = line("compacted", json!({"message": "", "replacement_history": sealed}));
    let after = line("response_item", said("user", "Go on"));
    let conversation = imported(&[&start[..], &[readable, after.clone()]].concat());
    let expected = ["user Begin", "? Begun.", "compaction Begin\n\nIt began. from None", "user Go on"];
    assert_eq!(outline(&conversation), expected);
    assert_eq!(conversation.left_out, LeftOut { agent_messages: 1, ..LeftOut::default() });
    let conversation = imported(&[&start[..], &[encrypted, after]].concat());
    assert_eq!(outline(&conversation), ["user Begin", "? Begun.", "user Go on"]);
    let left_out = LeftOut { agent_messages: 1, unreadable_summaries: 1, ..LeftOut::default() };
    assert_eq!(conversation.left_out, left_out);
}

#[test]
fn a_session_of_pi_becomes_one_of_ours() {
    let lines = [
        json!({"type": "session", "version": 3, "id": "s", "cwd": "/w", "timestamp": "2026-11-16T10:00:00Z"}),
        json!({"type": "message", "id": "1", "parentId": null, "timestamp": "2026-11-16T10:00:00Z", "message": {"role": "user", "content": "Go"}}),
        json!({"type": "message", "id": "2", "parentId": "1", "timestamp": "2026-11-16T10:00:01Z", "message": {"role": "assistant", "provider": "anthropic", "model": "claude-sonnet-5", "content": [{"type": "text", "text": "Going"}], "usage": {"input": 5, "output": 1, "cacheRead": 0, "cacheWrite": 0}}}),
        json!({"type": "compaction", "id": "3", "parentId": "2", "timestamp": "2026-11-16T10:00:02Z", "summary": "They went", "firstKeptEntryId": "2", "tokensBefore": 9}),
        json!({"type": "message", "id": "4", "parentId": "3", "timestamp": "2026-11-16T10:00:03Z", "message": {"role": "user", "content": "On"}}),
        json!({"type": "message", "id": "5", "parentId": "4", "timestamp": "2026-11-16T10:00:04Z", "message": {"role": "assistant", "provider": "anthropic", "model": "claude-sonnet-5", "content": [{"type": "toolCall", "id": "t", "name": "read", "arguments": {"path": "a.png"}}], "usage": {"input": 5, "output": 1, "cacheRead": 0, "cacheWrite": 0}}}),
        json!({"type": "message", "id": "6", "parentId": "5", "timestamp": "2026-11-16T10:00:05Z", "message": {"role": "toolResult", "toolCallId": "t", "toolName": "read", "content": [{"type": "text", "text": "An image"}, {"type": "image", "mimeType": "image/png", "data": PNG}], "isError": false}}),
    ];
    let expected = [
        "user Go",
        "claude-sonnet-5 Going",
        "compaction They went from Some(\"i2\")",
        "user On",
        "claude-sonnet-5 imported_1:read{\"path\":\"a.png\"}",
        "imported_1 An image | image/png",
    ];
    assert_eq!(outline(&imported(&lines)), expected);
}

/// Any part of a recording, also such as nobody would write.
fn any_part() -> impl Strategy<Value = RecordedPart> {
    let call = ("[a-c]", ".{0,80}", prop_oneof!["\\{\"a\":1\\}", ".{0,9}", "\\[1\\]", "null"]);
    let call = call.prop_map(|(id, tool, arguments)| {
        RecordedPart::Call(RecordedCall {
            id: id.as_str().into(),
            tool: tool.as_str().into(),
            arguments: arguments.as_str().into(),
            action: crate::FileAction::from_call("", &Value::Null),
        })
    });
    let result = ("[a-d]", ".{0,9}", 0..2_usize, any::<bool>()).prop_map(|(call, text, images, failed)| {
        RecordedPart::Result(RecordedResult {
            call: call.as_str().into(),
            text: text.as_str().into(),
            images: vec![None; images],
            failed,
        })
    });
    prop_oneof![
        ".{0,9}".prop_map(|text| RecordedPart::Text(text.as_str().into())),
        ".{0,9}".prop_map(|text| RecordedPart::Reasoning(text.as_str().into())),
        call,
        result,
        Just(RecordedPart::Image { bytes: 3, image: None }),
    ]
}

proptest! {
    #[test]
    fn whatever_was_recorded_the_session_is_whole(
        messages in proptest::collection::vec((0..4_u8, proptest::collection::vec(any_part(), 0..5), any::<u8>()), 0..20)
    ) {
        let mut recording = Recording::new("s", crate::SourceAgent::Pi);
        for (speaker, parts, parent) in messages {
            let speaker = [Speaker::User, Speaker::Assistant, Speaker::Tool, Speaker::Agent][usize::from(speaker)];
            let count = recording.entries.len();
            let parent = count.checked_sub(1 + usize::from(parent) % 2);
            recording.add_entry(count + 1, parent, None, EntryContent::Message { speaker, parts });
        }
        let conversation = ImportedConversation::new(&recording);
        let header = Header { id: "s".into(), time: None, cwd: "/w".into(), extra: serde_json::Map::new() };
        let text: String = std::iter::once(header.to_line()).chain(conversation.entries.iter().map(Entry::to_line)).collect();
        let session = Session::parse("s", text.as_bytes()).unwrap();
        prop_assert!(session.problems.is_empty());
        prop_assert_eq!(&session.entries, &conversation.entries);
        let mut open = BTreeSet::new();
        for entry in &conversation.entries {
            let Record::Message(message) = &entry.record else { continue };
            match &*message.body {
                MessageBody::Assistant { content, .. } => {
                    prop_assert!(!content.is_empty());
                    for part in content {
                        let MessagePart::ToolCall(call) = part else { continue };
                        prop_assert!(open.insert(call.id.clone()), "an id twice");
                        prop_assert!(call.arguments.value().is_object());
                        prop_assert!(!call.name.is_empty() && call.name.len() <= MAX_TOOL_NAME);
                        prop_assert!(call.name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-')));
                    }
                }
                MessageBody::ToolResult { call_id, .. } => prop_assert!(open.remove(call_id), "a result without a call"),
                MessageBody::User { content } => prop_assert!(!content.is_empty()),
                _ => {}
            }
        }
    }
}

use std::sync::Arc;

use hardpan_models::Catalogue;
use proptest::prelude::*;

use super::*;
use crate::{Audit, Replay, ReplayPolicy};

#[test]
fn what_pi_writes_for_an_hour_is_told_apart() {
    let header = json!({"type": "session", "version": 3, "id": "s", "timestamp": time(0), "cwd": "/p"});
    let mut answer = pi_answer(4, "first", [3, 9, 0, 1500]);
    answer["message"]["usage"]["cacheWrite1h"] = 1200.into();
    let recording = parse(&[header.clone(), pi_user(1, "one"), answer.clone()]);
    let TokenUsage { cache_write_5m, cache_write_1h, .. } = recording.requests[0].usage;
    assert_eq!((cache_write_5m, cache_write_1h), (300, 1200));
    // Never more than was written at all.
    answer["message"]["usage"]["cacheWrite1h"] = 9999.into();
    let usage = parse(&[header, pi_user(1, "one"), answer]).requests[0].usage;
    assert_eq!((usage.cache_write_5m, usage.cache_write_1h, usage.prompt()), (0, 1500, 1503));
}

#[test]
fn pi_records_system_prompt_and_tools_outside_of_the_conversation() {
    let system = |second: u64, message: Value| json!({"type": "message", "timestamp": time(second), "message": message});
    let recording = parse(&[
        json!({"type": "session", "version": 3, "id": "s", "timestamp": time(0), "cwd": "/p"}),
        system(
            1,
            json!({"role": "system", "content": "", "sections": {"rules": "Be brief.", "cwd": "/p"}, "toolsAdded": [{"name": "read"}, {"name": "bash"}]}),
        ),
        pi_user(1, "one"),
        pi_answer(4, "first", [3, 9, 0, 1500]),
        system(
            5,
            json!({"role": "system", "content": "", "sections": {"rules": "Be long."}, "toolsRemoved": ["bash"]}),
        ),
        pi_user(6, "two"),
        pi_answer(9, "second", [3, 9, 0, 1500]),
    ]);
    assert_eq!(texts(&recording, 1), ["one", "first", "two"]);
    let [first, second] = &recording.requests[..] else { panic!("{:?}", recording.requests) };
    let names = |request: &BilledRequest| -> Vec<Arc<str>> {
        let shape = request.shape.as_deref().unwrap();
        let parts = shape.system.iter().chain(&shape.tools).flat_map(|parts| parts.iter());
        parts.map(|part| part.name.clone()).collect()
    };
    assert_eq!(names(first), ["rules", "cwd", "read", "bash"].map(Into::into));
    assert_eq!(names(second), ["rules", "cwd", "read"].map(Into::into));
}

fn qwen(second: u64, kind: &str, id: &str, parent: Option<&str>, parts: Value) -> Value {
    json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "cwd": "/p", "version": "0.9.0",
        "timestamp": time(second), "message": {"role": "user", "parts": parts}})
}

#[test]
fn a_session_of_qwen_code_is_not_taken_for_claude_code() {
    let mut call = qwen(
        4,
        "assistant",
        "a1",
        Some("u1"),
        json!([{"text": "Hm.", "thought": true}, {"functionCall": {"id": "c1", "name": "read_file", "args": {"absolute_path": "/p/a"}}}]),
    );
    call["model"] = "qwen3-coder-plus".into();
    call["usageMetadata"] = json!({"promptTokenCount": 9000, "cachedContentTokenCount": 4096, "candidatesTokenCount": 30, "thoughtsTokenCount": 12, "totalTokenCount": 9042});
    let mut stopped = qwen(9, "assistant", "a2", Some("r1"), json!([{"text": "I beg"}]));
    stopped["model"] = "qwen3-coder-plus".into();
    let telemetry = json!({"type": "system", "subtype": "ui_telemetry", "uuid": "t1", "parentUuid": "u1",
        "sessionId": "s", "timestamp": time(2), "systemPayload": {}});
    let recording = parse(&[
        telemetry,
        qwen(1, "user", "u1", None, json!([{"text": "look"}])),
        call,
        qwen(
            6,
            "tool_result",
            "r1",
            Some("a1"),
            json!([{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "fn a() {}"}}}]),
        ),
        stopped,
    ]);
    assert_eq!((recording.agent, recording.cwd.as_deref()), (SourceAgent::QwenCode, Some("/p")));
    let [request] = &recording.requests[..] else { panic!("{:?}", recording.requests) };
    let usage = TokenUsage { input: 4904, cache_read: 4096, output: 42, ..TokenUsage::default() };
    assert_eq!((request.usage, &*request.model), (usage, "qwen3-coder-plus"));
    assert_eq!((texts(&recording, 0), recording.unbilled.len()), (vec!["look".to_owned()], 1));
    let EntryContent::Message { parts, .. } = &recording.entries[1].content else { panic!() };
    let read = FileAction::Read { path: "/p/a".into(), from: None, lines: None };
    assert!(matches!(&parts[1], RecordedPart::Call(call) if call.action == read), "{parts:?}");
}

#[test]
fn a_session_without_a_bill_is_refused_by_name() {
    let qwen = qwen(1, "user", "u1", None, json!([{"text": "look"}])).to_string();
    let claude = claude(1, "user", "u1", None, json!({"role": "user", "content": "list"})).to_string();
    let header = json!({"type": "session", "id": "s", "timestamp": time(0), "cwd": "/p"}).to_string();
    for (text, agent) in [(qwen, "Qwen Code"), (claude, "Claude Code"), (header, "pi")] {
        let error = Recording::parse("s.jsonl", text.as_bytes()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("s.jsonl is a session of {agent} without a billed request")),
            "{error}"
        );
    }
}

#[test]
fn lines_of_codex_are_read_in_the_order_of_their_numbers() {
    let content = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    let numbered = |ordinal: u64, mut line: Value| {
        line["ordinal"] = ordinal.into();
        line
    };
    let recording = parse(&[
        numbered(
            0,
            codex(0, "session_meta", json!({"id": "s", "cwd": "/p", "base_instructions": {"text": "Be."}})),
        ),
        numbered(
            1,
            codex(
                0,
                "turn_context",
                json!({"model": "gpt-6.1-sol", "collaboration_mode": {"settings": {"reasoning_effort": "high"}}}),
            ),
        ),
        numbered(
            2,
            codex(
                0,
                "world_state",
                json!({"full": true, "state": {"top_level_tools": {"exec": "h1", "wait": "h2"}}}),
            ),
        ),
        numbered(4, codex(2, "response_item", content("user", "input_text", "write it"))),
        numbered(
            3,
            codex(
                1,
                "response_item",
                json!({"type": "additional_tools", "tools": [{"type": "function", "name": "exec"}]}),
            ),
        ),
        numbered(5, codex(3, "response_item", content("assistant", "output_text", "Done."))),
        numbered(6, tokens(3, 5000, [5000, 2048, 60])),
        numbered(
            7,
            codex(4, "world_state", json!({"full": false, "state": {"top_level_tools": {"wait": null}}})),
        ),
        numbered(8, codex(5, "response_item", content("assistant", "output_text", "More."))),
        numbered(9, tokens(5, 10_500, [5500, 2048, 60])),
    ]);
    let [first, second] = &recording.requests[..] else { panic!("{:?}", recording.requests) };
    assert_eq!(texts(&recording, 0)[1], "write it");
    assert_eq!(first.thinking.as_deref(), Some("high"));
    let difference = second.shape.as_ref().unwrap().difference_from(first.shape.as_ref().unwrap());
    assert_eq!(difference.unwrap().describe(), "the tools changed (removed wait)");
}

/// A value of any kind, often one that the importers look for.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0_u64..30_000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(
            &["a", "b", "system", "messages", "claude-sonnet-5", "2026-11-14T09:00:00Z"][..]
        )
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let pairs = prop::collection::btree_map(prop::sample::select(&FIELDS[..]), inner.clone(), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            pairs.prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

const KINDS: [&str; 9] = [
    "user",
    "assistant",
    "tool_result",
    "system",
    "api-request",
    "api-request-shape",
    "cost-state",
    "message",
    "world_state",
];

const FIELDS: [&str; 40] = [
    "uuid",
    "parentUuid",
    "sessionId",
    "timestamp",
    "message",
    "content",
    "parts",
    "usage",
    "usageMetadata",
    "promptTokenCount",
    "cachedContentTokenCount",
    "input_tokens",
    "cache_read_input_tokens",
    "model",
    "id",
    "role",
    "shapeHash",
    "shape",
    "system",
    "tools",
    "name",
    "params",
    "output_config",
    "effort",
    "betas",
    "base",
    "keep",
    "tail",
    "cacheControl",
    "path",
    "modelUsage",
    "totalCostUSD",
    "inputTokens",
    "claude-sonnet-5",
    "payload",
    "state",
    "top_level_tools",
    "systemPayload",
    "sections",
    "toolsAdded",
];

proptest! {
    /// Whatever the lines say, reading them ends, and so do audit and replay.
    #[test]
    fn no_line_makes_an_importer_fail(
        lines in prop::collection::vec(
            (prop::sample::select(&KINDS[..]), prop::collection::btree_map(prop::sample::select(&FIELDS[..]), any_value(), 0..12)),
            1..12,
        ),
    ) {
        let answer = claude_answer(3, "a1", "u1", "m1", json!({"type": "text", "text": "So."}), 5);
        let first = claude(1, "user", "u1", None, json!({"role": "user", "content": "Why?"}));
        let session = json!({"type": "session", "version": 3, "id": "s", "timestamp": time(0), "cwd": "/p"});
        let made = lines.iter().map(|(kind, fields)| {
            let mut line: Value = fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
            line["type"] = (*kind).into();
            line
        });
        let made: Vec<Value> = made.collect();
        for start in [vec![first, answer], vec![session, pi_user(1, "one"), pi_answer(4, "so", [3, 9, 0, 1500])], vec![]] {
            let text: String = start.iter().chain(&made).map(|line| line.to_string() + "\n").collect();
            if let Ok(recording) = Recording::parse("s.jsonl", text.as_bytes()) {
                let audit = Audit::from_recording(&recording, Catalogue::builtin());
                prop_assert!(audit.billed.cost.is_finite());
                let replay = Replay::new(&recording, Catalogue::builtin()).expect("it can be replayed");
                prop_assert!(replay.floor() <= replay.billed().cost * (1.0 + 1e-9));
                let appended = replay.run(ReplayPolicy::APPEND).expect("its requests can be built");
                prop_assert!(appended.cost.is_finite());
            }
        }
    }
}

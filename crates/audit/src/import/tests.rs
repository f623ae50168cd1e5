//! Small samples of each format, written by hand.

#![allow(clippy::needless_pass_by_value)] // `json!(…)` in place reads better than a reference to it

mod newer_lines; // what agents record since the autumn of 2026

use hardpan_economy::cache::Moment;
use hardpan_prompt::TokenUsage;
use serde_json::{Value, json};

use super::*;

fn parse(lines: &[Value]) -> Recording {
    let text: String = lines.iter().map(|line| line.to_string() + "\n").collect();
    Recording::parse("sample.jsonl", text.as_bytes()).unwrap()
}

fn texts(recording: &Recording, request: usize) -> Vec<String> {
    let context = recording.context(recording.requests[request].leaf);
    context.iter().map(|entry| first_text(&recording.entries[*entry].content)).collect()
}

fn first_text(content: &EntryContent) -> String {
    match content {
        EntryContent::Compaction { summary, .. } => format!("summary: {summary}"),
        EntryContent::Message { parts, .. } => match parts.first() {
            Some(RecordedPart::Text(text) | RecordedPart::Reasoning(text)) => text.to_string(),
            Some(RecordedPart::Call(call)) => format!("call {}", call.id),
            Some(RecordedPart::Result(result)) => format!("result {}", result.call),
            Some(RecordedPart::Image { .. }) => "image".into(),
            None => String::new(),
        },
    }
}

fn time(second: u64) -> String {
    format!("2026-08-14T09:00:{second:02}Z")
}

fn pi_user(second: u64, text: &str) -> Value {
    json!({"type": "message", "timestamp": time(second), "message": {"role": "user", "content": [{"type": "text", "text": text}]}})
}

fn pi_answer(second: u64, text: &str, usage: [u64; 4]) -> Value {
    let [input, output, read, write] = usage;
    let started = "2026-08-14T09:00:00Z".parse::<jiff::Timestamp>().unwrap().as_millisecond()
        + 1000 * second as i64
        - 2500;
    json!({"type": "message", "timestamp": time(second), "message": {
        "role": "assistant", "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "stop", "timestamp": started,
        "content": [{"type": "text", "text": text}],
        "usage": {"input": input, "output": output, "cacheRead": read, "cacheWrite": write}}})
}

#[test]
fn a_pi_session_of_version_1_is_a_list() {
    let header = json!({"type": "session", "id": "s", "timestamp": time(0), "cwd": "/p", "provider": "anthropic", "modelId": "m", "thinkingLevel": "off"});
    let mut stopped = pi_answer(9, "I beg", [0, 0, 0, 0]);
    stopped["message"]["stopReason"] = "aborted".into();
    let recording = parse(&[
        header,
        pi_user(1, "one"),
        pi_answer(4, "first", [3, 9, 0, 1500]),
        json!({"type": "thinking_level_change", "timestamp": time(5), "thinkingLevel": "low"}),
        pi_user(6, "two"),
        stopped,
        pi_user(10, "three"),
        pi_answer(14, "third", [3, 7, 1503, 40]),
        json!({"type": "compaction", "timestamp": time(15), "summary": "so far", "tokensBefore": 1546, "firstKeptEntryIndex": 6}),
        pi_user(16, "four"),
        pi_answer(19, "fourth", [900, 7, 0, 0]),
    ]);
    assert_eq!((recording.agent, recording.cwd.as_deref()), (SourceAgent::Pi, Some("/p")));
    assert_eq!(recording.problems, []);
    let [first, third, fourth] = &recording.requests[..] else { panic!("{:?}", recording.requests) };
    assert_eq!(
        first.usage,
        TokenUsage { input: 3, cache_write_5m: 1500, output: 9, ..TokenUsage::default() }
    );
    assert_eq!(first.ended.since(first.started), 2500);
    assert_eq!((first.thinking.as_deref(), third.thinking.as_deref()), (Some("off"), Some("low")));
    assert_eq!(recording.unbilled.len(), 1);
    // An answer that was stopped is not sent back.
    assert_eq!(texts(&recording, 1), ["one", "first", "two", "three"]);
    assert_eq!((third.compacted, fourth.compacted), (false, true));
    // What is kept begins at line 6, counted from 0.
    assert_eq!(texts(&recording, 2), ["summary: so far", "three", "third", "four"]);
}

#[test]
fn a_pi_session_of_version_3_is_a_tree() {
    let with = |mut line: Value, id: &str, parent: Option<&str>| {
        line["id"] = id.into();
        line["parentId"] = parent.into();
        line
    };
    for version in [2, 3] {
        let recording = parse(&[
            json!({"type": "session", "version": version, "id": "s", "timestamp": time(0), "cwd": "/p"}),
            with(pi_user(1, "one"), "a", None),
            with(pi_answer(4, "first", [3, 9, 0, 1500]), "b", Some("a")),
            with(pi_user(5, "wrong"), "c", Some("b")),
            with(pi_answer(8, "no", [3, 9, 1500, 20]), "d", Some("c")),
            with(json!({"type": "label", "timestamp": time(8)}), "l", Some("b")),
            with(pi_user(9, "right"), "e", Some("l")),
            with(pi_answer(12, "yes", [3, 9, 1500, 20]), "f", Some("e")),
            with(
                json!({"type": "compaction", "timestamp": time(13), "summary": "sum", "firstKeptEntryId": "e"}),
                "g",
                Some("f"),
            ),
            with(pi_user(14, "more"), "h", Some("g")),
            with(pi_answer(17, "end", [3, 9, 0, 900]), "i", Some("h")),
        ]);
        assert_eq!(texts(&recording, 1), ["one", "first", "wrong"]);
        assert_eq!(texts(&recording, 2), ["one", "first", "right"]);
        assert_eq!(texts(&recording, 3), ["summary: sum", "right", "yes", "more"]);
    }
}

#[test]
fn a_bad_line_costs_only_itself() {
    let header = json!({"type": "session", "id": "s", "timestamp": time(0), "cwd": "/p"}).to_string();
    let text = format!(
        "{header}\n{{\"type\":\"mess\n{}\nnull\n{}",
        pi_user(1, "one"),
        pi_answer(4, "first", [3, 9, 0, 1500])
    );
    let recording = Recording::parse("s.jsonl", text.as_bytes()).unwrap();
    assert_eq!(recording.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(texts(&recording, 0), ["one"]);
}

#[test]
fn a_file_of_nobody_is_refused_with_a_remedy() {
    let error = Recording::parse("notes.jsonl", b"{\"a\":1}\nhello\n").unwrap_err().to_string();
    assert!(error.starts_with("notes.jsonl is not a session of a known agent"), "{error}");
    assert!(Recording::open(Path::new("/nowhere/s.jsonl")).is_err());
}

fn claude(second: u64, kind: &str, id: &str, parent: Option<&str>, message: Value) -> Value {
    json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "cwd": "/p", "timestamp": time(second), "message": message})
}

fn claude_answer(second: u64, uuid: &str, parent: &str, id: &str, block: Value, output: u64) -> Value {
    let usage = json!({"input_tokens": 4, "output_tokens": output, "cache_creation_input_tokens": 300, "cache_read_input_tokens": 2000,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200}});
    let message = json!({"id": id, "role": "assistant", "model": "claude-sonnet-4-5", "content": [block], "usage": usage});
    claude(second, "assistant", uuid, Some(parent), message)
}

#[test]
fn a_line_of_claude_code_that_cannot_be_read_costs_no_earlier_message() {
    let words = |words: &str| json!({"type": "text", "text": words});
    let lines = [
        claude(1, "user", "u1", None, json!({"role": "user", "content": "one"})).to_string(),
        claude_answer(3, "a1", "u1", "msg_1", words("first"), 2).to_string(),
        claude(5, "user", "u2", Some("a1"), json!({"role": "user", "content": "two"})).to_string()[..70]
            .to_owned(),
        claude_answer(7, "a2", "u2", "msg_2", words("second"), 2).to_string(),
        claude(9, "user", "u3", Some("a2"), json!({"role": "user", "content": "three"})).to_string(),
        claude_answer(11, "a3", "u3", "msg_3", words("third"), 2).to_string(),
    ];
    let recording = Recording::parse("s.jsonl", lines.join("\n").as_bytes()).unwrap();
    assert_eq!(recording.problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(texts(&recording, 2), ["one", "first", "second", "three"]);
}

fn result(id: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "done"}]})
}

#[test]
fn an_answer_of_claude_code_is_one_request_however_many_lines_it_has() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}});
    let recording = parse(&[
        json!({"type": "summary", "summary": "Listing", "leafUuid": "x"}),
        claude(1, "user", "u1", None, json!({"role": "user", "content": "list"})),
        claude_answer(3, "a1", "u1", "msg_1", json!({"type": "text", "text": "Listing."}), 2),
        claude_answer(4, "a2", "a1", "msg_1", call("t1"), 2),
        claude(5, "user", "r1", Some("a2"), result("t1")),
        claude_answer(5, "a3", "a2", "msg_1", call("t2"), 77),
        claude(6, "user", "r2", Some("a3"), result("t2")),
        claude_answer(9, "a4", "r1", "msg_2", json!({"type": "text", "text": "Two."}), 5),
    ]);
    assert_eq!(recording.agent, SourceAgent::ClaudeCode);
    let [first, second] = &recording.requests[..] else { panic!("{:?}", recording.requests) };
    assert_eq!(
        first.usage,
        TokenUsage {
            input: 4,
            cache_read: 2000,
            cache_write_5m: 100,
            cache_write_1h: 200,
            output: 77,
            ..TokenUsage::default()
        }
    );
    assert_eq!(
        (first.started, first.ended),
        (recording.entries[0].at.unwrap(), recording.entries[1].at.unwrap())
    );
    assert_eq!(second.ended.since(second.started), 3000);
    // Both results were there, though the next answer names the first as its parent.
    assert_eq!(texts(&recording, 1), ["list", "Listing.", "result t1", "result t2"]);
}

#[test]
fn branches_sub_agents_and_compactions_of_claude_code_are_told_apart() {
    let text = |text: &str| json!({"role": "user", "content": text});
    let content = |text: &str| json!({"type": "text", "text": text});
    let mut side = claude(5, "user", "s1", None, text("search"));
    side["isSidechain"] = true.into();
    let mut boundary = claude(20, "system", "b1", None, Value::Null);
    boundary["subtype"] = "compact_boundary".into();
    boundary["logicalParentUuid"] = "a3".into();
    let mut summary = claude(21, "user", "c1", Some("b1"), text("All so far."));
    summary["isCompactSummary"] = true.into();
    let recording = parse(&[
        claude(1, "user", "u1", None, text("one")),
        claude_answer(3, "a1", "u1", "m1", content("first"), 5),
        side,
        claude_answer(7, "a2", "s1", "m2", content("found"), 5),
        claude(8, "user", "u2", Some("a1"), text("wrong")),
        claude(9, "user", "u3", Some("a1"), text("right")),
        claude_answer(12, "a3", "u3", "m3", content("yes"), 5),
        claude(14, "user", "i1", Some("a3"), text("[Request interrupted by user]")),
        boundary,
        summary,
        claude_answer(24, "a4", "c1", "m4", content("on"), 5),
    ]);
    assert_eq!(texts(&recording, 1), ["search"]);
    assert_eq!(texts(&recording, 2), ["one", "first", "right"]);
    assert_eq!(texts(&recording, 3), ["summary: All so far."]);
    let threads: Vec<usize> = recording.requests.iter().map(|request| request.thread).collect();
    assert_eq!(threads, [0, 2, 0, 0]);
    assert_eq!(recording.requests[2].status, AnswerStatus::Aborted);
    assert!(recording.requests[3].compacted);
}

fn codex(second: u64, kind: &str, payload: Value) -> Value {
    json!({"timestamp": time(second), "type": kind, "payload": payload})
}

fn tokens(second: u64, total: u64, last: [u64; 3]) -> Value {
    let [input, cached, output] = last;
    codex(
        second,
        "event_msg",
        json!({"type": "token_count", "info": {
        "total_token_usage": {"input_tokens": total, "total_tokens": total},
        "last_token_usage": {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output}}}),
    )
}

#[test]
fn a_codex_request_is_a_change_of_the_total() {
    let content = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch";
    let recording = parse(&[
        codex(0, "session_meta", json!({"id": "s", "cwd": "/p", "model_provider": "openai"})),
        codex(0, "turn_context", json!({"model": "gpt-5.5", "effort": "high"})),
        codex(1, "response_item", content("user", "input_text", "write it")),
        codex(1, "event_msg", json!({"type": "user_message", "message": "write it"})),
        codex(3, "response_item", json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"})),
        codex(
            4,
            "response_item",
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c1", "input": patch}),
        ),
        tokens(4, 5000, [5000, 2048, 60]),
        tokens(4, 5000, [5000, 2048, 60]),
        codex(
            5,
            "response_item",
            json!({"type": "custom_tool_call_output", "call_id": "c1", "output": "{\"output\":\"Success\",\"metadata\":{\"exit_code\":0}}"}),
        ),
        codex(
            7,
            "response_item",
            json!({"type": "function_call", "name": "shell", "call_id": "c2", "arguments": "{\"command\":[\"bash\",\"-lc\",\"cat a.txt\"]}"}),
        ),
        codex(
            8,
            "response_item",
            json!({"type": "function_call_output", "call_id": "c2", "output": "hello\n"}),
        ),
        tokens(8, 10_200, [5200, 4992, 20]),
        codex(10, "response_item", content("assistant", "output_text", "Done.")),
        tokens(10, 15_500, [5300, 5120, 9]),
        codex(11, "compacted", json!({"message": "It was written."})),
        codex(12, "response_item", content("user", "input_text", "more")),
        codex(14, "response_item", content("assistant", "output_text", "More.")),
        tokens(14, 18_000, [2500, 0, 9]),
    ]);
    assert_eq!((recording.agent, recording.requests.len()), (SourceAgent::Codex, 4));
    let first = &recording.requests[0];
    assert_eq!(
        first.usage,
        TokenUsage { input: 2952, cache_read: 2048, output: 60, ..TokenUsage::default() }
    );
    assert_eq!((&*first.model, first.thinking.as_deref()), ("gpt-5.5", Some("high")));
    assert_eq!(first.ended.since(first.started), 3000);
    assert_eq!(texts(&recording, 2), ["write it", "gAAA", "result c1", "call c2", "result c2"]);
    assert_eq!(texts(&recording, 3), ["summary: It was written.", "more"]);
    let EntryContent::Message { parts, .. } = &recording.entries[1].content else { panic!() };
    assert!(
        matches!(&parts[1], RecordedPart::Call(RecordedCall { action: FileAction::Patch { patch: read }, .. }) if **read == *patch)
    );
}

#[test]
fn our_own_sessions_are_read_too() {
    let recording = parse(&[
        json!({"type": "session", "version": 1, "id": "s", "time": time(0), "cwd": "/p"}),
        json!({"type": "message", "id": "m1", "parent": null, "time": time(1), "message": {"role": "user", "content": "Hello!"}}),
        json!({"type": "message", "id": "m2", "parent": "m1", "time": time(4), "message": {"role": "assistant", "content": "Hi.", "stop_reason": "end_turn"}}),
        json!({"type": "request", "id": "q1", "parent": "m2", "time": time(4), "request": {
            "purpose": "turn", "provider": "anthropic", "model": "claude-sonnet-5", "message": "m2", "dollars": 0.01, "layout": "strata",
            "started": time(2), "ended_ms": 1900,
            "usage": {"input": 10, "cache_read": 0, "cache_write_5m": 2000, "cache_write_1h": 5, "output": 3}}}),
    ]);
    assert_eq!(recording.agent, SourceAgent::Hardpan);
    let request = &recording.requests[0];
    assert_eq!(
        request.usage,
        TokenUsage { input: 10, cache_write_5m: 2000, cache_write_1h: 5, output: 3, ..TokenUsage::default() }
    );
    assert_eq!((request.ended, request.answer), (Moment(request.started.0 + 1900), Some(1)));
    assert_eq!(texts(&recording, 0), ["Hello!"]);
}

#[test]
fn requests_are_in_order_of_time_whoever_wrote_first() {
    let header = json!({"type": "session", "id": "s", "timestamp": time(0), "cwd": "/p"});
    let recording = parse(&[
        header,
        pi_user(1, "one"),
        pi_answer(20, "late", [3, 9, 0, 1500]),
        pi_answer(9, "early", [3, 8, 0, 1500]),
    ]);
    let outputs: Vec<u64> = recording.requests.iter().map(|request| request.usage.output).collect();
    assert_eq!(outputs, [8, 9]);
}

#[test]
fn calls_tell_what_they_do_to_files() {
    let edit = FileAction::from_call(
        "MultiEdit",
        &json!({"file_path": "/p/a", "edits": [{"old_string": "x", "new_string": "y", "replace_all": true}]}),
    );
    let change = TextReplacement { old: "x".into(), new: "y".into(), everywhere: true };
    assert_eq!(edit, FileAction::Edit { path: "/p/a".into(), changes: vec![change] });
    let read = FileAction::from_call("read", &json!({"path": "a", "offset": 5, "limit": 10}));
    assert_eq!(read, FileAction::Read { path: "a".into(), from: Some(5), lines: Some(10) });
    let heredoc = "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF\n";
    let patch = FileAction::from_call("shell", &json!({"command": ["bash", "-lc", heredoc]}));
    assert_eq!(patch, FileAction::Patch { patch: "*** Begin Patch\n*** End Patch".into() });
    assert_eq!(FileAction::from_call("WebSearch", &json!({"query": "x"})), FileAction::Other);
}

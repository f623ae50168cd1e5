//! What people have set up for other agents, and conversations that began there, in whole requests.

use serde_json::{Value, json};

use super::*;

fn parse(body: &str) -> Value {
    serde_json::from_str(body).expect("JSON")
}

/// A body without its cache markers, which move on with every request.
fn unmarked(mut body: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut body);
    body
}

#[test]
fn rules_for_files_come_with_the_first_such_file_and_cost_no_cache() {
    let sandbox = project("http://127.0.0.1:1");
    let simulator = RecordingSimulator::start(&sandbox, SCRIPT);
    configure(&sandbox, &simulator.url);
    sandbox
        .write("work/.cursor/rules/rust.mdc", "---\nglobs: *.rs\nalwaysApply: false\n---\nNever unwrap.\n");
    sandbox.write("work/.cursor/rules/go.mdc", "---\nglobs: *.go\n---\nNever panic.\n");
    sandbox.write("work/.cursor/rules/all.mdc", "---\nalwaysApply: true\n---\nAlways test.\n");
    let how = ["--model", "claude-sonnet-5-5", "--yes"];
    for (prompt, resume) in
        [("Read the notes", &[][..]), ("List everything", &["--continue"]), ("Thanks", &["--continue"])]
    {
        run(&sandbox, &[&["-p", prompt], &how[..], resume].concat());
    }
    let bodies: Vec<Value> = simulator.bodies().iter().map(|body| unmarked(parse(body))).collect();
    let count = |body: &Value, text: &str| body.to_string().matches(text).count();
    let told: Vec<usize> = bodies.iter().map(|body| count(body, "Never unwrap.")).collect();
    assert_eq!(told, [0, 0, 0, 1, 1], "from the request on that follows the reading of the file");
    assert!(bodies.iter().all(|body| count(body, "Always test.") == 1 && count(body, "Never panic.") == 0));
    for (before, after) in bodies.iter().zip(&bodies[1..]) {
        assert_eq!((&before["system"], &before["tools"]), (&after["system"], &after["tools"]));
        let messages = |body: &Value| body["messages"].as_array().expect("messages").clone();
        let (before, after) = (messages(before), messages(after));
        // All but the last message, which ends with what is told anew with every request.
        let stable = before.len() - 1;
        assert_eq!(before[..stable], after[..stable]);
    }
}

/// A line of a session of Claude Code.
fn claude_line(cwd: &str, kind: &str, at: usize, message: &Value) -> Value {
    let parent = at.checked_sub(1).map(|at| format!("u{at}"));
    json!({"type": kind, "uuid": format!("u{at}"), "parentUuid": parent, "sessionId": "s1", "cwd": cwd,
           "version": "2.1.300", "timestamp": "2026-11-16T10:00:00.000Z", "message": message})
}

fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A folder that the binary finds under the path that it has after following links.
fn real_work(sandbox: &Sandbox) -> String {
    sandbox.work().canonicalize().expect("it exists").to_str().expect("a path").to_owned()
}

#[test]
fn a_session_of_claude_code_is_continued_whole() {
    let sandbox = project("http://127.0.0.1:1");
    let simulator = RecordingSimulator::start(&sandbox, SCRIPT);
    configure(&sandbox, &simulator.url);
    let cwd = real_work(&sandbox);
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    let answer = |id: &str, content: Value| json!({"role": "assistant", "id": id, "model": "claude-opus-4-5", "content": content, "usage": usage});
    let lines = [
        claude_line(&cwd, "user", 0, &json!({"role": "user", "content": "Where is the ring?"})),
        claude_line(
            &cwd,
            "assistant",
            1,
            &answer("m1", json!([{"type": "thinking", "thinking": "Let me see", "signature": "foreign"}])),
        ),
        claude_line(
            &cwd,
            "assistant",
            2,
            &answer(
                "m1",
                json!([{"type": "tool_use", "id": "toolu_9", "name": "Read", "input": {"file_path": "/etc/passwd"}}]),
            ),
        ),
        claude_line(
            &cwd,
            "user",
            3,
            &json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "pub struct Ring;"}]}),
        ),
        claude_line(
            &cwd,
            "assistant",
            4,
            &answer("m2", json!([{"type": "text", "text": "In src/ring.rs."}])),
        ),
    ];
    let file = sandbox.write("home/.claude/projects/-work/s1.jsonl", jsonl(&lines));
    let listed = sandbox.json(&["import", "--list", "--json"]);
    assert_eq!(listed[0]["title"], "Where is the ring?");
    assert_eq!(listed[0]["agent"], "claude-code");
    let imported = sandbox.json(&["import", "--last", "--json"]);
    let left_out = json!({"lines": 0, "other_branches": 0, "encrypted_reasoning": 0, "images": 0,
                          "results_without_call": 0, "empty_messages": 0, "unreadable_summaries": 0, "agent_messages": 0});
    let expected = json!({"id": session_id(&sandbox), "file": imported["file"], "agent": "claude-code",
                          "messages": 4, "model": "claude-opus-4-5", "left_out": left_out});
    assert_eq!(imported, expected);
    run(&sandbox, &["-p", "Thanks", "--continue", "--model", "claude-sonnet-5-5"]);
    let body = unmarked(parse(&simulator.bodies()[0]));
    let conversation = [
        json!({"role": "user", "content": [{"type": "text", "text": "Where is the ring?"}]}),
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "imported_1", "name": "Read", "input": {"file_path": "/etc/passwd"}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "imported_1", "content": "pub struct Ring;"}]}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "In src/ring.rs."}]}),
    ];
    let messages = body["messages"].as_array().expect("messages");
    assert!(messages.windows(4).any(|window| *window == conversation), "{body:#}");
    assert!(!body.to_string().contains("root:x"), "no path of a recording is read");

    // What did not come about here is taken only with the person's word.
    let elsewhere = sandbox.write("elsewhere.jsonl", jsonl(&lines));
    let elsewhere = elsewhere.to_str().expect("a path");
    assert!(sandbox.failure(&["import", elsewhere]).contains("import it with --foreign"));
    let other: Vec<Value> = lines
        .iter()
        .map(|line| {
            let mut line = line.clone();
            line["cwd"] = json!("/other");
            line
        })
        .collect();
    fs::write(&file, jsonl(&other)).expect("written");
    assert!(
        sandbox
            .failure(&["import", file.to_str().expect("a path")])
            .contains("began in another folder, /other")
    );
    assert!(
        sandbox
            .failure(&["import", "--last"])
            .contains("no other agent has recorded a session in this project")
    );
    assert!(
        sandbox
            .text(&["import", elsewhere, "--foreign"])
            .starts_with("imported 4 messages of a session of Claude Code as ")
    );
    assert!(sandbox.failure(&["import", "notes.md"]).contains("is not a session of a known agent"));
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What happens in a conversation, whoever records it.
enum Event {
    Prompt(String),
    Image,
    Thought,
    Answer(String),
    Call(String, Value),
    Outcome(String, bool),
    Summary,
}

fn events(numbers: &mut Numbers) -> Vec<Event> {
    let mut events = Vec::new();
    for at in 0..4 + numbers.below(12) {
        events.push(match numbers.below(9) {
            0 | 1 => Event::Prompt(format!("Prompt {at} \u{1F600}")),
            2 => Event::Image,
            3 => Event::Thought,
            4 | 5 => Event::Answer(format!("Answer {at}")),
            6 => Event::Call(
                format!("call.{} !", numbers.below(3)),
                [json!({"a": at}), json!("plain"), json!([1])][numbers.below(3) as usize].clone(),
            ),
            7 => Event::Outcome(format!("call.{} !", numbers.below(4)), numbers.below(2) == 0),
            _ => Event::Summary,
        });
    }
    // Most calls get their results, some after others.
    let mut paired = Vec::new();
    for event in events {
        let outcome = match &event {
            Event::Call(id, _) if numbers.below(4) > 0 => Some(Event::Outcome(id.clone(), false)),
            _ => None,
        };
        paired.push(event);
        paired.extend(outcome);
    }
    let mut events = paired;
    events.push(Event::Prompt("The end".into()));
    events
}

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn as_claude_code(cwd: &str, events: &[Event]) -> Vec<Value> {
    let user = |content: Value| ("user", json!({"role": "user", "content": content}));
    let lines = events.iter().enumerate().map(|(at, event)| {
        let usage = json!({"input_tokens": 100, "output_tokens": 10});
        let answer = |content: Value| ("assistant", json!({"role": "assistant", "id": format!("m{at}"), "model": "claude-sonnet-5", "content": [content], "usage": usage}));
        let (kind, message) = match event {
            Event::Prompt(text) => user(json!(text)),
            Event::Image => user(json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}])),
            Event::Thought => answer(json!({"type": "thinking", "thinking": "I think so", "signature": "foreign"})),
            Event::Answer(text) => answer(json!({"type": "text", "text": text})),
            Event::Call(id, input) => answer(json!({"type": "tool_use", "id": id, "name": "Do it.", "input": input})),
            Event::Outcome(id, failed) => user(json!([{"type": "tool_result", "tool_use_id": id, "content": "out", "is_error": failed}])),
            Event::Summary => user(json!("A summary")),
        };
        let mut line = claude_line(cwd, kind, at, &message);
        line["isCompactSummary"] = json!(matches!(event, Event::Summary));
        line
    });
    lines.collect()
}

fn as_codex(cwd: &str, events: &[Event]) -> Vec<Value> {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-11-16T10:00:00Z", "type": kind, "payload": payload});
    let mut lines = vec![
        line("session_meta", json!({"id": "s1", "cwd": cwd, "cli_version": "0.166.0"})),
        line("turn_context", json!({"model": "gpt-5.5"})),
    ];
    lines.extend(events.iter().map(|event| match event {
        Event::Prompt(text) => line("response_item", json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})),
        Event::Image => line("response_item", json!({"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": format!("data:image/png;base64,{PNG}")}]})),
        Event::Thought => line("response_item", json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABforeign"})),
        Event::Answer(text) => line("response_item", json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})),
        Event::Call(id, input) => line("response_item", json!({"type": "function_call", "name": "shell", "call_id": id, "arguments": input.to_string()})),
        Event::Outcome(id, _) => line("response_item", json!({"type": "function_call_output", "call_id": id, "output": "out"})),
        Event::Summary => line("compacted", json!({"message": "A summary"})),
    }));
    lines
}

fn as_pi(cwd: &str, events: &[Event]) -> Vec<Value> {
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": "s1", "cwd": cwd, "timestamp": "2026-11-16T10:00:00Z"}),
    ];
    for (at, event) in events.iter().enumerate() {
        let user = |content: Value| json!({"role": "user", "content": content});
        let answer = |content: Value| json!({"role": "assistant", "provider": "anthropic", "model": "claude-sonnet-5", "content": [content], "stopReason": "stop", "usage": {"input": 100, "output": 10, "cacheRead": 0, "cacheWrite": 0}});
        let message = match event {
            Event::Prompt(text) => user(json!(text)),
            Event::Image => user(json!([{"type": "image", "data": PNG, "mimeType": "image/png"}])),
            Event::Thought => {
                answer(json!({"type": "thinking", "thinking": "I think so", "thinkingSignature": "foreign"}))
            }
            Event::Answer(text) => answer(json!({"type": "text", "text": text})),
            Event::Call(id, input) => {
                answer(json!({"type": "toolCall", "id": id, "name": "do it", "arguments": input}))
            }
            Event::Outcome(id, failed) => {
                json!({"role": "toolResult", "toolCallId": id, "toolName": "do it", "content": [{"type": "text", "text": "out"}], "isError": failed})
            }
            Event::Summary => Value::Null,
        };
        let parent = at.checked_sub(1).map(|at| format!("e{at}"));
        let mut line = json!({"type": "message", "id": format!("e{at}"), "parentId": parent, "timestamp": "2026-11-16T10:00:00Z", "message": message});
        if matches!(event, Event::Summary) {
            line["type"] = json!("compaction");
            line["summary"] = json!("A summary");
            line["firstKeptEntryId"] = json!(format!("e{at}"));
        }
        lines.push(line);
    }
    lines
}

#[test]
fn every_provider_takes_the_requests_of_an_imported_session() {
    const SESSIONS: usize = 9;
    let mut numbers = Numbers(7);
    let (mut images, mut calls) = (0, 0);
    for at in 0..SESSIONS {
        let sandbox = project("http://127.0.0.1:1");
        let simulator = RecordingSimulator::start(&sandbox, SCRIPT);
        configure(&sandbox, &simulator.url);
        let events = events(&mut numbers);
        let cwd = real_work(&sandbox);
        let (place, lines) = match at % 3 {
            0 => ("home/.claude/projects/-w/s1.jsonl", as_claude_code(&cwd, &events)),
            1 => ("home/.codex/sessions/2026/11/16/rollout-s1.jsonl", as_codex(&cwd, &events)),
            _ => ("home/.pi/agent/sessions/--w--/s1.jsonl", as_pi(&cwd, &events)),
        };
        sandbox.write(place, jsonl(&lines));
        let imported = sandbox.json(&["import", "--last", "--json"]);
        assert_eq!(imported["left_out"]["lines"], 0, "{imported}");
        for (provider, model) in PROTOCOLS {
            // The simulator refuses what a real server would.
            run(&sandbox, &["-p", "Go on", "--continue", "--provider", provider, "--model", model]);
            let bodies = simulator.bodies();
            let body = bodies.last().expect("a request");
            assert!(body.contains("The end"), "{place}: {body}");
            images += usize::from(body.contains(PNG));
            calls += usize::from(body.contains("imported_1"));
        }
    }
    assert!(images > 0 && calls > 0, "the sessions hold what could go wrong: {images}, {calls}");
}

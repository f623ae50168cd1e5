//! A large snapshot: 500 items and 400 messages, about 150,000 tokens.

use hardpan_context::{Snapshot, SnapshotFile};
use serde_json::{Value, json};

/// Text that looks like code, different for every `seed`.
fn code(seed: usize, lines: usize) -> String {
    let line = |n: usize| {
        format!("    let value_{n} = compute({seed}, {n}) + offset_{}; // step {n}\n", (seed * 31 + n) % 97)
    };
    format!("fn part_{seed}() {{\n{}}}\n", (0..lines).map(line).collect::<String>())
}

/// A snapshot of about 150,000 tokens for a session in progress.
pub fn large_snapshot() -> Snapshot {
    let files: Vec<Value> = (0..150)
        .map(|n| json!({"path": format!("src/part_{n}.rs"), "content": code(n, 17), "last_refresh_ms": n, "tier": tier(n)}))
        .collect();
    let symbols: Vec<Value> = (0..330)
        .map(|n| json!({"path": format!("lib/part_{n}.rs"), "content": code(n, 3), "tier": tier(n)}))
        .collect();
    let panels: Vec<Value> = (0..17)
        .map(|n| json!({"id": format!("P{n}"), "header": format!("Panel {n}"), "content": code(n, 8), "last_refresh_ms": 1000 + n}))
        .collect();
    let pages: Vec<Value> =
        (0..3).map(|n| json!({"url": format!("https://example.org/{n}"), "content": code(n, 60)})).collect();
    let messages: Vec<Value> = (0..100).flat_map(exchange).collect();
    let json = json!({
        "version": 1, "now": "2026-02-19T14:00:00Z", "files": files, "items": panels, "pages": pages, "messages": messages,
        "symbols": {"entries": symbols},
        "tools": [{"name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}],
        "prompt": {"id": "m400", "text": "And now?"},
    });
    SnapshotFile::parse("large", &json.to_string())
        .expect("it is well-formed")
        .into_snapshot("large")
        .expect("it is valid")
}

fn tier(n: usize) -> &'static str {
    ["L0", "L1", "L2", "L3", "active"][n % 5]
}

/// Four messages: a question, a call, its result, an answer.
fn exchange(n: usize) -> [Value; 4] {
    let id = |part: usize| format!("m{}", n * 4 + part);
    let call = json!({"type": "tool_call", "id": format!("call_{n}"), "name": "read", "arguments": {"path": format!("src/part_{n}.rs")}});
    [
        json!({"id": id(0), "role": "user", "content": format!("Please look at part {n} and tell me what it does.")}),
        json!({"id": id(1), "role": "assistant", "content": [{"type": "text", "text": "Let me see."}, call]}),
        json!({"id": id(2), "role": "tool_result", "call_id": format!("call_{n}"), "content": code(n, 21)}),
        json!({"id": id(3), "role": "assistant", "content": format!("It computes {n} values in a row.\n{}", code(n, 2))}),
    ]
}

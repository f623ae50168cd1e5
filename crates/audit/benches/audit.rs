//! The audit of a session of 2.4 MB, from its bytes to the report, against parsing its lines into JSON values.
//!
//! `cargo bench -p hardpan-audit` prints the ratio; its limit is 5. Both sides run in the same process, in turns, and the best
//! of many rounds counts, so that a busy machine changes little. A ratio over the limit fails the run.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hardpan_audit::{Audit, Recording, Report};
use hardpan_models::Catalogue;
use serde_json::{Value, json};

const ROUNDS: usize = 40;
const LIMIT: f64 = 5.0;
const BYTES: usize = 2_400_000;
const START: i64 = 1_786_698_000_000;

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A session of pi: prompts, calls, files as results, bills; now and then a silence or a prefix that was lost.
fn session() -> String {
    let mut file = json!({"type": "session", "version": 3, "id": "s", "timestamp": START, "cwd": "/p"})
        .to_string()
        + "\n";
    let (mut number, mut now, mut cached) = (0u64, START, 0u64);
    let mut line = |file: &mut String, message: Value, at: i64| {
        let parent = (number > 0).then(|| format!("e{}", number - 1));
        let entry = json!({"type": "message", "id": format!("e{number}"), "parentId": parent, "timestamp": at, "message": message});
        *file += &entry.to_string();
        file.push('\n');
        number += 1;
    };
    for turn in 0u64.. {
        if file.len() >= BYTES {
            break;
        }
        now += if turn % 17 == 16 { 400_000 } else { 30_000 };
        let text = "Why does the second test fail when the first one is left out?";
        line(
            &mut file,
            json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": now}),
            now,
        );
        for round in 0..6u64 {
            let is_lost = round == 0 && (turn % 17 == 16 || turn % 5 == 4);
            let (read, write) = if is_lost { (0, cached + 900) } else { (cached, 900) };
            cached += 900;
            let content = json!([
                {"type": "text", "text": "Let me look at the file that the failure names, and at what calls it."},
                {"type": "toolCall", "id": format!("c{turn}.{round}"), "name": "read", "arguments": {"path": format!("src/file{round}.rs")}},
            ]);
            let answer = json!({
                "role": "assistant", "provider": "anthropic", "model": "claude-sonnet-4-5", "content": content,
                "stopReason": if round == 5 { "stop" } else { "toolUse" }, "timestamp": now,
                "usage": {"input": 4, "output": 90, "cacheRead": read, "cacheWrite": write},
            });
            now += 4000;
            line(&mut file, answer, now);
            let source: String = (0..25)
                .map(|n| format!("    let value_{n} = compute(\"{turn}\", {n})?; // \"why\" it is so\n"))
                .collect();
            let result = json!({
                "role": "toolResult", "toolCallId": format!("c{turn}.{round}"), "toolName": "read",
                "content": [{"type": "text", "text": source}], "isError": false,
            });
            line(&mut file, result, now + 10);
        }
    }
    file
}

fn main() -> ExitCode {
    let file = session();
    let catalogue = Catalogue::builtin();
    let audited = || {
        let recording = Recording::parse("bench.jsonl", file.as_bytes()).expect("it is a session");
        Report::from_audits(&[Audit::from_recording(&recording, catalogue)])
    };
    let values = || -> Vec<Value> {
        file.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
    };
    let report = audited();
    let (requests, losses) = (report.sessions[0].requests, report.sessions[0].losses.len());
    assert!(requests > 500 && losses > 10, "{requests} requests, {losses} losses");
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        best =
            (best.0.min(time(|| drop(black_box(audited())))), best.1.min(time(|| drop(black_box(values())))));
    }
    let ratio = best.0.as_secs_f64() / best.1.as_secs_f64();
    let [ours, parse] = [best.0, best.1].map(|time| time.as_secs_f64() * 1e3);
    println!(
        "audit {requests} requests, {} kB: ratio {ratio:.2} (limit {LIMIT}), {ours:.2} ms against {parse:.2} ms of parsing",
        file.len() / 1000
    );
    if ratio > LIMIT { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
